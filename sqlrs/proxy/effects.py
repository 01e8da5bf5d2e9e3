"""What a session asks of the world: yielded, carried out elsewhere, the result sent back."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlrs.records import dataclass


@dataclass(frozen=True)
class Reply:
    """Bytes for the client. No result."""

    data: bytes


@dataclass(frozen=True)
class Push:
    """Send the client all that was replied so far. No result."""


@dataclass(frozen=True)
class Ask:
    """Messages for the shadow. Result: its frames up to that many closing ones or an error."""

    data: bytes
    replies: int


@dataclass(frozen=True)
class Stream:
    """An Execute for the shadow, its rows forwarded to the client. Result: the closing frame."""

    data: bytes


@dataclass(frozen=True)
class Examine:
    """Split a text into statements and decide about each. Result: the list of plans."""

    sql: str


@dataclass(frozen=True)
class Admit:
    """Ask the rate limit for one statement. No result."""


@dataclass(frozen=True)
class Check:
    """Ask the backend whether it would refuse. Result: a TableShape, None for one count."""

    sql: str


@dataclass(frozen=True)
class Inline:
    """Write parameters into a statement as literals. Result: the statement."""

    sql: str
    types: Sequence[int]
    values: Sequence[bytes | None]
    formats: Sequence[int]


@dataclass(frozen=True)
class Count:
    """Ask the backend for a private count. Result: its CountOutcome.

    With ``types``, those of a table's columns: ask for the table. Result: its TableOutcome.
    ``error`` is wished; then ``epsilon`` is the most that it may cost.
    """

    sql: str
    epsilon: Decimal
    error_bars: Decimal | None
    timeout_ms: int
    types: tuple[int, ...] | None = None
    error: Decimal | None = None


@dataclass(frozen=True)
class Read:
    """Ask the backend for rows of public tables. Result: the rows, each value as text."""

    sql: str


@dataclass(frozen=True)
class Explain:
    """Ask the backend how it would answer. Result: a text."""

    sql: str
    epsilon: Decimal
    error_bars: Decimal | None


@dataclass(frozen=True)
class Remaining:
    """Ask the backend for what is left. Result: a decimal, or None for no limit."""


@dataclass(frozen=True)
class OwnBudget:
    """Ask the backend for the analyst's own budget. Result: it, or None for no limit."""


@dataclass(frozen=True)
class History:
    """Ask the backend for the analyst's own charges. Result: the rows."""


@dataclass(frozen=True)
class Hangup:
    """The conversation is over. No result."""


Effect = (
    Reply
    | Push
    | Ask
    | Stream
    | Examine
    | Admit
    | Check
    | Inline
    | Count
    | Read
    | Explain
    | Remaining
    | OwnBudget
    | History
    | Hangup
)
