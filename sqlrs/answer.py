"""What leaves the release path: a noisy count together with what it cost, and nothing private."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction


@dataclass(frozen=True)
class Interval:
    """Error bars: the true count lies between ``low`` and ``high`` with the stated coverage."""

    low: int
    high: int
    coverage: Fraction


@dataclass(frozen=True)
class Answer:
    """A released count. ``epsilon`` is everything that was charged for it.

    ``repeated``: the same was asked before, so this is the recorded answer, free of charge and
    without fresh noise. ``epsilon`` is then what it cost the first time.
    """

    value: int
    epsilon: Decimal
    mechanism: str
    error_bars: Interval | None = None
    repeated: bool = field(default=False, compare=False)

    def to_json(self) -> str:
        """The public answer as JSON."""
        bars = self.error_bars
        return json.dumps(
            {
                "answer": self.value,
                "epsilon": f"{self.epsilon:f}",
                "mechanism": self.mechanism,
                "error_bars": bars
                and {"low": bars.low, "high": bars.high, "coverage": str(bars.coverage)},
                "repeated": self.repeated,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """The answer that ``to_json`` wrote."""
        record = json.loads(text)
        bars = record["error_bars"]
        return cls(
            value=record["answer"],
            epsilon=Decimal(record["epsilon"]),
            mechanism=record["mechanism"],
            error_bars=bars and Interval(bars["low"], bars["high"], Fraction(bars["coverage"])),
        )
