"""Hints that depend on what was written: the form to write instead, which gives the same count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.refusals import REFUSALS
from sqlrs.values import MOMENTS, NUMBERS

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*", re.ASCII)
_SHOWN = 12

_PARTNERLESS = (
    "all rows of {table} less those WHERE EXISTS (SELECT 1 FROM the other table WHERE the "
    "condition of ON)"
)
_BOTH = "count(DISTINCT …) over the JOIN of both on all columns, NULLs aside"
_SET_OPERATIONS: dict[tuple[type[exp.Expr], bool], str] = {
    (exp.Union, False): REFUSALS["set_operation"].hint,
    (exp.Union, True): f"ask count(DISTINCT …) of each branch and add them, less {_BOTH}",
    (exp.Intersect, True): f"ask {_BOTH}",
    (exp.Except, True): f"ask count(DISTINCT …) of the first branch, less {_BOTH}",
}


def instead_of(node: exp.Expr) -> str | None:
    """What to write instead of a construct that is refused; None leaves the usual hint."""
    match node:
        case exp.Avg() | exp.Sum() if _compared(node.find_ancestor(exp.Subquery)):
            return "release that number first, then ask with it as a constant"
        case exp.CountIf():
            return "put the condition into WHERE: SELECT count(*) FROM … WHERE condition"
        case exp.Filter() if isinstance(node.this, exp.Count):
            return "put the condition of FILTER into WHERE"
        case exp.Sum() if _is_one(node.this):
            return "write count(*)"
        case exp.Sum() if _marks_rows(node.this):
            return "put the condition of CASE into WHERE: SELECT count(*) FROM … WHERE condition"
        case exp.SetOperation():
            return _SET_OPERATIONS.get(
                (type(node), bool(node.args.get("distinct"))), "no sum of counts gives this"
            )
        case exp.Any() if isinstance(node.parent, exp.EQ):
            return "write column IN (SELECT …), joined to the rest by AND"
        case exp.Pow():
            return "write power(x, y)"
        case exp.AtTimeZone():
            return (
                "AT TIME ZONE 'UTC' is known; what other zones mean follows from a list that "
                "changes: the owner can offer a view whose column has the moment in this zone"
            )
    return None


_CALLS = {
    "to_char": "write a form of digits, such as 'YYYY-MM-DD HH24:MI:SS', 'IYYY-IW', 'Q'; or "
    "compare the day itself: x >= DATE '2024-01-01' AND x < DATE '2024-02-01'",
    "strftime": "group by date_trunc('month', x), or by extract(year FROM x)",
    "age": "age(x) reads the clock; write age(TIMESTAMP '2024-01-01', x), or compare the day "
    "itself: x < DATE '2006-01-01'",
}


def instead_of_call(name: str) -> str | None:
    """What to write instead of a function of dates that is not on the list."""
    return _CALLS.get(name)


def _compared(subquery: exp.Expr | None) -> bool:
    """Whether a subquery is one side of a comparison."""
    return subquery is not None and isinstance(
        subquery.parent, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
    )


def instead_of_join(join: exp.Join) -> str | None:
    """The counts that an outer, semi or anti join is made of."""
    side, kind = join.args.get("side") or "", join.args.get("kind") or ""
    if kind == "SEMI":
        return "write WHERE EXISTS (SELECT 1 FROM the other table WHERE the condition of ON)"
    if kind == "ANTI":
        return f"count {_PARTNERLESS.format(table='the left table')}"
    if side in ("LEFT", "RIGHT"):
        partnerless = _PARTNERLESS.format(table=f"the {side.lower()} table")
        return f"count the inner JOIN and add the rows without a partner: {partnerless}"
    if side == "FULL":
        partnerless = _PARTNERLESS.format(table="each table")
        return f"count the inner JOIN and add the rows without a partner: {partnerless}"
    return None


def instead_of_negation(negation: exp.Expr) -> str:
    """The difference of counts that NOT EXISTS or NOT IN (SELECT …) is."""
    inner = negation.this.unnest()
    if isinstance(inner, exp.Exists):
        return REFUSALS["negated_subquery"].hint
    if isinstance(inner, exp.In):
        return (
            "count the rows WHERE column IS NOT NULL, less those WHERE column IN (SELECT …); if "
            "the subquery holds a NULL, NOT IN is true of no row"
        )
    return REFUSALS["subquery"].hint


def instead_of_selected(selected: exp.Expr) -> str | None:
    """What to do where something else than one count is selected."""
    if selected.find(exp.Count) and not isinstance(selected.unalias().unnest(), exp.Count):
        return "select the count alone and compute with the answer, which costs nothing"
    return None


def fitting(literal: exp.Expr, column: ColumnType) -> str | None:
    """How a value of the column's type is written."""
    node = literal.unnest()
    text = str(node.this) if isinstance(node, exp.Literal) else ""
    if column.family in NUMBERS:
        if isinstance(node, exp.Literal) and node.is_string and _NUMBER.fullmatch(text):
            return f"write the number without quotes: {text.strip()}"
        return "write a number, without quotes"
    if column.family is Family.TEXT:
        return f"write a text, in single quotes: '{text or node.sql()}'"
    if column.family is Family.BOOLEAN:
        return "write TRUE or FALSE, without quotes"
    if column.family in MOMENTS:
        return REFUSALS["bad_literal"].hint
    return None


def column_hint(name: str, known: Sequence[str], *, quoted: bool) -> str | None:
    """The closest column, or all of them; what stands in double quotes may be meant as a text."""
    near = closest(name, known)
    parts = [near or listed("the columns here are", known)]
    if quoted or near is None:
        parts.append(f"a text stands in single quotes: '{name}'")
    return "; ".join(part for part in parts if part)


def closest(name: str, known: Sequence[str]) -> str | None:
    """A hint with the closest known name, or None."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else None


def listed(start: str, names: Iterable[str]) -> str | None:
    """A hint that lists names, not too many of them."""
    known = sorted(set(names))
    if not known:
        return None
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{start} {', '.join(known[:_SHOWN])}{more}"


def _is_one(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.this == "1"


def _is_zero(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.this == "0"


def _marks_rows(node: exp.Expr) -> bool:
    """Whether it is CASE WHEN condition THEN 1 ELSE 0 END, or without ELSE."""
    node = node.unnest()
    if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
        return False
    default = node.args.get("default")
    empty = default is None or isinstance(default, exp.Null)
    return _is_one(node.args["ifs"][0].args.get("true")) and (empty or _is_zero(default))
