"""Fitted click models find the parameters that the clicks were simulated with."""

from __future__ import annotations

import numpy as np
import pytest

from fitting_logs import shuffled_log
from unskew.clicks import (
    CascadeModel,
    ClickModel,
    ContextualModel,
    DependentClickModel,
    DynamicBayesianModel,
    FittedClickModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
    fit_click_model,
)
from unskew.log.labelled import LabelledData

# How many standard errors an estimate may be off.
ERRORS = 4.5


def fit(model: ClickModel) -> tuple[FittedClickModel, LabelledData]:
    """The model fitted to its own clicks."""
    data, labels = shuffled_log(model)
    return fit_click_model(data, model.name), labels


def truth_of(fitted: FittedClickModel, labels: LabelledData, value: np.ndarray) -> np.ndarray:
    """A value of the labelled documents, in the order of the fitted ones."""
    names = zip(labels.query.tolist(), labels.doc.tolist(), strict=True)
    by_name = dict(zip(names, value.tolist(), strict=True))
    table = fitted.to_arrow()
    keys = zip(table["query"].to_pylist(), table["doc"].to_pylist(), strict=True)
    return np.array([by_name[key] for key in keys])


def check_ratio(found: np.ndarray, truth: np.ndarray, clicks: np.ndarray) -> None:
    """Each ratio to the first entry is right up to the error of its own and the first one's clicks."""
    error = truth * np.sqrt(1 / clicks + 1 / clicks[0])
    assert (np.abs(found - truth) <= ERRORS * error)[1:].all(), (found, truth, error)


def clicks_by_position(fitted: FittedClickModel) -> np.ndarray:
    """How many clicks each position had."""
    rows = fitted.likelihood.clicks.rows()
    return np.bincount(rows.position - 1, weights=rows.clicked * rows.mass)


def test_the_position_based_model_finds_its_examination() -> None:
    """The curve is the simulated one, relative to position 1, up to sampling error."""
    model = PositionBasedModel()
    fitted, _ = fit(model)
    truth = np.array(model.rho) / model.rho[0]
    check_ratio(fitted.position_bias().t_plus, truth, clicks_by_position(fitted))


def test_the_contextual_model_finds_a_curve_for_each_context() -> None:
    """Every context has its own curve, and all curves have one scale."""
    model = ContextualModel()
    fitted, _ = fit(model)
    table = fitted.examination.to_pydict()
    found = {}
    for context, value in zip(table["context"], table["examination"], strict=True):
        found.setdefault(context, []).append(value)
    rows = fitted.likelihood.clicks.rows()
    for index, context in enumerate(fitted.data.contexts.tolist()):
        truth = model.examination(10)[model.contexts.index(context)]
        at = rows.context == index
        clicks = np.bincount(rows.position[at] - 1, weights=rows.clicked[at] * rows.mass[at])
        curve = fitted.position_bias(context).t_plus
        check_ratio(curve, truth / truth[0], clicks)
        assert curve == pytest.approx(np.array(found[context]) / found[context][0])


def test_the_user_browsing_model_finds_its_table() -> None:
    """Examination by position and last click is the simulated one wherever there are clicks."""
    model = UserBrowsingModel()
    fitted, _ = fit(model)
    table = {name: np.array(column) for name, column in fitted.examination.to_pydict().items()}
    distance = np.where(table["last_click"] > 0, table["position"] - table["last_click"], 0)
    truth = model.examine(10)[table["position"] - 1, distance]
    likelihood = fitted.likelihood
    clicks = np.bincount(likelihood.cells.state, weights=likelihood.cells.clicks)  # type: ignore[attr-defined]
    often = clicks > 200
    assert often.sum() > 30
    found = table["examination"] / table["examination"][0]
    check_ratio(found[often], truth[often], clicks[often])


