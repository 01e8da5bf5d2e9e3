"""Names for what a statement makes: columns of variables, steps, names that are free."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlrs.query import Variable

LONGEST_NAME = 63
"""The bytes that every database keeps of a name: PostgreSQL leaves off the rest."""
RESULTS = "results"
"""The column that counts the results of a row."""


def column_names(variables: Iterable[Variable]) -> dict[Variable, str]:
    """A column name for each variable that no dialect confuses with another."""
    names: dict[Variable, str] = {}
    taken = {RESULTS}
    for variable in sorted(variables):
        names[variable] = free_name(plain_name(variable.name), taken)
    return names


def plain_name(name: str) -> str:
    """The name with nothing in it that needs quotes."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower()) or "_"


def free_name(wanted: str, taken: set[str]) -> str:
    """The wanted name, numbered where it is taken; it is taken from now on.

    One that is too long is cut first: what PostgreSQL leaves off could make two names one.
    """
    name, number = _cut(wanted, LONGEST_NAME), 2
    while name.lower() in taken:
        behind = f"_{number}"
        name, number = _cut(wanted, LONGEST_NAME - len(behind)) + behind, number + 1
    taken.add(name.lower())
    return name


def _cut(name: str, length: int) -> str:
    """So many bytes of the name, and no half of a character."""
    return name.encode()[:length].decode(errors="ignore")
