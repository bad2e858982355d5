"""Saved folders of every ranker and Impressions, damaged and signed again.

A folder that still loads must be usable: it gives finite scores for rows of its features, or trains
a small ranker, and saves and loads to the same scores.
"""

from __future__ import annotations

import importlib
import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew
from fuzz.mutations import mutated_array, mutated_bytes, mutated_json, mutated_text
from fuzz.oracle import Kind, main
from unskew.choose.ranker import AutoRanker
from unskew.rankers.click_model.ranker import ClickModelRanker
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.rankers.neural.ranker import NeuralRanker
from unskew.rankers.ranksvm.ranker import PropensityRankSVM
from unskew.store import MANIFEST, manifest_text

# Loaded once, here: a child that imports it itself may seem to hang.
importlib.import_module("safetensors.torch")
importlib.import_module("xgboost")

QUICK = {"verbose": 0, "n_jobs": 1, "random_state": 0}


@cache
def small_log() -> unskew.Impressions:
    """A log with categories, gaps, contexts, weights and grades."""
    rng = np.random.default_rng(0)
    session = np.repeat(np.arange(60), 5)
    query = session % 6
    doc = np.concatenate([rng.permutation(8)[:5] for _ in range(60)])
    values = rng.normal(size=(6, 8, 2))
    colour = rng.integers(0, 4, size=(6, 8))
    table = pa.table(
        {
            "session": session, "query": query, "doc": doc, "position": np.tile([1, 2, 3, 5, 6], 60),
            "click": rng.integers(0, 3, 300) * (rng.random(300) < 0.5),
            "context": np.where(session % 2, "phone", "desk"), "weight": 1.0 + session % 3,
            "price": pa.array(values[query, doc, 0], mask=values[query, doc, 0] > 1),
            "colour": pa.array(np.array(["r", "g", "b", "y"])[colour[query, doc]]).dictionary_encode(),
            "age": values[query, doc, 1],
        }
    )  # fmt: skip
    return unskew.read_log(table, context="context", weight="weight", progress=False)


def prepare_models(folder: Path) -> None:
    """A model of every ranker, trained on categories and gaps."""
    log = small_log()
    trees = {**QUICK, "n_estimators": 4, "num_leaves": 6, "min_data_in_leaf": 2}
    rankers = {
        "lightgbm": UnbiasedLambdaMART(**trees),
        "xgboost": UnbiasedLambdaMART(**trees, booster="xgboost"),
        "ranksvm": PropensityRankSVM(**QUICK, max_rounds=2),
        "click-model": ClickModelRanker(**trees, click_model="pbm"),
        "dnn": NeuralRanker(**QUICK, hidden=(5, 4), n_epochs=1),
        "auto": AutoRanker(**QUICK, trials=4),
    }
    for name, ranker in rankers.items():
        ranker.fit(log).save(folder / name)
        if _use_model(unskew.load(folder / name)) is not None:
            raise AssertionError(f"the sample {name} is not right")


def attempt_model(sample: Path, number: int, place: Path) -> str | None:
    """Damage one file of a model, sign the folder again, load it and score with it."""
    rng = np.random.default_rng(number)
    folder = Path(shutil.copytree(sample, place / "model"))
    damage_a_file(folder, rng)
    return _use_model(unskew.load(folder))


def damage_a_file(folder: Path, rng: np.random.Generator) -> None:
    """Change one file of a folder; the manifest says afterwards what the files are."""
    file = sorted(folder.iterdir())[rng.integers(len(list(folder.iterdir())))]
    if file.name == MANIFEST:
        manifest = mutated_json(json.loads(file.read_text()), rng)
        if isinstance(manifest, dict):
            file.write_text(manifest_text(manifest))
        else:
            file.write_text(json.dumps(manifest))
        return
    if file.suffix == ".parquet" and rng.random() < 0.9:
        _damage_table(file, rng)
    elif file.suffix == ".json" and rng.random() < 0.9:
        file.write_text(json.dumps(mutated_json(json.loads(file.read_text()), rng)))
    elif file.suffix == ".txt" and rng.random() < 0.9:
        text = mutated_text(file.read_text(), rng)
        file.write_text(_with_sizes(text) if rng.random() < 0.8 else text)
    else:
        file.write_bytes(mutated_bytes(file.read_bytes(), rng))
    sign(folder)


