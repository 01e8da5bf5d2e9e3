"""BigQuery's SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(…), where it means the same here."""

from __future__ import annotations

import re

from sqlrs.errors import UsageError
from sqlrs.records import dataclass

_CLAUSE = re.compile(
    r"\A(\s*SELECT)(\s+WITH\s+DIFFERENTIAL_PRIVACY)(?:(\s+OPTIONS\s*\()([^()'\"]*)\))?(?=\s)",
    re.IGNORECASE | re.ASCII,
)
_OPTION = re.compile(r"\s*(\w+)\s*=\s*([\w.+-]+)\s*", re.ASCII)
# Why an option of BigQuery's is not taken over.
_REFUSED = {
    "max_groups_contributed": "the bound covers all groups together",
    "max_rows_contributed": "what of a unit enters is chosen privately; max_rows limits its rows",
    "min_privacy_units_per_group": "groups are public here and all of them are shown",
    "group_selection_strategy": "groups are public here and all of them are shown",
}
_HINT = "OPTIONS(epsilon = 1, privacy_unit_column = id), and delta, which is not used here"


@dataclass(frozen=True)
class Clause:
    """The text without the clause, as long as before, and what the clause said."""

    sql: str
    epsilon: str | None = None
    unit_column: str | None = None


def without_clause(sql: str) -> Clause:
    """Take the clause off the beginning of a text; a text without one stays as it is.

    An option that would mean something else here, or nothing, is a UsageError. A ``delta`` is
    accepted and not used: an answer without one promises more.
    """
    match = _CLAUSE.match(sql)
    if match is None:
        return Clause(sql)
    said: dict[str, str] = {}
    for text in (match[4] or "").split(",") if (match[4] or "").strip() else ():
        option = _OPTION.fullmatch(text)
        if option is None or option[1].lower() in said:
            raise UsageError("these OPTIONS cannot be read", hint=_HINT)
        said[option[1].lower()] = option[2]
    for name in said.keys() - {"epsilon", "delta", "privacy_unit_column"}:
        reason = _REFUSED.get(name, "it is not known here")
        raise UsageError(f"the option {name} is not taken over: {reason}", hint=_HINT)
    start, end = match.end(1), match.end(0)
    left = sql[:start] + " " * (end - start) + sql[end:]
    return Clause(left, said.get("epsilon"), said.get("privacy_unit_column"))


def check_unit_column(column: str | None, unit: str | None) -> None:
    """Refuse a unit other than the one that the owner declared."""
    if column is None:
        return
    meant = column.rpartition(".")[2].lower()
    if unit is None:
        raise UsageError(
            "privacy_unit_column names a unit, but single rows are protected here",
            hint=f"the owner declares the unit: --unit TABLE.{meant}",
        )
    if unit.rpartition(".")[2].lower() != meant:
        raise UsageError(
            f"privacy_unit_column is {column}, but the owner protects units of {unit}",
            hint="leave the option out: who is protected is the owner's to say",
        )
