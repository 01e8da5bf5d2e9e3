"""Values of groups -> one statement: counted by the keys' values, then found in the public domains.

Groups are numbered by the rows of their domains, so that no value of a key is ever read from
private rows. A row belongs to one group at most, also where two rows of a domain are equal to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from typing import cast

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.measures import KeyDomain
from sqlrs.planning.by_group import ByGroup
from sqlrs.planning.plan import table_names
from sqlrs.query import Query, Term, Variable
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.plain import grouped_count, join_of, weights_in
from sqlrs.trees.build import (
    ascending,
    filtered_by,
    grouped_by,
    inner,
    joined_with,
    named,
    number,
    select_from,
    table_named,
    union_of,
    with_columns,
)
from sqlrs.trees.constants import literal
from sqlrs.trees.identifiers import again, column, identifier
from sqlrs.trees.naming import RESULTS, column_names, free_name
from sqlrs.trees.totals import product

_ORDINAL = "ordinal"
# Each nullable key doubles the ways in which the keys of one domain can be NULL.
_MOST_APART = 3


def grouped_totals(
    plan: ByGroup, keys: Sequence[Term | None], domains: Sequence[KeyDomain], dialect: str
) -> exp.Select:
    """Rows (ordinals…, number) of all groups with a result: the value of the whole query in each.

    Without a domain it is one number.
    """
    return _GroupedWriter(plan, keys, domains, dialect).statement(exp.Sum)


def grouped_largest(
    plan: ByGroup, keys: Sequence[Term | None], domains: Sequence[KeyDomain], dialect: str
) -> exp.Select:
    """Rows (ordinals…, number) of all groups with a result: the largest count over the boundary."""
    return _GroupedWriter(plan, keys, domains, dialect).statement(exp.Max)


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
        _listed(domain),
        *(column(name, "domain") for name in names),
        named(from_zero, _ORDINAL),
    )


def domain_rows(domain: KeyDomain, most: int) -> exp.Select:
    """The first rows of a domain, in the order of their numbers."""
    names = domain_columns(domain)
    select = select_from(
        inner(numbered_domain(domain), "numbered"), *(column(name, "numbered") for name in names)
    )
    select.set("order", exp.Order(expressions=[ascending(column(_ORDINAL, "numbered"))]))
    select.set("limit", exp.Limit(expression=number(most)))
    return select


def domain_sizes(domains: Sequence[KeyDomain]) -> exp.Select:
    """One row: the number of rows of each domain."""
    sizes: list[exp.Expression] = []
    for i, domain in enumerate(domains):
        counted = select_from(_listed(domain), exp.Count(this=exp.Star()))
        sizes.append(named(exp.Subquery(this=counted), f"size_{i}"))
    return exp.Select(expressions=sizes)


def domain_columns(domain: KeyDomain) -> list[str]:
    """The names of a domain's columns."""
    return [f"k{key}" for key in domain.keys]


