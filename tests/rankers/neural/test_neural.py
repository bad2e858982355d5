"""The neural ranker: what it learns, what it keeps, what it refuses, and life without PyTorch."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import unskew
from logs import random_log
from unskew.errors import DataError, MissingDependencyError, StoreError, UsageError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.statistic import pair_statistics
from unskew.position_bias import PositionBias
from unskew.rankers.neural.dual_learning import DualLearning
from unskew.rankers.neural.ranker import NeuralRanker
from unskew.rankers.validation import LabelValidation
from unskew.store import manifest_text

torch = pytest.importorskip("torch")

QUICK = {
    "hidden": (8, 4), "n_epochs": 3, "batch_pages": 16, "verbose": 0, "random_state": 0,
    "device": "cpu", "learning_rate": 0.02, "n_jobs": 1,
}  # fmt: skip
PROPENSITY = 1 / np.arange(1, 11)


@pytest.fixture(scope="module")
def log():
    """Clicks that follow the features, and the position ever more weakly."""
    return random_log(0)


@pytest.fixture(scope="module")
def labels():
    """Labels that follow two of the features."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(600, 5))
    relevance = np.clip(np.rint(2 * values[:, 0] + values[:, 1]), 0, 3)
    features = Features(values, tuple(f"f{k}" for k in range(5)))
    return LabelledData.from_rows(features, relevance, np.repeat(np.arange(50), 12))


def follows(ranker, log):
    """How well the scores follow what the clicks follow."""
    truth = 2 * log.features.values[:, 0] + log.features.values[:, 1]
    return np.corrcoef(ranker.predict(log), truth)[0, 1]


def test_the_network_is_that_of_the_dual_learning_code():
    """By default three hidden layers of 512, 256 and 128 with ELU."""
    ranker = NeuralRanker(n_epochs=1, verbose=0, device="cpu", n_jobs=1).fit(
        random_log(0, n_queries=3)
    )
    kinds = [type(layer).__name__ for layer in ranker.network_]
    assert kinds == ["Linear", "ELU", "LayerNorm"] * 3 + ["Linear"]
    widths = [layer.out_features for layer in ranker.network_ if hasattr(layer, "out_features")]
    assert widths == [512, 256, 128, 1]


@pytest.mark.parametrize("loss", ["listwise", "pairwise"])
def test_both_losses_learn_and_known_propensities_help(log, loss):
    """The training loss falls, and the truth is found better than from raw clicks."""
    options = {**QUICK, "n_epochs": 10, "loss": loss}
    known = NeuralRanker(debias=PROPENSITY, **options).fit(log)
    raw = NeuralRanker(debias=None, **options).fit(log)
    assert known.loss_history_[-1] < known.loss_history_[0]
    assert follows(known, log) > follows(raw, log) + 0.05
    assert follows(known, log) > 0.85
    np.testing.assert_allclose(known.t_plus_, PROPENSITY)


def test_pairwise_debiasing_is_the_closed_form_after_every_epoch(log):
    """The last bias follows from the last scores and the bias before, by the paper's update."""
    ranker = NeuralRanker(**QUICK).fit(log)
    assert len(ranker.bias_history_) == 3
    pairs = PairLosses.of(log.pages, pair_statistics(log), 10)
    score = ranker.predict(log)
    gap = score[pairs.document_i] - score[pairs.document_j]
    loss = np.log1p(np.exp(-2.0 * gap))
    again = pairs.reestimated(loss, ranker.bias_history_[-2], p=0.5, sides=(True, True))
    np.testing.assert_allclose(ranker.t_plus_, again.t_plus, rtol=1e-6)
    np.testing.assert_allclose(ranker.t_minus_, again.t_minus, rtol=1e-6)


def test_clicked_holds_t_minus_at_one(log):
    """debias="clicked" learns t_plus alone."""
    ranker = NeuralRanker(debias="clicked", **QUICK).fit(log)
    assert (ranker.t_minus_ == 1).all()
    assert (ranker.t_plus_[1:] != 1).all()


@pytest.mark.parametrize("debias", ["pairwise", "dual-learning"])
def test_the_seed_decides_the_model(log, debias):
    """On a CPU, the same seed gives the same scores and biases bit for bit, another does not."""
    one, two = (NeuralRanker(debias=debias, **QUICK).fit(log) for _ in range(2))
    np.testing.assert_array_equal(one.predict(log), two.predict(log))
    np.testing.assert_array_equal(one.bias_history_.t_plus, two.bias_history_.t_plus)
    other = NeuralRanker(debias=debias, **{**QUICK, "random_state": 1}).fit(log)
    assert (one.predict(log) != other.predict(log)).any()


