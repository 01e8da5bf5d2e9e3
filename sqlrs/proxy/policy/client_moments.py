"""Dates and times as clients write them in a parameter, read as PostgreSQL reads them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

# A driver that does not know the column's type sends the longest form: JDBC's setDate a date with
# a zone, its setTimestamp a time with one.
_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?"
    r"(?: ?(Z|[+-]\d\d(?::?\d\d(?::\d\d)?)?))?",
    re.ASCII,
)
_MOST_HOURS = 15


def read_date(text: str) -> date:
    """A date; a time of day and a zone behind it say nothing about it."""
    return _read(text)[0].date()


def read_time(text: str) -> datetime:
    """A timestamp without zone; PostgreSQL does not look at a zone that is written to it."""
    return _read(text)[0]


def read_zoned_time(text: str) -> datetime:
    """A timestamp with zone, in UTC. Without one it would depend on the session: a ValueError."""
    moment, zone = _read(text)
    if zone is None:
        raise ValueError
    return moment.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)


def _read(text: str) -> tuple[datetime, timezone | None]:
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        raise ValueError
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micro = int((match[7] or "0").ljust(6, "0"))
    return datetime(year, month, day, hour, minute, second, micro), _zone(match[8])


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = (int(digits[at : at + 2]) for at in (0, 2, 4))
    if hours > _MOST_HOURS or max(minutes, seconds) > 59:
        raise ValueError
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if text[0] == "-" else offset)
