"""The measure of a count in rounds, as the text of one statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from psycopg.sql import SQL, Composable, Identifier, Literal
from sqlglot import exp

from sqlrs.procedures.definition import Definition
from sqlrs.procedures.staged_measure import Limit
from sqlrs.procedures.table_script import integers
from sqlrs.templates import template


def staged_measure(definition: Definition) -> Composable:
    """All rounds, of which PostgreSQL evaluates those that can matter."""
    first, *_ = definition.rounds
    return SQL(template("procedures/staged_measure.sql")).format(
        last=_round(len(definition.rounds)),
        first=_expressions(first),
        frequencies=_expressions(definition.frequencies),
        limits=SQL(", ").join(map(_limit, definition.limits)),
        rounds=SQL("").join(_later(definition)),
    )


def _later(definition: Definition) -> Iterator[Composable]:
    programs = definition.programs
    total = sum(map(len, definition.rounds))
    known = before = len(definition.rounds[0])
    for position, numbers in enumerate(definition.rounds[1:], 2):
        yield SQL(template("procedures/staged_round.sql")).format(
            before=_round(position - 1),
            round=_round(position),
            total=Literal(total),
            steps=integers(programs.steps),
            starts=integers(programs.starts),
            answers=integers(programs.answers),
            monomials=integers(programs.monomials),
            ceilings=integers(programs.ceilings),
            degrees=integers(programs.degrees),
            products=integers(
                one for places in definition.values for one in (len(places), *places)
            ),
            # Behind the parameters and the facts.
            ratio=SQL(f"${len(definition.call.parameters) + 2}"),
            open=Literal(known - before + 1),
            numbers=_expressions(numbers),
        )
        known += len(numbers)


def _round(position: int) -> Composable:
    return Identifier(f"round_{position}")


def _expressions(trees: Iterable[exp.Expression]) -> Composable:
    texts = (SQL(tree.sql(dialect="postgres", pretty=True)) for tree in trees)
    return SQL(",\n").join(texts)


def _limit(limit: Limit) -> Composable:
    """The product of the least frequencies."""
    factors = (
        SQL("least({})").format(
            SQL(", ").join(SQL("frequencies.found[{}]").format(Literal(one)) for one in places)
        )
        for places in limit
    )
    return SQL(" * ").join([SQL("1::numeric"), *factors])
