"""Structured logs: one JSON object a line, made of a fixed set of harmless fields."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

_NAME = "sqlrs.proxy"
_LOGGER = logging.getLogger(_NAME)
_FIELDS = ("analyst", "peer", "sqlstate", "code", "epsilon", "repeated", "reason", "count")

Level = Literal["debug", "info", "warning", "error"]


def log(event: str, level: Level = "info", **fields: object) -> None:
    """Log an event. SQL, parameters, answers, durations and exceptions have no field here."""
    unknown = set(fields) - set(_FIELDS)
    if unknown:
        raise ValueError(f"not a field of the log: {', '.join(sorted(unknown))}")
    number = logging.getLevelName(level.upper())
    _LOGGER.log(number, event, extra={"sqlrs_fields": fields})


class JsonFormatter(logging.Formatter):
    """Formats our own records; of other libraries only where and how bad, never their text."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        if record.name == _NAME:
            entry["event"] = record.msg
            entry |= getattr(record, "sqlrs_fields", {})
        else:
            # Messages of libraries may quote statements or values.
            entry |= {"event": "library", "reason": record.name}
        return json.dumps(entry, default=str)


def configure(level: str) -> None:
    """Send all logs of this process to standard error in this form."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    _LOGGER.setLevel(level.upper())
