"""A statement of an analyst -> what is released of private rows, and what is made of it afterwards.

The order: source, parse, coverage, cut; then for each cut its aggregates one by one: inline into a
signed sum, find the domains of the keys, weigh, lower, simplify.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import cast

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiler.above import check_above
from sqlrs.compiler.computed import with_computed
from sqlrs.compiler.conditions import reference
from sqlrs.compiler.coverage import check_coverage
from sqlrs.compiler.cut import Below, cut
from sqlrs.compiler.domains import find_domains
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.grammar import check_grammar
from sqlrs.compiler.inline import inline_aggregate
from sqlrs.compiler.lower import lower, refuse_opaque
from sqlrs.compiler.parse import parse_query
from sqlrs.compiler.simplify import Contradiction, simplify
from sqlrs.compiler.source import Source, read_source
from sqlrs.compiler.weighing import Factor, weigh
from sqlrs.effort import TOO_MANY_STEPS, TooComplex, bounded
from sqlrs.errors import Span
from sqlrs.inputs import arguments
from sqlrs.measures import Aggregation, KeyDomain, Measure, Signed
from sqlrs.query import Query, Term

MAX_TERMS = 100
"""Each is compiled and measured on its own."""


@dataclass(frozen=True, eq=False)
class CutStatement:
    """``above`` reads the relations of ``aggregations``, and rows of the ``public`` tables."""

    above: exp.Query
    aggregations: tuple[Aggregation, ...]
    public: tuple[Table, ...]
    source: Source

    def require_count(self) -> None:
        """Refuse what is not exactly one count."""
        plain = (
            len(self.aggregations) == 1
            and not self.aggregations[0].domains
            and all(measure.is_count for measure in self.aggregations[0].measures)
            and isinstance(self.above, exp.Select)
            and len(self.above.expressions) == 1
            and isinstance(self.above.expressions[0].unalias(), exp.Column)
            and not any(self.above.args.get(c) for c in ("where", "limit", "offset", "distinct"))
        )
        if not plain:
            raise self.source.refusal(
                "not_a_count",
                hint="sqlrs query, or Database.query in Python, answers groups, sums and several "
                "aggregates",
            )


def compile_statement(sql: str, catalog: Catalog, parameters: tuple[str, ...] = ()) -> CutStatement:
    """What the analyst's statement asks for, or a QueryRefused that says what is outside."""
    arguments.text("the query", sql)
    try:
        with bounded():
            return _compiled(sql, catalog, parameters)
    except RecursionError:
        raise Source(sql, catalog.dialect, ()).refusal("too_complex") from None
    except TooComplex:
        whole = Source(sql, catalog.dialect, ())
        raise whole.refusal("too_complex", Span(0, len(sql)), TOO_MANY_STEPS) from None


def _compiled(sql: str, catalog: Catalog, parameters: tuple[str, ...]) -> CutStatement:
    source = read_source(sql, catalog.dialect, parameters)
    tree = parse_query(source)
    check_coverage(tree, source, statement=True)
    found = cut(tree, catalog, source)
    check_above(found.above, source, catalog)
    aggregations = tuple(_Aggregating(below, catalog, source).compiled() for below in found.belows)
    return CutStatement(found.above, aggregations, found.public, source)


def domain_tables(domain: KeyDomain) -> frozenset[tuple[str | None, str]]:
    """The tables that a domain reads, as a catalog identifies them."""
    found = cast(exp.Expr, domain.select).find_all(exp.Table)
    stored = (table for table in found if isinstance(table.this, exp.Identifier))
    return frozenset((table.db or None, table.name) for table in stored)


