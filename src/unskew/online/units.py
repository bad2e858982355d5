"""Sessions become units: what was assigned to an arm, with the sums that every measure needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from unskew.array_types import FloatArray
from unskew.online.measures import Measure
from unskew.online.ratio import Ratio, Units, adjusted_ratios, ratios


@dataclass(frozen=True, eq=False)
class UnitRows:
    """The distinct units of both arms.

    ``sums`` has a column for each numerator and denominator, by its SQL; ``before`` has the same of an
    earlier period; ``slice`` is an index into ``labels``; ``count`` says how many units are alike.
    """

    arm: npt.NDArray[np.int64]
    slice: npt.NDArray[np.int64]
    labels: tuple[Any, ...]
    count: FloatArray
    sums: dict[str, FloatArray]
    before: dict[str, FloatArray] | None = None
    seen: FloatArray | None = None

    def ratios(self, measure: Measure) -> list[tuple[Ratio, Ratio]]:
        """Control and treatment of a measure, slice by slice."""
        units = Units(self.sums[measure.numerator], self.sums[measure.denominator], self.count)
        found = ratios(units, 2 * self.slice + self.arm, 2 * len(self.labels))
        return list(zip(found[::2], found[1::2], strict=True))

    def adjusted(self, measure: Measure) -> tuple[Ratio, Ratio]:
        """Control and treatment of a measure over all slices, adjusted by the earlier period."""
        if self.before is None or self.seen is None:
            raise AssertionError("there is no earlier period")
        y, n = self.sums[measure.numerator], self.sums[measure.denominator]
        covariates = np.column_stack(
            [self.before[measure.numerator], self.before[measure.denominator], self.seen]
        )
        arms = [self.arm == 0, self.arm == 1]
        control, treatment = (Units(y[arm], n[arm], self.count[arm]) for arm in arms)
        return adjusted_ratios(control, treatment, covariates[arms[0]], covariates[arms[1]])


def unit_rows(
    work: duckdb.DuckDBPyConnection,
    measures: Sequence[Measure],
    *,
    by_user: bool,
    slices: str = "NULL",
    where: str = "true",
    before: bool = False,
) -> UnitRows:
    """The units of the table ``sessions``, or of its rows that fulfil a condition.

    ``slices`` is a column whose values are taken apart; a user has a unit in each. ``before`` adds the
    sums of the same user in the table ``before``.
    """
    sums = list(dict.fromkeys(s for m in measures for s in (m.numerator, m.denominator)))
    source = f"SELECT *, {slices} AS slice FROM sessions WHERE {where}"
    names = [f"e{k}" for k in range(len(sums))]
    if by_user:
        units = f"SELECT arm, slice, unit, {_totals(sums, 'e')} FROM ({source}) GROUP BY ALL"
        count = "count(*)"
    else:
        each = ", ".join(f"weight * ({s}) AS e{k}" for k, s in enumerate(sums))
        units = f"SELECT arm, slice, {each}, count FROM ({source})"
        count = "sum(count)"
    if before:
        earlier = f"SELECT arm, unit, {_totals(sums, 'b')} FROM before GROUP BY ALL"
        units = f"SELECT * FROM ({units}) LEFT JOIN ({earlier}) USING (arm, unit)"
        names += [f"coalesce(b{k}, 0) AS b{k}" for k in range(len(sums))]
        names.append("CAST(b0 IS NOT NULL AS DOUBLE) AS seen")
    rows = work.sql(
        f"SELECT arm, slice, {', '.join(names)}, {count} AS count FROM ({units}) GROUP BY ALL "
        "ORDER BY ALL"
    ).to_arrow_table()

    def column(name: str) -> FloatArray:
        return np.asarray(rows[name].to_numpy(), dtype=np.float64)

    encoded = pc.dictionary_encode(rows["slice"].combine_chunks(), null_encoding="encode")
    return UnitRows(
        arm=rows["arm"].to_numpy().astype(np.int64),
        slice=encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        labels=tuple(encoded.dictionary.to_pylist()),
        count=column("count"),
        sums={s: column(f"e{k}") for k, s in enumerate(sums)},
        before={s: column(f"b{k}") for k, s in enumerate(sums)} if before else None,
        seen=column("seen") if before else None,
    )


def _totals(sums: Sequence[str], prefix: str) -> str:
    return ", ".join(f"fsum(weight * count * ({s})) AS {prefix}{k}" for k, s in enumerate(sums))
