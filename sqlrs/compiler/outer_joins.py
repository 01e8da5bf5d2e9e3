"""What an outer join is a sum of: the join, and the rows of a side less those with a partner."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sqlrs.records import dataclass


class Role(Enum):
    """What becomes of a side of an outer join in one part of it."""

    SHOWN = 1
    PARTNER = 2  # there must be one: its columns are NULL outside the join's own condition
    ABSENT = 3


@dataclass(frozen=True)
class JoinPart:
    """One count of the sum that an outer join is, and how often it counts."""

    coefficient: int
    left: Role = Role.SHOWN
    right: Role = Role.SHOWN


_LEFT = (JoinPart(1, right=Role.ABSENT), JoinPart(-1, right=Role.PARTNER))
_RIGHT = (JoinPart(1, left=Role.ABSENT), JoinPart(-1, left=Role.PARTNER))
OUTER: Mapping[str, tuple[JoinPart, ...]] = {
    "LEFT": (JoinPart(1), *_LEFT),
    "RIGHT": (JoinPart(1), *_RIGHT),
    "FULL": (JoinPart(1), *_LEFT, *_RIGHT),
}
"""The parts of each kind of outer join; the first is the join itself."""
