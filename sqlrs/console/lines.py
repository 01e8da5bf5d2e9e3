"""Lines of the journal as people read them: what was answered, or why nothing was."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from sqlrs.answer import Answer
from sqlrs.ledger import JournalLine
from sqlrs.ledger.base import RELEASED, RESERVED
from sqlrs.records import dataclass

_WORDS = {
    RESERVED: "charged; still running, or the server stopped before there was an answer",
    "interrupted": "charged, then stopped: no answer",
    "database_failed": "charged, then the database failed: no answer",
}


@dataclass(frozen=True)
class ShownLine:
    """A line with its answer read: ``value`` of a count, ``table`` where it was a table."""

    line: JournalLine
    state: str
    words: str
    value: int | None = None
    interval: tuple[int, int] | None = None
    table: bool = False


def shown_lines(lines: Iterable[JournalLine]) -> list[ShownLine]:
    """All of them, in their order."""
    return [_shown(line) for line in lines]


def _shown(line: JournalLine) -> ShownLine:
    if line.outcome != RELEASED:
        state = "open" if line.outcome == RESERVED else "failed"
        return ShownLine(line, state, _WORDS.get(line.outcome, f"no answer: {line.outcome}"))
    text = line.answer or ""
    if text.startswith("{"):
        with suppress(ValueError, KeyError, TypeError):
            answer = Answer.from_json(text)
            bars = answer.error_bars
            ends = None if bars is None else (bars.low, bars.high)
            return ShownLine(line, "answered", "answered", answer.value, ends)
    return ShownLine(line, "answered", "answered", table=True)
