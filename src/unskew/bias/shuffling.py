"""Shuffling: whether a log shows that its lists were shuffled.

If every list is shuffled anew, where a document stood in one session says nothing about where it
stands in another. Let x be a document's position minus the middle of its page. Over all pairs of
sessions that showed the document for the same query on pages of the same length L,

    correlation = sum of x * x'  /  sum of (x**2 + x'**2) / 2

is 1 for a fixed ranking and 0 on average for shuffled lists. A log of which a share e is shuffled
has about (1 - e)**2. Its standard error, if all lists are shuffled, follows from the variance of a
uniform position, v = (L**2 - 1) / 12: the products of n sessions have the variance
2 * n * (n - 1) * v**2, and the documents of a page, which exclude each other from a position, add
at most the factor L / (L - 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.log.impressions import Impressions

# Lists whose positions correlate more than this, beyond chance, are not shuffled: it is what a tenth
# of ranked sessions among shuffled ones makes.
HIGHEST_CORRELATION = 0.01
# Two standard errors: exceeded by chance once in twenty times.
Z = 2.0
# With a larger standard error than this, a fixed ranking could pass for a shuffled one.
LARGEST_ERROR = 0.25


@dataclass(frozen=True)
class Shuffling:
    """The correlation of a document's positions over sessions, and its standard error by chance.

    Both are NaN where no document was shown twice.
    """

    correlation: float
    standard_error: float

    @property
    def can_tell(self) -> bool:
        """Whether documents are seen often enough to tell shuffled lists from ranked ones."""
        return self.standard_error <= LARGEST_ERROR

    @property
    def shuffled(self) -> bool:
        """Whether the positions look shuffled, give or take chance."""
        return self.correlation <= HIGHEST_CORRELATION + Z * self.standard_error


def shuffling_of(data: Impressions) -> Shuffling:
    """How much a document's place in one session tells about its place in another.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> bool(abs(unskew.bias.shuffling_of(data).correlation) < 0.1)
    True

    """
    pages = data.pages
    length = np.diff(pages.offsets)
    sessions = np.bincount(data.patterns.page, weights=data.patterns.count, minlength=len(pages))
    # Places on the page, not logged positions: gaps in the positions are not movement.
    slot = np.arange(len(pages.document)) - np.repeat(pages.offsets[:-1], length)
    length = np.repeat(length, length)
    x = slot - (length - 1) / 2
    n = np.repeat(sessions, np.diff(pages.offsets))
    document = data.documents.number[pages.document]
    group, first = _groups(document, length)
    seen = np.bincount(group, weights=n)
    total, squares = np.bincount(group, weights=n * x), np.bincount(group, weights=n * x**2)
    size = length[first].astype(np.float64)
    pairs = seen * np.maximum(seen - 1, 0)
    uniform = (size**2 - 1) / 12
    chance = float((2 * pairs * uniform**2 * size / np.maximum(size - 1, 1)).sum())
    # If all documents are always in the middle of their page, the correlation is not defined.
    scale = float((np.maximum(seen - 1, 0) * squares).sum())
    expected = float((pairs * uniform).sum())
    if not (scale > 0 and expected > 0):
        return Shuffling(float("nan"), float("nan"))
    return Shuffling(float((total**2 - squares).sum()) / scale, float(np.sqrt(chance)) / expected)


def _groups(
    document: npt.NDArray[np.int64], length: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The number of every entry's (document, page length), and one entry of each such group."""
    key = document * (int(length.max()) + 1) + length
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return group, first
