"""What the tools of `peers` said, as one row for each tool, task and kind of bound."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class PeerRow:
    """A tool on a task: its error, its time and what it needed, or why there is no number."""

    task: str
    tool: str
    version: str
    bound: str | None
    said: str
    error: float | None = None
    standard_error: float | None = None
    by_law: bool = False
    seconds: float | None = None
    core_seconds: float | None = None
    open_core_seconds: float | None = None
    whole_seconds: float | None = None
    whole_core_seconds: float | None = None

    def kept(self) -> dict[str, Any]:
        return asdict(self)


def summarised(
    tool: str, version: str, lines: Iterable[Mapping[str, Any]], truth: Mapping[str, list[float]]
) -> list[PeerRow]:
    """One row for each task and bound of a tool."""
    cases: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
    for line in lines:
        cases.setdefault((line["task"], line["bound"]), []).append(line)
    return [_row(tool, version, task, bound, own, truth) for (task, bound), own in cases.items()]


def with_law(row: PeerRow, laws: Mapping[tuple[str, str | None], tuple[float, float]]) -> PeerRow:
    """The row with the median and the standard error of its exact law, where there is one."""
    if (row.task, row.bound) not in laws or row.error is None:
        return row
    median, standard_error = laws[row.task, row.bound]
    return replace(row, error=median, standard_error=standard_error, by_law=True)


def _row(
    tool: str,
    version: str,
    task: str,
    bound: str | None,
    lines: Sequence[Mapping[str, Any]],
    truth: Mapping[str, list[float]],
) -> PeerRow:
    for line in lines:
        if "refused" in line:
            return PeerRow(task, tool, version, bound, f"refused: {line['refused']}")
    opened = [line["open_core_seconds"] for line in lines if "open_core_seconds" in line]
    wholes = [line for line in lines if "whole_seconds" in line]
    lines = [line for line in lines if "answer" in line and "open_core_seconds" not in line]
    errors = [
        statistics.mean(abs(a - b) for a, b in zip(line["answer"], truth[task], strict=True))
        for line in lines
    ]
    wrong = lines[0]["wrong"]
    return PeerRow(
        task,
        tool,
        version,
        bound,
        lines[0]["supplied"] + (f"; **wrong**: {wrong}" if wrong else ""),
        statistics.median(errors),
        lines[0]["noise"] or math.sqrt(statistics.mean(error**2 for error in errors)),
        lines[0]["noise"] is not None,
        min(line["seconds"] for line in lines),
        min(line["core_seconds"] for line in lines),
        min(opened, default=None),
        min((line["whole_seconds"] for line in wholes), default=None),
        min((line["whole_core_seconds"] for line in wholes), default=None),
    )


def table(rows: Sequence[PeerRow], skipped: Mapping[str, str]) -> str:
    """Markdown, by task and standard error; rows whose bound was read off the data are marked."""
    lines = [
        "| task | tool | median error | standard error | whole s | whole core s | s | core s | "
        "core s, open | supplied, refused or wrong |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in sorted(rows, key=_place):
        mark = " †" if row.bound == "read off the data" else ""
        measured = "" if row.by_law or row.error is None else "≈ "
        figures = [_figure(row.error), measured + _figure(row.standard_error)]
        times = (row.whole_seconds, row.whole_core_seconds, row.seconds, row.core_seconds)
        figures += ["" if one is None else f"{one:.2f}" for one in times]
        figures.append("" if row.open_core_seconds is None else f"{row.open_core_seconds:.3f}")
        said = row.said.replace("|", "\\|")
        lines.append(
            f"| {row.task} | {row.tool} {row.version}{mark} | {' | '.join(figures)} | {said} |"
        )
    lines += [
        "",
        "† with a bound that was read off the data. ≈ is seen in the answers, others by their law.",
    ]
    lines += [f"\nNot here: {name} ({why})." for name, why in skipped.items()]
    return "\n".join(lines)


def _place(row: PeerRow) -> tuple[str, float]:
    return row.task, math.inf if row.standard_error is None else row.standard_error


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
