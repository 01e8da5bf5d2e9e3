"""Sets of leaves that are joined so far, what each is expected to cost, and how they grow.

A part is joined with another one, grouped by what the rest of the problem still needs, or filtered
before that by leaves which are joined later anyway: docs/proofs/plans.md, sections 1, 2 and 6.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

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
)
from sqlrs.planning.structure import Structure

# Of three different values one is the largest, so of the pairs where it exceeds one of the others
# two in three are those where it exceeds both.
_IN_ORDER = 2 / 3


class Part:
    """A set of leaves joined so far, not yet grouped: its inputs, expected rows and cost."""

    __slots__ = ("_norms", "cost", "inputs", "leaves", "present", "rows", "small", "weight")

    def __init__(
        self, leaves: Mask, inputs: tuple[PartInput, ...], rows: float, cost: float
    ) -> None:
        self.leaves = leaves
        self.inputs = inputs
        self.rows = rows
        self.cost = cost
        self.weight = cost + GROUP_ROW * rows
        # The variables that are not summed out yet.
        present: Mask = 0
        small = False
        for one in inputs:
            present |= one.sized.mask
            small |= one.small
        self.present = present
        self.small = small
        self._norms: Mapping[Mask, float] | None = None

    @property
    def norms(self) -> Mapping[Mask, float]:
        """The largest norm of each variable."""
        if self._norms is None:
            first, *rest = self.inputs
            norms = first.sized.norms
            for one in rest:
                more = one.sized.norms
                norms = {**norms, **{b: max(n, norms.get(b, 0.0)) for b, n in more.items()}}
            self._norms = norms
        return self._norms


@dataclass(frozen=True, slots=True)
class PartInput:
    """An input of a part: a leaf, or a part that was grouped by ``keep``."""

    sized: Sized
    leaf: int = -1
    part: Part | None = None
    keep: Mask = 0
    small: bool = False


class Parts:
    """All parts of one problem: what they hold and need, and what can be made of them."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.sizes = [leaf.sized() for leaf in structure.leaves]
        self.everything: Mask = (1 << len(self.sizes)) - 1
        self._leaves = [
            PartInput(size, leaf=i, small=leaf.restricting)
            for i, (leaf, size) in enumerate(zip(structure.leaves, self.sizes, strict=True))
        ]
        self._held: dict[Mask, Mask] = {0: 0}
        self._near: dict[Mask, Mask] = {0: 0}
        # A leaf with a key filters whatever has all its variables; a number is multiplied once.
        self._filters = [
            (i, size)
            for i, (leaf, size) in enumerate(zip(structure.leaves, self.sizes, strict=True))
            if size.keys and not leaf.counted
        ]

    def single(self, i: int) -> Part:
        """One leaf."""
        return Part(1 << i, (self._leaves[i],), self.sizes[i].rows, 0.0)

    def touching(self, leaves: Mask) -> Mask:
        """The leaves that share a variable or a condition with one of these."""
        near = self._near.get(leaves)
        if near is None:
            last = leaves.bit_length() - 1
            reached = here = self.sizes[last].mask
            for span in self.structure.spans:
                if span & here:
                    reached |= span
            near = self.touching(leaves ^ 1 << last)
            for i, size in enumerate(self.sizes):
                if size.mask & reached:
                    near |= 1 << i
            self._near[leaves] = near
        return near

    def kept(self, part: Part) -> tuple[Mask, Mask | None]:
        """What a grouping keeps, and the variables whose combinations it counts once."""
        inside = self._variables(part.leaves)
        needed = self.structure.free | self._variables(self.everything & ~part.leaves)
        for span in self.structure.spans:
            if span & ~inside:
                needed |= span
        keep = inside & needed
        output = self.structure.output
        if output is None:
            return keep, None
        if keep & ~output:
            keep |= part.present & output
            return keep, keep
        return keep, keep | part.present & output

    def options(self, part: Part) -> list[Part]:
        """The part as it is, grouped, and grouped after a filter by leaves that the rest joins."""
        options = [self._barred(part)]
        one = part.inputs[0].sized
        keep, _ = self.kept(part)
        if len(part.inputs) > 1 or keep != one.mask or not one.keys:
            options.append(_alone(part, _as_input(part, keep)))
        filtered = self.filtered(part)
        if filtered is not None:
            options.append(_alone(filtered, _as_input(filtered, keep)))
        return options

    def filtered(self, part: Part) -> Part | None:
        """The part joined with each unique leaf outside that it has all variables of.

        Such a leaf counts a combination once or not at all, so reading it twice changes nothing.
        """
        there, norms = part.present, part.norms
        inputs, rows, cost = part.inputs, part.rows, part.cost
        for i, size in self._filters:
            if part.leaves >> i & 1 or size.mask & ~there:
                continue
            filtered = extended(rows, there, norms, size)
            cost += BUILD * size.rows + PROBE * rows + filtered
            rows = filtered
            inputs = (*inputs, self._leaves[i])
            norms = {**norms, **{b: max(n, norms[b]) for b, n in size.norms.items()}}
        if len(inputs) == len(part.inputs):
            return None
        return Part(part.leaves, inputs, rows, cost)

    def joined(
        self, one: Part, other: Part, least: float = math.inf, *, last: bool = False
    ) -> Part | None:
        """The join of two parts, of which one is a single input; None if it costs no less.

        That is its weight, or, where it is the ``last`` join, its cost to the end.
        """
        left, right = (one, other) if len(other.inputs) == 1 else (other, one)
        cost = one.cost + other.cost + _hashing(one, other) - self._shared(left, right.inputs[0])
        if cost >= least:
            return None
        rows = extended(left.rows, left.present, left.norms, right.inputs[0].sized)
        if len(left.inputs) == 1:
            back = extended(right.rows, right.present, right.norms, left.inputs[0].sized)
            rows = min(rows, back)
        for pair in self.structure.ordered:
            if (
                not pair & ~(one.present | other.present)
                and pair & ~one.present
                and pair & ~other.present
            ):
                rows *= _IN_ORDER
        if not last and cost + rows + GROUP_ROW * rows >= least:
            return None
        part = Part(one.leaves | other.leaves, (*left.inputs, *right.inputs), rows, cost + rows)
        return None if last and part.cost + self.finish(part) >= least else part

    def product(self, parts: list[Part]) -> Part:
        """Parts that nothing connects, each grouped."""
        inputs = [_as_input(part, self.kept(part)[0]) for part in parts]
        rows = math.prod(one.sized.rows for one in inputs)
        cost = rows + sum(_grouping_cost(p, i) for p, i in zip(parts, inputs, strict=True))
        return Part(self.everything, tuple(inputs), rows, cost)

    def finish(self, part: Part) -> float:
        """What the last grouping costs; none is needed without free variables or on unique rows."""
        free = self.structure.free
        if not free or all(i.sized.mask & ~free == 0 and i.sized.keys for i in part.inputs):
            return 0.1 * part.rows
        out = grouped([i.sized for i in part.inputs], part.rows, free)
        return GROUP_ROW * part.rows + GROUP * out.rows

    def _variables(self, leaves: Mask) -> Mask:
        held = self._held.get(leaves)
        if held is None:
            last = leaves.bit_length() - 1
            held = self._variables(leaves ^ 1 << last) | self.sizes[last].mask
            self._held[leaves] = held
        return held

    def _barred(self, part: Part) -> Part:
        """The part as it is; with a small restricting leaf in it a step of its own.

        No engine knows how small such a leaf is: what it thins out must be joined first.
        """
        if len(part.inputs) == 1 or not part.small:
            return part
        step = _as_input(part, part.present)
        return Part(part.leaves, (step,), part.rows, part.cost + GROUP * part.rows + STEP)

    def _shared(self, one: Part, step: PartInput) -> float:
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

    def _outline(self, part: Part, keep: Mask) -> frozenset[tuple[object, int]]:
        """The inputs of a step, with what becomes of each of their columns, and how often."""
        leaves = self.structure.leaves
        return frozenset(
            Counter(
                (leaves[one.leaf].outline, leaves[one.leaf].kept(keep))
                if one.part is None
                else self._outline(one.part, one.keep)
                for one in part.inputs
            ).items()
        )


def _as_input(part: Part, keep: Mask) -> PartInput:
    """The part grouped, as an input of another one."""
    sized = grouped([one.sized for one in part.inputs], part.rows, keep)
    return PartInput(sized, part=part, keep=keep, small=part.small)


def _alone(part: Part, grouping: PartInput) -> Part:
    """A part of one input, which is another part grouped."""
    return Part(part.leaves, (grouping,), grouping.sized.rows, _grouping_cost(part, grouping))


def _grouping_cost(part: Part, grouping: PartInput) -> float:
    return part.cost + GROUP_ROW * part.rows + GROUP * grouping.sized.rows + STEP


def _hashing(one: Part, other: Part) -> float:
    """What a hash join costs before it puts out a row."""
    if one.rows < other.rows:
        return BUILD * one.rows + PROBE * other.rows
    return BUILD * other.rows + PROBE * one.rows
