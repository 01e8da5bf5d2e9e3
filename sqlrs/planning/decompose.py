"""Problem -> the cheapest tree of joins and groupings: variable elimination as a search over sets.

A set of leaves is joined from two smaller ones, each as it is or grouped by what the rest of the
problem still needs. Small problems are searched exhaustively, large ones greedily. Of two joined
sets one is a single relation: engines join that way, and a result that both sides share is grouped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from sqlrs.planning.bags import Grouping, Input, Join, placed
from sqlrs.planning.estimate import (
    BUILD,
    GROUP,
    GROUP_ROW,
    PROBE,
    STEP,
    LeafSize,
    Mask,
    Sized,
    extended,
    grouped,
    mask_of,
)
from sqlrs.planning.problem import Above, Condition, Problem
from sqlrs.planning.statistics import Statistics
from sqlrs.query import Inequality, Variable

_EXHAUSTIVE = 5
# Of three different values one is the largest, so of the pairs where it exceeds one of the others
# two in three are those where it exceeds both.
_IN_ORDER = 2 / 3


@dataclass(frozen=True)
class Decomposition:
    """A tree with all conditions that it can read, its cost, and the inequalities it cannot."""

    join: Join
    cost: float
    uncovered: frozenset[Inequality]


class _Part:
    """A set of leaves joined so far, not yet grouped: its inputs, expected rows and cost."""

    __slots__ = ("_norms", "cost", "inputs", "leaves", "present", "rows", "small", "weight")

    def __init__(self, leaves: Mask, inputs: tuple[_Step, ...], rows: float, cost: float) -> None:
        self.leaves = leaves
        self.inputs = inputs
        self.rows = rows
        self.cost = cost
        self.weight = cost + GROUP_ROW * rows
        # The variables that are not summed out yet.
        present: Mask = 0
        small = False
        for step in inputs:
            present |= step.sized.mask
            small |= step.small
        self.present = present
        self.small = small
        self._norms: Mapping[Mask, float] | None = None

    @property
    def norms(self) -> Mapping[Mask, float]:
        """The largest norm of each variable."""
        if self._norms is None:
            first, *rest = self.inputs
            norms = first.sized.norms
            for step in rest:
                more = step.sized.norms
                norms = {**norms, **{b: max(n, norms.get(b, 0.0)) for b, n in more.items()}}
            self._norms = norms
        return self._norms


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
    number = numbered(problem)
    found = cheapest(*structure(problem, statistics, forced, number))
    return _Writer(problem, found.search, tuple(number)).decomposition(found.part, found.cost)


# Leaves, free variables, sets of variables that conditions need together, outputs, ordered pairs.
Structure = tuple[tuple[LeafSize, ...], Mask, tuple[Mask, ...], Mask | None, tuple[Mask, ...]]


def numbered(problem: Problem) -> dict[Variable, int]:
    """The variables by number, in the order of the leaves, so that names do not matter."""
    number: dict[Variable, int] = {}
    for leaf in problem.leaves:
        for _, variable in leaf.columns:
            number.setdefault(variable, len(number))
    return number


def structure(
    problem: Problem,
    statistics: Statistics,
    forced: frozenset[Inequality],
    number: Mapping[Variable, int],
) -> Structure:
    """All that the cheapest tree depends on."""
    kept: list[Condition] = [*problem.others, *forced]
    free = mask_of(problem.free, number)
    # A condition on variables of one leaf demands nothing: the bag of that leaf reads it.
    single = [mask_of(leaf.variables, number) for leaf in problem.leaves]
    spans = {mask_of(c.variables, number) for c in kept}
    ordered = {mask_of(c.variables, number) for c in kept if isinstance(c, Above)}
    return (
        tuple([LeafSize.of(leaf, statistics, number) for leaf in problem.leaves]),
        free,
        tuple(sorted(s for s in spans if all(s & ~variables for variables in single))),
        None if problem.output is None else mask_of(problem.output, number) | free,
        tuple(sorted(ordered)),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """The search that found a part, the part, and its cost with the last grouping."""

    search: _Search
    part: _Part
    cost: float


@lru_cache(maxsize=4096)
def cheapest(
    leaves: tuple[LeafSize, ...],
    free: Mask,
    spans: tuple[Mask, ...],
    output: Mask | None,
    ordered: tuple[Mask, ...],
) -> _Found:
    """The search without names: a release plans many problems that differ in names only."""
    search = _Search(leaves, free, spans, output, ordered)
    part = search.best()
    return _Found(search, part, part.cost + search.finish(part))


class _Writer:
    """Parts with the names of one problem."""

    def __init__(self, problem: Problem, search: _Search, names: tuple[Variable, ...]) -> None:
        self.problem = problem
        self.search = search
        self.names = names

    def decomposition(self, part: _Part, cost: float) -> Decomposition:
        """The tree with its conditions."""
        join, held = placed(self._join(part), self.problem.conditions)
        return Decomposition(join, cost, self.problem.inequalities - held)

    def _join(self, part: _Part) -> Join:
        return Join(tuple(self._input(step) for step in part.inputs))

    def _input(self, step: _Step) -> Input:
        if step.part is None:
            return self.problem.leaves[step.leaf]
        keep, distinct = self.search.kept(step.part)
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


class _Search:
    """The sizes of a problem's leaves and the variables, by number, that a tree must heed."""

    def __init__(
        self,
        leaves: tuple[LeafSize, ...],
        free: Mask,
        spans: tuple[Mask, ...],
        output: Mask | None,
        ordered: tuple[Mask, ...] = (),
    ) -> None:
        self.free = free
        self.leaves = leaves
        self.sizes = [leaf.sized() for leaf in leaves]
        self.steps = [
            _Step(size, leaf=i, small=leaf.restricting)
            for i, (leaf, size) in enumerate(zip(leaves, self.sizes, strict=True))
        ]
        self.everything = (1 << len(self.sizes)) - 1
        self.spans = spans
        self.output = output
        self.ordered = ordered
        self.held: dict[Mask, Mask] = {0: 0}
        self.near: dict[Mask, Mask] = {0: 0}
        # A leaf with a key filters whatever has all its variables.
        self.filters = [(i, size) for i, size in enumerate(self.sizes) if size.keys]

    def best(self) -> _Part:
        """All leaves joined in the cheapest way found."""
        parts = [self._component(component) for component in self._components()]
        if len(parts) == 1:
            return parts[0]
        steps = [self._step(part) for part in parts]
        rows = math.prod(s.sized.rows for s in steps)
        cost = rows + sum(_grouping_cost(p, s) for p, s in zip(parts, steps, strict=True))
        return _Part(self.everything, tuple(steps), rows, cost)

    def _components(self) -> list[Mask]:
        remaining, found = self.everything, []
        while remaining:
            component = remaining & -remaining
            while (near := component | self._touching(component)) != component:
                component = near
            found.append(component)
            remaining &= ~component
        return found

    def _variables(self, leaves: Mask) -> Mask:
        held = self.held.get(leaves)
        if held is None:
            last = leaves.bit_length() - 1
            held = self._variables(leaves ^ 1 << last) | self.sizes[last].mask
            self.held[leaves] = held
        return held

    def _touching(self, leaves: Mask) -> Mask:
        """The leaves that share a variable or a condition with one of these."""
        near = self.near.get(leaves)
        if near is None:
            last = leaves.bit_length() - 1
            reached = here = self.sizes[last].mask
            for span in self.spans:
                if span & here:
                    reached |= span
            near = self._touching(leaves ^ 1 << last)
            for i, size in enumerate(self.sizes):
                if size.mask & reached:
                    near |= 1 << i
            self.near[leaves] = near
        return near

    def _component(self, component: Mask) -> _Part:
        if component.bit_count() <= _EXHAUSTIVE:
            return self._exhaustive(component)
        return self._greedy(component)

    def _single(self, i: int) -> _Part:
        return _Part(1 << i, (self.steps[i],), self.sizes[i].rows, 0.0)

    def _exhaustive(self, component: Mask) -> _Part:
        table: dict[Mask, list[_Part]] = {}
        indices = [i for i in range(len(self.sizes)) if component >> i & 1]
        for size in range(1, len(indices) + 1):
            for chosen in combinations(indices, size):
                leaves = sum_of(1 << i for i in chosen)
                raw = self._single(chosen[0]) if size == 1 else self._best_split(leaves, table)
                if raw is not None:
                    table[leaves] = [raw] if leaves == component else self._options(raw)
        return table[component][0]

    def _best_split(self, leaves: Mask, table: dict[Mask, list[_Part]]) -> _Part | None:
        """The cheapest join of two parts that make up ``leaves``, None if nothing connects them."""
        best: _Part | None = None
        least = math.inf
        for half in _halves(leaves):
            ones, others = table.get(half), table.get(leaves ^ half)
            if ones is None or others is None or not self._touching(half) & leaves & ~half:
                continue
            for one in ones:
                bushy = len(one.inputs) > 1
                for other in others:
                    # Equal steps of both sides cost once, so the sum of costs is no lower bound.
                    if one.cost >= least or other.cost >= least:
                        continue
                    if bushy and len(other.inputs) > 1:
                        continue
                    part = self._joined(one, other, least)
                    if part is not None:
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
                    touching = self._touching(pair[0]) & pair[1]
                    known[pair] = self._best_pair(parts[i], parts[j]) if touching else None
                part = known[pair]
                if part is not None:
                    found.append((part.weight, i, j, part))
            _, i, j, part = min(found, key=lambda f: f[:3])
            parts = [p for k, p in enumerate(parts) if k not in (i, j)]
            parts.append([part] if part.leaves == component else self._options(part))
        return parts[0][0]

    def _best_pair(self, left: list[_Part], right: list[_Part]) -> _Part:
        best: _Part | None = None
        for one in left:
            for other in right:
                if len(one.inputs) == 1 or len(other.inputs) == 1:
                    least = math.inf if best is None else best.weight
                    best = self._joined(one, other, least) or best
        assert best is not None
        return best

    def _options(self, part: _Part) -> list[_Part]:
        """The part as it is, grouped, and grouped after a filter by leaves that the rest joins."""
        options = [self._barred(part)]
        one = part.inputs[0].sized
        keep, _ = self.kept(part)
        if len(part.inputs) > 1 or keep != one.mask or not one.keys:
            options.append(self._grouped(part, self._as_step(part, keep)))
        filtered = self._filtered(part)
        if filtered is not None:
            options.append(self._grouped(filtered, self._as_step(filtered, keep)))
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
        there, norms = part.present, part.norms
        inputs, rows, cost = part.inputs, part.rows, part.cost
        for i, size in self.filters:
            if part.leaves >> i & 1 or size.mask & ~there:
                continue
            filtered = extended(rows, there, norms, size)
            cost += BUILD * size.rows + PROBE * rows + filtered
            rows = filtered
            inputs = (*inputs, self.steps[i])
            norms = {**norms, **{b: max(n, norms[b]) for b, n in size.norms.items()}}
        if len(inputs) == len(part.inputs):
            return None
        return _Part(part.leaves, inputs, rows, cost)

    def _grouped(self, part: _Part, step: _Step) -> _Part:
        return _Part(part.leaves, (step,), step.sized.rows, _grouping_cost(part, step))

    def _step(self, part: _Part) -> _Step:
        keep, _ = self.kept(part)
        return self._as_step(part, keep)

    def _as_step(self, part: _Part, keep: Mask) -> _Step:
        sized = grouped([s.sized for s in part.inputs], part.rows, keep)
        return _Step(sized, part=part, keep=keep, small=part.small)

    def kept(self, part: _Part) -> tuple[Mask, Mask | None]:
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

    def _joined(self, one: _Part, other: _Part, least: float = math.inf) -> _Part | None:
        """The join of two parts, of which one is a single input; None if its weight is no less."""
        left, right = (one, other) if len(other.inputs) == 1 else (other, one)
        cost = one.cost + other.cost + _hashing(one, other) - self._shared(left, right.inputs[0])
        if cost >= least:
            return None
        rows = extended(left.rows, left.present, left.norms, right.inputs[0].sized)
        if len(left.inputs) == 1:
            back = extended(right.rows, right.present, right.norms, left.inputs[0].sized)
            rows = min(rows, back)
        for pair in self.ordered:
            if (
                not pair & ~(one.present | other.present)
                and pair & ~one.present
                and pair & ~other.present
            ):
                rows *= _IN_ORDER
        if cost + rows + GROUP_ROW * rows >= least:
            return None
        return _Part(one.leaves | other.leaves, (*left.inputs, *right.inputs), rows, cost + rows)

    def _shared(self, one: _Part, step: _Step) -> float:
        """What is saved because two steps are the same but for names, as far as leaves tell."""
        if step.part is None:
            return 0.0
        for other in one.inputs:
            if (
                other.part is not None
                and math.isclose(step.sized.rows, other.sized.rows)
                and math.isclose(step.part.cost, other.part.cost)
                and self._outline(step.part, step.keep) == self._outline(other.part, other.keep)
            ):
                return _grouping_cost(step.part, step)
        return 0.0

    def _outline(self, part: _Part, keep: Mask) -> frozenset[tuple[object, int]]:
        """The inputs of a step, with what becomes of each of their columns, and how often."""
        return frozenset(
            Counter(
                (self.leaves[step.leaf].outline, self.leaves[step.leaf].kept(keep))
                if step.part is None
                else self._outline(step.part, step.keep)
                for step in part.inputs
            ).items()
        )

    def finish(self, part: _Part) -> float:
        """What the last grouping costs; none is needed without free variables or on unique rows."""
        if not self.free:
            return 0.1 * part.rows
        if all(s.sized.mask & ~self.free == 0 and s.sized.keys for s in part.inputs):
            return 0.1 * part.rows
        out = grouped([s.sized for s in part.inputs], part.rows, self.free)
        return GROUP_ROW * part.rows + GROUP * out.rows


def _grouping_cost(part: _Part, step: _Step) -> float:
    return part.cost + GROUP_ROW * part.rows + GROUP * step.sized.rows + STEP


def _hashing(one: _Part, other: _Part) -> float:
    """What a hash join costs before it puts out a row."""
    if one.rows < other.rows:
        return BUILD * one.rows + PROBE * other.rows
    return BUILD * other.rows + PROBE * one.rows


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
