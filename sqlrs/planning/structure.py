"""All of a problem that its cheapest tree depends on; variables and leaves are numbers."""

from __future__ import annotations

from collections.abc import Mapping

from sqlrs.planning.estimate import LeafSize, Mask, mask_of
from sqlrs.planning.problem import Above, Condition, Problem
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Inequality, Variable
from sqlrs.records import dataclass


@dataclass(frozen=True)
class Structure:
    """Sizes of leaves, and sets of variables as bits.

    ``spans`` are the variables that a condition needs together and that no leaf holds alone,
    ``ordered`` the pairs of which one has the greater rank.
    """

    leaves: tuple[LeafSize, ...]
    free: Mask
    spans: tuple[Mask, ...]
    output: Mask | None
    ordered: tuple[Mask, ...]

    @classmethod
    def of(
        cls,
        problem: Problem,
        statistics: Statistics,
        forced: frozenset[Inequality],
        number: Mapping[Variable, int],
    ) -> Structure:
        """The structure of a problem in which the ``forced`` inequalities are read in bags."""
        kept: list[Condition] = [*problem.others, *forced]
        free = mask_of(problem.free, number)
        # A condition on variables of one leaf demands nothing: the bag of that leaf reads it.
        single = [mask_of(leaf.variables, number) for leaf in problem.leaves]
        spans = {mask_of(c.variables, number) for c in kept}
        ordered = {mask_of(c.variables, number) for c in kept if isinstance(c, Above)}
        return cls(
            tuple([LeafSize.of(leaf, statistics, number) for leaf in problem.leaves]),
            free,
            tuple(sorted(s for s in spans if all(s & ~variables for variables in single))),
            None if problem.output is None else mask_of(problem.output, number) | free,
            tuple(sorted(ordered)),
        )


def numbered(problem: Problem) -> dict[Variable, int]:
    """The variables by number, in the order of the leaves, so that names do not matter."""
    number: dict[Variable, int] = {}
    for leaf in problem.leaves:
        for _, variable in leaf.columns:
            number.setdefault(variable, len(number))
    return number
