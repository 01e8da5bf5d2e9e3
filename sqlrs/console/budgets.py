"""Budgets as the owner's gauges: what is used, how fast, and until when it lasts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from sqlrs.console.desk import Desk
from sqlrs.ledger import Kind, PrivacyBudget
from sqlrs.ledger.overview import Activity
from sqlrs.records import dataclass

DAYS = 30
_FARTHEST_DAYS = 36_500


@dataclass(frozen=True)
class Gauge:
    """A budget with its use of the last days."""

    budget: PrivacyBudget
    activity: Activity
    database: str = ""

    @property
    def share(self) -> int:
        """How much of the cap is used, in hundredths."""
        cap = self.budget.cap
        return 100 if not cap else int(min(Decimal(100), 100 * self.budget.counted / cap))

    @property
    def per_day(self) -> Decimal:
        """What a day cost, of late."""
        return (self.activity.lately / DAYS).quantize(Decimal("0.0001"))

    @property
    def exhausted_on(self) -> date | None:
        """When nothing is left if it goes on like this; None if nothing is used."""
        if not self.activity.lately:
            return None
        days = self.budget.remaining * DAYS / self.activity.lately
        if days > _FARTHEST_DAYS:
            return None
        return (datetime.now(UTC) + timedelta(days=float(days))).date()

    @property
    def state(self) -> str:
        """In a word."""
        if self.budget.expired:
            return "expired"
        if not self.budget.cap:
            return "closed"
        return "open" if self.budget.remaining else "used up"


def dataset_gauges(desk: Desk) -> list[Gauge]:
    """One for each dataset that is served."""
    used = desk.ledger.activity(Kind.DATASET, DAYS)
    return [
        Gauge(desk.ledger.budget(dataset=one.dataset), used.get(one.dataset, Activity()), database)
        for database, one in desk.databases.items()
    ]


def analyst_rows(desk: Desk) -> list[Gauge]:
    """One for each user who is no owner, and for everybody else who has a budget."""
    used = desk.ledger.activity(Kind.ANALYST, DAYS)
    budgets = {one.name: one for one in desk.ledger.show() if one.kind is Kind.ANALYST}
    users = [name for name in desk.service.users.names() if not desk.is_owner(name)]
    nothing = Decimal(0)
    return [
        Gauge(
            budgets.get(name) or PrivacyBudget(Kind.ANALYST, name, nothing, nothing),
            used.get(name, Activity()),
        )
        for name in sorted({*users, *budgets})
    ]
