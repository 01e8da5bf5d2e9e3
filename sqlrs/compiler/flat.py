"""The flat query: tables and conditions, and the small steps by which trees become it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.compiler.source import STANDS_ALONE, Source
from sqlrs.records import dataclass
from sqlrs.trees.copies import copied


@dataclass(frozen=True, eq=False)
class Occurrence:
    """One table of the flat query. ``outer`` is false inside EXISTS and IN (SELECT …)."""

    alias: str
    table: Table
    outer: bool
    place: exp.Expr


@dataclass(frozen=True, eq=False)
class FlatQuery:
    """The count over a join of tables under conditions whose columns name an occurrence.

    ``distinct`` is None for a count of rows, else the expressions whose values are counted once.
    ``keys`` are what the results are grouped by, ``weight`` what is summed over them. Columns that
    an outer join leaves empty are NULL in all of these.
    """

    occurrences: tuple[Occurrence, ...]
    conditions: tuple[exp.Expr, ...]
    distinct: tuple[exp.Expr, ...] | None
    source: Source
    keys: tuple[exp.Expr, ...] = ()
    weight: exp.Expr | None = None


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a conjunction, in order, without the parentheses around them."""
    pending = [condition]
    while pending:
        part = pending.pop().unnest()
        if isinstance(part, exp.And):
            pending += [part.expression, part.this]
        else:
            yield part


def is_comma(join: exp.Join) -> bool:
    """Whether the join is a comma in FROM."""
    return not any(join.args.get(name) for name in ("kind", "method", "on", "using"))


def name_of(part: exp.Expr) -> exp.Expr:
    """The identifier by which an item of FROM is known."""
    alias = part.args.get("alias")
    if alias is not None and alias.this is not None:
        named: exp.Expr = alias.this
        return named
    return part.this if isinstance(part, exp.Table) else exp.to_identifier("")


def not_null(value: exp.Expr) -> exp.Expr:
    """The condition that the value is not null, standing where the value stands."""
    condition = exp.Not(this=exp.Is(this=operand(value), expression=exp.Null()))
    start = next((n.meta["start"] for n in value.walk() if "start" in n.meta), None)
    end = next((n.meta["end"] for n in value.walk() if "end" in n.meta), None)
    if start is not None and end is not None:
        stand_at(condition, start, end)
    return condition


def operand(value: exp.Expr) -> exp.Expr:
    """A copy that can stand inside any expression."""
    simple = isinstance(value, exp.Column | exp.Literal | exp.Paren | exp.Null | exp.Boolean)
    return copied(value) if simple else exp.Paren(this=copied(value))


def stand_at(tree: exp.Expr, start: int, end: int, *, alone: bool = True) -> None:
    """Give every node one place in the text, so that refusals point at what the analyst wrote.

    ``alone`` says that the words around that place are not the tree's own.
    """
    for node in tree.walk():
        node.meta.update({"start": start, "end": end})
        if alone:
            node.meta[STANDS_ALONE] = True
