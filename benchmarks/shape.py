"""Which shape of polylaplace noise suits which sensitivities: a table in Markdown.

A small shape lets the weights fall fast, so that bounds L_k which grow with the distance k are cut
early; a large shape has lighter tails. Run: python -m benchmarks.shape
Data: none.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from statistics import geometric_mean

from sqlrs.noise import DEFAULT_SHAPE, ErrorBars, PolyLaplace, Weights

SHAPES = (3, 4, 5, 7, 10, 20, 40)
EPSILONS = (Decimal("0.1"), Decimal("0.5"), Decimal(1), Decimal(2))
MEASURES = (
    "Standard error",
    "Median error",
    "Half width of 95 % error bars for a fifth of epsilon",
)
EXTREME = "quintic, (10+k)^5"


@dataclass(frozen=True)
class Family:
    name: str
    bound: Callable[[int], int]


FAMILIES = (
    Family("flat, L_k = 1000 + k", lambda k: 1000 + k),
    Family("small, L_k = 1 + k", lambda k: 1 + k),
    Family("quadratic, (d+k)(d+k-1), d = 10", lambda k: (10 + k) * (9 + k)),
    Family("quadratic, (d+k)(d+k-1), d = 500", lambda k: (500 + k) * (499 + k)),
    Family(EXTREME, lambda k: (10 + k) ** 5),
    Family("quintic, (500+k)^5", lambda k: (500 + k) ** 5),
)


def smooth_sensitivity(family: Family, weights: Weights) -> Fraction:
    """The greatest w_k * L_k: for all these bounds the products rise to one peak, then fall."""
    best, k = Fraction(0), 0
    while (value := weights[k] * family.bound(k)) * 2 > best:
        best, k = max(best, value), k + 1
    return best


Row = dict[int, float]
Key = tuple[str, Decimal]


def measure() -> dict[str, dict[Key, Row]]:
    """Each measure of error, for every family, epsilon and shape."""
    result: dict[str, dict[Key, Row]] = {name: {} for name in MEASURES}
    for epsilon in EPSILONS:
        for shape in SHAPES:
            mechanism = PolyLaplace(epsilon, shape)
            bars = ErrorBars(epsilon / 5, mechanism)
            multiples = (
                mechanism.standard_error_multiple(),
                mechanism.median_error_multiple(),
                float(bars.multiple * mechanism.scale(Fraction(1))),
            )
            for family in FAMILIES:
                sensitivity = float(smooth_sensitivity(family, mechanism.weights))
                for name, multiple in zip(MEASURES, multiples, strict=True):
                    row = result[name].setdefault((family.name, epsilon), {})
                    row[shape] = multiple * sensitivity
    return result


def table(rows: dict[Key, Row]) -> str:
    """One row a family and epsilon: the best error, and each shape relative to it."""
    head = ["family", "epsilon", "best", *(f"a = {shape}" for shape in SHAPES)]
    lines = [_line(head), "|---" * len(head) + "|"]
    for family in FAMILIES:
        for epsilon in EPSILONS:
            row = rows[family.name, epsilon]
            best = min(row.values())
            relative = (_marked(row[shape] / best) for shape in SHAPES)
            lines.append(_line([family.name, str(epsilon), f"{best:.3g}", *relative]))
    return "\n".join(lines)


def summary(rows: dict[Key, Row]) -> str:
    """How much worse than the best shape each shape is: over all rows, and without the extreme."""
    head = ["shape", "geometric mean", "without the small quintic", "worst row", "worst without it"]
    lines = [_line(head), "|---" * len(head) + "|"]
    for shape in SHAPES:
        factors = {key: row[shape] / min(row.values()) for key, row in rows.items()}
        usual = [factor for (name, _), factor in factors.items() if name != EXTREME]
        cells = (
            geometric_mean(factors.values()),
            geometric_mean(usual),
            max(factors.values()),
            max(usual),
        )
        mark = " (default)" if shape == DEFAULT_SHAPE else ""
        lines.append(_line([f"{shape}{mark}", *(f"{cell:.2f}" for cell in cells)]))
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _marked(factor: float) -> str:
    return f"**{factor:.2f}**" if factor == 1 else f"{factor:.2f}"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, rows in measure().items():
        print(f"## {name}\n\nRelative to the best shape of each row.\n\n{table(rows)}\n")
        print(f"Over the rows:\n\n{summary(rows)}\n")


if __name__ == "__main__":
    main()
