"""Reads statistics of queries' tables, once for the same rows; they guide plans. Private."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import cast

from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.dialects import dialect_named
from sqlrs.dialects.base import Dialect
from sqlrs.engines.base import Snapshot, integer_rows, learned, rows_for_good
from sqlrs.planning.key_joins import joins_by_keys
from sqlrs.planning.leading import Leaders
from sqlrs.planning.plan import KeptGroups
from sqlrs.planning.table_statistics import Columns, Identity, Repetition, Statistics
from sqlrs.planning.total_lookups import Inclusion
from sqlrs.query import Query, Variable
from sqlrs.records import dataclass
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.leading_groups import groups_statement, kept_as
from sqlrs.sql.repetitions import largest_frequencies, repetitions, sizes_of, unmatched
from sqlrs.values import behave_alike

# Below this many rows every plan is quick; of a large table a sample of so many rows tells enough.
_SMALL = 2_000
_SAMPLE = 200_000
# Joins of whole tables whose groups that lead are kept.
_MOST_GROUPS = 64
# Groups are read once so many times their cost was spent without them.
_PATIENCE = 1.0
# What is kept by the form of a query: analysts can ask for forms without end.
_MOST_FORMS = 10_000
# Of so many private tables all residuals that are measured are of one size: none is left out. Of
# more, frequencies may show that some of them can.
_EACH_NEEDED = 2


def read_statistics(snapshot: Snapshot, query: Query) -> Statistics:
    """Two statements: the sizes of all tables, then the joined columns of those that matter."""
    return SampledTables().of(snapshot, query)


@dataclass(repr=False)
class _Spent:
    """What releases were expected to cost for want of something: the latest, and all before it."""

    release: object
    now: float = 0.0
    before: float | None = None

    def add(self, release: object, cost: float) -> float | None:
        """Add to the release's own, and say what all before it spent, if there were any."""
        if release is not self.release:
            self.release, self.before, self.now = release, (self.before or 0.0) + self.now, 0.0
        self.now += cost
        return self.before


@dataclass(frozen=True, repr=False)
class _Sampled:
    """Numbers of rows, repetitions of columns, and largest frequencies of whole columns.

    ``inclusions``: whether every row finds the row that it refers to. ``values``: T_E of residuals
    of whole tables, ``groups``: those that lead. ``wished``: what would have helped, by the release
    that would have used it. ``spent``: what was spent for want of groups.
    """

    rows: dict[Identity, float] = field(default_factory=dict)
    columns: dict[tuple[Identity, str], Repetition] = field(default_factory=dict)
    frequencies: dict[Columns, int] = field(default_factory=dict)
    inclusions: dict[Hashable, bool] = field(default_factory=dict)
    values: dict[Hashable, int] = field(default_factory=dict)
    groups: dict[Hashable, KeptGroups] = field(default_factory=dict)
    wished: dict[Hashable, object] = field(default_factory=dict)
    spent: dict[Hashable, _Spent] = field(default_factory=dict)


