"""Progress on a terminal: residual i of n and the time so far. Nothing when piped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlrs.measuring.work import Progress


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """A callback that shows the current statement, or None where nobody is watching."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling", total=None)

        def show(position: int, total: int, name: str) -> None:
            bar.update(task, description=f"statement {position} of {total}: {name}")

        yield show
