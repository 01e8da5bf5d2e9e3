"""The journal as text for other programs: JSON lines, and CSV without JSON inside."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from sqlrs.ledger.base import JournalLine

_CHARGE = ("ticket", "at", "analyst", "dataset", "query", "mechanism", "epsilon", "outcome")
FIELDS = (*_CHARGE, "answer", "unit")
LINE = (*_CHARGE, "unit", "answer", "low", "high", "coverage", "threshold", "standard_error")
CELL = ("ticket", "relation", "row", "column", "value")
_ENDS_A_LINE = "\r\n"
# A spreadsheet takes a text that begins so for a formula; an apostrophe before it stops that.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def json_lines(releases: Iterable[JournalLine]) -> str:
    """One JSON object a line; epsilon is its decimal text, the answer is nested as JSON."""
    lines = (
        dict(zip(FIELDS, (*_charge(one), _answer(one), one.charge.unit), strict=True))
        for one in releases
    )
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def csv_text(releases: Iterable[JournalLine]) -> str:
    """A header and one row a release: a count with its interval, of a table the charge alone."""
    rows = ((*_charge(one), one.charge.unit, *_single(_answer(one))) for one in releases)
    return table_text(LINE, rows)


def answers_csv(releases: Iterable[JournalLine]) -> str:
    """A header and one row for each released value; its release is found by the ticket."""
    return table_text(CELL, (cell for one in releases for cell in _cells(one)))


def table_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV, safe to open in a spreadsheet."""
    return "".join(_line(row) for row in (header, *rows))


def _line(row: Iterable[object]) -> str:
    """A line; what ends one, CR alone too, is quoted, or a cell could begin rows of its own."""
    text = io.StringIO()
    csv.writer(text, lineterminator=_ENDS_A_LINE).writerow([_safe(value) for value in row])
    return text.getvalue().removesuffix(_ENDS_A_LINE) + "\n"


def _safe(value: object) -> object:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _charge(release: JournalLine) -> tuple[object, ...]:
    charge = release.charge
    return (
        release.ticket,
        release.at.isoformat(),
        charge.analyst,
        charge.dataset,
        charge.query,
        charge.mechanism,
        f"{charge.epsilon:f}",
        release.outcome,
    )


def _answer(release: JournalLine) -> Any:
    return None if release.answer is None else json.loads(release.answer)


def _single(answer: Any) -> tuple[object, ...]:
    """Value, interval and clipping of a count; nothing of a table."""
    if not isinstance(answer, dict):
        value = answer if isinstance(answer, int | float | str) else ""
        return (value, "", "", "", "", "")
    bars, cut = answer.get("error_bars") or {}, answer.get("clipping") or {}
    return (
        answer.get("answer", ""),
        *(bars.get(name, "") for name in ("low", "high", "coverage")),
        *(cut.get(name, "") for name in ("threshold", "standard_error")),
    )


def _cells(release: JournalLine) -> Iterator[tuple[object, ...]]:
    answer = _answer(release)
    if isinstance(answer, dict):
        for name, value in zip(("answer", "low", "high"), _single(answer), strict=False):
            if value != "":
                yield release.ticket, "", 1, name, value
        return
    for relation in answer if isinstance(answer, list) else ():
        if "scale" in relation:
            # The estimate that a wished error was granted by.
            yield release.ticket, "", 1, "scale", relation["scale"]
            continue
        names = [name for name, _ in relation["columns"]]
        for number, row in enumerate(relation["rows"], 1):
            for name, value in zip(names, row, strict=True):
                yield release.ticket, relation["name"], number, name, _plain(value)


def _plain(written: object) -> object:
    """A value as its text; those that JSON has no form for are an object with their type."""
    if isinstance(written, dict):
        (text,) = written.values()
        return text
    return "" if written is None else written
