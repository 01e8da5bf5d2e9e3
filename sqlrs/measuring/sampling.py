"""Reads the statistics of a query's tables: once per snapshot, to guide plans only. Private."""

from __future__ import annotations

import math
from typing import cast

from sqlrs.catalog import Table
from sqlrs.engines.base import Snapshot
from sqlrs.planning.table_statistics import Identity, Repetition, Statistics
from sqlrs.query import Query, Variable
from sqlrs.sql.repetitions import repetitions, sizes_of
from sqlrs.values import behave_alike

# Below this many rows every plan is quick, and above the other one a sample tells enough.
_SMALL = 2_000
_SAMPLE = 1_000_000


def read_statistics(snapshot: Snapshot, query: Query) -> Statistics:
    """Two statements: the sizes of all tables, then the joined columns of those that matter."""
    tables = list({atom.table.identity: atom.table for atom in query.atoms}.values())
    sizes = snapshot.rows(sizes_of(tables))
    counted = {int(cast(int, i)): float(cast(int, n)) for i, n in sizes}
    rows = {table.identity: counted[i] for i, table in enumerate(tables)}
    wanted = [
        (table, name)
        for table, name in _joined_columns(query)
        if rows[table.identity] > _SMALL and frozenset({name}) not in table.keys
    ]
    columns: dict[tuple[Identity, str], Repetition] = {}
    frequencies: dict[tuple[Identity, str], int] = {}
    if wanted:
        rates = [min(1.0, _SAMPLE / rows[table.identity]) for table, _ in wanted]
        sampled = [(*one, rate) for one, rate in zip(wanted, rates, strict=True)]
        found = snapshot.rows(repetitions(sampled))
        for row in found:
            i, distinct, seen, squares, most = (int(cast(int, v)) for v in row)
            table, name = wanted[i]
            columns[table.identity, name] = _scaled(distinct, seen, squares, most, rates[i])
            # Of other types, groups may be finer than what a join takes for equal.
            if rates[i] == 1.0 and behave_alike([table.column(name).type]):
                frequencies[table.identity, name] = most
    return Statistics(rows, columns, frequencies)


def _joined_columns(query: Query) -> list[tuple[Table, str]]:
    found: dict[tuple[Identity, str], tuple[Table, str]] = {}
    for atom in query.atoms:
        for name, term in atom.terms:
            # What is computed may fail on rows that the query leaves out.
            computed = atom.table.column(name).computed is not None
            if isinstance(term, Variable) and term in query.never_null and not computed:
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
