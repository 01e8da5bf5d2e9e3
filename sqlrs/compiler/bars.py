"""Error bars in what stands above the cuts: two more outputs behind each released aggregate.

Only a plain SELECT over one released relation has them: what a join, a grouping or a function makes
of an interval is not worked out.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sqlrs.compiler.aggregates import averaged
from sqlrs.compiler.names import fold

_RELEASED = re.compile(r"released_\d+", re.ASCII)
LOW, HIGH = "_low", "_high"
"""What is added to the name of a released column or an output for the ends of its interval."""


def with_error_bars(above: exp.Query, dialect: str) -> exp.Query:
    """The statement with the ends of intervals; as it is where there is none to show.

    The relation that ``shown_relation`` names has columns a0_low, a0_high, … beside a0, ….
    """
    shown = above.copy()
    if shown_relation(above) is None or not isinstance(shown, exp.Select):
        return shown
    outputs: list[exp.Expr] = []
    taken = {fold(e.args["alias"], dialect) for e in shown.expressions if isinstance(e, exp.Alias)}
    moved: list[int] = []
    for output in shown.expressions:
        moved.append(len(outputs) + 1)
        outputs.append(output)
        ends = _ends(output.this) if isinstance(output, exp.Alias) else None
        if ends is not None:
            alias = output.args["alias"]
            quoted = bool(alias.args.get("quoted"))
            for suffix, end in zip((LOW, HIGH), ends, strict=True):
                name = exp.to_identifier(f"{alias.this}{suffix}", quoted=quoted)
                if fold(name, dialect) not in taken:
                    outputs.append(exp.Alias(this=end, alias=name))
    shown.set("expressions", outputs)
    order = shown.args.get("order")
    for ordered in order.expressions if order is not None else ():
        # A position means the output that stood there.
        place = ordered.this
        if isinstance(place, exp.Literal) and place.is_int and 1 <= int(place.this) <= len(moved):
            ordered.set("this", exp.Literal.number(moved[int(place.this) - 1]))
    return shown


def shown_relation(above: exp.Query) -> str | None:
    """The released relation whose aggregates a plain SELECT over it alone shows, or None."""
    if not isinstance(above, exp.Select) or above.args.get("distinct") or above.args.get("group"):
        return None
    source = above.args.get("from_")
    if source is None or above.args.get("joins") or above.args.get("with_"):
        return None
    table = source.this
    if not isinstance(table, exp.Table) or not _RELEASED.fullmatch(table.name):
        return None
    aliases = [one for one in above.expressions if isinstance(one, exp.Alias)]
    return table.name if any(_ends(one.this) is not None for one in aliases) else None


def _ends(value: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The ends of the interval of a released aggregate or an average of two."""
    value = value.unnest()
    if _is_aggregate_column(value):
        return _end(value, LOW), _end(value, HIGH)
    pair = averaged(value)
    if pair is None or not all(map(_is_aggregate_column, pair)):
        return None
    return _quotient(*pair, lowest=True), _quotient(*pair, lowest=False)


def _quotient(total: exp.Column, number: exp.Column, *, lowest: bool) -> exp.Expr:
    """One end of what the quotients of two intervals fill, NULL unless the divisor is above 0.

    A sum above 0 is smallest divided by the largest count, one below 0 by the smallest.
    """
    dividend = _end(total, LOW if lowest else HIGH)
    positive = exp.GTE(this=dividend.copy(), expression=exp.Literal.number(0))
    by_largest = _divided(dividend, _end(number, HIGH))
    by_smallest = _divided(dividend, _end(number, LOW))
    first, second = (by_largest, by_smallest) if lowest else (by_smallest, by_largest)
    chosen = exp.Case(ifs=[exp.If(this=positive, true=first)], default=second)
    above_zero = exp.GT(this=_end(number, LOW), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=above_zero, true=chosen)])


def _divided(dividend: exp.Expr, divisor: exp.Expr) -> exp.Expr:
    return exp.Div(this=exp.cast(dividend.copy(), "double"), expression=divisor, typed=False)


def _is_aggregate_column(value: exp.Expr) -> bool:
    return isinstance(value, exp.Column) and value.name[:1] == "a" and value.name[1:].isdigit()


def _end(column: exp.Expr, suffix: str) -> exp.Column:
    return exp.column(f"{column.name}{suffix}", table=column.args.get("table"))
