"""A statement -> the keys and aggregates that an installed function shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from sqlrs.compiled import CompiledStatement
from sqlrs.errors import UsageError
from sqlrs.measures import Aggregation, Measure
from sqlrs.records import dataclass
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
    counts: bool = False

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
        raise more_than_columns()
    return statement.aggregations[0]


def shows_columns_alone(above: exp.Query) -> bool:
    """Whether the statement selects keys and aggregates as they are."""
    return (
        isinstance(above, exp.Select)
        and not any(above.args.get(clause) for clause in _CLAUSES)
        and all(
            isinstance(one.unalias(), exp.Column) and _COLUMN.fullmatch(one.unalias().name)
            for one in above.expressions
        )
    )


def shown_columns(above: exp.Query, aggregation: Aggregation) -> tuple[Shown, ...]:
    """The columns that the statement selects; what it does with them is refused."""
    if not shows_columns_alone(above):
        raise refusal(
            "unsupported",
            "a function about units returns the keys and the aggregates of one GROUP BY as they "
            "are",
            hint="HAVING, ORDER BY, LIMIT, averages and arithmetic are done outside, on what it "
            f"returns; or {ELSEWHERE}",
        )
    shown = []
    for output in above.expressions:
        found = _COLUMN.fullmatch(output.unalias().name)
        assert found is not None
        place = int(found[2])
        if found[1] == "k":
            shown.append(Shown(output.output_name, place))
        else:
            shown.append(shown_measure(output.output_name, place, aggregation))
    check_names([one.name for one in shown])
    return tuple(shown)


def shown_measure(name: str, place: int, aggregation: Aggregation) -> Shown:
    """An aggregate of the text, by the measure that it is."""
    measure = aggregation.columns[place]
    own = aggregation.measures[measure]
    return Shown(name, measure, _unit(own), counts=own.is_count)


def check_names(names: Sequence[str]) -> None:
    """Refuse names that the columns of a function cannot have."""
    if len(set(names)) != len(names) or any(map(_OWN_NAME.fullmatch, names)) or not all(names):
        raise UsageError(
            "the columns of a function have names of their own",
            hint="give each another alias, not epsilon and not p1, p2, …",
        )


def public_alone() -> UsageError:
    """What is said where nothing private is asked."""
    return UsageError(
        "an aggregate reads public tables alone: it is exact and needs no function",
        hint="grant SELECT on these tables, or declare the private ones",
    )


def more_than_columns() -> Exception:
    """What is said of more than one GROUP BY, and of what a function has no way to do with it."""
    return refusal(
        "unsupported",
        "a function returns the keys and the aggregates of one GROUP BY",
        hint=f"what is done with several, or around it, is done outside; or {ELSEWHERE}",
    )


def _unit(measure: Measure) -> Decimal:
    scaled = measure.unit * 10**_MOST_DECIMALS
    if scaled.denominator != 1:
        raise refusal("unsupported", "the sum has no unit of 12 decimals", hint=ELSEWHERE)
    return Decimal(scaled.numerator).scaleb(-_MOST_DECIMALS).normalize()
