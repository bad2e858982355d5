"""Exporting a model into a folder, and checking what a reader makes of it."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import StoreError, UnskewError, UsageError
from unskew.export.format import SAMPLES, Exportable, as_json, from_json
from unskew.export.samples import from_samples, sample_rows, standardized_rows, to_samples
from unskew.export.trees import Forest, forest_of
from unskew.places import local_path
from unskew.registry import EXPORTS, ExportEntry, ranker_name
from unskew.store import check_replaceable, read_folder, write_folder

KIND = "export"
_VERSION = 1
_N_SAMPLES = 200

# How far a score may be from the expected one, relative to the largest score or to 1.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Parity:
    """How an exported model compares with the ranker that it came from.

    Attributes
    ----------
    format, version
        The format, and the version whose rules were followed.
    rows
        How many rows were scored.
    difference
        The largest difference of a score.
    scale
        The largest score, at least 1.

    Examples
    --------
    >>> import unskew
    >>> found = unskew.export.Parity("solr", "9.2", rows=200, difference=9e-7, scale=2.5)
    >>> found.agrees
    True

    """

    format: str
    version: str
    rows: int
    difference: float
    scale: float

    @property
    def agrees(self) -> bool:
        """Whether the scores are the same up to a millionth of the largest."""
        return self.difference <= TOLERANCE * self.scale


def export_model(
    ranker: Any,
    to: str,
    path: str | os.PathLike[str],
    *,
    version: str | None = None,
    name: str | None = None,
) -> Path:
    """Write a fitted ranker into a folder in another system's format, with samples beside it.

    ``name`` is what the model is called there, by default the name of the folder. An existing
    folder is replaced only if it holds an export; the names of its files do not change.

    Examples
    --------
    >>> import numpy as np, unskew
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> ranker = unskew.UnbiasedLambdaMART(n_estimators=5, random_state=0, verbose=0)
    >>> ranker = ranker.fit_labels(X, X[:, 0] > 0.5, query=np.arange(300) // 10)
    >>> folder = unskew.export.export_model(ranker, "solr", "for-solr", version="9.4")
    >>> sorted(file.name for file in folder.iterdir())
    ['features.json', 'model.json', 'samples.json', 'unskew.json']

    """
    entry = _entry(to)
    folder = local_path(path, "an export")
    model = _exportable(ranker, entry, version, name or folder.name)
    check_replaceable(folder, KIND)
    contents = dict(entry.load().files(model))
    rows = _sampled(model)
    samples = to_samples(model.names, rows, ranker._predict(rows))
    contents[SAMPLES] = as_json(samples)
    meta = {
        "format": entry.name,
        "format_version": model.version,
        "name": model.name,
        "ranker": type(ranker).__name__,
    }
    files = {name: _writer(content) for name, content in contents.items()}
    write_folder(folder, kind=KIND, version=_VERSION, meta=meta, files=files)
    return folder


def check_export(path: str | os.PathLike[str]) -> Parity:
    """Score the samples of an export with its files, by the reader itself or by its rules.

    Examples
    --------
    >>> import numpy as np, unskew
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> ranker = unskew.UnbiasedLambdaMART(n_estimators=5, random_state=0, verbose=0)
    >>> ranker = ranker.fit_labels(X, X[:, 0] > 0.5, query=np.arange(300) // 10)
    >>> folder = unskew.export.export_model(ranker, "vespa", "for-vespa")
    >>> unskew.export.check_export(folder).agrees
    True

    """
    stored = read_folder(local_path(path, "an export"), kind=KIND, version=_VERSION)
    try:
        entry = _entry(str(stored.meta["format"]))
        rows, expected = from_samples(from_json(stored.files[SAMPLES]))
        version = str(stored.meta["format_version"])
        scores = entry.load().score(stored.files, rows, version)
        difference = float(max(np.max(np.abs(score - expected)) for score in scores.values()))
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
    ) as error:  # fmt: skip
        if isinstance(error, UnskewError):
            raise
        raise StoreError(
            f"{os.fspath(path)} does not describe an export ({error}): export the model again"
        ) from error
    scale = float(max(1.0, np.max(np.abs(expected), initial=0.0)))
    return Parity(entry.name, version, len(rows), difference, scale)


def _entry(name: str) -> ExportEntry:
    if name not in EXPORTS:
        close = difflib.get_close_matches(name, EXPORTS, n=1)
        guess = f" (did you mean {close[0]!r}?)" if close else ""
        raise UsageError(f"there is no format {name!r}{guess}: choose from {', '.join(EXPORTS)}")
    return EXPORTS[name]


def _exportable(ranker: Any, entry: ExportEntry, version: str | None, name: str) -> Exportable:
    if not hasattr(ranker, "_predict"):
        raise UsageError(f"only models can be exported, not {type(ranker).__name__}")
    ranker._check_fitted()
    forest = forest_of(ranker) if hasattr(ranker, "trees_") else None
    if forest is None:
        _check_without_trees(ranker, entry)
    else:
        _check_booster(forest, entry)
    return Exportable(name, ranker, forest, _version(entry, version))


def _check_booster(forest: Forest, entry: ExportEntry) -> None:
    booster = "xgboost" if forest.single else "lightgbm"
    if booster not in entry.boosters:
        raise UsageError(
            f"{entry.title} takes trees of {' and '.join(entry.boosters)} only, and the model was "
            f"grown by {booster}: export to {booster}, or train with booster={entry.boosters[0]!r}"
        )


def _check_without_trees(ranker: Any, entry: ExportEntry) -> None:
    if ranker_name(ranker) in entry.rankers:
        return
    takers = [e.name for e in EXPORTS.values() if ranker_name(ranker) in e.rankers]
    raise UsageError(
        f"{type(ranker).__name__} has no trees, and a model without trees has no place in "
        f"{entry.title} for the means that stand for missing values: export to "
        f"{' or '.join(takers) or 'nothing'}, or serve it with unskew.Scorer"
    )


def _sampled(model: Exportable) -> FloatArray:
    rng = np.random.default_rng(0)
    if model.forest is not None:
        return sample_rows(model.forest, _N_SAMPLES, rng)
    ranker = model.ranker
    return standardized_rows(ranker.standardizer_, model.names, ranker.categories_, _N_SAMPLES, rng)


def _version(entry: ExportEntry, version: str | None) -> str:
    """The known version whose rules hold for the given one: the newest that is not newer."""
    if not entry.versions:
        if version is not None:
            raise UsageError(f"{entry.title} has no versions to choose from: leave --version out")
        return ""
    if version is None:
        return entry.versions[-1]
    wanted = _numbers(version)
    known = f"from {entry.versions[0]} to {entry.newest}.x"
    if wanted is None:
        raise UsageError(
            f"{version!r} is no version of {entry.title}: give numbers such as {entry.versions[-1]}, "
            f"{known}"
        )
    older = [v for v in entry.versions if (_numbers(v) or ()) <= wanted]
    if not older or (entry.newest is not None and wanted[0] > entry.newest):
        nearest = entry.versions[-1] if older else entry.versions[0]
        raise UsageError(
            f"version {version} of {entry.title} is not known: exports are {known}; the nearest "
            f"known rules are those of {nearest}"
        )
    return older[-1]


def _numbers(version: str) -> tuple[int, ...] | None:
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        return None
    return tuple(int(part) for part in version.split("."))


def _writer(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write
