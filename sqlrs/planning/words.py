"""Counts of several groups in one number: the groups of a free variable as digits of words.

Where nearly every pair of two free variables' values has a count, there are far more groups than
rows of any table, and none stands out. The values of one variable are numbered; so many that follow
each other share a *word*, in which each has its digit, and one sum adds up the counts of all.
docs/proofs/plans.md, section 5f, has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from sqlrs.planning.bags import Grouping, Input, Join
from sqlrs.planning.estimate import (
    BUILD,
    GROUP,
    GROUP_ROW,
    PROBE,
    STEP,
    LeafSize,
    Mask,
    Sized,
    distinct_rows,
    extended,
    grouped,
    mask_of,
)
from sqlrs.planning.inclusion_exclusion import Sum, Term
from sqlrs.planning.leaves import Leaf, TableRows
from sqlrs.planning.structure import numbered
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Inequality, Variable
from sqlrs.records import dataclass
from sqlrs.values import behave_alike

# A word has two halves, each of which is read as a number of 64 bits.
HALF = 60
# Sums of words are numbers of 128 bits with a sign.
SUM = 126
# The counts of a word are added up above its digits, in a number of 64 bits. There are at most 120.
MOST = 2**50
# How far the largest count may be above what is expected of it; what a row costs to be unpacked.
_ABOVE_EXPECTED = 4
_UNPACK = 4.0
FEWEST = 4


@dataclass(frozen=True)
class Words:
    """A sum whose groups by ``packed`` are digits, and the leaf that has all of its values.

    ``bits``: of one digit. ``lanes``: the digits of a word. ``apart``: a free variable that differs
    from the packed one, which the first term leaves out of account.
    ``shared``: the digits of all values but the ``alone`` most frequent ones, which keep their own
    (``shared_digits.py``); with 0 each value has its own.
    """

    total: Sum
    packed: Variable
    leaf: TableRows
    bits: int
    lanes: int
    apart: Variable | None
    cost: float
    shared: int = 0
    alone: int = 0

    @property
    def first(self) -> Join:
        """The join of the first term, whose rows are packed before they are grouped."""
        join = self.total.terms[0].join
        return _without(join, self.packed, self.apart)

    @property
    def whole(self) -> Grouping:
        """The first term with its grouping."""
        return Grouping(self.first, self.total.problem.free)

    @property
    def others(self) -> tuple[Term, ...]:
        """The corrections, whose groups are counted as they are and packed then."""
        return self.total.terms[1:]

    @property
    def above(self) -> int:
        """What every count brings to its word beside its digit: it is counted above all digits."""
        return int(2 ** (self.bits * self.lanes))

    @property
    def half(self) -> int:
        """The digits of the lower half of a word."""
        return min(HALF // self.bits, self.lanes)


def packings(total: Sum, most: int, statistics: Statistics) -> list[Words]:
    """All ways to pack a sum, by the variable whose values are digits.

    Without its inequalities no group of the problem or of a step counts more than ``most``.
    """
    problem = total.problem
    if len(problem.free) < 2 or not 0 < most <= MOST or not can_pack(total):
        return []
    options = (_packed(total, v, most, statistics) for v in sorted(problem.free))
    return [one for one in options if one is not None]


def can_pack(total: Sum) -> bool:
    """Whether the counts of a sum are those of rows, one for each group."""
    return (
        total.problem.output is None
        and total.terms[0].coefficient == 1
        and all(isinstance(leaf, TableRows) and not leaf.counted for leaf in total.problem.leaves)
        and not any(step.largest for term in total.terms for step in term.join.steps)
    )


def packed_below(join: Join, packed: Variable) -> tuple[Grouping, Input] | None:
    """The step that has the packed variable and what it is joined with, if words can be joined.

    Then nothing but that step reads the variable.
    """
    if len(join.inputs) != 2 or any(packed in c.variables for c in join.conditions):
        return None
    one, other = join.inputs
    if packed in other.variables:
        one, other = other, one
    if not isinstance(one, Grouping) or one.distinct is not None or packed in other.variables:
        return None
    return one, other


def steps_in_words(words: Words) -> Iterator[Grouping]:
    """The steps of the first term that are words, from the last one down."""
    join = words.first
    while (below := packed_below(join, words.packed)) is not None:
        yield below[0]
        join = below[0].join


def form_in_words(step: Grouping, words: Words) -> Hashable:
    """What a step in words holds, without names: equal forms are one relation.

    Where values share digits, a digit is no count of one value.
    """
    kept = [v for v in step.canonical.order if v in step.keep]
    place = kept.index(words.packed)
    digits = words.bits, words.lanes, words.shared, words.alone
    return "in words", step.canonical.form, place, *digits


def read_from(words: Words, other: Words) -> Words | None:
    """The words with the digits of others of which one step is all that is to be summed."""
    if words.others or words.apart is not None:
        return None
    alike = replace(words, bits=other.bits, lanes=other.lanes)
    form = form_in_words(alike.whole, alike)
    held = any(form == form_in_words(step, other) for step in steps_in_words(other))
    return alike if held else None


def _packed(total: Sum, variable: Variable, most: int, statistics: Statistics) -> Words | None:
    problem, (first, *others) = total.problem, total.terms
    leaf = next(leaf for leaf in problem.leaves if variable in leaf.variables)
    assert isinstance(leaf, TableRows)
    if not behave_alike([variable.type]):
        return None
    apart = _apart(total, variable)
    sizes = TreeSizes(total, statistics)
    join = _without(first.join, variable, apart)
    if join is first.join:
        apart = None
    rows, inputs = sizes.joined(join)
    groups = grouped(inputs, rows, sizes.mask(problem.free))
    expected = _ABOVE_EXPECTED * (1 + rows / groups.rows * sizes.unevenness(inputs, problem.free))
    bits = min(most, math.ceil(expected)).bit_length()
    terms = 1 + sum(abs(term.coefficient) for term in others)
    lanes = 2 * (HALF // bits) if bits <= HALF else 0
    # Also where a digit is too small for its count no sum of words is too large.
    while lanes and (most * terms * (lanes + 1)).bit_length() + bits * lanes > SUM:
        lanes -= 1
    if lanes < FEWEST:
        return None
    cost = total.cost + sizes.difference(join, variable, lanes)
    for term in others:
        corrected, _ = sizes.joined(term.join)
        cost += (BUILD + GROUP_ROW) * min(corrected, groups.rows)
    # Where rows are expected to be far more than groups, the difference says too much.
    cost = max(cost, total.cost / FEWEST)
    return Words(total, variable, leaf, bits, lanes, apart, cost)


def _apart(total: Sum, variable: Variable) -> Variable | None:
    """The one free variable that the packed one differs from in every term, if the first asks."""
    for condition in total.terms[0].join.conditions:
        if isinstance(condition, Inequality) and variable in condition.variables:
            (other,) = condition.variables - {variable}
            alike = behave_alike([variable.type, other.type])
            if (
                alike
                and other in total.problem.free
                and all(condition in term.join.applied for term in total.terms)
            ):
                return other
    return None


def _without(join: Join, packed: Variable, apart: Variable | None) -> Join:
    """The join without the inequality that is left out of account, if words are joined then."""
    if apart is None:
        return join
    ignored = Inequality.between(packed, apart)
    without = replace(join, conditions=tuple(c for c in join.conditions if c != ignored))
    return join if packed_below(without, packed) is None else without


@dataclass(frozen=True)
class TreeSizes:
    """Expected sizes of a tree that is there already."""

    total: Sum
    statistics: Statistics

    @cached_property
    def number(self) -> Mapping[Variable, int]:
        """The variables by number."""
        return numbered(self.total.problem)

    def mask(self, variables: frozenset[Variable]) -> Mask:
        """Variables as bits."""
        return mask_of(variables, self.number)

    def joined(self, join: Join) -> tuple[float, list[Sized]]:
        """The rows of a join, one input after the other, and the sizes of its inputs."""
        inputs = [self.input(one) for one in join.inputs]
        first, *rest = inputs
        rows, known, norms = first.rows, first.mask, dict(first.norms)
        for one in rest:
            rows = extended(rows, known, norms, one)
            known |= one.mask
            norms |= {bit: max(norm, norms.get(bit, 0.0)) for bit, norm in one.norms.items()}
        return rows, inputs

    def difference(self, join: Join, packed: Variable, lanes: int) -> float:
        """What the groupings of the first term cost in words, less what they cost without."""
        keep = self.total.problem.free
        found = 2 * STEP
        shrunk = last = 1.0
        for step, kept in reversed(list(_levels(join, keep, packed))):
            rows, inputs = self.joined(step)
            groups = grouped(inputs, rows, self.mask(kept)).rows
            values, others = self._values(inputs, kept, packed)
            words = min(distinct_rows(groups, [math.ceil(values / lanes), others]), groups)
            # Each level reads the words of the one below it.
            before = (GROUP_ROW + 1) * rows + GROUP * groups
            after = (GROUP_ROW + 1) * rows * shrunk + GROUP * words
            if shrunk == 1.0:
                after += PROBE * rows
            found += after - before
            shrunk = words / groups
            last = words
        return found + _UNPACK * last

    def unevenness(self, inputs: list[Sized], free: frozenset[Variable]) -> float:
        """How far the most frequent values of free variables are above the mean ones."""
        found: dict[Mask, float] = {}
        for one in inputs:
            for bit, (distinct, _, most) in one.spreads.items():
                if bit & self.mask(free):
                    found[bit] = max(found.get(bit, 1.0), most * distinct / one.rows)
        return math.prod(found.values())

    def _values(
        self, inputs: list[Sized], kept: frozenset[Variable], packed: Variable
    ) -> tuple[float, float]:
        """The distinct values of the packed variable, and those of all others together."""
        spread: dict[Mask, float] = {}
        for one in inputs:
            for bit, (distinct, _, _) in one.spreads.items():
                spread[bit] = min(distinct, spread.get(bit, math.inf))
        others = math.prod(spread[1 << self.number[v]] for v in kept if v != packed)
        return spread[1 << self.number[packed]], others

    def input(self, one: Input) -> Sized:
        """The size of a leaf or of a step."""
        if isinstance(one, Leaf):
            return LeafSize.of(one, self.statistics, self.number).sized()
        rows, inputs = self.joined(one.join)
        return grouped(inputs, rows, self.mask(one.keep))


def _levels(
    join: Join, keep: frozenset[Variable], packed: Variable
) -> Iterator[tuple[Join, frozenset[Variable]]]:
    """The joins whose groups are words, from the last one down."""
    yield join, keep
    if (below := packed_below(join, packed)) is not None:
        yield from _levels(below[0].join, below[0].keep, packed)
