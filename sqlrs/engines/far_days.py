"""Days that Python has no form for, which a driver gives as Python's first or last one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from sqlglot import exp

from sqlrs.engines.base import Row
from sqlrs.trees.identifiers import column


def far_days(
    names: Sequence[str], rows: Sequence[Row], qualifier: str | None = None
) -> list[exp.Expression]:
    """The conditions that a day of these rows is not the first or last one that it was read as.

    DuckDB's driver gives infinite days so: the value of another row. ``names``: of the columns.
    """
    found: list[exp.Expression] = []
    for place, name in enumerate(names):
        values = {row[place] for row in rows if isinstance(row[place], date)}
        for end, compared in ((date.max, exp.GT), (date.min, exp.LT)):
            if end in values:
                found.append(compared(this=column(name, qualifier), expression=_day(end, "date")))
        for moment, compared in ((datetime.max, exp.GT), (datetime.min, exp.LT)):
            if moment in values:
                limit = _day(moment, "timestamp")
                found.append(compared(this=column(name, qualifier), expression=limit))
    return found


def _day(value: date, kind: str) -> exp.Expression:
    # isoformat() leaves out no zeros of the year, which strftime does on some systems.
    text = exp.Literal.string(value.isoformat().replace("T", " "))
    return exp.Cast(this=text, to=exp.DataType.build(kind))
