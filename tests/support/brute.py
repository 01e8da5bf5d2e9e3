"""The definitions, by brute force over Python rows: count, T_E, neighbours, local sensitivity.

An oracle for tests, independent of every plan and of all SQL. It shares with the code under test
only the descriptions (`Query`, `Residual`) and follows the definitions word by word, so it is slow:
all combinations of rows are tried. A database maps a table's label to its rows, a row is a tuple in
the order of the table's columns, NULL is None. Equal rows are different rows (a bag). A result
counts the product of its rows' weights, 1 where none has any.

A filter or a general predicate is evaluated by `evaluate(condition, values)`, where the values are
the columns a filter reads (a dict) or a general predicate's arguments (a tuple). By default the
condition is a `tests.support.builders.Call`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from math import prod

from sqlrs.catalog import Table
from sqlrs.query import Atom, Comparison, Constant, General, Inequality, Query, Term, Variable
from sqlrs.residuals.residual import Members, Residual, Residuals
from tests.support.builders import Call
from tests.support.special import Special, place_of

Row = tuple[object, ...]
Database = Mapping[str, Sequence[Row]]
Assignment = dict[Variable, object]
Evaluate = Callable[[Hashable, object], bool]
Domain = Callable[[Variable], Iterable[object]]


def call(condition: Hashable, values: object) -> bool:
    """The default `evaluate`: the condition is a function."""
    if not isinstance(condition, Call):
        raise TypeError("only a Call can be evaluated here; pass `evaluate`")
    if isinstance(values, dict):
        return condition(*(values[column] for column in condition.columns))
    assert isinstance(values, tuple)
    return condition(*values)


def count(query: Query, database: Database, *, evaluate: Evaluate = call) -> int:
    """|q(I)|: rows, or distinct values of the output variables; with weights their sum."""
    results = [
        (a, weight)
        for a, weight in weighed(query, query.everything, database, evaluate)
        if all(holds(p, a, evaluate) for p in query.predicates)
    ]
    if query.distinct is None:
        return sum(weight for _, weight in results)
    output = sorted(query.distinct)
    heavy: dict[Row, int] = {}
    for a, weight in results:
        if heavy.setdefault(tuple(a[v] for v in output), weight) != weight:
            raise ValueError("the output does not decide the weight")
    return sum(heavy.values())


def residual_value(
    residual: Residual,
    database: Database,
    *,
    domain: Domain | None = None,
    evaluate: Evaluate = call,
) -> int:
    """T_E by its definition: the maximum over values of the boundary and the external variables.

    `domain` gives the values an external variable is tried with, by default `whole_domain`.
    Nothing is said without data: an empty join has the value 0, even where keys would decide 1.
    """
    query = residual.query
    if query.weighted and query.distinct is not None:
        raise ValueError("no residual of distinct outputs has weights")
    domain = domain or whole_domain(query, database)
    outside = sorted(residual.external)
    boundary = sorted(residual.boundary)
    output = None if residual.output is None else sorted(residual.output)
    choices = [dict(zip(outside, values, strict=True)) for values in product(*map(domain, outside))]
    groups: dict[Row, dict[Row, int]] = {}
    results = weighed(query, residual.members, database, evaluate)
    for row_number, (inner, weight) in enumerate(results):
        for choice_number, choice in enumerate(choices):
            assignment = inner | choice
            if all(holds(p, assignment, evaluate) for p in residual.predicates):
                result = (row_number,) if output is None else tuple(assignment[v] for v in output)
                group = (choice_number, *(assignment[v] for v in boundary))
                groups.setdefault(group, {})[result] = weight
    return max((sum(counted.values()) for counted in groups.values()), default=0)


def residual_values(
    residuals: Residuals,
    wanted: Iterable[Members],
    database: Database,
    *,
    domain: Domain | None = None,
    evaluate: Evaluate = call,
) -> dict[Members, int]:
    """T_E of the wanted sets as `Residuals` reads them: parts multiply, a decided one is 1.

    With weights a decided part, and each atom outside E, is its heaviest: the bound.
    """
    known: dict[Members, int] = {}
    atoms = residuals.query.atoms

    def heaviest(members: Members) -> int:
        return prod(w.bound for i in members if (w := atoms[i].weight) is not None)

    def value(part: Residual) -> int:
        if part.decided:
            return heaviest(part.members)
        if part.members not in known:
            known[part.members] = residual_value(part, database, domain=domain, evaluate=evaluate)
        return known[part.members]

    everything = residuals.query.everything
    return {
        members: heaviest(everything - members) * prod(map(value, residuals.parts(members)))
        for members in wanted
    }


def joined(
    query: Query, members: Iterable[int], database: Database, evaluate: Evaluate = call
) -> Iterator[Assignment]:
    """Every combination of rows of the atoms that agrees on variables, constants and filters."""
    return (assignment for assignment, _ in weighed(query, members, database, evaluate))


def weighed(
    query: Query, members: Iterable[int], database: Database, evaluate: Evaluate = call
) -> Iterator[tuple[Assignment, int]]:
    """The same combinations, each with the product of its rows' weights."""
    atoms = [query.atoms[i] for i in sorted(members)]
    never_null = never_null_variables(query)

    def extend(
        position: int, assignment: Assignment, weight: int
    ) -> Iterator[tuple[Assignment, int]]:
        if position == len(atoms):
            yield assignment, weight
            return
        for row in database[atoms[position].table.label]:
            extended = _bind(atoms[position], row, assignment, evaluate)
            if extended is not None and all(
                extended[v] is not None for v in never_null if v in extended
            ):
                yield from extend(position + 1, extended, weight * _weight(atoms[position], row))

    return extend(0, {}, 1)


