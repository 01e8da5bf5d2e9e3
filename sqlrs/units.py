"""Who is protected where it is more than a row: a unit, and how a private row names its owners."""

from __future__ import annotations

from sqlrs.records import dataclass

ROW = "row"
"""What is protected where there is no unit: each row by itself."""


@dataclass(frozen=True)
class Link:
    """Columns that hold a key of another table, whose row has the same owner."""

    columns: tuple[str, ...]
    table: tuple[str | None, str]
    key: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns or len(self.columns) != len(self.key):
            raise ValueError("a link has as many columns as the key that they hold")


@dataclass(frozen=True)
class Owner:
    """Where a row names one of its owners: in a ``column`` of the table at the end of the links.

    A row that one of these steps leads nowhere from, or whose id is NULL, has no owner: it takes
    part in nothing.
    """

    column: str
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Unit:
    """What is protected, with all rows that it owns: the unit with an id such as ``name`` holds.

    ``name``: ``table.column`` of the ids, in words of the owner's, such as ``patient.id``.
    """

    name: str