@dataclass(frozen=True, eq=False)
class _Aggregating:
    """One cut on its way to what is measured."""

    below: Below
    catalog: Catalog
    source: Source

    def compiled(self) -> Aggregation:
        below = self.below
        if not below.aggregates:
            raise self.source.refusal(
                "group_by",
                below.keys[0] if below.keys else None,
                "which groups there are is not shown without an aggregate of each",
                "select count(*) beside the keys",
            )
        self._check_grammar()
        domains = self._domains()
        measures: dict[Measure, int] = {}
        columns = []
        for aggregate in below.aggregates:
            measure = self._measure(aggregate)
            columns.append(measures.setdefault(measure, len(measures)))
            if sum(len(one.terms) for one in measures) > MAX_TERMS:
                raise self.source.refusal(
                    "too_complex",
                    aggregate,
                    f"the aggregates are sums of more than {MAX_TERMS} counts in all",
                    "ask for fewer aggregates at once, or use fewer outer joins",
                )
        return Aggregation(below.name, domains, tuple(measures), tuple(columns))

    def _check_grammar(self) -> None:
        trees: list[exp.Expr] = [self.below.select, *self.below.keys]
        trees += [tree for tree, _ in self.below.same]
        for aggregate in self.below.aggregates:
            call = aggregate
            if isinstance(aggregate, exp.Filter):
                trees.append(aggregate.expression.this)
                call = aggregate.this
            if isinstance(call, exp.Sum):
                trees.append(call.this)
            else:
                trees.append(call)
        for tree in trees:
            check_grammar(tree, self.source, self.catalog, sums=True)

    def _parts(self, aggregate: exp.Expr) -> list[tuple[int, FlatQuery]]:
        parts = inline_aggregate(self.below, aggregate, self.catalog, self.source)
        for _, flat in parts:
            refuse_opaque(flat)
        return parts

    def _domains(self) -> tuple[KeyDomain, ...]:
        if not self.below.keys:
            return ()
        everything = exp.Count(this=exp.Star())
        domains = find_domains([flat for _, flat in self._parts(everything)], self.catalog)
        public = {table.identity for table in self.catalog.tables if not table.private}
        for domain in domains:
            # They are read before anything is charged and shown as they are: never believed.
            if not domain_tables(domain) <= public:
                raise self.source.refusal("unknown_domain", self.below.keys[domain.keys[0]])
        return domains

    def _measure(self, aggregate: exp.Expr) -> Measure:
        found: list[tuple[Fraction, Query, tuple[Term | None, ...]]] = []
        for coefficient, flat in self._parts(aggregate):
            for worth, factors in self._factors(flat):
                signed = _signed(flat, factors)
                if signed is not None:
                    found.append((coefficient * worth, *signed))
        return _measure_of(found)

    def _factors(self, flat: FlatQuery) -> Iterable[tuple[Fraction, tuple[Factor, ...]]]:
        if flat.weight is None:
            return [(Fraction(1), ())]
        weighing = weigh(flat, self.catalog)
        return [(term.coefficient * weighing.unit, term.factors) for term in weighing.terms]


def _signed(
    flat: FlatQuery, factors: Sequence[Factor]
) -> tuple[Query, tuple[Term | None, ...]] | None:
    """The query of one part, and where its keys stand; None if it is 0 on every database."""
    plain, weights = with_computed(flat, factors)
    query = simplify(lower(plain, weights))
    if isinstance(query, Contradiction):
        return None
    terms = {(atom.alias, column): term for atom in query.atoms for column, term in atom.terms}
    keys = tuple(
        terms[reference(key)] if isinstance(key, exp.Column) else None for key in plain.keys
    )
    return query, keys


def _measure_of(found: Sequence[tuple[Fraction, Query, tuple[Term | None, ...]]]) -> Measure:
    """The sum of all parts in one unit, equal ones together."""
    total: dict[tuple[Query, tuple[Term | None, ...]], Fraction] = {}
    for worth, query, keys in found:
        total[query, keys] = total.get((query, keys), Fraction(0)) + worth
    kept = {part: worth for part, worth in total.items() if worth}
    if not kept:
        return Measure(())
    unit = Fraction(
        gcd(*(worth.numerator for worth in kept.values())),
        lcm(*(worth.denominator for worth in kept.values())),
    )
    terms = tuple(Signed(int(worth / unit), *part) for part, worth in kept.items())
    return Measure(terms, unit)
