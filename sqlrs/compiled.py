"""Text -> a query with its residuals, ready to be charged and measured; or a refusal."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sqlrs.catalog import Catalog
from sqlrs.compiler.compile import compile_query
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
