"""What a flat query and the schema say of its columns: equal ones, conditions, types, NULL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from sqlrs.catalog import Catalog, Column, ColumnType
from sqlrs.compiler.complexity import spend_on
from sqlrs.compiler.conditions import (
    Reference,
    as_column,
    canonical,
    column_at,
    never_fails,
    normal_form,
    reference,
    references,
)
from sqlrs.compiler.equalities import Equalities
from sqlrs.compiler.flat import FlatQuery, Occurrence
from sqlrs.dialects import dialect_named
from sqlrs.records import dataclass
from sqlrs.values import behave_alike

Places = Mapping[exp.Expr, exp.Expr]
"""What stands for expressions, each in its form."""


def form(tree: exp.Expr) -> exp.Expr:
    """A copy that is equal for equal expressions, wherever and however they were written."""
    spend_on(tree)
    tree = canonical(tree)
    for column in tree.find_all(exp.Column):
        for part in column.find_all(exp.Identifier):
            part.set("quoted", True)
    return tree


def placed(tree: exp.Expr, places: Places) -> exp.Expr | None:
    """A copy of a form with places for its parts, None if a column has no place."""
    kinds = tuple({type(one) for one in places})
    spend_on(tree)
    whole = exp.Paren(this=tree.copy())
    pending = [whole.this]
    while pending:
        node = pending.pop()
        place = places.get(node) if isinstance(node, kinds) else None
        if place is not None:
            node.replace(place.copy())
        elif isinstance(node, exp.Column):
            return None
        else:
            pending += list(node.iter_expressions())
    result: exp.Expr = whole.this
    result.pop()
    return result


@dataclass(frozen=True, eq=False)
class Grounds:
    """One flat query, with its conjuncts in normal form and its columns in classes of equals.

    ``reads``: the columns of each condition.
    """

    flat: FlatQuery
    catalog: Catalog
    occurrences: Mapping[str, Occurrence]
    equal: Equalities
    conditions: tuple[exp.Expr, ...]
    reads: tuple[frozenset[Reference], ...]

    def column(self, place: Reference) -> Column:
        """The column of the catalog."""
        return self.occurrences[place[0]].table.column(place[1])

    def type_at(self, place: Reference) -> ColumnType:
        """Its type."""
        return self.equal.type_of(place)

    def nullable(self, place: Reference) -> bool:
        """Whether it can be NULL, for all that the schema and equalities with columns say."""
        return len(self.equal.members(place)) == 1 and self.column(place).nullable

    def alike(self, place: Reference) -> tuple[Reference, ...]:
        """The columns that can stand for it in any expression, itself first."""
        own = self.type_at(place)
        others = [
            other
            for other in self.equal.members(place)
            if other != place and behave_alike([own, self.type_at(other)])
        ]
        return (place, *others)

    def over(self, places: Places) -> Iterator[exp.Expr]:
        """The conditions that can be tried on these places alone, whatever their values."""
        dialect = dialect_named(self.catalog.dialect)
        held = {place for tree in places for place in references(tree)}
        for condition, read in zip(self.conditions, self.reads, strict=True):
            if not read or not read <= held:
                continue
            tried = placed(condition, places)
            if tried is not None and never_fails(
                condition, self._types(condition), self._type_of, dialect
            ):
                yield tried

    def _type_of(self, node: exp.Expr) -> ColumnType:
        column = as_column(node)
        if column is None:
            raise KeyError("no column")
        return self.type_at(reference(column))

    def _types(self, condition: exp.Expr) -> list[ColumnType]:
        return [
            self.type_at(member)
            for place in references(condition)
            for member in self.equal.members(place)
        ]


def grounds_of(flat: FlatQuery, catalog: Catalog) -> Grounds:
    """Read the conditions of a flat query."""
    types = {
        (one.alias, column.name): column.type
        for one in flat.occurrences
        for column in one.table.columns
    }
    equal = Equalities(types)
    conditions = [
        form(part)
        for condition in flat.conditions
        for part in normal_form(condition, lambda pairs: False)
    ]
    for left, right in _equated(conditions):
        if types[left].joins_with(types[right]):
            equal.join(left, right)
    return Grounds(
        flat,
        catalog,
        {one.alias: one for one in flat.occurrences},
        equal,
        tuple(conditions),
        tuple(frozenset(references(condition)) for condition in conditions),
    )


def _equated(conditions: Sequence[exp.Expr]) -> Iterator[tuple[Reference, Reference]]:
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            left, right = as_column(condition.this), as_column(condition.expression)
            if left is not None and right is not None:
                yield reference(left), reference(right)


def form_at(place: Reference) -> exp.Expr:
    """The form of a column."""
    return column_at(place)
