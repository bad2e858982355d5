"""`unskew rank`: a model and candidates become ranked candidates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.console import show
from unskew.cli.reading import CandidateInput
from unskew.cli.writing import Overwrite, check_table_output, write_table
from unskew.errors import DataError, UsageError
from unskew.loading import load_ranker

if TYPE_CHECKING:
    import pyarrow as pa


def run(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A folder that train wrote.")],
    candidates: Annotated[
        str,
        typer.Argument(
            metavar="CANDIDATES",
            help="A table (Parquet, CSV, DuckDB): query, doc and the features.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write: Parquet or CSV.")
    ],
    top: Annotated[
        int | None, typer.Option(help="Only the best so many of a query.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    *,
    reading: CandidateInput,
) -> None:
    """Order the candidates of every query by the model's score.

    The result has the columns query, doc, score and rank, each query's best candidate first. Ids
    come out as they came in.
    """
    if top is not None and top < 1:
        raise UsageError(f"--top must be 1 or higher, got {top}")
    check_table_output(out, [model, candidates], overwrite=overwrite)
    ranker = load_ranker(model)
    ids, features = reading.candidates(candidates, ranker)
    ranked = _ranked(ranker, ids, features, top)
    write_table(ranked, out)
    show(f"{ranked.num_rows:,} candidates ranked, written to {out}")


def _ranked(ranker: Any, ids: pa.Table, features: pa.Table, top: int | None) -> pa.Table:
    """The ids with their scores and ranks, each query's best first."""
    import numpy as np

    try:
        code = np.asarray(ids["query"].combine_chunks().dictionary_encode().indices)
    except NotImplementedError as error:
        raise DataError(f"the query column cannot be compared: {error}") from error
    if not len(code):
        return ids.append_column("score", [[]]).append_column("rank", [[]])
    ranking = ranker.rank(features, query=code)
    kept = ranking.rank <= (top or len(code))
    ranked = ids.take(ranking.row[kept]).append_column("score", [ranking.score[kept]])
    return ranked.append_column("rank", [ranking.rank[kept]])