class _GroupedWriter:
    """A statement on its way; rows have columns for values of keys, a number, and ordinals."""

    def __init__(
        self,
        plan: ByGroup,
        keys: Sequence[Term | None],
        domains: Sequence[KeyDomain],
        dialect: str,
    ) -> None:
        self.plan = plan
        self.keys = keys
        self.domains = domains
        reserved = table_names(plan.residual) | _tables_of(domains)
        self.building = StatementBuilder(dialect_named(dialect), reserved)
        self.names = {v: name for v, name in column_names(plan.free).items() if v in plan.keys}
        taken = {RESULTS, *self.names.values()}
        self.ordinals = [free_name(f"o{i}", taken) for i, _ in enumerate(domains)]
        self.nullable = nullable_variables(plan.residual.query)

    def statement(self, joined: type[exp.Sum] | type[exp.Max]) -> exp.Select:
        """The statement; ``joined`` makes one number of those that belong to one group."""
        rows = self.building.add("per_key", self._per_key())
        if not self.domains:
            return self.building.finished(select_from(table_named(rows), column(RESULTS, rows)))
        for place in range(len(self.domains)):
            rows = self._located(place, rows)
        rows = self._once(rows)
        ordinals = [column(name, rows) for name in self.ordinals]
        select = select_from(
            table_named(rows), *ordinals, named(joined(this=column(RESULTS, rows)), RESULTS)
        )
        return self.building.finished(grouped_by(select, map(again, ordinals)))

    def _per_key(self) -> exp.Select:
        """The value for each value of the keys' variables."""
        rows = self._counted()
        keys = self.names.values()
        if not self.plan.residual.boundary:
            if not keys:
                last = rows.expressions[-1]
                last.set("this", exp.Coalesce(this=last.this, expressions=[number(0)]))
            return rows
        name = self.building.add("per_boundary_value", rows)
        most = exp.Max(this=column(RESULTS, name))
        value = most if keys else exp.Coalesce(this=most, expressions=[number(0)])
        select = select_from(
            table_named(name), *(column(key, name) for key in keys), named(value, RESULTS)
        )
        return grouped_by(select, (column(key, name) for key in keys))

    def _counted(self) -> exp.Select:
        """The value for each value of the boundary and the keys."""
        plan = self.plan
        names = column_names(plan.free)
        if plan.total is not None:
            rows, _ = self.building.totals(plan.total)
        else:
            joined, places = join_of(plan.residual)
            weights = weights_in(plan.residual)
            output = plan.residual.output
            rows = grouped_count(joined, places, list(names), output, weights, names)
        if not plan.factors:
            return rows
        name = self.building.add("per_weight", rows)
        factors = [
            column(names[term], name) if isinstance(term, Variable) else literal(term)
            for term in plan.factors
        ]
        kept = [names[v] for v in sorted(plan.residual.boundary | plan.keys)]
        value = exp.Sum(this=product([column(RESULTS, name), *factors]))
        select = select_from(
            table_named(name), *(column(key, name) for key in kept), named(value, RESULTS)
        )
        return grouped_by(select, (column(key, name) for key in kept))

    def _located(self, place: int, rows: str) -> str:
        """The rows that belong to a row of a domain, with its number."""
        domain = self.domains[place]
        known = self.building.add(f"domain_{place}", numbered_domain(domain))
        shown = [*self.names.values(), RESULTS, *self.ordinals[:place]]
        apart, together = self._null_apart(domain)
        ways = []
        for null in chain.from_iterable(combinations(apart, n) for n in range(len(apart) + 1)):
            select = select_from(
                table_named(rows),
                *(column(name, rows) for name in shown),
                named(column(_ORDINAL, known), self.ordinals[place]),
            )
            equal, where = self._same(domain, rows, known, frozenset(null), together)
            ways.append(filtered_by(joined_with(select, table_named(known), equal), where))
        return self.building.add(f"in_domain_{place}", union_of(ways))

    def _null_apart(self, domain: KeyDomain) -> tuple[list[Variable], frozenset[Variable]]:
        """The nullable keys of a domain: those for which NULL has a way of its own, and the rest.

        PostgreSQL finds equal values by hashing, but not those that may be NULL.
        """
        terms = {self.keys[key] for key in domain.keys}
        found = sorted(t for t in terms if isinstance(t, Variable) and t in self.nullable)
        return found[:_MOST_APART], frozenset(found[_MOST_APART:])

    def _same(
        self,
        domain: KeyDomain,
        rows: str,
        known: str,
        null: frozenset[Variable],
        together: frozenset[Variable],
    ) -> tuple[list[exp.Expression], list[exp.Expression]]:
        """Which rows belong to which row of a domain, those where ``null`` is NULL."""
        equal: list[exp.Expression] = []
        where: list[exp.Expression] = []
        for key, name in zip(domain.keys, domain_columns(domain), strict=True):
            there, term = column(name, known), self.keys[key]
            if term is None:
                where.append(exp.Is(this=there, expression=exp.Null()))
            elif not isinstance(term, Variable):
                where.append(exp.EQ(this=there, expression=literal(term)))
            elif term in null:
                here = column(self.names[term], rows)
                where += [exp.Is(this=side, expression=exp.Null()) for side in (here, there)]
            else:
                kind = exp.NullSafeEQ if term in together else exp.EQ
                here = column(self.names[term], rows)
                equal.append(kind(this=here, expression=there))
        return equal, where

    def _once(self, rows: str) -> str:
        """Each value of the keys in one group: where several fit, in the first."""
        same = [column(name, rows) for name in (*self.names.values(), RESULTS)]
        first = (named(exp.Min(this=column(o, rows)), o) for o in self.ordinals)
        select = with_columns(select_from(table_named(rows)), *first, column(RESULTS, rows))
        return self.building.add("in_one_group", grouped_by(select, same))


def nullable_variables(query: Query) -> frozenset[Variable]:
    """The variables that may be NULL in a result."""
    held = {
        term
        for atom in query.atoms
        for name, term in atom.terms
        if isinstance(term, Variable) and atom.table.column(name).nullable
    }
    return frozenset(held - query.never_null)


def _listed(domain: KeyDomain) -> exp.Subquery:
    """The rows of a domain in FROM."""
    rows = cast(exp.Query, domain.select).copy()
    return exp.Subquery(this=rows, alias=exp.TableAlias(this=identifier("domain")))


def _tables_of(domains: Iterable[KeyDomain]) -> frozenset[str]:
    """Names that a step must not take."""
    return frozenset(
        table.name.lower()
        for domain in domains
        for table in cast(exp.Query, domain.select).find_all(exp.Table)
    )
