"""Released relations as text and back, exactly: what the ledger records and repeats."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

from sqlrs.answer import Clipping
from sqlrs.engines.released import ReleasedRelation

_WRITTEN: dict[type, tuple[str, Callable[..., str]]] = {
    date: ("date", date.isoformat),
    datetime: ("datetime", datetime.isoformat),
    Decimal: ("decimal", str),
    float: ("float", repr),
    time: ("time", time.isoformat),
    UUID: ("uuid", str),
}
_READ: dict[str, Callable[[str], object]] = {
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "decimal": Decimal,
    "float": float,
    "time": time.fromisoformat,
    "uuid": UUID,
}


def to_json(relations: Sequence[ReleasedRelation]) -> str:
    """The relations as JSON; a value that JSON has no form for is an object with its type."""
    return json.dumps(
        [
            {
                "name": one.name,
                "columns": [list(column) for column in one.columns],
                "rows": [[_written(value) for value in row] for row in one.rows],
                "clippings": [cut and cut.to_record() for cut in one.clippings],
            }
            for one in relations
        ],
        separators=(",", ":"),
    )


def from_json(text: str) -> tuple[ReleasedRelation, ...]:
    """The relations that ``to_json`` wrote."""
    return tuple(
        ReleasedRelation(
            record["name"],
            tuple((name, kind) for name, kind in record["columns"]),
            tuple(tuple(map(_value, row)) for row in record["rows"]),
            tuple(cut and Clipping.from_record(cut) for cut in record.get("clippings", ())),
        )
        for record in json.loads(text)
    )


def _written(value: object) -> object:
    if value is None or type(value) in (bool, int, str):
        return value
    kind, write = _WRITTEN[type(value)]
    return {kind: write(value)}


def _value(written: object) -> object:
    if isinstance(written, dict):
        [(kind, text)] = written.items()
        return _READ[kind](text)
    return written
