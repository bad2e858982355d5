"""Side-by-side judging: a web page for assessors, and what their answers say."""

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names

if TYPE_CHECKING:
    from unskew.online.judging.answers import Answer as Answer
    from unskew.online.judging.database import Database as Database
    from unskew.online.judging.rankings import Ranking as Ranking
    from unskew.online.judging.rankings import read_ranking as read_ranking
    from unskew.online.judging.results import Results as Results
    from unskew.online.judging.results import SignTest as SignTest
    from unskew.online.judging.results import read_results as read_results
    from unskew.online.judging.results import sign_test as sign_test
    from unskew.online.judging.study import Study as Study
    from unskew.online.judging.study import make_study as make_study

__all__, __getattr__, __dir__ = lazy_names(__name__)
