"""A statement of an analyst -> what is released of private rows, and what is made of it afterwards.

The order: source, parse, coverage, cut; then for each cut its aggregates one by one: inline into a
signed sum, find the domains of the keys, weigh, lower, simplify; where units are protected, add the
owners of each result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
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
from sqlrs.compiler.owners import OwnersUnknown, with_owners
from sqlrs.compiler.parse import parse_query
from sqlrs.compiler.per_unit import UnitRows, read_unit_rows
from sqlrs.compiler.simplify import Contradiction, simplify
from sqlrs.compiler.source import Source, read_source
from sqlrs.compiler.weighing import Factor, weigh
from sqlrs.effort import TOO_MANY_STEPS, TooComplex, bounded
from sqlrs.errors import QueryRefused, Span
from sqlrs.inputs import arguments
from sqlrs.measures import Aggregation, KeyDomain, Measure, Signed
from sqlrs.query import Constant, Query, Term
from sqlrs.records import dataclass

MORE_THAN_CONJUNCTIVE = frozenset(
    """
    aggregate distinct group_by having join_form lateral negated_subquery outer_join
    semi_join_needs_key set_operation subquery type_mismatch unknown_domain unsupported window
    """.split()  # noqa: SIM905
)
"""Refusals of conjunctive queries that SQL inside one unit may do without."""
_EITHER_WAY = frozenset({"unknown_bounds", "unknown_table", "unknown_column", "bad_literal"})
_GROUP_BY_UNIT = "to aggregate inside each unit, let the inner GROUP BY contain the unit's id"
MAX_TERMS = 100
"""Each is compiled and measured on its own."""

_Part = tuple[Query, tuple[Term | None, ...], tuple[Term, ...]]
"""A query, where its keys stand in it, and its owners."""


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
    try:
        belows = tuple(_Aggregating(below, catalog, source).compiled() for below in found.belows)
    except QueryRefused as refused:
        if catalog.unit is None or found.above.find(exp.AggFunc) is None:
            raise
        raise _or_by_unit(refused, source) from None
    return CutStatement(found.above, belows, found.public, source)


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
        if self.catalog.unit is None:
            self._require_conjunctive()
        domains = self._domains()
        measured = self._measure if self.catalog.unit is None else self._measure_of_units
        measures: dict[Measure, int] = {}
        columns = []
        for aggregate in below.aggregates:
            measure = measured(aggregate)
            columns.append(measures.setdefault(measure, len(measures)))
            if sum(len(m.terms) + (m.per_unit is not None) for m in measures) > MAX_TERMS:
                raise self.source.refusal(
                    "too_complex",
                    aggregate,
                    f"the aggregates are sums of more than {MAX_TERMS} counts in all",
                    "ask for fewer aggregates at once, or use fewer outer joins",
                )
        spans = [self.source.span(key) for key in below.keys]
        place = Span(min(s.start for s in spans), max(s.end for s in spans)) if spans else None
        return Aggregation(below.name, domains, tuple(measures), tuple(columns), place)

    @cached_property
    def _outside(self) -> QueryRefused | None:
        """What of the cut is outside the language of conjunctive queries."""
        try:
            self._check_grammar()
        except QueryRefused as refused:
            return refused
        return None

    def _require_conjunctive(self) -> None:
        if self._outside is not None:
            raise self._outside

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
        try:
            self._require_conjunctive()
            everything = exp.Count(this=exp.Star())
            domains = find_domains([flat for _, flat in self._parts(everything)], self.catalog)
        except QueryRefused as refused:
            if not isinstance(self._unit_rows, UnitRows):
                raise _clearer(refused, self._unit_rows) from None
            domains = self._unit_rows.domains()
        public = {table.identity for table in self.catalog.tables if not table.private}
        for domain in domains:
            # They are read before anything is charged and shown as they are: never believed.
            if not domain_tables(domain) <= public:
                raise self.source.refusal("unknown_domain", self.below.keys[domain.keys[0]])
        return domains

    def _measure(self, aggregate: exp.Expr) -> Measure:
        found: list[tuple[Fraction, _Part]] = []
        for coefficient, flat in self._parts(aggregate):
            for worth, factors in self._factors(flat):
                part = self._part(flat, factors)
                if part is not None:
                    found.append((coefficient * worth, part))
        return _measure_of(found)

    def _measure_of_units(self, aggregate: exp.Expr) -> Measure:
        """A measure whose results have owners: by conjunctive queries, or unit by unit."""
        measure, refused = None, None
        try:
            self._require_conjunctive()
            measure = self._measure(aggregate)
        except QueryRefused as error:
            refused = error
        if measure is not None and _is_plain(measure):
            return measure
        if refused is not None and refused.code in _EITHER_WAY:
            raise refused
        by_unit = self._measure_by_unit(aggregate)
        if isinstance(by_unit, Measure) and (measure is None or _gains(by_unit, measure)):
            return by_unit
        if measure is None:
            assert refused is not None
            assert not isinstance(by_unit, Measure)
            raise _clearer(refused, by_unit)
        self._check_owners(measure, aggregate)
        return measure

    def _measure_by_unit(self, aggregate: exp.Expr) -> Measure | QueryRefused | None:
        """The measure as a statement over the rows of one unit at a time, or why it is no such."""
        rows = self._unit_rows
        if not isinstance(rows, UnitRows):
            return rows
        try:
            return rows.measure(aggregate)
        except QueryRefused as problem:
            return problem

    @cached_property
    def _unit_rows(self) -> UnitRows | QueryRefused | None:
        """The rows of the cut, each inside one unit; None where single rows are protected."""
        if self.catalog.unit is None:
            return None
        try:
            return read_unit_rows(self.below, self.catalog, self.source)
        except QueryRefused as problem:
            return problem

    def _check_owners(self, measure: Measure, aggregate: exp.Expr) -> None:
        """Refuse a measure that no clipping serves, and no bound of the rows of a unit."""
        numbers = {len(term.owners) for term in measure.terms}
        if numbers <= {1} or numbers == {0}:
            return
        tables = [t for term in measure.terms for t in term.query.tables if t.private]
        if all(table.bounded for table in tables):
            return
        if 0 in numbers:
            raise self.source.refusal(
                "unit_lost",
                aggregate,
                "some results here are of public tables alone: they belong to no unit",
                "ask for what public tables hold on its own, and add it to the answer",
            )
        hint, place = None, aggregate
        if self.below.keys:
            place = self.below.keys[0]
            message = "results that belong to more than one unit are not grouped"
        elif any(term.coefficient < 0 for term in measure.terms):
            message = "results here belong to more than one unit, and may be negative"
            hint = (
                "sum greatest(column, 0), or let the owner declare [bounds] from 0 on; outer joins "
                "and NOT EXISTS need one unit for each result"
            )
        elif len(measure.terms) > 1:
            message = "results here belong to more than one unit, and are a sum of several queries"
            hint = "ask for each part on its own and add the answers"
        elif any(isinstance(owner, Constant) for term in measure.terms for owner in term.owners):
            message = "results here belong to more than one unit, and the text names one of them"
            hint = "leave out the condition that an id is a constant"
        else:
            return
        raise self.source.refusal("several_owners", place, message, hint)

    def _part(self, flat: FlatQuery, factors: Sequence[Factor]) -> _Part | None:
        """One part as a query with its keys and owners; None if it is 0 on every database."""
        signed = _signed(flat, factors)
        if signed is None or self.catalog.unit is None:
            return None if signed is None else (*signed, ())
        query, keys = signed
        try:
            owned = with_owners(query, self.catalog)
        except OwnersUnknown as unknown:
            place = next(o.place for o in flat.occurrences if o.alias == unknown.alias)
            raise self._unowned(unknown.code, place) from None
        return owned.query, keys, owned.owners

    def _unowned(self, code: str, place: exp.Expr) -> QueryRefused:
        match code:
            case "no_owner":
                return self.source.refusal("no_owner", place)
            case "unit_lost":
                return self.source.refusal("unit_lost", place)
        return self.source.refusal("too_complex", place, "the chains to its owners do not end")

    def _factors(self, flat: FlatQuery) -> Iterable[tuple[Fraction, tuple[Factor, ...]]]:
        if flat.weight is None:
            return [(Fraction(1), ())]
        weighing = weigh(flat, self.catalog)
        return [(term.coefficient * weighing.unit, term.factors) for term in weighing.terms]


def _gains(by_unit: Measure, measure: Measure) -> bool:
    """Whether clipping is better unit by unit: one owner for several, or nothing taken away."""
    one_owner = {len(term.owners) for term in measure.terms} <= {1}
    return not one_owner or by_unit.per_unit is None or not by_unit.per_unit.signed


def _or_by_unit(refused: QueryRefused, source: Source) -> QueryRefused:
    """Where released groups are aggregated again, grouping by the unit's id releases no groups."""
    if refused.code != "unknown_domain":
        return refused
    hint = "; ".join(filter(None, (_GROUP_BY_UNIT, refused.hint)))
    return source.refusal("unknown_domain", refused.span, refused.message, hint)


def _clearer(refused: QueryRefused, by_unit: QueryRefused | None) -> QueryRefused:
    """Of two reasons the one that tells the analyst what to change."""
    return refused if by_unit is None or refused.code not in MORE_THAN_CONJUNCTIVE else by_unit


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


def _is_plain(measure: Measure) -> bool:
    """Whether all results have one owner, and none takes anything away."""
    numbers = {len(term.owners) for term in measure.terms}
    return (
        len(numbers) <= 1
        and numbers <= {0, 1}
        and all(term.coefficient > 0 for term in measure.terms)
    )


def _measure_of(found: Sequence[tuple[Fraction, _Part]]) -> Measure:
    """The sum of all parts in one unit, equal ones together."""
    total: dict[_Part, Fraction] = {}
    for worth, part in found:
        total[part] = total.get(part, Fraction(0)) + worth
    kept = {part: worth for part, worth in total.items() if worth}
    if not kept:
        return Measure(())
    unit = Fraction(
        gcd(*(worth.numerator for worth in kept.values())),
        lcm(*(worth.denominator for worth in kept.values())),
    )
    terms = tuple(Signed(int(worth / unit), *part) for part, worth in kept.items())
    return Measure(terms, unit)
