"""Limits over time and number: statements per second, failed logins, open connections."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlrs.errors import SqlrsError

_MAX_KEYS = 10_000


class TooMany(SqlrsError):
    """A limit of the proxy is reached; nothing was read or charged."""

    code = "too_many"
    sqlstate = "53000"


class RateGate:
    """A token bucket for each key; the least used keys are forgotten, which fills their bucket."""

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def level(self, key: str) -> float:
        """How many tokens the key has."""
        now = self._clock()
        tokens, since = self._buckets.get(key, (self._burst, now))
        return min(self._burst, tokens + (now - since) * self._rate)

    def take(self, key: str) -> bool:
        """Take one token; False if there is none."""
        tokens = self.level(key)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if allowed else tokens, self._clock())
        self._buckets.move_to_end(key)
        if len(self._buckets) > _MAX_KEYS:
            self._buckets.popitem(last=False)
        return allowed


class CountGate:
    """How many are inside at once, in all and for each key."""

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._inside: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._inside.total()

    @contextmanager
    def enter(self, key: str) -> Iterator[None]:
        """Be inside for a while, or raise TooMany."""
        if self._inside.total() >= self._total or self._inside[key] >= self._each:
            raise _too_many_connections()
        self._inside[key] += 1
        try:
            yield
        finally:
            self._inside[key] -= 1
            if not self._inside[key]:
                del self._inside[key]


class Handshaking:
    """One client's place among the handshakes of its address. ``end`` ends it, from outside."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end
        self.user: str | None = None

    def shield(self, user: str) -> None:
        """This address gave the user's right password before: silent clients do not push it out."""
        self.user = user


class HandshakeGate:
    """How many are being greeted at once, in all and of each address; the oldest makes room.

    To say nothing needs no password: refusing the newest would lock out everybody who stands
    behind the same address. Shielded ones stay, of each user the newest quarter of the places: a
    name alone is no password either.
    """

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._shields = max(1, each // 4)
        self._inside: dict[str, list[Handshaking]] = {}

    @contextmanager
    def enter(self, address: str, end: Callable[[], None]) -> Iterator[Handshaking]:
        """Be inside for a while, in the place of the oldest if need be, or raise TooMany."""
        self._make_room(address)
        if sum(map(len, self._inside.values())) >= self._total:
            raise _too_many_connections()
        mine = Handshaking(end)
        self._inside.setdefault(address, []).append(mine)
        try:
            yield mine
        finally:
            self._leave(address, mine)

    def _make_room(self, address: str) -> None:
        inside = self._inside.get(address, [])
        if len(inside) < self._each:
            return
        seen = Counter[str]()
        oldest = None
        for one in reversed(inside):
            if one.user is not None:
                seen[one.user] += 1
            if one.user is None or seen[one.user] > self._shields:
                oldest = one
        if oldest is None:
            raise _too_many_connections()
        self._leave(address, oldest)
        oldest.end()

    def _leave(self, address: str, one: Handshaking) -> None:
        inside = self._inside.get(address, [])
        if one in inside:
            inside.remove(one)
        if not inside:
            self._inside.pop(address, None)


class StepGate:
    """One step of each key at a time, and the event loop once around between two of them.

    Messages that need nobody else's answer, and rows that wait in a buffer, would be worked off
    without a pause; many connections of one key would do so one after the other.
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    async def step(self, key: str) -> None:
        """Wait until it is this caller's turn; what it does before it waits again is one step."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            await asyncio.sleep(0)


def _too_many_connections() -> TooMany:
    return TooMany("too many connections", sqlstate="53300", hint="try again later")
