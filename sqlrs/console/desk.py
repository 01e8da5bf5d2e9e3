"""What the pages ask of the data and the ledger: the proxy's limits, readers and release path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeVar

from sqlrs.answer import Answer
from sqlrs.console.config import ConsoleConfig
from sqlrs.console.sessions import Sessions
from sqlrs.database import Database
from sqlrs.errors import UsageError
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.backend import Cancellation
from sqlrs.proxy.count_in_flight import Counting
from sqlrs.proxy.logs import log
from sqlrs.proxy.policy.gates import TooMany
from sqlrs.proxy.reading_in_flight import ReadingInFlight
from sqlrs.proxy.service import Offered, Service
from sqlrs.quoting import Quote, Sketch
from sqlrs.records import dataclass
from sqlrs.table_answer import TableAnswer

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Question:
    """What an analyst asks: which data, the text, and the price of the answer and its bars."""

    dataset: str
    sql: str
    epsilon: Decimal
    error_bars: Decimal | None


@dataclass(frozen=True)
class Checked:
    """A question that would be answered, and what of its budget would be left."""

    question: Question
    sketch: Sketch
    quote: Quote
    repeat: bool
    remaining: Decimal | None

    @property
    def price(self) -> Decimal:
        """What it costs now."""
        return Decimal(0) if self.repeat else self.quote.price

    @property
    def after(self) -> Decimal | None:
        """What is left afterwards; below 0 where it does not suffice."""
        return None if self.remaining is None else self.remaining - self.price


@dataclass
class Desk:
    """Everything that the pages share. ``secure``: browsers reach it by TLS."""

    service: Service
    databases: Mapping[str, Database]
    ledger: StoreLedger
    config: ConsoleConfig
    secure: bool
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.service.users, self.config.session_minutes * 60.0)

    def is_owner(self, user: str) -> bool:
        """Whether a user sees the owner's pages."""
        return user in self.config.owners

    def offered(self, name: str) -> Offered:
        """A dataset by the name that clients connect to."""
        found = self.service.datasets.get(name)
        if found is None:
            raise UsageError(f"there is no dataset {name!r}")
        return found

    def question(self, user: str, fields: Mapping[str, str]) -> Question:
        """The question of a form, within the analyst's limits."""
        sql = fields.get("sql", "").strip()
        name = fields.get("dataset", "") or self.service.first.name
        if not sql:
            raise UsageError("there is no query", hint="write one, such as SELECT count(*) FROM …")
        most = self.service.config.limits.statement_characters
        if len(sql) > most:
            raise UsageError(f"a query has at most {most} characters")
        self.offered(name)
        limits = self.service.config.analyst(user)
        epsilon, bars = limits.price(fields.get("epsilon", "").strip(), fields.get("bars", ""))
        return Question(name, sql, epsilon, bars)

    def admit(self, user: str) -> None:
        """Count one request of a user, or refuse it for now."""
        if not self.service.rate.take(user):
            raise TooMany("too many requests", hint="wait a moment and try again")

    async def check(self, user: str, question: Question) -> Checked:
        """Read the text in a process that may be killed, then look up its price; free."""
        offered = self.offered(question.dataset)
        sketch = await offered.readers.sketch(user, question.sql)
        how = {"epsilon": question.epsilon, "error_bars": question.error_bars}

        def price(cancel: Cancellation) -> tuple[Quote, bool, Decimal | None]:
            found, repeat = offered.backend.quote(user, question.sql, **how, cancel=cancel)  # type: ignore[arg-type]
            return found, repeat, offered.backend.remaining(user)

        quote, repeat, remaining = await self._read(user, price)
        return Checked(question, sketch, quote, repeat, remaining)

    async def run(self, user: str, question: Question) -> Answer | TableAnswer:
        """By the one release path, paced and limited as the proxy's answers are."""
        offered = self.offered(question.dataset)
        await offered.readers.sketch(user, question.sql)
        counting = Counting(
            self.service,
            user,
            lambda cancel, hold: offered.backend.answer(
                user,
                question.sql,
                epsilon=question.epsilon,
                error_bars=question.error_bars,
                cancel=cancel,
                hold=hold,
            ),
        )
        answer = await counting.run()
        self.service.metrics.count("sqlrs_answers_total", analyst=user)
        log("answered", analyst=user, epsilon=f"{answer.epsilon:f}", repeated=answer.repeated)
        return answer

    async def _read(self, user: str, work: Callable[[Cancellation], _Found]) -> _Found:
        return await ReadingInFlight(self.service, user, work).run()
