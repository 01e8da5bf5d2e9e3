"""Answers as drawings: bars with their intervals, and the interval of one count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from html import escape
from math import isfinite

from sqlrs.answer import Answer
from sqlrs.compiler.bars import HIGH, LOW
from sqlrs.records import dataclass
from sqlrs.table_answer import TableAnswer

_WIDTH = 640
_LABEL = 150
_ROW = 26
_TOP = 10
_MOST_BARS = 40
_MOST_CHARTS = 3
_NUMERIC = ("INT", "DECIMAL", "DOUBLE", "FLOAT")


@dataclass(frozen=True)
class Bar:
    """One group: its keys, its number, and the ends of its interval."""

    label: str
    value: float
    low: float
    high: float


def charts(answer: TableAnswer) -> list[str]:
    """One drawing for each of the first aggregates; none where there is nothing to compare."""
    names = answer.names
    ends = {n for name in names for n in (f"{name}{LOW}", f"{name}{HIGH}") if n in names}
    numbers = [
        place
        for place, (name, kind) in enumerate(answer.columns)
        if name not in ends and any(word in kind for word in _NUMERIC) and place > 0
    ]
    keys = [p for p, name in enumerate(names) if p not in numbers and name not in ends]
    if not keys or len(answer) < 2:
        return []
    found = (_bars(answer, keys, place) for place in numbers[:_MOST_CHARTS])
    return [
        _drawn(names[place], bars, len(answer) - len(bars))
        for place, bars in zip(numbers, found, strict=False)
        if bars
    ]


def interval(answer: Answer) -> str:
    """The interval of a count as a line with the answer on it."""
    bars = answer.error_bars
    if bars is None:
        return ""
    return _drawn("interval", [Bar("", answer.value, bars.low, bars.high)], 0, from_zero=False)


def _bars(answer: TableAnswer, keys: Sequence[int], place: int) -> list[Bar]:
    names = answer.names
    low = _place(names, f"{names[place]}{LOW}", place)
    high = _place(names, f"{names[place]}{HIGH}", place)
    bars = []
    for row in answer.rows[:_MOST_BARS]:
        values = [_finite(row[at]) for at in (place, low, high)]
        label = ", ".join("NULL" if row[key] is None else str(row[key]) for key in keys)
        if values[0] is not None:
            value = values[0]
            ends = [value if end is None else end for end in values[1:]]
            bars.append(Bar(label, value, min(ends), max(ends)))
    return bars


def _place(names: Sequence[str], name: str, otherwise: int) -> int:
    return names.index(name) if name in names else otherwise


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def _drawn(name: str, bars: Sequence[Bar], left_out: int, *, from_zero: bool = True) -> str:
    ends = [end for bar in bars for end in (bar.low, bar.high, bar.value)]
    low, high = min(ends), max(ends)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    margin = (high - low) * 0.04 or 1.0
    low, high = low - margin, high + margin
    left = _LABEL if from_zero else 20
    scale = (_WIDTH - left - 20) / (high - low)

    def x(value: float) -> float:
        return left + (value - low) * scale

    height = _TOP + _ROW * len(bars) + 24
    what = f"{name} of {len(bars)} groups" if from_zero else "the answer within its interval"
    caption = f'<p class="caption">{escape(name)}</p>' if from_zero else ""
    parts = [
        f'{caption}<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(what)}: the same numbers are in the table">'
    ]
    for number, bar in enumerate(bars):
        parts += _row(bar, _TOP + _ROW * number + _ROW / 2, x, from_zero)
    base = _TOP + _ROW * len(bars)
    parts.append(f'<line class="axis" x1="{left}" x2="{_WIDTH - 20}" y1="{base}" y2="{base}"/>')
    marks = (min(e for b in bars for e in (b.low, b.value)), max(b.high for b in bars))
    for value, anchor in zip(marks, ("start", "end"), strict=True):
        parts.append(
            f'<text x="{x(value):.1f}" y="{base + 16}" text-anchor="{anchor}">'
            f"{_short(value)}</text>"
        )
    parts.append("</svg>")
    more = f"<p>{left_out} more groups are in the table.</p>" if left_out else ""
    return "".join(parts) + more


def _short(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.4g}"


def _row(bar: Bar, y: float, x: Callable[[float], float], from_zero: bool) -> list[str]:
    start, end = sorted((x(0.0), x(bar.value))) if from_zero else (0.0, 0.0)
    parts = []
    if from_zero:
        label = bar.label if len(bar.label) <= 20 else bar.label[:19] + "…"
        parts = [
            f'<text x="{_LABEL - 8}" y="{y + 4}" text-anchor="end">{escape(label)}</text>',
            f'<rect class="bar" x="{start:.1f}" y="{y - 8}" width="{end - start:.1f}" '
            'height="16"/>',
        ]
    low, high = x(bar.low), x(bar.high)
    if high > low:
        parts += [
            f'<line class="error" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>',
            f'<line class="error" x1="{low:.1f}" x2="{low:.1f}" y1="{y - 5}" y2="{y + 5}"/>',
            f'<line class="error" x1="{high:.1f}" x2="{high:.1f}" y1="{y - 5}" y2="{y + 5}"/>',
        ]
    if not from_zero:
        parts.append(f'<circle class="dot" cx="{x(bar.value):.1f}" cy="{y}" r="5"/>')
    return parts
