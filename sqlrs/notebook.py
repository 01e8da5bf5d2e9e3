"""For notebooks: the cell magic ``%%sqlrs``, and progress below the cell that is running.

%load_ext sqlrs.notebook

%%sqlrs --epsilon 1
SELECT ward, count(*) FROM visit WHERE ward IN ('a', 'b') GROUP BY ward
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import DisplayHandle, display

from sqlrs.database import Database
from sqlrs.errors import SqlrsError, UsageError
from sqlrs.measuring.work import Progress

_USAGE = "%%sqlrs [NAME OF THE DATABASE] --epsilon E [--error-bars E2] [--explain] [--into NAME]"


@contextmanager
def progress() -> Iterator[Progress]:
    """A callback for ``count`` and ``query`` that shows the current statement below the cell."""
    shown: Any = DisplayHandle()

    def tell(text: str, how: str = "update") -> None:
        # The answer is charged: what cannot be shown must not end it.
        with suppress(Exception):
            getattr(shown, how)({"text/plain": text}, raw=True)

    def show(position: int, total: int, name: str) -> None:
        tell(f"statement {position} of {total}: {name}")

    tell("", "display")
    yield show
    tell("")


@magics_class
class SqlrsMagics(Magics):  # type: ignore[misc]
    """``%%sqlrs``: the cell is a private statement on a database of the notebook."""

    @cell_magic  # type: ignore[untyped-decorator]
    def sqlrs(self, line: str, cell: str) -> Any:
        """Ask the cell's SQL: ``%%sqlrs db --epsilon 1 --into visits``. ``db`` is the default."""
        try:
            return self._ask(_options(line), cell)
        except SqlrsError as error:
            # Shown with the text underlined; nothing after this cell runs by mistake.
            display(error)
            _stop()

    def _ask(self, given: dict[str, str], cell: str) -> Any:
        name = given.get("database", "db")
        shell: Any = self.shell
        database = shell.user_ns.get(name)
        if not isinstance(database, Database):
            raise UsageError(f"{name} is no database of sqlrs", hint=f"{name} = sqlrs.connect(…)")
        if "explain" in given:
            return database.explain(cell, given.get("epsilon", "1"))
        if "epsilon" not in given:
            raise UsageError("an answer has a price", hint=_USAGE)
        with progress() as told:
            answer = database.query(
                cell, given["epsilon"], error_bars=given.get("error_bars"), progress=told
            )
        if "into" in given:
            shell.user_ns[given["into"]] = answer
        return answer


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext sqlrs.notebook`` calls."""
    shell.register_magics(SqlrsMagics)


class _Shown(Exception):
    """Ends a cell whose error is displayed already."""

    def _render_traceback_(self) -> list[str]:
        return []


def _stop() -> NoReturn:
    raise _Shown from None


def _options(line: str) -> dict[str, str]:
    try:
        words = shlex.split(line)
    except ValueError:
        raise UsageError("the line of the magic cannot be read", hint=_USAGE) from None
    given: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if word == "--explain":
            given["explain"] = "yes"
        elif word in ("--epsilon", "--error-bars", "--into") and words:
            given[word.removeprefix("--").replace("-", "_")] = words.pop(0)
        elif not word.startswith("-") and "database" not in given:
            given["database"] = word
        else:
            raise UsageError(f"the magic has no option {word}", hint=_USAGE)
    return given
