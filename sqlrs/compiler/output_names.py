"""The names of outputs that the text gives none: what the engine would call them."""

from __future__ import annotations

import re

from sqlglot import exp

from sqlrs.compiler.names import fold
from sqlrs.dialects import dialect_named
from sqlrs.trees.copies import copied

_UNNAMED = "?column?"
_CALL = re.compile(r"([a-z_]\w*)\(", re.ASCII)


def name_outputs(tree: exp.Expr, dialect: str) -> None:
    """Give every output of every SELECT in the tree a name, as long as it is no star or column."""
    for select in list(tree.find_all(exp.Select)):
        for part in list(select.expressions):
            if not isinstance(part, exp.Alias | exp.Star | exp.Column):
                part.replace(named(part, dialect))


def named(part: exp.Expr, dialect: str) -> exp.Alias:
    """An output under its name."""
    if isinstance(part, exp.Column) or dialect_named(dialect).names_calls:
        name = _called(part, dialect)
    else:
        name = _text(part, dialect)
    return exp.Alias(this=copied(part), alias=exp.to_identifier(name, quoted=True))


def _text(part: exp.Expr, dialect: str) -> str:
    return part.sql(dialect, normalize_functions="lower")


def _called(part: exp.Expr, dialect: str) -> str:
    match part:
        case exp.Column():
            stored = dialect_named(dialect).keeps_case
            return fold(part.this, dialect) if stored else part.name
        case exp.Paren() | exp.Filter() | exp.Window():
            return _called(part.this, dialect)
        case exp.Cast():
            inner = _called(part.this, dialect)
            return inner if inner != _UNNAMED else part.to.sql(dialect).lower()
        case exp.Case():
            return "case"
        case exp.Subquery(this=exp.Select(expressions=[first, *_])):
            return first.alias or _called(first.unalias(), dialect)
        case exp.Func() | exp.Anonymous() if not isinstance(part, exp.Binary):
            found = _CALL.match(_text(part, dialect))
            return found[1] if found else _UNNAMED
    return _UNNAMED
