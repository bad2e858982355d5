"""The folder of an export: what is in it, what it replaces, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exported_models import NAMES, borderline_rows, trained

from unskew.errors import StoreError, UsageError
from unskew.export.exporting import check_export, export_model
from unskew.export.rounding import at_most
from unskew.export.trees import forest_of
from unskew.registry import EXPORTS
from unskew.store import manifest_text


@pytest.mark.parametrize("to", [name for name in EXPORTS if name != "c"])
def test_every_format_passes_its_own_check(tmp_path, to):
    """Right after an export its check finds no difference beyond rounding."""
    found = check_export(export_model(trained("lightgbm"), to, tmp_path / "out"))
    assert found.agrees
    assert found.rows == 200
    assert found.format == to
    assert found.difference <= 1e-6 * found.scale


def test_samples_reach_the_corners(tmp_path):
    """The samples have missing values, zeros, extremes and values on thresholds, and the scores."""
    ranker = trained("lightgbm")
    folder = export_model(ranker, "vespa", tmp_path / "out")
    samples = json.loads((folder / "samples.json").read_text())
    assert samples["features"] == list(NAMES)
    rows = np.array([[np.nan if x is None else x for x in row] for row in samples["rows"]])
    np.testing.assert_array_equal(ranker._predict(rows), samples["scores"])
    assert np.isnan(rows).any(axis=0).all()
    assert np.nanmax(np.abs(rows)) > 1e38
    np.testing.assert_array_equal(rows.astype(np.float32).astype(np.float64), rows)


def test_the_rows_of_the_tests_reach_the_corners(booster):
    """The 10,000 rows that every format is held to are missing, extreme and exactly on thresholds."""
    rows = borderline_rows(booster)
    assert rows.shape == (10_000, len(NAMES))
    assert (np.isnan(rows).sum(axis=0) > 500).all()
    assert (np.nanmax(rows, axis=0) > 1e38).all()
    assert (np.nanmin(rows, axis=0) < -1e38).all()
    for feature, thresholds in forest_of(trained(booster)).thresholds().items():
        reachable = thresholds[np.abs(thresholds) < 1e38]
        on = np.isin([np.float32(at_most(t)) for t in reachable], rows[:, feature])
        assert on.mean() > 0.99


def test_a_wrong_export_is_noticed(tmp_path):
    """The check reads the exported files: a threshold that is off is a difference."""
    folder = export_model(trained("lightgbm"), "vespa", tmp_path / "out")
    file = folder / "model.json"
    manifest = json.loads((folder / "unskew.json").read_text())
    content = json.loads(file.read_text())
    content["tree_info"][0]["tree_structure"]["threshold"] += 100.0
    file.write_text(json.dumps(content))
    with pytest.raises(StoreError, match=r"model\.json (is truncated|was changed)"):
        check_export(folder)
    import hashlib

    data = file.read_bytes()
    manifest["files"]["model.json"] |= {
        "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(),
    }  # fmt: skip
    (folder / "unskew.json").write_text(manifest_text(manifest))
    found = check_export(folder)
    assert not found.agrees
    assert found.difference > 1e-3


def test_exporting_again_keeps_the_names(tmp_path):
    """Another export into the folder replaces every file under the same name, and leaves no other."""
    export_model(trained("lightgbm"), "opensearch", tmp_path / "out")
    before = sorted(file.name for file in (tmp_path / "out").iterdir())
    export_model(trained("xgboost"), "opensearch", tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == before
    assert check_export(tmp_path / "out").agrees
    export_model(trained("xgboost"), "vespa", tmp_path / "out")
    after = {file.name for file in (tmp_path / "out").iterdir()}
    assert after == {"model.json", "rank-profile.txt", "samples.json", "unskew.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_else_is_replaced(tmp_path):
    """A folder that holds something else is left alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(
        StoreError, match="mine exists and was not saved by Unskew: nothing was written"
    ):
        export_model(trained("lightgbm"), "solr", tmp_path / "mine")
    trained("lightgbm").save(tmp_path / "model")
    with pytest.raises(StoreError, match="holds 'lambdamart', not 'export'"):
        export_model(trained("lightgbm"), "solr", tmp_path / "model")


