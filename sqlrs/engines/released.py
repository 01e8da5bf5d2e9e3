"""A DuckDB of its own for released rows: what stands above the cuts runs here, far from the data.

It lives in memory, holds released relations and rows of public tables, and nothing else. It reads
no file and no network, and its settings cannot be changed, whatever an analyst's text calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID

from sqlglot import exp

from sqlrs.answer import Clipping
from sqlrs.engines.base import Row
from sqlrs.engines.started_ahead import StartedAhead
from sqlrs.engines.watch import Outcome, Stop, watched
from sqlrs.errors import Interrupted, SqlrsError
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.trees.identifiers import identifier

if TYPE_CHECKING:
    from sqlrs.engines.duckdb_core import duckdb

_DIGITS = 38
_NAMES: dict[type, str] = {
    bool: "BOOLEAN",
    date: "DATE",
    datetime: "TIMESTAMP",
    float: "DOUBLE",
    str: "VARCHAR",
    time: "TIME",
    UUID: "UUID",
}
SECONDS = 10.0
"""How long one statement may take; released relations are small."""
MOST_ROWS = 100_000
"""How many rows one statement may give; a join of released relations could have any number."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "disabled_optimizers": "common_subplan",
    "enable_external_access": "false",
    # A noisy count may be 0: one such group must not take the whole answer away.
    "error_on_division_by_zero": "false",
    "ieee_floating_point_ops": "false",
    "max_temp_directory_size": "0B",
    "memory_limit": "512MB",
    "python_enable_replacements": "false",
    "threads": "1",
}


@dataclass(frozen=True)
class ReleasedRelation:
    """Released rows under a name; each column has DuckDB's name of its type.

    ``clippings``: for each measure how much of one unit could enter it, where units are protected.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...] = ()
    clippings: tuple[Clipping | None, ...] = ()


@dataclass(frozen=True)
class Result:
    """Rows, and the names and types of their columns."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]


def duckdb_type(values: Iterable[object]) -> str:
    """The type that holds all these values exactly; one that holds none is INTEGER."""
    found = [value for value in values if value is not None]
    kinds = {type(value) for value in found}
    if not kinds:
        return "INTEGER"
    if len(kinds) == 1 and (name := _NAMES.get(next(iter(kinds)))) is not None:
        # An aware moment comes back in the zone of a session; there is none here.
        if not any(getattr(value, "tzinfo", None) for value in found):
            return name
    elif kinds == {int}:
        numbers = [value for value in found if isinstance(value, int)]
        for name, bits in (("BIGINT", 63), ("HUGEINT", 127)):
            if -(2**bits) <= min(numbers) and max(numbers) < 2**bits:
                return name
    elif kinds <= {int, Decimal}:
        scale = _scale([Decimal(value) for value in found if isinstance(value, int | Decimal)])
        if scale is not None:
            return f"DECIMAL({_DIGITS}, {scale})"
    raise refusal(
        "unsupported",
        "a group key or a column of a public table has values that cannot be kept exactly",
        hint="leave such values out with a condition: an infinite date or one outside the years 1 "
        "to 9999, a moment with a time zone, a number of more than 38 digits",
    )


def _scale(values: Sequence[Decimal]) -> int | None:
    """The digits behind the point that all values need; None where some have too many digits."""
    if not all(value.is_finite() for value in values):
        return None
    scale = max(max(-int(value.as_tuple().exponent), 0) for value in values)
    whole = max(value.adjusted() + 1 for value in values)
    return scale if scale + max(whole, 0) <= _DIGITS else None


Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Layout:
    """The relations of a statement by their columns, and how each is made and filled."""

    relations: tuple[tuple[str, Columns], ...]

    @classmethod
    def of(cls, relations: Iterable[ReleasedRelation]) -> Layout:
        """That of these relations."""
        return cls(tuple((one.name, one.columns) for one in relations))

    @cached_property
    def columns(self) -> dict[str, Columns]:
        """The columns by the name of the relation."""
        return dict(self.relations)

    def text(self, statement: exp.Query) -> str:
        """The statement with the relations before it, each column a list of texts as a parameter.

        All of it is one statement: to make tables and to fill them would take longer than it does.
        """
        known = self._texts.get(id(statement))
        if known is None:
            tree = statement.copy()
            own = tree.args.get("with_")
            further = own.expressions if own is not None else []
            recursive = own is not None and own.args.get("recursive")
            tree.set(
                "with_", exp.With(expressions=[*self._filled(), *further], recursive=recursive)
            )
            known = self._texts[id(statement)] = (statement, tree.sql(dialect="duckdb"))
        return known[1]

    @cached_property
    def _texts(self) -> dict[int, tuple[exp.Query, str]]:
        return {}

    def _filled(self) -> list[exp.CTE]:
        """Each relation as what its parameters hold; rows of it have the order of the lists."""
        texts = exp.DataType.build("VARCHAR[]", "duckdb")
        found = []
        for name, columns in self.relations:
            values = [
                exp.alias_(
                    exp.cast(
                        exp.Explode(this=exp.cast(exp.Placeholder(), texts)), kind, dialect="duckdb"
                    ),
                    identifier(one),
                )
                for one, kind in columns
            ]
            alias = exp.TableAlias(this=identifier(name))
            found.append(exp.CTE(this=exp.select(*values), alias=alias, materialized=True))
        return found


