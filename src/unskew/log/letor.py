"""LETOR text: ``grade qid:query feature:value … # docid = name``, plain or gzip."""

from __future__ import annotations

import bz2
import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import DataError
from unskew.log.features import Features
from unskew.log.keys import KeyCoder
from unskew.log.labelled import LabelledData

# A feature of a higher number is a mistake: the features are one matrix.
MOST_FEATURES = 1_000_000

_ENDINGS = (".txt", ".dat", ".letor", ".svm", ".svmlight", ".libsvm")
_INDEX = re.compile(rb"(?<=\s)([0-9]+):")
_DOCID = re.compile(rb"docid\s*=\s*(\S+)")
_LINE = re.compile(
    rb"\s*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?\s+qid:[0-9]+"
    rb"(?:\s+0*[1-9][0-9]*:[-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|nan|inf))*\s*(?:#.*)?$",
    re.IGNORECASE,
)


def is_letor(path: str | os.PathLike[str]) -> bool:
    """Whether a file is LETOR text, by its name."""
    lowered = os.fspath(path).lower()
    return lowered.removesuffix(".gz").removesuffix(".bz2").endswith(_ENDINGS)


def read_letor(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> LabelledData:
    """Read a LETOR file. A feature that a line does not mention is 0, as the format defines.

    Documents are named by ``docid`` in the comment if there is one, else by their line.
    """
    from sklearn.datasets import load_svmlight_file

    file = Path(path)
    if not file.is_file():
        raise DataError(f"{file}: there is no such file; check the path")
    try:
        with _opened(file) as stream:
            matrix, relevance = load_svmlight_file(
                stream, n_features=n_features, dtype=dtype, zero_based=False
            )
    except (ValueError, OSError, EOFError, OverflowError) as error:
        raise _explained(file, error, n_features) from error
    if not len(relevance):
        raise DataError(f"{file}: the file holds not a single line of data")
    query, docs = _ids(file)
    # scikit-learn takes lines without qid, which have no query here.
    if len(query) != len(relevance):
        raise _explained(file, None, n_features)
    _check_size(file, matrix.shape, np.dtype(dtype))
    values = matrix.toarray()
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        row, column = infinite[0]
        raise DataError(
            f"{file}, line {row + 1:,}: feature {column + 1} is infinite. Remedy: cap it."
        )
    names = tuple(str(k) for k in range(1, values.shape[1] + 1))
    return LabelledData.from_rows(Features(values, names), relevance, query, docs)


def _ids(file: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """The query of each line as it is written, and the docids of the comments.

    Queries are integers if all are written like one: 0012 and 12 stay two queries. There are fewer
    of them than lines if a line has none. Docids are None if a line has none.
    """
    queries: list[bytes] = []
    docs: list[str] | None = []
    with _opened(file) as stream:
        for line in stream:
            words = line.split(None, 2)
            if not words or words[0].startswith(b"#"):
                continue
            number = words[1].partition(b"#")[0] if len(words) > 1 else b""
            if number.startswith(b"qid:") and number[4:].isdigit():
                queries.append(number[4:])
            found = (
                _DOCID.search(line, line.find(b"#")) if docs is not None and b"#" in line else None
            )
            if found is None:
                docs = None
            elif docs is not None:
                docs.append(found.group(1).decode("utf-8", "replace"))
    coder = KeyCoder(from_text=True)
    codes = coder.encode(pa.array(queries, pa.binary()).cast(pa.string()))
    return coder.ranked(codes)[0], None if docs is None else np.array(docs, dtype=object)


def _check_size(file: Path, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    """Refuse a matrix that does not fit into memory, with the line of the feature that makes it so."""
    rows, columns = shape
    needed = rows * columns * dtype.itemsize
    if columns <= MOST_FEATURES and needed <= _memory():
        return
    line, _ = _line_of_feature(file, columns)
    # A number of features that no line asks for was given with the call.
    where = f", line {line:,}" if line else f" (n_features={columns})"
    raise DataError(
        f"{file}{where}: feature {columns:,} makes a matrix of {rows:,} by {columns:,} numbers, "
        f"{needed / 2**30:,.1f} GiB (at most {MOST_FEATURES:,} features, and what fits into memory). "
        "Remedy: number the features from 1 without gaps."
    )


def _line_of_feature(file: Path, least: int) -> tuple[int, int]:
    """The first line that has a feature of that number or a higher one, and the number."""
    with _opened(file) as stream:
        for line, text in enumerate(stream, start=1):
            for number in map(int, _INDEX.findall(text.partition(b"#")[0])):
                if number >= least:
                    return line, number
    return 0, 0


def _memory() -> int:
    """The bytes of memory of this machine; without a limit where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**63


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    with openers.get(file.suffix.lower(), open)(file, "rb") as stream:
        yield stream


def _explained(file: Path, error: BaseException | None, n_features: int | None) -> DataError:
    """The first line that is not LETOR text, or what the reader said."""
    number = 0
    try:
        with _opened(file) as stream:
            for number, line in enumerate(stream, start=1):
                text = line.strip()
                if text and not text.startswith(b"#") and not _LINE.match(text):
                    shown = text[:60].decode("utf-8", "replace")
                    return DataError(
                        f"{file}, line {number:,}: {shown!r} is not LETOR text. Required: "
                        "'grade qid:query 1:value 2:value …'. Remedy: correct the line."
                    )
    except (OSError, EOFError) as broken:
        return DataError(
            f"{file}, after line {number:,}: the compressed file is truncated or damaged ({broken}). "
            "Remedy: copy it again."
        )
    if isinstance(error, OverflowError):
        at, feature = _line_of_feature(file, MOST_FEATURES + 1)
        return DataError(
            f"{file}, line {at:,}: there is a feature {feature:,}, and {MOST_FEATURES:,} is the "
            "highest. Remedy: number the features from 1 without gaps."
        )
    limit = f" (n_features={n_features})" if n_features is not None else ""
    return DataError(f"{file}: cannot be read as LETOR text{limit}: {error}")