def _weight(atom: Atom, row: Row) -> int:
    if atom.weight is None:
        return 1
    weight = row[[c.name for c in atom.table.columns].index(atom.weight.column)]
    assert isinstance(weight, int) and 0 <= weight <= atom.weight.bound
    return weight


def never_null_variables(query: Query) -> frozenset[Variable]:
    """Variables in two places or in an inequality or a comparison: NULL satisfies none of these."""
    places = [t for a in query.atoms for _, t in a.terms if isinstance(t, Variable)]
    compared = {v for p in query.predicates if not isinstance(p, General) for v in p.variables}
    return frozenset(v for v in places if places.count(v) > 1 or v in compared)


def holds(predicate: object, assignment: Assignment, evaluate: Evaluate = call) -> bool:
    """Whether the predicate is true (not false, not unknown) under the assignment."""

    def value(term: Term) -> object:
        return term.value if isinstance(term, Constant) else assignment[term]

    if isinstance(predicate, Inequality):
        left, right = value(predicate.left), value(predicate.right)
        return left is not None and right is not None and left != right
    if isinstance(predicate, Comparison):
        low, high = value(predicate.left), value(predicate.right)
        if low is None or high is None:
            return False
        return bool(low < high if predicate.strict else low <= high)  # type: ignore[operator]
    assert isinstance(predicate, General)
    return evaluate(predicate.condition, tuple(assignment[v] for v in predicate.arguments))


def whole_domain(query: Query, database: Database) -> Domain:
    """Values enough for any external variable: those in data and query, between, below and above.

    Integers and dates have all values of the range and some beyond. Decimals get as many values as
    there are predicates, twice, between two neighbours; special values follow their places. A
    variable that only general predicates hold may also be NULL.
    """
    extra = 2 * max(1, len(query.predicates))
    never_null = never_null_variables(query)

    def domain(variable: Variable) -> list[object]:
        found = {
            row[[c.name for c in atom.table.columns].index(column)]
            for atom in query.atoms
            for column, term in atom.terms
            if term.type.joins_with(variable.type)
            for row in database[atom.table.label]
        }
        constants = {
            side.value
            for p in query.comparisons
            for side in (p.left, p.right)
            if isinstance(side, Constant) and side.type.joins_with(variable.type)
        }
        values = _spread(sorted((found | constants) - {None}), extra)  # type: ignore[type-var]
        return values if variable in never_null else [*values, None]

    return domain


def neighbours(
    query: Query, database: Database, universe: Mapping[str, Iterable[Row]]
) -> Iterator[Database]:
    """All databases that differ in one row of one private table; new rows come from `universe`."""
    tables = {atom.table.label: atom.table for atom in query.atoms if atom.table.private}
    for label, table in tables.items():
        rows = list(database[label])
        removed = [rows[:i] + rows[i + 1 :] for i in range(len(rows))]
        for base in [rows, *removed]:
            for row in universe[label]:
                if keys_hold(table, [*base, row]):
                    yield {**database, label: [*base, row]}
        for base in removed:
            yield {**database, label: base}


