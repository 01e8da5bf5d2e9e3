"""Text -> a query with its residuals, ready to be charged and measured; or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.functions import is_declared
from sqlrs.compiler.simplify import Contradiction
from sqlrs.effort import bounded_analysis
from sqlrs.errors import QueryRefused
from sqlrs.query import Query
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.residuals.isomorphism import isomorphic
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.settings import Settings
from sqlrs.sql.plain import plain
from sqlrs.trees.kept import Kept
from sqlrs.units import Unit
from sqlrs.work_bound import refuse_too_large

if TYPE_CHECKING:
    # A single count does without them, and starts in half the time.
    from sqlrs.compiler.statement import CutStatement
    from sqlrs.measures import Aggregation, Asked, PerUnit
    from sqlrs.mechanisms.vector_base import Summand

# What is refused of a single count and may be answered as a statement.
MORE_THAN_A_COUNT = frozenset(
    """
    aggregate distinct group_by having limit negated_subquery not_a_count not_understood order_by
    outer_join set_operation subquery window
    """.split()  # noqa: SIM905
)

MAX_MEASURES = 100
"""Each is measured and released on its own; without an end they would be an analyst's to choose."""


@dataclass(frozen=True)
class Compiled:
    """A query with its residuals, ready to be charged and measured.

    ``kept``: what was written for it, when it ran last.
    """

    residuals: Residuals
    canonical: str
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        sql: str,
        catalog: Catalog,
        settings: Settings,
        *,
        as_rows: bool = False,
        parameters: tuple[str, ...] = (),
    ) -> Compiled | Contradiction:
        """Compile the text, or refuse it; ``as_rows`` as in ``Request``.

        ``parameters``: the types of $1, $2, …, as in ``compile_query``.
        """
        query = compile_query(sql, catalog, as_rows=as_rows, parameters=parameters)
        if isinstance(query, Contradiction):
            return query
        with bounded_analysis():
            residuals = Residuals(query, settings.reading(query))
            everything = plain(residuals.of(query.everything))
            return cls(residuals, everything.sql(dialect=catalog.dialect, copy=False))

    @property
    def declared_functions(self) -> tuple[str, ...]:
        """The functions of the owner's that the query calls."""
        query = self.residuals.query
        filters = [one.condition for atom in query.atoms for one in atom.filters]
        trees = [t for t in (*filters, *(p.condition for p in query.generals))]
        calls = (n for t in trees if isinstance(t, exp.Expr) for n in t.walk() if is_declared(n))
        return tuple(sorted({str(call.this).lower() for call in calls}))

    def same(self, sql: str, catalog: Catalog, settings: Settings) -> bool:
        """Whether the text, by another catalog, compiles to this query."""
        with suppress(QueryRefused):
            other = Compiled.of(sql, catalog, settings, as_rows=True)
            return (
                isinstance(other, Compiled)
                and other.canonical == self.canonical
                and other.residuals.query == self.residuals.query
            )
        return False


