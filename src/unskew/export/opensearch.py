"""The learning-to-rank plugin of OpenSearch.

A missing value was 0 before 3.3, went to the right whatever the model said until 3.7, and goes
where the model says from 3.8 on.
"""

from __future__ import annotations

from unskew.export.ltr_plugin import LearningToRankPlugin
from unskew.export.xgboost_forms import DEFAULT, RIGHT, ZERO_VALUE

FORMAT = LearningToRankPlugin(
    "OpenSearch learning-to-rank",
    {
        "2.0": (ZERO_VALUE, ""),
        "3.0": (ZERO_VALUE, ZERO_VALUE),
        "3.3": (RIGHT, RIGHT),
        "3.8": (DEFAULT, DEFAULT),
    },
    "upgrade to OpenSearch 3.3 or later (--version 3.3)",
)
