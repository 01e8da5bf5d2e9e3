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
from sqlrs.compiler.simplify import Contradiction
from sqlrs.compiler.understand import read_select
from sqlrs.dialects import dialect_named
from sqlrs.effort import TooComplex, bounded
from sqlrs.mechanisms import DEFAULT, mechanism_named
from sqlrs.refusals import refusal
from sqlrs.settings import Settings

_SAME_TYPE = {
    exp.DataType.Type.TIMESTAMPNTZ: exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.VARCHAR: exp.DataType.Type.TEXT,
}


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
    if dialect_named(dialect).read_by_clients:
        return
    try:
        same = _as_read(sql, "postgres") == _as_read(sql, dialect)
    except (SqlglotError, TooComplex):
        same = False
    if not same:
        raise refusal(
            "dialect",
            f"PostgreSQL and {dialect}, which holds the data, read this query differently",
        )


def afterwards(sql: str, catalog: Catalog) -> Afterwards:
    """What is done with the released number of a text that was checked before."""
    with bounded():
        return read_select(sql, catalog).after


def _as_read(sql: str, dialect: str) -> list[exp.Expr]:
    """The trees, but for what is no difference.

    ORDER BY is left out: the dialects put NULLs elsewhere, but a count is one row. The parser has
    two names for one type where the other dialects that it knows have two types.
    """
    trees = parse_text(sql, dialect)
    for tree in trees:
        tree.set("order", None)
        for kind in tree.find_all(exp.DataType):
            # With a length or a precision the databases do differ: varchar(3), timestamp(3).
            if not kind.expressions:
                kind.set("this", _SAME_TYPE.get(kind.this, kind.this))
    return trees
