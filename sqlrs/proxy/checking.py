"""What the library would refuse, found out from the text and the schema alone."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.afterwards import Afterwards
from sqlrs.compiler.bars import HIGH, LOW, with_error_bars
from sqlrs.compiler.complexity import parse_tokens, tokens_of
from sqlrs.compiler.simplify import Contradiction
from sqlrs.compiler.tool_forms import with_known_forms
from sqlrs.compiler.understand import read_select
from sqlrs.dialects import dialect_named
from sqlrs.effort import TooComplex, bounded
from sqlrs.mechanisms import DEFAULT, mechanism_named
from sqlrs.proxy.backend import TableShape
from sqlrs.proxy.policy.released_fractions import divides_released_fractions
from sqlrs.proxy.policy.written_moments import with_literals
from sqlrs.quoting import Sketch, sketch
from sqlrs.records import dataclass
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

    def check(self, sql: str) -> TableShape | None:
        """Raise what a release of this text would raise before it opens the database."""
        sql = with_literals(sql)
        compiled = compiled_text(sql, self.catalog, self.settings, as_rows=True)
        check_dialect(sql, self.catalog.dialect)
        if isinstance(compiled, CompiledStatement):
            return _shape(compiled.statement.above, self.catalog.dialect)
        if not isinstance(compiled, Contradiction):
            # Which epsilon does not matter: the sets that a release needs are the same for all.
            mechanism_named(DEFAULT, Decimal(1)).prepare(compiled.residuals)
        return None

    def sketch(self, sql: str) -> Sketch:
        """How the text is understood, in the words of the data's own database."""
        made = sketch(sql, self.catalog, self.settings)
        if made.sort == "count":
            compiled = compiled_text(sql, self.catalog, self.settings)
            if isinstance(compiled, Compiled):
                mechanism_named(DEFAULT, Decimal(1)).prepare(compiled.residuals)
        return made


def _shape(above: exp.Query, dialect: str) -> TableShape:
    """Which columns error bars add: behind an output come the ends of its interval."""
    written, ends = above.selects, list[list[str]]()
    for output in with_error_bars(above, dialect).selects:
        if len(ends) < len(written) and output == written[len(ends)]:
            ends.append([])
        else:
            ends[-1].append(LOW if output.alias.endswith(LOW) else HIGH)
    return TableShape(tuple(map(tuple, ends)))


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


def in_clients_order(sql: str, dialect: str) -> str:
    """A text that passed ``check_dialect``, each ORDER BY with NULLs where PostgreSQL puts them."""
    if dialect_named(dialect).read_by_clients:
        return sql
    (meant,), (tree,) = _parsed(sql, "postgres"), _parsed(sql, dialect)
    pairs = list(zip(meant.find_all(exp.Ordered), tree.find_all(exp.Ordered), strict=True))
    places = [tuple(bool(one.args.get("nulls_first")) for one in pair) for pair in pairs]
    if all(first == second for first, second in places):
        return sql
    for ordered, (first, _) in zip((own for _, own in pairs), places, strict=True):
        ordered.set("nulls_first", first)
    return tree.sql(dialect=dialect)


def afterwards(sql: str, catalog: Catalog) -> Afterwards:
    """What is done with the released number of a text that was checked before."""
    with bounded():
        return read_select(sql, catalog).after


def _parsed(sql: str, dialect: str) -> list[exp.Expr]:
    tokens = tokens_of(sql, dialect)
    return [with_known_forms(tree, tokens, dialect) for tree in parse_tokens(tokens, sql, dialect)]


def _as_read(sql: str, dialect: str) -> list[exp.Expr]:
    """The trees, but for what is no difference.

    Where ORDER BY puts NULLs is left out: it is written into the text before it is answered. The
    parser has two names for one type where the other dialects that it knows have two types. A
    percentage of released numbers is the same, but for its last digits and NULL where PostgreSQL
    would say that it cannot divide by zero.
    """
    trees = _parsed(sql, dialect)
    for tree in trees:
        for ordered in tree.find_all(exp.Ordered):
            ordered.set("nulls_first", None)
        for kind in tree.find_all(exp.DataType):
            # With a length or a precision the databases do differ: varchar(3), timestamp(3).
            if not kind.expressions:
                kind.set("this", _SAME_TYPE.get(kind.this, kind.this))
        for quotient in tree.find_all(exp.Div):
            if divides_released_fractions(quotient):
                quotient.set("typed", None)
                quotient.set("safe", None)
    return trees
