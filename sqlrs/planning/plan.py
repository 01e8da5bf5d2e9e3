"""A plan: how one residual is evaluated, as a value that prints itself and its SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from sqlrs import emit
from sqlrs.residuals import Residual

HOW = ("auto", "plain", "factorised", "pruned")


class Plan(Protocol):
    """How one residual is evaluated. Every plan of a residual yields the identical number."""

    @property
    def residual(self) -> Residual:
        """What is evaluated."""
        ...

    @property
    def name(self) -> str:
        """The kind of plan, one of ``HOW`` but not ``auto``."""
        ...

    def statement(self) -> exp.Select:
        """A statement that yields T_E as one integer, 0 where the join is empty."""
        ...

    def lines(self) -> list[str]:
        """The plan for people: its steps and why it was chosen. Nothing here depends on data."""
        ...


@dataclass(frozen=True)
class Plain:
    """Join everything, group by the boundary, take the largest count."""

    residual: Residual
    reason: str = "asked for"
    name: str = "plain"

    def statement(self) -> exp.Select:
        """The definition of T_E as SQL."""
        return emit.plain(self.residual)

    def lines(self) -> list[str]:
        """One line: the join and the grouping."""
        atoms = ", ".join(atom.alias for atom in self.residual.atoms)
        boundary = ", ".join(map(str, sorted(self.residual.boundary)))
        then = f", count per value of {boundary}, largest" if boundary else ", count"
        return [f"join {atoms}{then}", f"reason: {self.reason}"]
