"""Options and names that no sensible caller gives end with a sentence, not with a traceback."""

from __future__ import annotations

import json
import math
import re

import pyarrow.parquet as pq
import pytest

import unskew
from kinds import small_data, write
from unskew.cli import main
from unskew.cli.console import print_json

QUICK = ("--n-estimators", "3", "--min-data-in-leaf", "2", "--random-state", "0", "-q")


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A log, labels and a model."""
    folder = tmp_path_factory.mktemp("hostile")
    data = small_data("text")
    write(data.log, folder / "log.parquet")
    write(data.labels, folder / "labels.parquet")
    assert run("train", folder / "log.parquet", "-o", folder / "model", *QUICK) == 0
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--num-leaves", 1_000_000), "num_leaves must be a whole number from 2 to 131,072"),
        (("--threads", 999_999), "threads must be from 1 to 1,024, got 999,999"),
        (("--set", "max_bin=0"), "LightGBM does not train with these settings: Check failed"),
        (("--set", "boosting=rf"), "boosting must be 'gbdt' or 'goss', got 'rf'"),
        (("--set", "boosting_type=dart"), "boosting_type must be 'gbdt' or 'goss', got 'dart'"),
        (("--set", "device_type=cuda"), "LightGBM does not train with these settings: CUDA"),
        (("--set", "device_type=gpu"), "LightGBM does not train with these settings: "),
        (("--set", "num_class=3"), "num_class: set by the ranker itself"),
        (("--set", "objective=binary"), "objective: set by the ranker itself"),
        (("--set", "extra_trees=[1,2]"), "Parameter extra_trees should be"),
        (("--learning-rate", "1e308"), "training diverged in round 1: the scores are beyond 1e+100"),
        (("--booster", "xgboost", "--learning-rate", "1e38"), "training diverged in round"),
        (("--booster", "xgboost", "--learning-rate", "1e200"), "Out of range value for learning_rate"),
        (("--booster", "xgboost", "--set", "max_bin=0"), "max_bin should be greater equal to 2"),
        (("--booster", "xgboost", "--set", "num_parallel_tree=3"), "num_parallel_tree: set by"),
        (("--booster", "xgboost", "--set", "device=cuda"), "XGBoost finds no GPU here"),
    ],
)  # fmt: skip
def test_settings_that_no_booster_takes(place, tmp_path, capfd, options, message):
    """The error says which setting is refused and by whom, and nothing is written."""
    small_hessian = ("--min-sum-hessian-in-leaf", "1e-30")
    out = tmp_path / "model"
    assert run("train", place / "log.parquet", "-o", out, *QUICK, *small_hessian, *options) == 2
    assert message in " ".join(capfd.readouterr().err.split())
    assert not out.exists()


@pytest.mark.parametrize("command", ["inspect", "compact", "rank"])
def test_too_many_threads(place, tmp_path, capsys, command):
    """Every command that takes --threads refuses a number that no machine has."""
    arguments = {
        "inspect": (place / "log.parquet",),
        "compact": (place / "log.parquet", "-o", tmp_path / "out"),
        "rank": (place / "model", place / "labels.parquet", "-o", tmp_path / "out.csv"),
    }[command]
    assert run(command, *arguments, "--threads", 999_999) == 2
    assert "threads must be from 1 to 1,024" in capsys.readouterr().err
    with pytest.raises(unskew.errors.UsageError, match=r"threads must be from 1 to 1,024"):
        unskew.read_log(place / "log.parquet", threads=999_999)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-grade", 5000), "max_grade of click model 'pbm' must be in [1, 1000], got 5000"),
        (("--set", "theta=steep"), "theta of click model 'pbm' must be at least 0, got 'steep'"),
        (("-o", "x.csv"), "--out must end in .parquet, got 'x.csv'"),
        (("--labels", "x.csv"), "--labels must end in .parquet, got 'x.csv'"),
        (("--sessions", 10**30), "Invalid value for '--sessions'"),
    ],
)
def test_simulations_that_cannot_be(place, tmp_path, capsys, monkeypatch, options, message):
    """A grade beyond floating numbers, a parameter that is no number, a CSV log, endless sessions."""
    monkeypatch.chdir(tmp_path)
    given = ("--sessions", 20, "--policy", "random", "-q", "-o", "log.parquet")
    assert run("simulate", place / "labels.parquet", *given, *options) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("metric", ["ndcg@999999999999999999999", "ndcg@0", "ndcg@-1", "[/b]"])
def test_metrics_that_cannot_be(place, capsys, metric):
    """A cut without measure is an unknown metric."""
    given = ("--labels", place / "labels.parquet", "--metrics", metric)
    assert run("evaluate", place / "model", *given) == 2
    assert f"metric '{metric}' is not known" in " ".join(capsys.readouterr().err.split())


CRAFTED = {
    "binary": bytes(range(256)),
    "a number": b"7",
    "text": b'"0.5"',
    "ragged": b'{"t_plus": [[1.0], [0.5, 0.2]], "t_minus": [1.0]}',
    "of two lengths": b'{"t_plus": [1.0, 0.5], "t_minus": [1.0]}',
    "deeply nested": b'{"t_plus": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "without a curve": b"{}",
    "with a text": b'{"propensity": ["a", "b"]}',
    "below zero": b'{"propensity": [1.0, -0.5]}',
    "not finite": b'{"t_plus": [1.0, NaN], "t_minus": [1.0, 1.0]}',
    "empty": b"",
    "a large number": b'{"propensity": [1.0, 1' + b"0" * 5000 + b"]}",
}


@pytest.mark.parametrize("content", CRAFTED.values(), ids=CRAFTED)
@pytest.mark.parametrize("command", ["bias", "train", "evaluate"])
def test_bias_files_that_are_none(place, tmp_path, capsys, command, content):
    """Every command that reads a bias names the file and what is wrong with it."""
    file = tmp_path / "bias.json"
    file.write_bytes(content)
    arguments = {
        "bias": (place / "log.parquet", "--bias", file),
        "train": (place / "log.parquet", "-o", tmp_path / "model", "--debias", file, *QUICK),
        "evaluate": (place / "model", "--log", place / "log.parquet", "--bias", file),
    }[command]
    assert run(*([command, *arguments])) in (1, 2)
    error = " ".join(capsys.readouterr().err.split())
    assert error.startswith("unskew:")
    assert "bias.json" in error
    assert not (tmp_path / "model").exists()


def test_user_text_is_never_markup(place, tmp_path, capsys, monkeypatch):
    """Paths, options and columns with the terminal's markup in them are printed as they are."""
    monkeypatch.chdir(tmp_path)
    log, out = tmp_path / "log[" / "b].parquet", "out[/b]"
    log.parent.mkdir()
    table = pq.read_table(place / "log.parquet").rename_columns(
        {"bm25": "[/b]", "age": "[red]age[/red]"}
    )
    pq.write_table(table, log)
    assert run("inspect", log) == 0
    assert run("compact", log, "-o", out, "-q") == 0
    assert run("train", out, "-o", f"{out} model", *QUICK, "--threads", 1) == 0
    shown = capsys.readouterr().out
    assert "saved to out[/b]" in shown
    assert "[/b]" in shown.split("most important:")[1]
    assert "[red]age[/red]" in shown
    for wrong in (
        ("[/b]",),
        ("train", "--no[/b]"),
        ("inspect", "none[/b]"),
        ("export", "a[/b]", "--check"),
    ):
        assert run(*wrong) in (1, 2)
        assert "[/b]" in " ".join(capsys.readouterr().err.split())


