"""What the query, the schema and the owner say of the values of one column."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from sqlrs.catalog import Column, Family, Listed, Range, Referred
from sqlrs.compiler import said
from sqlrs.compiler.conditions import RELATIONS, Reference
from sqlrs.compiler.enumerated import (
    SERIES,
    Enumerated,
    constants,
    listed_values,
    referred_values,
    value_of,
)
from sqlrs.compiler.grounds import Grounds, form_at
from sqlrs.records import dataclass

RANGE = "the range of the query"


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """What is known of the columns of one flat query."""

    grounds: Grounds

    def of(self, place: Reference) -> Enumerated | None:
        """Every value that a column can have in a result, None if that is not known."""
        found = self._stated(place) or self._referred(place)
        if found is None or found.most == 0:
            return found
        places = {form_at(one): value_of("d") for one in self.grounds.alike(place)}
        return found.filtered(list(self.grounds.over(places)))

    def _stated(self, place: Reference) -> Enumerated | None:
        """The fewest values that the query or else the schema leaves to a column."""
        kind = self.grounds.type_at(place)
        members = self.grounds.equal.members(place)
        forms = {form_at(member) for member in members}
        declared = [self.grounds.column(member) for member in members]
        query = said.listed(self.grounds, forms, kind)
        found = [query] if query is not None else []
        if self.counts:
            ends = said.bounded(self.grounds, forms, kind)
            series = said.enumerated(ends, kind, RANGE)
            found += [series] if series is not None else []
        schema = [one for column in declared if (one := self._schema(column, place, forms))]
        found += [one if self.never_null(place) else one.with_null() for one in schema]
        return min(found, key=lambda one: one.most or 0, default=None)

    @property
    def counts(self) -> bool:
        """Whether the engine's own function makes the series."""
        return SERIES not in self.grounds.catalog.hidden

    def _schema(
        self, declared: Column, place: Reference, forms: Collection[exp.Expr]
    ) -> Enumerated | None:
        kind, dialect = self.grounds.type_at(place), self.grounds.catalog.dialect
        domain = declared.domain
        if isinstance(domain, Listed):
            values = listed_values(domain.values, kind, dialect)
            return None if values is None else constants(values, domain.origin)
        if isinstance(domain, Range) and self.counts:
            ends = said.bounded(self.grounds, forms, kind, [domain])
            return said.enumerated(ends, kind, domain.origin)
        if declared.type.family is Family.BOOLEAN:
            return constants([exp.true(), exp.false()], f"{declared.name} is BOOLEAN")
        return None

    def _referred(self, place: Reference) -> Enumerated | None:
        for member in self.grounds.equal.members(place):
            domain = self.grounds.column(member).domain
            if not isinstance(domain, Referred):
                continue
            table = next(
                (t for t in self.grounds.catalog.tables if t.identity == domain.table), None
            )
            if table is None or table.private:
                continue
            found = referred_values(table, domain.column, domain.origin)
            return found if self.never_null(place) else found.with_null()
        return None

    def never_null(self, place: Reference) -> bool:
        """Whether the schema or a condition on the column itself leaves out NULL."""
        if not self.grounds.nullable(place):
            return True
        own = form_at(place)
        return any(_false_on_null(one, own) for one in self.grounds.conditions)

    def ends(self, place: Reference) -> said.Ends:
        """Between which values a column lies, by the query and by the schema."""
        members = self.grounds.equal.members(place)
        domains = [self.grounds.column(member).domain for member in members]
        return said.bounded(
            self.grounds,
            {form_at(member) for member in members},
            self.grounds.type_at(place),
            [one for one in domains if isinstance(one, Range)],
        )


def _false_on_null(condition: exp.Expr, column: exp.Expr) -> bool:
    """Whether a condition that compares a column, or asks for its NULL, fails on that."""
    match condition:
        case exp.Not():
            asked = condition.this.unnest()
            if isinstance(asked, exp.Is) and isinstance(asked.expression, exp.Null):
                return bool(asked.this.unnest() == column)
            return isinstance(asked, exp.In | exp.Between) and _false_on_null(asked, column)
        case exp.In() | exp.Between():
            return bool(condition.this.unnest() == column)
    sides = (condition.args.get("this"), condition.args.get("expression"))
    return isinstance(condition, RELATIONS) and any(
        isinstance(side, exp.Expr) and side.unnest() == column for side in sides
    )
