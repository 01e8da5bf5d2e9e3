"""Query -> an equal query without redundant predicates, or the proof that it is always empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from sqlglot import exp

from sqlrs.compiler.conditions import by_value
from sqlrs.compiler.difference_bounds import Closure, Distance, position
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
from sqlrs.records import dataclass
from sqlrs.trees.constants import literal, typed_literal
from sqlrs.values import behave_alike, values_of


@dataclass(frozen=True)
class Contradiction:
    """A query that no data can satisfy: its count is 0 on every database."""

    query: Query
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}: the count is 0 on every database; nothing is read or charged"


def simplify(query: Query) -> Query | Contradiction:
    """The simplest equal query, or the contradiction in its predicates.

    Variables that must be equal become one; what another predicate on the same variables implies
    goes.
    Only predicates over the same variables are compared: one that follows along a chain of others
    still says something once a residual leaves out the middle of the chain.
    """
    while True:
        if any(f.condition == exp.false() for atom in query.atoms for f in atom.filters):
            return Contradiction(query, "a condition is never true")
        closures = [Closure(group) for group in _by_family(query.comparisons)]
        if any(closure.contradictory for closure in closures):
            return Contradiction(query, "the comparisons contradict each other")
        equal = _first_equality(query, closures)
        if equal is None:
            return _without_redundant(query)
        query = _Merger(query, *equal).merged()


def _by_family(comparisons: Iterable[Comparison]) -> list[list[Comparison]]:
    groups: dict[object, list[Comparison]] = {}
    for comparison in sorted(comparisons, key=str):
        kind = comparison.left.type
        groups.setdefault((kind.family, kind.collation), []).append(comparison)
    return list(groups.values())


def _first_equality(query: Query, closures: list[Closure]) -> tuple[Variable, Term] | None:
    for closure in closures:
        for variable, term in closure.equalities():
            touched = [g for g in query.generals if not g.variables.isdisjoint({variable, term})]
            # In a general predicate equal values must also look alike to be exchanged.
            if all(_exchangeable(g, variable, term) for g in touched):
                return variable, term
    return None


def _exchangeable(general: General, one: Variable, other: Term) -> bool:
    """Whether a general predicate is the same on either of two terms that are equal."""
    if behave_alike((one.type, other.type)):
        return True
    if one.type != other.type:
        return False
    return by_value(general)


class _Merger:
    """Puts ``new`` in the place of ``old``; a predicate that loses its variables is a filter."""

    def __init__(self, query: Query, old: Variable, new: Term) -> None:
        self.query = query
        self.old = old
        self.new = new
        self.atoms = [
            replace(atom, terms=tuple((column, self._term(term)) for column, term in atom.terms))
            for atom in query.atoms
        ]

    def merged(self) -> Query:
        """The query of one variable less."""
        # First all predicates: what they become may add filters to the atoms.
        comparisons = [self._comparison(c) for c in sorted(self.query.comparisons, key=str)]
        inequalities = [self._inequality(i) for i in sorted(self.query.inequalities, key=str)]
        generals = [self._general(g) for g in self.query.generals]
        return Query(
            tuple(self.atoms),
            frozenset(i for i in inequalities if i is not None),
            frozenset(c for c in comparisons if c is not None),
            tuple(g for g in generals if g is not None),
            self._distinct(),
        )

    def _term(self, given: Term) -> Term:
        if given != self.old:
            return given
        new = self.new
        return Constant(new.value, given.type) if isinstance(new, Constant) else new

    def _comparison(self, comparison: Comparison) -> Comparison | None:
        left, right = self._term(comparison.left), self._term(comparison.right)
        if left == right:
            if comparison.strict:
                self._filter(exp.false())
            return None
        if isinstance(left, Constant) and isinstance(right, Constant):
            # Numbers and dates are decided by the closure; two texts only the engine can compare.
            if position(left.value) is None:
                self._filter_columns(self.old, partial(_compared, comparison, left, right))
            return None
        return Comparison(left, right, comparison.strict)

    def _inequality(self, inequality: Inequality) -> Inequality | None:
        one, other = self._term(inequality.left), self._term(inequality.right)
        if one == other:
            self._filter(exp.false())
            return None
        if isinstance(one, Variable) and isinstance(other, Variable):
            return Inequality.between(one, other)
        kept, constant = (one, other) if isinstance(one, Variable) else (other, one)
        if not isinstance(kept, Variable) or not isinstance(constant, Constant):
            raise AssertionError("of two variables that differ one is left")
        self._filter_columns(kept, partial(_unequal, constant))
        return None

    def _general(self, general: General) -> General | None:
        """The predicate with one argument replaced; without arguments it filters any atom."""
        condition = general.condition
        if self.old not in general.variables or not isinstance(condition, exp.Expr):
            return general
        terms = [self._term(argument) for argument in general.arguments]
        arguments = tuple(dict.fromkeys(term for term in terms if isinstance(term, Variable)))
        written = {
            f"v{i}": exp.Placeholder(this=f"v{arguments.index(term)}")
            if isinstance(term, Variable)
            else typed_literal(term)
            for i, term in enumerate(terms)
        }
        tree = exp.Paren(this=condition.copy())
        for placeholder in list(tree.find_all(exp.Placeholder)):
            placeholder.replace(written[placeholder.name].copy())
        result = tree.this.copy()
        if arguments:
            return General(result, arguments)
        self._filter(result)
        return None

    def _distinct(self) -> frozenset[Variable] | None:
        distinct = self.query.distinct
        if distinct is None:
            return None
        return frozenset(t for t in map(self._term, distinct) if isinstance(t, Variable))

    def _filter(self, condition: exp.Expr) -> None:
        """A condition without columns: any atom can hold it."""
        self.atoms[0] = _with_filter(self.atoms[0], condition, frozenset())

    def _filter_columns(
        self, variable: Variable, condition_on: Callable[[exp.Column], exp.Expr]
    ) -> None:
        """The condition on every column that holds the variable."""
        for i, atom in enumerate(self.query.atoms):
            for name, term in atom.terms:
                if term == variable:
                    condition = condition_on(exp.column(name, quoted=True))
                    self.atoms[i] = _with_filter(self.atoms[i], condition, frozenset({name}))


def _compared(
    comparison: Comparison, left: Constant, right: Constant, here: exp.Column
) -> exp.Expr:
    """A comparison of two constants with the column in the place of the one that it equals."""
    kind = exp.LT if comparison.strict else exp.LTE
    if isinstance(comparison.left, Variable):
        return kind(this=here, expression=literal(right))
    return kind(this=literal(left), expression=here)


def _unequal(constant: Constant, here: exp.Column) -> exp.Expr:
    return exp.NEQ(this=here, expression=literal(constant))


def _with_filter(atom: Atom, condition: exp.Expr, columns: frozenset[str]) -> Atom:
    added = Filter(condition, columns)
    return atom if added in atom.filters else replace(atom, filters=(*atom.filters, added))


def _without_redundant(query: Query) -> Query:
    strict = {(c.left, c.right) for c in query.comparisons if c.strict}
    unequal = {i.variables for i in query.inequalities}
    comparisons: set[Comparison] = set()
    for comparison in query.comparisons:
        sides = (comparison.left, comparison.right)
        if comparison.strict or (sides not in strict and comparison.variables not in unequal):
            comparisons.add(comparison)
        elif sides not in strict:
            # x ≤ y and x ≠ y together are x < y.
            comparisons.add(replace(comparison, strict=True))
    ordered = {c.variables for c in comparisons if c.strict}
    return replace(
        query,
        inequalities=frozenset(i for i in query.inequalities if i.variables not in ordered),
        comparisons=_tightest(comparisons),
    )


def _tightest(comparisons: Iterable[Comparison]) -> frozenset[Comparison]:
    """Of all bounds of one variable by constants, the tightest on either side."""
    kept: dict[object, Comparison] = {}
    for comparison in sorted(comparisons, key=str):
        bound = _bound(comparison)
        if bound is None:
            kept[comparison] = comparison
            continue
        variable, upper, reach = bound
        known = _bound(kept[variable, upper]) if (variable, upper) in kept else None
        if known is None or reach < known[2]:
            kept[variable, upper] = comparison
    return frozenset(kept.values())


def _bound(comparison: Comparison) -> tuple[Term, bool, Distance] | None:
    """A bound by a constant as (variable, is upper, how far out): the smaller, the tighter."""
    left, right = comparison.left, comparison.right
    upper = isinstance(right, Constant)
    constant = right if upper else left
    if not isinstance(constant, Constant):
        return None
    at = position(constant.value)
    if at is None:
        return None
    outward = at if upper else -at
    closed = not comparison.strict
    if values_of(constant.type).discrete and not closed:
        outward, closed = outward - 1, True
    return (left if upper else right), upper, Distance(outward, closed)
