"""The first sentence of an explanation, for who has not heard of residuals, and its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlrs.catalog import Table
from sqlrs.mechanisms.base import Mechanism
from sqlrs.query import Query
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Residuals

_ERROR = re.compile(r"(?:standard|median) error ([0-9.]+)")

WORDS = (
    "words",
    "  residual: the query without some private tables: how many results a row of these can meet",
    "  boundary: the columns that tie a residual to the tables that it leaves out",
    "  sensitivity: the most that one row can change; measured on the data, told to nobody",
)
"""What the words of an explanation mean."""


def in_short(residuals: Residuals, mechanism: Mechanism) -> str:
    """Who is protected, how much there is to run, which error to expect."""
    query = residuals.query
    if not query.private:
        return "protects nobody: every table is public, and the answer is exact and free"
    wanted = mechanism.prepare(residuals).wanted
    same = representatives(residuals.undecided(wanted))
    statements = len({one.members for one in same.values()})
    tables = _private_tables([query])
    found = _ERROR.search(mechanism.fitted(residuals).describe())
    error = f"; typical error {found[1]} × what {_moved(tables)} can change" if found else ""
    return (
        f"protects {_who(tables)}; {_many(len(wanted), 'residual')}, "
        f"{_many(statements, 'statement')}{error}"
    )


def statement_in_short(
    queries: Sequence[Query], noise: Sequence[str], groups: int, unit: str | None
) -> str:
    """Who is protected, how many numbers are released at once, which error to expect.

    ``noise``: how that of each number of a group is described.
    """
    tables = _private_tables(queries)
    if not tables and unit is None:
        return "protects nobody: every table is public, and the answer is exact and free"
    who = _who(tables) if unit is None else f"one unit of {unit}, with all its rows"
    told = _many(len(noise), "noisy number")
    if groups != 1:
        told += f" for each of {_many(groups, 'group')}, all at once"
    errors = [float(found[1]) for found in map(_ERROR.search, noise) if found]
    if not errors:
        return f"protects {who}; {told}"
    scale = f"what {_moved(tables)} can change"
    if unit is not None:
        scale = "what one unit may add"
        if any("threshold" in one for one in noise):
            scale += ", a threshold that is chosen privately"
    return f"protects {who}; {told}; typical error {max(errors):.3g} × {scale}"


def _private_tables(queries: Iterable[Query]) -> list[Table]:
    found = (query.atoms[min(one)].table for query in queries for one in query.private_tables)
    return list({table.identity: table for table in found}.values())


def _who(tables: Sequence[Table]) -> str:
    return " or ".join(
        f"one row of {table.name}"
        if table.rows_per_unit == 1
        else f"{table.rows_per_unit} rows of {table.name} together"
        for table in tables
    )


def _moved(tables: Sequence[Table]) -> str:
    return "one row" if all(table.rows_per_unit == 1 for table in tables) else "they"


def _many(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
