"""inspect and train say what will be a feature, what leaks, what was skipped, and what drifted."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew.cli import main

TRAIN = ("--n-estimators", 3, "--random-state", 0, "--quiet", "--threads", 1)


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)


def table(seed=0, n=150, scale=1.0, **more):
    """A log in which the price matters and the dwell time gives the clicks away."""
    rng = np.random.default_rng(seed)
    size = 5
    doc = np.concatenate([rng.choice(60, size, replace=False) for _ in range(n)])
    position = np.tile(np.arange(1, size + 1), n)
    click = rng.random(n * size) < (0.2 + 0.4 * (np.sin(doc) > 0)) / np.sqrt(position)
    columns = {
        "session": np.repeat(np.arange(n), size), "query": np.repeat(rng.integers(0, 12, n), size),
        "doc": doc, "position": position, "click": click.astype(int),
        "price": np.sin(doc) * scale, "stars": np.cos(doc),
        "dwell": click * rng.exponential(9, len(doc)),
    }  # fmt: skip
    return pa.table(columns | more)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log as a file."""
    path = tmp_path_factory.mktemp("log") / "clicks.parquet"
    pq.write_table(table(), path)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory, log):
    """A model of that log without the leak."""
    path = tmp_path_factory.mktemp("model") / "model"
    assert run("train", log, "--ignore", "dwell", "-o", path, *TRAIN) == 0
    return path


@pytest.fixture
def model(tmp_path, trained):
    """A copy of that model."""
    shutil.copytree(trained, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("command", ["inspect", "train"])
def test_features_and_leaks_are_told(tmp_path, log, capsys, command):
    """Both commands list the features and warn of the one that knows the outcome, by name."""
    arguments = ("-o", tmp_path / "model", *TRAIN) if command == "train" else ()
    assert run(command, log, *arguments) == 0
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert "price, stars, dwell" in text
    assert "leak? 'dwell' is not zero on" in text
    assert "--ignore dwell" in text
    assert run(command, log, "--ignore", "dwell", *arguments) == 0
    shown = capsys.readouterr()
    assert "leak?" not in shown.out + shown.err


def test_leaks_in_json(log, capsys):
    """Programs are given the features and the leaks."""
    assert run("inspect", log, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["feature_names"] == ["price", "stars", "dwell"]
    assert [leak["column"] for leak in found["leaks"]] == ["dwell"]


def test_a_file_of_feature_names(tmp_path, log):
    """A file of names pins the features of a model, and a model's folder those of the next."""
    (tmp_path / "names.txt").write_text("stars\nprice\n")
    out = ("-o", tmp_path / "first", *TRAIN)
    assert run("train", log, "--feature-names", tmp_path / "names.txt", *out) == 0
    out = ("-o", tmp_path / "second", *TRAIN)
    assert run("train", log, "--feature-names", tmp_path / "first", *out) == 0
    assert unskew.load(tmp_path / "second").feature_names_ == ("stars", "price")


def test_bad_sessions(tmp_path, capsys):
    """--skip-bad-sessions trains on the rest and says how many of what were left out."""
    position = np.tile(np.arange(1, 6), 150)
    position[:2] = 1
    pq.write_table(table(position=position), tmp_path / "bad.parquet")
    arguments = (tmp_path / "bad.parquet", "--ignore", "dwell")
    assert run("train", *arguments, "-o", tmp_path / "model", *TRAIN) == 1
    assert "occurs twice in a session" in capsys.readouterr().err
    assert run("train", *arguments, "--skip-bad-sessions", "-o", tmp_path / "model", *TRAIN) == 0
    assert "left out 1 of 150 sessions (0.67%): 'position' occurs twice" in capsys.readouterr().err
    assert run("inspect", *arguments) == 1
    assert run("inspect", *arguments, "--skip-bad-sessions") == 0
    assert "note: left out 1 of 150 sessions" in capsys.readouterr().out


def test_two_tables_with_grades_and_gains(tmp_path, log, capsys):
    """Impressions and events are joined, events graded, and gains kept in the compact folder."""
    shown = pq.read_table(log)
    clicked = shown.filter(shown["click"].cast("bool")).select(["session", "doc"])
    kinds = pa.array(["cart" if k % 3 == 0 else "click" for k in range(clicked.num_rows)])
    pq.write_table(shown.drop_columns(["click", "dwell"]), tmp_path / "shown.parquet")
    pq.write_table(clicked.append_column("event", kinds), tmp_path / "events.parquet")
    arguments = (tmp_path / "shown.parquet", "--events", tmp_path / "events.parquet")
    assert run("compact", *arguments, "-o", tmp_path / "compact") == 1
    assert "--grade" in capsys.readouterr().err
    grades = ("--grade", "click=1", "--grade", "cart=2", "--gains", "1,10")
    assert run("compact", *arguments, *grades, "-o", tmp_path / "compact", "-q") == 0
    data = unskew.load(tmp_path / "compact")
    assert data.gains == (1.0, 10.0)
    assert data.n_clicks == clicked.num_rows
    assert data.features.names == ("price", "stars")
    assert run("train", tmp_path / "compact", "-o", tmp_path / "model", *TRAIN) == 0
    out = ("-o", tmp_path / "again", *TRAIN)
    assert run("train", *arguments, *grades, *out) == 0
    scores = [unskew.load(tmp_path / name).predict(data) for name in ("model", "again")]
    assert np.array_equal(*scores)
    assert run("inspect", *arguments, *grades, "--against", tmp_path / "model") == 0


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--grade", "click"), "--grade needs NAME=GRADE"),
        (("--grade", "click=high"), "--grade needs NAME=GRADE"),
        (("--grade", "a=1", "--grade", "a=2"), "--grade names 'a' twice"),
        (("--gains", "1;2"), "--gains needs numbers with commas"),
        (("--gains", "2,1"), "gains must be numbers above 0 that do not fall"),
    ],
)
def test_options_that_make_no_sense(log, capsys, option, message):
    """Grades and gains that cannot be understood are refused with the way to write them."""
    assert run("inspect", log, *option) == 2
    assert message in capsys.readouterr().err


