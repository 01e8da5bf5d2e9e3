"""Draws the picture of README: one row of the demo's graph, and the answers with and without it.

Nothing in it is invented: the row, its triangles, the counts and both laws of the noise are what
the project's own code finds. `make golden` writes docs/overview-light.svg and -dark.svg anew.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

from sqlrs.connecting import connect
from sqlrs.graphs.demo import demo_edges
from sqlrs.graphs.patterns import pattern_sql
from sqlrs.noise import DEFAULT_SHAPE, PolyLaplace

WIDTH, HEIGHT = 960, 324
EPSILON = Decimal(1)
_REACH = 200  # how far from the true count the curves go
_STEP = 4
_PANELS = (130, 452, 805)  # the middle of each panel
_LEVEL = 150
_SQL = ("SELECT count(*)", "FROM edge a", "JOIN edge b ON a.dst = b.src", "JOIN edge c ON …")
_SANS = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"
_MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"


@dataclass(frozen=True)
class Theme:
    """The colours of GitHub's own pages."""

    text: str
    muted: str
    line: str
    panel: str
    row: str
    on_row: str
    without: str


THEMES = {
    "light": Theme("#1f2328", "#59636e", "#afb8c1", "#f6f8fa", "#bc4c00", "#ffffff", "#0969da"),
    "dark": Theme("#f0f6fc", "#9198a1", "#656c76", "#151b23", "#f0883e", "#0d1117", "#4493f8"),
}


@dataclass(frozen=True)
class Story:
    """What the picture tells: a row, and the law of the answers with it and without it."""

    row: tuple[int, int]
    rows: int
    common: tuple[int, ...]
    counts: tuple[int, int]
    laws: tuple[dict[int, float], dict[int, float]]


def story() -> Story:
    """The row of the demo's graph that most triangles need."""
    edges = demo_edges()
    friends: dict[int, set[int]] = {}
    for a, b in edges:
        friends.setdefault(a, set()).add(b)
    row = max(edges, key=lambda edge: len(friends[edge[0]] & friends[edge[1]]))
    with_row = _measured(edges)
    without = _measured([edge for edge in edges if edge != row])
    return Story(
        row,
        len(edges),
        tuple(sorted(friends[row[0]] & friends[row[1]])),
        (with_row[0], without[0]),
        (_law(*with_row), _law(*without)),
    )


