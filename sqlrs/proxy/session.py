"""The conversation with an authenticated client: messages in, effects out, no I/O.

What an open portal is answered is in answering.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from sqlrs.errors import SqlrsError
from sqlrs.inputs.bigquery import check_unit_column, without_clause
from sqlrs.proxy.answering import CHANGED, Answering, ProxyError, ShadowError, Steps
from sqlrs.proxy.backend import TextRow
from sqlrs.proxy.effects import (
    Admit,
    Ask,
    Check,
    Effect,
    Examine,
    Explain,
    Hangup,
    Inline,
    Push,
    Read,
    Reply,
)
from sqlrs.proxy.policy.decisions import Decision, Route
from sqlrs.proxy.policy.prepared import (
    COUNTED,
    Portal,
    Prepared,
    Prepareds,
    answered_columns,
    with_ends,
)
from sqlrs.proxy.policy.price import AnalystLimits
from sqlrs.proxy.protocol.codec import Frame, pack
from sqlrs.proxy.protocol.messages import (
    Bind,
    Close,
    CopyMessage,
    Describe,
    Execute,
    Flush,
    FunctionCall,
    Message,
    Parse,
    SimpleQuery,
    Sync,
    Terminate,
)
from sqlrs.proxy.protocol.replies import (
    BIND_COMPLETE,
    EMPTY_QUERY,
    PARSE_COMPLETE,
    TEXT,
    ResultColumn,
    error,
    from_exception,
    read_parameter_types,
    read_row_description,
    row_description,
    shift_position,
)
from sqlrs.proxy.shadow import requests as to_shadow

# What is read with no charge: rows of public tables, and how an answer would be made.
_FREE = (Route.PUBLIC, Route.EXPLAINED)
_PLAN = ResultColumn(b"QUERY PLAN", TEXT)


class Session(Answering):
    """One client's statements and portals; ``handle`` is a generator for each message."""

    def __init__(
        self,
        limits: Callable[[], AnalystLimits],
        *,
        max_statement: int,
        max_prepared: int,
        max_prepared_bytes: int,
        unit: str | None = None,
    ) -> None:
        super().__init__(limits, Prepareds(max_prepared, max_prepared_bytes))
        self._unit = unit
        self._max_statement = max_statement
        self._skipping = False

    def ignores(self, frame: Frame) -> bool:
        """Whether a message is passed over unread: after an error all are, up to Sync."""
        return self._skipping and frame.kind not in (b"S", b"X")

    def handle(self, message: Message) -> Steps:
        """Everything that one message causes."""
        match message:
            case Terminate():
                yield Hangup()
            case Sync():
                self._skipping = False
                yield from self._ready()
            case CopyMessage():
                return
            case _ if self._skipping:
                return
            case SimpleQuery():
                yield from self._guarded(self._query(message), message.sql)
                yield from self._ready()
            case FunctionCall():
                report = error("0A000", "function calls are not supported")
                yield from self._failed(report)
                yield from self._ready()
            case Flush():
                yield Push()
            case _:
                self._skipping = not (yield from self._guarded(self._extended(message), ""))

    def _extended(self, message: Message) -> Steps:
        match message:
            case Parse():
                yield from self._parse(message)
            case Bind():
                yield from self._bind(message)
            case Describe():
                yield from self._describe(message)
            case Execute():
                yield from self._execute(message)
            case Close():
                self._prepared.close(message)
                yield from self._relay(to_shadow.close(message))

    def _guarded(self, steps: Steps, sql: str) -> Generator[Effect, Any, bool]:
        """Run a handler; whatever it ends with, the client and the shadow agree on it."""
        try:
            yield from steps
        except ShadowError as problem:
            yield Reply(pack(b"E", problem.body))
            return False
        except ProxyError as problem:
            yield from self._failed(problem.report)
            return False
        except SqlrsError as problem:
            yield from self._failed(from_exception(problem, positions=_in_range(problem, sql)))
            return False
        return True

    def _ready(self) -> Steps:
        frames = yield Ask(to_shadow.SYNC, 1)
        status = frames[-1].body
        if status == b"I":
            self._prepared.end_transaction()
        yield Reply(pack(b"Z", status))
        yield Push()

    # Simple queries

    def _query(self, message: SimpleQuery) -> Steps:
        self._prepared.forget_unnamed()
        yield Admit()
        plans = yield from self._examined(message.sql)
        if not plans:
            yield Reply(EMPTY_QUERY)
        if len(plans) > 1 and any(plan.route is Route.PROTECTED for plan in plans):
            raise ProxyError(
                error("0A000", "a private count must be the only statement", "send it on its own")
            )
        for number, plan in enumerate(plans):
            if number:
                yield Admit()
            try:
                yield from self._run(plan)
            except ShadowError as problem:
                shifted = shift_position(problem.body, plan.statement.offset)
                yield Reply(shifted)
                return
            except SqlrsError as problem:
                report = from_exception(problem, offset=plan.statement.offset)
                raise ProxyError(report) from None

    def _run(self, plan: Decision) -> Steps:
        parse = Parse("", plan.statement.text)
        if plan.route is Route.PROTECTED:
            prepared = yield from self._prepare_protected(parse, plan)
            if prepared.types:
                raise ProxyError(error("42P02", "there is no parameter $1"))
            portal = yield from self._portal(prepared, plan.statement.text, ())
            yield from self._answer("", portal, Execute(""), row_description(portal.columns, ()))
            return
        if plan.route in _FREE:
            prepared = yield from self._prepare_reading(parse, plan)
            if prepared.types:
                raise ProxyError(error("42P02", "there is no parameter $1"))
            yield from self._read(prepared, plan.statement.text, Bind("", ""))
            frames = yield from self._asked(to_shadow.describe(Describe(b"P", "")), 1)
            yield Reply(pack(*frames[-1]))
            yield from self._stream(plan, Execute(""))
            return
        self._validate_assignment(plan)
        data = (
            to_shadow.parse(parse)
            + to_shadow.bind(Bind("", ""))
            + to_shadow.describe(Describe(b"P", ""))
        )
        frames = yield from self._asked(data, 3)
        yield from self._refresh(plan)
        if frames[-1].kind == b"T":
            yield Reply(pack(*frames[-1]))
        yield from self._stream(plan, Execute(""))

    # Extended queries

    def _parse(self, message: Parse) -> Steps:
        if not message.name:
            self._prepared.forget_unnamed()
        self._prepared.check_room(message.name, message.sql)
        yield Admit()
        plans = yield from self._examined(message.sql)
        if len(plans) > 1:
            raise ProxyError(
                error("42601", "cannot insert multiple commands into a prepared statement")
            )
        plan = plans[0] if plans else None
        message = replace(message, sql=without_clause(message.sql).sql)
        if plan is not None and plan.route in _FREE:
            prepared = yield from self._prepare_reading(message, plan)
            self._prepared.add(message.name, prepared)
            yield Reply(PARSE_COMPLETE)
            return
        if plan is None or plan.route is not Route.PROTECTED:
            if plan is not None:
                self._validate_assignment(plan)
            yield from self._relay(to_shadow.parse(message))
            self._prepared.add(message.name, Prepared(plan) if plan else None)
            return
        prepared = yield from self._prepare_protected(message, plan)
        self._prepared.add(message.name, prepared)
        yield Reply(PARSE_COMPLETE)

    def _prepare_protected(
        self, message: Parse, plan: Decision
    ) -> Generator[Effect, Any, Prepared]:
        """Let the shadow find names and types, then the backend refuse what it cannot answer."""
        data = to_shadow.parse(message) + to_shadow.describe(Describe(b"S", message.name))
        frames = yield from self._asked(data, 2)
        types = read_parameter_types(frames[1].body)
        columns = read_row_description(frames[-1].body) if frames[-1].kind == b"T" else ()
        shape = None
        try:
            if not types:
                # Positions are those of the text as it was sent.
                shape = yield Check(message.sql)
                answered_columns(columns, shape)
            columns = to_shadow.carried(columns)
        except SqlrsError:
            # The client will take this name for free.
            yield Ask(to_shadow.close(Close(b"S", message.name)), 1)
            raise
        terms, _ = yield from self._terms()
        return Prepared(plan, types, frames[1].body, columns, shape, ends=terms.columns)

    def _prepare_reading(self, message: Parse, plan: Decision) -> Generator[Effect, Any, Prepared]:
        """Let the shadow find names and types; nothing is read before the parameters are known."""
        if plan.route is Route.EXPLAINED:
            meant = Parse(message.name, plan.statement.text, message.types)
            prepared = yield from self._prepare_protected(meant, plan)
            return replace(prepared, columns=(_PLAN,), shape=None, ends=False)
        data = to_shadow.parse(message) + to_shadow.describe(Describe(b"S", message.name))
        frames = yield from self._asked(data, 2)
        types, columns = read_parameter_types(frames[1].body), read_row_description(frames[-1].body)
        return Prepared(plan, types, frames[1].body, columns)

    def _read(self, prepared: Prepared, sql: str, message: Bind) -> Steps:
        """Read public tables and open a portal of the shadow's that holds the rows."""
        if prepared.plan.route is Route.EXPLAINED:
            terms, _ = yield from self._terms()
            text: str = yield Explain(sql, terms.epsilon, terms.error_bars)
            rows: Sequence[TextRow] = [(line,) for line in text.splitlines()]
        else:
            rows = yield Read(sql)
        name, formats = f"{self._own}_read", message.result_formats
        yield from self._asked(
            *to_shadow.carry_rows(name, message.portal, prepared.columns, rows, formats)
        )

    def _bind(self, message: Bind) -> Steps:
        yield Admit()
        prepared = self._prepared.statement(message.statement)
        if prepared is not None and prepared.plan.route in _FREE:
            sql = prepared.plan.statement.text
            if prepared.types or message.values:
                sql = yield Inline(sql, prepared.types, message.values, message.formats)
                if prepared.plan.route is Route.EXPLAINED:
                    # What is compiled here was compiled by a worker before, which may be killed.
                    yield Check(sql)
            yield from self._read(prepared, sql, message)
            self._prepared.open(message.portal, Portal(prepared.plan))
            yield Reply(BIND_COMPLETE)
            return
        if prepared is None or prepared.plan.route is not Route.PROTECTED:
            yield from self._relay(to_shadow.bind(message))
            plan = None if prepared is None else prepared.plan
            self._prepared.open(message.portal, Portal(plan))
            return
        sql = prepared.plan.statement.text
        if prepared.types or message.values:
            try:
                sql = yield Inline(sql, prepared.types, message.values, message.formats)
                shape = yield Check(sql)
                columns = answered_columns(prepared.columns, shape)
            except SqlrsError as problem:
                # The position would be one in the text with the values written into it.
                raise ProxyError(from_exception(problem, positions=False)) from None
            prepared = replace(prepared, columns=columns, shape=shape)
        portal = yield from self._portal(prepared, sql, message.result_formats)
        self._prepared.open(message.portal, portal)
        yield Reply(BIND_COMPLETE)

    def _portal(
        self, prepared: Prepared, sql: str, formats: tuple[int, ...]
    ) -> Generator[Effect, Any, Portal]:
        """A portal of a private answer; its columns stay as they are told from now on."""
        columns = yield from self._shown(prepared)
        if prepared.ends and prepared.described == len(prepared.columns):
            # Told before its parameters were known, and so before it was known which ends it has.
            columns = prepared.columns
        if prepared.described not in (None, len(columns)):
            raise ProxyError(CHANGED)
        if len(formats) > 1 and len(formats) != len(columns):
            raise ProxyError(error("08P01", "more result formats than columns"))
        ends = len(columns) > len(prepared.columns)
        return Portal(prepared.plan, sql, formats, columns, prepared.shape, ends, prepared.ends)

    def _shown(self, prepared: Prepared) -> Generator[Effect, Any, tuple[ResultColumn, ...]]:
        """The columns of an answer, under the settings of now unless they were fixed before."""
        if prepared.ends and len(prepared.columns) == len((prepared.shape or COUNTED).ends):
            return with_ends(prepared.columns, prepared.shape or COUNTED)
        if prepared.shape is None:
            return prepared.columns
        terms, _ = yield from self._terms()
        known = terms.error_bars is not None
        return with_ends(prepared.columns, prepared.shape) if known else prepared.columns

    def _describe(self, message: Describe) -> Steps:
        yield Admit()
        if message.kind == b"S":
            prepared = self._prepared.statement(message.name)
            if prepared is not None and prepared.plan.route in (Route.PROTECTED, Route.EXPLAINED):
                columns = yield from self._shown(prepared)
                self._prepared.add(message.name, replace(prepared, described=len(columns)))
                yield Reply(pack(b"t", prepared.parameter_body))
                yield Reply(row_description(columns, ()))
                return
        else:
            portal = self._prepared.portal(message.name)
            if portal.protected:
                yield Reply(row_description(portal.columns, portal.formats))
                return
        yield from self._relay(to_shadow.describe(message))

    def _execute(self, message: Execute) -> Steps:
        portal = self._prepared.portal(message.portal)
        yield Admit()
        if not portal.protected:
            if portal.plan is not None:
                yield from self._refresh(portal.plan)
            yield from self._stream(portal.plan, message)
            return
        yield from self._answer(message.portal, portal, message)

    # What both share

    def _examined(self, sql: str) -> Generator[Effect, Any, list[Decision]]:
        if len(sql) > self._max_statement:
            raise ProxyError(
                error("54000", f"a statement has at most {self._max_statement} characters")
            )
        # As long as the text: places stay as they are.
        clause = without_clause(sql)
        check_unit_column(clause.unit_column, self._unit)
        plans: list[Decision] = yield Examine(clause.sql)
        return [replace(plan, epsilon=clause.epsilon) for plan in plans]

    def _validate_assignment(self, plan: Decision) -> None:
        if plan.assigns is not None:
            self._limits().validate(*plan.assigns)


def _in_range(problem: SqlrsError, sql: str) -> bool:
    return problem.span is not None and problem.span.end <= len(sql)