def test_json_has_no_nan(capsys):
    """What is not finite is null in the output for programs."""
    print_json({"a": math.nan, "b": [1.5, -math.inf], "c": ({"d": math.inf},)})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "a": None, "b": [1.5, None], "c": [{"d": None}],
    }  # fmt: skip


def test_demo_refuses_a_file_at_once(tmp_path, capsys, monkeypatch):
    """`demo -o FILE` fails before anything is simulated."""
    monkeypatch.setattr("unskew.demo.story.tell", lambda *a, **k: pytest.fail("it began"))
    (tmp_path / "file").write_text("mine")
    assert run("demo", "-o", tmp_path / "file") == 2
    assert "is a file; give the name of a folder" in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "file").read_text() == "mine"


def test_clicks_do_not_replace_their_log(place, capsys):
    """`clicks -o` refuses the log that it reads, and files of others."""
    log = place / "log.parquet"
    before = log.read_bytes()
    assert run("clicks", log, "-o", log, "--overwrite", "-q") == 2
    assert "would write over" in " ".join(capsys.readouterr().err.split())
    assert run("clicks", log, "-o", place / "labels.parquet", "-q") == 2
    assert "--overwrite to replace it" in " ".join(capsys.readouterr().err.split())
    assert log.read_bytes() == before


def test_a_model_that_would_not_load_is_not_saved(place, tmp_path):
    """Trees that loading would refuse are refused when they are written."""
    ranker = unskew.load(place / "model")
    text = ranker.trees_.raw.model_to_string()
    first = re.search(r"leaf_value=(\S+)", text)[1]
    text = text.replace(first, "inf".ljust(len(first), "f"), 1)
    ranker.trees_.raw.model_to_string = lambda: text
    with pytest.raises(unskew.errors.UsageError, match=r"cannot be saved, because .*leaf_value"):
        ranker.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