def _measured(edges: list[tuple[int, int]]) -> tuple[int, Fraction]:
    """The true count of triangles and the sensitivity that scales the noise."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "edge.txt")
        path.write_text("".join(f"{a}\t{b}\n" for a, b in edges), encoding="ascii")
        with connect(tables={"edge": path}) as database:
            found = database.sensitivity(pattern_sql("triangle"), beta=EPSILON / DEFAULT_SHAPE)
    assert found.count is not None
    return found.count, found.value


def _law(count: int, sensitivity: Fraction) -> dict[int, float]:
    """The chance of each answer near the count."""
    noise = PolyLaplace(EPSILON)
    scale = noise.scale(sensitivity)
    return {
        count + k: float(noise.tail(scale, abs(k)) - noise.tail(scale, abs(k) + 1))
        / (2 if k else 1)
        for k in range(-2 * _REACH, 2 * _REACH + 1)
    }


def picture(told: Story, theme: Theme) -> str:
    """The whole picture, on a transparent ground."""
    drawing = _Drawing(theme)
    drawing.titles(told)
    drawing.graph(told)
    drawing.query()
    drawing.curves(told)
    return drawing.text()


class _Drawing:
    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {WIDTH} {HEIGHT}",
                "width": str(WIDTH),
                "height": str(HEIGHT),
                "role": "img",
                "font-family": _SANS,
                "font-size": "14",
            },
        )

    def text(self) -> str:
        ElementTree.indent(self._root, " ")
        return ElementTree.tostring(self._root, encoding="unicode") + "\n"

    def titles(self, told: Story) -> None:
        title = ElementTree.SubElement(self._root, "title")
        title.text = (
            "One row of a private table takes part in many results of a join. sqlrs measures how "
            "many, and adds noise that hides whether the row is there."
        )
        results = told.counts[0] - told.counts[1]
        for middle, head, lines in zip(
            _PANELS,
            ("private rows", "a count over joins", "private answers"),
            (
                ("one row is part of", f"{results} of the {told.counts[0]:,} results"),
                ("sqlrs measures what one row can", "change, charges ε, adds the noise"),
                (
                    "with the row and without it: no answer",
                    f"is more than e^ε = {math.exp(EPSILON):.2f} times as likely",
                ),
            ),
            strict=True,
        ):
            self._words(middle, 26, head, size=17, weight="600")
            for number, line in enumerate(lines):
                self._words(middle, 288 + 20 * number, line, colour=self._theme.muted)

    def graph(self, told: Story) -> None:
        """The row between its two ends, and their common friends on both sides of it."""
        middle, level = _PANELS[0], _LEVEL
        ends = ((middle - 84, level), (middle + 84, level))
        above = (len(told.common) + 1) // 2
        places = []
        for number in range(len(told.common)):
            side, at = divmod(number, above)
            many = above if side == 0 else len(told.common) - above
            angle = math.pi * (at + 1) / (many + 1)
            reach = 98 if at % 2 else 84
            up = -1 if side == 0 else 1
            places.append((middle - 76 * math.cos(angle), level + up * reach * math.sin(angle)))
        for x, y in places:
            for end in ends:
                self._line(end, (x, y), self._theme.line, 1.2)
        self._line(*ends, self._theme.row, 4)
        for x, y in places:
            self._dot(x, y, 4.5, self._theme.muted)
        for (x, y), name in zip(ends, told.row, strict=True):
            self._dot(x, y, 17, self._theme.row)
            self._words(x, y + 5, str(name), colour=self._theme.on_row, weight="600")

    def query(self) -> None:
        middle = _PANELS[1]
        self._add(
            "rect",
            x=middle - 138,
            y=_LEVEL - 52,
            width=276,
            height=104,
            rx=8,
            fill=self._theme.panel,
            stroke=self._theme.line,
        )
        for number, line in enumerate(_SQL):
            self._words(middle - 122, _LEVEL - 25 + 20 * number, line, anchor="start", mono=True)
        self._words(middle, _LEVEL + 84, f"ε = {EPSILON}", size=17, colour=self._theme.text)
        for start, end in ((256, 298), (606, 648)):
            self._line((start, _LEVEL), (end - 7, _LEVEL), self._theme.muted, 2)
            self._add(
                "path",
                d=f"M{end - 9} {_LEVEL - 6} L{end} {_LEVEL} L{end - 9} {_LEVEL + 6} z",
                fill=self._theme.muted,
            )

    def curves(self, told: Story) -> None:
        middle, ground, top = _PANELS[2], _LEVEL + 78.0, _LEVEL - 94.0
        center = sum(told.counts) // 2
        peak = max(max(law.values()) for law in told.laws)

        def across(answer: int) -> float:
            return middle + (answer - center) * 130 / _REACH

        for law, count, colour in zip(
            told.laws, told.counts, (self._theme.row, self._theme.without), strict=True
        ):
            shown = [count + k for k in range(-_REACH - 20, _REACH + 21, _STEP)]
            shown = [answer for answer in shown if abs(answer - center) <= _REACH]
            points = [
                f"{across(answer):.1f} {ground - (ground - top) * law[answer] / peak:.1f}"
                for answer in shown
            ]
            outline = "M" + " L".join(points)
            first, last = f"{across(shown[0]):.1f}", f"{across(shown[-1]):.1f}"
            area = f"{outline} L{last} {ground} L{first} {ground} z"
            self._add("path", d=area, fill=colour, opacity=0.18)
            self._add(
                "path",
                d=outline,
                fill="none",
                stroke=colour,
                stroke_width=2.2,
                stroke_linejoin="round",
            )
        self._line((middle - 140, ground), (middle + 140, ground), self._theme.muted, 1.5)
        for tick in range(-_REACH + _REACH % 100, _REACH + 1, 100):
            answer = round(center, -2) + tick
            if abs(answer - center) > _REACH:
                continue
            self._line(
                (across(answer), ground), (across(answer), ground + 5), self._theme.muted, 1.5
            )
            self._words(
                across(answer), ground + 21, f"{answer:,}", size=12, colour=self._theme.muted
            )
        self._words(
            across(told.counts[0]) + 34, _LEVEL - 78, "with", colour=self._theme.row, anchor="start"
        )
        self._words(
            across(told.counts[1]) - 34,
            _LEVEL - 78,
            "without",
            colour=self._theme.without,
            anchor="end",
        )

    def _words(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 14,
        colour: str | None = None,
        anchor: str = "middle",
        weight: str = "400",
        mono: bool = False,
    ) -> None:
        element = self._add(
            "text",
            x=x,
            y=y,
            fill=colour or self._theme.text,
            text_anchor=anchor,
            font_size=size,
            font_weight=weight,
            **({"font_family": _MONO} if mono else {}),
        )
        element.text = words

    def _line(
        self, start: tuple[float, float], end: tuple[float, float], colour: str, width: float
    ) -> None:
        self._add(
            "line",
            x1=start[0],
            y1=start[1],
            x2=end[0],
            y2=end[1],
            stroke=colour,
            stroke_width=width,
            stroke_linecap="round",
        )

    def _dot(self, x: float, y: float, radius: float, colour: str) -> None:
        self._add("circle", cx=x, cy=y, r=radius, fill=colour)

    def _add(self, tag: str, **attributes: object) -> ElementTree.Element:
        return ElementTree.SubElement(
            self._root,
            tag,
            {name.replace("_", "-"): _plain(value) for name, value in attributes.items()},
        )


def _plain(value: object) -> str:
    """A number with at most one decimal more than eyes see: alike on every machine."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
