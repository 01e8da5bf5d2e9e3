"""What a client is given: private answers of open portals, and what the shadow replies.

Each is a generator of effects, as in session.py; none reads or writes anything itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from typing import Any

from sqlrs.proxy.effects import (
    Ask,
    Count,
    Effect,
    History,
    OwnBudget,
    Remaining,
    Reply,
    Stream,
)
from sqlrs.proxy.policy.decisions import Decision
from sqlrs.proxy.policy.prepared import Portal, Prepareds, without_ends
from sqlrs.proxy.policy.price import AnalystLimits, Terms, notice
from sqlrs.proxy.protocol.codec import Frame, pack
from sqlrs.proxy.protocol.messages import Execute
from sqlrs.proxy.protocol.replies import (
    PORTAL_SUSPENDED,
    Report,
    command_complete,
    data_row,
    encode_int8,
    error,
    read_data_row,
)
from sqlrs.proxy.shadow import requests as to_shadow
from sqlrs.records import dataclass

Steps = Generator[Effect, Any, None]

# In PostgreSQL's words, which drivers know: they prepare the statement again.
CHANGED = error(
    "0A000",
    "cached plan must not change result type",
    "error bars add columns, those of a statement with parameters once they are bound: prepare the "
    "statement after SET sqlrs.error_bars, or write the values into it",
)


@dataclass
class ProxyError(Exception):
    """Leaves a handler with an error of the proxy; the shadow does not know of it yet."""

    report: Report


@dataclass
class ShadowError(Exception):
    """Leaves a handler with an error that the shadow itself reported."""

    body: bytes


class Answering:
    """Answers each portal once, under the settings of its time, and hands on the shadow's words."""

    def __init__(self, limits: Callable[[], AnalystLimits], prepared: Prepareds) -> None:
        self._limits = limits
        self._prepared = prepared
        # A name that no client can guess: the proxy's own statements stay out of its way.
        self._own = f"sqlrs_{secrets.token_hex(8)}"

    def _failed(self, report: Report) -> Steps:
        yield Reply(report.encode())
        yield Ask(to_shadow.fail(self._own), 1)

    def _answer(
        self, name: str, portal: Portal, message: Execute, description: bytes = b""
    ) -> Steps:
        """Release a private answer the first time, once and for all; then what is left of it."""
        if portal.carried:
            yield from self._stream(None, message)
            return
        if portal.answered:
            yield Reply(command_complete("SELECT 0"))
            return
        # Before the answer: a portal that failed after its charge is not charged again.
        portal.answered = True
        if portal.shape is not None:
            yield from self._release_table(name, portal)
            yield Reply(description)
            yield from self._stream(None, message)
            return
        rows = yield from self._release(portal, description)
        suspended = message.max_rows == 1 == rows
        yield Reply(PORTAL_SUSPENDED if suspended else command_complete(f"SELECT {rows}"))

    def _terms(self, plan: Decision | None = None) -> Generator[Effect, Any, tuple[Terms, int]]:
        """What the statement or else the settings say of the price, and the time limit."""
        frames = yield from self._asked(*to_shadow.read_settings(self._own))
        row = next(read_data_row(frame.body) for frame in frames if frame.kind == b"D")
        epsilon, *others, timeout = (None if v is None else v.decode("utf-8") for v in row)
        if plan is not None and plan.epsilon is not None:
            epsilon = plan.epsilon
        return self._limits().terms(epsilon, *others), int(timeout or 0)

    def _release(self, portal: Portal, description: bytes = b"") -> Generator[Effect, Any, int]:
        """Answer a count; the number of rows that its HAVING, LIMIT and OFFSET leave: 0 or 1."""
        terms, timeout = yield from self._terms(portal.plan)
        outcome = yield Count(
            portal.sql, terms.epsilon, terms.error_bars, timeout, error=terms.error
        )
        remaining = yield Remaining()
        yield Reply(notice(outcome, remaining).encode())
        values = (outcome.value, *(outcome.interval or (None, None))[: 2 * portal.ends])
        formats = portal.formats if len(portal.formats) > 1 else (*portal.formats, 0)[:1] * 3
        shown = [
            None if value is None else encode_int8(value, bool(binary))
            for value, binary in zip(values, formats, strict=False)
        ]
        yield Reply(description + (data_row(shown) if outcome.shown else b""))
        return int(outcome.shown)

    def _release_table(self, name: str, portal: Portal) -> Steps:
        """Answer a table: its rows go into a portal of the shadow's, which hands them out."""
        terms, timeout = yield from self._terms(portal.plan)
        bars, shape = terms.error_bars, portal.shape
        if portal.always and terms.error is not None:
            # The width of a wish that is granted for a table is public: its ends are free.
            bars = terms.epsilon
        if portal.always and not portal.ends:
            bars = None
        known = bars is not None and shape is not None and any(shape.ends)
        if shape is None or (portal.ends != known and not portal.always):
            raise ProxyError(CHANGED)
        types = tuple(column.type_oid for column in portal.columns)
        if portal.ends and not known:
            # A row of the types alone, without those of the ends.
            places = without_ends(["shown"] * len(shape.ends), shape)
            types = tuple(oid for oid, one in zip(types, places, strict=True) if one)
        outcome = yield Count(portal.sql, terms.epsilon, bars, timeout, types, terms.error)
        remaining = yield Remaining()
        yield Reply(notice(outcome, remaining).encode())
        rows = outcome.rows
        if portal.ends and not known:
            rows = [without_ends(row, shape) for row in rows]
        own, columns, formats = f"{self._own}_read", portal.columns, portal.formats
        yield from self._asked(*to_shadow.carry_rows(own, name, columns, rows, formats))
        portal.carried = True

    def _refresh(self, plan: Decision) -> Steps:
        if "budget" in plan.fresh:
            remaining = yield Remaining()
            own = yield OwnBudget()
            yield from self._asked(*to_shadow.write_budget(self._own, remaining, own))
        if "history" in plan.fresh:
            rows = yield History()
            yield from self._asked(*to_shadow.write_history(self._own, rows))

    def _stream(self, plan: Decision | None, message: Execute) -> Steps:
        frame: Frame = yield Stream(to_shadow.execute(message))
        if frame.kind == b"E":
            raise ShadowError(frame.body)
        if plan is not None:
            self._prepared.deallocate(plan)
        yield Reply(pack(*frame))

    def _relay(self, data: bytes) -> Steps:
        for frame in (yield from self._asked(data, 1)):
            yield Reply(pack(*frame))

    def _asked(self, data: bytes, replies: int) -> Generator[Effect, Any, list[Frame]]:
        frames: list[Frame] = yield Ask(data, replies)
        if frames[-1].kind == b"E":
            raise ShadowError(frames[-1].body)
        return frames
