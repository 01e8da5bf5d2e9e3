"""Second pass: every condition becomes a filter of an atom or a predicate between atoms.

A condition on columns of one atom is a filter, and so is one that equal columns carry to one atom.
A comparison of two columns of one atom is a predicate once either variable occurs elsewhere, an
inequality once both do; otherwise a filter says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.compiler.conditions import (
    Reference,
    as_column,
    canonical,
    column_at,
    compares_numbers,
    compares_whole_numbers,
    holds,
    never_fails,
    over_bare_columns,
    reads_values_only,
    reference,
    references,
    substituted,
)
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.sorting import Compared, Sorted
from sqlrs.dialects import dialect_named
from sqlrs.errors import QueryRefused
from sqlrs.query import Comparison, Constant, Filter, General, Inequality, Term, Variable
from sqlrs.trees.constants import data_type, literal, typed_literal
from sqlrs.values import behave_alike, is_wide, values_of, widest


class Placement:
    """Where each condition went. ``used`` are the columns that the query's predicates need."""

    def __init__(self, flat: FlatQuery, found: Sorted) -> None:
        self.flat = flat
        self.equal = found.equal
        self.used = set(found.bound)
        self.filters: dict[str, dict[Filter, None]] = {o.alias: {} for o in flat.occurrences}
        for condition in found.others:
            self._keep_together(condition)
        self.terms: dict[Reference, Term] = self.equal.terms()
        self._guards: dict[str, list[exp.Expr]] = {o.alias: [] for o in flat.occurrences}
        self.inequalities: set[Inequality] = set()
        self.comparisons: set[Comparison] = set()
        self.generals: dict[General, None] = {}
        self._mentions = Counter(
            self.equal.leader(place) for r in found.relations for place in r.columns
        )
        self._nullable = {
            (occurrence.alias, column.name): column.nullable
            for occurrence in flat.occurrences
            for column in occurrence.table.columns
        }
        if found.never:
            self._never()
        for relation in found.relations:
            self._place_relation(relation)
        for condition in found.others:
            self._place(condition)

    def _keep_together(self, condition: exp.Expr) -> None:
        """Let no literal stand for the only column of a table in a condition that can fail.

        Without that table the condition would be tried where the table has no such row. What the
        columns equal becomes a filter of each of them.
        """
        places = references(condition)
        constants = {place: self.equal.constant(place) for place in places}
        left = {place[0] for place, constant in constants.items() if constant is None}
        types = {self.equal.type_of(place) for place in places}
        if left == _aliases(condition) or len(_aliases(condition)) == 1:
            return
        if self._never_fails(condition, types):
            return
        for place, constant in constants.items():
            if place[0] not in left and constant is not None:
                for equal in self.equal.members(place):
                    self._filter(exp.EQ(this=column_at(equal), expression=literal(constant)))
                self.equal.release(place)

    def filters_of(self, alias: str) -> tuple[Filter, ...]:
        """The filters of an atom in a stable order.

        Those that can fail are one filter, in the order of the text and behind all others: a plan
        may separate a / b > 2 from the b > 0 that the analyst put beside it.
        """
        safe: list[tuple[exp.Expr, Filter]] = []
        risky: list[tuple[exp.Expr, Filter]] = []
        for found in self.filters[alias]:
            condition = cast(exp.Expr, found.condition)
            types = {self.equal.type_of((alias, column)) for column in found.columns}
            fails = not self._never_fails(condition, types, alias)
            (risky if fails else safe).append((condition, found))
        safe.sort(key=lambda pair: pair[0].sql(self.flat.source.dialect))
        guards = [*self._guards[alias], *self._equalities(alias), *(c for c, _ in safe)]
        return (*(found for _, found in safe), *_guarded([c for c, _ in risky], guards))

    def _equalities(self, alias: str) -> Iterator[exp.Expr]:
        """What holds in every row that counts: equal columns, and columns equal to a constant."""
        for (holder, column), term in self.terms.items():
            if holder != alias:
                continue
            here = exp.column(column, quoted=True)
            first = next(p for p in self.equal.members((alias, column)) if p[0] == alias)
            if isinstance(term, Constant):
                yield exp.EQ(this=here, expression=literal(term))
            elif first[1] != column:
                yield exp.EQ(this=exp.column(first[1], quoted=True), expression=here)

    def _place_relation(self, relation: Compared) -> None:
        self._guard(relation)
        left, right = self.terms[relation.left], self._right(relation)
        if isinstance(left, Constant) and isinstance(right, Constant):
            self._place_constants(relation, left, right)
        elif left == right:
            # Columns that are equal are never null: only the strict forms say something, "never".
            if relation.kind in (exp.NEQ, exp.LT, exp.GT):
                self._never()
        elif relation.kind is exp.NEQ:
            self._place_inequality(relation, left, right)
        elif self._only_inside_atom(relation, any):
            self._filter(relation.condition)
        else:
            self._compare(relation, left, right)

    def _place_inequality(self, relation: Compared, left: Term, right: Term) -> None:
        if not (isinstance(left, Variable) and isinstance(right, Variable)):
            self._place(relation.condition)
        elif self._only_inside_atom(relation, all):
            self._filter(relation.condition)
        else:
            self.used.update(relation.columns)
            self.inequalities.add(Inequality.between(left, right))

    def _guard(self, relation: Compared) -> None:
        """Keep a comparison within one atom as a guard of the atom's filters that can fail."""
        condition = relation.condition
        if isinstance(relation.right, Constant):
            written = literal(relation.right)
            condition = relation.kind(this=column_at(relation.left), expression=written)
        types = {self.equal.type_of(place) for place in relation.columns}
        inside = len({alias for alias, _ in relation.columns}) == 1
        if inside and self._never_fails(condition, types):
            self._guards[relation.left[0]].append(over_bare_columns(condition))

    def _right(self, relation: Compared) -> Term:
        right = relation.right
        return right if isinstance(right, Constant) else self.terms[right]

    def _compare(self, relation: Compared, left: Term, right: Term) -> None:
        self.used.update(relation.columns)
        if relation.kind in (exp.GT, exp.GTE):
            left, right = right, left
        self.comparisons.add(Comparison(left, right, relation.kind in (exp.LT, exp.GT)))

    def _place_constants(self, relation: Compared, left: Constant, right: Constant) -> None:
        if left.value == right.value or left.type.family is not Family.TEXT:
            if not holds(relation.kind, left.value, right.value):
                self._never()
        else:
            # How two texts compare is known to the engine alone.
            column = column_at(relation.left)
            self._filter(relation.kind(this=column, expression=literal(right)))

    def _only_inside_atom(self, relation: Compared, needed: Callable[[list[bool]], bool]) -> bool:
        if len({alias for alias, _ in relation.columns}) != 1 or len(relation.columns) != 2:
            return False
        return not needed(
            [
                len({alias for alias, _ in self.equal.members(place)}) > 1
                or self._mentions[self.equal.leader(place)] > 1
                for place in relation.columns
            ]
        )

    def _place(self, condition: exp.Expr) -> None:
        if isinstance(condition, exp.Not) and self._is_null_of_never_null(condition.this):
            return
        if self._is_null_of_never_null(condition):
            self._never()
            return
        if len(_aliases(condition)) > 1:
            condition = self._with_constants(condition)
        single = len(_aliases(condition)) <= 1
        if single:
            self._filter(condition)
        holders = self._holders(condition)
        for holder in holders:
            self._filter(holder)
        if not single and not holders:
            self._general(condition)

    def _is_null_of_never_null(self, condition: exp.Expr) -> bool:
        """Whether it says IS NULL of a column that can never be null where it counts."""
        inner = condition.unnest()
        if not isinstance(inner, exp.Is) or not isinstance(inner.expression, exp.Null):
            return False
        column = as_column(inner.this)
        if column is None:
            return False
        place = reference(column)
        joined = len(self.equal.members(place)) > 1 or self.equal.constant(place) is not None
        return joined or self._mentions[self.equal.leader(place)] > 0 or not self._nullable[place]

    def _with_constants(self, condition: exp.Expr) -> exp.Expr:
        """The condition with the literals of the columns that equal a constant."""
        constants = {place: self.equal.constant(place) for place in references(condition)}
        written = {place: constant for place, constant in constants.items() if constant is not None}
        # Each literal has the very type of its column, so only forms of one value can differ.
        if not (
            reads_values_only(condition, self._type_of)
            or all(values_of(constant.type).one_form for constant in written.values())
        ):
            raise self._unlike(condition, *written)
        return substituted(
            condition, lambda place: typed_literal(written[place]) if place in written else None
        )

    def _holders(self, condition: exp.Expr) -> list[exp.Expr]:
        """The condition over each single atom that holds all its variables.

        There it meets rows that have no partner in the analyst's join, so it must not fail on any.
        """
        members = {place: self.equal.members(place) for place in references(condition)}
        types = {self.equal.type_of(p) for equal in members.values() for p in equal}
        alone = all(len(equal) == 1 for equal in members.values())
        if alone or not self._never_fails(condition, types):
            return []
        moves = [_move_to(occurrence.alias, members) for occurrence in self.flat.occurrences]
        return [
            _moved(condition, moved)
            for moved in moves
            if len(moved) == len(members) and self._same_meaning(condition, moved)
        ]

    def _same_meaning(self, condition: exp.Expr, moved: dict[Reference, Reference]) -> bool:
        return all(
            old == new
            or self._exchangeable(condition, {self.equal.type_of(old), self.equal.type_of(new)})
            for old, new in moved.items()
        )

    def _general(self, condition: exp.Expr) -> None:
        names: dict[Variable, str] = {}
        for place in references(condition):
            names.setdefault(self._variable(place), f"v{len(names)}")
            self.used.add(place)
        named = substituted(condition, lambda place: self._argument(condition, place, names))
        self.generals[General(canonical(named), tuple(names))] = None

    def _argument(
        self, condition: exp.Expr, place: Reference, names: dict[Variable, str]
    ) -> exp.Expr:
        """What stands for a column in a general predicate: any column equal to it, in its type."""
        named = exp.Placeholder(this=names[self._variable(place)])
        members = self.equal.members(place)
        types = {self.equal.type_of(equal) for equal in members}
        if len(members) == 1 or self._exchangeable(condition, types):
            return named
        own = self.equal.type_of(place)
        # A residual may hold a narrower column in its place, whose every value fits this type.
        if widest(types) == own:
            return exp.cast(named, data_type(own))
        raise self._unlike(condition, place)

    def _unlike(self, condition: exp.Expr, *places: Reference) -> QueryRefused:
        shown = " and ".join(".".join(place) for place in places)
        return self.flat.source.refusal(
            "type_mismatch",
            condition,
            f"values equal to {shown} may differ in form or width, which this condition could see",
            "compare the values, not their text, or let the owner store both in one type",
        )

    def _never_fails(
        self, condition: exp.Expr, types: set[ColumnType], alias: str | None = None
    ) -> bool:
        """Whether it can be tried on every row; ``alias`` is the atom whose bare columns it has."""

        def type_of(column: exp.Expr) -> ColumnType:
            return self._type_of(column if alias is None else column_at((alias, column.name)))

        return never_fails(condition, types, type_of, dialect_named(self.flat.source.dialect))

    def _type_of(self, column: exp.Expr) -> ColumnType:
        return self.equal.type_of(reference(cast(exp.Column, column)))

    def _exchangeable(self, condition: exp.Expr, types: set[ColumnType]) -> bool:
        """Whether equal values of these types give the condition the same value, no new failure."""
        if len(types) == 1:
            return reads_values_only(condition, self._type_of) or behave_alike(types)
        if all(t.family is Family.INTEGER for t in types):
            return compares_whole_numbers(condition)
        if all(t.family is Family.DECIMAL and not is_wide(t) for t in types):
            return compares_numbers(condition)
        return behave_alike(types)

    def _variable(self, place: Reference) -> Variable:
        term = self.terms[place]
        if isinstance(term, Constant):
            raise AssertionError(f"{'.'.join(place)} is a constant that was not written out")
        return term

    def _filter(self, condition: exp.Expr) -> None:
        places = references(condition)
        alias = places[0][0] if places else self.flat.occurrences[0].alias
        columns = frozenset(column for _, column in places)
        self.filters[alias][Filter(over_bare_columns(condition), columns)] = None

    def _never(self) -> None:
        first = self.flat.occurrences[0].alias
        self.filters[first][Filter(exp.false(), frozenset())] = None


def _guarded(risky: list[exp.Expr], guards: list[exp.Expr]) -> tuple[Filter, ...]:
    """The conditions that can fail as one filter that tries each on rows that pass all before."""
    if not risky:
        return ()
    tree = risky[-1].copy()
    for before in [*reversed(risky[:-1]), *([exp.and_(*guards)] if guards else [])]:
        tree = exp.Case(ifs=[exp.If(this=before.copy(), true=tree)])
    return (Filter(tree, frozenset(column.name for column in tree.find_all(exp.Column))),)


def _move_to(
    alias: str, members: dict[Reference, tuple[Reference, ...]]
) -> dict[Reference, Reference]:
    """For each column one of its equals at this atom, itself if it is there; some may have none."""
    moved: dict[Reference, Reference] = {}
    for place, equal in members.items():
        own = next((p for p in equal if p[0] == alias), None)
        if own is not None:
            moved[place] = place if place[0] == alias else own
    return moved


def _aliases(condition: exp.Expr) -> set[str]:
    return {alias for alias, _ in references(condition)}


def _moved(condition: exp.Expr, moved: dict[Reference, Reference]) -> exp.Expr:
    return substituted(condition, lambda place: column_at(moved[place]))
