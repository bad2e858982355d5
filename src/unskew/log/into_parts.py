"""A log on one machine becomes parts, with memory bounded by a limit and by one part.

A log that fits is compacted in one piece and then divided. One that does not is written in pieces
(`spilling`), which are added up part by part. Features of another table are joined to as many parts at
a time as the limit allows, each time in one pass over that table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from unskew.claims import temporary_folder
from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.log.merging import cut_by_query, merge
from unskew.log.parts import KIND, PartsWriter, parts_writer, save_parts
from unskew.log.read import (
    LogOptions,
    LogReading,
    RowsRead,
    finished,
    joined,
    mended,
    numbering_note,
    read_rows,
)
from unskew.log.schema import Kind, Problem, first_problem
from unskew.log.skipping import without_documents
from unskew.log.sources import TableLike
from unskew.log.spilling import Spill, limit_bytes
from unskew.places import Place, PlaceLike, RemotePath, place_of
from unskew.progress import progress_bar
from unskew.remote_writing import check_writable
from unskew.store import check_replaceable


def compact_into_parts(
    source: TableLike, options: LogOptions, path: PlaceLike, n_parts: int
) -> LogReading:
    """Write the parts of a log; the reading that comes back holds no Impressions.

    A log with problems is a `DataError`, and then nothing is written.
    """
    if n_parts < 1:
        raise UsageError(f"parts must be a whole number, 1 or higher, got {n_parts}")
    out = place_of(path)
    if not isinstance(out, RemotePath):
        out = Path(os.path.realpath(out))
    check_replaceable(out, KIND)
    if isinstance(out, RemotePath):
        check_writable(out)  # before hours of reading
    with _working_folder(out) as folder:
        spill = Spill(folder / "pieces", n_parts, limit_bytes(options.memory_limit))
        rows = read_rows(source, options, spill)
        if not spill.n_pieces:
            reading = finished(rows, options)
            if reading.problems or reading.impressions is None:
                raise first_problem(reading.problems)
            save_parts(reading.impressions, out, n_parts, progress=options.progress)
            return replace(reading, impressions=None)
        if rows.problems and not options.skip_bad_sessions:
            raise first_problem(rows.problems)
        rest = rows.coder.take_out(part_of=spill.part_of)
        if rest is not None:
            spill.take(rest)
        with parts_writer(out) as writer:
            return _Finish(rows, options, spill, writer).run()


@contextmanager
def _working_folder(out: Place) -> Iterator[Path]:
    """A folder of this machine for pieces: beside the output, or where temporary files lie."""
    if isinstance(out, RemotePath):
        with TemporaryDirectory(prefix="unskew-") as folder:
            yield Path(folder)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(out.parent) as folder:
        yield folder


class _Finish:
    """Adds the pieces up, joins features and writes the parts."""

    def __init__(
        self, rows: RowsRead, options: LogOptions, spill: Spill, writer: PartsWriter
    ) -> None:
        self.rows, self.options, self.spill, self.writer = rows, options, spill, writer
        self.problems: dict[Kind, Problem] = {problem.kind: problem for problem in rows.problems}
        self.index: tuple[str, ...] = rows.features.index
        self.n_left_out = self.n_clicks = 0

    def run(self) -> LogReading:
        """Write every part; raises if something is wrong with the whole."""
        show = self.options.progress
        with progress_bar("Writing parts", self.spill.n_parts, show=show) as advance:
            for group in self._groups():
                self._write(group)
                advance(len(group))
        if not self.n_clicks:
            columns, table = self.rows.columns, self.rows.table
            self.problems[Kind.NO_CLICK] = Problem(Kind.NO_CLICK, 1, columns.click, table.name)
        compactor = self.rows.coder.compactor
        notes = self.rows.notes + ((numbering_note(self.index),) if self.index else ())
        problems = tuple(self.problems[kind] for kind in sorted(self.problems))
        reading = LogReading(
            self.rows.table.name, self.rows.coder.n_rows, compactor.n_sessions,
            compactor.n_left_out, problems, None, notes,
        )  # fmt: skip
        if self.options.skip_bad_sessions:
            reading = mended(reading, self.n_left_out)
        if reading.problems:
            raise first_problem(reading.problems)
        return reading

    def _groups(self) -> Iterator[list[int]]:
        """The parts to write at a time: one, or as many as one pass over the features can fill."""
        table = self.options.features is not None and self.options.feature_columns is None
        # A few dozen features of eight bytes, beside everything else that a part has.
        room = self.spill.limit // 512 if table else 0
        group: list[int] = []
        held = 0
        for number, size in enumerate(self.spill.n_documents.tolist()):
            if group and held + size > room:
                yield group
                group, held = [], 0
            group.append(number)
            held += size
        yield group

    def _write(self, group: Sequence[int]) -> None:
        """Write some parts, after joining the features to all of them at once."""
        parts = [self.spill.part(number) for number in group]
        data, problems, self.index, bad = joined(
            parts[0] if len(parts) == 1 else merge(parts), self.rows, self.options
        )
        del parts
        for problem in problems:
            self._add(problem)
        if bad.any() and self.options.skip_bad_sessions:
            data, left_out = without_documents(data, bad)
            self.n_left_out += left_out
        self.n_clicks += data.n_clicks
        if data.n_clicks:
            data = data.with_gains(self.options.gains)
        for cut in _cuts(data, group, self.spill):
            self.writer.add(cut)

    def _add(self, problem: Problem) -> None:
        """Count a problem of the features table; null keys are seen anew in every pass."""
        before = self.problems.get(problem.kind)
        if before is None:
            self.problems[problem.kind] = problem
        elif problem.kind is not Kind.FEATURES_NULL_KEY:
            self.problems[problem.kind] = replace(before, count=before.count + problem.count)


def _cuts(data: Impressions, group: Sequence[int], spill: Spill) -> Iterator[Impressions]:
    """The parts of a group."""
    if len(group) == 1:
        yield data
        return
    at = np.searchsorted(np.array(group), spill.part_of(data.queries))
    yield from cut_by_query(data, at, len(group))
