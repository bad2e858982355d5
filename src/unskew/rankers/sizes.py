"""Sizes that follow the data: how many trees, how many leaves, where the caller says nothing.

Trees that suit a log of a hundred thousand documents know a log of a thousand by heart. The rules are
square roots of the number of distinct documents that were shown: the paper's 300 trees are reached at
3,600 documents and its 31 leaves at 78,000, which is what logs of that kind have and what the paper's
algorithm was made for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# The paper's trees: the most that the rules ask for.
MOST_TREES, MOST_LEAVES = 300, 31
FEWEST_TREES, FEWEST_LEAVES = 50, 4
TREES_PER_ROOT, ROOTS_PER_LEAF = 5.0, 9.0


@dataclass(frozen=True)
class TreeSizes:
    """The numbers that a ranker of trees was trained with."""

    n_estimators: int
    num_leaves: int
    min_data_in_leaf: int


def default_trees(n_documents: int) -> int:
    """The number of trees for so many documents: 5 times the square root, from 50 to 300."""
    found = round(TREES_PER_ROOT * float(np.sqrt(n_documents)))
    return min(max(found, FEWEST_TREES), MOST_TREES)


def default_leaves(n_documents: int) -> int:
    """The number of leaves for so many documents: a ninth of the square root, from 4 to 31."""
    found = round(float(np.sqrt(n_documents)) / ROOTS_PER_LEAF)
    return min(max(found, FEWEST_LEAVES), MOST_LEAVES)
