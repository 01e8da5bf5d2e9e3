"""The compiler in one call: SQL text -> parse -> lower -> simplify."""

from __future__ import annotations

from sqlrs.catalog import Catalog
from sqlrs.lower import lower
from sqlrs.parse import parse
from sqlrs.query import Query
from sqlrs.simplify import Contradiction, simplify
from sqlrs.source import Source


def compile_query(sql: str, catalog: Catalog) -> Query | Contradiction:
    """What the analyst's SQL asks for, or a QueryRefused that says what is outside the language."""
    try:
        return simplify(lower(parse(sql, catalog), catalog))
    except RecursionError:
        # A long chain of common table expressions is not deep anywhere in the text.
        raise Source(sql, catalog.dialect, ()).refusal("too_complex") from None
