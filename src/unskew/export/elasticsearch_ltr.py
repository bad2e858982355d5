"""The Elasticsearch LTR plugin.

It follows ``missing`` in the plain form from its releases for 8.12 on, and read a missing value as
0 before. In the raw form it sends a missing value to the right whatever the model says.
"""

from __future__ import annotations

from unskew.export.ltr_plugin import LearningToRankPlugin
from unskew.export.xgboost_forms import DEFAULT, RIGHT, ZERO_VALUE

FORMAT = LearningToRankPlugin(
    "Elasticsearch LTR",
    {"7.0": (ZERO_VALUE, ""), "8.12": (DEFAULT, RIGHT)},
    "upgrade to a release for Elasticsearch 8.12 or later (--version 8.12)",
)
