"""Query -> SVG as people draw schemas: a box for each table, lines between joined columns.

A box lists the columns that the query uses and its filters. Private tables are marked; predicates
are labelled lines. The residual of some tables is drawn bold, its boundary in amber.
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise
from typing import cast
from xml.etree import ElementTree

from sqlglot import exp

from sqlrs.owner.schema_layout import Box, columns_of, placed
from sqlrs.query import Atom, Comparison, Constant, Filter, Inequality, Query, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual
from sqlrs.trees.identifiers import identifier
from sqlrs.trees.predicates import predicate_text

# A monospaced letter of 12 pixels is 7.3 wide at most, so a label is as wide as it is long.
_LETTER = 7.3
_LINE = 20
_PAD = 10
_MARGIN = 20
_LONGEST = 40
_LEAST_GAP = 70
_TURNED = {"<": ">", "≤": "≥"}
_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1b1f24;
  dominant-baseline: central }
.table { fill: #ffffff; stroke: #8c959f; stroke-width: 1.2 }
.head { fill: #eaeef2 }
.private .head { fill: #ffd8d3 }
.member .table { stroke: #0969da; stroke-width: 3.5 }
.other { opacity: 0.55 }
.name { font-weight: bold }
.mark, .note { fill: #57606a; font-size: 11px }
.filter { fill: #6639ba; font-style: italic }
.boundary-row { fill: #fff3c4; stroke: #bf8700; stroke-width: 2 }
.join { fill: none; stroke: #57606a; stroke-width: 1.6 }
.crossing { fill: none; stroke: #bf8700; stroke-width: 4 }
.predicate { fill: none; stroke: #8250df; stroke-width: 1.4; stroke-dasharray: 5 4 }
.label-back { fill: #ffffff; stroke: #d8b9ff }
.label { fill: #6639ba }
.end { fill: #57606a }
"""


@dataclass(frozen=True)
class _Line:
    """A line between the rows of two columns, with a label if it is a predicate."""

    ends: tuple[tuple[int, str], tuple[int, str]]
    label: str | None = None
    variable: Variable | None = None


@dataclass
class _Drawing:
    root: ElementTree.Element
    boxes: dict[int, Box]
    rows: dict[tuple[int, str], float]
    taken: list[tuple[float, float, float, float]] = field(default_factory=list)
    # Drawn last, so that no line goes through a label.
    labels: ElementTree.Element = field(default_factory=lambda: ElementTree.Element("g"))


def draw_schema(query: Query, residual: Residual | None, title: str) -> str:
    """The tables of a query and what links them as an SVG document."""
    members = residual.members if residual is not None else frozenset[int]()
    boundary = residual.boundary if residual is not None else frozenset[Variable]()
    lines, notes = _lines(query)
    if residual is not None:
        names = ", ".join(map(str, sorted(boundary))) or "none"
        notes.insert(0, f"blue: the residual {residual}; amber: its boundary, {names}")
    texts = {i: _texts(atom, query) for i, atom in enumerate(query.atoms)}
    sizes = {i: _size(query.atoms[i], found) for i, found in texts.items()}
    parts = columns_of(len(query.atoms), [(a[0], b[0]) for line in lines for a, b in [line.ends]])
    boxes = placed(parts, sizes, _gaps(lines, parts), _MARGIN)
    below = max(box.bottom for box in boxes.values())
    root = ElementTree.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
    ElementTree.SubElement(root, "title").text = title
    ElementTree.SubElement(root, "style").text = _STYLE
    ElementTree.SubElement(root, "rect", width="100%", height="100%", fill="#ffffff")
    drawing = _Drawing(root, boxes, {})
    for i, atom in enumerate(query.atoms):
        _box(drawing, i, atom, texts[i], boundary if i in members else frozenset(), members)
    for line in lines:
        _link(drawing, line, members, boundary)
    root.extend(drawing.labels)
    for number, note in enumerate(notes):
        _text(root, _MARGIN, below + 24 + _LINE * number, note, "note")
    right = max(
        *(box.right for box in boxes.values()),
        *(x + width for x, _, width, _ in drawing.taken),
        *(_MARGIN + len(note) * _LETTER for note in notes),
        0,
        0,
    )
    low = max(below, *(y + height for _, y, _, height in drawing.taken), 0)
    width, height = right + _MARGIN, low + _LINE * len(notes) + _MARGIN + (12 if notes else 0)
    root.set("viewBox", f"0 0 {width:.0f} {height:.0f}")
    root.set("width", f"{width:.0f}")
    root.set("height", f"{height:.0f}")
    return ElementTree.tostring(root, encoding="unicode")


