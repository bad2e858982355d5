"""One reader for every command: names decide, not places; what a model does not know is ignored."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from kinds import small_data, write
from unskew.cli import main

SETTINGS = ("--n-estimators", "4", "--min-data-in-leaf", "2", "--random-state", "0", "--quiet")


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


def evaluated(capsys, *arguments):
    """What `unskew evaluate --json` prints, and what it says beside it."""
    capsys.readouterr()
    assert run("evaluate", *arguments, "--json") == 0
    shown = capsys.readouterr()
    return json.loads(shown.out), " ".join(shown.err.split())


@pytest.fixture(scope="module")
def data():
    """Small data whose category decides the relevance, together with bm25."""
    found = small_data("text")
    grade = found.labels["relevance"].to_numpy()
    kind = pa.array([("low", "middle", "top")[g] for g in grade])
    doc = found.labels["doc"].to_pylist()
    by_doc = dict(zip(doc, kind.to_pylist(), strict=True))
    logged = pa.array([by_doc[d] for d in found.log["doc"].to_pylist()])
    return (
        found.log.append_column("kind", logged.dictionary_encode()),
        found.labels.append_column("kind", kind.dictionary_encode()),
    )


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    """The log, the labels and a model in a folder."""
    folder = tmp_path_factory.mktemp("reading")
    write(data[0], folder / "log.parquet")
    write(data[1], folder / "labels.parquet")
    assert run("train", folder / "log.parquet", "-o", folder / "model", *SETTINGS) == 0
    assert run("compact", folder / "log.parquet", "-o", folder / "compact", "--quiet") == 0
    (folder / "a.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    return folder


def test_evaluate_takes_features_by_name(files, data, tmp_path, capsys):
    """Columns in another order and categories with other codes give the same NDCG, exactly."""
    labels = data[1]
    model = unskew.load(files / "model")
    score = model.predict(labels.select(model.feature_names_))
    by_hand = unskew.evaluate(score, labels["relevance"], labels["query"], metrics=["ndcg@10"])
    kinds = pa.DictionaryArray.from_arrays(
        pa.array([("top", "other", "middle", "low").index(k) for k in labels["kind"].to_pylist()]),
        pa.array(["top", "other", "middle", "low"]),
    )
    swapped = pa.table(
        {name: labels[name] for name in ("age", "relevance", "query", "doc")}
        | {"kind": kinds, "bm25": labels["bm25"]}
    )
    write(swapped, tmp_path / "swapped.parquet")
    for path in (files / "labels.parquet", tmp_path / "swapped.parquet"):
        found, _ = evaluated(capsys, files / "model", "--labels", path, "--metrics", "ndcg@10")
        assert found["rankers"]["model"]["ndcg@10"]["mean"] == by_hand.mean["ndcg@10"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_what_the_model_does_not_know_is_ignored_with_a_note(files, data, tmp_path, capsys, ending):
    """Additional columns, text among them, change nothing and are named on standard error."""
    labels = data[1].set_column(5, "kind", data[1]["kind"].cast(pa.string()))
    wide = labels.append_column("title", pa.array(["x"] * len(labels)))
    wide = wide.append_column("price", pa.array(np.arange(len(labels)) * 1.5))
    path = write(wide, tmp_path / f"wide.{ending}")
    expected, note = evaluated(capsys, files / "model", "--labels", files / "labels.parquet")
    assert "ignored" not in note
    found, note = evaluated(capsys, files / "model", "--labels", path)
    assert found == expected
    assert "ignored, because no model knows them: title, price" in note
    only, note = evaluated(capsys, "--labels", path, "--score", "bm25")
    assert set(only["rankers"]) == {"bm25"}
    assert "ignored" not in note


def test_evaluate_takes_every_kind_of_log(files, data, tmp_path, capsys):
    """Raw, compacted, with other column names, with features apart: the same estimates."""
    log, model = data[0], files / "model"
    expected, _ = evaluated(capsys, model, "--log", files / "log.parquet")
    compacted, _ = evaluated(capsys, model, "--log", files / "compact")
    assert compacted == expected
    renamed = log.rename_columns(
        [{"position": "rank", "click": "hit"}.get(n, n) for n in log.column_names]
    )
    renamed = renamed.append_column("note", pa.array(["text"] * len(log)))
    write(renamed, tmp_path / "renamed.parquet")
    options = ("--log", tmp_path / "renamed.parquet", "--position", "rank", "--click", "hit")
    found, note = evaluated(capsys, model, *options)
    assert found == expected
    assert "no model knows them: note" in note
    features = data[1].drop_columns(["relevance"]).append_column("extra", data[1]["bm25"])
    write(features.cast(_text_kinds(features.schema)), tmp_path / "features.parquet")
    write(log.drop_columns(["bm25", "age", "kind"]), tmp_path / "bare.parquet")
    options = ("--log", tmp_path / "bare.parquet", "--features", tmp_path / "features.parquet")
    found, note = evaluated(capsys, model, *options)
    assert found == expected
    assert "no model knows them: extra" in note


def _text_kinds(schema):
    return pa.schema(
        [pa.field(f.name, pa.string() if f.name == "kind" else f.type) for f in schema]
    )


def test_columns_of_labels_have_options(files, data, tmp_path, capsys):
    """--query and --relevance name the columns of labels, for evaluate and for train."""
    labels = data[1].rename_columns(["q", "doc", "bm25", "age", "grade", "kind"])
    path = write(labels, tmp_path / "named.parquet")
    options = ("--query", "q", "--relevance", "grade")
    expected, _ = evaluated(capsys, files / "model", "--labels", files / "labels.parquet")
    found, _ = evaluated(capsys, files / "model", "--labels", path, *options)
    assert found == expected
    trained = ("-o", tmp_path / "model", "--labels", "--validation", path, *options, *SETTINGS)
    assert run("train", path, *trained) == 0
    ranker = unskew.load(tmp_path / "model")
    assert ranker.feature_names_ == ("bm25", "age", "kind")
    assert len(ranker.validation_history_) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "compact", "--click", "x"), "--click has no effect here"),
        (("train", "compact", "-o", "m", "--ignore", "age"), "--ignore has no effect here"),
        (("bias", "compact", "--features", "labels.parquet"), "--features has no effect here"),
        (("evaluate", "model", "--log", "compact", "--table", "t"), "--table has no effect here"),
        (("evaluate", "model", "--labels", "labels.parquet", "--click", "c"), "holds labels"),
        (("train", "labels.parquet", "--labels", "-o", "m", "--session", "s"), "holds labels"),
        (("train", "a.txt", "--labels", "-o", "m", "--query", "q"), "--query has no effect here"),
        (("train", "a.txt", "--labels", "-o", "m", "--ignore", "3"), "is LETOR text, which has no"),
        (
            ("evaluate", "model", "--labels", "a.txt", "--relevance", "r"),
            "--relevance has no effect",
        ),
        (
            ("train", "compact", "-o", "m", "--validation", "a.txt", "--click", "c"),
            "--click has no effect here: neither compact nor a.txt",
        ),
        (
            ("train", "log.parquet", "-o", "m", "--validation", "compact", "--relevance", "r"),
            "--relevance has no effect here: neither log.parquet nor compact",
        ),
        (
            ("evaluate", "model", "--log", "compact", "--ties", "stable"),
            "--ties has no effect here",
        ),
        (
            ("evaluate", "model", "--labels", "labels.parquet", "--baseline", "model"),
            "--baseline has no effect here: one ranker alone",
        ),
        (("bias", "compact", "-m", "relative-ctr", "--shuffled", "a"), "--shuffled has no effect"),
        (("bias", "compact", "-m", "relative-ctr", "--model", "model"), "--model has no effect"),
        (("bias", "compact", "--resamples", "0", "--level", "0.9"), "--level has no effect here"),
        (("bias", "compact", "--by-context", "--bias", "x.json"), "--bias has no effect here"),
        (("ab", "read", "compact", "compact", "--click", "c"), "--click has no effect here"),
        (
            ("ab", "read", "compact", "compact", "--expected", "0.1"),
            "--expected has no effect here",
        ),
        (("ab", "plan", "--baseline", "0.3", "--click", "c"), "--click has no effect here"),
        (("interleave", "read", "log.parquet", "--doc", "d"), "--doc has no effect here"),
        (
            ("interleave", "read", "log.parquet", "--mixed", "log.parquet", "--team", "t"),
            "--team has no effect here",
        ),
        (("simulate", "generated", "-o", "m.parquet", "--fold", "2"), "--fold has no effect here"),
        (("simulate", "a.txt", "-o", "m.parquet", "--queries", "20"), "--queries has no effect"),
        (("simulate", "a.txt", "-o", "m.parquet", "--part", "test"), "--part has no effect here"),
        (
            ("simulate", "a.txt", "-o", "m.parquet", "--policy", "random", "--share", "0.5"),
            "--share has no effect here: the policy random",
        ),
        (("simulate", "a.txt", "-o", "m.csv"), "--out must end in .parquet"),
        (("simulate", "a.txt", "-o", "m.parquet", "--labels", "m.csv"), "must end in .parquet"),
        (("evaluate", "compact", "--labels", "labels.parquet"), "is not a model"),
        (("rank", "compact", "labels.parquet", "-o", "x.csv"), "is not a model"),
    ],
)
def test_options_that_cannot_act_are_refused(files, monkeypatch, capsys, arguments, message):
    """An option that would be ignored is an error that names it, and nothing is written."""
    monkeypatch.chdir(files)
    assert run(*arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not any((files / name).exists() for name in ("m", "m.csv", "m.parquet"))


def test_an_option_acts_on_one_of_two_inputs(files, tmp_path):
    """With --validation an option that one of both needs is fine: columns named otherwise there."""
    log = pq.read_table(files / "log.parquet")
    renamed = log.rename_columns(["hit" if n == "click" else n for n in log.column_names])
    path = write(renamed, tmp_path / "renamed.parquet")
    options = ("--validation", path, "--click", "hit", *SETTINGS)
    assert run("train", files / "compact", "-o", tmp_path / "m", *options) == 0


def test_a_linked_input_is_not_written_over(files, data, tmp_path, capsys):
    """A file that is read through a linked folder is an input like any other."""
    part = write(data[1].drop_columns(["relevance"]), tmp_path / "elsewhere.parquet")
    (tmp_path / "real").mkdir()
    real = part.rename(tmp_path / "real" / "part.parquet")
    (tmp_path / "candidates").mkdir()
    (tmp_path / "candidates" / "link").symlink_to(tmp_path / "real")
    before = real.read_bytes()
    assert run("rank", files / "model", tmp_path / "candidates", "-o", real, "--overwrite") == 2
    assert "which the same command reads" in " ".join(capsys.readouterr().err.split())
    assert real.read_bytes() == before


def test_queries_that_are_not_counted_are_named(files, data, tmp_path, capsys):
    """Queries without a relevant document are skipped with a note that counts them."""
    labels = data[1]
    grade = labels["relevance"].to_numpy().copy()
    grade[:10] = 0
    at = labels.column_names.index("relevance")
    path = write(labels.set_column(at, "relevance", pa.array(grade)), tmp_path / "empty.parquet")
    _, note = evaluated(capsys, files / "model", "--labels", path)
    assert "2 of 8 queries have no relevant document and are not counted" in note
    _, note = evaluated(capsys, files / "model", "--labels", path, "--empty", "0")
    assert "not counted" not in note


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_features_called_by_number_are_found_by_name(ending, tmp_path, capsys):
    """f1 before f0, in labels, a log, candidates or validation: the same as in the order of training."""
    found = small_data("text")
    names = ["f1" if n == "bm25" else "f0" if n == "age" else n for n in found.log.column_names]
    log, order = found.log.rename_columns(names), ["session", "query", "doc", "position", "click"]
    labels = found.labels.rename_columns(["query", "doc", "f1", "f0", "relevance"])
    files = {
        "log": log.select([*order, "f0", "f1"]), "log2": log.select([*order, "f1", "f0"]),
        "labels": labels.select(["query", "doc", "relevance", "f0", "f1"]),
        "labels2": labels.select(["f1", "relevance", "f0", "query", "doc"]),
    }  # fmt: skip
    at = {name: write(table, tmp_path / f"{name}.{ending}") for name, table in files.items()}
    shown = []
    for log_, labels_ in (("log", "labels"), ("log2", "labels2")):
        model = tmp_path / labels_ / "model"
        model.parent.mkdir()
        options = ("-o", model, "--validation", at[labels_], *SETTINGS)
        assert run("train", at["log"], *options) == 0
        by_labels, _ = evaluated(capsys, model, "--labels", at[labels_])
        by_log, _ = evaluated(capsys, model, "--log", at[log_])
        out = tmp_path / f"{labels_}.ranked.parquet"
        assert run("rank", model, at[labels_], "-o", out) == 0
        history = unskew.load(model).validation_history_
        shown.append(
            [
                by_labels, by_log,
                pq.read_table(out).to_pylist(), history,
            ]
        )  # fmt: skip
    assert shown[0] == shown[1]


def test_categories_of_csv_keep_their_zeros(tmp_path, capsys):
    """01 and 1 are two categories in every kind of file, whatever the column looks like."""
    found = small_data("small integers")
    grade = found.labels["relevance"].to_numpy()
    by_doc = dict(
        zip(found.labels["doc"].to_pylist(), (("1", "01", "2")[g] for g in grade), strict=True)
    )
    log = found.log.append_column(
        "kind", pa.array([by_doc[d] for d in found.log["doc"].to_pylist()])
    )
    labels = found.labels.append_column("kind", pa.array(list(by_doc.values())))
    shown = {}
    for ending in ("parquet", "csv"):
        at = [write(t, tmp_path / f"{n}.{ending}") for n, t in (("log", log), ("labels", labels))]
        model = tmp_path / f"model-{ending}"
        assert run("train", at[0], "-o", model, "--categorical", "kind", *SETTINGS) == 0
        assert unskew.load(model).categories_ == {"kind": ("01", "1", "2")}
        for other in ("parquet", "csv"):
            path = tmp_path / f"labels.{other}"
            if not path.exists():
                continue
            out = tmp_path / f"{ending}-{other}.parquet"
            assert run("rank", model, path, "-o", out) == 0
            result, note = evaluated(capsys, model, "--labels", path)
            assert "never seen" not in note
            shown[ending, other] = [*result["rankers"].values(), pq.read_table(out).to_pylist()]
    assert len(shown) == 3
    assert all(one == shown["parquet", "parquet"] for one in shown.values())


def test_user_text_is_no_markup(data, tmp_path, capsys, monkeypatch):
    """Names with brackets and emoji codes are printed as they are, in results and in errors."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "[" / "b] :smile:"
    folder.mkdir(parents=True)
    log, labels = write(data[0], folder / "log.parquet"), write(data[1], folder / "labels.parquet")
    model = "[/b] [red]model :smile:"
    for call in (
        ("inspect", log),
        ("compact", log, "-o", folder / "[/compact]"),
        ("train", log, "-o", model, *SETTINGS),
        ("rank", model, labels, "-o", "[/x].csv"),
        ("evaluate", model, "--labels", labels),
    ):
        assert run(*call) == 0, call
    shown = capsys.readouterr().out
    for text in (str(log), str(folder / "[/compact]"), f"saved to {model}", "written to [/x].csv"):
        assert text in shown
    assert run("inspect", "[/b] :smile:.parquet") == 1
    assert "unskew: [/b] :smile:.parquet: " in capsys.readouterr().err


