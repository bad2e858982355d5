"""``unskew report``: from folders and files to a page, with clear errors."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reporting_world import small_world

import unskew
from kinds import FILES, IDS, small_data, write
from unskew.bias import save_bias
from unskew.cli import main
from unskew.position_bias import PositionBias


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models, a raw log with its features, a compacted one, labels."""
    place = tmp_path_factory.mktemp("report")
    world = small_world()
    for name, model in world.models.items():
        model.save(place / name)
    world.log.save(place / "log")
    pq.write_table(world.table, place / "log.parquet")
    pq.write_table(world.features, place / "features.parquet")
    labels = world.features.append_column("relevance", pa.array(world.test.relevance))
    pq.write_table(labels, place / "labels.parquet")
    save_bias(place / "given.json", PositionBias.from_propensities([1.0, 0.5]), method="given")
    return place


def run(*arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as end:
        main(["report", *map(str, arguments), "-m", "relative-ctr", "--resamples", "0"])
    return end.value.code


def test_from_a_compacted_folder(folder, tmp_path, capsys):
    """The page is written, the answer and the place of the page are printed."""
    out = tmp_path / "report.html"
    assert run(folder / "raw", folder / "debiased", "--log", folder / "log", "-o", out) == 0
    html = out.read_text(encoding="utf-8")
    shown = capsys.readouterr().out
    assert str(out) in shown.replace("\n", "")
    assert "clicks on the first 10 results" in shown
    assert "debiased" in html
    assert str(folder / "log") in html


def test_from_a_raw_log_with_labels_and_bias(folder, tmp_path, capsys):
    """A raw log, labels, a bias file and a title; the same command writes over its own page."""
    out = tmp_path / "report.html"
    arguments = [
        folder / "raw", "--log", folder / "log.parquet", "--features", folder / "features.parquet",
        "--labels", folder / "labels.parquet", "--bias", folder / "given.json", "-o", out,
        "--title", "Our <search>", "-q",
    ]  # fmt: skip
    assert run(*arguments) == 0
    assert run(*arguments) == 0
    html = out.read_text(encoding="utf-8")
    assert "Our &lt;search&gt;" in html
    assert "Every model on labels" in html
    assert "judged by the curve of given" in html
    assert capsys.readouterr().err == ""


def test_a_log_with_problems(folder, tmp_path):
    """Sessions with problems are left out and listed on the page."""
    table = pq.read_table(folder / "log.parquet")
    position = table["position"].to_pylist()
    position[3] = 0
    broken = table.set_column(
        table.schema.get_field_index("position"), "position", pa.array(position)
    )
    pq.write_table(broken, tmp_path / "log.parquet")
    out = tmp_path / "report.html"
    code = run(
        folder / "raw", "--log", tmp_path / "log.parquet", "-o", out, "-q",
        "--features", folder / "features.parquet",
    )  # fmt: skip
    assert code == 0
    html = out.read_text(encoding="utf-8")
    assert "position below one (1)" in html
    assert "1 sessions" in html


def test_a_model_of_another_feature_set(folder, tmp_path, capsys):
    """The error names the model and what the log lacks, and nothing is written."""
    out = tmp_path / "report.html"
    assert run(folder / "raw", "--log", folder / "log.parquet", "-o", out) == 1
    assert "model 'raw' was trained with the feature(s)" in capsys.readouterr().err.replace(
        "\n", " "
    )
    assert not out.exists()


def test_inputs_and_foreign_files_are_safe(folder, tmp_path, capsys):
    """The page is not written over an input, nor over a file that is somebody else's."""
    log = folder / "log.parquet"
    assert run(folder / "raw", "--log", log, "-o", log) == 2
    foreign = tmp_path / "notes.html"
    foreign.write_text("mine", encoding="utf-8")
    assert run(folder / "raw", "--log", folder / "log", "-o", foreign) == 2
    assert foreign.read_text(encoding="utf-8") == "mine"
    assert "--overwrite" in capsys.readouterr().err


def test_two_models_of_one_name(folder, capsys):
    """Two folders of one name are refused."""
    assert run(folder / "raw", folder / "raw", "--log", folder / "log") == 2
    assert "two models are called 'raw'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "ending"),
    [*((kind, "parquet") for kind in IDS), *(("text", one) for one in FILES[1:])],
)
def test_every_kind_of_id_and_file(kind, ending, tmp_path):
    """Queries and documents of every kind of id, in every kind of file, can be reported on."""
    data = small_data(kind)
    log = unskew.read_log(data.log)
    model = unskew.UnbiasedLambdaMART(n_estimators=3, n_jobs=1, verbose=0).fit(log)
    model.save(tmp_path / "model")
    file = write(data.log, tmp_path / f"log.{ending}")
    out = tmp_path / "report.html"
    assert run(tmp_path / "model", "--log", file, "-o", out, "-q") == 0
    assert "Queries won and lost" in out.read_text(encoding="utf-8")