def test_the_trust_bias_model_finds_how_much_relevance_counts() -> None:
    """The difference that relevance makes falls as simulated, and predictions are right."""
    model = TrustBiasModel(trust=0.3)
    fitted, labels = fit(model)
    slope, base = model.affine(10)
    truth = slope[0] / slope[0, 0]
    found = fitted.position_bias().t_plus
    # A rise is a difference of two rates: its error is that of clicks on relevant results.
    assert np.abs(found - truth).max() < 0.06
    relevance = truth_of(fitted, labels, model.attraction(labels.relevance))
    cells = fitted.likelihood.cells  # type: ignore[attr-defined]
    chance = base[0, cells.state] + slope[0, cells.state] * relevance[cells.document]
    fit_slope, fit_base = fitted.likelihood.slope, fitted.likelihood.base  # type: ignore[attr-defined]
    own = fitted.relevance[cells.document]
    predicted = fit_base[cells.state] + (fit_slope - fit_base)[cells.state] * own
    error = np.sqrt(chance * (1 - chance) / cells.shown)
    assert np.mean(np.abs(predicted - chance) < 2 * error) > 0.95


@pytest.mark.parametrize(
    "model",
    [CascadeModel(beta=0.8, phi=0.6), DynamicBayesianModel(gamma=0.8), DependentClickModel()],
    ids=lambda model: model.name,
)
def test_chain_models_find_relevance_and_examination(model: ClickModel) -> None:
    """Relevance is right up to its posterior spread, examination up to sampling error."""
    fitted, labels = fit(model)
    table = fitted.to_arrow()
    truth = truth_of(fitted, labels, model.attraction(labels.relevance))
    off = np.abs(table["relevance"].to_numpy() - truth) / table["spread"].to_numpy()
    assert off.max() < 5
    assert np.mean(off < 2) > 0.85
    rows = fitted.likelihood.clicks.rows()
    at_first = rows.position == 1
    relevance = truth_of(fitted, labels, labels.relevance)
    pages = relevance[rows.document].reshape(-1, 10)
    weights = rows.mass[at_first]
    examined = np.average(model.examination_probabilities(pages), axis=0, weights=weights)
    check_ratio(fitted.position_bias().t_plus, examined / examined[0], clicks_by_position(fitted))


def test_the_cascade_model_finds_patience_and_satisfaction() -> None:
    """``beta`` and ``phi`` come back."""
    fitted, _ = fit(CascadeModel(beta=0.8, phi=0.6))
    assert fitted.continuation == pytest.approx(0.8, abs=0.01)
    assert fitted.satisfaction == pytest.approx(0.6, abs=0.04)


def test_the_dynamic_bayesian_model_finds_gamma_and_satisfaction() -> None:
    """``gamma`` comes back, and the satisfaction of each document up to the error of its clicks."""
    model = DynamicBayesianModel(gamma=0.8)
    held = []
    for seed in range(1, 9):
        data, labels = shuffled_log(model, seed=seed)
        fitted = fit_click_model(data, model.name)
        assert fitted.continuation == pytest.approx(0.8, abs=0.01)
        truth = truth_of(fitted, labels, model.satisfaction(labels.relevance))
        found, information = fitted.satisfaction, curvatures(fitted)
        error = 1 / np.sqrt(information)
        # It is drawn towards the mean of all by the weight of a few clicks: that much is no error.
        strength = fitted.likelihood.present.strength
        drawn = strength * (found.mean() - found) / (found * (1 - found)) / information
        held.append(np.abs(found - truth) < 2 * error + np.abs(drawn))
        assert np.corrcoef(found, truth)[0, 1] > 0.98
    assert np.mean(held) > 0.95


def curvatures(fitted: FittedClickModel, h: float = 1e-3) -> np.ndarray:
    """Minus the second derivative of the log-likelihood in each document's satisfaction."""
    likelihood = fitted.likelihood
    own = likelihood.own()

    def total(d: int, change: float) -> float:
        moved = own.copy()
        moved[1 + d] += change
        likelihood.set_own(moved)
        return likelihood.evidence(fitted.relevance).log_likelihood

    here = total(0, 0.0)
    found = [-(total(d, h) - 2 * here + total(d, -h)) / h**2 for d in range(len(fitted.relevance))]
    likelihood.set_own(own)
    return np.array(found)


def test_the_dependent_click_model_finds_its_lambdas() -> None:
    """The chance to go on after a click at each position comes back; the last one cannot be seen."""
    model = DependentClickModel()
    fitted, _ = fit(model)
    truth, _ = model.continuation(10)
    clicks = clicks_by_position(fitted)
    # Who clicked nothing below may have gone on: an estimate is worth about half of its clicks.
    error = np.sqrt(truth * (1 - truth) / (clicks / 2))
    assert (np.abs(fitted.continuation - truth) < ERRORS * error)[:8].all()