def test_the_same_world(tmp_path, model, capsys):
    """A new log of the same world is no reason to train again."""
    pq.write_table(table(1).drop_columns(["dwell"]), tmp_path / "new.parquet")
    assert run("inspect", tmp_path / "new.parquet", "--against", model) == 0
    assert "no need to retrain" in capsys.readouterr().out


def test_a_world_that_moved(tmp_path, model, capsys):
    """A log whose prices moved is one, on the screen and in JSON."""
    pq.write_table(table(1, scale=3.0).drop_columns(["dwell"]), tmp_path / "new.parquet")
    assert run("inspect", tmp_path / "new.parquet", "--against", model) == 0
    shown = capsys.readouterr().out
    assert "retrain: 1 of 2 features moved" in shown
    assert "CTR by position" in shown
    assert run("inspect", tmp_path / "new.parquet", "--against", model, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["retrain"] is True
    assert found["features"][0]["name"] == "price"


def test_a_model_of_an_earlier_version(tmp_path, model, capsys):
    """A folder without the summary of its log gives what it can, and says what is missing."""
    manifest = json.loads((model / "unskew.json").read_text())
    assert "log.json" in manifest["files"]
    ranker = unskew.load(model)
    ranker.training_log_ = None
    ranker.save(tmp_path / "old")
    assert not (tmp_path / "old" / "log.json").exists()
    pq.write_table(table(1).drop_columns(["dwell", "stars"]), tmp_path / "new.parquet")
    assert run("inspect", tmp_path / "new.parquet", "--against", tmp_path / "old") == 0
    shown = capsys.readouterr().out
    assert "the model remembers nothing of its log" in shown
    assert "retrain: 1 of the model's features are not in the log: stars" in shown
    assert "no need to retrain" not in shown


def test_against_something_else(tmp_path, log, capsys):
    """A folder that holds no model is refused."""
    unskew.read_log(log).save(tmp_path / "compact")
    assert run("inspect", log, "--against", tmp_path / "compact") == 2
    assert "is not a model" in capsys.readouterr().err


def test_a_saved_log_is_remembered(model):
    """Loading a model brings back what it remembers, and saving it again keeps it."""
    first = unskew.load(model)
    first.save(model)
    assert unskew.load(model).training_log_ == first.training_log_
    assert first.training_log_.n_sessions == 150


def test_a_damaged_memory_is_refused(model):
    """A model whose summary is not one is refused, and named."""
    from unskew.errors import StoreError

    (model / "log.json").write_text("{}")
    with pytest.raises(StoreError):
        unskew.load(model)
