"""Who is logged in: random tokens for browsers, kept here as digests, ended by time or password."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field

from sqlrs.answer import Answer
from sqlrs.proxy.users import Users
from sqlrs.records import dataclass
from sqlrs.table_answer import TableAnswer

_LONGEST_SECONDS = 12 * 3600.0
_MOST = 10_000
_MOST_OF_ONE = 20
_KEPT_ANSWERS = 5


@dataclass
class BrowserSession:
    """One browser of one user. ``answers``: the latest ones, for downloads."""

    user: str
    mark: bytes
    began: float
    seen: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    answers: OrderedDict[str, Answer | TableAnswer] = field(default_factory=OrderedDict)

    def keep(self, answer: Answer | TableAnswer) -> str:
        """Keep an answer for its download; the name is known to this browser alone."""
        name = secrets.token_urlsafe(12)
        self.answers[name] = answer
        while len(self.answers) > _KEPT_ANSWERS:
            self.answers.popitem(last=False)
        return name

    def allows(self, token: str) -> bool:
        """Whether a form was made for this session."""
        return hmac.compare_digest(token.encode(), self.csrf.encode())


class Sessions:
    """All sessions of this process; a restart ends them."""

    def __init__(
        self, users: Users, idle_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._users = users
        self._idle = idle_seconds
        self._clock = clock
        self._sessions: OrderedDict[bytes, BrowserSession] = OrderedDict()

    def begin(self, user: str) -> tuple[str, BrowserSession]:
        """A new session and its token, for a user whose password was right."""
        now, mark = self._clock(), self._users.mark(user)
        if mark is None:
            raise ValueError("there is no such user")
        own = [key for key, one in self._sessions.items() if one.user == user]
        for key in own[: max(0, len(own) - _MOST_OF_ONE + 1)]:
            del self._sessions[key]
        while len(self._sessions) >= _MOST:
            self._sessions.popitem(last=False)
        token = secrets.token_urlsafe(32)
        session = BrowserSession(user, mark, now, now)
        self._sessions[_digest(token)] = session
        return token, session

    def find(self, token: str) -> BrowserSession | None:
        """The session of a token, unless it is over."""
        key, now = _digest(token), self._clock()
        session = self._sessions.get(key)
        if session is None:
            return None
        mark = self._users.mark(session.user)
        fresh = now - session.seen < self._idle and now - session.began < _LONGEST_SECONDS
        if not fresh or mark is None or not hmac.compare_digest(mark, session.mark):
            del self._sessions[key]
            return None
        session.seen = now
        return session

    def end(self, token: str) -> None:
        """Forget a session."""
        self._sessions.pop(_digest(token), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
