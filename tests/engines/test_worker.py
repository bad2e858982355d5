"""What one worker does: the paper's objective, exact sums, held-out parts, checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from clicked_parts import SETTINGS, digest, trained

import unskew
from fuzz.saved_folders import sign
from unskew.engines import Local, fitting
from unskew.engines.checkpoint import read_checkpoint, write_checkpoint
from unskew.engines.edges import edge_matrix, edges, summary
from unskew.engines.fitting import Fitting
from unskew.engines.grower import Sampling
from unskew.engines.job import Progress, check_versions, shares, versions
from unskew.engines.worker import work
from unskew.errors import DataError, EngineError, StoreError, UsageError
from unskew.log import part_summaries
from unskew.log.log_summary import LogSummary
from unskew.log.merging import take_queries
from unskew.log.parts import parts_writer

CLICK_MODELS = ["pbm", "ubm", "trust", "contextual", "dbn", "dcm", "cascade"]


def test_parts_learn_what_the_whole_learns(parts: Path) -> None:
    """Without sampling, parts give the biases and scores of the same log in one piece, to 1e-6."""
    whole = {"feature_fraction": 1.0, "bagging_fraction": 1.0}
    data = unskew.load(parts)
    one = unskew.UnbiasedLambdaMART(**SETTINGS, **whole).fit(data)
    many = trained(unskew.UnbiasedLambdaMART(**SETTINGS, **whole), parts)
    np.testing.assert_allclose(many.t_plus_, one.t_plus_, rtol=1e-6)
    np.testing.assert_allclose(many.t_minus_, one.t_minus_, rtol=1e-6)
    np.testing.assert_allclose(many.predict(data), one.predict(data), atol=1e-6)
    assert many.position_bias_.never_clicked_positions == one.position_bias_.never_clicked_positions


@pytest.mark.parametrize("click_model", CLICK_MODELS)
def test_click_models_learn_what_the_whole_learns(parts: Path, click_model: str) -> None:
    """Examined and shown counts of the parts give the examination of the log in one piece."""
    options: dict[str, Any] = {
        **SETTINGS, "feature_fraction": 1.0, "bagging_fraction": 1.0, "click_model": click_model,
        "early_stopping_rounds": None,
    }  # fmt: skip
    data = unskew.load(parts)
    one = unskew.ClickModelRanker(**options).fit(data)
    many = trained(unskew.ClickModelRanker(**options), parts)
    learned = many.bias_history_[-1].t_plus, one.bias_history_[-1].t_plus
    np.testing.assert_allclose(*learned, rtol=1e-6)
    # Rounding may put a document into another stratum.
    np.testing.assert_allclose(many.t_plus_, one.t_plus_, rtol=0.02)
    np.testing.assert_allclose(many.predict(data), one.predict(data), atol=1e-5)
    assert many.offset_ == pytest.approx(one.offset_, rel=1e-6)
    assert many.prior_strength_ > 0


def test_a_log_too_large_for_one_machine_is_measured_by_its_first_parts(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many parts as one process may hold give the examination its curve and wider intervals."""
    options: dict[str, Any] = {**SETTINGS, "n_estimators": 3}
    whole = trained(unskew.ClickModelRanker(**options), parts)
    monkeypatch.setattr(fitting, "MOST_VALUES", 1)
    part = trained(unskew.ClickModelRanker(**options), parts)
    widths = [np.diff(one.position_bias_.interval_plus, axis=0).mean() for one in (whole, part)]
    assert 0 < widths[0] < widths[1]
    np.testing.assert_array_equal(
        part.predict(unskew.load(parts)), whole.predict(unskew.load(parts))
    )


@pytest.mark.parametrize("click_model", ["dbn", "dcm", "cascade"])
def test_chains_go_on_from_an_earlier_model(parts: Path, click_model: str) -> None:
    """An earlier model hands its walk and satisfaction on, and held-out parts judge the rounds."""
    options: dict[str, Any] = {**SETTINGS, "n_estimators": 4, "click_model": click_model}
    every = unskew.Parts.open(parts)
    earlier = trained(unskew.ClickModelRanker(**options), every[:1], every[1:2])
    assert len(earlier.validation_history_) == 4
    assert np.isfinite(earlier.validation_history_).all()
    more = trained(unskew.ClickModelRanker(**options), every[:1], every[1:2], init=earlier)
    assert more.trees_.n_rounds == earlier.trees_.n_rounds + 4
    assert more.offset_ == earlier.offset_


