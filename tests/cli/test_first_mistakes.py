"""What a newcomer gets wrong first is an error that says what to do."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew.cli import main
from unskew.errors import DataError, StoreError, UsageError
from unskew.export.exporting import export_model
from unskew.store import manifest_text


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A small model of two features."""
    rng = np.random.default_rng(0)
    table = pa.table({"price_usd": rng.normal(size=200), "stars": rng.normal(size=200)})
    grade = (np.asarray(table["price_usd"]) > 0).astype(int)
    ranker = unskew.UnbiasedLambdaMART(n_estimators=2, verbose=0, n_jobs=1, random_state=0)
    path = tmp_path_factory.mktemp("model") / "model"
    ranker.fit_labels(table, grade, query=np.arange(200) // 10).save(path)
    return path


def test_an_unknown_format(model, tmp_path):
    """A format that does not exist is refused with the nearest one."""
    with pytest.raises(
        UsageError, match=r"no format 'elasticsarch' \(did you mean 'elasticsearch'"
    ):
        export_model(unskew.load(model), "elasticsarch", tmp_path / "out")


@pytest.mark.parametrize("version", ["2.x", "1.0", "99.0"])
def test_an_unknown_version(model, tmp_path, version):
    """A version that nobody knows is refused with those that are known."""
    with pytest.raises(UsageError, match=r"version.*from 2.0 to"):
        export_model(unskew.load(model), "opensearch", tmp_path / "out", version=version)


def test_a_model_of_a_newer_version(model, tmp_path):
    """A folder that a newer version saved is refused with the advice to upgrade."""
    content = json.loads((model / "unskew.json").read_text())
    folder = tmp_path / "newer"
    folder.mkdir()
    for file in model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    content.pop("sha256")
    content.pop("manifest")
    (folder / "unskew.json").write_text(manifest_text({**content, "version": 99}))
    with pytest.raises(StoreError, match="newer"):
        unskew.load(folder)


def test_candidates_that_lack_a_feature(model, tmp_path, capsys):
    """The feature is named with the nearest name, by the scorer and by `unskew rank`."""
    frame = pa.table({"price_us": [1.0], "stars": [2.0]})
    scorer = unskew.Scorer(unskew.load(model))
    with pytest.raises(DataError, match=r"'price_usd'.*did you mean 'price_us'"):
        scorer.score(frame)
    candidates = frame.append_column("query", pa.array(["a"])).append_column("doc", pa.array(["x"]))
    pq.write_table(candidates, tmp_path / "candidates.parquet")
    assert run("rank", model, tmp_path / "candidates.parquet", "-o", tmp_path / "out.parquet") == 1
    shown = capsys.readouterr().err
    assert "price_usd" in shown
    assert "did you mean 'price_us' for 'price_usd'" in shown.replace("\n", " ")


@pytest.mark.parametrize(
    "command",
    [
        ("inspect",), ("advise",), ("compact", "-o", "out"), ("bias",), ("clicks",),
        ("train", "-o", "out"), ("tune", "-o", "out"), ("interleave", "read"),
        ("ab", "plan"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_several_files_instead_of_a_pattern(command, capsys):
    """A shell that spells out *.csv gives several files: the error says how a log of many is given."""
    assert run(*command, "a.csv", "b.csv", "c.csv") == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "LOG is one path, and there is more: b.csv c.csv." in said
    assert "a pattern in quotes, such as '*.csv', or as the folder" in said
