"""The compiler in one call, and its order: source, parse, understand, inline, lower, simplify."""

from __future__ import annotations

from sqlrs.catalog import Catalog
from sqlrs.compiler.afterwards import require_row
from sqlrs.compiler.inline import inline
from sqlrs.compiler.lower import lower
from sqlrs.compiler.parse import parse
from sqlrs.compiler.simplify import Contradiction, simplify
from sqlrs.compiler.source import Source, read_source
from sqlrs.compiler.understand import understand
from sqlrs.effort import TOO_MANY_STEPS, TooComplex, bounded
from sqlrs.errors import Span
from sqlrs.inputs import arguments
from sqlrs.query import Query


def compile_query(
    sql: str, catalog: Catalog, *, as_rows: bool = False, parameters: tuple[str, ...] = ()
) -> Query | Contradiction:
    """What the analyst's SQL asks for, or a QueryRefused that says what is outside the language.

    ``as_rows``: the answer is shown as rows, so HAVING, LIMIT and OFFSET may leave none.
    ``parameters``: the types of $1, $2, …, whose values are not known.
    """
    arguments.text("the query", sql)
    try:
        with bounded():
            return _compiled(sql, catalog, as_rows, parameters)
    except RecursionError:
        # A long chain of common table expressions is not deep anywhere in the text.
        raise Source(sql, catalog.dialect, ()).refusal("too_complex") from None
    except TooComplex:
        whole = Source(sql, catalog.dialect, ())
        raise whole.refusal("too_complex", Span(0, len(sql)), TOO_MANY_STEPS) from None


def _compiled(
    sql: str, catalog: Catalog, as_rows: bool, parameters: tuple[str, ...]
) -> Query | Contradiction:
    """The stages in their order: each refuses, or hands what it made to the next."""
    source = read_source(sql, catalog.dialect, parameters)  # the words, and where they stand
    tree = parse(source)  # one SELECT
    select = understand(tree, source, catalog)  # every node is in the grammar, every word in a node
    if not as_rows:
        require_row(select.after, source)
    flat = inline(select, catalog)  # tables and conditions, every name resolved
    query = lower(flat)  # atoms with variables, filters, predicates
    return simplify(query)  # the same without what follows from the rest
