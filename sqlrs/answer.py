"""What leaves the release path: a noisy count together with what it cost, and nothing private."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any

from sqlrs.records import dataclass
from sqlrs.units import ROW


@dataclass(frozen=True)
class Interval:
    """Error bars: the true count lies between ``low`` and ``high`` with the stated coverage."""

    low: int
    high: int
    coverage: Fraction


@dataclass(frozen=True)
class Clipping:
    """How much of one unit could enter a number: public once it is chosen, so it costs nothing.

    A unit that contributes more than ``threshold`` was cut to that; not ``cut``: by the query alone
    no unit can. ``standard_error`` is that of the noise; what the cut took away is not in it.
    """

    threshold: Fraction
    standard_error: float
    cut: bool = True

    def to_record(self) -> dict[str, str | float | bool]:
        """The public facts, for JSON."""
        return {
            "threshold": str(self.threshold),
            "standard_error": self.standard_error,
            "cut": self.cut,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Clipping:
        """What ``to_record`` wrote."""
        return cls(Fraction(record["threshold"]), record["standard_error"], record["cut"])

    def __str__(self) -> str:
        return self.said("units")

    def said(self, whose: str) -> str:
        """In words; ``whose`` contributions were cut."""
        error = f"standard error {_short(self.standard_error)}"
        exact = self.threshold.denominator == 1
        most = str(self.threshold) if exact else _short(float(self.threshold))
        return f"{whose} above {most} were cut to {most}; {error}" if self.cut else error


@dataclass(frozen=True)
class Wished:
    """The error that was wished instead of a price, and the most that it might have cost.

    ``looked``: what the estimate of the scale cost, 0 where it was known before, None where the
    width of the noise is public.
    """

    error: Decimal
    maximum: Decimal
    looked: Decimal | None = None

    def to_record(self) -> dict[str, str | None]:
        """The public facts, for JSON."""
        looked = None if self.looked is None else f"{self.looked:f}"
        return {"error": f"{self.error:f}", "maximum": f"{self.maximum:f}", "looked": looked}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Wished:
        """What ``to_record`` wrote."""
        looked = record["looked"]
        return cls(
            Decimal(record["error"]),
            Decimal(record["maximum"]),
            None if looked is None else Decimal(looked),
        )

    def in_words(self, epsilon: Decimal) -> str:
        """What was wished and what it cost."""
        said = f"an error of at most {self.error:f} was wished: epsilon {epsilon:f} of at most "
        said += f"{self.maximum:f}"
        if self.looked is None:
            return said
        if not self.looked:
            return f"{said}; the scale of the noise was known from an earlier question"
        return f"{said}, {self.looked:f} of it to estimate the scale of the noise"


def _short(value: float) -> str:
    """Three digits, or all of those before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def unit_notes(protects: str, clippings: Sequence[Clipping]) -> tuple[str, ...]:
    """Who is protected and how much of one unit could enter each aggregate, in words.

    Of rows only the latter: that one row is protected goes without saying.
    """
    of_rows = protects == ROW
    cuts = [one.said("rows" if of_rows else "units") for one in clippings]
    if len(cuts) > 1:
        cuts = [f"aggregate {place}: {cut}" for place, cut in enumerate(cuts, 1)]
    whole = () if of_rows else (f"one unit of {protects} is protected, with all its rows",)
    return (*whole, *cuts)


@dataclass(frozen=True)
class Answer:
    """A released count. ``epsilon`` is everything that was charged for it.

    ``repeated``: the same was asked before, so this is the recorded answer, free of charge and
    without fresh noise. ``epsilon`` is then what it cost the first time. ``protects``: one row of a
    private table, or all rows of one unit, by the unit's name; of these ``clipping`` says more.
    ``wished``: the error that was asked for instead of a price.
    """

    value: int
    epsilon: Decimal
    mechanism: str
    error_bars: Interval | None = None
    repeated: bool = field(default=False, compare=False)
    protects: str = ROW
    clipping: Clipping | None = None
    wished: Wished | None = None

    def __int__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, how: str) -> str:
        """The number, formatted as an integer is: ``f"{answer:,}"``."""
        return format(self.value, how)

    def _repr_html_(self) -> str:
        """The answer as a notebook shows it: the number, its interval, its price."""
        bars = self.error_bars
        interval = (
            f" <span>between {bars.low:,} and {bars.high:,} with probability "
            f"{float(bars.coverage):.0%}</span>"
            if bars is not None
            else ""
        )
        cost = [f"ε = {self.epsilon:f}", self.mechanism, "repeated" if self.repeated else ""]
        below = [", ".join(part for part in cost if part), *self.notes]
        return (
            f"<div><b>{self.value:,}</b>{interval}<br>"
            f"<small>{'<br>'.join(escape(line) for line in below)}</small></div>"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Who is protected and how much of one unit could enter, and what was wished, in words."""
        said = () if self.wished is None else (self.wished.in_words(self.epsilon),)
        return (
            *unit_notes(self.protects, () if self.clipping is None else (self.clipping,)),
            *said,
        )

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
                "protects": self.protects,
                "clipping": self.clipping and self.clipping.to_record(),
            }
            | ({} if self.wished is None else {"wished": self.wished.to_record()})
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
            # Answers that were recorded before units could be declared say nothing of these.
            protects=record.get("protects", ROW),
            clipping=(clipping := record.get("clipping")) and Clipping.from_record(clipping),
            wished=(wished := record.get("wished")) and Wished.from_record(wished),
        )