class SampledTables:
    """What was read of the tables of one snapshot, so that nothing is read of it twice.

    Another snapshot begins with nothing, unless its engine knows that it sees the same rows: then
    with what all before it read. It guides plans and limits values, so it changes no number.
    """

    def __init__(self) -> None:
        self._begin(None)

    def of(
        self,
        snapshot: Snapshot,
        query: Query,
        *,
        alone: bool = False,
        whole: float = Dialect.whole_columns,
    ) -> Statistics:
        """The statistics of a query's tables, of which only what is new is read.

        ``alone``: they guide the query itself and none of its residuals. ``whole``: columns of at
        most so many rows are read as a whole, and those that an index has in order.
        """
        if snapshot is not self._snapshot:
            self._begin(snapshot)
        tables = list({atom.table.identity: atom.table for atom in query.atoms}.values())
        # A sample would take as long as what it guides, and no residual can be left out.
        guess = joins_by_keys(query.atoms) and (alone or len(query.private) <= _EACH_NEEDED)
        wanted = [
            (table, name)
            for table, name in (() if guess else _joined_columns(query))
            if frozenset({name}) not in table.keys
            and (table.identity, name) not in self._sampled.columns
        ]
        rows = self._sampled.rows
        ordered = [(table, n) for table, n in wanted if _tells_size(table, n)]
        self._read_columns(snapshot, [one for one in ordered if one[0].identity not in rows], whole)
        self._read_sizes(snapshot, [one for one in tables if one.identity not in rows])
        unread = [one for one in wanted if (one[0].identity, one[1]) not in self._sampled.columns]
        large = [one for one in unread if rows[one[0].identity] > _SMALL]
        self._read_columns(snapshot, large, whole)
        guessed = self._guessed_columns(query) if guess else {}
        columns = {**guessed, **self._sampled.columns}
        return Statistics(dict(self._sampled.rows), columns, dict(self._sampled.frequencies))

    def read_frequencies(
        self, snapshot: Snapshot, wanted: Sequence[tuple[Table, frozenset[str]]]
    ) -> None:
        """Read the largest frequencies in some columns together."""
        for i, most in snapshot.rows(largest_frequencies(wanted)):
            table, names = wanted[int(cast(int, i))]
            self.learn(snapshot, (table.identity, names), int(cast(int, most)))

    def learn(self, snapshot: Snapshot, columns: Columns, most: int) -> None:
        """Keep a largest frequency that another statement found on the rows of a snapshot.

        A release that reads one goes on with it, so the oldest makes room.
        """
        if snapshot is self._snapshot:
            known = self._sampled.frequencies
            known[columns] = most
            if len(known) > _MOST_FORMS:
                for oldest in list(known)[:-_MOST_FORMS]:
                    known.pop(oldest, None)

    def frequencies(self, snapshot: Snapshot) -> Mapping[Columns, int]:
        """The largest frequencies that are known of the rows of a snapshot."""
        return self._sampled.frequencies if snapshot is self._snapshot else {}

    def holds(self, snapshot: Snapshot, inclusion: Inclusion) -> bool | None:
        """Whether every row finds the row that it refers to; None where that was not looked at.

        It is looked at once, and only where the rows stay as they are.
        """
        known = self._sampled.inclusions
        if snapshot is not self._snapshot:
            return None
        if inclusion.key not in known:
            statement = unmatched(inclusion)
            if not self.worth(snapshot, inclusion.key, statement):
                return None
            known[inclusion.key] = snapshot.scalar(statement) == 0
        return known[inclusion.key]

    def worth(self, snapshot: Snapshot, what: Hashable, read_by: exp.Expression) -> bool:
        """Whether to read something that later releases have too: an earlier one wished for it.

        So the only release on some rows never pays for others.
        """
        if rows_for_good(snapshot, read_by) is None:
            return False
        wished = self._sampled.wished
        if what not in wished and len(wished) >= _MOST_FORMS:
            return False
        return wished.setdefault(what, self._release) is not self._release

    def groups(
        self, snapshot: Snapshot, leaders: Leaders, dialect: str, saved: float
    ) -> KeptGroups | None:
        """The groups of whole tables that lead; None where they were not looked for.

        ``saved``: what they are expected to save this time. They are looked for once earlier
        releases have spent as much without them as that costs, so that all releases together never
        cost more than twice what they would if it had been known how many there are.
        """
        known, what = self._sampled.groups, kept_as(leaders)
        if what in known or snapshot is not self._snapshot:
            return known.get(what)
        spent = self._sampled.spent
        if len(known) >= _MOST_GROUPS or (what not in spent and len(spent) >= _MOST_FORMS):
            return None
        before = spent.setdefault(what, _Spent(self._release)).add(self._release, saved)
        if before is None or before < _PATIENCE * leaders.core.cost:
            return None
        statement = groups_statement(leaders, StatementBuilder(dialect_named(dialect)))
        if rows_for_good(snapshot, statement) is None:
            return None
        rows = integer_rows(snapshot.rows(statement))
        least = rows[-1][-1] if len(rows) >= leaders.most else 0
        keys, counts = tuple(tuple(row[:-1]) for row in rows), tuple(row[-1] for row in rows)
        known[what] = KeptGroups(keys, counts, least)
        return known[what]

    def known_so_far(self, snapshot: Snapshot) -> tuple[int, ...]:
        """How much is known of the rows of a snapshot: what follows from it stays the same."""
        if snapshot is not self._snapshot:
            return ()
        known = self._sampled
        return len(known.frequencies), len(known.groups), len(known.inclusions)

    def known_groups(self, snapshot: Snapshot, leaders: Leaders) -> KeptGroups | None:
        """The same, if they were looked for already."""
        return self._sampled.groups.get(kept_as(leaders)) if snapshot is self._snapshot else None

    def values(self, snapshot: Snapshot) -> Mapping[Hashable, int]:
        """The values of residuals of whole tables that are known of these rows."""
        return self._sampled.values if snapshot is self._snapshot else {}

    def learn_value(self, snapshot: Snapshot, tables: Hashable, value: int) -> None:
        """Keep the value of a residual of whole tables for later releases on the same rows."""
        known = self._sampled.values
        if snapshot is self._snapshot and len(known) < _MOST_FORMS:
            known[tables] = value

    def _guessed_columns(self, query: Query) -> dict[tuple[Identity, str], Repetition]:
        """What is joined with a key has the key's values, some more often than others."""
        size = self._sampled.rows
        keys: dict[Variable, Table] = {}
        for atom in query.atoms:
            for name, term in atom.terms:
                if isinstance(term, Variable) and frozenset({name}) in atom.table.keys:
                    keys[term] = atom.table
        found = {}
        for atom in query.atoms:
            rows = max(size[atom.table.identity], 1.0)
            for name, term in atom.terms:
                if isinstance(term, Variable) and term in keys:
                    distinct = max(min(rows, size[keys[term].identity]), 1.0)
                    each = rows / distinct
                    skewed = Repetition(distinct, 2 * rows * each, min(10 * each, rows))
                    found[atom.table.identity, name] = skewed
        return found

    def _begin(self, snapshot: Snapshot | None) -> None:
        self._snapshot = snapshot
        self._release = object()
        self._sampled = (
            _Sampled() if snapshot is None else learned(snapshot, "statistics", _Sampled)
        )

    def _read_sizes(self, snapshot: Snapshot, tables: Sequence[Table]) -> None:
        if not tables:
            return
        found = snapshot.rows(sizes_of(tables))
        counted = {int(cast(int, i)): float(cast(int, n)) for i, n in found}
        self._sampled.rows.update({table.identity: counted[i] for i, table in enumerate(tables)})

    def _read_columns(
        self, snapshot: Snapshot, wanted: Sequence[tuple[Table, str]], whole: float
    ) -> None:
        if not wanted:
            return
        rates = [
            1.0 if name in table.index_leads else _rate(self._sampled.rows[table.identity], whole)
            for table, name in wanted
        ]
        sampled = [(*one, rate) for one, rate in zip(wanted, rates, strict=True)]
        for row in snapshot.rows(repetitions(sampled)):
            i, distinct, seen, squares, most = (int(cast(int, v)) for v in row)
            table, name = wanted[i]
            self._sampled.columns[table.identity, name] = _scaled(
                distinct, seen, squares, most, rates[i]
            )
            if rates[i] == 1.0 and not table.column(name).nullable:
                self._sampled.rows[table.identity] = float(seen)
            # Of other types, groups may be finer than what a join takes for equal.
            if rates[i] == 1.0 and behave_alike([table.column(name).type]):
                self._sampled.frequencies[table.identity, frozenset({name})] = most


