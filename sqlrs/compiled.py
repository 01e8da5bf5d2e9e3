"""Text -> a query with its residuals, ready to be charged and measured; or a refusal."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.functions import is_declared
from sqlrs.compiler.simplify import Contradiction
from sqlrs.effort import bounded_analysis
from sqlrs.errors import QueryRefused
from sqlrs.residuals.residual import Residuals
from sqlrs.settings import Settings
from sqlrs.sql.plain import plain


@dataclass(frozen=True)
class Compiled:
    """A query with its residuals, ready to be charged and measured."""

    residuals: Residuals
    canonical: str

    @classmethod
    def of(
        cls, sql: str, catalog: Catalog, settings: Settings, *, as_rows: bool = False
    ) -> Compiled | Contradiction:
        """Compile the text, or refuse it; ``as_rows`` as in ``Request``."""
        query = compile_query(sql, catalog, as_rows=as_rows)
        if isinstance(query, Contradiction):
            return query
        with bounded_analysis():
            residuals = Residuals(query, settings.reading(query))
            everything = plain(residuals.of(query.everything))
            return cls(residuals, everything.sql(dialect=catalog.dialect))

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
