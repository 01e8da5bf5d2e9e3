"""Budget windows: the stretch of time that a moment falls into, and until when a grant lasts.

All of it is by UTC. The name of a window sorts as its time does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta

from sqlrs.errors import UsageError

NEVER = "never"
_LAST_YEAR = 9000


def _day(moment: datetime) -> date:
    return moment.date()


def _week(moment: datetime) -> date:
    return moment.date() - timedelta(days=moment.weekday())


def _month(moment: datetime) -> date:
    return moment.date().replace(day=1)


def _year(moment: datetime) -> date:
    return moment.date().replace(month=1, day=1)


# The first day of the window that a moment falls into, and a number of days that leads from there
# into the next one and not beyond it.
_FIRST_DAY: dict[str, tuple[Callable[[datetime], date], int]] = {
    "daily": (_day, 1),
    "weekly": (_week, 7),
    "monthly": (_month, 31),
    "yearly": (_year, 366),
}
RENEWALS = tuple(_FIRST_DAY)


def window_of(renew: str, moment: datetime) -> str:
    """The window that a moment falls into, named after its first day: ``2026-11-01``."""
    return _FIRST_DAY[renew][0](moment.astimezone(UTC)).isoformat()


def window_start(window: str) -> datetime:
    """The first moment of a window."""
    return datetime.combine(date.fromisoformat(window), time(), UTC)


def window_end(renew: str, window: str) -> datetime:
    """The first moment after a window, which belongs to the next one."""
    first_day, days = _FIRST_DAY[renew]
    later = window_start(window) + timedelta(days=days)
    return datetime.combine(first_day(later), time(), UTC)


def parse_renewal(value: str) -> str:
    """How often a budget is renewed; ``never`` is the empty text."""
    if value == NEVER:
        return ""
    if value not in RENEWALS:
        raise UsageError(
            f"a budget is not renewed {value!r}", hint=f"{', '.join(RENEWALS)}, or {NEVER}"
        )
    return value


def parse_expiry(value: datetime | str, now: datetime) -> datetime | None:
    """Until when a grant lasts: a moment with its zone, a day to its end in UTC, or ``never``."""
    if value == NEVER:
        return None
    moment = value if isinstance(value, datetime) else _written(value)
    if moment is None or moment.tzinfo is None:
        raise UsageError(
            "a grant expires at a day, or at a moment that names its time zone",
            hint=f"such as 2026-12-31 (to its end, UTC), 2026-12-31T12:00:00+00:00, or {NEVER}",
        )
    if not now < moment or moment.year > _LAST_YEAR:
        raise UsageError(
            "a grant expires in the time to come", hint="to close a budget now, revoke it"
        )
    return moment.astimezone(UTC)


def _written(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        if len(text) == len("2026-12-31"):
            return datetime.combine(date.fromisoformat(text), time(), UTC) + timedelta(days=1)
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
