"""The worker: reads its parts, shares bin edges, and goes through the rounds with all the others."""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.bias.cells import shown_by_position
from unskew.engines.checkpoint import write_checkpoint
from unskew.engines.group import Group
from unskew.engines.grower import PartFeatures, Sampling, SharedGrower
from unskew.engines.job import Job, Outcome, Progress, check_versions, shares
from unskew.engines.likelihood import HeldOutClicks, PartsClickObjective
from unskew.engines.pairwise import HeldOutPairs, PartsObjective
from unskew.engines.reporting import Reporter
from unskew.errors import EngineError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.keys import key_hashes
from unskew.log.parts import Parts, two_parts
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.preparation import ClickSettings
from unskew.rankers.click_model.training import LikelihoodTraining, Start
from unskew.rankers.inputs import aligned
from unskew.rankers.lambdamart.training import TreeTraining
from unskew.rankers.training import Rounds, TrainingRound, train
from unskew.threads import threads
from unskew.trees.xgboost_trees import refuse_missing_gpu

_HeldOut = HeldOutPairs | HeldOutClicks


def work(job: Job, worker: int, n_workers: int, tracker: Mapping[str, Any]) -> Outcome:
    """Train as worker number ``worker`` of ``n_workers``; every worker returns the same outcome."""
    from xgboost import collective

    check_versions(job.versions, f"worker {worker}")
    refuse_missing_gpu(job.parameters)
    # One worker has nobody to talk to.
    talk: Any = nullcontext()
    if n_workers > 1:
        talk = collective.CommunicatorContext(**tracker, dmlc_task_id=f"{worker:06d}")
    with warnings.catch_warnings():
        # A worker may well have no part.
        warnings.filterwarnings("ignore", message=".*Empty dataset at worker.*")
        with talk, threads(job.parameters.get("nthread")), _cache(job) as cache:
            return _Worker(job, Group(), worker, n_workers, cache).run()


@contextmanager
def _cache(job: Job) -> Iterator[Path | None]:
    if job.external_memory is None:
        yield None
        return
    job.external_memory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="unskew-bins-", dir=job.external_memory) as folder:
        yield Path(folder)


