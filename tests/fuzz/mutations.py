"""Damage to values: JSON, arrays and bytes, drawn by a generator."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, -2, 3, 7, 100, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63, 10**30, 0.5,
    -0.0, 1e-45, 1e38, 1e308, 1e400, -1e400, math.nan, "", "x", "1", "-1", "99999999", "nan", [], {},
    [[]], [None], {"a": []}, "\ud7ff", "a b", "é\n", "../x",
)  # fmt: skip


def mutated_json(content: Any, rng: np.random.Generator) -> Any:
    """The content with one to three of its values replaced, removed, doubled or exchanged."""
    for _ in range(int(rng.integers(1, 4))):
        path = _path(content, rng)
        if not path:
            return _strange(rng)
        parent = content
        for key in path[:-1]:
            parent = parent[key]
        _damage(parent, path[-1], rng)
    return content


def _strange(rng: np.random.Generator) -> Any:
    """A copy: what is put into one case must not change another."""
    return copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])


def _path(content: Any, rng: np.random.Generator) -> list[Any]:
    """The way to a random value, deeper ones as likely as others at every step."""
    path: list[Any] = []
    while isinstance(content, dict | list) and len(content) and (not path or rng.random() < 0.9):
        keys = list(content) if isinstance(content, dict) else range(len(content))
        key = keys[rng.integers(len(keys))]
        path.append(key)
        content = content[key]
    return path


def _damage(parent: Any, key: Any, rng: np.random.Generator) -> None:
    how = rng.integers(6)
    value = parent[key]
    if how == 0:
        del parent[key]
    elif how == 1 and isinstance(parent, list):
        parent.insert(int(rng.integers(len(parent) + 1)), value)
    elif how == 2 and isinstance(parent, list):
        other = int(rng.integers(len(parent)))
        parent[key], parent[other] = parent[other], parent[key]
    elif how == 3 and type(value) in (int, float):
        parent[key] = value + int(rng.integers(-3, 4))
    elif how == 4 and isinstance(value, str) and value.lstrip("-").isdigit():
        parent[key] = str(int(value) + int(rng.integers(-2, 3)))
    else:
        parent[key] = _strange(rng)


def mutated_text(text: str, rng: np.random.Generator) -> str:
    """The text with one to three of its numbers, tokens or lines changed."""
    for _ in range(int(rng.integers(1, 4))):
        lines = text.split("\n")
        at = int(rng.integers(len(lines)))
        how = rng.integers(8)
        if how == 0:
            lines.pop(at)
        elif how == 1:
            lines.insert(at, lines[int(rng.integers(len(lines)))])
        elif how == 2:
            other = int(rng.integers(len(lines)))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            name, sign, values = lines[at].partition("=")
            tokens = values.split(" ")
            place = int(rng.integers(len(tokens)))
            tokens[place] = _other_token(tokens, place, rng)
            lines[at] = name + sign + " ".join(tokens)
        text = "\n".join(lines)
    return text


def _other_token(tokens: list[str], place: int, rng: np.random.Generator) -> str:
    how, token = rng.integers(5), tokens[place]
    if how == 0:
        return tokens[int(rng.integers(len(tokens)))]
    if how <= 2 and token.lstrip("-").isdigit():
        return str(int(token) + int(rng.integers(-3, 4)))
    if how == 3:
        return ""
    choices = ("nan", "inf", "-1", "0", "1e400", "99999999", "-99999999", "4294967296", "x", "1 2")
    return str(choices[rng.integers(len(choices))])


def mutated_bytes(raw: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with some flipped, cut or repeated."""
    changed = bytearray(raw)
    how = rng.integers(8)
    if how == 0:
        return bytes(changed[: int(rng.integers(len(changed) + 1))])
    if how == 1:
        at = int(rng.integers(len(changed)))
        return bytes(changed[:at] + changed[at // 2 : at] + changed[at:])
    for place in rng.integers(len(changed), size=int(rng.integers(1, 5))):
        changed[place] = int(rng.integers(256))
    return bytes(changed)


def mutated_array(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The array permuted, or with some entries out of range, negative, repeated or shifted."""
    changed = values.copy()
    if not len(changed):
        return changed
    at = rng.integers(len(changed), size=int(rng.integers(1, 4)))
    how = rng.integers(6)
    if how == 0:
        return rng.permutation(changed)
    if how == 1:
        changed[at] = changed[rng.integers(len(changed), size=len(at))]
    elif changed.dtype.kind in "iu":
        info = np.iinfo(changed.dtype)
        strange = [info.max, info.min, 0, 1, len(changed), int(changed.max()) + 1, -1, -5]
        allowed = [one for one in strange if info.min <= one <= info.max]
        changed[at] = allowed[rng.integers(len(allowed))]
    elif changed.dtype.kind == "f":
        changed[at] = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308)[rng.integers(6)]
    elif how == 2:
        return changed[:-1]
    return changed
