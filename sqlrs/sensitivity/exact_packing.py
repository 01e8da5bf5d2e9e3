"""A packing solved in fractions, pivot by pivot: slow, always right, and needed nearly never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

Row = list[Fraction]


def exact_packing(
    owners: Sequence[Sequence[int]],
    weights: Sequence[int],
    units: int,
    threshold: int,
    each_step: Callable[[], object],
) -> tuple[list[Fraction], list[Fraction]]:
    """A best solution in parts of the threshold, and best prices of the units.

    ``owners`` of each result: the numbers from ``units`` on are nobody. This is the simplex method
    with Bland's rule, which ends. ``each_step`` may end it before, by an error.
    """
    number = len(weights)
    tableau = _tableau(owners, weights, units, threshold)
    basis = [number + i for i in range(units + number)]
    while True:
        each_step()
        costs = tableau[-1]
        entering = next((j for j in range(len(costs) - 1) if costs[j] < 0), None)
        if entering is None:
            found = dict(zip(basis, (row[-1] / threshold for row in tableau), strict=False))
            solution = [found.get(result, Fraction(0)) for result in range(number)]
            return solution, costs[number : number + units]
        leaving = min(
            (i for i in range(len(basis)) if tableau[i][entering] > 0),
            key=lambda i: (tableau[i][-1] / tableau[i][entering], basis[i]),
        )
        _pivot(tableau, leaving, entering)
        basis[leaving] = entering


def _tableau(
    owners: Sequence[Sequence[int]], weights: Sequence[int], units: int, threshold: int
) -> list[Row]:
    """A row for each unit, one for each result's own bound, and the costs; slacks behind."""
    number = len(weights)
    rows = []
    for i in range(units + number):
        row = [Fraction(0)] * (2 * number + units + 1)
        row[number + i] = Fraction(1)
        row[-1] = Fraction(threshold if i < units else weights[i - units])
        rows.append(row)
    for result, own in enumerate(owners):
        for unit in {one for one in own if one < units}:
            rows[unit][result] = Fraction(1)
        rows[units + result][result] = Fraction(1)
    rows.append([Fraction(-1)] * number + [Fraction(0)] * (number + units + 1))
    return rows


def _pivot(tableau: list[Row], leaving: int, entering: int) -> None:
    chosen = tableau[leaving]
    factor = chosen[entering]
    chosen[:] = [value / factor for value in chosen]
    filled = [(j, value) for j, value in enumerate(chosen) if value]
    for row in tableau:
        if row is not chosen and (by := row[entering]):
            for j, value in filled:
                row[j] -= by * value