class _Worker:
    """One worker with its parts."""

    def __init__(
        self, job: Job, group: Group, worker: int, n_workers: int, cache: Path | None
    ) -> None:
        self.job, self.group = job, group
        self.mine = shares(job.parts, n_workers)[worker]
        self.n_parts = len(job.parts)
        self.held: list[int] = []
        if job.held_out is not None:
            self.held = shares(job.held_out, n_workers)[worker]
        # Features go straight into bins; the objectives need the pages and patterns alone.
        self.parts = {number: job.parts.without_features(number) for number in self.mine}
        self._check_disjoint()
        self.grower = SharedGrower(
            group, self._part_features(), dict(job.parameters),
            sampling=Sampling(job.bagging_fraction, job.feature_fraction, job.seed), cache=cache,
            continued=job.trees if job.progress is None else job.progress.trees,
        )  # fmt: skip

    def _part_features(self) -> PartFeatures:
        parts = self.job.parts

        def load(number: int) -> Features:
            return parts[number].features

        return PartFeatures(
            self.mine, self.n_parts, parts.feature_names, dict(parts.categories), load
        )

    def _check_disjoint(self) -> None:
        """Refuse parts, of whatever workers, of which two hold sessions of one query."""
        parts = self.job.parts
        most = max((entry.counts["queries"] for entry in parts.entries), default=0)
        hashes = {}
        for number, data in self.parts.items():
            # The upper 52 bits as a whole number, which a float holds exactly; 0 is for no query.
            row = np.zeros(most)
            row[: data.n_queries] = (key_hashes(data.queries) >> np.uint64(12)).astype(float) + 1.0
            hashes[number] = row
        told = self.group.matrix(hashes, self.n_parts, (most,))
        values, count = np.unique(told[told > 0], return_counts=True)
        for value in values[count > 1]:
            owners, places = np.nonzero(told == value)
            queries = [
                parts.without_features(int(owner)).queries.tolist()[place]
                for owner, place in zip(owners, places, strict=True)
            ]
            # Two queries may share a hash, though hardly ever.
            if owners[0] != owners[1] and queries[0] == queries[1]:
                raise two_parts(queries[0], *(parts.entries[int(k)].name for k in owners[:2]))

    # The rounds -----------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """All rounds, and what they left."""
        job = self.job
        pairwise = job.ranker == "lambdamart"
        training, watch = self._pairwise() if pairwise else self._clicks()
        rounds = self._rounds(watch)
        done = len(rounds.biases)
        training.n_trees = training.done_before = job.done_before + done
        training.n_rounds = job.n_rounds - done
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = train(
                training, validation=cast(Any, watch), held_out=self._held_out_rows(),
                patience=job.patience,
                callbacks=[*self._callbacks(training, watch, rounds)], rounds=rounds,
            )  # fmt: skip
        remarks = [str(one.message) for one in caught if one.category is UserWarning]
        return self._outcome(training, found, remarks)

    def _pairwise(self) -> tuple[TreeTraining, HeldOutPairs | None]:
        job = self.job
        objective = PartsObjective(
            self.group, self.parts, self.n_parts, bias=self._bias(), sigma=job.sigma, p=job.p,
            sides=job.sides,
        )  # fmt: skip
        training = TreeTraining(self.grower, cast(Any, objective), n_rounds=job.n_rounds)
        if job.held_out is None:
            return training, None
        held = HeldOutPairs(
            self.group, self._held_parts(), len(job.held_out), n_positions=len(job.bias),
            sigma=job.sigma,
        )  # fmt: skip
        return training, held

    def _clicks(self) -> tuple[LikelihoodTraining, HeldOutClicks | None]:
        job = self.job
        assert job.click is not None, "a click model has its settings"  # noqa: S101
        settings = job.click
        if job.progress is not None:
            settings = _resumed(settings, job.progress)
        objective = PartsClickObjective(
            self.group, self.parts, self.n_parts, settings, job.parts.contexts
        )
        if job.progress is not None:
            objective.go_on(job.progress.documents)
        n = objective.n_documents
        start = Start(objective, np.arange(n), n, objective.offset, settings.most_looks)
        training = LikelihoodTraining(self.grower, start, n_rounds=job.n_rounds)
        if job.held_out is None:
            return training, None
        held = objective.held_out(self._held_parts(), len(job.held_out))
        training.watch = cast(Any, held)
        return training, held

    def _bias(self) -> PositionBias:
        progress = self.job.progress
        if progress is None or not len(progress.t_plus):
            return self.job.bias
        return PositionBias(progress.t_plus[-1], progress.t_minus[-1])

    def _rounds(self, watch: _HeldOut | None) -> Rounds:
        """The rounds up to now, if this training was broken off before."""
        rounds, progress = Rounds(), self.job.progress
        if progress is None:
            return rounds
        rounds.biases = [
            PositionBias(plus, minus)
            for plus, minus in zip(progress.t_plus, progress.t_minus, strict=True)
        ]
        rounds.models = list(progress.models)
        if isinstance(watch, HeldOutPairs):
            watch.losses = list(progress.looks)
        elif isinstance(watch, HeldOutClicks):
            watch.likelihoods = progress.looks.tolist()
            watch.without_a_tree = progress.without_a_tree or watch.without_a_tree
        return rounds

    def _held_parts(self) -> Mapping[int, Impressions]:
        held_out = self.job.held_out
        assert held_out is not None, "only asked for where parts are held out"  # noqa: S101
        return {number: held_out.without_features(number) for number in self.held}

    def _held_out_rows(self) -> npt.NDArray[np.floating] | None:
        held_out = self.job.held_out
        if held_out is None:
            return None
        names = self.job.parts.feature_names
        rows = [_aligned(held_out, number, self.job.parts) for number in self.held]
        return np.concatenate(rows) if rows else np.empty((0, len(names)), dtype=np.float32)

    def _callbacks(self, training: Any, watch: _HeldOut | None, rounds: Rounds) -> Iterator[Any]:
        job, group = self.job, self.group
        first = group.rank == 0
        reporter = Reporter(None if job.report is None or not first else dict(job.report))

        def report(seen: TrainingRound) -> bool:
            if job.checkpoints is not None and seen.number % job.checkpoint_every == 0:
                documents = self._of_documents(training)
                if first:
                    progress = self._progress(training, watch, rounds)
                    write_checkpoint(
                        job.checkpoints, replace(progress, documents=documents), job.key
                    )
            return bool(group.told_by_first(reporter(seen) if first else None))

        yield report

    def _of_documents(self, training: Any) -> FloatArray | None:
        """What the click model learned of each document; all workers ask at the same time."""
        if not isinstance(training, LikelihoodTraining):
            return None
        return cast(PartsClickObjective, training.objective).of_documents()

    def _progress(self, training: Any, watch: _HeldOut | None, rounds: Rounds) -> Progress:
        looks: Any = []
        without = None
        if isinstance(watch, HeldOutPairs):
            looks = watch.losses
        elif isinstance(watch, HeldOutClicks):
            looks, without = watch.likelihoods, watch.without_a_tree
        return Progress(
            training.n_trees, self.grower.raw(training.n_trees),
            np.array([bias.t_plus for bias in rounds.biases]),
            np.array([bias.t_minus for bias in rounds.biases]),
            np.array(looks), list(rounds.models), getattr(training, "offset", None), without,
        )  # fmt: skip

    # What it gives --------------------------------------------------------------------------------

    def _outcome(self, training: Any, rounds: Rounds, remarks: list[str]) -> Outcome:
        job = self.job
        n_before = job.done_before
        model = rounds.model
        if model is None:
            model = training.model()
            n_trees = n_before
        else:
            n_trees = model if isinstance(model, int) else model.n_trees
        trees = self.grower.raw(max(1, n_trees))
        self._check_same(trees)
        return Outcome(
            trees=trees, model=model, biases=rounds.biases[: rounds.kept],
            measures=rounds.measures, best=rounds.best, bias=training.bias, shown=self._shown(),
            offset=getattr(training, "offset", None), remarks=remarks,
        )  # fmt: skip

    def _check_same(self, trees: bytes) -> None:
        """Refuse a model that is not the same on every worker: that would be a fault of ours."""
        mine = hashlib.sha256(trees).hexdigest()
        first = self.group.told_by_first(mine)
        if first != mine:
            raise EngineError(
                f"worker {self.group.rank} has another model than the first worker: report this "
                "as an error of Unskew, and train on one worker meanwhile"
            )

    def _shown(self) -> FloatArray:
        """Impressions and clicks of each position over all parts."""
        n = len(self.job.bias)
        mine = {}
        for number, data in self.parts.items():
            rows = np.zeros((2, n))
            if len(data.patterns):
                at = shown_by_position(data, n)
                rows[:, : len(at.clicks)] = at.impressions, at.clicks
            mine[number] = rows
        return self.group.add(mine, self.n_parts, (2, n))


def _resumed(settings: ClickSettings, progress: Progress) -> ClickSettings:
    click_model = progress.models[-1].click_model
    return replace(settings, earlier=click_model, offset=progress.offset)


def _aligned(held_out: Parts, number: int, parts: Parts) -> npt.NDArray[np.floating]:
    """The features of a held-out part with the columns and codes of the training parts."""
    features = held_out[number].features
    return aligned(features, parts.feature_names, parts.categories)
