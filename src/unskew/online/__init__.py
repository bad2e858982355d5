"""Comparing rankers on live traffic and by human judgement: A/B tests, interleaving, judging."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names

if TYPE_CHECKING:
    from unskew.online import judging as judging
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

__all__, __getattr__, __dir__ = lazy_names(__name__)
