"""How long the texts can get that a query builds; too long ones are refused before the charge.

A database keeps the texts of thousands of rows at a time, outside its own limits on memory and
between two looks at the clock. So a text may be at most ``MOST_TIMES`` as long as the longest value
that is read with it, and ``MOST_BYTES`` more: nested ``replace`` would multiply instead.

For every condition the length of its longest text, whatever the data, is at most times·L + bytes,
where L is the length of the longest value of the row, written as text. Every node of the tree is at
least as long by this reckoning as each of its parts, so no part is longer than what is reckoned for
the whole. What a function that the owner declares does with a text is not known: it is given texts
as they stand in the data or the query, and nothing builds a text from what it returns.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sqlrs.compiler.functions import is_declared
from sqlrs.compiler.source import Source
from sqlrs.dialects import dialect_named
from sqlrs.records import dataclass

MOST_TIMES = 32
MOST_BYTES = 16_384

# Digits of a number, or a date, as text.
_NUMBER = 64
# The longest number that PostgreSQL computes.
_LONGEST_NUMBER = 147_456
# The characters that one can become: ΐ in upper case.
_CASE_FACTOR = 3

_BUILDING = (exp.DPipe, exp.Concat, exp.Replace, exp.Upper, exp.Lower)
_PADDED = frozenset({exp.DataType.Type.CHAR, exp.DataType.Type.NCHAR, exp.DataType.Type.BPCHAR})


@dataclass(frozen=True)
class Length:
    """At most ``times`` the longest value of the row, and ``bytes`` more."""

    times: int
    bytes: int

    def __add__(self, other: Length) -> Length:
        return Length(self.times + other.times, self.bytes + other.bytes)

    def __mul__(self, factor: int) -> Length:
        return Length(self.times * factor, self.bytes * factor)


def check_growth(conditions: Iterable[exp.Expr], source: Source) -> None:
    """Refuse a query all of whose texts together can be longer than the bound."""
    total = Length(0, 0)
    for condition in conditions:
        for call in filter(is_declared, condition.walk()):
            _check_alone(call, source)
        if any(map(_builds, condition.walk())):
            total += _length(condition, source)
        if total.times > MOST_TIMES or total.bytes > MOST_BYTES:
            raise source.refusal("text_growth", condition)


def growth(tree: exp.Expr, source: Source) -> Length:
    """How long the texts are together that a SELECT builds, its subqueries in FROM aside."""
    total, pending = Length(0, 0), list(tree.iter_expressions())
    while pending:
        node = pending.pop()
        if _builds(node):
            total += _length(node, source)
        elif not isinstance(node, exp.Query):
            pending += list(node.iter_expressions())
    return total


def _check_alone(call: exp.Expr, source: Source) -> None:
    """Refuse a declared function among others of which each could multiply a text."""
    hint = "a function that the owner declared is given columns and values as they are"
    around: exp.Expr | None = call.parent
    while around is not None:
        if _builds(around) or is_declared(around):
            message = "what a declared function returns may be a text of any length"
            raise source.refusal("text_growth", call, message, hint)
        around = around.parent
    for inside in call.walk():
        if _builds(inside):
            message = "a declared function is given a text that the query builds"
            raise source.refusal("text_growth", inside, message, hint)


def _builds(node: exp.Expr) -> bool:
    return isinstance(node, _BUILDING) or (isinstance(node, exp.Cast) and _is_text(node))


def _length(node: exp.Expr, source: Source) -> Length:
    if isinstance(node, exp.Column):
        return Length(1, _NUMBER)
    if isinstance(node, exp.Literal):
        return Length(0, max(len(str(node.this).encode()), 1))
    parts = {id(part): _length(part, source) for part in node.iter_expressions()}
    whole = sum(parts.values(), Length(0, 0))
    match node:
        case exp.Replace():
            by = parts.get(id(node.args.get("replacement")), Length(0, 1))
            return whole + _replaced(parts[id(node.this)], by)
        case exp.Upper() | exp.Lower():
            return whole * _CASE_FACTOR
        case exp.Pow() | exp.Exp():
            exact = dialect_named(source.dialect).exact_powers
            return whole + Length(0, _LONGEST_NUMBER if exact else _NUMBER)
        case exp.Cast() if _is_text(node):
            return whole + Length(0, _padding(node))
    return whole


def _replaced(text: Length, by: Length) -> Length:
    """Each byte of the text may become the replacement; of one from the data nothing is known."""
    return Length(MOST_TIMES + 1, 0) if by.times else text * by.bytes


def _is_text(cast: exp.Cast) -> bool:
    return cast.to.this in exp.DataType.TEXT_TYPES


def _padding(cast: exp.Cast) -> int:
    """char(n) is filled with blanks."""
    if cast.to.this not in _PADDED:
        return _NUMBER
    sizes = [size.name for size in cast.to.find_all(exp.Literal)]
    return sum(int(size) for size in sizes if size.isdigit()) + _NUMBER
