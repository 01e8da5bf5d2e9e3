"""Special values of both engines' types with their order, for oracles: nothing here asks sqlrs.

A `Special` is what the engine reads (a text) and where it stands on the line of its type. Places
say what order and equality an oracle uses: 'infinity' has one, NaN has one, -0.0 and 0.0 share one,
and in a discrete type two places are 1 apart exactly when no value of the type lies between.
tests/engines/test_values.py asks both engines whether that is so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from sqlrs.catalog import Column, ColumnType, Family

# Farther than any chain of comparisons in a test reaches.
FAR = 12
ORIGIN = date(2024, 2, 28)


class Special(str):
    """A text that an engine reads as a value; it is compared by its place alone.

    A day of Python's has a place too: 2024-02-28 is the origin of every line of dates.
    """

    place: int | Fraction
    discrete: bool

    def __new__(cls, text: str, place: int | Fraction, discrete: bool) -> Special:
        made = super().__new__(cls, text)
        made.place, made.discrete = place, discrete
        return made

    def __eq__(self, other: object) -> bool:
        return self.place == place_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        place = place_of(other)
        assert place is not None
        return self.place < place

    def __le__(self, other: object) -> bool:
        return self < other or self == other

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __hash__(self) -> int:
        return hash(self.place)


def place_of(value: object) -> int | Fraction | None:
    """Where a special value or a day stands."""
    if isinstance(value, Special):
        return value.place
    return (value - ORIGIN).days if isinstance(value, date) else None


@dataclass(frozen=True)
class Line:
    """A column type of one engine and some of its values in order, equal ones together."""

    type: ColumnType
    values: tuple[Special, ...]

    def __str__(self) -> str:
        return self.type.name if self.type.collation is None else self.type.collation


def _line(kind: ColumnType, *groups: str | int, discrete: bool = False) -> Line:
    """Texts in ascending order; those of one string, separated by '|', are equal.

    An integer before a text is its distance from the text before, 1 unless said.
    """
    place, distance, values = 0, 0, list[Special]()
    for group in groups:
        if isinstance(group, int):
            distance = group
            continue
        place += distance
        distance = 1
        values += [Special(text, place, discrete) for text in group.split("|")]
    start = next((v.place for v in values if str(v) == ORIGIN.isoformat()), 0)
    return Line(kind, tuple(Special(str(v), v.place - start, discrete) for v in values))


def _integers(name: str, first: int, last: int) -> Line:
    kind = ColumnType(Family.INTEGER, name)
    near = ("0",) if first == 0 else (str(first), FAR, "-1", "0")
    return _line(kind, *near, "1", FAR, str(last - 1), str(last), discrete=True)


def _plain(family: Family, name: str, *texts: str, collation: str | None = None) -> Line:
    return _line(ColumnType(family, name, collation), *texts)


_DAYS: tuple[str | int, ...] = ("2024-02-28", "2024-02-29", 2, "2024-03-02")
# The last date of Python's, which a driver may give for infinity.
_LATE: tuple[str | int, ...] = (FAR, "9999-12-31")
_MOMENTS = ("2024-02-28 00:00:00", "2024-02-28 00:00:00.000001", "9999-12-31 23:59:59.999999")

DUCKDB = (
    _integers("TINYINT", -(2**7), 2**7 - 1),
    _integers("BIGINT", -(2**63), 2**63 - 1),
    _integers("UBIGINT", 0, 2**64 - 1),
    _integers("HUGEINT", -(2**127), 2**127 - 1),
    _plain(Family.DECIMAL, "DECIMAL(38,2)", f"-{'9' * 36}.99", "-0.00|0.00", "0.01", "9" * 36),
    _plain(Family.FLOAT, "DOUBLE", "-inf", "-1.5", "-0.0|0.0", "5e-324", "inf", "nan|-nan"),
    _plain(Family.FLOAT, "FLOAT", "-inf", "-0.0|0.0", "3.4e38", "inf", "nan"),
    # DuckDB's infinite dates are the days before its first and after its last one.
    _line(
        ColumnType(Family.DATE, "DATE"),
        *("-infinity", "5877642-06-25 (BC)", FAR, *_DAYS, *_LATE, FAR, "5881580-07-10", "infinity"),
        discrete=True,
    ),
    _plain(Family.TIMESTAMP, "TIMESTAMP", "-infinity", *_MOMENTS, "infinity"),
    _plain(
        Family.TIMESTAMP_TZ,
        "TIMESTAMP WITH TIME ZONE",
        *("-infinity", "2024-02-28 00:00:00+00|2024-02-28 01:00:00+01", "infinity"),
    ),
    _plain(Family.TEXT, "VARCHAR", "", "A", "a", "a ", "b"),
    _plain(Family.TEXT, "VARCHAR", "", "a|A", "a ", "b|B", "c", collation="NOCASE"),
)
POSTGRES = (
    _integers("smallint", -(2**15), 2**15 - 1),
    _integers("bigint", -(2**63), 2**63 - 1),
    _plain(
        Family.DECIMAL,
        "numeric",
        *("-Infinity", "-1e50", "-0|0|0.00", "0.01", "1e50", "Infinity", "NaN"),
    ),
    _plain(
        Family.FLOAT,
        "double precision",
        *("-Infinity", "-1.5", "-0|0", "5e-324", "Infinity", "NaN|-NaN"),
    ),
    _line(
        ColumnType(Family.DATE, "date"),
        *(
            "-infinity",
            FAR,
            "4713-01-01 BC",
            FAR,
            *_DAYS,
            *_LATE,
            FAR,
            "5874897-12-31",
            FAR,
            "infinity",
        ),
        discrete=True,
    ),
    _plain(Family.TIMESTAMP, "timestamp without time zone", "-infinity", *_MOMENTS, "infinity"),
    _plain(
        Family.TIMESTAMP_TZ,
        "timestamp with time zone",
        *("-infinity", "2024-02-28 00:00:00+00|2024-02-28 01:00:00+01", "infinity"),
    ),
    _plain(Family.TEXT, "text", "", "A", "a", "a ", "b", collation="C"),
)
# Equal texts that differ: these types are joined and grouped, never ordered.
APART = (
    _plain(Family.OTHER, "character(3)", "a|a |a  ", "b"),
    _plain(Family.OTHER, "text", "a|A", "b|B", collation="nocase"),
)
# What both engines have, and what a text of either can say.
DAYS = _line(
    ColumnType(Family.DATE, "DATE"), "-infinity", FAR, *_DAYS, FAR, "infinity", discrete=True
)
LINES = {"duckdb": DUCKDB, "postgres": POSTGRES}


def definition(column: Column) -> str:
    """The column in CREATE TABLE, with its collation."""
    collate = f' COLLATE "{column.type.collation}"' if column.type.collation else ""
    return f'"{column.name}" {column.type.name}{collate}'
