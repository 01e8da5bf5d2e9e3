"""Noisy numbers of all groups as relations, and the statement above that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from typing import cast

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiler.above import to_duckdb
from sqlrs.compiler.bars import with_error_bars
from sqlrs.compiler.statement import CutStatement
from sqlrs.engines.base import Row, Snapshot
from sqlrs.engines.far_days import far_days
from sqlrs.engines.read_off import read_off
from sqlrs.engines.released import (
    Layout,
    ReleasedDatabase,
    ReleasedRelation,
    Result,
    afterwards,
    duckdb_type,
)
from sqlrs.errors import StatementFailed
from sqlrs.measures import Aggregation, Measure, Ordinals
from sqlrs.mechanisms.base import Noisy
from sqlrs.trees.build import filtered_by, number, select_from, table_of
from sqlrs.trees.identifiers import column
from sqlrs.trees.kept import Kept

MAX_PUBLIC_ROWS = 100_000

# What the columns can hold: noise has no end, and a number beyond it is none that anybody counted.
_LARGEST = {"BIGINT": 2**63 - 1, "HUGEINT": 10**38 - 1}
_DIGITS = 38
_DECIMAL = Context(prec=60)


@dataclass(frozen=True, eq=False)
class AfterRelease:
    """What stands above the cuts, the rows of the public tables that it names, its columns.

    ``database`` has run the statement on no rows; it runs it once more, on the released ones. Where
    the release ends before that, nothing private is in it, and it goes with this object.
    """

    statement: exp.Query
    aggregations: tuple[Aggregation, ...]
    public: tuple[ReleasedRelation, ...]
    database: ReleasedDatabase
    columns: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        statement: CutStatement,
        catalog: Catalog,
        snapshot: Snapshot,
        empty: Sequence[ReleasedRelation],
        kept: Kept,
        *,
        error_bars: bool,
    ) -> AfterRelease:
        """Ready to run; what cannot run on ``empty`` relations of these cuts is refused."""
        public = tuple(
            _public_relation(f"public_{place}", table, statement, snapshot)
            for place, table in enumerate(statement.public)
        )
        relations = [*map(shown_as, statement.aggregations, empty), *public]

        def written() -> exp.Query:
            above = statement.above.copy()
            return to_duckdb(
                with_error_bars(above, catalog.dialect) if error_bars else above,
                {name: dict(columns) for name, columns in layout.relations},
                statement.source,
            )

        found = Layout.of(relations)
        layout = kept.of((statement,), lambda: found, detail=found)
        tree = kept.of((statement, layout), written, detail=error_bars)
        database = ReleasedDatabase(layout)
        try:
            # Over no rows it gives the same whenever it runs.
            columns = kept.of((tree, layout), lambda: database.run(tree).columns)
        except BaseException:
            database.close()
            raise
        return cls(tree, statement.aggregations, public, database, columns)

    def run(self, relations: Sequence[ReleasedRelation]) -> Result:
        """The rows that an analyst sees."""
        rows = [*map(shown_as, self.aggregations, relations), *self.public]
        with closing(self.database) as database:
            if {one.name: one.columns for one in rows} == database.layout.columns:
                if (shown := read_off(self.statement, rows)) is not None:
                    return Result(self.columns, shown)
                database.fill(rows)
                return database.run(self.statement)
        # Numbers that were recorded when the domains had values of other types.
        return afterwards(self.statement, rows)


def _public_relation(
    name: str, table: Table, statement: CutStatement, snapshot: Snapshot
) -> ReleasedRelation:
    # What the text does not name may have a type that cannot be kept here.
    asked = _named_in(statement.above)
    columns = [one.name for one in table.columns if asked is None or one.name.lower() in asked]
    columns = columns or [table.columns[0].name]
    select = select_from(table_of(table), *(column(one) for one in columns))
    select.set("limit", exp.Limit(expression=number(MAX_PUBLIC_ROWS + 1)))
    try:
        rows = snapshot.rows(select)
        if beyond := far_days(columns, rows):
            counted = select_from(table_of(table), exp.Count(this=exp.Star()))
            far = filtered_by(counted, [cast(exp.Expression, exp.or_(*beyond))])
            if snapshot.scalar(far):
                raise StatementFailed(
                    "a day of a public table is beyond what Python has a form for"
                )
    except StatementFailed:
        raise statement.source.refusal(
            "unsupported",
            None,
            f"the rows of public table {table.label} cannot be read",
            "name its columns one by one, without those of uncommon types; an infinite date, or "
            "one outside the years 1 to 9999, cannot be kept beside released numbers",
        ) from None
    if len(rows) > MAX_PUBLIC_ROWS:
        raise statement.source.refusal(
            "unsupported",
            None,
            f"public table {table.label} has more than {MAX_PUBLIC_ROWS} rows, too many to be "
            "joined with released ones",
        )
    kinds = [duckdb_type(values) for values in zip(*rows, strict=True)] or ["INTEGER"] * len(
        columns
    )
    return ReleasedRelation(name, tuple(zip(columns, kinds, strict=True)), tuple(rows))


def _named_in(above: exp.Query) -> frozenset[str] | None:
    """All names in the text, without case; None where it may read columns without naming them."""
    aliases = list(above.find_all(exp.TableAlias))
    relations = {alias.name.lower() for alias in aliases}
    rows = any(one.name.lower() in relations for one in above.find_all(exp.Column))
    stars = any(not isinstance(star.parent, exp.Count) for star in above.find_all(exp.Star))
    if rows or stars or any(alias.columns for alias in aliases):
        return None
    return frozenset(name.name.lower() for name in above.find_all(exp.Identifier))


def groups_of(domains: Sequence[Sequence[Row]]) -> list[Ordinals]:
    """All combinations of a row of each domain, the last one changing first."""
    return list(product(*(range(len(rows)) for rows in domains)))


def relation_of(
    aggregation: Aggregation,
    domains: Sequence[Sequence[Row]],
    numbers: Sequence[Sequence[Noisy]] | None,
    *,
    error_bars: bool,
) -> ReleasedRelation:
    """The relation of one cut: its keys, and each measure with its error bars if it has any.

    ``numbers``: for each measure those of all groups; None gives a relation without rows.
    """
    keys = _keys(aggregation, domains)
    columns = [(f"k{key}", duckdb_type(values)) for key, values in enumerate(keys)]
    rows: list[list[object]] = [list(values) for values in keys]
    for place, measure in enumerate(aggregation.measures):
        kind = _kind(measure)
        noisy = () if numbers is None else numbers[place]
        columns.append((f"m{place}", kind))
        rows.append([_worth(one.value, measure, kind) for one in noisy])
        if error_bars:
            for end in ("low", "high"):
                columns.append((f"m{place}_{end}", kind))
                ends = [getattr(one.error_bars, end) for one in noisy]
                rows.append([_worth(value, measure, kind) for value in ends])
    released = () if numbers is None else tuple(zip(*rows, strict=True))
    clippings = tuple(one[0].clipping if one else None for one in numbers or ())
    return ReleasedRelation(aggregation.name, tuple(columns), released, clippings)


def shown_as(aggregation: Aggregation, released: ReleasedRelation) -> ReleasedRelation:
    """The relation with a column for each aggregate of the text, as what stands above reads it.

    Texts that ask for the same measures share what is released, each with columns of its own.
    """
    places = {name: place for place, (name, _) in enumerate(released.columns)}
    chosen = [(f"k{key}", f"k{key}") for key in range(aggregation.keys)]
    for shown, measure in enumerate(aggregation.columns):
        ends = ("", "_low", "_high") if f"m{measure}_low" in places else ("",)
        chosen += [(f"a{shown}{end}", f"m{measure}{end}") for end in ends]
    columns = tuple((name, released.columns[places[own]][1]) for name, own in chosen)
    rows = tuple(tuple(row[places[own]] for _, own in chosen) for row in released.rows)
    return ReleasedRelation(released.name, columns, rows)


def _keys(aggregation: Aggregation, domains: Sequence[Sequence[Row]]) -> list[list[object]]:
    """The values of each key, group by group."""
    places = {
        key: (place, own)
        for place, domain in enumerate(aggregation.domains)
        for own, key in enumerate(domain.keys)
    }
    groups = groups_of(domains)
    found: list[list[object]] = []
    for key in range(aggregation.keys):
        place, own = places[key]
        found.append([_by_the_clock(domains[place][group[place]][own]) for group in groups])
    return found


def _by_the_clock(value: object) -> object:
    """A moment as the clock of the session shows it: what stands above knows no time zones."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _kind(measure: Measure) -> str:
    """The type of a released number: whole numbers, or decimals of the measure's unit."""
    if measure.unit.denominator == 1:
        return "BIGINT" if measure.is_count else "HUGEINT"
    return f"DECIMAL({_DIGITS}, {_places(measure.unit)})"


def _places(unit: Fraction) -> int:
    """The digits behind the point that a unit needs; 12 where no number of them is enough."""
    for places in range(13):
        if (unit * 10**places).denominator == 1:
            return places
    return 12


def _worth(number: int, measure: Measure, kind: str) -> int | Decimal:
    if kind in _LARGEST:
        most = _LARGEST[kind]
        return max(-most, min(most, number * measure.unit.numerator))
    places = _places(measure.unit)
    most = 10**_DIGITS - 1
    scaled = max(-most, min(most, round(number * measure.unit * 10**places)))
    return _DECIMAL.scaleb(Decimal(scaled), -places)
