"""`unskew rank`: a model and candidates become ranked candidates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.console import output

if TYPE_CHECKING:
    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART


def run(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A folder that train wrote.")],
    candidates: Annotated[
        str,
        typer.Argument(metavar="CANDIDATES", help="Parquet or CSV: query, doc and the features."),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Where to write: Parquet or CSV.")
    ],
    query: Annotated[str, typer.Option(help="The query column.")] = "query",
    doc: Annotated[str, typer.Option(help="The document column.")] = "doc",
    top: Annotated[int | None, typer.Option(help="Only the best so many of a query.")] = None,
) -> None:
    """Order the candidates of every query by the model's score.

    The result has the columns query, doc, score and rank, each query's best candidate first.
    """
    from unskew.errors import UsageError
    from unskew.loading import load

    if top is not None and top < 1:
        raise UsageError(f"--top must be 1 or higher, got {top}")
    _check_kind(out, "--out")
    ranker = load(model)
    if not hasattr(ranker, "rank"):
        raise UsageError(f"{model} is not a model: it holds {type(ranker).__name__}")
    table = _read(candidates, ranker, query, doc)
    ranking = ranker.rank(
        _matrix(table, ranker),
        query=table[query].combine_chunks(),
        doc=table[doc].combine_chunks(),
    ).to_arrow()
    if top is not None:
        import pyarrow.compute as compute

        ranking = ranking.filter(compute.less_equal(ranking["rank"], top))
    _write(ranking, out)
    output.print(f"{ranking.num_rows:,} candidates ranked, written to {out}", highlight=False)


def _check_kind(path: str, what: str) -> str:
    from unskew.errors import UsageError

    kind = Path(path).suffix.lower()
    if kind not in {".parquet", ".csv"}:
        raise UsageError(f"{what} must end in .parquet or .csv, got {path!r}")
    return kind


def _read(path: str, ranker: UnbiasedLambdaMART, query: str, doc: str) -> Any:
    """The candidates, with every column that is needed."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    from unskew.errors import DataError

    read = {".parquet": parquet.read_table, ".csv": csv.read_csv}[_check_kind(path, "CANDIDATES")]
    try:
        table = read(path)
    except pa.ArrowException as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    missing = [c for c in (query, doc, *ranker.feature_names_) if c not in table.column_names]
    if missing:
        raise DataError(
            f"{path} lacks the column(s) {missing}: it has {table.column_names}; --query and --doc "
            "rename theirs, the features are those the model was trained with"
        )
    return table


def _matrix(table: Any, ranker: UnbiasedLambdaMART) -> Any:
    """The features of the candidates, text as the model's categories."""
    import pyarrow as pa

    wanted = table.select(list(ranker.feature_names_))
    for k, name in enumerate(ranker.feature_names_):
        if name in ranker.categories_:
            texts = wanted[name].cast(pa.string()).dictionary_encode()
            wanted = wanted.set_column(k, name, texts)
    return wanted


def _write(ranking: Any, path: str) -> None:
    """Write beside the place and rename: never half a file."""
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.part")
    write = parquet.write_table if target.suffix.lower() == ".parquet" else csv.write_csv
    try:
        write(ranking, str(temporary))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
