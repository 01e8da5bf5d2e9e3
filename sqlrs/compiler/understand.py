"""A tree -> a SELECT of which every node and every word is understood, or a refusal."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiler.afterwards import Afterwards, detach, read, start_of
from sqlrs.compiler.coverage import check_coverage
from sqlrs.compiler.grammar import check_grammar
from sqlrs.compiler.parse import parse
from sqlrs.compiler.source import Source, read_source
from sqlrs.records import dataclass


@dataclass(frozen=True, eq=False)
class Understood:
    """One SELECT inside the language's grammar, the text it came from, what follows its count."""

    tree: exp.Select
    source: Source
    after: Afterwards


def understand(
    tree: exp.Select, source: Source, catalog: Catalog, *, inner: bool = False
) -> Understood:
    """Check the tree against the grammar, and the text against the tree.

    An ``inner`` one, a view's, may not have ORDER BY, LIMIT, OFFSET or HAVING.
    """
    clauses = {} if inner else detach(tree)
    check_grammar(tree, source, catalog)
    after = read(clauses, tree, source)
    check_coverage(tree, source, end=start_of(clauses, source))
    return Understood(tree, source, after)


def read_select(sql: str, catalog: Catalog, *, inner: bool = False) -> Understood:
    """The first three stages on one text, such as a view's."""
    source = read_source(sql, catalog.dialect)
    return understand(parse(source), source, catalog, inner=inner)
