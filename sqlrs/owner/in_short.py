"""The first sentence of an explanation, for who has not heard of residuals, and its words."""

from __future__ import annotations

import re

from sqlrs.mechanisms.base import Mechanism
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
    tables = list(dict.fromkeys(query.atoms[min(one)].table for one in query.private_tables))
    who = " or ".join(
        f"one row of {table.name}"
        if table.rows_per_unit == 1
        else f"{table.rows_per_unit} rows of {table.name} together"
        for table in tables
    )
    found = _ERROR.search(mechanism.fitted(residuals).describe())
    moved = "one row" if all(table.rows_per_unit == 1 for table in tables) else "they"
    error = f"; typical error {found[1]} × what {moved} can change" if found else ""
    return (
        f"protects {who}; {_many(len(wanted), 'residual')}, {_many(statements, 'statement')}{error}"
    )


def _many(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
