"""Sizes of tables and how often values repeat in a column: they guide plans and never leave them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Statistics:
    """What was read about the tables of a query. Private: its text tells nothing."""

    def __repr__(self) -> str:
        return "Statistics(private)"