def test_sessions_repeated_change_nothing_but_rounding(log):
    """Every session four times is the same objective: weights are shares of the whole."""
    often = replace(log, patterns=replace(log.patterns, count=4 * log.patterns.count))
    once = NeuralRanker(debias=PROPENSITY, **QUICK).fit(log)
    again = NeuralRanker(debias=PROPENSITY, **QUICK).fit(often)
    np.testing.assert_allclose(again.predict(log), once.predict(log), rtol=1e-3, atol=1e-4)


def test_labels_are_the_upper_bound(labels):
    """Trained on labels, the ranking is nearly ideal; arrays and LabelledData are the same."""
    options = {**QUICK, "n_epochs": 20}
    ranker = NeuralRanker(**options).fit_labels(labels)
    assert ranker.score(labels.features, labels.relevance, query=labels.query) > 0.9
    assert ranker.position_bias_.equals(PositionBias.none(1))
    rows = NeuralRanker(**options).fit_labels(
        labels.features.values, labels.relevance, query=labels.query
    )
    np.testing.assert_array_equal(rows.predict(labels), ranker.predict(labels))


def test_early_stopping_keeps_the_best_epoch(log, labels):
    """Training ends when the labels say so; the model and the bias are those of the best epoch."""
    options = {**QUICK, "n_epochs": 60, "learning_rate": 0.1, "early_stopping_rounds": 3}
    ranker = NeuralRanker(**options).fit(log, validation=labels)
    measures = np.array(ranker.validation_history_)
    best = int(np.argmax(measures)) + 1
    assert ranker.best_round_ == best == len(ranker.bias_history_)
    assert len(measures) == best + 3 < 60
    measure = ranker.score(labels.features, labels.relevance, query=labels.query)
    assert measure == pytest.approx(measures[best - 1])
    assert NeuralRanker(**options).fit(log).best_round_ is not None  # by queries held out


def test_an_earlier_epoch_may_turn_out_the_best(log, labels, monkeypatch):
    """Once the bias has moved another epoch may be the best one: its network was kept."""

    # Up to the third epoch every epoch is the best yet; then the second one is.
    def judged(self, bias):
        n = len(self._ndcg)
        return np.arange(n) if n < 4 else np.array([0, 3, 2, 1])

    monkeypatch.setattr(LabelValidation, "measures", judged)
    options = {**QUICK, "n_epochs": 5, "early_stopping_rounds": 2}
    ranker = NeuralRanker(**options).fit(log, validation=labels)
    shorter = NeuralRanker(**{**QUICK, "n_epochs": 2}).fit(log)
    assert ranker.best_round_ == 2
    np.testing.assert_array_equal(ranker.predict(log), shorter.predict(log))


def test_gaps_are_imputed_or_refused(log):
    """A gap gets the mean and an indicator; with missing="refuse" the error names the feature."""
    values = log.features.values.copy()
    values[3, 2] = np.nan
    documents = replace(log.documents, features=Features(values, log.features.names))
    data = replace(log, documents=documents)
    ranker = NeuralRanker(**QUICK).fit(data)
    assert ranker.network_[0].in_features == 6
    assert np.isfinite(ranker.predict(data)).all()
    with pytest.raises(DataError, match="feature 'f2' is missing in row 4"):
        NeuralRanker(missing="refuse", **QUICK).fit(data)


@pytest.mark.parametrize("debias", ["pairwise", "dual-learning", PROPENSITY], ids=str)
def test_saving_and_loading(log, tmp_path, debias):
    """Scores, biases, histories and settings come back bit for bit, from safetensors and JSON."""
    ranker = NeuralRanker(debias=debias, **QUICK).fit(log)
    ranker.save(tmp_path / "model")
    again = unskew.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(log), ranker.predict(log))
    np.testing.assert_array_equal(again.bias_history_.t_plus, ranker.bias_history_.t_plus)
    assert again.loss_history_ == ranker.loss_history_
    assert again.best_round_ is None
    names = {file.name for file in (tmp_path / "model").iterdir()}
    assert names == {
        "unskew.json",
        "network.safetensors",
        "model.json",
        "bias_history.json",
        "log.json",
    }
    again.fit(log)
    np.testing.assert_array_equal(again.predict(log), ranker.predict(log))


