"""The errors and warnings of Unskew: what is wrong, where, and what to do about it."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

_PACKAGE = f"{Path(__file__).parent}{os.sep}"


def warn(message: str) -> None:
    """Give a warning at the line by which the user's code called Unskew, however deep it arose."""
    level, frame = 2, sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


class UnskewError(Exception):
    """The base of every error that Unskew raises on purpose.

    Examples
    --------
    >>> import unskew
    >>> try:
    ...     unskew.read_log("no-such-file.parquet")
    ... except unskew.UnskewError as error:
    ...     print(error)
    ...
    no-such-file.parquet: there is no such file; check the path

    """


class DataError(UnskewError, ValueError):
    """The data is wrong: the message names the file, the column, the row and the remedy.

    Examples
    --------
    >>> import unskew
    >>> try:
    ...     unskew.read_log({"session": [1], "query": ["tea"], "item": ["green"], "position": [1]})
    ... except unskew.DataError as error:
    ...     print(str(error)[:50])
    ...
    the log (builtins dict): there is no column 'doc'.

    """


class UsageError(UnskewError, ValueError):
    """The call is wrong: a parameter has a value or a combination that makes no sense.

    Examples
    --------
    >>> import unskew
    >>> try:
    ...     unskew.read_log({"session": [1]}, first_position=2)
    ... except unskew.UsageError as error:
    ...     print(error)
    ...
    first_position must be 0 or 1, got 2

    """


class StoreError(DataError):
    """A folder on disk is not what Unskew saved: truncated, foreign, or from a newer version.

    Examples
    --------
    >>> import unskew
    >>> try:
    ...     unskew.load("no-such-folder")
    ... except unskew.StoreError as error:
    ...     print(type(error).__name__)
    ...
    StoreError

    """


class EngineError(UnskewError, RuntimeError):
    """Workers or a cluster failed: the message names the worker, the reason and how to go on.

    Examples
    --------
    >>> import unskew
    >>> issubclass(unskew.EngineError, unskew.UnskewError)
    True

    """


class MissingDependencyError(UnskewError, ImportError):
    """An optional dependency is needed and absent: the message carries the install line.

    Examples
    --------
    >>> import unskew
    >>> raised = unskew.MissingDependencyError("XGBoost", "xgboost", "booster='xgboost'")
    >>> print(raised)
    booster='xgboost' needs XGBoost, which is not installed: pip install 'unskew[xgboost]'

    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: pip install 'unskew[{extra}]'"
        )
