"""SIGTERM and SIGHUP end a command like Ctrl-C: statements stop, files of the work are removed."""

from __future__ import annotations

import signal
from types import FrameType

# What is in place unless somebody has chosen otherwise.
_USUAL = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_received: list[int] = []


def treat_as_ctrl_c() -> None:
    """Let all three raise KeyboardInterrupt, and remember which one came.

    ``nohup`` lets a program ignore SIGHUP; the proxy has handlers of its own while it serves.
    """
    for number, usual in _USUAL.items():
        if signal.getsignal(number) is usual:
            signal.signal(number, _interrupt)


def exit_code() -> int | None:
    """128 and the number of the signal that ended the command, as shells have it; else None."""
    return 128 + _received[0] if _received else None


def _interrupt(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt
