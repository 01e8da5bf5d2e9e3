"""ORDER BY, LIMIT, OFFSET and HAVING of a single count: they act on the released number alone.

What is done with a released number costs nothing and tells nothing more. The clauses decide whether
the one row is shown; they never reach the database.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from sqlrs.compiler.complexity import span_of
from sqlrs.compiler.conditions import RELATIONS, holds, normal_form
from sqlrs.compiler.names import fold
from sqlrs.compiler.source import Source
from sqlrs.errors import Span
from sqlrs.records import dataclass

_CLAUSES = ("having", "order", "limit", "offset")
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}
_ARGUMENTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Having: frozenset({"this"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
    exp.Offset: frozenset({"expression"}),
}
# Words of the clauses that leave no node of their own.
_WORDS = frozenset(
    """
    and asc between by desc distinct fetch first having last limit next not nulls offset only order
    order_by row rows
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Afterwards:
    """What follows the count. ``having`` holds comparisons with the number; all must be true."""

    limit: int | None = None
    offset: int = 0
    having: tuple[tuple[type[exp.Expr], int], ...] = ()

    @property
    def never(self) -> bool:
        """Whether no row is shown whatever the number is."""
        return self.limit == 0 or self.offset > 0

    def shows(self, number: int) -> bool:
        """Whether the row of this released number is shown."""
        return not self.never and all(holds(kind, number, other) for kind, other in self.having)


Clauses = Mapping[str, exp.Expr]


def detach(select: exp.Select) -> Clauses:
    """Take the clauses off the SELECT."""
    found = {name: select.args[name] for name in _CLAUSES if select.args.get(name)}
    for name in found:
        select.set(name, None)
    return found


def read(clauses: Clauses, select: exp.Select, source: Source) -> Afterwards:
    """What the clauses say of the one count, or a refusal."""
    if not clauses:
        return Afterwards()
    selected = select.expressions[0] if len(select.expressions) == 1 else select
    count = selected.unalias().unnest()
    if not isinstance(count, exp.Count):
        raise source.refusal("not_a_count", selected)
    if "order" in clauses:
        _check_order(clauses["order"], selected, count, source)
    having: list[tuple[type[exp.Expr], int]] = []
    if "having" in clauses:
        _check_arguments(clauses["having"], "having", source)
        for part in normal_form(clauses["having"].this):
            having.append(_compared(part, count, clauses["having"], source))
    limit = _number(clauses["limit"], source) if "limit" in clauses else None
    offset = _number(clauses["offset"], source) if "offset" in clauses else 0
    _check_words(clauses, source)
    return Afterwards(limit, offset, tuple(having))


def start_of(clauses: Clauses, source: Source) -> int | None:
    """Where the first clause starts in the text."""
    return min((source.span(clause).start for clause in clauses.values()), default=None)


def require_row(after: Afterwards, source: Source) -> None:
    """Refuse clauses that can leave no row, where the answer is a number."""
    if after.never:
        raise source.refusal(
            "limit",
            _word(source, "limit", "offset", "fetch"),
            "LIMIT or OFFSET leaves no row, so there would be no number to answer with",
        )
    if after.having:
        raise source.refusal(
            "having",
            _word(source, "having"),
            "HAVING can leave no row, and then there is no number to answer with",
        )


def _check_order(order: exp.Expr, selected: exp.Expr, count: exp.Expr, source: Source) -> None:
    _check_arguments(order, "order_by", source)
    alias = selected.args.get("alias") if isinstance(selected, exp.Alias) else None
    for item in order.expressions:
        _check_arguments(item, "order_by", source)
        value = item.this.unnest()
        first = isinstance(value, exp.Literal) and not value.is_string and value.this == "1"
        named = (
            isinstance(value, exp.Column)
            and alias is not None
            and not value.table
            and fold(value.this, source.dialect) == fold(alias, source.dialect)
        )
        if not (first or named or value == count):
            raise source.refusal("order_by", item)


def _compared(
    part: exp.Expr, count: exp.Expr, clause: exp.Expr, source: Source
) -> tuple[type[exp.Expr], int]:
    if isinstance(part, RELATIONS):
        left, right, kind = part.this.unnest(), part.expression.unnest(), type(part)
        if right == count:
            left, right, kind = right, left, _MIRRORED.get(kind, kind)
        number = _integer(right)
        if left == count and number is not None:
            return kind, number
    raise source.refusal(
        "having",
        clause,
        "HAVING may compare the one count with whole numbers only",
        "write HAVING count(*) > 10, or ask for the count itself and compare the answer",
    )


def _number(clause: exp.Expr, source: Source) -> int:
    _check_arguments(clause, "limit", source)
    options = clause.args.get("limit_options")
    if options is not None:
        _check_arguments(options, "limit", source)
    value = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
    if value is None:
        return 1  # FETCH FIRST ROW ONLY
    number = _integer(value.unnest())
    if number is None or number < 0:
        raise source.refusal("limit", clause, "the number of rows must be a whole number")
    return number


def _integer(value: exp.Expr) -> int | None:
    if isinstance(value, exp.Neg):
        below = _integer(value.this.unnest())
        return None if below is None else -below
    plain = isinstance(value, exp.Literal) and not value.is_string
    return int(value.this) if plain and _INTEGER.fullmatch(value.this) else None


def _check_arguments(node: exp.Expr, code: str, source: Source) -> None:
    allowed = _ARGUMENTS.get(type(node), frozenset())
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in allowed:
            raise source.refusal(code, node)


def _check_words(clauses: Clauses, source: Source) -> None:
    """Refuse a word of the clauses that no node accounts for: the parser read over it."""
    start = start_of(clauses, source)
    nodes = [node for clause in clauses.values() for node in clause.walk()]
    claimed = {node.meta["start"] for node in nodes if "start" in node.meta}
    for token in source.tokens:
        word = token.text.lower().replace(" ", "_")
        known = word in _WORDS or not (word[:1].isalnum() or word[:1] == "_")
        if start is not None and token.start >= start and token.start not in claimed and not known:
            raise source.refusal("not_understood", span_of(token))


def _word(source: Source, *words: str) -> Span | None:
    """The last of the words in the text: the clauses stand at its end."""
    for token in reversed(source.tokens):
        if token.text.lower() in words:
            return span_of(token)
    return None
