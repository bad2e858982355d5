"""What a log can tell: facts and sentences about logs that can and cannot separate position."""

from __future__ import annotations

import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias import facts_of


def test_a_fixed_ranking_without_features_tells_nothing():
    """Every position stands apart, and the way out is named."""
    facts = facts_of(log_of(Shown("abc", (1,), 20), Shown("abc", (2, 3), 20)))
    assert not facts.separable
    assert facts.unlinked_positions == (2, 3)
    assert facts.moved_share == 0.0
    assert facts.position_share is None
    assert "no document links position(s) [2, 3] to position 1" in facts.sentences[0]
    assert "shuffle the lists of a small share" in facts.sentences[-1]


def test_documents_that_move_are_counted():
    """A and b were seen at both positions, c at one: 80 of 100 impressions, 50 clicks."""
    facts = facts_of(
        log_of(
            Shown("ab", (1,), 20), Shown("ba", (1, 2), 15), Shown("ba", (), 5), Shown("c", (), 20)
        )
    )
    assert facts.separable
    assert facts.moved_share == pytest.approx(80 / 100)
    assert facts.moved_clicks == 50
    assert any("harvesting and table-em" in sentence for sentence in facts.sentences)


def test_shuffled_lists_are_seen():
    """They need no features and no names."""
    facts = facts_of(simulated(labelled(n_queries=20), sessions=2000)[0])
    assert facts.shuffling.shuffled
    assert any("randomization applies" in sentence for sentence in facts.sentences)
    # Nothing but where documents stood by chance: the features explain none of it.
    assert facts.position_share < 0.05


def test_features_that_follow_the_ranking_still_overlap():
    """A ranker of one feature: it explains most of the position, and not all of it."""
    labels = labelled(n_queries=100)
    data, _ = simulated(labels, sessions=2000, score=labels.features.values[:, 0])
    facts = facts_of(data)
    assert 0.6 < facts.position_share < 0.9
    assert facts.separable
    assert any("regression-em can compare them" in sentence for sentence in facts.sentences)


@pytest.mark.parametrize(
    ("clicked", "sentence"),
    [((), "the log has no click"), ((1, 2), "every result of the log was clicked")],
)
def test_logs_of_nothing_and_of_everything(clicked, sentence):
    """Both are said first, and neither is separable."""
    facts = facts_of(log_of(Shown("ab", clicked, 20), Shown("ba", clicked, 20)))
    assert sentence in facts.sentences[0]
    assert not facts.separable


def test_contexts_are_counted():
    """How many sessions each context has."""
    facts = facts_of(log_of(Shown("ab", (1,), 3, context="x"), Shown("ba", (2,), 1, context="y")))
    assert facts.contexts == {"x": 3, "y": 1}
