"""Dates and times that reporting tools write as calls on constants, as the literals they mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

_CALL = (
    TokenType.L_PAREN,
    TokenType.STRING,
    TokenType.COMMA,
    TokenType.STRING,
    TokenType.R_PAREN,
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{6})?", re.ASCII)


def _day(text: str, form: str) -> str | None:
    """DATE '…' where the constant is a date in the form that is written."""
    if form != "YYYY-MM-DD" or not _DAY.fullmatch(text):
        return None
    return f"DATE '{date.fromisoformat(text)}'"


def _moment(text: str, form: str) -> str | None:
    """TIMESTAMP '…': beside a column without zone the session's zone falls out on both sides."""
    if not _MOMENT.fullmatch(text):
        return None
    parts = "YYYY-MM-DD HH24:MI:SS" + (".US" if "." in text else "")
    return f"TIMESTAMP '{datetime.fromisoformat(text)}'" if form == parts else None


_READ: dict[str, Callable[[str, str], str | None]] = {"to_date": _day, "to_timestamp": _moment}


def with_literals(sql: str) -> str:
    """The text with literals for these calls, each as long as the call: places stay as they are.

    What is not exactly such a call stays, and is refused by whoever reads it.
    """
    if not any(name in sql.lower() for name in _READ):
        return sql
    try:
        tokens = Postgres().tokenize(sql)
    except SqlglotError:
        return sql
    for at, token in enumerate(tokens):
        rest = tokens[at + 1 : at + 1 + len(_CALL)]
        if token.text.lower() not in _READ or tuple(one.token_type for one in rest) != _CALL:
            continue
        if at and tokens[at - 1].token_type is TokenType.DOT:
            continue
        literal = _literal(token, rest[1].text, rest[3].text)
        start, end = token.start, rest[-1].end + 1
        if literal is not None and len(literal) <= end - start:
            sql = sql[:start] + literal.ljust(end - start) + sql[end:]
    return sql


def _literal(token: Token, text: str, form: str) -> str | None:
    try:
        return _READ[token.text.lower()](text, form)
    except ValueError:
        return None
