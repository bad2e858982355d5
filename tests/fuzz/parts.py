"""Impressions in parts, and checkpoints of a training over parts, damaged and signed again.

Parts are damaged within, missing, exchanged, listed twice, listed under another name or taken from
another log. What is still read must be what the listed parts hold, each read on its own.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import unskew
from fuzz.mutations import mutated_json
from fuzz.oracle import Kind, main
from fuzz.saved_folders import QUICK, damage_a_file, small_log
from fuzz.slow_reading import Row
from fuzz.tables import found_sessions
from unskew.engines.checkpoint import read_checkpoint, write_checkpoint
from unskew.engines.job import Progress
from unskew.log import saved
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.store import MANIFEST, manifest_text


def prepare_parts(folder: Path) -> None:
    """A log in three parts with categories, contexts and gaps, and another one to take parts from."""
    small_log().save(folder / "parts", parts=3)
    rows: list[Row] = [
        {"session": s, "query": f"q{s % 4}", "doc": d, "position": d + 1, "click": int(s % 2 == d),
         "price": d / 7, "colour": "r", "age": 1.0}
        for s in range(12) for d in range(2)
    ]  # fmt: skip
    table: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    unskew.read_log(table, categorical=["colour"]).save(folder / "other", parts=2)
    for name in ("parts", "other"):
        if _use_parts(folder / name) is not None:
            raise AssertionError(f"the sample {name} is not right")


def attempt_parts(sample: Path, number: int, place: Path) -> str | None:
    """Damage a folder of parts in one way or two, sign it again, and read it."""
    SAMPLES[:] = sorted(sample.parent.glob("other/part-*"))
    folder = Path(shutil.copytree(sample, place / "parts"))
    damage_parts(folder, np.random.default_rng([number, 12]))
    return _use_parts(folder)


def damage_parts(folder: Path, rng: np.random.Generator) -> None:
    """Change parts, or what the manifest says of them, in one way or two."""
    for _ in range(int(rng.integers(1, 3))):
        manifest = json.loads((folder / MANIFEST).read_text())
        entries = manifest.get("parts") if isinstance(manifest, dict) else None
        names = sorted(file.parent.name for file in folder.glob(f"*/{MANIFEST}"))
        if not isinstance(entries, list) or not names:
            break
        how = DAMAGES[rng.integers(len(DAMAGES))]
        how(folder, manifest, names[rng.integers(len(names))], rng)


def _within(folder: Path, manifest: Any, name: str, rng: np.random.Generator) -> None:
    damage_a_file(folder / name, rng)
    _sign(folder, manifest)


def _described(folder: Path, manifest: Any, name: str, rng: np.random.Generator) -> None:
    changed = mutated_json(manifest, rng)
    text = manifest_text(changed) if isinstance(changed, dict) else json.dumps(changed)
    (folder / MANIFEST).write_text(text)


def _missing(folder: Path, manifest: Any, name: str, rng: np.random.Generator) -> None:
    shutil.rmtree(folder / name)


def _exchanged(folder: Path, manifest: Any, name: str, rng: np.random.Generator) -> None:
    names = sorted(file.parent.name for file in folder.glob(f"*/{MANIFEST}"))
    other = names[rng.integers(len(names))]
    (folder / name).rename(folder / "between")
    if other != name:
        (folder / other).rename(folder / name)
    (folder / "between").rename(folder / other)
    if rng.random() < 0.5:
        _sign(folder, manifest)


def _unlisted(folder: Path, manifest: Any, name: str, rng: np.random.Generator) -> None:
    if manifest["parts"]:
        manifest["parts"].pop(int(rng.integers(len(manifest["parts"]))))
    _sign(folder, manifest)


def _listed_twice(folder: Path, manifest: Any, name: str, rng: np.random.Generator) -> None:
    if not manifest["parts"]:
        return
    entry = manifest["parts"][rng.integers(len(manifest["parts"]))]
    if not isinstance(entry, dict) or "name" not in entry:
        return
    entry = dict(entry)
    again = entry["name"] != "part-again" and (folder / str(entry["name"])).is_dir()
    if rng.random() < 0.5 and again:
        shutil.copytree(folder / entry["name"], folder / "part-again", dirs_exist_ok=True)
        entry["name"] = "part-again"
    manifest["parts"].append(entry)
    _sign(folder, manifest)


def _of_another(folder: Path, manifest: Any, name: str, rng: np.random.Generator) -> None:
    shutil.rmtree(folder / name)
    if SAMPLES:
        shutil.copytree(SAMPLES[0], folder / name)
    _sign(folder, manifest)


def _sign(folder: Path, manifest: Any) -> None:
    """List the parts with the checksums that they have now."""
    for entry in manifest["parts"]:
        if not isinstance(entry, dict) or "name" not in entry:
            continue
        file = folder / str(entry["name"]) / MANIFEST
        if file.is_file():
            entry["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(manifest_text(manifest))


DAMAGES = (_within, _within, _described, _described, _missing, _exchanged, _unlisted, _listed_twice,
           _of_another)  # fmt: skip
# The parts of another log.
SAMPLES: list[Path] = []


def _use_parts(folder: Path) -> str | None:
    """Read the whole and every part; compare with each listed part read on its own."""
    parts = unskew.Parts.open(folder)
    repr(parts)
    whole = unskew.load(folder)
    expected: Counter[Any] = Counter()
    listed = json.loads((folder / MANIFEST).read_text())["parts"]
    for k, entry in enumerate(listed):
        alone = saved.load(folder / entry["name"])
        expected += found_sessions(alone)
        if found_sessions(parts[k]) != found_sessions(alone):
            return f"part {k} is read otherwise than on its own"
        if parts.without_features(k).n_sessions != alone.n_sessions:
            return f"part {k} has other sessions without features"
    if found_sessions(whole) != expected:
        return f"{whole.n_sessions} sessions, by parts {expected.total()}"
    told = {count: parts.total(count) for count in ("sessions", "documents", "clicks", "queries")}
    found = {count: getattr(whole, f"n_{count}") for count in told}
    if told != found or parts.n_rows != whole.n_rows:
        return f"the manifest tells {told}, read were {found}"
    if not 0 < whole.max_position < 10**6:
        return None
    ranker = UnbiasedLambdaMART(**QUICK, n_estimators=1, num_leaves=3, min_data_in_leaf=1)
    score = ranker.fit(whole).predict(whole.features)
    return None if np.isfinite(score).all() else "scores are not finite"


# Checkpoints ------------------------------------------------------------------------------------


def prepare_checkpoints(folder: Path) -> None:
    """The state of a training of each kind after two rounds."""
    from unskew.rankers.click_model.learned import LearnedClickModel
    from unskew.rankers.click_model.ranker import ClickModelRanker
    from unskew.rankers.click_model.training import Round

    log = small_log()
    settings = {**QUICK, "n_estimators": 2, "num_leaves": 4, "min_data_in_leaf": 2}
    ranker = ClickModelRanker(**settings, booster="xgboost", click_model="pbm").fit(log)
    trees = bytes(ranker.trees_.raw.save_raw("json"))
    learned = LearnedClickModel.from_dict(ranker.click_model_.to_dict())
    curve = np.array([[1.0, 0.8, 0.5], [1.0, 0.7, 0.4]])
    pairs = Progress(2, trees, curve, 2 - curve, np.array([0.5, 0.4]), [1, 2])
    clicks = Progress(
        2, trees, curve, np.ones_like(curve), np.array([-0.5, -0.4]),
        [Round(1, None), Round(2, learned)], -0.3, -0.6,
    )  # fmt: skip
    for name, progress in (("pairs", pairs), ("clicks", clicks)):
        write_checkpoint(folder / name, progress, "key")
        if _use_checkpoint(folder / name) is not None:
            raise AssertionError(f"the sample {name} is not right")


def attempt_checkpoint(sample: Path, number: int, place: Path) -> str | None:
    """Damage one file of a checkpoint, sign it again, and go on from it."""
    folder = Path(shutil.copytree(sample, place / "checkpoint"))
    damage_a_file(folder, np.random.default_rng([number, 13]))
    return _use_checkpoint(folder)


def _use_checkpoint(folder: Path) -> str | None:
    """The state has the numbers of the file, and its trees give finite scores."""
    import xgboost as xgb

    progress = read_checkpoint(folder, "key")
    if progress is None:
        return "nothing was read"
    state = json.loads((folder / "state.json").read_text())
    for name in ("t_plus", "t_minus", "looks"):
        if not np.array_equal(getattr(progress, name), np.array(state[name], dtype=float)):
            return f"{name} is not as in the file"
    rounds = len(progress.t_plus)
    if progress.t_plus.shape != progress.t_minus.shape or progress.t_plus.ndim != 2 or not rounds:
        return "curves of different lengths"
    if not np.isfinite([progress.t_plus, progress.t_minus]).all() or (progress.t_plus <= 0).any():
        return "a curve that is not above 0"
    if not np.isfinite(progress.looks).all():
        return "measures that are not finite"
    trees = json.loads((folder / "trees.json").read_bytes())
    count = len(trees["learner"]["gradient_booster"]["model"]["trees"])
    if progress.n_trees != count:
        return f"{progress.n_trees} trees, in the file {count}"
    for value in (progress.offset, progress.without_a_tree):
        if value is not None and not np.isfinite(value):
            return "an offset that is not finite"
    booster = xgb.Booster(params={"nthread": 1})
    booster.load_model(bytearray(progress.trees))
    names = booster.feature_names
    rows = np.random.default_rng(1).normal(size=(20, booster.num_features()))
    score = booster.inplace_predict(rows) if names is None else booster.predict(
        xgb.DMatrix(rows, feature_names=names, feature_types=booster.feature_types, nthread=1),
        output_margin=True,
    )  # fmt: skip
    return None if np.isfinite(score).all() else "scores are not finite"


KINDS = (
    Kind("parts", ("parts", "parts", "other"), prepare_parts, attempt_parts),
    Kind("checkpoints", ("pairs", "clicks"), prepare_checkpoints, attempt_checkpoint),
)

if __name__ == "__main__":
    main(KINDS)
