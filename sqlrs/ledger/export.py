"""The journal as text for other programs: JSON lines and CSV, every decimal exact."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable

from sqlrs.ledger.base import JournalLine

FIELDS = (
    "ticket",
    "at",
    "analyst",
    "dataset",
    "query",
    "mechanism",
    "epsilon",
    "outcome",
    "answer",
    "unit",
)


def json_lines(releases: Iterable[JournalLine]) -> str:
    """One JSON object a line; epsilon is its decimal text, the answer is nested as JSON."""
    lines = (
        _fields(release)
        | {"answer": None if release.answer is None else json.loads(release.answer)}
        for release in releases
    )
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def csv_text(releases: Iterable[JournalLine]) -> str:
    """A header and one row a release; the answer is its JSON text, empty where there is none."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_fields(release) for release in releases)
    return text.getvalue()


def _fields(release: JournalLine) -> dict[str, object]:
    charge = release.charge
    values = (
        release.ticket,
        release.at.isoformat(),
        charge.analyst,
        charge.dataset,
        charge.query,
        charge.mechanism,
        f"{charge.epsilon:f}",
        release.outcome,
        release.answer,
        charge.unit,
    )
    return dict(zip(FIELDS, values, strict=True))
