"""`unskew simulate` and `unskew evaluate`: from labels to clicks and back to numbers."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew.cli import main
from unskew.simulate import true_propensities


def call(*arguments):
    """Run the program; the exit code."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code


LETOR = "".join(
    f"{grade} qid:{q} 1:{grade + 0.1 * d} 2:{d} #docid = {q}-{d}\n"
    for q in range(1, 21)
    for d, grade in enumerate((2, 0, 1, 0))
)


@pytest.fixture
def letor(tmp_path):
    """Twenty queries of four documents, grades 0 to 2, the first feature nearly the grade."""
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(LETOR.encode()))
    return path


def mean_ndcg_by_hand(model, labels):
    """The mean NDCG@10 of a model on a table of labels, by nothing but sorting and sums."""
    table = pq.read_table(labels)
    score = unskew.load(model).predict(table.drop_columns(["query", "doc", "relevance"]))
    grade, query = table["relevance"].to_numpy(), table["query"].to_numpy()
    found = []
    for one in np.unique(query):
        rows = np.flatnonzero(query == one)
        gain = 2.0 ** grade[rows] - 1
        discount = 1 / np.log2(np.arange(2, 12))[: len(rows)]
        got = gain[np.argsort(-score[rows], kind="stable")][:10] @ discount
        best = np.sort(gain)[::-1][:10] @ discount
        if best:
            found.append(got / best)
    return np.mean(found)


class TestSimulate:
    """The log and what stands beside it."""

    def test_letor(self, letor, tmp_path):
        """A LETOR file becomes a log that read_log takes together with its features."""
        log = tmp_path / "clicks.parquet"
        assert call("simulate", letor, "--sessions", 500, "--seed", 1, "-o", log) == 0
        data = unskew.read_log(log, features=tmp_path / "clicks.features.parquet")
        assert (data.n_sessions, data.n_queries, data.n_documents) == (500, 20, 80)
        assert data.features.names == ("1", "2")
        truth = json.loads((tmp_path / "clicks.propensities.json").read_text())
        assert truth["propensity"] == pytest.approx([0.68, 0.61, 0.48, 0.34])
        assert truth["parameters"]["max_grade"] == 2

    def test_parameters_act(self, letor, tmp_path):
        """--theta and --beta reach the model."""
        flat, steep = tmp_path / "flat.parquet", tmp_path / "steep.parquet"
        assert call("simulate", letor, "--theta", 0, "--sessions", 9, "-o", flat) == 0
        assert true_propensities(flat).mean.tolist() == [1.0] * 4
        options = ("--model", "cascade", "--beta", 0.25, "--policy", "labels", "--sessions", 9)
        assert call("simulate", letor, *options, "-o", steep) == 0
        # Grade 2 on top is clicked surely and satisfies with 1/2.
        assert true_propensities(steep).mean[1] == pytest.approx(0.5 * 0.25)

    def test_any_parameter_can_be_set(self, letor, tmp_path):
        """--set reaches the parameters of a click model that have no option."""
        log = tmp_path / "c.parquet"
        thetas = "thetas={desktop = 0.0, mobile = 0.0, tablet = 0.0}"
        options = ("--model", "contextual", "--set", thetas, "--sessions", 9)
        assert call("simulate", letor, *options, "-o", log) == 0
        assert true_propensities(log).mean.tolist() == [1.0] * 4

    def test_same_seed_same_log(self, letor, tmp_path):
        """The seed decides."""
        logs = []
        for name, seed in (("a", 3), ("b", 3), ("c", 4)):
            path = tmp_path / f"{name}.parquet"
            call("simulate", letor, "--sessions", 200, "--seed", seed, "-o", path)
            logs.append(pq.read_table(path))
        assert logs[0].equals(logs[1])
        assert not logs[0].equals(logs[2])

    @pytest.mark.parametrize("policy", ["random", "drifting"])
    def test_generated(self, policy, tmp_path):
        """'generated' needs no data; documents move under a random or a drifting policy."""
        log, labels = tmp_path / "c.parquet", tmp_path / "test.parquet"
        code = call(
            "simulate", "generated", "--queries", 30, "--sessions", 400, "--policy", policy,
            "--model", "contextual", "--labels", labels, "-o", log,
        )  # fmt: skip
        assert code == 0
        data = unskew.read_log(log, features=tmp_path / "c.features.parquet", context="context")
        assert data.n_queries == 21
        assert data.n_pages > data.n_queries
        assert sorted(data.contexts.tolist()) == ["desktop", "mobile", "tablet"]
        held_out = unskew.read_labels(labels)
        assert held_out.n_queries == 6
        assert not set(held_out.query.tolist()) & set(data.queries.tolist())

    def test_dataset_folder(self, real_data, tmp_path):
        """A folder of a known dataset is simulated fold by fold."""
        log = tmp_path / "mq.parquet"
        options = ("--dataset", "mq2008", "--fold", 2, "--sessions", 300)
        assert call("simulate", real_data / "mq2008", *options, "-o", log) == 0
        assert unskew.read_log(log).n_sessions == 300

    @pytest.mark.parametrize(
        ("options", "code", "message"),
        [
            (("--model", "pbm", "--set", "lambdas=1"), 2, "has no parameter 'lambdas'"),
            (("--model", "pbm", "--beta", 0.5), 2, "has no parameter 'beta'"),
            (("--epsilon", 3), 2, "must be in"),
            (("--model", "xyz"), 2, "is not known"),
            (("--policy", "xyz"), 2, "--policy must be one of"),
            (("--part", "xyz"), 2, "--part must be one of"),
            (("--max-grade", 1), 1, "declared max_grade=1"),
        ],
    )
    def test_errors(self, letor, tmp_path, capsys, options, code, message):
        """A wrong call ends with 2, wrong data with 1, and a sentence that says why."""
        assert call("simulate", letor, *options, "-o", tmp_path / "c.parquet") == code
        assert message in " ".join(capsys.readouterr().err.split())
        assert not (tmp_path / "c.parquet").exists()

    def test_wrong_folder(self, tmp_path, capsys):
        """A folder in no known layout says what was expected."""
        assert call("simulate", tmp_path, "-o", tmp_path / "c.parquet") == 1
        assert "expected Fold1/train.txt" in " ".join(capsys.readouterr().err.split())


class TestEvaluate:
    """Tables and JSON."""

    def test_score_columns(self, letor, capsys):
        """Score columns are compared; the one that is the grade is perfect."""
        options = ("--score", "1", "--score", "2", "--metrics", "ndcg@10,mrr")
        assert call("evaluate", "--labels", letor, *options, "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["rankers"]["1"]["ndcg@10"]["mean"] == 1.0
        assert found["rankers"]["2"]["mrr"]["mean"] == 0.5
        first = found["comparisons"][0]
        assert (first["a"], first["b"], first["queries"]) == ("1", "2", 20)
        assert first["difference"] > 0
        assert first["p_corrected"] <= 0.05

    def test_table(self, letor, capsys, monkeypatch):
        """On screen the same numbers stand in a table."""
        assert call("evaluate", "--labels", letor, "--score", "1", "--metrics", "map") == 0
        shown = capsys.readouterr().out
        assert "1.0000" in shown
        assert "map" in shown

    def test_model_and_log(self, tmp_path, capsys):
        """A saved model is measured on labels and, by a bias of the log, on clicks."""
        log, labels = tmp_path / "c.parquet", tmp_path / "test.parquet"
        call("simulate", "generated", "--queries", 60, "--sessions", 3000, "--labels", labels,
             "-o", log)  # fmt: skip
        features = tmp_path / "c.features.parquet"
        data = unskew.read_log(log, features=features)
        unskew.UnbiasedLambdaMART(n_estimators=5, n_jobs=1).fit(data).save(tmp_path / "model")
        capsys.readouterr()
        options = ("--labels", labels, "--ties", "stable", "--json")
        assert call("evaluate", tmp_path / "model", *options) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["rankers"]["model"]["ndcg@10"]["mean"] == pytest.approx(
            mean_ndcg_by_hand(tmp_path / "model", labels), abs=1e-12
        )
        options = ("--log", log, "--features", features, "--json", "--threads", 1)
        assert call("evaluate", tmp_path / "model", *options) == 0
        found = json.loads(capsys.readouterr().out)
        assert set(found["rankers"]) == {"model", "logged order"}
        assert set(found["rankers"]["model"]) == {"ips", "snips", "dr"}
        assert found["rankers"]["model"]["ips"]["dcg@10"]["effective_sample_size"] > 100

    def test_bias_file(self, tmp_path, capsys):
        """The true propensities that simulate wrote serve as the bias."""
        log = tmp_path / "c.parquet"
        call("simulate", "generated", "--queries", 30, "--sessions", 500, "-o", log)
        capsys.readouterr()
        options = ("--features", tmp_path / "c.features.parquet", "--score", "view_1")
        bias = ("--bias", tmp_path / "c.propensities.json", "--metrics", "dcg@3")
        assert call("evaluate", "--log", log, *options, *bias) == 0
        assert "paired differences" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("options", "code", "message"),
        [
            ((), 2, "nothing to evaluate"),
            (("--score", "bm25"), 1, "there is no column 'bm25'"),
            (("--score", "1", "--empty", "2"), 2, "--empty must be skip, 0 or 1"),
            (("--score", "1", "--metrics", "ndgc"), 2, "metric 'ndgc' is not known"),
            (("--score", "1", "--log", "x"), 2, "either --labels or --log"),
        ],
    )
    def test_errors(self, letor, capsys, options, code, message):
        """A wrong call ends with 2, wrong data with 1, and a sentence that says why."""
        assert call("evaluate", "--labels", letor, *options) == code
        assert message in " ".join(capsys.readouterr().err.split())

    def test_missing_scores(self, tmp_path, capsys):
        """A score column with missing values is an error that names the row."""
        table = pa.table({"query": [1, 1], "doc": [1, 2], "relevance": [0, 1], "s": [0.5, np.nan]})
        pq.write_table(table, tmp_path / "t.parquet")
        assert call("evaluate", "--labels", tmp_path / "t.parquet", "--score", "s") == 1
        assert "score must be finite: row 2" in " ".join(capsys.readouterr().err.split())