def _lines(query: Query) -> tuple[list[_Line], list[str]]:
    """The links between columns, and what is no link between two of them, as notes."""
    holders: dict[Variable, list[tuple[int, str]]] = {}
    for i, atom in enumerate(query.atoms):
        for name, term in atom.terms:
            if isinstance(term, Variable):
                holders.setdefault(term, []).append((i, name))
    lines = [
        _Line((one, other), variable=variable)
        for variable, places in holders.items()
        for one, other in pairwise(places)
    ]
    notes = []
    for predicate in query.predicates:
        named = sorted(predicate.variables)
        if isinstance(predicate, Comparison):
            named = [v for v in (predicate.left, predicate.right) if isinstance(v, Variable)]
            if len(named) < 2:
                continue
        ends = [holders[v][0] for v in named]
        if len(ends) != 2:
            notes.append(f"where {predicate_text(predicate)}")
            continue
        if isinstance(predicate, Inequality):
            label = "≠"
        elif isinstance(predicate, Comparison):
            label = "<" if predicate.strict else "≤"
        else:
            label = predicate_text(predicate)
        lines.append(_Line((ends[0], ends[1]), _short(label)))
    if query.distinct is not None:
        notes.append(f"counts distinct ({', '.join(map(str, sorted(query.distinct)))})")
    return lines, notes


def _texts(atom: Atom, query: Query) -> list[tuple[str | None, str, str]]:
    """The rows of a box: the column that a line may lead to, its text, its class."""
    rows: list[tuple[str | None, str, str]] = []
    compared = [c for c in query.comparisons if len(c.variables) == 1]
    for name, term in atom.terms:
        if isinstance(term, Constant):
            rows.append((name, _short(f"{name} = {term}"), "filter"))
            continue
        key = any(name in one for one in atom.table.keys)
        rows.append((name, _short(name) + (" · key" if key else ""), "column"))
        for comparison in sorted(compared, key=str):
            if term in comparison.variables and term.name == f"{atom.alias}.{name}":
                rows.append((None, _short(_bare(comparison, term, name)), "filter"))
    for condition in atom.filters:
        rows.append((None, _short(_condition_text(condition)), "filter"))
    return rows


def _condition_text(condition: Filter) -> str:
    """A filter for people: names in quotes only where they need them."""
    tree = cast(exp.Expression, condition.condition).copy()
    for name in list(tree.find_all(exp.Identifier)):
        name.replace(identifier(name.name))
    return tree.sql(comments=False)


def _bare(comparison: Comparison, term: Variable, name: str) -> str:
    """The comparison with a constant, the column first."""
    if comparison.left == term:
        return f"{name} {'<' if comparison.strict else '≤'} {comparison.right}"
    return f"{name} {'>' if comparison.strict else '≥'} {comparison.left}"


def _head(atom: Atom) -> tuple[str, str]:
    """What stands above the columns: the name in the query, the table, whether it is private."""
    same = atom.alias.lower() == atom.table.name.lower()
    name = atom.alias if same else f"{atom.alias}: {atom.table.name}"
    return _short(name), "private" if atom.table.private else "public"


def _size(atom: Atom, rows: list[tuple[str | None, str, str]]) -> tuple[float, float]:
    name, mark = _head(atom)
    longest = max(len(name) + len(mark) + 3, *(len(text) for _, text, _ in rows), 0)
    return longest * _LETTER + 2 * _PAD, (len(rows) + 1) * _LINE + 12


def _gaps(lines: list[_Line], parts: list[list[list[int]]]) -> dict[int, float]:
    """The room right of each box: for its lines, and for the longest label on one of them."""
    column = {i: place for columns in parts for place, one in enumerate(columns) for i in one}
    gaps = dict.fromkeys(column, float(_LEAST_GAP))
    for line in lines:
        (one, _), (other, _) = line.ends
        left = min(one, other, key=lambda i: column[i])
        beside = 90 if column[one] == column[other] else 60
        room = (len(line.label) * _LETTER + beside) if line.label else 0
        gaps[left] = max(gaps[left], room)
    return gaps


