"""A residual as a sum of products: leaves joined on variables, conditions, and the free variables.

The value of a problem is a function of its free variables: the number of combinations of leaf rows
(or of distinct outputs) that agree with them and satisfy every condition. A combination counts the
product of what its rows count. docs/planner.md explains the terms, docs/proofs/plans.md proves the
rewrites.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from sqlrs.planning.leaves import Leaf, TableRows, weights_of
from sqlrs.query import Comparison, General, Inequality, Predicate, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual


@dataclass(frozen=True)
class Equal:
    """Two free variables that an identification of variables makes equal."""

    left: Variable
    right: Variable

    @property
    def variables(self) -> frozenset[Variable]:
        """Both variables."""
        return frozenset((self.left, self.right))

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True)
class Above:
    """The rank of one variable is above that of another."""

    left: Variable
    right: Variable

    @property
    def variables(self) -> frozenset[Variable]:
        """Both variables."""
        return frozenset((self.left, self.right))

    def __str__(self) -> str:
        return f"{self.left} above {self.right}"


@dataclass(frozen=True)
class Renamed:
    """A predicate in which variables were identified with others."""

    predicate: Comparison | General
    image: tuple[tuple[Variable, Variable], ...]

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables that stand in for the predicate's own."""
        return frozenset(v for _, v in self.image)

    def __str__(self) -> str:
        return f"{self.predicate} with {', '.join(f'{a} = {b}' for a, b in self.image)}"


Other = Comparison | General | Renamed | Equal | Above
Condition = Predicate | Renamed | Equal | Above


def substituted(condition: Other, image: Mapping[Variable, Variable]) -> Other:
    """The condition with variables replaced; an ``Equal`` holds free ones, which stay."""
    if isinstance(condition, Equal) or condition.variables.isdisjoint(image):
        return condition
    if isinstance(condition, Above):
        return Above(
            image.get(condition.left, condition.left), image.get(condition.right, condition.right)
        )
    if isinstance(condition, Renamed):
        renamed = tuple((a, image.get(b, b)) for a, b in condition.image)
        return Renamed(condition.predicate, renamed)
    return Renamed(condition, tuple((v, image.get(v, v)) for v in sorted(condition.variables)))


@dataclass(frozen=True)
class Problem:
    """What is to be counted, for each value of the free variables."""

    leaves: tuple[Leaf, ...]
    free: frozenset[Variable]
    inequalities: frozenset[Inequality] = frozenset()
    others: tuple[Other, ...] = ()
    output: frozenset[Variable] | None = None

    def __post_init__(self) -> None:
        if self.output is not None and any(map(weights_of, self.leaves)):
            raise ValueError("of distinct outputs each counts once, and no leaf has a weight")

    @classmethod
    def of(cls, residual: Residual) -> Problem:
        """The residual's count for each value of its boundary."""
        never_null = residual.query.never_null
        return cls(
            leaves=tuple(TableRows.of(atom, never_null) for atom in residual.atoms),
            free=residual.boundary,
            inequalities=residual.inequalities,
            others=(*sorted(residual.comparisons, key=str), *residual.generals),
            output=residual.output,
        )

    def freed(self, decided: frozenset[Variable]) -> Problem:
        """The problem in which what the free variables decide is free too, where leaves share it.

        It changes no count, and the leaves then meet in free variables alone. Without a free
        variable the result is one number, not the largest of several.
        """
        held = Counter(v for leaf in self.leaves for v in leaf.variables)
        shared = frozenset(v for v in decided if held[v] > 1)
        return replace(self, free=self.free | shared) if self.free else self

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, in order."""
        return tuple(sorted(frozenset[Variable]().union(*(x.variables for x in self.leaves))))

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, in a stable order."""
        return (*sorted(self.inequalities, key=lambda p: (p.left, p.right)), *self.others)

    def restricted(self, leaves: Iterable[Leaf]) -> Problem:
        """The problem joined with further leaves."""
        return replace(self, leaves=(*leaves, *self.leaves))
