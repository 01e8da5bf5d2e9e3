"""Calls of reporting tools in the forms that the compiler knows: to_char, age, date_trunc.

``to_char(x, 'YYYY-MM')`` is made of parts of the moment, and NULL for the days of other years than
1 to 9999, the infinite ones among them: those have no such text in every database. Only forms of
digits are known; names of months depend on a language. ``age(x, y)`` is of two moments without a
time zone; with one argument it reads the clock, stays, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from sqlrs.dialects import dialect_named

_FIRST, _LAST = "0001-01-01", "9999-12-31"
# The part of a moment that each word of a form writes, and in how many digits.
_PARTS = {
    "YYYY": ("YEAR", 4),
    "IYYY": ("ISOYEAR", 4),
    "HH24": ("HOUR", 2),
    "MM": ("MONTH", 2),
    "MI": ("MINUTE", 2),
    "DD": ("DAY", 2),
    "SS": ("SECOND", 2),
    "IW": ("WEEK", 2),
    "ID": ("ISODOW", 1),
    "Q": ("QUARTER", 1),
}
_WORD = re.compile(f"{'|'.join(_PARTS)}|[-/:. ]")
# Words of PostgreSQL that begin as known ones do: days of the year, seconds of the day.
_LONGER = re.compile("DDD|SSSS")
_FORMS: tuple[type[exp.Expr], ...] = (exp.ToChar, exp.TimeToStr)
_CALLS: tuple[type[exp.Expr], ...] = (exp.DateTrunc, *_FORMS, exp.Anonymous)
_CLOCK = frozenset({"HOUR", "MINUTE", "SECOND"})
_MOMENTS = frozenset({exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ})


def with_known_forms(tree: exp.Expr, tokens: Sequence[Token], dialect: str) -> exp.Expr:
    """The tree of the tokens with these calls as the compiler knows them."""
    if not any(isinstance(node, _CALLS) for node in tree.walk()):
        return tree
    for node in list(tree.find_all(exp.DateTrunc)):
        # The parser has two nodes for date_trunc, by whether its argument is a cast to a date.
        unit = node.args.get("unit")
        if isinstance(unit, exp.Literal) and set(node.args) <= {"this", "unit"}:
            whole = exp.TimestampTrunc(this=node.this, unit=exp.var(unit.name.upper()))
            node.replace(_at(whole, node))
    if not dialect_named(dialect).has_moments_of_tools:
        return tree
    for call in list(tree.find_all(*_FORMS)):
        form = _written_form(call, tokens)
        if form is not None and (words := _words(form.text)):
            call.replace(_written(call, form, words))
    for age in list(tree.find_all(exp.Anonymous)):
        if str(age.this).lower() == "age" and len(age.expressions) == 2:
            # Of days PostgreSQL would take the moments of the session's time zone.
            age.set("expressions", [_as_moment(one) for one in age.expressions])
    return tree


def _as_moment(tree: exp.Expr) -> exp.Expr:
    cast = isinstance(tree, exp.Cast) and tree.to.this in _MOMENTS
    return tree if cast else exp.cast(tree, "timestamp")


def _words(form: str) -> list[str]:
    """The words of a form and what stands between them; none where it holds anything else."""
    found = _WORD.findall(form)
    plain = "".join(found) == form and not _LONGER.search(form)
    return found if plain and any(one in _PARTS for one in found) else []


def _written_form(node: exp.Expr, tokens: Sequence[Token]) -> Token | None:
    """The text behind the comma of to_char(…, '…'), which ends the call."""
    places = {token.start: at for at, token in enumerate(tokens)}
    start = places.get(node.meta.get("start", -1))
    if start is None or tokens[start].text.lower() != "to_char":
        return None
    depth = 0
    for at in range(start + 1, len(tokens)):
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        if depth == 0:
            form, comma = tokens[at - 1], tokens[at - 2]
            plain = form.token_type is TokenType.STRING and comma.token_type is TokenType.COMMA
            return form if plain else None
    return None


def _written(node: exp.Expr, form: Token, words: Sequence[str]) -> exp.Expr:
    """CASE WHEN the day is of the years 1 to 9999 THEN the parts of the moment END."""
    first, last = _date(_FIRST), _date(_LAST)
    # The two days stand where the words of the call do: every word of a text has its node.
    first.this.meta.update(node.meta)
    place = {"line": form.line, "col": form.col, "start": form.start, "end": form.end}
    last.this.meta.update(place)
    day = exp.cast(node.this.copy(), "date")
    text: exp.Expr | None = None
    for word in words:
        one = _digits(node.this, *_PARTS[word]) if word in _PARTS else exp.Literal.string(word)
        text = one if text is None else exp.DPipe(this=text, expression=one, safe=True)
    known = exp.and_(day >= first, day.copy() <= last)
    return exp.Case(ifs=[exp.If(this=known, true=text)])


def _digits(moment: exp.Expr, part: str, digits: int) -> exp.Expr:
    """A part of a moment as text, with zeros before it."""
    # A day has no clock in every database.
    whole = exp.cast(moment.copy(), "timestamp") if part in _CLOCK else moment.copy()
    value: exp.Expr = exp.Extract(this=exp.var(part), expression=whole)
    if part == "SECOND":
        # PostgreSQL has parts of a second, DuckDB has none.
        value = exp.cast(exp.Floor(this=value), "integer")
    if digits > 1:
        # 7 becomes 107, of which 07 is left.
        value = exp.Add(this=value, expression=exp.Literal.number(10**digits))
    text = exp.cast(value, "text")
    if digits == 1:
        return text
    start, length = exp.Literal.number(2), exp.Literal.number(digits)
    return exp.Substring(this=text, start=start, length=length)


def _date(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), "date")


def _at(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    new.meta.update(old.meta)
    return new
