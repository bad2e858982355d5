"""Pooling of documents that moved with another estimate, and how much clicks vary, by their twins."""

from __future__ import annotations

import numpy as np
import pytest

from shown import Shown, log_of
from unskew.bias.balance import dispersion_of
from unskew.bias.cells import Cells
from unskew.bias.conditional import conditional_examination, pooled_examination
from unskew.bias.reference import dispersion, pooled_likelihood

DATA = log_of(
    Shown("abc", (1,), 30), Shown("bca", (2,), 20), Shown("cab", (1, 2), 25), Shown("acb", (3,), 10),
    Shown("ab", (2,), 15, query="r", weight=0.5), Shown("ba", (1,), 25, query="r"),
)  # fmt: skip
OTHER = np.array([1.0, 0.8, 0.2])
# What another estimate may know: how the three compare, and nothing about their common scale.
TOLD = 12.0 * np.array([[2.0, -1.0, -1.0], [-1.0, 1.5, -0.5], [-1.0, -0.5, 1.5]])


def moving() -> Cells:
    """The cells of the documents."""
    return Cells.of(DATA, by_version=False)


def test_the_pooled_curve_maximises_the_readable_likelihood():
    """In every direction the twin's likelihood is flat at the pooled curve, and falls away from it."""
    sessions = list(DATA.sessions())
    theta = pooled_examination(moving(), OTHER, TOLD)
    best = pooled_likelihood(sessions, theta.tolist(), OTHER.tolist(), TOLD.tolist())
    for k in range(3):
        for step in (0.05, -0.05):
            near, far = (theta * np.exp(step * scale * (np.arange(3) == k)) for scale in (1e-3, 1))
            value = pooled_likelihood(sessions, near.tolist(), OTHER.tolist(), TOLD.tolist())
            assert value == pytest.approx(best, abs=1e-6)
            assert pooled_likelihood(sessions, far.tolist(), OTHER.tolist(), TOLD.tolist()) < best


def test_the_ends_of_pooling():
    """Without other information it is the curve of the documents, with much of it the other one."""
    alone = conditional_examination(moving())
    assert pooled_examination(moving(), OTHER, 0.0 * TOLD) == pytest.approx(alone, rel=1e-5)
    assert pooled_examination(moving(), OTHER, 1e6 * TOLD) == pytest.approx(OTHER, rel=1e-3)


def test_without_a_document_that_moved_it_is_the_other_estimate():
    """A fixed ranking adds nothing, and a position at 0 stays there."""
    fixed = log_of(Shown("abc", (1,), 30), Shown("abc", (3,), 20))
    theta = np.array([1.0, 0.0, 0.4])
    found = pooled_examination(Cells.of(fixed, by_version=False), theta, TOLD)
    assert found == pytest.approx(theta)


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_the_dispersion_equals_the_readable_twin(scale):
    """Summed over sessions or over cells, whatever the scale of the relevance."""
    cells = moving()
    documents = DATA.documents
    relevance = scale * np.linspace(0.1, 0.9, DATA.n_documents)
    names = zip(DATA.queries[documents.query].tolist(), documents.doc.tolist(), strict=True)
    by_name = {
        name: relevance[number]
        for name, number in zip(names, documents.number.tolist(), strict=True)
    }
    twin = dispersion(list(DATA.sessions()), {1: 1.0, 2: 0.8, 3: 0.2}, by_name)
    assert dispersion_of(cells, OTHER, relevance) == pytest.approx(twin)
    assert twin > 1.0


def test_clicks_as_expected_are_not_dispersed():
    """Clicks that equal their expectation vary less than by chance: the factor is 1."""
    data = log_of(Shown("ab", (1,), 40), Shown("ab", (2,), 20), Shown("ab", (), 40))
    cells = Cells.of(data)
    assert dispersion_of(cells, np.array([1.0, 0.5]), np.array([0.4, 0.4])) == 1.0
