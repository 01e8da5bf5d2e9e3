"""The seam to the release path: everything the proxy asks of the data and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from sqlrs.answer import Answer
from sqlrs.ledger import PrivacyBudget
from sqlrs.quoting import Quote, Sketch
from sqlrs.records import dataclass
from sqlrs.table_answer import TableAnswer

# Of each statement in the history; a thousand long ones would fill the memory.
SHOWN_CHARACTERS = 2000


class Cancellation(Protocol):
    """What a running count looks at to see whether it should stop (a ``threading.Event`` does)."""

    def is_set(self) -> bool:
        """Whether somebody asked to stop."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until somebody asks to stop, at most ``timeout`` seconds."""
        ...


Hold = Callable[[], None]
"""Waits until an outcome may be seen, or raises Interrupted if a stop takes its place."""


def at_once() -> None:
    """The ``Hold`` of whoever has no time grid."""


@dataclass(frozen=True)
class ExposedColumn:
    """A column as analysts see it; ``type`` is PostgreSQL's name of its type."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class ExposedReference:
    """A foreign key: these columns hold those of a row of another table, (schema, name)."""

    columns: tuple[str, ...]
    table: tuple[str, str]
    key: tuple[str, ...]


@dataclass(frozen=True)
class ExposedTable:
    """A table as analysts see it."""

    name: str
    columns: tuple[ExposedColumn, ...]
    keys: tuple[tuple[str, ...], ...] = ()
    schema: str = "public"
    public: bool = False
    references: tuple[ExposedReference, ...] = ()


@dataclass(frozen=True)
class ExposedView:
    """A view as analysts see it; ``sql`` is its query in PostgreSQL's dialect."""

    name: str
    sql: str
    schema: str = "public"


@dataclass(frozen=True)
class ExposedFunction:
    """A function of the owner's as analysts see it, with PostgreSQL's names of its types."""

    name: str
    takes: tuple[str, ...]
    returns: str
    schema: str = "public"


@dataclass(frozen=True)
class ExposedSchema:
    """All that analysts may name, and the schemas that a bare name is looked up in.

    ``unit``: who is protected, None for single rows.
    """

    tables: tuple[ExposedTable, ...]
    views: tuple[ExposedView, ...] = ()
    search_path: tuple[str, ...] = ("public",)
    functions: tuple[ExposedFunction, ...] = ()
    unit: str | None = None

    @property
    def relations(self) -> tuple[ExposedTable | ExposedView, ...]:
        """Tables and views."""
        return (*self.tables, *self.views)


TextRow = tuple[str | None, ...]
"""One row, each value as the text of its type."""


@dataclass(frozen=True)
class CountOutcome:
    """A released count with its cost: all of it may be shown to the analyst who asked.

    ``shown`` is false where the statement's HAVING, LIMIT or OFFSET leaves no row. ``notes``: what
    else a notice says, such as who is protected.
    """

    value: int
    epsilon: Decimal
    interval: tuple[int, int] | None = None
    repeated: bool = False
    shown: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableShape:
    """A statement that is answered with a table, not with one count.

    ``ends``: for each column what error bars add to its name, one column more for each of them.
    """

    ends: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class TableOutcome:
    """Released rows with their cost, each value as the text of the type that was asked for."""

    rows: tuple[TextRow, ...]
    epsilon: Decimal
    repeated: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HistoryRow:
    """One charge of an analyst. ``answer`` is None for tables and where the release failed.

    ``interval``: its error bars, where it has any.
    """

    time: datetime
    sql: str
    epsilon: Decimal
    status: str
    answer: int | None = None
    interval: tuple[int, int] | None = None


class Checker(Protocol):
    """Tells what would be refused. It is pickled and used in other processes, which may be killed.

    What it raises is pickled in turn.
    """

    def check(self, sql: str) -> TableShape | None:
        """Raise if this text would be refused; None for one count. Reads and charges nothing."""
        ...

    def sketch(self, sql: str) -> Sketch:
        """How a text of the data's own dialect is understood, or its refusal."""
        ...


class Backend(Protocol):
    """Answers privately. Its methods block and are called from several threads.

    Problems are raised as ``sqlrs.errors.SqlrsError``; whatever else escapes is told to the
    analyst as one and the same error.
    """

    def schema(self) -> ExposedSchema:
        """What analysts may name."""
        ...

    def checker(self) -> Checker:
        """What tells refusals in advance; every text is shown to it before it is counted."""
        ...

    def count(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
        hold: Hold = at_once,
        error: Decimal | None = None,
    ) -> CountOutcome:
        """Charge, then answer; a repeat is answered from the record.

        ``error``: wished; ``epsilon`` is then the most that it may cost.

        ``hold`` is called after the work and before its outcome is recorded, whatever it is: until
        it returns nobody may see in any way that the work has ended. What it raises is recorded
        as the outcome, and raised.
        """
        ...

    def table(
        self,
        analyst: str,
        sql: str,
        *,
        types: Sequence[int],
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
        hold: Hold = at_once,
        error: Decimal | None = None,
    ) -> TableOutcome:
        """Charge once, then answer with rows whose columns have these types of PostgreSQL.

        With error bars the columns are those of ``TableShape``. ``hold`` as for ``count``.
        """
        ...

    def explain(
        self, sql: str, *, epsilon: Decimal, error_bars: Decimal | None, cancel: Cancellation
    ) -> str:
        """What would be released, for which groups and with which noise; free of charge."""
        ...

    def answer(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
        hold: Hold = at_once,
    ) -> Answer | TableAnswer:
        """Charge once, then answer a text of the data's own dialect. ``hold`` as for ``count``."""
        ...

    def quote(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
    ) -> tuple[Quote, bool]:
        """What ``answer`` would charge, and whether it would be a repeat; free of charge."""
        ...

    def read(
        self, sql: str, *, rows: int, characters: int, cancel: Cancellation
    ) -> Sequence[TextRow]:
        """The rows of a query over public tables alone, exactly and free of charge.

        A query that is not proven to be one, or has a larger result, is refused.
        """
        ...

    def trouble(self) -> str | None:
        """What keeps counts from being answered now, in words for the operator; None if nothing."""
        ...

    def remaining(self, analyst: str) -> Decimal | None:
        """What is left of the analyst's budget; None means without limit."""
        ...

    def own_budget(self, analyst: str) -> PrivacyBudget | None:
        """The analyst's budget over all datasets; None where nothing limits it."""
        ...

    def dataset_budget(self) -> PrivacyBudget | None:
        """The budget of the whole dataset; None where nothing limits it."""
        ...

    def history(self, analyst: str, limit: int) -> Sequence[HistoryRow]:
        """The analyst's latest charges, newest first."""
        ...
