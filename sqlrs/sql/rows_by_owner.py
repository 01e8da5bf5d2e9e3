"""Terms with one owner, or SQL by unit -> rows (owner, o0, o1, …, results): a unit's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import cast

from sqlglot import exp

from sqlrs.dialects.base import Dialect
from sqlrs.measures import KeyDomain, PerUnit, Signed
from sqlrs.planning.by_group import ByGroup
from sqlrs.planning.plan import table_names
from sqlrs.query import Term, Variable
from sqlrs.records import dataclass
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.grouped import counts_per_key
from sqlrs.sql.locating import KeyColumn, KeyPlace, Locator, key_places, tables_of
from sqlrs.trees.build import grouped_by, inner, named, number, select_from, table_named, union_of
from sqlrs.trees.constants import typed_literal
from sqlrs.trees.identifiers import column
from sqlrs.trees.naming import RESULTS, free_name
from sqlrs.trees.totals import decimal, product
from sqlrs.values import values_of

OWNER = "owner"
"""The column of a unit's id."""


@dataclass(frozen=True)
class OwnedTerm:
    """One term of a measure, counted by its keys and by the one owner of each result."""

    signed: Signed
    plan: ByGroup

    @property
    def owner(self) -> Term:
        """The id of the unit."""
        (owner,) = set(self.signed.owners)
        return owner


Source = Sequence[OwnedTerm] | PerUnit


@dataclass(frozen=True)
class RowsByOwner:
    """The rows of a source; ``ctes`` are the steps on the way to them, and further ones."""

    source: Source
    domains: Sequence[KeyDomain]
    dialect: Dialect
    ctes: dict[str, exp.Expression] = field(default_factory=dict)
    _numbered: dict[int, str] = field(default_factory=dict)

    @property
    def ordinals(self) -> list[str]:
        """The columns of the groups."""
        return [f"o{i}" for i, _ in enumerate(self.domains)]

    @property
    def one_row_each(self) -> bool:
        """Whether each unit has one row at most: where all is counted by the owner alone."""
        return not self.domains and (isinstance(self.source, PerUnit) or len(self.source) == 1)

    @property
    def one_sign(self) -> bool:
        """Whether no two numbers have different signs, on any database."""
        if isinstance(self.source, PerUnit):
            return not self.source.signed
        return len({term.signed.coefficient > 0 for term in self.source}) == 1

    @property
    def counted(self) -> bool:
        """Whether every number is a count of results, with a sign and a coefficient."""
        if isinstance(self.source, PerUnit):
            return not self.source.weighted
        return not any(term.signed.query.weighted for term in self.source)

    def building(self) -> StatementBuilder:
        """A statement with the steps so far.

        Steps of different terms are not shared: a computed column's name may mean two things.
        """
        if isinstance(self.source, PerUnit):
            own = cast(exp.Query, self.source.select)
            names = frozenset(table.name.lower() for table in self.source.tables)
            reserved = names | tables_of(self.domains, own)
        else:
            tables = (table_names(term.plan.residual) for term in self.source)
            reserved = tables_of(self.domains).union(*tables)
        return StatementBuilder(self.dialect, reserved, ctes=self.ctes)

    def rows(self) -> exp.Expression:
        """All rows; several may have the same owner and group."""
        if isinstance(self.source, PerUnit):
            return self._of_statement(self.source)
        return union_of([self._of_term(term) for term in self.source])

    def _of_term(self, term: OwnedTerm) -> exp.Select:
        """The numbers of one term, with its coefficient."""
        building, plan = self.building(), term.plan
        rows, names = counts_per_key(plan, building)
        places = key_places(term.signed.keys, names, plan.residual.query)
        columns = [*names.values(), RESULTS]
        taken = set(columns)
        ordinals = [free_name(name, taken) for name in self.ordinals]
        locator = Locator(building, places, self.domains, ordinals, self._numbered)
        rows = locator.located(rows, columns)
        # Where a value may be equal to several rows of a domain, the first has it.
        variables = (key for key in term.signed.keys if isinstance(key, Variable))
        if not all(values_of(v.type).one_form for v in variables):
            rows = locator.once(rows, columns, columns)
        owner, value = term.owner, column(RESULTS, rows)
        unit = column(names[owner], rows) if isinstance(owner, Variable) else typed_literal(owner)
        number = _times(value, term.signed.coefficient)
        return self._named(building, rows, unit, ordinals, number)

    def _of_statement(self, source: PerUnit) -> exp.Select:
        """The numbers of SQL by unit; they are added up before the keys are located."""
        building, given = self.building(), "given"
        keys = [f"k{key}" for key in range(sum(len(domain.keys) for domain in self.domains))]
        columns = [OWNER, *keys]
        added = exp.Sum(this=decimal(column("number", given)))
        select = select_from(
            inner(cast(exp.Select, source.select).copy(), given),
            *(column(name, given) for name in columns),
            # A unit without any number contributes nothing.
            named(exp.Coalesce(this=added, expressions=[number(0)]), RESULTS),
        )
        rows = building.add("per_key", grouped_by(select, [column(c, given) for c in columns]))
        if self.domains:
            places: list[KeyPlace] = [KeyColumn(key, nullable=True) for key in keys]
            locator = Locator(building, places, self.domains, self.ordinals, self._numbered)
            columns.append(RESULTS)
            rows = locator.once(locator.located(rows, columns), columns, columns)
        value = column(RESULTS, rows)
        return self._named(building, rows, column(OWNER, rows), self.ordinals, value)

    def _named(
        self,
        building: StatementBuilder,
        rows: str,
        owner: exp.Expression,
        ordinals: Sequence[str],
        value: exp.Expression,
    ) -> exp.Select:
        # What is only read through need not be stored first.
        source = table_named(rows) if self.domains else building.read_once(rows)
        return select_from(
            source,
            named(owner, OWNER),
            *(named(column(o, rows), to) for o, to in zip(ordinals, self.ordinals, strict=True)),
            named(value, RESULTS),
        )


def _times(value: exp.Expression, coefficient: int) -> exp.Expression:
    if coefficient == 1:
        return value
    return product([value, exp.Paren(this=number(coefficient))])