def test_a_failed_export_leaves_nothing(tmp_path, monkeypatch):
    """If writing breaks off, neither a folder nor a temporary one stays behind."""

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unskew.export.exporting.to_samples", killed)
    with pytest.raises(KeyboardInterrupt):
        export_model(trained("lightgbm"), "solr", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_unknown_format(tmp_path):
    """A format that does not exist is refused with the nearest name and the list."""
    with pytest.raises(
        UsageError, match=r"no format 'elastic-search' .did you mean 'elasticsearch'"
    ):
        export_model(trained("lightgbm"), "elastic-search", tmp_path / "out")


@pytest.mark.parametrize(
    ("to", "version", "message"),
    [
        ("opensearch", "newest", "'newest' is no version of OpenSearch: give numbers such as 3.8"),
        ("opensearch", "1.3", "version 1.3 of OpenSearch is not known: .* nearest .* those of 2.0"),
        ("solr", "12", "version 12 of Solr is not known: .* from 8.0 to 10.x; .* those of 9.2"),
        ("onnx", "1", "ONNX has no versions to choose from"),
    ],
)
def test_an_unknown_version(tmp_path, to, version, message):
    """A version that is not known is refused with the nearest one."""
    with pytest.raises(UsageError, match=message):
        export_model(trained("lightgbm"), to, tmp_path / "out", version=version)


def test_an_export_of_a_newer_version(tmp_path):
    """An export that a newer Unskew wrote is refused with the way to upgrade."""
    folder = export_model(trained("lightgbm"), "vespa", tmp_path / "out")
    manifest = json.loads((folder / "unskew.json").read_text())
    (folder / "unskew.json").write_text(manifest_text({**manifest, "version": 99}))
    with pytest.raises(StoreError, match=r"newer Unskew .format 99.*upgrade"):
        check_export(folder)


def test_only_fitted_models(tmp_path):
    """What is no model, or has learned nothing yet, is refused."""
    from sklearn.exceptions import NotFittedError

    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

    with pytest.raises(UsageError, match="only models can be exported, not dict"):
        export_model({}, "solr", tmp_path / "out")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        export_model(UnbiasedLambdaMART(), "solr", tmp_path / "out")


@pytest.mark.parametrize("entry", EXPORTS.values(), ids=lambda entry: entry.name)
def test_every_entry_says_what_it_is(entry):
    """A format has a title and a summary, loads from its home, and knows its versions in order."""
    assert entry.title
    assert entry.summary
    if entry.extra is None:
        assert entry.load().files
    numbers = [tuple(map(int, v.split("."))) for v in entry.versions]
    assert numbers == sorted(numbers)
    assert (entry.newest is None) == (not entry.versions)


def test_names_of_any_kind(tmp_path):
    """Feature names that the boosters do not take are in the export as they were in training."""
    import pyarrow as pa
    from exported_models import QUICK, training_rows

    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

    X, grade, query = training_rows(300)
    names = ["price, net", "a[0]", "fieldMatch(title)", 'say "hi"', "x<y", "größe", "f 5", "b"]
    table = pa.table({name: X[:, k] for k, name in enumerate(names)})
    for booster in ("lightgbm", "xgboost"):
        settings = {**QUICK, "n_estimators": 5, "booster": booster}
        ranker = UnbiasedLambdaMART(**settings).fit_labels(table, grade, query=query)
        for to in ("elasticsearch", "elasticsearch-ltr", "solr", "vespa", "xgboost"):
            folder = export_model(ranker, to, tmp_path / booster / to)
            assert check_export(folder).agrees
            assert json.loads((folder / "samples.json").read_text())["features"] == names
