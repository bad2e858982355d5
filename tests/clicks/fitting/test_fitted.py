"""What a fitted click model tells, and which logs it refuses or warns of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import unskew
from fitting_logs import fixed_pages, moving_pages, shuffled_log
from unskew.clicks import CLICK_MODELS, ClickModel, click_model, fit_click_model
from unskew.clicks.kernels import AffineChances
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions

MODELS = [name for name in CLICK_MODELS if name != "contextual"]


@pytest.fixture(scope="module")
def data() -> Impressions:
    """Clicks of the dynamic Bayesian model on shuffled pages."""
    return shuffled_log(click_model("dbn"), sessions=4_000)[0]


def random_clicks(n: int, length: int, rate: float = 0.3, seed: int = 0) -> np.ndarray:
    """Independent clicks."""
    return (np.random.default_rng(seed).random((n, length)) < rate).astype(int)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_a_table_and_a_bias(data: Impressions, name: str) -> None:
    """Relevance comes as a table with counts; examination as a table and as a position bias."""
    fitted = fit_click_model(data, name)
    table = fitted.to_arrow()
    names = ["query", "doc", "relevance", "spread", "impressions", "clicks"]
    assert table.column_names == names
    assert table.num_rows == data.n_documents == len(fitted.relevance)
    assert table["impressions"].to_numpy().sum() == pytest.approx(data.n_rows)
    assert table["clicks"].to_numpy().sum() == pytest.approx(data.n_clicks)
    relevance = table["relevance"].to_numpy()
    assert ((relevance > 0) & (relevance < 1)).all()
    bias = fitted.position_bias()
    assert len(bias) == 10
    assert (np.diff(bias.t_plus)[:3] < 0).all()
    assert {"position", "examination", "impressions"} <= set(fitted.examination.column_names)
    assert name in str(fitted)
    assert fitted.notes == ()


@pytest.mark.parametrize("name", MODELS)
def test_a_log_in_two_halves_is_measured_by_name(data: Impressions, name: str) -> None:
    """Documents of another log are recognised by query and doc, new ones get their query's mean."""
    half = data.take_patterns(np.arange(0, data.n_patterns, 2))
    rows = [
        (number, session.query, doc, position, int(position in session.clicked))
        for number, session in enumerate(half.sessions())
        for doc, position in zip(session.doc, session.position, strict=True)
    ]
    number, query, doc, position, click = map(np.array, zip(*rows, strict=True))
    again = Impressions.from_arrays(
        None, click, session=number, query=query, doc=doc, position=position
    )
    fitted = fit_click_model(data, name)
    same, other = fitted.measures(half), fitted.measures(again)
    assert other.log_likelihood == pytest.approx(same.log_likelihood, rel=1e-9)
    assert other.perplexity == pytest.approx(same.perplexity, rel=1e-9)
    # Documents that nobody has seen: the predictions are those of an average document.
    unknown = Impressions.from_arrays(
        None, click, session=number, query=query, doc=doc + 10_000, position=position
    )
    assert fitted.measures(unknown).log_likelihood < same.log_likelihood


def test_measures_by_position_and_overall() -> None:
    """Perplexity of a model without knowledge is that of the click rate, position by position."""
    click = random_clicks(2_000, 3)
    fitted = fit_click_model(moving_pages(click), "pbm")
    rate = click.mean(axis=0)
    expected = np.exp(-(rate * np.log(rate) + (1 - rate) * np.log(1 - rate)))
    found = fitted.measures()
    assert found.perplexity_by_position == pytest.approx(expected, rel=2e-3)
    assert found.perplexity == pytest.approx(expected.mean(), rel=2e-3)
    assert found.conditional_perplexity == pytest.approx(found.perplexity)
    assert found.n_results == 6_000


def test_models_say_what_they_have(data: Impressions) -> None:
    """Continuation and satisfaction are there where the model has them, None elsewhere."""
    pbm, dbn = fit_click_model(data, "pbm"), fit_click_model(data, "dbn")
    assert pbm.continuation is None
    assert pbm.satisfaction is None
    assert isinstance(dbn.continuation, float)
    assert isinstance(dbn.satisfaction, np.ndarray)
    assert dbn.satisfaction.shape == (data.n_documents,)
    assert isinstance(fit_click_model(data, "cascade").satisfaction, float)
    assert np.shape(fit_click_model(data, "dcm").continuation) == (10,)
    assert "last_click" in fit_click_model(data, "ubm").examination.column_names
    assert "trust" in fit_click_model(data, "trust").examination.column_names


def test_the_bias_trains_a_ranker() -> None:
    """``position_bias()`` is accepted as ``debias=`` of a ranker."""
    model = click_model("ubm")
    labels = shuffled_log(model, sessions=500)[1]
    table = unskew.simulate.sample(
        labels, model=model, policy=unskew.simulate.random_policy(labels), sessions=500, seed=1
    )
    features = {name: labels.features.values[:, k] for k, name in enumerate(labels.features.names)}
    import pyarrow as pa

    documents = pa.table({"query": labels.query, "doc": labels.doc, **features})
    data = unskew.read_log(table, features=documents)
    bias = fit_click_model(data, "ubm").position_bias()
    ranker = unskew.UnbiasedLambdaMART(n_estimators=3, debias=bias, n_jobs=1, verbose=0)
    assert ranker.fit(data).position_bias_.equals(bias)


