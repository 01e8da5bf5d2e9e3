"""Run a blocking driver call so that Ctrl-C, a time limit and another thread can stop it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Generic, TypeVar

from sqlrs.errors import Interrupted
from sqlrs.records import dataclass

Result = TypeVar("Result")

# A stop that arrives before the driver has begun is lost, so it is repeated.
_REPEAT_SECONDS = 0.05


class Stop(Enum):
    """Why a call was stopped."""

    INTERRUPT = "interrupt"
    TIMEOUT = "timeout"


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """How a call ended: with a result, with the driver's error, or stopped.

    The error is a value, not raised, so that the one raised for it has no context to show.
    """

    result: Result | None = None
    error: BaseException | None = None
    stopped: Stop | None = None


def watched(
    call: Callable[[], Result],
    stop: Callable[[], None],
    *,
    timeout: float | None,
    patience: float | None = None,
) -> Outcome[Result]:
    """Run ``call`` in a thread of its own; on Ctrl-C or after ``timeout`` seconds ``stop`` it.

    A call that does not end within ``patience`` seconds of being stopped is left to itself.
    """
    done = threading.Event()
    ended: list[Outcome[Result]] = []

    def work() -> None:
        try:
            ended.append(Outcome(result=call()))
        except BaseException as error:
            ended.append(Outcome(error=error))
        finally:
            done.set()

    reason: Stop | None = None
    thread = threading.Thread(target=work, name="sqlrs-statement", daemon=True)
    try:
        thread.start()
        if not done.wait(timeout):
            reason = Stop.TIMEOUT
    except KeyboardInterrupt:
        reason = Stop.INTERRUPT
    until = math.inf if patience is None else time.monotonic() + patience
    while thread.ident is not None and not done.is_set() and time.monotonic() < until:
        try:
            stop()
            done.wait(_REPEAT_SECONDS)
        except KeyboardInterrupt:
            reason = Stop.INTERRUPT
    return ended[0] if reason is None else Outcome(stopped=reason)


@contextmanager
def ctrl_c_interrupts() -> Iterator[None]:
    """Ctrl-C between two statements ends the work in the same way as inside one."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("the work was stopped") from None
