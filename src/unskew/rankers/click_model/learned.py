"""LearnedClickModel: the parameters of a click model, apart from any log and any document."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.cells import States
from unskew.clicks.fitting.chain import ChainLikelihood
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.log.impressions import Impressions
from unskew.registry import CLICK_MODELS

# The parameters of models of a chain and how many each has; 0 is one for each position.
_CHAINS: dict[str, dict[str, int]] = {
    "cascade": {"continuation": 1, "satisfaction_share": 1},
    "dbn": {"continuation": 1, "satisfaction": 1},
    "dcm": {"continuation": 0},
}
_MOST_POSITIONS = 10_000_000


def follow(follower: ClickLikelihood, leader: ClickLikelihood) -> None:
    """Give one likelihood the parameters of another of the same model, on other clicks."""
    _take(follower, _parameters(leader))


def tempered(likelihood: ClickLikelihood, p: float) -> ClickLikelihood:
    """The same clicks with the examination to the power of ``1 / (p + 1)``, relative to its highest.

    With p = 0 it is the likelihood itself; the higher p, the less of the clicks is put down to where
    results stood. Chains have no curve to take a power of.
    """
    if p == 0 or not isinstance(likelihood, AffineLikelihood):
        return likelihood
    _ = likelihood.cells  # counted once, not in every copy
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
        satisfaction that differs by document, that of a document without clicks is kept.

    """

    name: str
    n_positions: int
    contexts: tuple[Any, ...]
    parameters: Mapping[str, FloatArray]

    @classmethod
    def of(cls, name: str, likelihood: ClickLikelihood, n_positions: int) -> Self:
        """The present parameters of a likelihood."""
        contexts = likelihood.states.contexts if isinstance(likelihood, AffineLikelihood) else ()
        return cls(name, n_positions, contexts, _parameters(likelihood))

    def on(self, data: Impressions, mass: FloatArray | None = None) -> ClickLikelihood:
        """The model with these parameters on the clicks of any log; new contexts count as none."""
        clicks = LogClicks(data, mass)
        found: ClickLikelihood
        if self.contexts:
            found = AffineLikelihood(clicks, self._states())
        else:
            kind = CLICK_MODELS[self.name].load()
            found = kind.likelihood(clicks, n_positions=self.n_positions)
        _take(found, self.parameters)
        return found

    def columns(self) -> dict[str, Any]:
        """The parameters; an examination comes with the columns of what it depends on."""
        found: dict[str, Any] = dict(self.parameters)
        if "examination" not in found:
            return found
        states = self._states()
        columns: dict[str, Any] = {"position": states.position}
        if states.last_click is not None:
            columns["last_click"] = states.last_click
        if states.context is not None:
            names = [*self.contexts, None]
            columns["context"] = [names[index] for index in states.context]
        return {**columns, **found}

    def _states(self) -> States:
        """What each entry of an examination stands for."""
        if self.contexts:
            return States.by_context(self.n_positions, np.array(self.contexts, dtype=object))
        if self.name == "ubm":
            return States.by_last_click(self.n_positions)
        return States.by_position(self.n_positions)

    @property
    def _n_states(self) -> int:
        """How many states there are, without listing them."""
        n = self.n_positions
        if self.contexts:
            return n * (len(self.contexts) + 1)
        return n * (n + 1) // 2 if self.name == "ubm" else n

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
        """The inverse of `to_dict`; a ValueError for anything that could not be used on a log."""
        parameters = {
            key: np.asarray(value, dtype=np.float64) for key, value in content["parameters"].items()
        }
        contexts = tuple(content["contexts"])
        found = cls(content["name"], content["n_positions"], contexts, parameters)
        found._check()
        return found

    def _check(self) -> None:
        """Kernels index the parameters without looking: all must be there, as long as they expect."""
        if not isinstance(self.name, str) or self.name not in CLICK_MODELS:
            raise ValueError(f"{self.name!r} is no click model")
        if type(self.n_positions) is not int or not 1 <= self.n_positions <= _MOST_POSITIONS:
            raise ValueError(f"n_positions must be a whole number, got {self.n_positions!r}")
        if not {type(one) for one in self.contexts} <= {int, str}:
            raise ValueError("contexts must be texts or whole numbers")
        if len(set(self.contexts)) != len(self.contexts):
            raise ValueError("a context stands twice")
        chain = _CHAINS.get(self.name)
        if chain is None:
            names = ("examination", "trust") if self.name == "trust" else ("examination",)
            wanted = dict.fromkeys(names, self._n_states)
        else:
            wanted = {name: size or self.n_positions for name, size in chain.items()}
        if {name: value.shape for name, value in self.parameters.items()} != {
            name: (size,) for name, size in wanted.items()
        }:
            raise ValueError(f"the parameters of {self.name} must be {wanted}")
        for name, value in self.parameters.items():
            if not ((value >= 0) & (value <= 1)).all():
                raise ValueError(f"{name} must be from 0 to 1")


def _parameters(likelihood: ClickLikelihood) -> dict[str, FloatArray]:
    if isinstance(likelihood, ChainLikelihood):
        now, form = likelihood.present, likelihood.form
        walk = now.after_click[:1] if form.walk == "one" else now.after_click
        satisfaction = {
            "none": {},
            "share": {"satisfaction_share": np.array([now.share])},
            "document": {"satisfaction": np.array([now.typical])},
        }
        return {"continuation": walk, **satisfaction[form.satisfaction]}
    if isinstance(likelihood, AffineLikelihood) and likelihood.with_base:
        return {"examination": likelihood.slope, "trust": likelihood.base}
    return {"examination": likelihood.own()}


def _take(likelihood: ClickLikelihood, parameters: Mapping[str, FloatArray]) -> None:
    """Set a model's own parameters; what is known of documents in general holds for each of them."""
    found = dict(parameters)
    if "satisfaction" in found:
        found["satisfaction"] = np.repeat(found["satisfaction"], likelihood.n_documents)
    likelihood.set_own(np.concatenate(list(found.values())))