def test_candidates_are_read_from_every_source(files, data, tmp_path):
    """A DuckDB table and several files are candidates like any other."""
    import duckdb

    candidates = data[1].drop_columns(["relevance"])
    candidates = candidates.set_column(4, "kind", candidates["kind"].cast(pa.string()))
    with duckdb.connect(str(tmp_path / "c.duckdb")) as connection:
        connection.register("given", candidates)
        connection.execute("CREATE TABLE candidates AS FROM given")
    (tmp_path / "parts").mkdir()
    write(candidates.slice(0, 17), tmp_path / "parts" / "a.parquet")
    write(candidates.slice(17), tmp_path / "parts" / "b.parquet")
    outs = []
    for source in ((tmp_path / "c.duckdb", "--table", "candidates"), (tmp_path / "parts",)):
        out = tmp_path / f"{len(outs)}.parquet"
        assert run("rank", files / "model", *source, "-o", out) == 0
        outs.append(pq.read_table(out))
    model = unskew.load(files / "model")
    expected = model.rank(data[1].select(model.feature_names_), query=np.repeat(np.arange(8), 5))
    assert outs[0].equals(outs[1])
    assert outs[0]["doc"].to_pylist() == candidates["doc"].take(expected.row).to_pylist()
    np.testing.assert_array_equal(outs[0]["score"], expected.score)
