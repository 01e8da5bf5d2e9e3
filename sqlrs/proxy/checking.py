"""What the library would refuse, found out from the text and the schema alone."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled
from sqlrs.compiler.afterwards import Afterwards
from sqlrs.compiler.complexity import parse_text
from sqlrs.compiler.parse import parse
from sqlrs.compiler.simplify import Contradiction
from sqlrs.effort import TooComplex, bounded
from sqlrs.errors import QueryRefused
from sqlrs.mechanisms import DEFAULT, mechanism_named
from sqlrs.settings import Settings


@dataclass(frozen=True)
class LibraryChecker:
    """Compiles as a release would, up to the charge. It can be sent to another process."""

    catalog: Catalog
    settings: Settings

    def check(self, sql: str) -> None:
        """Raise what a release of this text would raise before its charge."""
        compiled = Compiled.of(sql, self.catalog, self.settings, as_rows=True)
        if not isinstance(compiled, Contradiction):
            # Which epsilon does not matter: the sets that a release needs are the same for all.
            mechanism_named(DEFAULT, Decimal(1)).prepare(compiled.residuals)
        check_dialect(sql, self.catalog.dialect)


def check_dialect(sql: str, dialect: str) -> None:
    """Refuse a text that PostgreSQL and the data's own database read in two ways."""
    if dialect == "postgres":
        return
    try:
        same = _unordered(sql, "postgres") == _unordered(sql, dialect)
    except (SqlglotError, TooComplex):
        same = False
    if not same:
        raise QueryRefused(
            f"PostgreSQL and {dialect}, which holds the data, read this query differently",
            code="dialect",
            hint="avoid / and functions whose meaning differs between the two",
        )


def afterwards(sql: str, catalog: Catalog) -> Afterwards:
    """What is done with the released number of a text that was checked before."""
    with bounded():
        return parse(sql, catalog).after


def _unordered(sql: str, dialect: str) -> list[exp.Expr]:
    """The trees without ORDER BY: the dialects put NULLs elsewhere, but a count is one row."""
    trees = parse_text(sql, dialect)
    for tree in trees:
        tree.set("order", None)
    return trees
