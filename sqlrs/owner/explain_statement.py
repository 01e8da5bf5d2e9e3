"""Statement -> what is released, for which groups, with which noise; free, nothing private read."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from html import escape
from math import prod
from typing import cast

from sqlglot import exp

from sqlrs.before_charge import Groups, mechanisms_of
from sqlrs.catalog import Catalog
from sqlrs.compiled import CompiledStatement
from sqlrs.compiler.owners import owner_words
from sqlrs.engines.base import Engine
from sqlrs.measures import Aggregation, Asked
from sqlrs.mechanisms.vector_base import VectorMechanism
from sqlrs.owner.explain import work_lines
from sqlrs.owner.in_short import statement_in_short
from sqlrs.records import dataclass
from sqlrs.settings import Request, Settings
from sqlrs.sql.grouped_text import domain_text, query_text
from sqlrs.work_bound import NOTHING_DECLARED, DeclaredSizes


@dataclass(frozen=True, eq=False)
class StatementExplanation:
    """Domains, measures and noise of every aggregation, and what runs above them.

    ``sizes``: the number of values of each domain, by relation.
    """

    compiled: CompiledStatement
    mechanisms: Mapping[Asked, VectorMechanism]
    sizes: Mapping[str, tuple[int, ...]]
    epsilon: Decimal
    dialect: str
    declared: DeclaredSizes = NOTHING_DECLARED

    def __str__(self) -> str:
        statement = self.compiled.statement
        lines = [self._in_short(), ""]
        for aggregation in statement.aggregations:
            lines += [aggregation.name, *self._groups(aggregation)]
            for number, place in enumerate(aggregation.columns):
                lines += self._column(number, aggregation.asked[place])
            lines.append("")
        lines += ["afterwards, free of charge", f"  {statement.above.sql(self.dialect)}"]
        return "\n".join(lines)

    def _in_short(self) -> str:
        asked = self.compiled.asked
        queries = [one.residuals.query for summands in asked.values() for one in summands]
        noise = [self.mechanisms[one].describe() for one in asked]
        groups = max((prod(sizes) for sizes in self.sizes.values()), default=1)
        unit = self.compiled.unit
        return statement_in_short(queries, noise, groups, None if unit is None else unit.name)

    def _repr_html_(self) -> str:
        """The text, as a notebook shows it."""
        return f"<pre>{escape(str(self))}</pre>"

    def _groups(self, aggregation: Aggregation) -> list[str]:
        if not aggregation.domains:
            return ["  one group: all rows"]
        lines = []
        for number, domain in enumerate(aggregation.domains):
            keys = ", ".join(f"k{key}" for key in domain.keys)
            size = self.sizes[aggregation.name][number]
            lines.append(f"  {keys}: {domain.origin}, {size} value{'s' * (size != 1)}")
            lines.append(f"      {domain_text(domain, self.dialect)}")
        groups = prod(self.sizes[aggregation.name])
        several = "groups" if groups != 1 else "group"
        lines.append(f"  {groups} {several}; rows whose keys are not among them are in no group")
        return lines

    def _column(self, number: int, asked: Asked) -> list[str]:
        measure = asked[1]
        unit = "" if measure.unit == 1 else f", in units of {measure.unit}"
        one = len(measure.terms) == 1 or measure.per_unit is not None
        lines = [f"  a{number}: {'one query' if one else 'sum of'}{unit}"]
        for term in measure.terms:
            lines.append(f"      {term.coefficient:+d} × {query_text(term.query, self.dialect)}")
            if self.compiled.unit is not None:
                lines.append(
                    f"         {owner_words(term.query, term.owners, self.compiled.unit.name)}"
                )
        if measure.per_unit is not None:
            select = cast(exp.Expr, measure.per_unit.select)
            lines += [
                "      for each unit by itself, by SQL that stays inside one unit",
                f"      {select.sql(self.dialect)}",
            ]
        elif not measure.terms:
            lines.append("      nothing: 0 on every database")
        for summand in self.compiled.asked[asked]:
            residuals = summand.residuals
            work = work_lines(residuals, residuals.required, self.declared)
            lines += [f"      {line}" for line in work]
        return [*lines, f"      noise: {self.mechanisms[asked].describe()}"]


def explained(
    compiled: CompiledStatement,
    request: Request,
    engine: Engine,
    catalog: Catalog,
    settings: Settings,
) -> StatementExplanation:
    """The explanation; only the rows of the domains are read, which are public."""
    epsilon, bars = request.prices(of_units=catalog.unit is not None)
    with engine.snapshot() as snapshot:
        groups = Groups.read(compiled.statement.aggregations, snapshot, settings, text=request.sql)
    mechanisms = mechanisms_of(compiled, groups, epsilon, bars, settings, request.mechanism)
    sizes = {name: tuple(map(len, rows)) for name, rows in groups.rows.items()}
    return StatementExplanation(
        compiled, mechanisms, sizes, epsilon, catalog.dialect, settings.sizes
    )
