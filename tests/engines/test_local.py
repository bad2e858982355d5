"""Processes of this machine: any number of them gives the same model; a killed one is noticed."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from clicked_parts import SETTINGS, digest, trained

import unskew
from unskew.engines import Local
from unskew.engines.engine import Engine
from unskew.engines.job import Job, Outcome
from unskew.engines.reporting import Reporter, RoundListener
from unskew.engines.worker import work
from unskew.errors import DataError, EngineError, UsageError
from unskew.position_bias import PositionBias
from unskew.rankers.training import TrainingRound


@dataclass(kw_only=True)
class InThisProcess(Engine):
    """One worker, without a process of its own: for what does not depend on processes."""

    name = "here"
    lose: list[int] = field(default_factory=list)

    def _launch(self, job: Job, listener: RoundListener) -> Outcome:
        if self.lose:
            work(Job(**{**job.__dict__, "n_rounds": self.lose.pop()}), 0, 1, {})
            raise EngineError("worker 1 of 1 was ended by SIGKILL")
        return work(job, 0, 1, {})


def test_two_workers_give_the_model_of_one(parts: Path) -> None:
    """Two workers give the trees and biases of one, bit for bit; every round is reported here."""
    seen: list[TrainingRound] = []
    ranker = unskew.UnbiasedLambdaMART(**SETTINGS).fit(
        parts, engine=Local(n_workers=2, timeout=100), callbacks=[seen.append]
    )
    assert digest(ranker) == digest(trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts))
    assert [now.number for now in seen] == list(range(1, 13))
    assert seen[-1].bias.t_plus.tolist() == ranker.t_plus_.tolist()


def test_a_callback_ends_four_workers(parts: Path) -> None:
    """Four workers, one of them without a part, end together after the round a callback names."""
    ranker = unskew.UnbiasedLambdaMART(**SETTINGS).fit(
        parts, engine=Local(n_workers=4, timeout=100), callbacks=[lambda now: now.number == 5]
    )
    short = trained(unskew.UnbiasedLambdaMART(**{**SETTINGS, "n_estimators": 5}), parts)
    assert digest(ranker) == digest(short)


def test_click_models_too(parts: Path) -> None:
    """The click-model ranker holds out parts by itself and does not depend on the workers either."""
    options = {**SETTINGS, "early_stopping_rounds": 3, "validation_fraction": 0.25}
    every = unskew.Parts.open(parts)[:2]
    one = trained(unskew.ClickModelRanker(**options), every)
    two = unskew.ClickModelRanker(**options).fit(every, engine=Local(n_workers=2, timeout=100))
    assert digest(two) == digest(one)
    assert two.validation_history_ == one.validation_history_


def test_dbn_goes_on_where_a_worker_was_killed(parts: Path, tmp_path: Path) -> None:
    """A checkpoint has the satisfaction of the documents of every worker, and any number goes on."""
    options = {**SETTINGS, "click_model": "dbn", "early_stopping_rounds": None}
    engine = Local(n_workers=2, timeout=100, checkpoints=tmp_path / "c", checkpoint_every=4)

    def kill(now: TrainingRound) -> None:
        if now.number == 6:
            os.kill(engine.pids[1], signal.SIGKILL)

    with pytest.raises(EngineError, match=r"worker 2 of 2 was ended by SIGKILL"):
        unskew.ClickModelRanker(**options).fit(parts, engine=engine, callbacks=[kill])
    engine.n_workers = 3
    seen: list[int] = []
    ranker = unskew.ClickModelRanker(**options).fit(
        parts, engine=engine, callbacks=[lambda now: seen.append(now.number)]
    )
    assert seen[0] == 5
    whole = trained(unskew.ClickModelRanker(**options), parts)
    assert digest(ranker) == digest(whole)
    assert ranker.click_model_.to_dict() == whole.click_model_.to_dict()


def test_a_killed_worker(parts: Path, tmp_path: Path) -> None:
    """A killed worker ends the training at once; the same call goes on and gives the same model."""
    engine = Local(n_workers=2, timeout=100, checkpoints=tmp_path / "c", checkpoint_every=4)
    killed: list[float] = []

    def kill(now: TrainingRound) -> None:
        if now.number == 6:
            killed.append(time.monotonic())
            os.kill(engine.pids[1], signal.SIGKILL)

    ranker = unskew.UnbiasedLambdaMART(**SETTINGS)
    with pytest.raises(
        EngineError, match=r"worker 2 of 2 was ended by SIGKILL.*Run the same again"
    ):
        ranker.fit(parts, engine=engine, callbacks=[kill])
    assert time.monotonic() - killed[0] < 20
    seen: list[int] = []
    ranker.fit(parts, engine=engine, callbacks=[lambda now: seen.append(now.number)])
    assert seen[0] == 5
    assert digest(ranker) == digest(trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts))


def test_a_full_disk_on_a_worker(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker without room for its checkpoint says so with the remedy, and no checkpoint is left."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text(
        "import unskew.engines.checkpoint as checkpoint\n"
        "def full(folder, **_):\n"
        "    raise OSError(28, 'No space left on device', str(folder))\n"
        "checkpoint.write_folder = full\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "path")
    engine = Local(n_workers=1, timeout=60, checkpoints=tmp_path / "c", checkpoint_every=2)
    with pytest.raises(EngineError, match=r"worker 1 of 1 failed: its disk is full .*Remedy: make"):
        unskew.UnbiasedLambdaMART(**SETTINGS).fit(parts, engine=engine)
    assert not (tmp_path / "c").exists()


def test_a_worker_that_hangs_is_given_up(parts: Path) -> None:
    """A worker that stops answering is given up after the timeout, not waited for for ever."""
    engine = Local(n_workers=2, timeout=8)
    began: list[float] = []

    def stop(now: TrainingRound) -> None:
        if now.number == 3:
            began.append(time.monotonic())
            os.kill(engine.pids[1], signal.SIGSTOP)

    with pytest.raises(EngineError, match=r"worker 1 of 2 failed: it lost .*The model was not"):
        unskew.UnbiasedLambdaMART(**SETTINGS).fit(parts, engine=engine, callbacks=[stop])
    assert time.monotonic() - began[0] < 40


def test_restarts_go_on_from_the_checkpoint(parts: Path, tmp_path: Path) -> None:
    """As many lost workers as restarts are made good; one more is an error."""

    def fit(**options: Any) -> Any:
        engine = InThisProcess(checkpoints=tmp_path / "c", checkpoint_every=3, **options)
        return unskew.UnbiasedLambdaMART(**SETTINGS).fit(parts, engine=engine)

    with pytest.warns(
        UserWarning, match=r"was ended by SIGKILL; the training is begun again \(1 of 1"
    ):
        ranker = fit(restarts=1, lose=[7])
    assert digest(ranker) == digest(trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts))
    with pytest.raises(EngineError, match="Run the same again to go on from the last checkpoint"):
        fit(lose=[7])
    # A complete training has nothing left to do.
    assert digest(fit()) == digest(ranker)


def test_an_error_of_a_callback_comes_through() -> None:
    """What a callback raises is kept for the user's own thread, and the training is ended."""
    listener = RoundListener("127.0.0.1", [lambda now: 1 / 0], lambda *_: None, lambda _: "")
    try:
        end = Reporter(listener.address)(TrainingRound(1, 2, PositionBias.none(2), ("loss", 0.5)))
        assert end is True
        assert isinstance(listener.error, ZeroDivisionError)
    finally:
        listener.close()
    assert Reporter(None)(TrainingRound(1, 2, PositionBias.none(2), None)) is False


def test_settings_are_checked(parts: Path) -> None:
    """Engines refuse numbers that make no sense, and what a worker finds wrong comes through."""
    fit = unskew.UnbiasedLambdaMART(**SETTINGS).fit
    with pytest.raises(UsageError, match="n_workers must be a whole number, 1 or higher, got 0"):
        fit(parts, engine=Local(n_workers=0))
    with pytest.raises(UsageError, match="restarts must be a whole number, 0 or higher"):
        fit(parts, engine=Local(restarts=-1))
    silent = unskew.Parts.open(parts)[3:]
    with pytest.raises(DataError, match="there is nothing to learn from"):
        fit(silent, engine=InThisProcess())


def test_a_gpu_that_is_not_there(parts: Path) -> None:
    """device="cuda" reaches XGBoost in a worker, and without a GPU the error says so."""
    ranker = unskew.UnbiasedLambdaMART(**SETTINGS, device="cuda")
    with pytest.raises(UsageError, match="device='cuda': XGBoost finds no GPU here"):
        ranker.fit(parts, engine=InThisProcess())
    with pytest.raises(UsageError, match="device='cuda': XGBoost finds no GPU here"):
        ranker.fit(unskew.load(parts))