@dataclass(frozen=True, eq=False)
class CompiledStatement:
    """A statement whose measures are ready to be charged and measured.

    ``asked`` holds each measure that is released, once, with the residuals of its terms. ``unit``:
    who is protected, None for single rows. ``kept``: what was written for it, when it ran last.
    """

    statement: CutStatement
    asked: Mapping[Asked, tuple[Summand, ...]]
    canonical: str
    unit: Unit | None = None
    kept: Kept = field(default_factory=Kept)

    @classmethod
    def of(
        cls, sql: str, catalog: Catalog, settings: Settings, parameters: tuple[str, ...] = ()
    ) -> CompiledStatement:
        """Compile the text, or refuse it."""
        from sqlrs.compiler.statement import compile_statement
        from sqlrs.mechanisms.vector_base import Summand

        statement = compile_statement(sql, catalog, parameters)
        wanted = [asked for one in statement.aggregations for asked in one.asked]
        if len(wanted) > MAX_MEASURES:
            raise refusal("too_complex", f"more than {MAX_MEASURES} aggregates are asked for")
        with bounded_analysis():
            found = {
                asked: tuple(
                    Summand(term, Residuals(term.query, settings.reading(term.query)))
                    for term in asked[1].terms
                )
                for asked in wanted
            }
            texts = [_text(one, found, catalog.dialect) for one in statement.aggregations]
        made = cls(statement, found, "; ".join(texts), catalog.unit)
        if (asked := made.one_count) is not None:
            # As ``Compiled`` has it: what was asked as a count is asked again.
            return replace(made, canonical=_query_text(found[asked][0], catalog.dialect))
        return made

    @property
    def one_count(self) -> Asked | None:
        """What is asked where that is one count of rows without groups, and nothing else."""
        if self.unit is not None or len(self.asked) != 1:
            return None
        ((asked, terms),) = self.asked.items()
        if asked[0] or asked[1].unit != 1 or len(terms) != 1:
            return None
        (only,) = terms
        counts = only.signed.coefficient == 1 and not only.residuals.query.weighted
        return asked if counts else None

    def refuse_beforehand(self, catalog: Catalog, settings: Settings) -> None:
        """Refuse what the owner refuses, by name or by a join beyond the limit; no data is read."""
        refuse_named(self, catalog, settings)
        for terms in self.asked.values():
            for term in terms:
                refuse_too_large(term.residuals, term.residuals.required, settings.sizes)

    @property
    def by_unit(self) -> tuple[PerUnit, ...]:
        """What SQL inside units contributes."""
        found = (asked[1].per_unit for asked in self.asked)
        return tuple(one for one in found if one is not None)

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries of all terms."""
        return tuple(one.signed.query for terms in self.asked.values() for one in terms)

    def tables(self, catalog: Catalog) -> frozenset[Table]:
        """All tables that are read: for the measures, for domains, and above them."""
        return self.kept.of((catalog,), lambda: self._tables(catalog), detail="tables")

    def _tables(self, catalog: Catalog) -> frozenset[Table]:
        from sqlrs.compiler.statement import domain_tables

        names = frozenset[tuple[str | None, str]]().union(
            *(domain_tables(d) for one in self.statement.aggregations for d in one.domains)
        )
        public = (table for table in catalog.tables if table.identity in names)
        read = (table for query in self.queries for table in query.tables)
        inside = (
            table
            for one in self.statement.aggregations
            for measure in one.measures
            if measure.per_unit is not None
            for table in measure.per_unit.tables
        )
        return frozenset((*public, *read, *inside, *self.statement.public))

    def same(self, catalog: Catalog, *, sql: str, settings: Settings) -> bool:
        """Whether the text, by another catalog, compiles to the same measures."""
        with suppress(QueryRefused):
            other = CompiledStatement.of(sql, catalog, settings)
            return (
                other.canonical == self.canonical
                and other.statement.aggregations == self.statement.aggregations
                and other.statement.public == self.statement.public
            )
        return False


def compiled_text(
    sql: str,
    catalog: Catalog,
    settings: Settings,
    *,
    as_rows: bool = False,
    parameters: tuple[str, ...] = (),
) -> Compiled | Contradiction | CompiledStatement:
    """One count as such, and what is more than that as a statement; or a refusal.

    Where units are protected, all are statements: what one contributes is limited there.
    """
    compiled = _compiled(sql, catalog, settings, as_rows, parameters)
    if not isinstance(compiled, Contradiction):
        refuse_named(compiled, catalog, settings)
    return compiled


def refuse_named(
    compiled: Compiled | CompiledStatement, catalog: Catalog, settings: Settings
) -> None:
    """Refuse what the owner named, after a dry run say, in whatever words; no data is read."""
    if not settings.refused_queries:
        return
    named = _wholes(*(_named(text, catalog, settings) for text in settings.refused_queries))
    for asked in _wholes(compiled):
        if any(isomorphic(one, asked) for one in named):
            raise refusal("refused_by_owner")


@lru_cache(maxsize=64)
def _named(
    text: str, catalog: Catalog, settings: Settings
) -> Compiled | CompiledStatement | Contradiction | None:
    """A query that the owner named; None where it has no meaning today, so nobody asks it."""
    with suppress(QueryRefused):
        return _compiled(text, catalog, settings, as_rows=False, parameters=())
    return None


def _wholes(*compiled: Compiled | CompiledStatement | Contradiction | None) -> list[Residual]:
    """The queries that are counted or summed, each as a whole."""
    found = []
    for one in compiled:
        if isinstance(one, Compiled):
            found.append(one.residuals)
        elif isinstance(one, CompiledStatement):
            found += [term.residuals for terms in one.asked.values() for term in terms]
    return [residuals.of(residuals.query.everything) for residuals in found]


def _compiled(
    sql: str, catalog: Catalog, settings: Settings, as_rows: bool, parameters: tuple[str, ...]
) -> Compiled | Contradiction | CompiledStatement:
    if catalog.unit is not None:
        return CompiledStatement.of(sql, catalog, settings, parameters)
    try:
        return Compiled.of(sql, catalog, settings, as_rows=as_rows, parameters=parameters)
    except QueryRefused as error:
        if error.code not in MORE_THAN_A_COUNT:
            raise
    return CompiledStatement.of(sql, catalog, settings, parameters)


def _text(
    aggregation: Aggregation, found: Mapping[Asked, tuple[Summand, ...]], dialect: str
) -> str:
    """All that a relation depends on, for the ledger: equal texts ask for the same numbers."""
    from sqlrs.sql.grouped_text import domain_text, key_text

    domains = [domain_text(domain, dialect) for domain in aggregation.domains]
    sums = []
    for asked in aggregation.asked:
        terms = []
        for one in found[asked]:
            text = _query_text(one, dialect)
            named = (*one.signed.keys, *one.signed.owners)
            keys = ", ".join(key_text(key, one.signed.query, dialect) for key in named)
            by = f" BY {keys}" if keys else ""
            terms.append(f"{one.signed.coefficient:+d} ({text}{by})")
        if (per_unit := asked[1].per_unit) is not None:
            terms.append(f"({cast(exp.Expr, per_unit.select).sql(dialect=dialect)})")
        sums.append(f"{asked[1].unit} * ({' '.join(terms) or 0})")
    each = f" FOR EACH {' AND '.join(domains)}" if domains else ""
    return ", ".join(sums) + each


def _query_text(summand: Summand, dialect: str) -> str:
    from sqlrs.sql.grouped_text import query_text

    return query_text(summand.residuals.query, dialect)
