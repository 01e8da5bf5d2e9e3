"""Short ways to write tables and conjunctive queries in tests, and the patterns of the paper.

edge = table("edge", "src", "dst", keys=["src dst"])
query(atom(edge, "a", "b"), atom(edge, "b", "c"), different="a b c")
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from itertools import combinations

from sqlrs.catalog import Column, ColumnType, Family, Table
from sqlrs.query import (
    Atom,
    Comparison,
    Constant,
    Filter,
    General,
    Inequality,
    Query,
    Term,
    Variable,
)

INTEGER = ColumnType(Family.INTEGER, "BIGINT")
DECIMAL = ColumnType(Family.DECIMAL, "DECIMAL(18,3)")
TEXT = ColumnType(Family.TEXT, "VARCHAR")

Side = str | int


def table(
    name: str,
    *columns: str,
    keys: Iterable[str] = (),
    private: bool = True,
    nullable: str = "",
    types: dict[str, ColumnType] | None = None,
) -> Table:
    """A table of integer columns unless `types` says otherwise; each key is a string of names."""
    return Table(
        name,
        tuple(
            Column(c, (types or {}).get(c, INTEGER), nullable=c in nullable.split())
            for c in columns
        ),
        keys=frozenset(frozenset(key.split()) for key in keys),
        private=private,
    )


def atom(
    of: Table,
    *terms: Side | Constant | None,
    alias: str = "",
    where: Callable[..., object] | None = None,
    reads: str = "",
) -> Atom:
    """One occurrence: a variable's name, a constant, or None (column unused) for each column.

    `where` is a filter that is called with the values of the columns named in `reads`.
    """
    if len(terms) > len(of.columns):
        raise ValueError("more terms than columns")
    bound: list[tuple[str, Term]] = []
    for column, term in zip(of.columns, terms, strict=False):
        if isinstance(term, Constant):
            bound.append((column.name, term))
        elif isinstance(term, str):
            bound.append((column.name, Variable(term, column.type)))
        elif term is not None:
            bound.append((column.name, Constant(term, column.type)))
    filters = () if where is None else (Filter(Call(where, reads), frozenset(reads.split())),)
    return Atom(alias or "?", of, tuple(bound), filters)


class Call:
    """A condition that tests can evaluate: a function and, for a filter, the columns it reads."""

    def __init__(self, function: Callable[..., object], columns: str = "") -> None:
        self.function = function
        self.columns = tuple(columns.split())

    def __call__(self, *values: object) -> bool:
        return bool(self.function(*values))


def query(
    *atoms: Atom,
    different: str | Iterable[str] = (),
    less: Iterable[tuple[Side, Side]] = (),
    at_most: Iterable[tuple[Side, Side]] = (),
    general: Iterable[tuple[Hashable, str]] = (),
    distinct: str | None = None,
) -> Query:
    """A query. `different` is a string of pairwise different names, or several such strings.

    An atom without an alias is called after its table and position. `general` holds pairs of a
    condition (a function in tests) and its arguments' names.
    """
    named = tuple(
        replace(a, alias=f"{a.table.name}{i}") if a.alias == "?" else a
        for i, a in enumerate(atoms, 1)
    )
    known = {v.name: v for a in named for v in a.variables}

    def comparison(left: Side, right: Side, strict: bool) -> Comparison:
        kind = next(known[s].type for s in (left, right) if isinstance(s, str))
        sides = [known[s] if isinstance(s, str) else Constant(s, kind) for s in (left, right)]
        return Comparison(sides[0], sides[1], strict)

    groups = [different] if isinstance(different, str) else list(different)
    return Query(
        named,
        inequalities=frozenset(
            Inequality.between(known[one], known[other])
            for group in groups
            for one, other in combinations(group.split(), 2)
        ),
        comparisons=frozenset(
            [comparison(a, b, True) for a, b in less]
            + [comparison(a, b, False) for a, b in at_most]
        ),
        generals=tuple(
            General(
                Call(condition) if callable(condition) else condition,
                tuple(known[v] for v in names.split()),
            )
            for condition, names in general
        ),
        distinct=None if distinct is None else frozenset(known[v] for v in distinct.split()),
    )


EDGE = table("edge", "src", "dst", keys=["src dst"])


def pattern(text: str, *, different: bool = True, of: Table = EDGE) -> Query:
    """A graph pattern such as "ab bc ca": one atom for each pair, all variables different."""
    pairs = text.split()
    names = " ".join(sorted(set("".join(pairs))))
    return query(*(atom(of, *pair) for pair in pairs), different=names if different else "")


PATTERNS = {
    "triangle": "ab bc ca",
    "star3": "ab ac ad",
    "square": "ab bc cd da",
    "two_triangles": "ab bc ca bd da",
}
