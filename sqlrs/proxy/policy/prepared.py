"""Prepared statements and portals of one session, bounded in number and in memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sqlrs.proxy.backend import TableShape
from sqlrs.proxy.policy.decisions import Decision, Route
from sqlrs.proxy.protocol.messages import Close
from sqlrs.proxy.protocol.replies import INT8, ResultColumn
from sqlrs.records import dataclass
from sqlrs.refusals import refusal


@dataclass(frozen=True)
class Prepared:
    """A statement that passed the whitelist; a protected one carries its types and columns.

    ``shape``: of one that is answered with a table, once its parameters are known. ``described``:
    how many columns the client was told of. ``ends``: the ends of intervals are columns of it for
    good, as the setting was when it was prepared.
    """

    plan: Decision
    types: tuple[int, ...] = ()
    parameter_body: bytes = b""
    columns: tuple[ResultColumn, ...] = ()
    shape: TableShape | None = None
    described: int | None = None
    ends: bool = False

    @property
    def size(self) -> int:
        """What the statement keeps in memory, in bytes."""
        return sys.getsizeof(self.plan.statement.text) + len(self.parameter_body)


@dataclass
class Portal:
    """A statement with its parameters. A protected one is answered once.

    ``ends``: its columns are those with error bars, ``always``: whether they are known or not.
    ``carried``: the shadow has a portal of this name with the released rows.
    """

    plan: Decision | None
    sql: str = ""
    formats: tuple[int, ...] = ()
    columns: tuple[ResultColumn, ...] = ()
    shape: TableShape | None = None
    ends: bool = False
    always: bool = False
    answered: bool = False
    carried: bool = False

    @property
    def size(self) -> int:
        """What the portal keeps in memory, in bytes."""
        return sys.getsizeof(self.sql)

    @property
    def protected(self) -> bool:
        """Whether the backend answers it."""
        return self.plan is not None and self.plan.route is Route.PROTECTED


class Prepareds:
    """The names that a client gave. The shadow holds the same names and has the last word."""

    def __init__(self, limit: int, bytes_limit: int) -> None:
        self._limit = limit
        self._bytes_limit = bytes_limit
        self._statements: dict[str, Prepared | None] = {}
        self._portals: dict[str, Portal] = {}

    def check_room(self, name: str, sql: str) -> None:
        """Refuse one statement too many, or one too long beside the others."""
        self._check_bytes(sql, self._statements.get(name))
        if name not in self._statements and len(self._statements) >= self._limit:
            raise refusal("too_much", f"a session has at most {self._limit} prepared statements")

    def add(self, name: str, prepared: Prepared | None) -> None:
        """Remember a statement; None stands for an empty one."""
        self._statements[name] = prepared

    def statement(self, name: str) -> Prepared | None:
        """The statement of this name, None if it is empty; it must exist."""
        if name not in self._statements:
            raise refusal("unknown_statement", f'prepared statement "{name}" does not exist')
        return self._statements[name]

    def open(self, name: str, portal: Portal) -> None:
        """Remember a portal."""
        self._check_bytes(portal.sql, self._portals.get(name))
        if name not in self._portals and len(self._portals) >= self._limit:
            raise refusal("too_much", f"a session has at most {self._limit} portals")
        if name and name in self._portals:
            raise refusal("duplicate_portal", f'cursor "{name}" already exists')
        self._portals[name] = portal

    def _check_bytes(self, sql: str, replaced: Prepared | Portal | None) -> None:
        kept = [*self._statements.values(), *self._portals.values()]
        size = sum(one.size for one in kept if one is not None and one is not replaced)
        if size + sys.getsizeof(sql) > self._bytes_limit:
            raise refusal(
                "too_much",
                f"the prepared statements of a session take at most {self._bytes_limit} bytes",
            )

    def portal(self, name: str) -> Portal:
        """The portal of this name, which must exist."""
        if name not in self._portals:
            raise refusal("unknown_portal", f'portal "{name}" does not exist')
        return self._portals[name]

    def close(self, message: Close) -> None:
        """Forget a statement or portal; one that does not exist is no error."""
        if message.kind == b"S":
            self._statements.pop(message.name, None)
        else:
            self._portals.pop(message.name, None)

    def forget_unnamed(self) -> None:
        """What has no name does not outlive the next statement without one."""
        self._statements.pop("", None)
        self._portals.pop("", None)

    def deallocate(self, plan: Decision) -> None:
        """Follow a DEALLOCATE or DISCARD that the shadow carried out."""
        if plan.deallocates_all:
            self._statements.clear()
            self._portals.clear()
        elif plan.deallocates is not None:
            self._statements.pop(plan.deallocates, None)

    def end_transaction(self) -> None:
        """Portals do not outlive their transaction."""
        self._portals.clear()


def answered_columns(
    columns: tuple[ResultColumn, ...], shape: TableShape | None
) -> tuple[ResultColumn, ...]:
    """The columns of a private answer; a count has one of int8, anything else is refused."""
    if shape is not None:
        if len(shape.ends) != len(columns):
            raise refusal("unsupported", "the columns cannot be told in advance")
        return columns
    if len(columns) != 1 or columns[0].type_oid != INT8:
        raise refusal(
            "not_a_count",
            "only a single count is answered",
            hint="write SELECT count(*) FROM … over the exposed tables",
        )
    return columns


COUNTED = TableShape((("_low", "_high"),))
"""What error bars add to the one column of a count."""


def without_ends(row: Sequence[str | None], shape: TableShape) -> tuple[str | None, ...]:
    """A row with NULL where the ends of intervals would stand, which nobody paid for."""
    return tuple(
        shown
        for value, ends in zip(row, shape.ends, strict=True)
        for shown in (value, *(None for _ in ends))
    )


def with_ends(columns: Sequence[ResultColumn], shape: TableShape) -> tuple[ResultColumn, ...]:
    """The columns of a table with those that error bars add."""
    return tuple(
        ResultColumn(column.name + suffix.encode(), column.type_oid)
        for column, ends in zip(columns, shape.ends, strict=True)
        for suffix in ("", *ends)
    )
