"""The errors of Unskew: what is wrong, where, and what to do about it."""

from __future__ import annotations


class UnskewError(Exception):
    """The base of every error that Unskew raises on purpose."""


class DataError(UnskewError, ValueError):
    """The data is wrong: the message names the file, the column, the row and the remedy."""


class UsageError(UnskewError, ValueError):
    """The call is wrong: a parameter has a value or a combination that makes no sense."""


class StoreError(DataError):
    """A folder on disk is not what Unskew saved: truncated, foreign, or from a newer version."""


class EngineError(UnskewError, RuntimeError):
    """Workers or a cluster failed: the message names the worker, the reason and how to go on."""


class MissingDependencyError(UnskewError, ImportError):
    """An optional dependency is needed and absent: the message carries the install line."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: pip install 'unskew[{extra}]'"
        )
