"""The parts of a report, written from the rows of results alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from unskew.paper.runs import Result
from unskew.paper.sections.bias import bias_section
from unskew.paper.sections.claims import claims_section
from unskew.paper.sections.comparison import comparison_section
from unskew.paper.sections.curves import amount_section, degree_section, generalisation_section
from unskew.paper.sections.logging import logging_section
from unskew.paper.sections.peers import peers_section
from unskew.paper.sections.reranking import reranking_section
from unskew.paper.sections.section import StudySection, Table

__all__ = ["SECTIONS", "StudySection", "Table"]

# What writes each section, in the order of the report: the claims, which look at all experiments, and
# one for each experiment. None where the results hold nothing for it.
SECTIONS: Mapping[str, Callable[[Sequence[Result]], StudySection | None]] = {
    "claims": claims_section,
    "table": comparison_section,
    "reranking": reranking_section,
    "bias": bias_section,
    "generalisation": generalisation_section,
    "degree": degree_section,
    "amount": amount_section,
    "logging": logging_section,
    "peers": peers_section,
}