class PublicTables(SampledTables):
    """Statistics before anything is charged: private tables are taken for large, and never read."""

    def _begin(self, snapshot: Snapshot | None) -> None:
        # Nothing that others have learned of private tables, and nothing assumed for others.
        super()._begin(None)
        self._snapshot = snapshot

    def _read_sizes(self, snapshot: Snapshot, tables: Sequence[Table]) -> None:
        private = [table for table in tables if table.private]
        self._sampled.rows.update({one.identity: Statistics.GUESSED_ROWS for one in private})
        super()._read_sizes(snapshot, [table for table in tables if not table.private])

    def _read_columns(
        self, snapshot: Snapshot, wanted: Sequence[tuple[Table, str]], whole: float
    ) -> None:
        super()._read_columns(snapshot, [one for one in wanted if not one[0].private], whole)


def _tells_size(table: Table, name: str) -> bool:
    """Whether a column that an index has in order is read as a whole and names every row."""
    return name in table.index_leads and not table.column(name).nullable


def _rate(rows: float, whole: float) -> float:
    return 1.0 if rows <= max(whole, _SAMPLE) else _SAMPLE / rows


def _joined_columns(query: Query) -> list[tuple[Table, str]]:
    """The columns that are joined, or compared with another one: not with a constant alone."""
    places = Counter(t for a in query.atoms for _, t in a.terms if isinstance(t, Variable))
    met = {v for p in query.predicates if len(p.variables) > 1 for v in p.variables}
    met |= {v for v, number in places.items() if number > 1} | (query.distinct or frozenset())
    found: dict[tuple[Identity, str], tuple[Table, str]] = {}
    for atom in query.atoms:
        for name, term in atom.terms:
            # What is computed may fail on rows that the query leaves out.
            computed = atom.table.column(name).computed is not None
            if isinstance(term, Variable) and term in query.never_null & met and not computed:
                found[atom.table.identity, name] = (atom.table, name)
    return list(found.values())


def _scaled(distinct: int, seen: int, squares: int, most: int, rate: float) -> Repetition:
    """The repetition in a column from that in a sample, where rate² of all equal pairs survive."""
    if rate == 1.0 or distinct == 0:
        return Repetition(max(distinct, 1.0), max(squares, 1.0), max(most, 1.0))
    rows = seen / rate
    return Repetition(
        distinct=_before_sampling(distinct, seen, rows),
        squares=max((squares - seen) / rate**2 + rows, rows),
        most=max(most / rate, 1.0),
    )


def _before_sampling(distinct: float, seen: float, rows: float) -> float:
    """The d of which ``seen`` draws are expected to hit ``distinct``, by bisection."""
    low, high = distinct, rows
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if middle * -math.expm1(-seen / middle) < distinct else (low, middle)
        )
    return high
