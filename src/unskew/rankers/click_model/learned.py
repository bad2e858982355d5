"""LearnedClickModel: the parameters of a click model, apart from any log and any document."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.cells import States, pattern_rows
from unskew.clicks.fitting.chain import ChainForm, ChainLikelihood, ChainParameters
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.log.impressions import Impressions

__all__ = ["CHAINS", "MODELS", "LearnedClickModel", "follow", "new_likelihood", "tempered"]

FloatArray = npt.NDArray[np.float64]

CHAINS = {
    "dbn": ChainForm("document", "one"),
    "dcm": ChainForm("none", "after click"),
    "cascade": ChainForm("share", "one"),
}
# The click models that have a likelihood.
MODELS = ("pbm", "ubm", "trust", "contextual", *CHAINS)


def new_likelihood(
    name: str,
    data: Impressions,
    *,
    n_positions: int,
    n_contexts: int = 0,
    mass: FloatArray | None = None,
) -> ClickLikelihood:
    """A click model of the registry on a log, before it has learned anything."""
    rows, n = pattern_rows(data, mass), len(data.documents)
    if name in CHAINS:
        return ChainLikelihood(rows, CHAINS[name], n_documents=n, n_positions=n_positions)
    states = _states(name, n_positions, n_contexts)
    return AffineLikelihood(rows, states, n_documents=n, with_base=name == "trust")


def _states(name: str, n_positions: int, n_contexts: int) -> States:
    if name == "ubm":
        return States.by_last_click(n_positions)
    if name == "contextual":
        return States.by_context(n_positions, n_contexts)
    return States.by_position(n_positions)


def follow(follower: ClickLikelihood, leader: ClickLikelihood) -> None:
    """Give one likelihood the parameters of another of the same model, on other clicks."""
    _take(follower, _parameters(leader))


def tempered(likelihood: ClickLikelihood, p: float) -> ClickLikelihood:
    """The same clicks with the examination to the power of ``1 / (p + 1)``, relative to its highest.

    With p = 0 it is the likelihood itself; the higher p, the less of the clicks is put down to where
    results stood.
    """
    if p == 0 or not isinstance(likelihood, AffineLikelihood):
        return likelihood
    found = copy.copy(likelihood)
    base = _flattened(likelihood.base, p)
    found.slope = np.minimum(base + _flattened(likelihood.slope - likelihood.base, p), 1.0)
    found.base = base
    return found


def _flattened(curve: FloatArray, p: float) -> FloatArray:
    highest = curve.max()
    if not highest > 0:
        return curve
    flat: FloatArray = highest * (np.maximum(curve, 0.0) / highest) ** (1.0 / (p + 1.0))
    return flat


@dataclass(frozen=True, eq=False)
class LearnedClickModel:
    """What a click model learned of how users read a page.

    Attributes
    ----------
    name
        The model's name in the registry.
    n_positions
        Positions beyond it share its parameters.
    contexts
        The contexts with parameters of their own.
    parameters
        Examination by state, chances to walk on, satisfaction, trust: as the model has them. Of a
        satisfaction that differs by document the mean is kept.

    """

    name: str
    n_positions: int
    contexts: tuple[Any, ...]
    parameters: Mapping[str, FloatArray]

    @classmethod
    def of(
        cls, name: str, likelihood: ClickLikelihood, n_positions: int, contexts: tuple[Any, ...]
    ) -> Self:
        """The present parameters of a likelihood."""
        return cls(name, n_positions, contexts, _parameters(likelihood))

    def on(self, data: Impressions, mass: FloatArray | None = None) -> ClickLikelihood:
        """The model with these parameters on the clicks of any log."""
        found = new_likelihood(
            self.name, with_contexts(data, self.contexts), n_positions=self.n_positions,
            n_contexts=len(self.contexts), mass=mass,
        )  # fmt: skip
        _take(found, self.parameters)
        return found

    def table(self) -> dict[str, Any]:
        """The parameters with the states they belong to, as columns of equal length, and numbers."""
        found: dict[str, Any] = dict(self.parameters)
        if "examination" not in found:
            return found
        states = _states(self.name, self.n_positions, len(self.contexts))
        columns: dict[str, Any] = {"position": states.position}
        if states.last_click is not None:
            columns["last_click"] = states.last_click
        if states.context is not None:
            names = [*self.contexts, None]
            columns["context"] = [names[index] for index in states.context]
        return {**columns, **found}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "n_positions": self.n_positions,
            "contexts": list(self.contexts),
            "parameters": {key: value.tolist() for key, value in self.parameters.items()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        parameters = {key: np.asarray(value) for key, value in content["parameters"].items()}
        contexts = tuple(content["contexts"])
        return cls(content["name"], content["n_positions"], contexts, parameters)


def with_contexts(data: Impressions, contexts: tuple[Any, ...]) -> Impressions:
    """The same log with its sessions' contexts numbered as these; others count as none."""
    if tuple(data.contexts.tolist()) == contexts:
        return data
    number = {name: index for index, name in enumerate(contexts)}
    codes = [number.get(name, -1) for name in data.contexts.tolist()]
    context = np.array([*codes, -1], dtype=np.int32)[data.patterns.context]
    patterns = replace(data.patterns, context=context)
    return replace(data, contexts=np.array(contexts, dtype=object), patterns=patterns)


def _parameters(likelihood: ClickLikelihood) -> dict[str, FloatArray]:
    if isinstance(likelihood, AffineLikelihood):
        found = {"examination": likelihood.slope}
        return {**found, "trust": likelihood.base} if likelihood.with_base else found
    if isinstance(likelihood, ChainLikelihood):
        now = likelihood.present
        mean = float(now.satisfaction.mean()) if len(now.satisfaction) else 0.0
        return {
            "after_click": now.after_click, "after_skip": now.after_skip,
            "share": np.array(now.share), "satisfaction": np.array(mean),
        }  # fmt: skip
    raise NotImplementedError


def _take(likelihood: ClickLikelihood, parameters: Mapping[str, FloatArray]) -> None:
    if isinstance(likelihood, AffineLikelihood):
        likelihood.slope = parameters["examination"]
        likelihood.base = parameters.get("trust", np.zeros(len(likelihood.slope)))
    elif isinstance(likelihood, ChainLikelihood):
        likelihood.present = ChainParameters(
            satisfaction=np.full(likelihood.n_documents, float(parameters["satisfaction"])),
            share=float(parameters["share"]),
            after_click=parameters["after_click"],
            after_skip=parameters["after_skip"],
        )