def _box(
    drawing: _Drawing,
    i: int,
    atom: Atom,
    rows: list[tuple[str | None, str, str]],
    boundary: frozenset[Variable],
    members: frozenset[int],
) -> None:
    box = drawing.boxes[i]
    kinds = ["private" if atom.table.private else "public"]
    if members:
        kinds.append("member" if i in members else "other")
    group = ElementTree.SubElement(drawing.root, "g", {"class": " ".join(kinds)})
    ElementTree.SubElement(group, "title").text = f"{atom.alias}: {atom.table.label}"
    _rect(group, box.x, box.y, box.width, box.height, "table", rx="5")
    _rect(group, box.x + 1, box.y + 1, box.width - 2, _LINE + 2, "head", rx="4")
    name, mark = _head(atom)
    _text(group, box.x + _PAD, box.y + _LINE / 2 + 2, name, "name")
    _text(group, box.right - _PAD, box.y + _LINE / 2 + 2, mark, "mark", anchor="end")
    terms = dict(atom.terms)
    for number, (column, text, kind) in enumerate(rows, 1):
        y = box.y + 8 + _LINE * number + _LINE / 2
        if column is not None:
            drawing.rows[i, column] = y
            if terms[column] in boundary:
                _rect(group, box.x + 4, y - _LINE / 2 + 1, box.width - 8, _LINE - 2, "boundary-row")
        _text(group, box.x + _PAD, y, text, kind)


def _link(
    drawing: _Drawing, line: _Line, members: frozenset[int], boundary: frozenset[Variable]
) -> None:
    one, other = sorted(line.ends, key=lambda end: (drawing.boxes[end[0]].x, drawing.rows[end]))
    # A comparison reads from left to right, or from above.
    label = line.label if (one, other) == line.ends else _TURNED.get(line.label or "", line.label)
    left, right = drawing.boxes[one[0]], drawing.boxes[other[0]]
    y1, y2 = drawing.rows[one], drawing.rows[other]
    x1 = left.right
    if left.column == right.column:
        # Both in one column, or in one box: around its right side.
        x2, bulge = right.right, 34 + 10 * (len(drawing.taken) % 3)
        route = f"M{x1:.1f} {y1:.1f} C{x1 + bulge:.1f} {y1:.1f} {x2 + bulge:.1f} {y2:.1f}"
        middle = (x1 + bulge * 0.75, (y1 + y2) / 2)
    else:
        x2 = right.x
        bend = (x2 - x1) / 2
        route = f"M{x1:.1f} {y1:.1f} C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f}"
        middle = ((x1 + x2) / 2, (y1 + y2) / 2)
    crosses = line.variable in boundary and (one[0] in members) != (other[0] in members)
    kind = "predicate" if line.label else "crossing" if crosses else "join"
    path = {"class": kind, "d": f"{route} {x2:.1f} {y2:.1f}"}
    ElementTree.SubElement(drawing.root, "path", path)
    for x, y in ((x1, y1), (x2, y2)):
        ElementTree.SubElement(
            drawing.root, "circle", {"class": "end"}, cx=f"{x:.1f}", cy=f"{y:.1f}", r="3"
        )
    if label:
        _label(drawing, middle, label, beside=left.column == right.column)


def _label(drawing: _Drawing, at: tuple[float, float], text: str, *, beside: bool) -> None:
    """A label on its line, moved down until it lies over no other one."""
    width, height = len(text) * _LETTER + 10, 18.0
    x, y = (at[0] if beside else at[0] - width / 2), at[1] - height / 2
    while any(
        x < ox + ow and ox < x + width and y < oy + oh and oy < y + height
        for ox, oy, ow, oh in drawing.taken
    ):
        y += 4
    drawing.taken.append((x, y, width, height))
    _rect(drawing.labels, x, y, width, height, "label-back", rx="4")
    _text(drawing.labels, x + width / 2, y + height / 2, text, "label", anchor="middle")


def _rect(
    root: ElementTree.Element,
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    **more: str,
) -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    ElementTree.SubElement(root, "rect", {"class": kind, **place, **more})


def _text(
    root: ElementTree.Element, x: float, y: float, text: str, kind: str, *, anchor: str = "start"
) -> None:
    attributes = {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    ElementTree.SubElement(root, "text", attributes).text = text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
