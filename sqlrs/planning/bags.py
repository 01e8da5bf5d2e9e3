"""The steps of a factorised evaluation: joins, and groupings that sum out what is not needed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from sqlrs.planning.canonical import Canonical, canonical
from sqlrs.planning.leaves import Completions, Leaf, TableRows
from sqlrs.planning.problem import Condition
from sqlrs.query import Variable
from sqlrs.records import dataclass


@dataclass(frozen=True)
class Join:
    """A bag: inputs joined on their common variables, and the conditions that can be read there."""

    inputs: tuple[Input, ...]
    conditions: tuple[Condition, ...] = ()

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables of all inputs."""
        return frozenset[Variable]().union(*(one.variables for one in self.inputs))

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """All leaves at or below the inputs."""
        return tuple(
            leaf
            for one in self.inputs
            for leaf in ((one,) if isinstance(one, Leaf) else one.join.leaves)
        )

    @cached_property
    def applied(self) -> frozenset[Condition]:
        """All conditions at or below this join."""
        return frozenset(self.conditions).union(
            *(one.join.applied for one in self.inputs if isinstance(one, Grouping))
        )

    @property
    def steps(self) -> Iterator[Grouping]:
        """The groupings below, innermost first."""
        for one in self.inputs:
            if isinstance(one, Grouping):
                yield from one.join.steps
                yield one


@dataclass(frozen=True)
class Grouping:
    """The results of a join counted per value of ``keep``.

    Where outputs are counted, ``distinct`` holds the variables whose combinations count once; it
    equals ``keep`` as long as a variable that is not output is still needed.
    ``largest`` takes the largest count of its one input instead of the sum. ``opened``: the results
    themselves, for a join above that sums them up.
    """

    join: Join
    keep: frozenset[Variable]
    distinct: frozenset[Variable] | None = None
    output: frozenset[Variable] | None = None
    largest: bool = False
    opened: bool = False

    @property
    def variables(self) -> frozenset[Variable]:
        """What the step provides."""
        return self.keep

    @property
    def counted(self) -> bool:
        """Whether a row carries a number of results, or stands for one."""
        if self.distinct == self.keep or self.unique or self.opened:
            return any(is_counted(one) for one in self.join.inputs)
        return True

    @cached_property
    def unique(self) -> bool:
        """Whether no two rows of the join agree on ``keep``, so that nothing is to be summed."""
        return not self.largest and self.distinct is None and unique_rows(self.join, self.keep)

    @cached_property
    def one_row_each(self) -> bool:
        """Whether each combination that counts once is one row of the join anyway."""
        return bool(self.distinct) and once_each(self.join, self.distinct or frozenset())

    @cached_property
    def canonical(self) -> Canonical:
        """What the step computes, without names."""
        outer = self.join.variables if self.largest else frozenset[Variable]()
        output = self.output or frozenset[Variable]()
        marks: dict[Variable, Hashable] = {
            v: (v in self.keep, v in outer, v in output)
            for leaf in self.join.leaves
            for v in leaf.variables
        }
        kind = (self.largest, self.output is None, self.counted, self.opened)
        return canonical(self.join.leaves, self.join.applied, marks, kind)


def unique_rows(join: Join, keep: frozenset[Variable]) -> bool:
    """Whether a bag has at most one row for each value of the variables."""
    return bool(keep) and all(
        one.variables <= keep and (isinstance(one, Grouping) or bool(one.keys))
        for one in join.inputs
    )


def once_each(join: Join, known: frozenset[Variable]) -> bool:
    """Whether values of the variables decide the row of every input, so that none comes twice."""
    waiting = list(join.inputs)
    while waiting:
        found = [one for one in waiting if any(key <= known for key in _keys(one))]
        if not found:
            return False
        known = known.union(*(one.variables for one in found))
        waiting = [one for one in waiting if one not in found]
    return True


def _keys(one: Input) -> Iterable[frozenset[Variable]]:
    return (one.keep,) if isinstance(one, Grouping) else one.keys


def is_counted(one: Input) -> bool:
    """Whether a row of the input carries a number of results."""
    return one.counted


def is_table(one: Input) -> bool:
    """Whether the input is read as it stands in the database."""
    return isinstance(one, TableRows | Completions)


Input = Leaf | Grouping


def placed(join: Join, conditions: Sequence[Condition]) -> tuple[Join, frozenset[Condition]]:
    """The join with each condition at the lowest steps that hold its variables, and those held."""
    inputs: list[Input] = []
    below: set[Condition] = set()
    for one in join.inputs:
        if isinstance(one, Grouping):
            inner, applied = placed(one.join, conditions)
            below |= applied
            one = replace(one, join=inner)
        inputs.append(one)
    here = tuple(c for c in conditions if c not in below and c.variables <= join.variables)
    return Join(tuple(inputs), here), frozenset(below.union(here))


def described(variables: Iterable[Variable]) -> str:
    """Variables for people."""
    return ", ".join(map(str, sorted(variables)))
