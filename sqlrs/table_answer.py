"""What leaves the release path for a query with groups: a table together with what it cost."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import date, time
from decimal import Decimal
from html import escape
from importlib import import_module
from typing import Any
from uuid import UUID

from sqlrs.answer import Clipping
from sqlrs.compiler.bars import HIGH, LOW
from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.units import ROW

_SHOWN = 20
_WIDEST = 60
_NUMERIC = ("INT", "DECIMAL", "DOUBLE", "FLOAT")


@dataclass(frozen=True)
class TableAnswer:
    """Released rows. ``epsilon`` is everything that was charged for them.

    ``columns``: the name of each and DuckDB's name of its type. ``repeated``: the same was asked
    before, so the rows come from recorded numbers, free of charge and without fresh noise.
    ``notes``: what a reader should know, such as rows that are in no group. ``protects``: one row,
    or all rows of one unit, by its name; ``clippings`` then has one for each noisy aggregate.
    ``intervals``: error bars were asked for; they are columns behind those of their numbers.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[object, ...], ...]
    epsilon: Decimal
    mechanism: str
    repeated: bool = field(default=False, compare=False)
    notes: tuple[str, ...] = ()
    protects: str = ROW
    clippings: tuple[Clipping, ...] = ()
    intervals: bool = False

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> tuple[object, ...]:
        """One row by its number."""
        return self.rows[row]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def error_bars(self) -> tuple[tuple[tuple[object, object], ...], ...] | None:
        """For each row the low and the high end of each aggregate; None if not asked for."""
        if not self.intervals:
            return None
        names = self.names
        found = [
            place
            for place, name in enumerate(names)
            if names[place + 1 : place + 3] == (f"{name}{LOW}", f"{name}{HIGH}")
        ]
        return tuple(tuple((row[i + 1], row[i + 2]) for i in found) for row in self.rows)

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame."""
        return _library("pandas").DataFrame(list(self.rows), columns=list(self.names))

    def to_arrow(self) -> Any:
        """The rows as a pyarrow.Table."""
        pyarrow = _library("pyarrow")
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        return pyarrow.table([pyarrow.array(one) for one in columns], names=list(self.names))

    def to_polars(self) -> Any:
        """The rows as a polars.DataFrame."""
        return _library("polars").DataFrame(
            list(self.rows), schema=list(self.names), orient="row", infer_schema_length=None
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What makes ``pyarrow.table(answer)`` and ``polars.DataFrame(answer)`` work."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_json(self) -> str:
        """The answer as JSON; decimals, dates and their like are texts."""
        bars = self.error_bars
        return json.dumps(
            {
                "columns": list(self.names),
                "rows": [[_for_json(value) for value in row] for row in self.rows],
                "epsilon": f"{self.epsilon:f}",
                "mechanism": self.mechanism,
                "error_bars": bars
                and [[[_for_json(end) for end in both] for both in row] for row in bars],
                "repeated": self.repeated,
                "notes": list(self.notes),
                "protects": self.protects,
                "clippings": [one.to_record() for one in self.clippings],
            },
            allow_nan=False,
        )

    def __repr__(self) -> str:
        return self.to_text(most=_SHOWN)

    def to_text(self, *, most: int | None = None) -> str:
        """The rows as an aligned table, at most so many, with the price below."""
        head = [_cell(name) for name in self.names]
        body = [[_cell(value) for value in row] for row in self.rows[:most]]
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        right = [any(word in kind for word in _NUMERIC) for _, kind in self.columns]
        lines = [_line(head, widths, right), "─" * (sum(widths) + 2 * max(len(widths) - 1, 0))]
        lines += [_line(row, widths, right) for row in body]
        return "\n".join([*lines, *self._below(len(body))])

    def _repr_html_(self) -> str:
        """The table as a notebook shows it."""
        head = _html_row("th", self.names, escape)
        body = "".join(_html_row("td", row, _html_cell) for row in self.rows[:_SHOWN])
        below = "<br>".join(escape(line) for line in self._below(_SHOWN))
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table><p>{below}</p>"

    def _below(self, shown: int) -> list[str]:
        more = len(self.rows) - shown
        lines = [f"… {more} more row{'s' * (more > 1)}"] if more > 0 else []
        cost = [f"ε = {self.epsilon:f}", self.mechanism, "repeated" if self.repeated else ""]
        return [*lines, ", ".join(part for part in cost if part), *self.notes]


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise UsageError(
            f"this needs the Python package {name}", hint=f"pip install {name}"
        ) from None


def _for_json(value: object) -> object:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return f"{value:f}"
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
    return str(value)


def _cell(value: object) -> str:
    """A value on one line of a terminal."""
    if value is None:
        return "NULL"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    placed = [
        cell.rjust(width) if to_the_right else cell.ljust(width)
        for cell, width, to_the_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(placed).rstrip()


def _html_cell(value: object) -> str:
    return "<i>NULL</i>" if value is None else escape(_cell(value))


def _html_row(tag: str, values: tuple[Any, ...], shown: Callable[[Any], str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{shown(value)}</{tag}>" for value in values) + "</tr>"
