"""Counts as shared digits of words: where one variable is skewed, few of its values can win.

The most frequent values have a digit of their own, all others share some. A shared digit is the sum
of its values' counts, so it bounds each of them: if none is above the largest digit of one value,
that one is the largest count. docs/proofs/plans.md, section 5f, has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from sqlrs.planning.bags import Grouping, Input, Join
from sqlrs.planning.estimate import GROUP, GROUP_ROW, PROBE, STEP, Sized, distinct_rows
from sqlrs.planning.inclusion_exclusion import Sum
from sqlrs.planning.leaves import TableRows
from sqlrs.planning.table_statistics import Statistics
from sqlrs.planning.words import (
    FEWEST,
    HALF,
    MOST,
    SUM,
    TreeSizes,
    Words,
    can_pack,
    packed_below,
)
from sqlrs.query import Variable
from sqlrs.values import behave_alike

# Values with digits of their own; how far the first of them should be above what shares a digit.
ALONE = 4
_STANDS_OUT = 1.5
# How far the largest count may be above what is expected of it.
_ABOVE_EXPECTED, _FEW = 1.5, 5
# Words for one value of the other variables: of more, joins would have as many rows as without.
_MOST_WORDS = 8


class Limit(Protocol):
    """What no group of the sum or of a step counts, all values of one variable in one group."""

    def __call__(self, *, summed: Variable) -> int:
        """The limit where this variable is summed."""
        ...


def sharings(
    total: Sum, limit: Limit, statistics: Statistics, most_words: int = _MOST_WORDS
) -> list[Words]:
    """All ways to pack a sum so that values share digits, by the variable whose values do."""
    if len(total.problem.free) < 2 or len(total.terms) > 1 or not can_pack(total):
        return []
    join = total.terms[0].join
    if any(map(_closes, (join, *(step.join for step in join.steps)))):
        return []
    options = (
        _shared(total, v, limit(summed=v), statistics)
        for v in sorted(total.problem.free)
        if behave_alike([v.type])
    )
    return [
        one
        for one in options
        if one is not None and one.shared + one.alone <= one.lanes * most_words
    ]


def _closes(join: Join) -> bool:
    """Whether an input shares several columns with those before: then they are not independent."""
    known = frozenset[Variable]()
    for one in join.inputs:
        if len(known & one.variables) > 1:
            return True
        known |= one.variables
    return False


def _shared(total: Sum, variable: Variable, most: int, statistics: Statistics) -> Words | None:
    (term,) = total.terms
    leaf = next(leaf for leaf in total.problem.leaves if variable in leaf.variables)
    assert isinstance(leaf, TableRows)
    join = _opened(term.join, variable)
    if packed_below(join, variable) is None or not 0 < most <= MOST:
        return None
    sizes = _Independent(TreeSizes(total, statistics), variable)
    first = sizes.largest_share(variable)
    each = sizes.of_most_frequent()
    expected = _ABOVE_EXPECTED * each + _FEW * math.sqrt(each + 1)
    bits = min(most, math.ceil(expected)).bit_length()
    lanes = 2 * (HALF // bits) if bits <= HALF else 0
    # Also where a digit is too small for its count no sum of words is too large.
    while lanes and (most * (lanes + 1)).bit_length() + bits * lanes > SUM:
        lanes -= 1
    if lanes < FEWEST:
        return None
    alone = min(ALONE, lanes - 1)
    number = math.ceil((alone + _STANDS_OUT * (1 - first) / first) / lanes)
    cost = 2 * STEP + sizes.cost(join, total.problem.free, number)
    opened = replace(total, terms=(replace(term, join=join),))
    digits = number * lanes - alone
    return Words(opened, variable, leaf, bits, lanes, None, cost, digits, alone)


def _opened(join: Join, variable: Variable) -> Join:
    """The join with rows in place of their groups, where words are joined with these alone.

    Words are few, so that rows need not become fewer first.
    """
    if (below := packed_below(join, variable)) is None:
        return join
    step, other = below
    inputs: tuple[Input, ...] = (replace(step, join=_opened(step.join, variable)),)
    if (
        isinstance(other, Grouping)
        and other.distinct is None
        and len(other.join.inputs) == 1
        and (other.join.variables - other.keep).isdisjoint(step.variables)
    ):
        conditions = (*other.join.conditions, *join.conditions)
        return Join((*inputs, *other.join.inputs), conditions)
    return replace(join, inputs=(*inputs, other))


class _Independent:
    """Expected sizes where the values of different columns are independent."""

    def __init__(self, tree: TreeSizes, variable: Variable) -> None:
        self.tree = tree
        self.variable = variable
        self.leaves = [tree.input(leaf) for leaf in tree.total.problem.leaves]

    def cost(self, join: Join, keep: frozenset[Variable], number: int) -> float:
        """What a join of words and its grouping cost, ``number`` words at most for one group."""
        below = packed_below(join, self.variable)
        inputs = [self.tree.input(one) for one in join.inputs]
        found, packed = 0.0, 1.0
        if below is not None:
            step, _ = below
            found = self.cost(step.join, step.keep, number)
            before = self.tree.input(step).rows
            packed = self._words([self.tree.input(one) for one in step.join.inputs], step, number)
            packed = min(packed / before, 1.0)
        rows = self.independent(inputs) * packed
        groups = distinct_rows(rows, [number, self.combinations(inputs, keep - {self.variable})])
        reading = PROBE * sum(one.rows for one in inputs)
        return found + reading + (GROUP_ROW + 1) * rows + GROUP * groups

    def _words(self, inputs: Sequence[Sized], step: Grouping, number: int) -> float:
        others = self.combinations(inputs, step.keep - {self.variable})
        return distinct_rows(self.independent(inputs), [number, others])

    def largest_share(self, variable: Variable) -> float:
        """The share of a table's rows that hold the most frequent value of a variable."""
        bit = self.tree.mask(frozenset({variable}))
        return max(one.spreads[bit][2] / one.rows for one in self.leaves if one.mask & bit)

    def of_most_frequent(self) -> float:
        """The results that hold the most frequent values of all free variables."""
        free = self.tree.total.problem.free
        return self.independent(self.leaves) * math.prod(map(self.largest_share, free))

    def independent(self, inputs: Sequence[Sized]) -> float:
        """The rows of a join."""
        rows, seen = 1.0, dict[int, float]()
        for one in inputs:
            rows *= one.rows
            for bit, (distinct, _, _) in one.spreads.items():
                if bit in seen:
                    rows /= max(distinct, seen[bit], 1.0)
                seen[bit] = min(distinct, seen.get(bit, distinct))
        return max(rows, 1.0)

    def combinations(self, inputs: Sequence[Sized], variables: frozenset[Variable]) -> float:
        """The values of several variables together, at most one for each row."""
        found: dict[int, float] = {}
        for one in inputs:
            for bit, (distinct, _, _) in one.spreads.items():
                if bit & self.tree.mask(variables):
                    found[bit] = min(distinct, found.get(bit, math.inf))
        return max(min(math.prod(found.values()), self.independent(inputs)), 1.0)
