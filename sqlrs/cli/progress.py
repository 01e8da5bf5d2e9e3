"""Progress on a terminal: residual i of n, the time so far, about what is left; else none."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlrs.engines.base import Engine, TellsHowFar
from sqlrs.measuring.work import Progress

if TYPE_CHECKING:
    from rich.progress import Task


@contextmanager
def progress_line(engine: Engine | None = None) -> Iterator[Progress | None]:
    """A callback that shows the current statement, or None where nobody is watching.

    Of an engine that tells it, the share of the running statement's tasks is shown as well, in
    tens of percent: like the time that goes by, it depends on the data.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    from sqlrs.cli.pace import Pace, in_words

    pace = Pace()

    class Left(ProgressColumn):
        """Drawn anew several times a second, also while a statement runs."""

        def render(self, task: Task) -> Text:
            """About what is left."""
            return Text(in_words(pace.left(time.monotonic())))

    class ShareDone(ProgressColumn):
        """What the engine says while a statement runs, at most twice a second."""

        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            """The share of its tasks."""
            return Text(share_in_words(engine))

    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}")),
        *(ShareDone(), TimeElapsedColumn(), Left()),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling", total=None)

        def show(position: int, total: int, name: str) -> None:
            pace.hear(position, total, time.monotonic())
            bar.update(task, description=f"residual {position} of {total}: {name}")

        yield show


def share_in_words(engine: Engine | None) -> str:
    """Rounded down to tens; nothing where the engine does not know."""
    share = engine.share_done() if isinstance(engine, TellsHowFar) else None
    return "" if share is None else f"{int(share * 10) * 10} % of its tasks"