def test_weights_of_another_network_are_refused(log, tmp_path):
    """A folder whose settings and weights do not fit together is an error that says so."""
    NeuralRanker(**QUICK).fit(log).save(tmp_path / "model")
    file = tmp_path / "model" / "unskew.json"
    manifest = json.loads(file.read_text())
    manifest["params"]["hidden"] = [8, 5]
    file.write_text(manifest_text(manifest))
    with pytest.raises(StoreError, match="does not describe a ranker"):
        unskew.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": (8, 0)}, "hidden must be a list of layer widths, each 1 or higher"),
        ({"hidden": 8}, "hidden must be a list of layer widths"),
        ({"n_epochs": 0}, "n_epochs must be a whole number, 1 or higher, got 0"),
        ({"batch_pages": 0}, "batch_pages must be a whole number"),
        ({"learning_rate": -1}, "learning_rate must be a number above 0"),
        ({"propensity_learning_rate": 0}, "propensity_learning_rate must be a number above 0"),
        ({"loss": "hinge"}, 'loss must be "auto", "listwise" or "pairwise", got \'hinge\''),
        ({"debias": "magic"}, r'debias must be "pairwise", .*"dual-learning", .*None'),
        ({"loss": "listwise"}, 'debias="pairwise" needs loss="pairwise", got loss="listwise"'),
        (
            {"debias": "dual-learning", "loss": "pairwise"},
            'debias="dual-learning" needs loss="listwise"',
        ),
        ({"device": "abacus"}, 'device must be "auto", "cpu" or "cuda", got \'abacus\''),
    ],
)
def test_settings_that_make_no_sense_are_refused(log, settings, message):
    """Each bad setting, and each combination that makes no sense, is an error that names it."""
    with pytest.raises(UsageError, match=message):
        NeuralRanker(**{**QUICK, **settings}).fit(log)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_said(log):
    """Asking for CUDA without a GPU is an error; "auto" takes the CPU."""
    with pytest.raises(UsageError, match="no GPU that PyTorch can use"):
        NeuralRanker(**{**QUICK, "device": "cuda"}).fit(log)


def test_unfitted_and_silent(log, capfd):
    """A clone has no model; verbose=0 prints nothing."""
    ranker = NeuralRanker(**QUICK).fit(log)
    assert capfd.readouterr() == ("", "")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(ranker).predict(log)
    ranking = ranker.rank(log.features.values[:4], query=["a", "b", "a", "a"])
    assert ranking.rank.tolist() == [1, 2, 3, 1]


def test_ctrl_c_keeps_what_was_learned(log, monkeypatch):
    """An interruption after two epochs leaves a fitted ranker, with a warning."""
    from unskew.rankers.neural.training import NeuralTraining

    epoch, done = NeuralTraining.epoch, []

    def interrupted(training):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(epoch(training))
        return done[-1]

    monkeypatch.setattr(NeuralTraining, "epoch", interrupted)
    with pytest.warns(UserWarning, match="keeps the 2 rounds that were complete"):
        ranker = NeuralRanker(**QUICK).fit(log)
    assert len(ranker.bias_history_) == 2
    assert np.isfinite(ranker.predict(log)).all()


@pytest.mark.parametrize("package", ["torch", "safetensors.torch"])
def test_without_the_extra_the_error_has_the_install_line(log, tmp_path, monkeypatch, package):
    """Without PyTorch fitting, without safetensors saving says what to install."""
    ranker = NeuralRanker(**QUICK).fit(log)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'unskew\[neural\]'"):
        ranker.save(tmp_path / "model")
    if package == "torch":
        with pytest.raises(MissingDependencyError, match="NeuralRanker needs PyTorch"):
            NeuralRanker(**QUICK).fit(log)
        with pytest.raises(MissingDependencyError, match="NeuralRanker needs PyTorch"):
            DualLearning().fit(log)


def test_everything_else_works_without_pytorch(log, monkeypatch):
    """The other rankers import, train and score with PyTorch hidden."""
    monkeypatch.setitem(sys.modules, "torch", None)
    assert unskew.NeuralRanker is NeuralRanker
    ranker = unskew.PropensityRankSVM(debias=None, verbose=0).fit(log)
    assert len(ranker.predict(log)) == len(log.documents)