class ReleasedDatabase:
    """A DuckDB for one user at a time, with relations that are empty until they are filled.

    All of it is one transaction, which is rolled back in the end, and what it reads are parameters
    of its statements: the next user finds nothing. One in which anything failed is not used again.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._values: dict[str, list[list[str | None]]] = {}
        self._connection = _AHEAD.take()
        self._clean = self._closed = False
        try:
            self._connection.begin()
        except BaseException:
            self.close()
            raise
        self._clean = True

    def fill(self, relations: Sequence[ReleasedRelation]) -> None:
        """Put the rows of these relations into the empty ones of the same names."""
        for relation in relations:
            if relation.columns != self.layout.columns[relation.name]:
                raise ValueError(f"{relation.name} has other columns here")
            if relation.rows:
                values = [list(map(_text, column)) for column in zip(*relation.rows, strict=True)]
                self._values[relation.name] = values

    def run(self, statement: exp.Query) -> Result:
        """The rows of a statement; a refusal where DuckDB cannot run it."""
        text, connection = self.layout.text(statement), self._connection
        values = [
            one
            for name, columns in self.layout.relations
            for one in self._values.get(name) or [[] for _ in columns]
        ]
        self._clean = False
        outcome = watched(
            lambda: connection.execute(text, values).fetchmany(MOST_ROWS + 1),
            connection.interrupt,
            timeout=SECONDS,
        )
        if outcome.result is None:
            raise _failure(outcome)
        refuse_too_many(outcome.result)
        columns = tuple((str(d[0]), str(d[1])) for d in connection.description or ())
        self._clean = True
        return Result(columns, tuple(outcome.result))

    def close(self) -> None:
        """Forget everything."""
        if self._closed:
            return
        self._closed = True
        self._values = {}
        with suppress(Exception):
            if self._clean:
                self._connection.rollback()
                return _AHEAD.give_back(self._connection)
        _AHEAD.put_away(self._connection)


def refuse_too_many(rows: Sequence[Row]) -> None:
    """Refuse a result that nobody could read."""
    if len(rows) > MOST_ROWS:
        raise refusal(
            "too_much",
            f"the result has more than {MOST_ROWS} rows",
            hint="join released rows on their keys, or take the first ones with LIMIT",
        )


def get_ready() -> None:
    """Start the DuckDB of the next statement, in the background."""
    _AHEAD.begin()


def _started() -> duckdb.DuckDBPyConnection:
    """An empty DuckDB whose settings are locked."""
    # The path to an answer loads no driver that is not used.
    from sqlrs.engines.duckdb_core import duckdb

    connection = duckdb.connect(config=_SETTINGS)
    try:
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        raise
    return connection


# Starting a DuckDB takes longer than most statements do in it.
_AHEAD = StartedAhead(_started)


def described(statement: exp.Query, relations: Sequence[ReleasedRelation]) -> Result:
    """The columns that a statement would have; a refusal where DuckDB cannot run it."""
    with closing(ReleasedDatabase(Layout.of(relations))) as database:
        return Result(database.run(statement).columns, ())


def afterwards(statement: exp.Query, relations: Sequence[ReleasedRelation]) -> Result:
    """Run a statement over released relations alone."""
    with closing(ReleasedDatabase(Layout.of(relations))) as database:
        database.fill(relations)
        return database.run(statement)


def _text(value: object) -> str | None:
    """A value as DuckDB reads it back exactly."""
    match value:
        case None:
            return None
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return str(value)


def _failure(outcome: Outcome[list[Row]]) -> SqlrsError:
    """What an analyst is told: nothing private is here, so DuckDB may speak for itself."""
    if outcome.stopped is Stop.INTERRUPT:
        return Interrupted("the work was stopped")
    if outcome.stopped is Stop.TIMEOUT:
        reason = f"it takes longer than {SECONDS:g} s"
    else:
        reason = str(outcome.error).partition("\n")[0]
    return refusal("unsupported", f"what follows the aggregates cannot be computed: {reason}")