@pytest.mark.parametrize("debias", ["relative-ctr", "regression-em", unskew.bias.RelativeCTR()])
def test_estimators_are_fitted_to_the_whole_log(parts: Path, debias: Any) -> None:
    """An estimator as debias= gives workers the bias that it gives one machine."""
    options: dict[str, Any] = {**SETTINGS, "debias": debias, "n_estimators": 2}
    one = unskew.UnbiasedLambdaMART(**options).fit(unskew.load(parts))
    many = trained(unskew.UnbiasedLambdaMART(**options), parts)
    np.testing.assert_allclose(many.t_plus_, one.t_plus_, rtol=1e-12)


def test_the_log_is_remembered(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of workers remembers its log as one of one machine does; of features a sample."""
    options = {**SETTINGS, "n_estimators": 1}
    ranker = trained(unskew.UnbiasedLambdaMART(**options), parts)
    whole = LogSummary.of(unskew.load(parts))
    assert ranker.training_log_ == whole
    monkeypatch.setattr(part_summaries, "ENOUGH_DOCUMENTS", 1)
    sampled = part_summaries.summary_of_parts(unskew.Parts.open(parts))
    assert (sampled.n_sessions, sampled.clicks) == (whole.n_sessions, whole.clicks)
    assert sampled.documents == whole.documents
    assert sampled.n_documents == unskew.Parts.open(parts).entries[0].counts["documents"]
    assert sampled.features != whole.features


@pytest.mark.parametrize("click_model", [None, *CLICK_MODELS])
def test_a_restart_is_as_if_nothing_happened(
    parts: Path, tmp_path: Path, click_model: str | None
) -> None:
    """A training that goes on from a checkpoint ends with the same model, bit for bit."""
    every = unskew.Parts.open(parts)
    options = {**SETTINGS, "early_stopping_rounds": 20, "feature_fraction": 0.5}
    kind: Callable[..., Any] = unskew.UnbiasedLambdaMART
    if click_model is not None:
        kind, options["click_model"] = unskew.ClickModelRanker, click_model
    whole = trained(kind(**options), every[:1], every[1:2])
    checkpoints: dict[str, Any] = {"checkpoints": tmp_path / "c", "checkpoint_every": 5}
    fitting = Fitting.of(kind(**options), every[:1], validation=every[1:2], init_model=None)
    job = replace(fitting.job(), **checkpoints)
    work(replace(job, n_rounds=7), 0, 1, {})
    progress = read_checkpoint(tmp_path / "c", job.key)
    assert progress is not None
    assert len(progress.t_plus) == 5
    again = fitting.keep(work(replace(job, progress=progress), 0, 1, {}))
    assert digest(again) == digest(whole)
    assert again.validation_history_ == whole.validation_history_
    assert again.best_round_ == whole.best_round_


@pytest.mark.parametrize("click_model", ["pbm", "dbn", "cascade"])
def test_a_training_that_was_complete(parts: Path, tmp_path: Path, click_model: str) -> None:
    """The same call after the last checkpoint grows no tree more and gives the same model."""
    options = {**SETTINGS, "click_model": click_model, "early_stopping_rounds": None}
    rankers = [unskew.ClickModelRanker(**options) for _ in range(2)]
    for ranker in rankers:
        ranker.fit(parts, engine=Local(n_workers=1, checkpoints=tmp_path / "c", checkpoint_every=4))
    assert digest(rankers[1]) == digest(rankers[0])
    assert np.array_equal(rankers[1].t_plus_, rankers[0].t_plus_)
    assert rankers[1].click_model_.to_dict() == rankers[0].click_model_.to_dict()


def test_features_may_stay_on_disk(parts: Path, tmp_path: Path) -> None:
    """External memory gives the same model, bit for bit, and leaves nothing on disk."""
    plain = trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts)
    streamed = trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts, external_memory=tmp_path)
    assert digest(streamed) == digest(plain)
    assert list(tmp_path.iterdir()) == []


def test_held_out_parts_end_the_training(parts: Path) -> None:
    """Early stopping on parts keeps the round that the same clicks would keep in one piece."""
    every = unskew.Parts.open(parts)
    options = {
        **SETTINGS, "n_estimators": 40, "early_stopping_rounds": 4, "learning_rate": 0.5,
        "bagging_fraction": 1.0, "feature_fraction": 1.0,
    }  # fmt: skip
    one = unskew.UnbiasedLambdaMART(**options).fit(every[0], validation=every[1])
    many = trained(unskew.UnbiasedLambdaMART(**options), every[:1], every[1:2])
    assert many.best_round_ == one.best_round_
    assert len(many.bias_history_) == len(one.bias_history_) < 40
    np.testing.assert_allclose(many.validation_history_, one.validation_history_, rtol=1e-5)


def test_a_model_is_continued(parts: Path) -> None:
    """init_model goes on with its trees and its bias."""
    first = trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts)
    more = trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts, init=first)
    assert more.trees_.n_rounds == 24
    assert np.array_equal(more.bias_history_.t_plus[:12], first.bias_history_.t_plus)


def test_a_category_trains(tmp_path: Path) -> None:
    """Categories that only some parts have are one feature with the categories of all."""
    rng = np.random.default_rng(0)
    n = 400
    colours = np.array(["blue", "green", "red", "white"])
    query = np.repeat(np.arange(n // 4), 4)
    colour = colours[np.where(query % 2, rng.integers(0, 2, n), rng.integers(2, 4, n))]
    click = rng.random(n) < np.where(np.isin(colour, ["red", "blue"]), 0.8, 0.1)
    data = unskew.read_log(
        pa.table(
            {
                "session": query, "query": query, "doc": np.tile(np.arange(4), n // 4),
                "position": np.tile(np.arange(1, 5), n // 4), "click": click.astype(int),
                "colour": pa.array(colour).dictionary_encode(),
            }
        )
    )  # fmt: skip
    with parts_writer(tmp_path / "parts") as writer:
        writer.add(take_queries(data, np.flatnonzero(data.queries % 2)))
        writer.add(take_queries(data, np.flatnonzero(data.queries % 2 == 0)))
    ranker = trained(
        unskew.UnbiasedLambdaMART(**SETTINGS, min_sum_hessian_in_leaf=0.1), tmp_path / "parts"
    )
    score = dict(
        zip(
            colours,
            ranker.predict(pa.table({"colour": pa.array(colours).dictionary_encode()})),
            strict=True,
        )
    )
    assert min(score["red"], score["blue"]) > max(score["green"], score["white"])


# The pieces -------------------------------------------------------------------------------------


def test_edges_divide_evenly() -> None:
    """Edges of many parts have about as many documents in each bin, and the ends of the range."""
    rng = np.random.default_rng(1)
    parts = [rng.normal(loc, size=5000) for loc in (0.0, 1.0, 5.0)]
    told = np.stack([summary(values, 256) for values in parts])
    found = edges(told, 32)
    everything = np.concatenate(parts).astype(np.float32)
    assert found[0] == everything.min()
    assert found[-1] == everything.max()
    counts, _ = np.histogram(everything, found)
    assert len(found) <= 32
    assert counts.max() < 2 * len(everything) / 31


def test_few_values_are_edges_themselves() -> None:
    """Where there are no more distinct values than bins, every value has a bin of its own."""
    told = np.stack([summary(np.array([1.0, 2.0, 2.0, np.nan]), 8), summary(np.array([np.nan]), 8)])
    assert edges(told, 4).tolist() == [1.0, 2.0]
    matrix = edge_matrix([edges(told, 4), np.empty(0)], [0, 3])
    assert np.array_equal(
        matrix, np.array([[1, 0], [2, 1], [np.nan, 2]], np.float32), equal_nan=True
    )


def test_sampling_draws_its_share() -> None:
    """Documents and features are drawn in their shares, another set in every round."""
    sampling = Sampling(documents=0.7, features=0.5, seed=3)
    key = np.arange(20_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    share = sampling.kept(key, 0).mean()
    assert abs(share - 0.7) < 4 * np.sqrt(0.21 / 20_000)
    assert not np.array_equal(sampling.kept(key, 0), sampling.kept(key, 1))
    assert len(sampling.chosen(9, 0)) == 4
    assert len({tuple(sampling.chosen(9, k)) for k in range(10)}) > 5


def test_shares_are_fair(parts: Path) -> None:
    """Every part has one worker, and workers without a part are possible."""
    every = unskew.Parts.open(parts)
    for n in (1, 2, 6):
        held = shares(every, n)
        assert len(held) == n
        assert sorted(number for numbers in held for number in numbers) == [0, 1, 2, 3]


def test_other_versions_are_refused() -> None:
    """A worker with another XGBoost or another Unskew says so before it begins."""
    with pytest.raises(EngineError, match=r"worker 3 has xgboost .*, and this program 0\.1"):
        check_versions(versions() | {"xgboost": "0.1"}, "worker 3")


# Bad input --------------------------------------------------------------------------------------


def test_a_query_in_two_parts_is_refused(log: unskew.Impressions, tmp_path: Path) -> None:
    """Workers notice a query that two of them hold."""
    with parts_writer(tmp_path / "parts") as writer:
        writer.add(take_queries(log, np.arange(0, 20)))
        writer.add(take_queries(log, np.arange(19, 40)))
    with pytest.raises(StoreError, match="query 19 stands in two parts, part-00000"):
        trained(unskew.UnbiasedLambdaMART(**SETTINGS), tmp_path / "parts")


def test_nothing_to_learn_is_said(log: unskew.Impressions, tmp_path: Path) -> None:
    """Parts without a pair, without a feature, or without differences are refused with the reason."""
    silent = log.take_patterns(np.flatnonzero(np.diff(log.patterns.offsets) == 0))
    silent.save(tmp_path / "silent", parts=2)
    with pytest.raises(DataError, match="there is nothing to learn from"):
        trained(unskew.UnbiasedLambdaMART(**SETTINGS), tmp_path / "silent")
    with pytest.raises(DataError, match="the log has no click"):
        trained(
            unskew.ClickModelRanker(**SETTINGS, early_stopping_rounds=None), tmp_path / "silent"
        )
    n = 12
    same = unskew.Impressions.from_arrays(
        np.ones((n, 2)), np.arange(n) % 2, session=np.arange(n) // 2, query=np.arange(n) // 2,
        doc=np.arange(n) % 2, position=np.arange(n) % 2 + 1,
    )  # fmt: skip
    same.save(tmp_path / "same", parts=2)
    with pytest.raises(DataError, match="every feature has the same value"):
        trained(unskew.UnbiasedLambdaMART(**SETTINGS), tmp_path / "same")


def test_what_cannot_be_shared_is_refused(parts: Path, log: unskew.Impressions) -> None:
    """Rankers, boosters, click models and biases that need one machine are named with the way out."""
    fit = unskew.UnbiasedLambdaMART(**SETTINGS).fit
    with pytest.raises(UsageError, match=r"X must be a folder of parts .* got Impressions"):
        fit(log, engine="local")
    with pytest.raises(UsageError, match="engine must be one of local, dask, spark, got 'ray'"):
        fit(parts, engine="ray")
    with pytest.raises(UsageError, match=r"engine must be one of .* got int"):
        fit(parts, engine=3)
    with pytest.raises(UsageError, match="booster must be 'xgboost' with an engine"):
        unskew.UnbiasedLambdaMART().fit(parts, engine="local")
    with pytest.raises(UsageError, match="PropensityRankSVM trains on one machine only"):
        unskew.PropensityRankSVM().fit(parts, engine="local")
    with pytest.raises(UsageError, match=r"p must be 0 with click_model='dcm'"):
        trained(unskew.ClickModelRanker(**SETTINGS, click_model="dcm", p=1.0), parts)
    one = unskew.Parts.open(parts)[:1]
    with pytest.raises(UsageError, match="holds out 20% of the parts, but there is only 1"):
        unskew.UnbiasedLambdaMART(**SETTINGS, early_stopping_rounds=3).fit(one, engine="local")


def test_a_folder_is_enough_for_one_machine(parts: Path, log: unskew.Impressions) -> None:
    """Without an engine, fit reads the folder whole."""
    ranker = unskew.UnbiasedLambdaMART(n_estimators=2, verbose=0).fit(str(parts))
    assert ranker.trees_.n_rounds == 2


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    """Other parts or settings do not go on from a checkpoint that is not theirs."""
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.arange(8.0)[:, None], label=np.arange(8.0))
    trees = bytes(xgboost.train({}, data, 1).save_raw("json"))
    curve = np.ones((1, 3))
    write_checkpoint(tmp_path / "c", Progress(1, trees, curve, curve, np.empty(0), [1]), "mine")
    assert read_checkpoint(tmp_path / "none", "mine") is None
    found = read_checkpoint(tmp_path / "c", "mine")
    assert found is not None
    assert found.trees == trees
    with pytest.raises(StoreError, match="checkpoint of another training"):
        read_checkpoint(tmp_path / "c", "yours")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.array([0.5, 2.0]), "must hold numbers from 0 to 1"),
        (np.array([0.5, np.nan]), "must hold numbers from 0 to 1"),
        (np.array([[0.5]]), "must hold numbers from 0 to 1"),
        (np.array([{}], dtype=object), "does not hold a checkpoint"),
    ],
)  # fmt: skip
def test_signed_documents_are_not_believed(content: Any, message: str, tmp_path: Path) -> None:
    """What a checkpoint says of each document is checked, and never runs code."""
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.arange(8.0)[:, None], label=np.arange(8.0))
    trees = bytes(xgboost.train({}, data, 1).save_raw("json"))
    curve, folder = np.ones((1, 3)), tmp_path / "c"
    progress = Progress(1, trees, curve, curve, np.empty(0), [1], documents=np.array([0.5]))
    write_checkpoint(folder, progress, "mine")
    found = read_checkpoint(folder, "mine")
    assert found is not None
    assert found.documents is not None
    assert found.documents.tolist() == [0.5]
    np.save(folder / "documents.npy", content, allow_pickle=True)
    sign(folder)
    with pytest.raises(StoreError, match=message):
        read_checkpoint(folder, "mine")


@pytest.mark.parametrize("documents", [None, np.array([0.5])])
def test_a_checkpoint_of_other_documents(parts: Path, documents: Any) -> None:
    """A checkpoint of dbn whose documents are not those of the parts is refused."""
    fitting = Fitting.of(
        unskew.ClickModelRanker(**{**SETTINGS, "click_model": "dbn", "early_stopping_rounds": None}),
        parts, validation=None, init_model=None,
    )  # fmt: skip
    outcome = work(replace(fitting.job(), n_rounds=1), 0, 1, {})
    curve = outcome.biases[0].t_plus[None]
    progress = Progress(
        1,
        outcome.trees,
        curve,
        curve,
        np.empty(0),
        [outcome.model],
        outcome.offset,
        None,
        documents,
    )
    with pytest.raises(
        StoreError, match=r"tells of \d documents, but the parts have [\d,]+: remove"
    ):
        work(replace(fitting.job(), progress=progress), 0, 1, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_trees": 7}, "7 are told of"), ({"offset": "x"}, "offset must be a finite number"),
        ({"t_plus": [[1.0, -1.0, 1.0]]}, "above 0 and finite"), ({"t_minus": [[1.0]]}, "differ"),
        ({"looks": [float("nan")]}, "looks must be finite"), ({"models": [9]}, "a round has 9"),
    ],
)  # fmt: skip
def test_a_signed_checkpoint_is_not_believed(change, message, tmp_path: Path) -> None:
    """What a checkpoint says is checked against its trees, though its checksums fit."""
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.arange(8.0)[:, None], label=np.arange(8.0))
    trees = bytes(xgboost.train({}, data, 1).save_raw("json"))
    curve = np.ones((1, 3))
    folder = tmp_path / "c"
    write_checkpoint(folder, Progress(1, trees, curve, curve, np.array([0.5]), [1]), "mine")
    assert read_checkpoint(folder, "mine") is not None
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, **change}))
    sign(folder)
    with pytest.raises(StoreError, match=message):
        read_checkpoint(folder, "mine")