def keys_hold(table: Table, rows: Sequence[Row]) -> bool:
    """Whether no two rows agree on a key and no key column is NULL."""
    names = [c.name for c in table.columns]
    for key in table.keys:
        values = [tuple(row[names.index(c)] for c in sorted(key)) for row in rows]
        if len(set(values)) < len(values) or any(None in value for value in values):
            return False
    return True


def local_sensitivity(
    query: Query,
    database: Database,
    universe: Mapping[str, Iterable[Row]],
    *,
    evaluate: Evaluate = call,
) -> int:
    """LS(I) by recounting every neighbour (as far as `universe` goes)."""
    here = count(query, database, evaluate=evaluate)
    return max(
        (
            abs(count(query, other, evaluate=evaluate) - here)
            for other in neighbours(query, database, universe)
        ),
        default=0,
    )


def databases(
    tables: Iterable[Table], universe: Mapping[str, Iterable[Row]], *, most: int
) -> Iterator[Database]:
    """Every database of rows from `universe` with at most `most` rows a table and all keys held."""
    chosen = list(tables)
    yield from (
        dict(zip((t.label for t in chosen), contents, strict=True))
        for contents in product(*(list(_bags(t, list(universe[t.label]), most)) for t in chosen))
    )


def _bags(table: Table, rows: list[Row], most: int) -> Iterator[list[Row]]:
    """Multisets of rows in which the keys hold."""

    def extend(start: int, bag: list[Row]) -> Iterator[list[Row]]:
        yield bag
        if len(bag) < most:
            for i in range(start, len(rows)):
                if keys_hold(table, [*bag, rows[i]]):
                    yield from extend(i, [*bag, rows[i]])

    return extend(0, [])


def _bind(atom: Atom, row: Row, assignment: Assignment, evaluate: Evaluate) -> Assignment | None:
    """The assignment with the row's values, or None where they do not fit."""
    named = dict(zip((c.name for c in atom.table.columns), row, strict=True))
    bound = dict(assignment)
    for column, term in atom.terms:
        value = named[column]
        if isinstance(term, Constant):
            if value is None or value != term.value:
                return None
        elif bound.setdefault(term, value) != value:
            return None
    for condition in atom.filters:
        if not evaluate(condition.condition, {c: named[c] for c in condition.columns}):
            return None
    return bound


def _spread(values: list[object], extra: int) -> list[object]:
    if not values:
        return [0]
    if any(isinstance(v, Special) for v in values):
        return _between_specials(values, extra)
    first, last = values[0], values[-1]
    if isinstance(first, int) and isinstance(last, int):
        return list(range(first - extra, last + extra + 1))
    if isinstance(first, date) and isinstance(last, date) and not isinstance(first, datetime):
        days = range(-extra, (last - first).days + extra + 1)
        return [first + timedelta(days=d) for d in days]
    if isinstance(first, Decimal):
        numbers = [v for v in values if isinstance(v, Decimal)]
        ends = [numbers[0] - 1, *numbers, numbers[-1] + 1]
        between = [
            low + (high - low) * i / (extra + 1)
            for low, high in pairwise(ends)
            for i in range(extra + 1)
        ]
        return [*between, ends[-1]]
    raise TypeError("pass `domain` for external variables of this type")


def _between_specials(values: list[object], extra: int) -> list[object]:
    """All places of a discrete line; of a dense one, as many between two values as can matter."""
    places = sorted({place for v in values if (place := place_of(v)) is not None})
    if any(isinstance(v, Special) and v.discrete for v in values):
        whole = range(int(places[0]) - extra, int(places[-1]) + extra + 1)
        return [Special("?", place, True) for place in whole]
    ends = [places[0] - 1, *places, places[-1] + 1]
    steps = [Fraction(i, extra + 1) for i in range(extra + 1)]
    between = [low + (high - low) * step for low, high in pairwise(ends) for step in steps]
    return [Special("?", place, False) for place in (*between, ends[-1])]
