"""An account of steps: what a text may cost is counted as it is done and refused past a limit.

An analyst's text is free to send, so nothing may take longer than the text explains. Stages whose
work can grow faster than the text call ``spend``; the steps follow from the text and the schema
alone, never from the data. Outside ``bounded`` nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from sqlrs.errors import Span
from sqlrs.records import dataclass
from sqlrs.refusals import refusal

MAX_STEPS = 60_000
"""Steps of compiling one text: nodes copied, bounds compared. About a second."""
MAX_ANALYSIS_STEPS = 1_000_000
"""Steps of looking at all residuals of one query, which are smaller. A few seconds."""

TOO_MANY_STEPS = "the query takes too many steps to read"
"""What a text is told whose steps are used up."""


class TooComplex(Exception):
    """The steps are used up. ``place`` is where the parser stood, None after parsing."""

    def __init__(self, place: Span | None = None) -> None:
        super().__init__("the text causes too much work")
        self.place = place


@dataclass
class _Account:
    left: int


_account: ContextVar[_Account | None] = ContextVar("sqlrs_complexity", default=None)


@contextmanager
def bounded(steps: int = MAX_STEPS) -> Iterator[None]:
    """Allow this many steps inside; within another block the outer one's rest counts."""
    if _account.get() is not None:
        yield
        return
    mark = _account.set(_Account(steps))
    try:
        yield
    finally:
        _account.reset(mark)


@contextmanager
def bounded_analysis() -> Iterator[None]:
    """Allow the steps of one analysis inside; past them the query is refused."""
    try:
        with bounded(MAX_ANALYSIS_STEPS):
            yield
    except (TooComplex, RecursionError):
        raise refusal("too_complex", TOO_MANY_STEPS) from None


def spend(steps: int = 1) -> None:
    """Count steps about to be done; raise TooComplex if they are not allowed any more."""
    account = _account.get()
    if account is not None:
        account.left -= steps
        if account.left < 0:
            raise TooComplex


@contextmanager
def bounded_anew(steps: int) -> Iterator[None]:
    """Allow this many steps inside, whatever is left around."""
    mark: Token[_Account | None] = _account.set(_Account(steps))
    try:
        yield
    finally:
        _account.reset(mark)
