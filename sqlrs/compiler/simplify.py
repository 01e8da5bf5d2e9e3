"""Query -> an equal query without redundant predicates, or the proof that it is always empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlrs.compiler.conditions import by_value
from sqlrs.compiler.difference_bounds import Closure, Distance, position
from sqlrs.compiler.equalities import behave_alike
from sqlrs.compiler.literals import write, write_typed
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
from sqlrs.values import values_of


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
        query = _merged(query, *equal)


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
    return values_of(one.type).one_form or by_value(general)


def _merged(query: Query, old: Variable, new: Term) -> Query:
    """The query with ``new`` in the place of ``old``."""

    def term(given: Term) -> Term:
        if given != old:
            return given
        return Constant(new.value, given.type) if isinstance(new, Constant) else new

    atoms = [
        replace(atom, terms=tuple((column, term(t)) for column, t in atom.terms))
        for atom in query.atoms
    ]
    comparisons: set[Comparison] = set()
    for comparison in query.comparisons:
        left, right = term(comparison.left), term(comparison.right)
        if left == right:
            if comparison.strict:
                atoms[0] = _with_filter(atoms[0], exp.false(), frozenset())
        elif isinstance(left, Constant) and isinstance(right, Constant):
            _compare_constants(query, atoms, comparison, left, right)
        else:
            comparisons.add(Comparison(left, right, comparison.strict))
    inequalities: set[Inequality] = set()
    for inequality in query.inequalities:
        one, other = term(inequality.left), term(inequality.right)
        if one == other:
            atoms[0] = _with_filter(atoms[0], exp.false(), frozenset())
        elif isinstance(one, Variable) and isinstance(other, Variable):
            inequalities.add(Inequality.between(one, other))
        else:
            kept, constant = (one, other) if isinstance(one, Variable) else (other, one)
            _unequal_to_constant(atoms, kept, constant)
    generals = [_general(general, old, new) for general in query.generals]
    for general in generals:
        if isinstance(general, Filter):
            atoms[0] = _with_filter(atoms[0], general.condition, frozenset())
    distinct = query.distinct
    if distinct is not None and old in distinct:
        distinct = (distinct - {old}) | ({new} if isinstance(new, Variable) else set())
    return Query(
        tuple(atoms),
        frozenset(inequalities),
        frozenset(comparisons),
        tuple(general for general in generals if isinstance(general, General)),
        distinct,
    )


def _with_filter(atom: Atom, condition: object, columns: frozenset[str]) -> Atom:
    added = Filter(condition, columns)
    return atom if added in atom.filters else replace(atom, filters=(*atom.filters, added))


def _compare_constants(
    query: Query, atoms: list[Atom], comparison: Comparison, left: Constant, right: Constant
) -> None:
    """Numbers and dates are decided by the closure; two texts only the engine can compare."""
    if position(left.value, left.type) is not None:
        return
    variable = next(iter(comparison.variables))
    kind = exp.LT if comparison.strict else exp.LTE
    for i, atom in enumerate(query.atoms):
        for column, term in atom.terms:
            if term == variable:
                bare = exp.column(column, quoted=True)
                sides = (bare, write(right)) if comparison.left == variable else (write(left), bare)
                condition = kind(this=sides[0], expression=sides[1])
                atoms[i] = _with_filter(atoms[i], condition, frozenset({column}))


def _unequal_to_constant(atoms: list[Atom], variable: Term, constant: Term) -> None:
    if not isinstance(constant, Constant):
        raise AssertionError("an inequality with a constant has a constant")
    for i, atom in enumerate(atoms):
        for column, term in atom.terms:
            if term == variable:
                bare = exp.column(column, quoted=True)
                condition = exp.NEQ(this=bare, expression=write(constant))
                atoms[i] = _with_filter(atoms[i], condition, frozenset({column}))


def _general(general: General, old: Variable, new: Term) -> General | Filter:
    """The predicate with one argument replaced; without arguments it is a filter of any atom."""
    condition = general.condition
    if old not in general.variables or not isinstance(condition, exp.Expr):
        return general
    arguments = list(
        dict.fromkeys(
            new if argument == old else argument
            for argument in general.arguments
            if argument != old or isinstance(new, Variable)
        )
    )
    written: dict[str, exp.Expr] = {}
    for i, argument in enumerate(general.arguments):
        if argument == old and isinstance(new, Constant):
            written[f"v{i}"] = write_typed(new)
        else:
            after = new if argument == old else argument
            written[f"v{i}"] = exp.Placeholder(this=f"v{arguments.index(after)}")
    tree = exp.Paren(this=condition.copy())
    for placeholder in list(tree.find_all(exp.Placeholder)):
        placeholder.replace(written[placeholder.name].copy())
    result = tree.this.copy()
    variables = tuple(a for a in arguments if isinstance(a, Variable))
    return General(result, variables) if variables else Filter(result, frozenset())


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
    at = position(constant.value, constant.type)
    if at is None:
        return None
    outward = at if upper else -at
    closed = not comparison.strict
    if values_of(constant.type).discrete and not closed:
        outward, closed = outward - 1, True
    return (left if upper else right), upper, Distance(outward, closed)
