"""A statement -> the columns that an installed function shows; what stands above is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from sqlrs.compiled import CompiledStatement
from sqlrs.errors import UsageError
from sqlrs.measures import Aggregation, Measure
from sqlrs.refusals import refusal

ELSEWHERE = "sqlrs query, the Python library and the proxy answer it"
"""The hint where a function cannot."""
_COLUMN = re.compile(r"([ka])(\d+)", re.ASCII)
_OWN_NAME = re.compile(r"epsilon|p\d+", re.ASCII)
_CLAUSES = ("where", "group", "having", "order", "limit", "offset", "distinct", "joins", "with_")
# Numbers of this many decimals are exact in PostgreSQL.
_MOST_DECIMALS = 12


@dataclass(frozen=True)
class Shown:
    """One returned column: a key by its number, or a measure by its number and unit."""

    name: str
    place: int
    unit: Decimal | None = None

    @property
    def is_key(self) -> bool:
        """Whether it is a key."""
        return self.unit is None


def only_aggregation(compiled: CompiledStatement) -> Aggregation:
    """The one GROUP BY of the statement; more than that is refused."""
    statement = compiled.statement
    if not statement.aggregations:
        raise public_alone()
    if len(statement.aggregations) != 1 or statement.public:
        raise _more_than_columns()
    return statement.aggregations[0]


def shown_columns(above: exp.Query, aggregation: Aggregation) -> tuple[Shown, ...]:
    """The columns that the statement selects; what it does with them is refused."""
    if not isinstance(above, exp.Select) or any(above.args.get(c) for c in _CLAUSES):
        raise _more_than_columns()
    shown = []
    for output in above.expressions:
        column = output.unalias()
        found = _COLUMN.fullmatch(column.name) if isinstance(column, exp.Column) else None
        if found is None:
            raise _more_than_columns()
        place = int(found[2])
        if found[1] == "k":
            shown.append(Shown(output.output_name, place))
        else:
            measure = aggregation.columns[place]
            unit = _unit(aggregation.measures[measure])
            shown.append(Shown(output.output_name, measure, unit))
    names = [one.name for one in shown]
    if len(set(names)) != len(names) or any(map(_OWN_NAME.fullmatch, names)) or not all(names):
        raise UsageError(
            "the columns of a function have names of their own",
            hint="give each another alias, not epsilon and not p1, p2, …",
        )
    return tuple(shown)


def public_alone() -> UsageError:
    """What is said where nothing private is asked."""
    return UsageError(
        "an aggregate reads public tables alone: it is exact and needs no function",
        hint="grant SELECT on these tables, or declare the private ones",
    )


def _more_than_columns() -> Exception:
    return refusal(
        "unsupported",
        "a function returns the keys and the aggregates of one GROUP BY as they are",
        hint="HAVING, ORDER BY, LIMIT, averages and arithmetic are done outside, on what it "
        f"returns; or {ELSEWHERE}",
    )


def _unit(measure: Measure) -> Decimal:
    scaled = measure.unit * 10**_MOST_DECIMALS
    if scaled.denominator != 1:
        raise refusal("unsupported", "the sum has no unit of 12 decimals", hint=ELSEWHERE)
    return Decimal(scaled.numerator).scaleb(-_MOST_DECIMALS).normalize()
