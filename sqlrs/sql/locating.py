"""Rows with values of keys -> the same rows with the numbers of their groups in public domains.

A row belongs to one group at most, also where two rows of a domain are equal to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain, combinations
from typing import cast

from sqlglot import exp

from sqlrs.measures import KeyDomain
from sqlrs.query import Query, Term, Variable
from sqlrs.records import dataclass
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.trees.build import (
    ascending,
    filtered_by,
    grouped_by,
    joined_with,
    named,
    number,
    select_from,
    table_named,
    union_of,
    with_columns,
)
from sqlrs.trees.constants import literal
from sqlrs.trees.identifiers import column, identifier

ORDINAL = "ordinal"
"""The column of a domain that numbers its rows."""
# Each nullable key doubles the ways in which the keys of one domain can be NULL.
_MOST_APART = 3


@dataclass(frozen=True)
class KeyColumn:
    """A key as a column of the rows."""

    name: str
    nullable: bool


KeyPlace = KeyColumn | exp.Expression | None
"""Where a key stands in rows: in a column, as one value for all of them, or it is NULL."""


def key_places(
    keys: Iterable[Term | None], names: Mapping[Variable, str], query: Query
) -> list[KeyPlace]:
    """The places of the keys of a query whose variables have columns of these names."""
    nullable = nullable_variables(query)
    return [
        KeyColumn(names[key], key in nullable)
        if isinstance(key, Variable)
        else None
        if key is None
        else literal(key)
        for key in keys
    ]


@dataclass(frozen=True)
class Locator:
    """Finds rows in domains. ``ordinals`` are names for the columns that it adds to the rows.

    ``numbered``: the steps of the domains by their places, as far as they are there.
    """

    building: StatementBuilder
    keys: Sequence[KeyPlace]
    domains: Sequence[KeyDomain]
    ordinals: Sequence[str]
    numbered: dict[int, str] = field(default_factory=dict)

    def located(self, rows: str, columns: Sequence[str]) -> str:
        """The rows that belong to a row of each domain, with its number and these columns."""
        for place in range(len(self.domains)):
            rows = self._located(place, rows, columns)
        return rows

    def once(self, rows: str, same: Sequence[str], shown: Sequence[str]) -> str:
        """Located rows, each in one group: where several fit, in the first.

        ``same`` are the columns by which rows were different before they were located.
        """
        first = (named(exp.Min(this=column(o, rows)), o) for o in self.ordinals)
        select = with_columns(
            select_from(table_named(rows)), *first, *(column(name, rows) for name in shown)
        )
        select = grouped_by(select, [column(name, rows) for name in same])
        return self.building.add("in_one_group", select)

    def _located(self, place: int, rows: str, columns: Sequence[str]) -> str:
        domain = self.domains[place]
        if place not in self.numbered:
            step = self.building.add(f"domain_{place}", numbered_domain(domain))
            self.numbered[place] = step
        known = self.numbered[place]
        shown = [*columns, *self.ordinals[:place]]
        apart, together = self._null_apart(domain)
        ways = []
        for null in chain.from_iterable(combinations(apart, n) for n in range(len(apart) + 1)):
            select = select_from(
                table_named(rows),
                *(column(name, rows) for name in shown),
                named(column(ORDINAL, known), self.ordinals[place]),
            )
            equal, where = self._same(domain, rows, known, frozenset(null), together)
            ways.append(filtered_by(joined_with(select, table_named(known), equal), where))
        return self.building.add(f"in_domain_{place}", union_of(ways))

    def _null_apart(self, domain: KeyDomain) -> tuple[list[str], frozenset[str]]:
        """The nullable keys of a domain: those for which NULL has a way of its own, and the rest.

        PostgreSQL finds equal values by hashing, but not those that may be NULL.
        """
        places = (self.keys[key] for key in domain.keys)
        found = sorted({p.name for p in places if isinstance(p, KeyColumn) and p.nullable})
        return found[:_MOST_APART], frozenset(found[_MOST_APART:])

    def _same(
        self,
        domain: KeyDomain,
        rows: str,
        known: str,
        null: frozenset[str],
        together: frozenset[str],
    ) -> tuple[list[exp.Expression], list[exp.Expression]]:
        """Which rows belong to which row of a domain, those where ``null`` is NULL."""
        equal: list[exp.Expression] = []
        where: list[exp.Expression] = []
        for key, name in zip(domain.keys, domain_columns(domain), strict=True):
            there, place = column(name, known), self.keys[key]
            if place is None:
                where.append(exp.Is(this=there, expression=exp.Null()))
            elif not isinstance(place, KeyColumn):
                where.append(exp.EQ(this=there, expression=place.copy()))
            elif place.name in null:
                here = column(place.name, rows)
                where += [exp.Is(this=side, expression=exp.Null()) for side in (here, there)]
            else:
                kind = exp.NullSafeEQ if place.name in together else exp.EQ
                equal.append(kind(this=column(place.name, rows), expression=there))
        return equal, where


def nullable_variables(query: Query) -> frozenset[Variable]:
    """The variables that may be NULL in a result."""
    held = {
        term
        for atom in query.atoms
        for name, term in atom.terms
        if isinstance(term, Variable) and atom.table.column(name).nullable
    }
    return frozenset(held - query.never_null)


def numbered_domain(domain: KeyDomain) -> exp.Select:
    """The rows of a domain, each with its number from 0 on. Every statement numbers alike."""
    names = domain_columns(domain)
    # NULL has its place by a column of its own: by default, settings of a session decide it.
    order = [
        ascending(tree)
        for name in names
        for tree in (
            exp.Is(this=column(name, "domain"), expression=exp.Null()),
            column(name, "domain"),
        )
    ]
    numbers = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order))
    from_zero = exp.Sub(this=numbers, expression=number(1))
    return select_from(
        listed(domain),
        *(column(name, "domain") for name in names),
        named(from_zero, ORDINAL),
    )


def domain_columns(domain: KeyDomain) -> list[str]:
    """The names of a domain's columns."""
    return [f"k{key}" for key in domain.keys]


def listed(domain: KeyDomain) -> exp.Subquery:
    """The rows of a domain in FROM."""
    rows = cast(exp.Query, domain.select).copy()
    return exp.Subquery(this=rows, alias=exp.TableAlias(this=identifier("domain")))


def tables_of(domains: Iterable[KeyDomain], *further: exp.Query) -> frozenset[str]:
    """Names that a step must not take: those of the tables in the domains and further queries."""
    return frozenset(
        table.name.lower()
        for query in (*(cast(exp.Query, domain.select) for domain in domains), *further)
        for table in query.find_all(exp.Table)
    )
