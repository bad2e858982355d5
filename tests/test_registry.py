"""The registry: what it declares is true, and what goes with what is what rankers accept."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import unskew.clicks as clicks
from shown import Shown, labelled, log_of, simulated
from unskew.bias import PairwiseDebiasing, PositionBias, RegressionEM, RelativeCTR
from unskew.errors import DataError, MissingDependencyError, UsageError
from unskew.rankers.debias import resolve_debias
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.registry import (
    CLICK_MODELS,
    FEATURES,
    METHODS,
    MOVING_DOCUMENTS,
    RANKERS,
    SCORES,
    SHUFFLED_LISTS,
    check_debias,
    make_estimator,
    ranker_name,
    ranker_of_folder,
)

ALONE = [m.name for m in METHODS.values() if m.home and m.extra is None]
RANKED = log_of(Shown("abc", (1,), 30), Shown("abc", (2,), 20), Shown("abc", (3, 1), 15))


@pytest.fixture(scope="module")
def shuffled_log():
    """A log with features that fits every method."""
    return simulated(labelled(n_queries=20), sessions=1000)[0]


def test_names_are_consistent():
    """Every entry is filed under its name and goes with rankers that exist."""
    for registry in (RANKERS, METHODS, CLICK_MODELS):
        assert all(name == entry.name for name, entry in registry.items())
    for method in METHODS.values():
        assert {*method.learned_by, *method.held_by} <= set(RANKERS)
        assert method.rankers
        assert not set(method.learned_by) & set(method.held_by)


@pytest.mark.filterwarnings("ignore:the features improve the log-likelihood")
@pytest.mark.filterwarnings("ignore:the curve merely repeats the CTR")
@pytest.mark.parametrize("name", ALONE)
def test_declared_needs_are_true(name):
    """A method refuses a log without what it needs, and takes one that lacks the rest."""
    needs = METHODS[name].needs
    features = {"a": 1.0, "b": 2.0, "c": 3.0} if FEATURES in needs else None
    sessions = [Shown("abc", (1, 2), 30), Shown("abc", (3, 1), 15), Shown("acb", (1,), 9, "r")]
    if {MOVING_DOCUMENTS, SHUFFLED_LISTS} & set(needs):
        orders = ("abc", "acb", "bac", "bca", "cab", "cba")
        sessions = [s._replace(docs=order) for s in sessions for order in orders]
    scores = [0.1, 0.2, 0.3] * 2 if SCORES in METHODS[name].needs_alone else None
    estimator = make_estimator(name, n_jobs=1, scores=scores)
    fitted = estimator.fit(log_of(*sessions, features=features))
    assert isinstance(fitted, PositionBias)
    if needs:
        with pytest.raises(DataError, match=r"features|shuffled|no document links"):
            make_estimator(name).fit(RANKED)


def test_the_homes_exist():
    """Every class that needs no extra loads from where the registry says."""
    for entry in (*RANKERS.values(), *METHODS.values(), *CLICK_MODELS.values()):
        module = (entry.home or "").partition(":")[0]
        if entry.home and getattr(entry, "extra", None) is None and find_spec(module):
            assert entry.load().__name__ == entry.home.partition(":")[2]
    assert RANKERS["lambdamart"].load() is UnbiasedLambdaMART
    with pytest.raises(UsageError, match="clicked is learned by a ranker"):
        METHODS["clicked"].load()


def test_click_models_know_their_entry():
    """A class has the name of its entry, is a public name of its room, and says its parameters."""
    for name, entry in CLICK_MODELS.items():
        kind = entry.load()
        assert kind.name == name
        assert getattr(clicks, kind.__name__) is kind
        assert kind.__name__ in clicks.__all__
        assert entry.parameters() == kind.parameters()
        assert {"epsilon", "max_grade"} <= set(entry.parameters())
    with pytest.raises(AttributeError, match="no attribute 'NoModel'"):
        _ = clicks.NoModel


def test_a_learned_curve_needs_a_ranker_and_the_loss_of_pairs():
    """What learns t_minus learns t_plus, trains with a ranker, and asks a network for pairs."""
    for method in METHODS.values():
        t_plus, t_minus = method.sides
        assert t_plus or not t_minus
        if t_plus:
            assert method.learned_by
            assert method.loss == "pairwise"
        assert method.loss in (None, "pairwise", "listwise")
    assert METHODS["pairwise"].sides == (True, True)
    assert METHODS["clicked"].sides == (True, False)
    assert METHODS["dual-learning"].loss == "listwise"


def test_a_missing_extra_gives_the_install_line(monkeypatch):
    """Without PyTorch, asking for it says how to install it."""
    monkeypatch.setitem(sys.modules, "unskew.rankers.neural.dual_learning", None)
    with pytest.raises(MissingDependencyError, match=r"PyTorch.*pip install 'unskew\[neural\]'"):
        make_estimator("dual-learning")


def test_the_registry_loads_nothing():
    """Importing it touches neither boosters nor networks."""
    code = (
        "import sys, unskew.registry; "
        "print([m for m in ('torch', 'lightgbm', 'numba', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


QUICK = {
    "auto": {"trials": 2, "n_jobs": 1, "verbose": 0},
    "lambdamart": {"n_estimators": 2, "n_jobs": 1, "verbose": 0},
    "click-model": {"n_estimators": 2, "n_jobs": 1, "verbose": 0},
    "ranksvm": {"C": 0.001, "max_rounds": 2},
    "dnn": {"hidden": (4,), "n_epochs": 1, "n_jobs": 1, "verbose": 0},
}


@pytest.mark.filterwarnings("ignore:the position bias has not settled")
@pytest.mark.parametrize("name", [None, *METHODS])
@pytest.mark.parametrize("ranker", RANKERS)
def test_what_goes_with_what(ranker, name, shuffled_log):
    """The registry and the rankers agree about every combination."""
    if RANKERS[ranker].extra is not None:
        pytest.importorskip("torch")
    model = RANKERS[ranker].load()(debias=name, **QUICK[ranker])
    if name is None or ranker in METHODS[name].rankers:
        assert len(model.fit(shuffled_log).position_bias_) == 10
    else:
        others = ", ".join(METHODS[name].rankers)
        allowed = f"{name}.* goes with {others}, not with {ranker}.*debias must be"
        with pytest.raises(UsageError, match=allowed):
            model.fit(shuffled_log)


def test_a_misspelt_method():
    """The error lists what there is and guesses what was meant."""
    with pytest.raises(UsageError, match=r'debias must be "pairwise".*did you mean .regression-em'):
        check_debias("regression_em", "lambdamart")
    with pytest.raises(UsageError, match=r"not its class: give RelativeCTR\(\)"):
        check_debias(RelativeCTR, "lambdamart")


def test_rankers_are_known_by_their_class():
    """A class derived from a registered ranker is that ranker."""

    class Mine(UnbiasedLambdaMART):
        pass

    assert ranker_name(Mine()) == "lambdamart"
    assert ranker_name(object()) is None


def resolved(debias, n_positions=3):
    """What LambdaMART is told about a small log."""
    return resolve_debias(debias, ranker="lambdamart", data=RANKED, n_positions=n_positions)


def test_everything_that_debias_may_be():
    """None, a learned method, a held one, an estimator, a bias, an array."""
    assert resolved(None).bias.equals(PositionBias.none(3))
    assert resolved("pairwise").learned == "pairwise"
    curve = RelativeCTR().fit(RANKED)
    assert resolved("relative-ctr").learned is None
    for same in ("relative-ctr", RelativeCTR(), curve, curve.t_plus):
        assert resolved(same).bias.equals(curve)
    assert len(resolved(curve, 2).bias) == 2
    held = resolved(PairwiseDebiasing(scores=[0.0, 0.0, 0.0]))
    assert held.learned is None
    assert (held.bias.t_minus != 1).any()


def test_positions_beyond_the_rankers_are_counted_as_its_last():
    """A method by name estimates as many positions as the ranker has."""
    expected = RelativeCTR(n_positions=2).fit(RANKED)
    assert resolved("relative-ctr", 2).bias.equals(expected)
    assert not expected.equals(RelativeCTR().fit(RANKED).resized(2))


@pytest.mark.parametrize(
    ("debias", "message"),
    [
        ([1.0, 0.5], "debias has 2 propensities, but the log has 3 positions"),
        ([1.0, 0.5, 0.0], "position 3 has 0.0"),
        (UnbiasedLambdaMART(n_estimators=1, verbose=0), "features"),
    ],
)
def test_values_that_make_no_sense(debias, message):
    """Wrong lengths, impossible propensities, and things whose fit gives no bias."""
    with pytest.raises((UsageError, DataError), match=message):
        resolved(debias)


def test_a_fit_that_gives_no_bias():
    """An object with another fit is not taken for an estimator."""

    class Other:
        def fit(self, data):
            return np.ones(3)

    with pytest.raises(UsageError, match="that of Other gives ndarray"):
        resolved(Other())
    with pytest.raises(UsageError, match="needs a click log"):
        resolve_debias(RegressionEM(), ranker="lambdamart", data=None, n_positions=3)


def test_what_a_method_learns_is_declared():
    """Which curves it re-estimates and which loss a network needs are said once, in its entry."""
    assert {m.name: m.sides for m in METHODS.values() if any(m.sides)} == {
        "pairwise": (True, True),
        "clicked": (True, False),
    }
    learned = {m.name for m in METHODS.values() if "dnn" in m.learned_by}
    assert {m.name for m in METHODS.values() if m.loss is not None} == learned
    assert resolved("clicked").sides == (True, False)
    assert resolved("relative-ctr").sides == (False, False)


def test_folders_are_named_after_rankers():
    """A ranker is found by its name or by what earlier versions called its folder."""
    for kind, name in (
        ("lambdamart", "lambdamart"),
        ("UnbiasedLambdaMART", "lambdamart"),
        ("neural", "dnn"),
    ):
        assert ranker_of_folder(kind) is RANKERS[name]
    assert ranker_of_folder("impressions") is None
