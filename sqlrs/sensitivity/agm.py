"""The AGM bound: how many results a join can have, from the sizes of its tables alone.

It is the least Π N_i^{x_i} over fractional edge covers x, a linear program in log N_i. Its dual is
solved by the simplex method with rational numbers; logarithms stay symbols, and two of their sums
are compared as integer powers, so nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cached_property
from math import lcm, prod

from sqlrs.records import dataclass


@dataclass(frozen=True)
class Power:
    """Π N_i^{x_i} with rational exponents x_i ≥ 0, one for each table of the join."""

    sizes: tuple[int, ...]
    exponents: tuple[Fraction, ...]

    @cached_property
    def exponent(self) -> Fraction:
        """Σ x_i: the power of N if all tables have N rows."""
        return sum(self.exponents, start=Fraction(0))

    def ceiling(self) -> int:
        """The least integer that is not below the power."""
        root = lcm(*(x.denominator for x in self.exponents))
        powers = zip(self.sizes, self.exponents, strict=True)
        radicand: int = prod(n ** int(x * root) for n, x in powers)
        low, high = 0, 1 << (radicand.bit_length() // root + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if middle**root < radicand else (low, middle)
        return high


def agm_bound(edges: Sequence[frozenset[Hashable]], sizes: Sequence[int]) -> Power:
    """The least power that covers every variable of ``edges``; sizes are at least 1.

    The dual is: maximise Σ_v y_v with Σ_{v∈e} y_v ≤ log N_e. Its multipliers are the cover.
    """
    if any(size < 1 for size in sizes):
        raise ValueError("a table of the join has at least one row")
    variables = sorted(frozenset[Hashable]().union(*edges), key=str)
    count = len(edges)
    zero = (Fraction(0),) * count
    rows = [
        _Row(
            [Fraction(v in edge) for v in variables] + [Fraction(i == j) for j in range(count)],
            (*zero[:i], Fraction(1), *zero[i + 1 :]),
        )
        for i, edge in enumerate(edges)
    ]
    gains = [Fraction(1)] * len(variables) + list(zero)
    basis = [len(variables) + i for i in range(count)]
    # Bland's rule: always the first column that gains, so the method cannot run in a circle.
    while (entering := next((c for c, gain in enumerate(gains) if gain > 0), None)) is not None:
        pivot = _leaving(rows, basis, entering, sizes)
        rows[pivot] = rows[pivot].scaled(1 / rows[pivot].columns[entering])
        for i, row in enumerate(rows):
            if i != pivot:
                rows[i] = row.plus(rows[pivot], -row.columns[entering])
        factor = gains[entering]
        gains = [g - factor * c for g, c in zip(gains, rows[pivot].columns, strict=True)]
        basis[pivot] = entering
    return Power(tuple(sizes), tuple(-gain for gain in gains[len(variables) :]))


@dataclass(frozen=True)
class _Row:
    """One equation of the tableau; its right side is Σ logs[i] · log N_i."""

    columns: list[Fraction]
    logs: tuple[Fraction, ...]

    def scaled(self, factor: Fraction) -> _Row:
        return _Row([factor * c for c in self.columns], tuple(factor * x for x in self.logs))

    def plus(self, other: _Row, factor: Fraction) -> _Row:
        return _Row(
            [a + factor * b for a, b in zip(self.columns, other.columns, strict=True)],
            tuple(a + factor * b for a, b in zip(self.logs, other.logs, strict=True)),
        )


def _leaving(rows: list[_Row], basis: list[int], entering: int, sizes: Sequence[int]) -> int:
    """The row that limits the entering column most; of several the one that Bland's rule names."""
    best: int | None = None
    for i, row in enumerate(rows):
        if row.columns[entering] <= 0:
            continue
        if best is None:
            best = i
            continue
        ours = [x / row.columns[entering] for x in row.logs]
        theirs = [x / rows[best].columns[entering] for x in rows[best].logs]
        sign = _sign([a - b for a, b in zip(ours, theirs, strict=True)], sizes)
        if sign < 0 or (sign == 0 and basis[i] < basis[best]):
            best = i
    assert best is not None, "every variable is in some edge"
    return best


def _sign(logs: Sequence[Fraction], sizes: Sequence[int]) -> int:
    """The sign of Σ logs[i] · log N_i, by comparing whole powers."""
    scale = lcm(*(x.denominator for x in logs))
    powers = [(n, int(x * scale)) for n, x in zip(sizes, logs, strict=True)]
    above: int = prod(n**x for n, x in powers if x > 0)
    below: int = prod(n**-x for n, x in powers if x < 0)
    return (above > below) - (above < below)
