"""One of every file that a command reads, and a way to run commands on them."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import unskew
from fuzz.saved_folders import QUICK
from fuzz.slow_reading import read_rows
from fuzz.tables import write_rows
from kinds import small_data, write
from unskew.cli import main as unskew_main
from unskew.errors import UnskewError

for _module in (
    "unskew.bias.comparison", "unskew.clicks", "unskew.export.exporting", "unskew.online.ab",
    "unskew.online.preference", "unskew.online.judging.results", "unskew.rankers.lambdamart.ranker",
    "unskew.simulate", "unskew.datasets.opening", "scipy.stats", "unskew.evaluation.evaluation",
    "unskew.evaluation.counterfactual", "unskew.cli.evaluate", "unskew.rankers.neural.ranker",
    "torch.optim", "torch._dynamo", "unskew.choose.tuning", "unskew.choose.advice",
    "unskew.choose.ranker", "unskew.reporting.report",
):  # fmt: skip
    importlib.import_module(_module)


DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs"


def run_command(*arguments: Any) -> str:
    """What a command prints; an `UnskewError` if it ends with an error of its own."""
    out, errors = io.StringIO(), io.StringIO()
    # A server that has read its files and listens has done what a case asks for.
    quiet = contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors)
    with quiet[0], quiet[1], patch("uvicorn.Server.run"):
        try:
            unskew_main([str(argument) for argument in arguments])
        except SystemExit as end:
            if end.code not in (0, None):
                raise UnskewError(errors.getvalue()) from None
    return out.getvalue()


def prepare(folder: Path) -> None:
    """One of every file that a command reads."""
    from unskew.online.judging.answers import Answer
    from unskew.online.judging.database import Database
    from unskew.online.judging.rankings import Ranking
    from unskew.online.judging.study import make_study
    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

    place = folder / "files"
    place.mkdir()
    data = small_data("text")
    users = [f"u{int(s) % 7}" for s in data.log["session"].to_pylist()]
    log = data.log.append_column("user", pa.array(users))
    for name, table in (
        ("log.csv", data.log), ("log.parquet", data.log), ("labels.csv", data.labels),
        ("labels.parquet", data.labels), ("candidates.csv", data.candidates),
        ("control.csv", log), ("treatment.parquet", log),
    ):  # fmt: skip
        write(table, place / name)
    ranking = data.candidates.select(["query", "doc"]).append_column(
        "score", data.candidates["age"]
    )
    write(ranking, place / "a.csv")
    write(ranking.set_column(2, "score", data.candidates["bm25"]), place / "b.parquet")
    run_command(
        "interleave", "mix", place / "a.csv", place / "b.parquet", "-o", place / "mixed.csv"
    )
    mixed = [
        dict(row, session=1, click=k % 2) for k, row in enumerate(read_rows([place / "mixed.csv"]))
    ]
    write_rows(mixed, place / "clicks.csv", np.random.default_rng(5))
    (place / "letor.txt").write_text(
        "2 qid:1 1:0.5 2:3\n0 qid:1 1:1\n1 qid:2 2:4\n0 qid:2 1:1\n" * 6
    )
    read = unskew.read_log(place / "log.parquet")
    read.save(place / "compact")
    model = UnbiasedLambdaMART(**QUICK, n_estimators=3, num_leaves=4, min_data_in_leaf=2).fit(read)
    model.save(place / "model")
    (place / "config.toml").write_text(
        'n_estimators = 2\nlearning_rate = 0.1\ndebias = "pairwise"\n'
    )
    bias = {"t_plus": [1.0, 0.8, 0.6, 0.5, 0.4], "t_minus": [1.0, 1.0, 1.1, 1.2, 1.3]}
    (place / "bias.json").write_text(json.dumps(bias))
    run_command("export", place / "model", "--to", "elasticsearch", "-o", place / "export")
    queries = [f"q{k}" for k in range(4)]
    one = Ranking("new", dict.fromkeys(queries, ("1", "2")))
    _prepare_more(place, data, read)
    database = Database(place / "judged.sqlite", seed=1)
    asked = database.begin(make_study(one, Ranking("old", dict.fromkeys(queries, ("2", "1")))))
    who = database.assessor("Ann")
    for question in list(asked):
        database.record(who, question, Answer("left"), a_was_left=True, reason="")
    database.close()


def _prepare_more(place: Path, data: Any, read: unskew.Impressions) -> None:
    """Parts, clicks apart from what was shown, JSON, names of features, a record of a search."""
    read.save(place / "parts", parts=2)
    write(data.log.drop_columns(["click"]), place / "shown.csv")
    clicked = pc.greater(data.log["click"], 0)
    write(data.log.filter(clicked).select(["session", "doc", "click"]), place / "events.csv")
    lines = [json.dumps(row, default=str) for row in data.log.to_pylist()]
    (place / "log.jsonl").write_text("\n".join(lines))
    (place / "names.txt").write_text("# features\nbm25\nage\n")
    (place / "queries.txt").write_text("\n".join(sorted(set(data.log["query"].to_pylist()))[:3]))
    (place / "guidelines.md").write_text("# What is better\n\n- the *one* you would click\n")
    docs = sorted(set(data.log["doc"].to_pylist()))
    write(
        pa.table({"doc": docs, "title": [f"title of {doc}" for doc in docs]}), place / "items.csv"
    )
    (place / "study").mkdir()
    results = pq.read_table(DOCUMENTATION / "paper" / "mq2008" / "results.parquet").slice(0, 12)
    pq.write_table(results, place / "study" / "results.parquet")
    run_command("tune", *tuned(place / "log.parquet", place / "record.json", place / "tuned"))
    shutil.rmtree(place / "tuned")


def tuned(*files: Any) -> tuple[Any, ...]:
    """A short search on a log, with its record and where the model goes."""
    log, record, out = files
    return (log, "-o", out, "--resume", record, "--trials", "2", "--folds", "1", "--bias", "none",
            "--space", "p=0.0..1.0", "--set", "n_estimators=2", "--set", "min_data_in_leaf=2",
            "--threads", "1", "-q")  # fmt: skip
