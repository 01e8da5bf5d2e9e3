"""How many rows a join or a grouping is expected to have, and what that costs.

Estimates rest on the norms of frequency vectors: two columns join to at most the product of their
Euclidean norms, which is exact for a self-join and follows skew where averages do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

from sqlrs.planning.leaves import Completions, Leaf, Picked, Ranked, RunningSum
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.query import Variable
from sqlrs.records import dataclass

# Costs in units of one row that a hash join puts out.
PROBE, BUILD, GROUP_ROW, GROUP = 0.3, 1.5, 1.5, 3.0
# A step's own overhead, and the share of rows that a second common variable leaves.
STEP = 4000.0
_CLOSING = 0.5
# Where one column's rank is above another's, half the rows are left: most of those of a frequent
# value in the upper column, few of them in the lower one. Factors for Σ frequency² and the largest.
_HIGH, _LOW = (2.2, 2.0), (0.7, 0.6)

Mask = int


# Distinct values, Σ frequency² and the largest frequency: a Repetition that is quick to make.
Spread = tuple[float, float, float]


class Sized:
    """An input of a join: expected rows, the spread of each variable, and what determines a row.

    Spreads and norms are made at first use: most groupings cost too much to be joined with.
    """

    __slots__ = ("_norms", "_spread", "_spreads", "keys", "mask", "rows")

    def __init__(
        self,
        mask: Mask,
        rows: float,
        keys: tuple[Mask, ...],
        spread: Callable[[], Mapping[Mask, Spread]],
    ) -> None:
        self.mask = mask
        self.rows = rows
        self.keys = keys
        self._spread = spread
        self._spreads: Mapping[Mask, Spread] | None = None
        self._norms: Mapping[Mask, float] | None = None

    @property
    def spreads(self) -> Mapping[Mask, Spread]:
        """The spread of each variable."""
        if self._spreads is None:
            self._spreads = self._spread()
        return self._spreads

    @property
    def norms(self) -> Mapping[Mask, float]:
        """Σ frequency² of each variable over the square of the rows."""
        if self._norms is None:
            square = self.rows**2
            self._norms = {bit: squares / square for bit, (_, squares, _) in self.spreads.items()}
        return self._norms


@dataclass(frozen=True)
class LeafSize:
    """All that the expected rows of a leaf depend on; its variables are numbers."""

    columns: tuple[int, ...]
    keys: tuple[Mask, ...]
    rows: float
    repetition: tuple[Repetition, ...] = ()
    constants: tuple[float, ...] = ()
    filters: int = 0
    above: tuple[tuple[int, int], ...] = ()
    maximised: bool = False
    restricting: bool = False
    counted: bool = False

    @classmethod
    def of(cls, leaf: Leaf, statistics: Statistics, number: Mapping[Variable, int]) -> LeafSize:
        """The size of a leaf, from what is known of its table."""
        columns = tuple([number[v] for _, v in leaf.columns])
        if isinstance(leaf, Picked):
            key = mask_of(leaf.variables, number)
            return cls(columns, (key,), leaf.expected, restricting=True)
        table = leaf.table
        held = {name: number[v] for name, v in leaf.columns}
        above = leaf.ranks.above if isinstance(leaf, Ranked) else ()
        conditions = leaf if not isinstance(leaf, RunningSum) else None
        return cls(
            columns=columns,
            keys=tuple([mask_of(key, number) for key in leaf.keys]),
            rows=statistics.size(table),
            repetition=tuple([statistics.repetition(table, name) for name, _ in leaf.columns]),
            constants=tuple(
                [
                    statistics.repetition(table, name).distinct
                    for name, _ in (conditions.constants if conditions else ())
                ]
            ),
            filters=len(conditions.filters) if conditions else 0,
            above=tuple(sorted((held[high], held[low]) for high, low in above)),
            maximised=isinstance(leaf, Completions),
            counted=leaf.counted,
        )

    @cached_property
    def outline(self) -> tuple[object, ...]:
        """All of it without the numbers of variables."""
        place = self.columns.index
        return (
            *(self.rows, self.repetition, self.constants, self.filters),
            *(self.maximised, self.restricting, self.counted),
            frozenset((place(high), place(low)) for high, low in self.above),
        )

    def kept(self, keep: Mask) -> tuple[bool, ...]:
        """Which of the columns hold one of these variables."""
        return tuple([bool(keep >> i & 1) for i in self.columns])

    def sized(self) -> Sized:
        """The expected rows of a leaf after its filters."""
        mask = 0
        for i in self.columns:
            mask |= 1 << i
        bits = [1 << i for i in self.columns]
        if self.restricting:
            unique = (self.rows, self.rows, 1.0)
            return Sized(mask, self.rows, self.keys, lambda: dict.fromkeys(bits, unique))
        rows = self.rows
        for distinct in self.constants:
            rows /= distinct
        rows = max(rows * 0.3**self.filters * 0.5 ** len(self.above), 1.0)
        share = rows / self.rows
        spreads: dict[Mask, Spread] = {
            bit: (
                max(min(r.distinct, rows), 1.0),
                max(r.squares * share * share, rows),
                max(r.most * share, 1.0),
            )
            for bit, r in zip(bits, self.repetition, strict=True)
        }
        for high, low in self.above:
            spreads[1 << high] = _scaled(spreads[1 << high], rows, *_HIGH)
            spreads[1 << low] = _scaled(spreads[1 << low], rows, *_LOW)
        keys = self.keys
        if self.maximised and spreads:
            before = rows
            rows = distinct_rows(rows, [distinct for distinct, _, _ in spreads.values()])
            spreads = {
                bit: _thinned(spread, before, rows, mask == bit) for bit, spread in spreads.items()
            }
            keys = (mask,)
        return Sized(mask, rows, keys, lambda: spreads)


def _scaled(spread: Spread, rows: float, squares: float, most: float) -> Spread:
    """The spread with other repetition."""
    return (spread[0], max(spread[1] * squares, rows), max(spread[2] * most, 1.0))


def mask_of(variables: Iterable[Variable], number: Mapping[Variable, int]) -> Mask:
    """The variables as bits."""
    mask = 0
    for variable in variables:
        mask |= 1 << number[variable]
    return mask


def extended(rows: float, known: Mask, norms: Mapping[Mask, float], added: Sized) -> float:
    """The expected rows when a join of ``rows`` rows is joined with one more input.

    ``known`` are the variables of the join, ``norms`` their largest norms among its inputs. Of
    several common variables the best one counts, the others hardly: in real data they are
    correlated, and an estimate that is too low chooses plans that never end.
    """
    common = known & added.mask
    if not common:
        return rows * added.rows
    spreads = added.spreads
    fan = added.rows
    for key in added.keys:
        if not key & ~common:
            fan = 1.0
    closing = common & (common - 1)
    if not closing:
        _, squares, most = spreads[common]
        return max(rows * min(fan, most, math.sqrt(squares * norms[common])), 1.0)
    least = math.inf
    for bit, (_, squares, most) in spreads.items():
        if common & bit:
            if most < fan:
                fan = most
            product = squares * norms[bit]
            if product < least:
                least = product
    return max(rows * min(fan, math.sqrt(least)) * _CLOSING, 1.0)


def grouped(inputs: Sequence[Sized], rows: float, out: Mask) -> Sized:
    """The expected result of grouping a join by ``out``."""
    held: dict[Mask, tuple[Spread, float]] = {}
    for one in inputs:
        if one.mask & out:
            for bit, spread in one.spreads.items():
                if out & bit and (bit not in held or spread[0] < held[bit][0][0]):
                    held[bit] = (spread, one.rows)
    groups = _combinations(rows, held.values())
    for one in inputs:
        if one.rows < groups and out & ~one.mask == 0:
            groups = one.rows

    def thinned() -> dict[Mask, Spread]:
        return {
            bit: _thinned(spread, before, groups, out == bit)
            for bit, (spread, before) in held.items()
        }

    return Sized(out, groups, (out,), thinned)


def _combinations(rows: float, held: Collection[tuple[Spread, float]]) -> float:
    """How many combinations of the variables' values so many rows are expected to hit.

    Between two guesses: that variables are independent, and that rows crowd around the frequent
    values of each, as they do where data is clustered.
    """
    if len(held) == 1:
        ((distinct, _, _), _) = next(iter(held))
        return distinct_rows(rows, [distinct])
    crowded = distinct_rows(rows, [min(max(n**2 / squares, 1.0), d) for (d, squares, _), n in held])
    cells = [(1.0, rows)]
    for spread, before in held:
        cells = [
            (number * values, expected * share)
            for number, expected in cells
            for values, share in _frequent_and_rare(spread, before)
        ]
    independent = sum(number * -math.expm1(-expected) for number, expected in cells)
    return math.sqrt(crowded * max(independent, 1.0))


def _frequent_and_rare(spread: Spread, rows: float) -> list[tuple[float, float]]:
    """Two kinds of values that explain a spread: how many there are, and the share of one."""
    distinct, squares, most = spread
    frequent = min(max(squares / most**2, 1.0), distinct)
    share = min(most / rows, 1.0 / frequent)
    rare = distinct - frequent
    left = 1.0 - frequent * share
    return [(frequent, share), (rare, left / rare)] if rare > 0 < left else [(frequent, share)]


def distinct_rows(rows: float, domains: Iterable[float]) -> float:
    """How many of the combinations of values so many rows are expected to hit."""
    space = math.prod(domains)
    if rows > 30 * space:
        return max(space, 1.0)
    return max(space * -math.expm1(-rows / space), 1.0)


def _thinned(spread: Spread, before: float, rows: float, alone: bool) -> Spread:
    """The spread of a variable among ``rows`` groups, as skewed as it was among the rows."""
    was, squares, largest = spread
    distinct = max(min(was, rows), 1.0)
    if alone:
        return (distinct, distinct, 1.0)
    skew = max(squares * was / before**2, 1.0)
    most = max(min(rows * largest / before, rows), 1.0)
    return (distinct, max(min(skew * rows / distinct, most) * rows, rows), most)
