"""Calls of reporting tools in the forms that the compiler knows: to_char as a key, date_trunc.

``to_char(x, 'YYYY-MM')`` in what is selected and grouped by is a part of the day's text, and NULL
for the days of other years than 1 to 9999, the infinite ones among them: those have no such text
in every database. In a condition it stays, and is refused: there the days say it exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_FIRST, _LAST = "0001-01-01", "9999-12-31"
# Where a part stands in the text of a day: the first letter, and how many.
_PARTS = {
    "YYYY": (1, 4),
    "YYYY-MM": (1, 7),
    "YYYY-MM-DD": (1, 10),
    "MM": (6, 2),
    "DD": (9, 2),
}
_FORMS: tuple[type[exp.Expr], ...] = (exp.ToChar, exp.TimeToStr)
_CONDITIONS = (exp.Where, exp.Join, exp.Having, exp.AggFunc, exp.Filter)


def with_known_forms(tree: exp.Expr, tokens: Sequence[Token]) -> exp.Expr:
    """The tree of the tokens with these calls as the compiler knows them."""
    for node in list(tree.find_all(exp.DateTrunc)):
        # The parser has two nodes for date_trunc, by whether its argument is a cast to a date.
        unit = node.args.get("unit")
        if isinstance(unit, exp.Literal) and set(node.args) <= {"this", "unit"}:
            whole = exp.TimestampTrunc(this=node.this, unit=exp.var(unit.name.upper()))
            node.replace(_at(whole, node))
    for call in list(tree.find_all(*_FORMS)):
        form = _written_form(call, tokens)
        if form is not None and form.text in _PARTS and not call.find_ancestor(*_CONDITIONS):
            call.replace(_part_of_day(call, form))
    return tree


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


def _part_of_day(node: exp.Expr, form: Token) -> exp.Expr:
    """CASE WHEN the day is of the years 1 to 9999 THEN a part of its text END."""
    # The two numbers stand where the words of the call do: every word of a text has its node.
    start, length = (exp.Literal.number(number) for number in _PARTS[form.text])
    start.meta.update(node.meta)
    length.meta.update({"line": form.line, "col": form.col, "start": form.start, "end": form.end})
    day = exp.cast(node.this, "date")
    text = exp.Substring(this=exp.cast(day.copy(), "text"), start=start, length=length)
    known = exp.and_(day >= _date(_FIRST), day.copy() <= _date(_LAST))
    return exp.Case(ifs=[exp.If(this=known, true=text)])


def _date(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), "date")


def _at(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    new.meta.update(old.meta)
    return new
