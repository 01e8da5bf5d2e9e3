"""What a function relies on in its query: built-in functions and types alone, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiled import CompiledStatement
from sqlrs.compiler.function_parameters import has_parameter
from sqlrs.compiler.functions import is_declared
from sqlrs.errors import UsageError
from sqlrs.measures import Aggregation
from sqlrs.procedures.shown_columns import ELSEWHERE
from sqlrs.query import Query
from sqlrs.refusals import refusal


def check_parts(compiled: CompiledStatement, aggregation: Aggregation) -> None:
    """Refuse functions and types from elsewhere, and parameters outside of conditions."""
    queries = compiled.queries
    by_unit = [m.per_unit for m in aggregation.measures if m.per_unit is not None]
    trees = [t for query in queries for t in _trees(query)]
    trees += [cast(exp.Expr, one.select) for one in by_unit]
    if calls := {node for tree in trees for node in tree.walk() if is_declared(node)}:
        used = ", ".join(sorted({str(call.this).lower() for call in calls}))
        raise UsageError(f"a function inside the database does not call {used}", hint=ELSEWHERE)
    for query in queries:
        _check_types(query)
    for one in by_unit:
        names = {column.name for column in cast(exp.Expr, one.select).find_all(exp.Column)}
        for table in one.tables:
            _check_columns(table, {c.name for c in table.columns if c.name in names})
    beside = (*_beside_conditions(aggregation, queries), *(one.select for one in by_unit))
    if has_parameter(beside):
        raise refusal(
            "parameter",
            "a parameter of a function stands in conditions of a join, not in keys or sums, nor in "
            "what is counted inside of each unit",
        )


def _trees(query: Query) -> Iterator[exp.Expr]:
    """Every condition and computed column."""
    for atom in query.atoms:
        yield from (cast(exp.Expr, one.condition) for one in atom.filters)
        yield from (cast(exp.Expr, c.computed) for c in atom.table.columns if c.computed)
    yield from (cast(exp.Expr, one.condition) for one in query.generals)


def _beside_conditions(aggregation: Aggregation, queries: Sequence[Query]) -> Iterator[object]:
    yield from (domain.select for domain in aggregation.domains)
    for query in queries:
        for atom in query.atoms:
            yield from (c.computed for c in atom.table.columns if c.computed)


def _check_types(query: Query) -> None:
    """As for a count: no operator from elsewhere is trusted."""
    for atom in query.atoms:
        table = atom.table
        used = {name for name, _ in atom.terms} | {c for f in atom.filters for c in f.columns}
        for name in list(used):
            computed = table.column(name).computed
            if isinstance(computed, exp.Expr):
                used |= {column.name for column in computed.find_all(exp.Column)}
        _check_columns(table, used)


def _check_columns(table: Table, used: Iterable[str]) -> None:
    for name in used:
        if "." in table.column(name).type.name:
            raise refusal(
                "unsupported",
                f"column {table.label}.{name} is not of a type of PostgreSQL's own",
                hint=f"a function trusts no operator from elsewhere; {ELSEWHERE}",
            )


def read_tables(compiled: CompiledStatement, catalog: Catalog) -> tuple[Table, ...]:
    """The tables as the catalog has them, without columns that were computed."""
    read = {table.identity for table in compiled.tables(catalog)}
    for _, measure in compiled.asked:
        if measure.per_unit is not None:
            read |= {table.identity for table in measure.per_unit.tables}
    return tuple(table for table in catalog.tables if table.identity in read)
