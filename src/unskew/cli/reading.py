"""Reading for every command: logs, compacted folders, labels, candidates and models.

The options by which a command reads are declared here, once; `unskew.cli.groups` spells them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.console import say
from unskew.cli.groups import given_of, panel, refuse_idle
from unskew.errors import DataError, UsageError
from unskew.loading import load_ranker
from unskew.places import is_saved, place_of, without_secrets

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew.log.impressions import Impressions
    from unskew.log.labelled import LabelledData
    from unskew.log.read import LogOptions, LogReading
    from unskew.log.sources import SourceTable


_column, _reading = panel("Columns of the log"), panel("Reading")

Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="A click log: Parquet or CSV file, folder, glob, DuckDB database, or a folder that "
        "'unskew compact' wrote.",
    ),
]
Session = Annotated[str, _column("The session column.")]
Query = Annotated[str, _column("The query column.")]
Doc = Annotated[str, _column("The document column.")]
Position = Annotated[str, _column("The position column, counted from 1.")]
Click = Annotated[str, _column("The click column: 0 or 1, or a grade.")]
Weight = Annotated[str | None, _column("The session weight column.")]
FirstPosition = Annotated[int, _reading("0 if the first place is written as position 0.")]
TableName = Annotated[str | None, _reading("The table within a DuckDB database file.")]
MemoryLimit = Annotated[str | None, _reading("Memory for DuckDB, such as 1GB; the rest spills.")]
Threads = Annotated[int | None, _reading("Threads for reading and training (default all).")]
Shuffled = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="The context value of sessions with shuffled lists."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]


# The options that act on what is read from a saved folder, from LETOR text, from a table of labels.
_ACT_ON_FOLDERS = {"threads", "quiet", "gains"}
_ACT_ON_LETOR = {"threads", "quiet"}
_ACT_ON_LABELS = {"query", "doc", "relevance", "categorical", "ignore", "table", "threads", "quiet"}


@dataclass(frozen=True)
class LogInput:
    """How to read a log."""

    session: Session = "session"
    query: Query = "query"
    doc: Doc = "doc"
    position: Position = "position"
    click: Click = "click"
    weight: Weight = None
    context: Annotated[str | None, _column("The context column: device, layout, …")] = None
    time: Annotated[str | None, _column("The time column; not a feature.")] = None
    features: Annotated[
        str | None,
        _reading(
            "A table of features keyed by query and doc. Without it, the remaining columns of the "
            "log are the features."
        ),
    ] = None
    categorical: Annotated[
        list[str] | None, _reading("A feature kept as categories (repeatable).")
    ] = None
    ignore: Annotated[list[str] | None, _reading("A column that is no feature (repeatable).")] = (
        None
    )
    feature_names: Annotated[
        str | None,
        _reading("A file with the names of the features to use, one a line, or a model's folder."),
    ] = None
    events: Annotated[
        str | None,
        _reading(
            "A table of clicks or other events, joined to LOG by session and doc; or the events of "
            "User Behavior Insights, whose queries LOG has."
        ),
    ] = None
    grade: Annotated[
        list[str] | None,
        _reading(
            "NAME=GRADE: the grade of a type of event, or of a column of 0 and 1; NAME=ignore for "
            "events that do not count (repeatable)."
        ),
    ] = None
    gains: Annotated[
        str | None,
        _reading("What the grades 1, 2, … are worth, such as 1,5,20 (default 2^grade - 1)."),
    ] = None
    skip_bad_sessions: Annotated[
        bool,
        _reading(
            "Leave out sessions with problems, and say how many of what.", "--skip-bad-sessions"
        ),
    ] = False
    table: TableName = None
    first_position: FirstPosition = 1
    memory_limit: MemoryLimit = None
    threads: Threads = None
    quiet: Quiet = False

    def options(self) -> LogOptions:
        """The options of `unskew.read_log`."""
        from unskew.cli.events import gains_of, grades_of
        from unskew.log.feature_list import feature_list
        from unskew.log.read import LogOptions
        from unskew.log.schema import Columns

        roles = (field.name for field in fields(Columns))
        return LogOptions(
            columns=Columns(**{role: getattr(self, role) for role in roles}),
            features=self.features,
            categorical=self.categorical or (),
            ignore=self.ignore or (),
            table=self.table,
            first_position=self.first_position,
            memory_limit=self.memory_limit,
            threads=self.threads,
            progress=not self.quiet,
            events=self.events,
            grades=grades_of(self.grade),
            gains=gains_of(self.gains),
            feature_names=feature_list(self.feature_names),
            skip_bad_sessions=self.skip_bad_sessions,
        )

    def impressions(
        self, log: str, wanted: Wanted | None = None, *, strict: bool = True
    ) -> Impressions:
        """The Impressions of a raw log, or those that a folder holds.

        ``strict`` refuses options that cannot act on a folder.
        """
        from unskew.log.schema import first_problem

        found = self.log_reading(log, wanted, strict=strict)
        if found.problems or found.impressions is None:
            raise first_problem(found.problems)
        for note in found.notes:
            say(f"{found.source}: {note}")
        return found.impressions

    def log_reading(
        self,
        log: str,
        wanted: Wanted | None = None,
        *,
        strict: bool = True,
        over_time: bool = False,
    ) -> LogReading:
        """A raw log read to its end with all its problems, or what a folder holds."""
        from unskew.log.parts import load
        from unskew.log.read import LogReading, read_with_problems
        from unskew.log.schema import OPTIONAL

        options = self.options()
        if is_saved(log):
            self._refuse_others(strict, _ACT_ON_FOLDERS, f"{log} is compact already")
            data = load(log)
            if options.gains is not None:
                data = data.with_gains(options.gains)
            if wanted is not None:
                wanted.unknown(data.features.names, log)
            return LogReading(without_secrets(log), data.n_rows, data.n_sessions, 0, (), data)
        if self.features is None:
            roles = {*options.columns.used, *OPTIONAL, *(options.grades or ())}
            narrowed = self._narrowed(wanted, log, self.table, roles)
        else:
            narrowed = self._narrowed(wanted, self.features, None, {self.query, self.doc})
        return read_with_problems(log, replace(options, over_time=over_time, **narrowed))

    def _narrowed(
        self, wanted: Wanted | None, source: str, table: str | None, roles: set[str]
    ) -> dict[str, Any]:
        """The columns of a table that are ignored and those that are categories."""
        ignore, categorical = self.ignore or [], self.categorical or []
        if wanted is not None:
            present = [name for name in self._columns(source, table) if name not in roles]
            ignore = [*ignore, *wanted.unknown(present, source, ignore)]
            categorical = [*categorical, *wanted.categorical(present)]
        return {"ignore": ignore, "categorical": categorical}

    def _columns(self, source: str, table: str | None) -> list[str]:
        """The columns of the log, or of another table."""
        from unskew.log.opening import log_columns

        events = self.options() if self.events is not None and source != self.features else None
        return _columns(source, table) if events is None else log_columns(source, events)

    def _refuse_others(self, strict: bool, acting: set[str], reason: str) -> None:
        if strict:
            idle = [field.name for field in fields(self) if field.name not in acting]
            refuse_idle(reason, given_of(self, idle))


@dataclass(frozen=True)
class DataInput(LogInput):
    """How to read a log or labelled documents."""

    relevance: Annotated[str, _column("The relevance column of labels.")] = "relevance"

    def labels(
        self, path: str, wanted: Wanted | None = None, *, strict: bool = True
    ) -> LabelledData:
        """Labelled documents: LETOR text or a table; ``strict`` refuses options that cannot act."""
        from unskew.log.letor import is_letor
        from unskew.log.read import read_labels

        if is_letor(path):
            reason = f"{path} is LETOR text, which has no column names"
            self._refuse_others(strict, _ACT_ON_LETOR, reason)
            data = read_labels(path)
            if wanted is not None:
                wanted.unknown(data.features.names, path)
            return data
        self._refuse_others(strict, _ACT_ON_LABELS, f"{path} holds labels, not clicks")
        roles: dict[str, Any] = {"query": self.query, "doc": self.doc, "relevance": self.relevance}
        narrowed = self._narrowed(wanted, path, self.table, {*roles.values()})
        return read_labels(path, table=self.table, **roles, **narrowed)

    def refuse_idle_options(self, log: str, validation: str, *, labels: bool) -> None:
        """Refuse an option that acts on neither the training nor the held-out data."""
        acting = self._acting(log, labels) | self._acting(validation, self._are_labels(validation))
        self._refuse_others(True, acting, f"neither {log} nor {validation} is read by it")

    def _acting(self, path: str, labels: bool) -> set[str]:
        """The options that have a meaning for what a path holds."""
        from unskew.log.letor import is_letor

        if is_saved(path):
            return _ACT_ON_FOLDERS
        if is_letor(path):
            return _ACT_ON_LETOR
        return _ACT_ON_LABELS if labels else {field.name for field in fields(LogInput)}

    def _are_labels(self, path: str) -> bool:
        """Whether a path holds labels, and not clicks."""
        from unskew.log.letor import is_letor

        columns = [] if is_letor(path) or is_saved(path) else _columns(path, self.table)
        return is_letor(path) or (self.relevance in columns and self.click not in columns)

    def held_out(self, path: str) -> LabelledData | Impressions:
        """Labels or clicks, whichever the path holds, read as the training data is."""
        if self._are_labels(path):
            return self.labels(path, strict=False)
        if self.events is not None and not is_saved(path):
            raise UsageError(
                f"--events belongs to LOG, and {path} has events of its own: compact it first (unskew "
                "compact), and give the folder"
            )
        return self.impressions(path, strict=False)


@dataclass(frozen=True)
class CandidateInput:
    """How to read candidates."""

    query: Query = "query"
    doc: Doc = "doc"
    table: TableName = None
    memory_limit: MemoryLimit = None
    threads: Threads = None
    quiet: Quiet = False

    def candidates(self, path: str, ranker: Any) -> tuple[pa.Table, pa.Table]:
        """The ids as they came in, and the features that a ranker needs, row for row."""
        import pyarrow as pa

        from unskew.log.schema import nearest_names
        from unskew.log.sources import connect, open_table, quoted

        names = ranker.feature_names_
        with connect(memory_limit=self.memory_limit, threads=self.threads) as connection:
            keys = [self.query, self.doc]
            opened = open_table(
                path,
                connection,
                what="the candidates",
                table=self.table,
                text_columns=[*keys, *ranker.categories_],
            )
            missing = [c for c in (*keys, *names) if c not in opened.columns]
            if missing:
                raise DataError(
                    f"{path} lacks the column(s) {missing}{nearest_names(missing, opened.columns)}: it "
                    f"has {list(opened.columns)}; --query and --doc rename theirs, the features are "
                    "those the model was trained with"
                )
            select = [f"{quoted(name)} AS c{k}" for k, name in enumerate([*keys, *names])]
            batches = list(opened.scan(", ".join(select)))
        if not batches:
            return pa.table({"query": pa.array([], "str"), "doc": pa.array([], "str")}), pa.table(
                {}
            )
        columns = [column.combine_chunks() for column in pa.Table.from_batches(batches).columns]
        ids = {role: _ids(columns[k], keys[k], opened) for k, role in enumerate(("query", "doc"))}
        return pa.table(ids), pa.table(
            [
                column.cast("str").dictionary_encode() if name in ranker.categories_ else column
                for name, column in zip(names, columns[2:], strict=True)
            ],
            names=list(names),
        )


def _ids(ids: pa.Array, column: str, table: SourceTable) -> pa.Array:
    """Ids as they came in; text of CSV is a number only if every id is written as an integer is."""
    import pyarrow as pa

    from unskew.log.keys import KeyCoder

    null = ids.is_null(nan_is_null=True).to_pylist()
    if True in null:
        raise DataError(
            f"{table.where(null.index(True))}: column {column!r} is null. Remedy: fill it in, or "
            "leave such rows out."
        )
    if pa.types.is_dictionary(ids.type):
        return ids.dictionary_decode()
    coder = KeyCoder(from_text=True)
    return pa.array(coder.ranked(coder.encode(ids))[0]) if table.from_text else ids


@dataclass(frozen=True)
class Wanted:
    """The features that some models and score columns need of a table; the rest is ignored."""

    models: Sequence[Any]
    scores: Sequence[str] = ()

    def unknown(
        self, present: Sequence[str], source: str, ignored: Sequence[str] = ()
    ) -> list[str]:
        """The columns that no model knows, after a note that names them."""
        for column in self.scores:
            if column not in present:
                shown = ", ".join(present[:8]) + (" …" if len(present) > 8 else "")
                raise DataError(
                    f"{source}: there is no column {column!r} to take scores from: there are {shown}"
                )
        known = {name for model in self.models for name in model.feature_names_}
        unknown = [n for n in present if n not in known and n not in {*self.scores, *ignored}]
        if self.models and unknown:
            more = f" and {len(unknown) - 8:,} more" if len(unknown) > 8 else ""
            say(f"{source}: ignored, because no model knows them: {', '.join(unknown[:8])}{more}")
        return unknown

    def categorical(self, present: Sequence[str]) -> list[str]:
        """The columns that the models know as categories."""
        return sorted({n for model in self.models for n in model.categories_ if n in present})


def _columns(source: str, table: str | None) -> list[str]:
    """The columns of a table."""
    from unskew.log.sources import connect, open_table

    with connect() as connection:
        return list(open_table(source, connection, what="the table", table=table).columns)


def shuffled_context(data: Impressions, value: str | None) -> Any:
    """The context that ``--shuffled`` names, if it does: on the command line every value is text."""
    if value is None:
        return None
    for known in data.contexts.tolist():
        if str(known) == value:
            return known
    shown = ", ".join(map(str, data.contexts[:8])) or "none; name its column with --context"
    raise UsageError(f"--shuffled: the log has no context {value!r}. Its contexts: {shown}")


def load_rankers(paths: Sequence[str]) -> dict[str, Any]:
    """Saved models by the names of their folders."""
    rankers: dict[str, Any] = {}
    for path in paths:
        name = place_of(path).absolute().name
        if name in rankers:
            raise UsageError(f"two models are called {name!r}: rename one of the folders")
        rankers[name] = load_ranker(path)
    return rankers
