"""The compiler in one call: SQL text -> parse -> lower -> simplify."""

from __future__ import annotations

from sqlrs import arguments
from sqlrs.catalog import Catalog
from sqlrs.compiler.afterwards import require_row
from sqlrs.compiler.lower import lower
from sqlrs.compiler.parse import parse
from sqlrs.compiler.simplify import Contradiction, simplify
from sqlrs.compiler.source import Source
from sqlrs.effort import TOO_MANY_STEPS, TooComplex, bounded
from sqlrs.errors import Span
from sqlrs.query import Query


def compile_query(sql: str, catalog: Catalog, *, as_rows: bool = False) -> Query | Contradiction:
    """What the analyst's SQL asks for, or a QueryRefused that says what is outside the language.

    ``as_rows``: the answer is shown as rows, so HAVING, LIMIT and OFFSET may leave none.
    """
    arguments.text("the query", sql)
    try:
        with bounded():
            parsed = parse(sql, catalog)
            if not as_rows:
                require_row(parsed.after, parsed.source)
            return simplify(lower(parsed, catalog))
    except RecursionError:
        # A long chain of common table expressions is not deep anywhere in the text.
        raise Source(sql, catalog.dialect, ()).refusal("too_complex") from None
    except TooComplex:
        whole = Source(sql, catalog.dialect, ())
        raise whole.refusal("too_complex", Span(0, len(sql)), TOO_MANY_STEPS) from None
