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

from unskew.errors import DataError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData

_ENDINGS = (".txt", ".dat", ".letor", ".svm", ".svmlight", ".libsvm")
_DOCID = re.compile(rb"docid\s*=\s*(\S+)")
_LINE = re.compile(
    rb"\s*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?\s+qid:[0-9]+"
    rb"(?:\s+[0-9]+:[-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|nan|inf))*\s*(?:#.*)?$",
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
            matrix, relevance, query = load_svmlight_file(
                stream, n_features=n_features, dtype=dtype, zero_based=False, query_id=True
            )
    except (ValueError, OSError, EOFError) as error:
        raise _explained(file, error, n_features) from error
    if not len(query):
        raise DataError(f"{file}: the file holds not a single line of data")
    # scikit-learn gives lines without qid: one query number, or fewer numbers than lines.
    if len(query) != len(relevance):
        raise _explained(file, None, n_features)
    values = matrix.toarray()
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        row, column = infinite[0]
        raise DataError(
            f"{file}, line {row + 1:,}: feature {column + 1} is infinite. Remedy: cap it."
        )
    names = tuple(str(k) for k in range(1, values.shape[1] + 1))
    return LabelledData.from_rows(
        Features(values, names), relevance, query, _docs(file, len(query))
    )


def _docs(file: Path, n: int) -> npt.NDArray[Any] | None:
    """The docids of the comments, or None where a line has none."""
    docs: list[str] = []
    with _opened(file) as stream:
        for line in stream:
            if not line.strip() or line.lstrip().startswith(b"#"):
                continue
            found = _DOCID.search(line, line.find(b"#")) if b"#" in line else None
            if found is None:
                return None
            docs.append(found.group(1).decode("utf-8", "replace"))
    return np.array(docs, dtype=object) if len(docs) == n else None


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
    limit = f" (n_features={n_features})" if n_features is not None else ""
    return DataError(f"{file}: cannot be read as LETOR text{limit}: {error}")