def test_weights_count_like_repeated_sessions() -> None:
    """A session of weight 2 is two sessions."""
    click = random_clicks(400, 4)
    once = moving_pages(click)
    patterns = once.patterns
    doubled = fit_click_model(once, "pbm", mass=2.0 * patterns.mass)
    weighted = Impressions.from_arrays(
        None,
        np.tile(click.ravel(), 2),
        session=np.repeat(np.arange(800), 4),
        query=["q"] * 3200,
        doc=np.tile(_docs(400, 4).ravel(), 2),
        position=np.tile(np.arange(1, 5), 800),
    )
    repeated = fit_click_model(weighted, "pbm")
    assert doubled.relevance == pytest.approx(repeated.relevance, rel=1e-6)
    assert doubled.position_bias().equals(repeated.position_bias(), tolerance=1e-6)


def _docs(n: int, length: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.array([rng.permutation(length) for _ in range(n)])


@pytest.mark.parametrize("name", MODELS)
def test_positions_beyond_the_last_share_it(data: Impressions, name: str) -> None:
    """With ``n_positions`` the curve has as many entries, and everything is finite."""
    fitted = fit_click_model(data, name, n_positions=3)
    assert len(fitted.position_bias()) == 3
    found = fitted.measures()
    assert len(found.perplexity_by_position) == 10
    assert np.isfinite(found.perplexity_by_position).all()


@pytest.mark.parametrize("name", MODELS)
def test_gaps_in_positions_are_no_positions(name: str) -> None:
    """A position that no page has borrows the entry above it and has no perplexity."""
    click = random_clicks(3_000, 3)
    n = len(click)
    data = Impressions.from_arrays(
        None,
        click.ravel(),
        session=np.repeat(np.arange(n), 3),
        query=["q"] * click.size,
        doc=_docs(n, 3).ravel(),
        position=np.tile([1, 2, 5], n),
    )
    fitted = fit_click_model(data, name)
    bias = fitted.position_bias()
    assert bias.borrowed_positions == (3, 4)
    assert bias.t_plus[3] == bias.t_plus[1]
    assert np.isnan(fitted.measures().perplexity_by_position[[2, 3]]).all()


def test_one_query_is_enough_if_its_documents_move() -> None:
    """A log of a single query is fitted without a warning."""
    fitted = fit_click_model(moving_pages(random_clicks(3_000, 4)), "pbm")
    assert fitted.position_bias().t_plus == pytest.approx(np.ones(4), abs=0.12)


@pytest.mark.parametrize("name", ["pbm", "ubm", "trust"])
def test_documents_that_do_not_move_are_warned_of(name: str) -> None:
    """Without a document at two positions, the warning names the positions and what is missing."""
    data = fixed_pages(random_clicks(500, 3))
    with pytest.warns(UserWarning, match=r"no document links position\(s\) 2, 3 .* Missing: sess"):
        fit_click_model(data, name)


@pytest.mark.parametrize("name", ["dbn", "dcm", "cascade"])
def test_chain_models_need_no_moving_documents(name: str) -> None:
    """What was clicked above tells chain models how far users came: no warning, and a curve."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = fit_click_model(fixed_pages(random_clicks(500, 3)), name)
    assert fitted.position_bias().t_plus == pytest.approx(np.ones(3), abs=0.2)


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_a_log_without_clicks_is_refused(name: str) -> None:
    """There is nothing to fit."""
    with pytest.raises(DataError, match="the log has no click"):
        fit_click_model(fixed_pages(np.zeros((20, 3), dtype=int)), name)


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_a_log_of_clicks_alone_is_refused(name: str) -> None:
    """Where everything was clicked, nothing tells examination from relevance."""
    with pytest.raises(DataError, match="every result of the log was clicked"):
        fit_click_model(fixed_pages(np.ones((20, 3), dtype=int)), name)


def test_a_log_without_weight_is_refused() -> None:
    """Sessions that count nothing are no sessions."""
    data = moving_pages(random_clicks(50, 3))
    with pytest.raises(DataError, match="no session with a weight above 0"):
        fit_click_model(data, "pbm", mass=np.zeros(data.n_patterns))


@pytest.mark.parametrize("name", ["dbn", "dcm", "cascade"])
def test_one_click_a_session_is_refused_by_chain_models(name: str) -> None:
    """They learn from what follows a click; the error names models that fit."""
    click = np.zeros((300, 4), dtype=int)
    click[np.arange(200), np.arange(200) % 4] = 1
    with pytest.raises(DataError, match=r"no session of the log has two clicks.*'pbm' or 'ubm'"):
        fit_click_model(moving_pages(click), name)
    assert fit_click_model(moving_pages(click), "ubm").relevance.shape == (4,)


def test_a_position_without_clicks_is_marked() -> None:
    """Its bias is a bound, and the bias says so."""
    click = random_clicks(2_000, 4)
    click[:, 3] = 0
    bias = fit_click_model(moving_pages(click), "pbm").position_bias()
    assert bias.clipped_positions == bias.never_clicked_positions == (4,)
    assert bias.t_plus[3] == 0.001
    assert np.isnan(bias.drawn_curves()["t_plus"][3])


def test_no_click_at_the_top_has_no_curve() -> None:
    """A curve relative to a position that nobody clicked is refused."""
    click = random_clicks(2_000, 4)
    click[:, 0] = 0
    fitted = fit_click_model(moving_pages(click), "pbm")
    with pytest.raises(DataError, match="position 1 was never clicked"):
        fitted.position_bias()


def contextual(sessions: dict[str, tuple[int, float]], seed: int = 0) -> Impressions:
    """Shuffled pages of four whose clicks fall by a factor in each context."""
    rng = np.random.default_rng(seed)
    names = [name for name, (n, _) in sessions.items() for _ in range(n)]
    fall = np.array([sessions[name][1] for name in names])
    click = rng.random((len(names), 4)) < 0.5 * fall[:, None] ** np.arange(4)
    return Impressions.from_arrays(
        None,
        click.ravel().astype(int),
        session=np.repeat(np.arange(len(names)), 4),
        query=["q"] * click.size,
        doc=np.array([rng.permutation(4) for _ in names]).ravel(),
        position=np.tile(np.arange(1, 5), len(names)),
        context=np.repeat(names, 4),
    )


def test_contexts_have_their_curves_and_a_rare_one_that_of_all() -> None:
    """Frequent contexts differ; one seen once gets nearly the common curve, and a note says so."""
    data = contextual({"desktop": (6_000, 0.9), "phone": (6_000, 0.5), "watch": (1, 0.9)})
    fitted = fit_click_model(data, "contextual")
    desktop, phone = fitted.position_bias("desktop"), fitted.position_bias("phone")
    assert desktop.t_plus[3] == pytest.approx(0.9**3, abs=0.1)
    assert phone.t_plus[3] == pytest.approx(0.5**3, abs=0.1)
    assert any("context 'watch' has 1 sessions" in note for note in fitted.notes)
    with pytest.raises(DataError, match="no position was shown 10 times"):
        fitted.position_bias("watch")
    table = fitted.examination.to_pydict()
    curves = {name: [] for name in ("watch", None)}
    for name, value in zip(table["context"], table["examination"], strict=True):
        if name in curves:
            curves[name].append(value)
    # Sessions without a context were not seen at all: theirs is the common curve.
    assert curves["watch"] == pytest.approx(curves[None], abs=0.1)


def test_unknown_contexts_are_refused() -> None:
    """The error lists the contexts there are."""
    fitted = fit_click_model(contextual({"desktop": (500, 0.9), "phone": (500, 0.5)}), "contextual")
    with pytest.raises(UsageError, match=r"context 'tv' is not known: its contexts are"):
        fitted.position_bias("tv")
    with pytest.raises(UsageError, match="this model has no contexts"):
        fit_click_model(fitted.data, "dbn").position_bias("phone")


def test_a_log_of_one_context_is_refused() -> None:
    """There is nothing to compare; the error names the model to take."""
    data = contextual({"desktop": (100, 0.9)})
    with pytest.raises(DataError, match=r"all sessions have the same context, or none.*'pbm'"):
        fit_click_model(data, "contextual")


def test_settings_that_make_no_sense_are_refused(data: Impressions) -> None:
    """Each is named with what was required."""
    with pytest.raises(UsageError, match="click model 'nosuch' is not known: choose among"):
        fit_click_model(data, "nosuch")
    with pytest.raises(UsageError, match="n_positions must be 1 or more"):
        fit_click_model(data, n_positions=0)
    with pytest.raises(UsageError, match="strength must be above 0"):
        fit_click_model(data, strength=0.0)
    with pytest.raises(UsageError, match="n_iterations must be 1 or more"):
        fit_click_model(data, n_iterations=0)


def test_a_fit_that_was_cut_short_says_so(data: Impressions) -> None:
    """Too few steps leave a note."""
    fitted = fit_click_model(data, "pbm", n_iterations=2)
    assert any("had not settled after 2 steps" in note for note in fitted.notes)


def test_the_same_log_gives_the_same_fit(data: Impressions) -> None:
    """Nothing in a fit is random."""
    one, two = (fit_click_model(data, "ubm") for _ in range(2))
    assert (one.relevance == two.relevance).all()


def test_a_model_that_only_simulates_cannot_be_fitted() -> None:
    """A click model without a likelihood says so."""

    class Own(ClickModel):
        name = "own"

        def chances(self, relevance: np.ndarray, n: int) -> AffineChances:
            raise NotImplementedError

    with pytest.raises(UsageError, match="'own' only simulates"):
        Own.likelihood(None, n_positions=3)  # type: ignore[arg-type]
