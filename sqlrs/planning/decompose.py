"""Problem -> the cheapest tree of joins and groupings: variable elimination as a search over sets.

A set of leaves is joined from two smaller ones, each as it is or grouped by what the rest of the
problem still needs. Small problems are searched exhaustively, large ones greedily. Of two joined
sets one is a single relation: engines join that way, and a result that both sides share is grouped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from sqlrs.planning.estimate import (
    BUILD,
    GROUP,
    GROUP_ROW,
    PROBE,
    STEP,
    Mask,
    Sized,
    extended,
    grouped,
    leaf_size,
    mask_of,
)
from sqlrs.planning.problem import Condition, Problem
from sqlrs.planning.statistics import Statistics
from sqlrs.planning.tree import Grouping, Input, Join, placed
from sqlrs.query import Inequality, Variable

_EXHAUSTIVE = 5


@dataclass(frozen=True)
class Decomposition:
    """A tree with all conditions that it can read, its cost, and the inequalities it cannot."""

    join: Join
    cost: float
    uncovered: frozenset[Inequality]


class _Part:
    """A set of leaves joined so far, not yet grouped: its inputs, expected rows and cost."""

    __slots__ = ("cost", "inputs", "leaves", "rows", "small", "weight")

    def __init__(self, leaves: Mask, inputs: tuple[_Step, ...], rows: float, cost: float) -> None:
        self.leaves = leaves
        self.inputs = inputs
        self.rows = rows
        self.cost = cost
        self.weight = cost + GROUP_ROW * rows
        self.small = any(step.small for step in inputs)

    @property
    def present(self) -> Mask:
        """The variables that are not summed out yet."""
        return sum_of(step.sized.mask for step in self.inputs)


@dataclass(frozen=True, slots=True)
class _Step:
    """An input of a part: a leaf, or a part that was grouped."""

    sized: Sized
    leaf: int = -1
    part: _Part | None = None
    keep: Mask = 0
    small: bool = False


def decompose(
    problem: Problem, statistics: Statistics, forced: frozenset[Inequality]
) -> Decomposition:
    """The cheapest tree found in which the ``forced`` inequalities are read inside one bag."""
    return _Search(problem, statistics, forced).best()


class _Search:
    def __init__(
        self, problem: Problem, statistics: Statistics, forced: frozenset[Inequality]
    ) -> None:
        self.problem = problem
        self.names: tuple[Variable, ...] = problem.variables
        number = {v: i for i, v in enumerate(self.names)}
        self.free = mask_of(problem.free, number)
        self.sizes = [leaf_size(leaf, statistics, number) for leaf in problem.leaves]
        self.everything = (1 << len(self.sizes)) - 1
        kept: list[Condition] = [*problem.others, *forced]
        self.spans = [mask_of(c.variables, number) for c in kept]
        self.held: dict[Mask, Mask] = {}
        self.output = (
            None if problem.output is None else mask_of(problem.output, number) | self.free
        )

    def best(self) -> Decomposition:
        parts = [self._component(component) for component in self._components()]
        if len(parts) == 1:
            part = parts[0]
        else:
            steps = [self._step(part) for part in parts]
            rows = math.prod(s.sized.rows for s in steps)
            cost = rows + sum(_grouping_cost(p, s) for p, s in zip(parts, steps, strict=True))
            part = _Part(self.everything, tuple(steps), rows, cost)
        join, held = placed(self._join(part), self.problem.conditions)
        missing = frozenset(self.problem.conditions) - held
        return Decomposition(
            join,
            part.cost + self._finish(part),
            frozenset(c for c in missing if isinstance(c, Inequality)),
        )

    def _components(self) -> list[Mask]:
        remaining, found = self.everything, []
        while remaining:
            component = remaining & -remaining
            while True:
                near = component
                for i in range(len(self.sizes)):
                    if remaining >> i & 1 and not near >> i & 1 and self._touch(near, 1 << i):
                        near |= 1 << i
                if near == component:
                    break
                component = near
            found.append(component)
            remaining &= ~component
        return found

    def _variables(self, leaves: Mask) -> Mask:
        if leaves not in self.held:
            self.held[leaves] = sum_of(
                size.mask for i, size in enumerate(self.sizes) if leaves >> i & 1
            )
        return self.held[leaves]

    def _touch(self, one: Mask, other: Mask) -> bool:
        """Whether two sets of leaves share a variable or a condition."""
        here, there = self._variables(one), self._variables(other)
        return bool(here & there) or any(s & here and s & there for s in self.spans)

    def _component(self, component: Mask) -> _Part:
        if component.bit_count() <= _EXHAUSTIVE:
            return self._exhaustive(component)
        return self._greedy(component)

    def _single(self, i: int) -> _Part:
        return _Part(1 << i, (self._leaf(i),), self.sizes[i].rows, 0.0)

    def _leaf(self, i: int) -> _Step:
        small = isinstance(self.problem.leaves[i].table, str)
        return _Step(self.sizes[i], leaf=i, small=small)

    def _exhaustive(self, component: Mask) -> _Part:
        table: dict[Mask, list[_Part]] = {}
        indices = [i for i in range(len(self.sizes)) if component >> i & 1]
        for size in range(1, len(indices) + 1):
            for chosen in combinations(indices, size):
                leaves = sum_of(1 << i for i in chosen)
                raw = self._single(chosen[0]) if size == 1 else self._best_split(leaves, table)
                if raw is not None:
                    table[leaves] = [raw] if leaves == component else self._options(raw)
        return min(table[component], key=lambda part: part.cost + self._finish(part))

    def _best_split(self, leaves: Mask, table: dict[Mask, list[_Part]]) -> _Part | None:
        """The cheapest join of two parts that make up ``leaves``, None if nothing connects them."""
        best: _Part | None = None
        least = math.inf
        for half in _halves(leaves):
            others = table.get(leaves ^ half)
            if others is None or half not in table or not self._touch(half, leaves ^ half):
                continue
            for one in table[half]:
                for other in others:
                    # Equal steps of both sides cost once, so the sum of costs is no lower bound.
                    if max(one.cost, other.cost) >= least:
                        continue
                    if len(one.inputs) > 1 and len(other.inputs) > 1:
                        continue
                    part = self._joined(one, other)
                    if part.weight < least:
                        best, least = part, part.weight
        return best

    def _greedy(self, component: Mask) -> _Part:
        parts = [
            self._options(self._single(i)) for i in range(len(self.sizes)) if component >> i & 1
        ]
        known: dict[tuple[Mask, Mask], _Part | None] = {}
        while len(parts) > 1:
            found: list[tuple[float, int, int, _Part]] = []
            for i, j in combinations(range(len(parts)), 2):
                pair = (parts[i][0].leaves, parts[j][0].leaves)
                if pair not in known:
                    touching = self._touch(*pair)
                    known[pair] = self._best_pair(parts[i], parts[j]) if touching else None
                part = known[pair]
                if part is not None:
                    found.append((part.weight, i, j, part))
            _, i, j, part = min(found, key=lambda f: f[:3])
            parts = [p for k, p in enumerate(parts) if k not in (i, j)]
            parts.append([part] if part.leaves == component else self._options(part))
        return parts[0][0]

    def _best_pair(self, left: list[_Part], right: list[_Part]) -> _Part:
        options = [
            self._joined(one, other)
            for one in left
            for other in right
            if len(one.inputs) == 1 or len(other.inputs) == 1
        ]
        return min(options, key=lambda part: part.weight)

    def _options(self, part: _Part) -> list[_Part]:
        """The part as it is, grouped, and grouped after a filter by leaves that the rest joins."""
        options = [self._barred(part)]
        one = part.inputs[0].sized
        step = self._step(part)
        if len(part.inputs) > 1 or step.sized.mask != one.mask or not one.keys:
            options.append(self._grouped(part, step))
        filtered = self._filtered(part)
        if filtered is not None:
            options.append(self._grouped(filtered, self._step(filtered)))
        return options

    def _barred(self, part: _Part) -> _Part:
        """The part as it is; with a small restricting leaf in it a step of its own.

        No engine knows how small such a leaf is: what it thins out must be joined first.
        """
        if len(part.inputs) == 1 or not part.small:
            return part
        mask = part.present
        step = self._as_step(part, mask)
        return _Part(part.leaves, (step,), part.rows, part.cost + GROUP * part.rows + STEP)

    def _filtered(self, part: _Part) -> _Part | None:
        """The part joined with each unique leaf outside that it has all variables of.

        Such a leaf counts a combination once or not at all, so reading it twice changes nothing.
        """
        there = part.present
        inputs, rows, cost = part.inputs, part.rows, part.cost
        for i, size in enumerate(self.sizes):
            if part.leaves >> i & 1 or size.mask & ~there or not size.keys:
                continue
            filtered = extended(rows, [s.sized for s in inputs], size)
            cost += BUILD * size.rows + PROBE * rows + filtered
            rows = filtered
            inputs = (*inputs, self._leaf(i))
        if len(inputs) == len(part.inputs):
            return None
        return _Part(part.leaves, inputs, rows, cost)

    def _grouped(self, part: _Part, step: _Step) -> _Part:
        return _Part(part.leaves, (step,), step.sized.rows, _grouping_cost(part, step))

    def _step(self, part: _Part) -> _Step:
        keep, _ = self._kept(part)
        return self._as_step(part, keep)

    def _as_step(self, part: _Part, keep: Mask) -> _Step:
        sized = grouped([s.sized for s in part.inputs], part.rows, keep)
        return _Step(sized, part=part, keep=keep, small=part.small)

    def _kept(self, part: _Part) -> tuple[Mask, Mask | None]:
        """What a grouping keeps, and the variables whose combinations it counts once."""
        inside = self._variables(part.leaves)
        needed = self.free | self._variables(self.everything & ~part.leaves)
        for span in self.spans:
            if span & ~inside:
                needed |= span
        keep = inside & needed
        if self.output is None:
            return keep, None
        if keep & ~self.output:
            keep |= part.present & self.output
            return keep, keep
        return keep, keep | part.present & self.output

    def _joined(self, one: _Part, other: _Part) -> _Part:
        left, right = (one, other) if len(other.inputs) == 1 else (other, one)
        rows = extended(left.rows, [s.sized for s in left.inputs], right.inputs[0].sized)
        if len(left.inputs) == 1:
            back = extended(right.rows, [right.inputs[0].sized], left.inputs[0].sized)
            rows = min(rows, back)
        small, large = sorted((one.rows, other.rows))
        cost = one.cost + other.cost + BUILD * small + PROBE * large + rows
        cost -= _shared(one, other)
        return _Part(one.leaves | other.leaves, (*one.inputs, *other.inputs), rows, cost)

    def _finish(self, part: _Part) -> float:
        """What the last grouping costs; none is needed without free variables or on unique rows."""
        if not self.free:
            return 0.1 * part.rows
        if all(s.sized.mask & ~self.free == 0 and s.sized.keys for s in part.inputs):
            return 0.1 * part.rows
        out = grouped([s.sized for s in part.inputs], part.rows, self.free)
        return GROUP_ROW * part.rows + GROUP * out.rows

    def _join(self, part: _Part) -> Join:
        return Join(tuple(self._input(step) for step in part.inputs))

    def _input(self, step: _Step) -> Input:
        if step.part is None:
            return self.problem.leaves[step.leaf]
        keep, distinct = self._kept(step.part)
        if step.keep != keep:
            distinct = None if distinct is None else step.keep
        return Grouping(
            self._join(step.part),
            self._named(step.keep),
            None if distinct is None else self._named(distinct),
            self.problem.output,
        )

    def _named(self, mask: Mask) -> frozenset[Variable]:
        return frozenset(v for i, v in enumerate(self.names) if mask >> i & 1)


def _grouping_cost(part: _Part, step: _Step) -> float:
    return part.cost + GROUP_ROW * part.rows + GROUP * step.sized.rows + STEP


def _shared(one: _Part, other: _Part) -> float:
    """What is saved because two steps are the same but for names, as far as their sizes tell."""
    saved = 0.0
    for s in other.inputs:
        if s.part is None:
            continue
        for t in one.inputs:
            if (
                t.part is not None
                and math.isclose(s.sized.rows, t.sized.rows)
                and math.isclose(s.part.cost, t.part.cost)
            ):
                saved += _grouping_cost(s.part, s)
                break
    return saved


def sum_of(masks: Iterable[Mask]) -> Mask:
    """The union of masks."""
    total = 0
    for mask in masks:
        total |= mask
    return total


def _halves(leaves: Mask) -> Iterator[Mask]:
    """Every proper subset that holds the lowest leaf: one side of each split."""
    lowest = leaves & -leaves
    rest = leaves ^ lowest
    subset = rest
    while subset:
        subset = (subset - 1) & rest
        yield subset | lowest