def sign(folder: Path) -> None:
    """Write the checksums of the files as they are now."""
    import hashlib

    manifest = json.loads((folder / MANIFEST).read_text())
    for entry in manifest["files"].values():
        raw = (folder / entry["file"]).read_bytes()
        entry |= {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (folder / MANIFEST).write_text(manifest_text(manifest))


def _with_sizes(text: str) -> str:
    """LightGBM's text with the sizes that its trees have now."""
    head, mark, trees = text.partition("\n\nTree=")
    trees, end, tail = trees.partition("end of trees")
    if not mark or not end:
        return text
    parts = [f"Tree={part}" for part in trees.split("Tree=")]
    lines = head.split("\n")
    sizes = "tree_sizes=" + " ".join(str(len(part.encode())) for part in parts)
    lines = [sizes if line.startswith("tree_sizes=") else line for line in lines]
    return "\n".join(lines) + "\n\n" + "".join(parts) + end + tail


def _damage_table(file: Path, rng: np.random.Generator) -> None:
    table = pq.read_table(file)
    k = int(rng.integers(table.num_columns))
    column = table.column(k).combine_chunks()
    if pa.types.is_large_list(column.type):
        offsets, values = np.asarray(column.offsets), np.asarray(column.values)
        if rng.random() < 0.5:
            values = mutated_array(values, rng)
        else:
            offsets = np.sort(np.clip(mutated_array(offsets, rng), 0, len(values)))
            offsets[0], offsets[-1] = 0, len(values)
        column = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values))
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        column = pa.array(mutated_array(column.to_numpy(zero_copy_only=False), rng))
    else:
        rows = column.to_pylist()
        rows[rng.integers(len(rows))] = None if rng.random() < 0.5 else rows[0]
        column = pa.array(rows, column.type)
    how = rng.random()
    if how < 0.8 and len(column) == table.num_rows:
        table = table.set_column(k, table.column_names[k], column)
    elif how < 0.9:
        table = table.drop_columns([table.column_names[k]])
    else:
        table = table.take(rng.permutation(table.num_rows))
    pq.write_table(table, file)


def _use_model(ranker: object) -> str | None:
    """Score rows with every kind of value; what the model says must be finite and the same twice."""
    n = len(ranker.feature_names_)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, n))
    for k, name in enumerate(ranker.feature_names_):
        if name in ranker.categories_:
            rows[:, k] = rng.integers(0, max(1, len(ranker.categories_[name])), 40)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    score = ranker._predict(rows)
    if score.shape != (40,) or not np.isfinite(score).all():
        return f"scores of shape {score.shape}, finite: {np.isfinite(score).all()}"
    repr(ranker.position_bias_), repr(ranker.bias_history_), list(ranker.bias_history_)
    if len(ranker.t_plus_) != ranker.bias_history_.t_plus.shape[1]:
        return "the history has another length than the bias"
    if hasattr(ranker, "choice_"):
        str(ranker.choice_)
    if getattr(ranker, "click_model_", None) is not None:
        # What it learned of clicks is used on logs, by kernels that look at no index.
        log = small_log()
        clicks = ranker.click_model_.on(log).predict(np.full(log.n_documents, 0.5))
        if not np.isfinite([clicks.conditional, clicks.marginal]).all():
            return "chances of clicks are not finite"
    if hasattr(ranker, "trees_") and not np.isfinite(ranker.feature_importances_).all():
        return "importances are not finite"
    return None


def prepare_impressions(folder: Path) -> None:
    """A log with categories, contexts and gaps."""
    log = small_log()
    log.save(folder / "log")
    if _use_impressions(unskew.load(folder / "log")) is not None:
        raise AssertionError("the sample is not right")


def attempt_impressions(sample: Path, number: int, place: Path) -> str | None:
    """Damage one file of Impressions, sign the folder again, load it and train on it."""
    rng = np.random.default_rng(number)
    folder = Path(shutil.copytree(sample, place / "log"))
    damage_a_file(folder, rng)
    return _use_impressions(unskew.load(folder))


def _use_impressions(data: unskew.Impressions) -> str | None:
    """Read every session back, and train on what they say."""
    sessions = sum(1 for _ in data.sessions()) if data.n_sessions < 10**6 else data.n_sessions
    if sessions != data.n_sessions:
        return f"{sessions} sessions instead of {data.n_sessions}"
    if not 0 < data.max_position < 10**6:
        return None
    ranker = UnbiasedLambdaMART(**QUICK, n_estimators=2, num_leaves=3, min_data_in_leaf=1)
    score = ranker.fit(data).predict(data.features)
    return None if np.isfinite(score).all() else "scores are not finite"


KINDS = (
    Kind(
        "models",
        ("lightgbm", "xgboost", "click-model", "ranksvm", "dnn", "auto"),
        prepare_models,
        attempt_model,
    ),
    Kind("impressions", ("log",), prepare_impressions, attempt_impressions),
)

if __name__ == "__main__":
    main(KINDS)
