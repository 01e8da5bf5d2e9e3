"""Where a SELECT stands inside a query: the names and rows in sight, its role, its prefix."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrs.compiler.names import Scope
from sqlrs.records import dataclass


@dataclass(frozen=True, eq=False)
class CommonTable:
    """A CTE and the names that were in sight where it was defined."""

    tree: exp.CTE
    known: Mapping[str, CommonTable]


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Where a SELECT stands: its CTEs, the rows it may be correlated with, its role, its name."""

    known: Mapping[str, CommonTable]
    parent: Scope | None
    outer: bool
    prefix: str
    views: frozenset[tuple[str | None, str]] = frozenset()


OUTERMOST = Surroundings({}, None, True, "")


def within(place: Surroundings, name: str) -> Surroundings:
    """The same place, in what is called ``name``."""
    prefix = f"{place.prefix}_{name}" if place.prefix and name else place.prefix or name
    return Surroundings(place.known, place.parent, place.outer, prefix, place.views)
