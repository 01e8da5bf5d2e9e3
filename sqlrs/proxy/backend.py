"""The seam to the release path: everything the proxy asks of the data and the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol


class Cancellation(Protocol):
    """What a running count looks at to see whether it should stop (a ``threading.Event`` does)."""

    def is_set(self) -> bool:
        """Whether somebody asked to stop."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until somebody asks to stop, at most ``timeout`` seconds."""
        ...


@dataclass(frozen=True)
class ExposedColumn:
    """A column as analysts see it; ``type`` is PostgreSQL's name of its type."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class ExposedTable:
    """A table as analysts see it."""

    name: str
    columns: tuple[ExposedColumn, ...]
    keys: tuple[tuple[str, ...], ...] = ()
    schema: str = "public"


@dataclass(frozen=True)
class ExposedView:
    """A view as analysts see it; ``sql`` is its query in PostgreSQL's dialect."""

    name: str
    sql: str
    schema: str = "public"


@dataclass(frozen=True)
class ExposedSchema:
    """All that analysts may name, and the schemas that a bare name is looked up in."""

    tables: tuple[ExposedTable, ...]
    views: tuple[ExposedView, ...] = ()
    search_path: tuple[str, ...] = ("public",)

    @property
    def relations(self) -> tuple[ExposedTable | ExposedView, ...]:
        """Tables and views."""
        return (*self.tables, *self.views)


@dataclass(frozen=True)
class Outcome:
    """A released count with its cost: all of it may be shown to the analyst who asked."""

    value: int
    epsilon: Decimal
    interval: tuple[int, int] | None = None
    repeated: bool = False


@dataclass(frozen=True)
class HistoryRow:
    """One charge of an analyst. ``answer`` is None where the release failed after the charge."""

    time: datetime
    sql: str
    epsilon: Decimal
    status: str
    answer: int | None = None


class Backend(Protocol):
    """Answers counts privately. Its methods block and are called from several threads.

    Problems are raised as ``sqlrs.errors.SqlrsError``; whatever else escapes is told to the
    analyst as one and the same error.
    """

    def schema(self) -> ExposedSchema:
        """What analysts may name."""
        ...

    def check(self, sql: str) -> None:
        """Compile only: raise if the statement would be refused. Reads and charges nothing."""
        ...

    def count(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
    ) -> Outcome:
        """Charge, then answer; a repeat is answered from the record."""
        ...

    def trouble(self) -> str | None:
        """What keeps counts from being answered now, in words for the operator; None if nothing."""
        ...

    def remaining(self, analyst: str) -> Decimal | None:
        """What is left of the analyst's budget; None means without limit."""
        ...

    def history(self, analyst: str, limit: int) -> Sequence[HistoryRow]:
        """The analyst's latest charges, newest first."""
        ...
