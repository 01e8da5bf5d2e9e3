"""How many rows a join or a grouping is expected to have, and what that costs.

Estimates rest on the norms of frequency vectors: two columns join to at most the product of their
Euclidean norms, which is exact for a self-join and follows skew where averages do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from sqlrs.catalog import Table
from sqlrs.planning.problem import Leaf
from sqlrs.planning.statistics import Repetition, Statistics
from sqlrs.query import Variable

# Costs in units of one row that a hash join puts out.
PROBE, BUILD, GROUP_ROW, GROUP = 0.3, 1.5, 1.5, 3.0
# A step's own overhead, and the share of rows that a second common variable leaves.
STEP = 4000.0
_CLOSING = 0.5

RESTRICTED_ROWS = 32.0

Mask = int


class Sized:
    """An input of a join: expected rows, repetition in each variable, and what determines a row."""

    __slots__ = ("keys", "mask", "norms", "repetition", "rows")

    def __init__(
        self,
        mask: Mask,
        rows: float,
        repetition: Mapping[int, Repetition],
        keys: tuple[Mask, ...],
    ) -> None:
        self.mask = mask
        self.rows = rows
        self.repetition = repetition
        self.keys = keys
        self.norms = {i: r.squares / rows**2 for i, r in repetition.items()}

    def multiplicity(self, known: Mask) -> float:
        """A bound on the rows that agree on the known variables."""
        for key in self.keys:
            if not key & ~known:
                return 1.0
        least = self.rows
        for i, r in self.repetition.items():
            if known >> i & 1 and r.most < least:
                least = r.most
        return least


def leaf_size(leaf: Leaf, statistics: Statistics, number: Mapping[Variable, int]) -> Sized:
    """The expected rows of a leaf after its filters."""
    mask = mask_of(leaf.variables, number)
    if not isinstance(leaf.table, Table):
        rows = RESTRICTED_ROWS
        unique = {number[v]: Repetition.unique(rows) for v in leaf.variables}
        return Sized(mask, rows, unique, (mask,))
    whole = statistics.size(leaf.table)
    rows = whole
    for name, _ in leaf.constants:
        rows /= statistics.repetition(leaf.table, name).distinct
    rows = max(rows * 0.3 ** len(leaf.filters), 1.0)
    share = rows / whole
    repetition: dict[int, Repetition] = {}
    for name, variable in leaf.columns:
        r = statistics.repetition(leaf.table, name)
        repetition[number[variable]] = Repetition(
            max(min(r.distinct, rows), 1.0),
            max(r.squares * share * share, rows),
            max(r.most * share, 1.0),
        )
    keys = tuple(mask_of(key, number) for key in leaf.keys)
    if leaf.maximised and repetition:
        before = rows
        rows = distinct_rows(rows, [r.distinct for r in repetition.values()])
        repetition = {i: _thinned(r, before, rows, mask == 1 << i) for i, r in repetition.items()}
        keys = (mask,)
    return Sized(mask, rows, repetition, keys)


def mask_of(variables: Iterable[Variable], number: Mapping[Variable, int]) -> Mask:
    """The variables as bits."""
    mask = 0
    for variable in variables:
        mask |= 1 << number[variable]
    return mask


def extended(rows: float, inputs: Sequence[Sized], added: Sized) -> float:
    """The expected rows when a join of ``inputs`` with ``rows`` rows is joined with one more.

    Of several common variables the best one counts, the others hardly: in real data they are
    correlated, and an estimate that is too low chooses plans that never end.
    """
    known = 0
    for one in inputs:
        known |= one.mask
    common = known & added.mask
    if not common:
        return rows * added.rows
    fan = added.multiplicity(common)
    for i, r in added.repetition.items():
        if common >> i & 1:
            norm = 0.0
            for one in inputs:
                if one.mask >> i & 1 and one.norms[i] > norm:
                    norm = one.norms[i]
            fan = min(fan, math.sqrt(r.squares * norm))
    closing = common & (common - 1)
    return max(rows * fan * (_CLOSING if closing else 1.0), 1.0)


def grouped(inputs: Sequence[Sized], rows: float, out: Mask) -> Sized:
    """The expected result of grouping a join by ``out``."""
    held: dict[int, tuple[Repetition, float]] = {}
    for one in inputs:
        for i, r in one.repetition.items():
            if out >> i & 1 and (i not in held or r.distinct < held[i][0].distinct):
                held[i] = (r, one.rows)
    groups = distinct_rows(rows, _domains(held))
    for one in inputs:
        if out & ~one.mask == 0:
            groups = min(groups, one.rows)
    repetition = {i: _thinned(r, before, groups, out == 1 << i) for i, (r, before) in held.items()}
    return Sized(out, groups, repetition, (out,))


def _domains(held: Mapping[int, tuple[Repetition, float]]) -> list[float]:
    """How many values of each variable matter: of several together only the frequent ones do."""
    if len(held) == 1:
        return [r.distinct for r, _ in held.values()]
    return [min(max(rows**2 / r.squares, 1.0), r.distinct) for r, rows in held.values()]


def distinct_rows(rows: float, domains: Iterable[float]) -> float:
    """How many of the combinations of values so many rows are expected to hit."""
    space = math.prod(domains)
    if rows > 30 * space:
        return max(space, 1.0)
    return max(space * -math.expm1(-rows / space), 1.0)


def _thinned(r: Repetition, before: float, rows: float, alone: bool) -> Repetition:
    """The repetition of a variable among ``rows`` groups, as skewed as it was among the rows."""
    distinct = max(min(r.distinct, rows), 1.0)
    if alone:
        return Repetition.unique(distinct)
    skew = max(r.squares * r.distinct / before**2, 1.0)
    most = max(min(rows * r.most / before, rows), 1.0)
    return Repetition(distinct, max(min(skew * rows / distinct, most) * rows, rows), most)
