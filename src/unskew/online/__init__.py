"""Comparing rankers on live traffic and by human judgement: A/B tests, interleaving, judging."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unskew.online.ab import ABReading as ABReading
    from unskew.online.ab import read_ab as read_ab
    from unskew.online.interleaving import Mixed as Mixed
    from unskew.online.interleaving import competitive_pairs as competitive_pairs
    from unskew.online.interleaving import probabilistic as probabilistic
    from unskew.online.interleaving import team_draft as team_draft
    from unskew.online.power import Plan as Plan
    from unskew.online.power import plan_ab as plan_ab
    from unskew.online.preference import InterleavingReading as InterleavingReading
    from unskew.online.preference import read_interleaving as read_interleaving
    from unskew.online.rankings import mix_rankings as mix_rankings

# Each public name and the module it lives in; they load on first use.
_HOME = {
    "ABReading": "unskew.online.ab",
    "InterleavingReading": "unskew.online.preference",
    "Mixed": "unskew.online.interleaving",
    "Plan": "unskew.online.power",
    "competitive_pairs": "unskew.online.interleaving",
    "mix_rankings": "unskew.online.rankings",
    "plan_ab": "unskew.online.power",
    "probabilistic": "unskew.online.interleaving",
    "read_ab": "unskew.online.ab",
    "read_interleaving": "unskew.online.preference",
    "team_draft": "unskew.online.interleaving",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unskew.online' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
