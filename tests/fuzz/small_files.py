"""Small files: biases, settings, records of a search, names of features, queries, guidelines."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.mutations import STRANGE, mutated_bytes, mutated_json
from fuzz.oracle import Kind, main
from unskew.bias.saved import load_bias, load_propensities
from unskew.choose.tuning_record import TuningRecord, _digest
from unskew.cli.train_settings import make_ranker, ranker_settings, read_config
from unskew.log.feature_list import feature_list
from unskew.online.judging.guidelines import read_guidelines
from unskew.online.judging.queries import read_queries
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.rankers.settings import check_settings

BIASES: tuple[dict[str, Any], ...] = (
    {"written_by": "unskew", "kind": "position-bias", "version": 1, "method": "pairwise",
     "t_plus": [1.0, 0.8, 0.5], "t_minus": [1.0, 1.1, 1.3], "notes": ["a note"]},
    {"propensity": [0.68, 0.61, 0.48, 0.34]},
    {"t_plus": [1.0, 0.5]},
    {"t_plus": [1.0, 0.5], "t_minus": [1.0, 1.5],
     "t_plus_interval": [[1.0, 0.4], [1.0, 0.6]], "level": 0.95},
)  # fmt: skip


def attempt_bias(sample: Path, case: int, place: Path) -> str | None:
    """A bias: what is read are the numbers of the file, divided by the first one."""
    rng = np.random.default_rng([case, 10])
    content = json.loads(json.dumps(BIASES[case % len(BIASES)]))
    if rng.random() < 0.9:
        content = mutated_json(content, rng)
    raw = json.dumps(content).encode()
    file = place / "bias.json"
    file.write_bytes(mutated_bytes(raw, rng) if rng.random() < 0.2 else raw)
    bias, propensity = load_bias(file), load_propensities(file)
    content = json.loads(file.read_bytes())
    curve = content["t_plus"] if "t_plus" in content else content["propensity"]
    slow = [float(value) / float(curve[0]) for value in curve]
    if not np.allclose(bias.t_plus, slow, rtol=1e-12) and not np.allclose(bias.t_plus, curve):
        return f"{bias.t_plus}, in the file {curve}"
    if "t_minus" in content and not np.allclose(bias.t_minus, content["t_minus"], rtol=1e-12):
        return f"{bias.t_minus}, in the file {content['t_minus']}"
    usable = all(
        (np.isfinite(one) & (one > 0)).all() for one in (bias.t_plus, bias.t_minus, propensity)
    )
    if not usable or len(bias.t_plus) != len(bias.t_minus):
        return "numbers that no ranker can use"
    repr(bias)
    return None


CONFIG = {
    "n_estimators": 5, "learning_rate": 0.1, "num_leaves": 4, "p": 0.5, "sigma": 2.0, "n_jobs": 1,
    "booster": "lightgbm", "debias": "pairwise", "ndcg_at": 10, "feature_fraction": 0.9,
    "random_state": 1, "n_positions": 5, "ranker": "lambdamart", "max_bin": 63,
}  # fmt: skip


def attempt_config(sample: Path, case: int, place: Path) -> str | None:
    """Settings in TOML: the ranker has those of the file."""
    rng = np.random.default_rng([case, 11])
    names = [str(n) for n in rng.permutation(list(CONFIG))[: int(rng.integers(1, 7))]]
    settings = {name: CONFIG[name] for name in names}
    if rng.random() < 0.8:
        settings[names[0]] = STRANGE[rng.integers(len(STRANGE))]
    raw = "".join(f"{name} = {_toml(value)}\n" for name, value in settings.items()).encode()
    file = place / "config.toml"
    file.write_bytes(mutated_bytes(raw, rng) if rng.random() < 0.3 else raw)
    given = ranker_settings(read_config(str(file)), {}, [])
    ranker = make_ranker(given.pop("ranker", "lambdamart"), n_jobs=1, verbose=0, **given)
    check_settings(ranker.get_params(deep=False), ranker.constraints)
    params = ranker.get_params(deep=False)
    for name, value in tomllib.loads(file.read_text("utf-8")).items():
        if name in {"ranker", "n_jobs", "verbose", "debias"}:
            continue
        if params.get(name) != value and value == value:  # NaN equals nothing
            return f"{name} is {params.get(name)!r}, in the file {value!r}"
    return None


def _toml(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    return "{}" if value == {} or isinstance(value, dict) else json.dumps(value)


# Records of a search ------------------------------------------------------------------------------

ABOUT = {"ranker": "lambdamart", "n_folds": 2, "k": 10, "space": {"p": "0.0..1.0"}, "log": "12ab"}
TRIALS = [
    {"number": k, "settings": {"p": 0.1 * k, "debias": "pairwise"}, "status": status,
     "mean": 0.5 + 0.01 * k, "gains": [[1.0, 2.0, 0.5]] * folds, "seconds": [0.5] * folds,
     "reason": None if status != "refused" else "p is too high"}
    for k, (status, folds) in enumerate(
        [("complete", 2), ("given up", 1), ("refused", 0), ("complete", 2)]
    )
]  # fmt: skip


def attempt_record(sample: Path, case: int, place: Path) -> str | None:
    """The trials of a search: those of the file, and nothing that cannot be compared."""
    rng = np.random.default_rng([case, 14])
    content = json.loads(json.dumps({"kind": "tuning", "about": ABOUT, "trials": TRIALS}))
    if rng.random() < 0.9:
        content["trials" if rng.random() < 0.8 else "about"] = mutated_json(
            content["trials"] if rng.random() < 0.9 else content["about"], rng
        )
    if rng.random() < 0.9:
        content["sha256"] = _digest(content)
    raw = json.dumps(content).encode()
    file = place / "trials.json"
    file.write_bytes(mutated_bytes(raw, rng) if rng.random() < 0.2 else raw)
    record = TuningRecord.opened(file, ABOUT)
    # Numbers are floats on both sides: a whole number of thirty digits is read as the nearest one.
    told = json.loads(file.read_bytes(), parse_int=float)["trials"]
    found = json.loads(json.dumps([one.to_dict() for one in record.trials]), parse_int=float)
    if found != told:
        return f"{record.trials}"
    gains = [np.stack(one.gains).sum() for one in record.complete]
    best = record.best
    usable = np.isfinite(gains).all() and (best is None or np.isfinite(best.mean))
    return None if usable else "trials that cannot be compared"


# Lines of text ------------------------------------------------------------------------------------

LINES = "# what the model may use\nprice\nage\n\n colour \nbm25 of title\n"


def attempt_names(sample: Path, case: int, place: Path) -> str | None:
    """Names of features, one a line: those of the file, each once."""
    rng = np.random.default_rng([case, 15])
    file = place / "names.txt"
    raw = LINES.encode()
    if rng.random() < 0.3:
        raw = "\ufeff".encode() + raw.replace(b"\n", b"\r\n")
    for _ in range(int(rng.integers(0, 3))):
        raw = mutated_bytes(raw, rng) or b" "
    file.write_bytes(raw)
    names = feature_list(file)
    text = raw.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    slow = [line.strip() for line in text.split("\n") if line[:1] != "#"]
    slow = [line for line in slow if line]
    if names != slow or len(set(slow)) != len(slow) or not slow:
        return f"{names}, slowly {slow}"
    return None


def attempt_queries(sample: Path, case: int, place: Path) -> str | None:
    """Queries to judge and guidelines: every line, and HTML in which nothing runs."""
    rng = np.random.default_rng([case, 16])
    raw = b"red shoes\nblue\n\n007\n<b>x</b>\n[a](javascript:1) ![b](http://c)\n"
    for _ in range(int(rng.integers(0, 3))):
        raw = mutated_bytes(raw, rng) or b" "
    file = place / "queries.txt"
    file.write_bytes(raw)
    shown = read_guidelines(file)
    if any(tag in shown.lower() for tag in ("<script", "<img", "<b>", 'href="javascript')):
        return f"what an author wrote would run: {shown[:200]}"
    found = [one.query for one in read_queries(file)]
    text = raw.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    slow = [line for line in text.split("\n") if line.strip()]
    return None if found == slow and len(set(slow)) == len(slow) else f"{found}, slowly {slow}"


def _nothing(folder: Path) -> None:
    """Cases make their own files."""


# What loading imports is loaded once, here.
UnbiasedLambdaMART()

KINDS = (
    Kind("bias files", ("bias",), _nothing, attempt_bias),
    Kind("configs", ("config",), _nothing, attempt_config),
    Kind("records of a search", ("record",), _nothing, attempt_record),
    Kind("lists of features", ("names",), _nothing, attempt_names),
    Kind("queries and guidelines", ("queries",), _nothing, attempt_queries),
)

if __name__ == "__main__":
    main(KINDS)
