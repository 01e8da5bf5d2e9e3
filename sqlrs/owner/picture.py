"""Query -> SVG: a graph pattern as circles and arrows, any other query as a schema of boxes."""

from __future__ import annotations

from math import cos, hypot, pi, sin
from xml.etree import ElementTree

from sqlrs.owner.schema_picture import draw_schema
from sqlrs.query import Atom, Comparison, Inequality, Query, Variable
from sqlrs.residuals.residual import Residual

_SIZE = 520
_RADIUS = 170
_NODE = 26
_STYLE = """
text { font: 13px sans-serif; text-anchor: middle; dominant-baseline: middle; fill: #1b1f24 }
.variable { fill: #ffffff; stroke: #57606a; stroke-width: 1.5 }
.boundary { fill: #fff3c4; stroke: #bf8700; stroke-width: 4 }
.atom { stroke: #afb8c1; stroke-width: 2; fill: none }
.member { stroke: #0969da; stroke-width: 3.5; fill: none }
.box { fill: #f6f8fa }
.predicate { stroke: #8250df; stroke-width: 1; stroke-dasharray: 4 4; fill: none }
.small { font-size: 11px; fill: #57606a }
"""

Point = tuple[float, float]


def draw(query: Query, residual: Residual | None = None) -> str:
    """The query graph as an SVG document; ``residual`` is drawn bold, its boundary ringed."""
    if not _is_pattern(query):
        return draw_schema(query, residual, _title(query, residual))
    root = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_SIZE} {_SIZE}",
        width=str(_SIZE),
        height=str(_SIZE),
        role="img",
    )
    ElementTree.SubElement(root, "title").text = _title(query, residual)
    ElementTree.SubElement(root, "style").text = _STYLE
    ElementTree.SubElement(root, "rect", width="100%", height="100%", fill="#ffffff")
    _arrowheads(root)
    shown = _shown(query)
    spots = _circle(sorted(shown))
    for inequality in query.inequalities:
        _predicate(root, inequality, spots)
    for comparison in query.comparisons:
        _predicate(root, comparison, spots)
    for position, atom in enumerate(query.atoms):
        member = residual is not None and position in residual.members
        _atom(root, atom, spots, "member" if member else "atom", position)
    for variable, (x, y) in spots.items():
        marked = residual is not None and variable in residual.boundary
        ElementTree.SubElement(
            root,
            "circle",
            {"class": "boundary" if marked else "variable"},
            cx=_n(x),
            cy=_n(y),
            r=str(_NODE),
        )
        _text(root, x, y, variable.name)
    return ElementTree.tostring(root, encoding="unicode")


def _is_pattern(query: Query) -> bool:
    """Whether every table is an edge: two columns with different variables, and nothing else."""
    simple = all(
        len(atom.terms) == 2 and len(atom.variables) == 2 and not atom.filters
        for atom in query.atoms
    )
    compared = [c for c in query.comparisons if len(c.variables) == 2]
    return simple and not query.generals and len(compared) == len(query.comparisons)


def _title(query: Query, residual: Residual | None) -> str:
    tables = ", ".join(f"{a.alias}: {a.table.label}" for a in query.atoms)
    if residual is None:
        return f"query graph of {tables}"
    boundary = ", ".join(map(str, sorted(residual.boundary))) or "empty"
    return f"query graph of {tables}; residual {residual}, boundary {boundary}"


def _shown(query: Query) -> frozenset[Variable]:
    """Variables worth a circle: joined, compared, output, or an end of a two-column table."""
    count: dict[Variable, int] = {}
    for atom in query.atoms:
        for variable in atom.variables:
            count[variable] = count.get(variable, 0) + 1
    shared = {v for v, n in count.items() if n > 1}
    ends = {v for a in query.atoms if len(a.terms) <= 2 for v in a.variables}
    compared = frozenset[Variable]().union(*(p.variables for p in query.predicates))
    return frozenset(shared | ends | compared | (query.distinct or frozenset()))


def _circle(variables: list[Variable]) -> dict[Variable, Point]:
    middle = _SIZE / 2
    if len(variables) == 1:
        return {variables[0]: (middle, middle)}
    turn = 2 * pi / max(1, len(variables))
    return {
        v: (middle + _RADIUS * sin(i * turn), middle - _RADIUS * cos(i * turn))
        for i, v in enumerate(variables)
    }


def _atom(
    root: ElementTree.Element, atom: Atom, spots: dict[Variable, Point], kind: str, position: int
) -> None:
    ends = [t for _, t in atom.terms if isinstance(t, Variable) and t in spots]
    if len(ends) == 2 and ends[0] != ends[1]:
        (x1, y1), (x2, y2) = (spots[v] for v in ends)
        _arrow(root, (x1, y1), (x2, y2), kind, head=True)
        length = hypot(x2 - x1, y2 - y1) or 1.0
        aside_x, aside_y = -(y2 - y1) * 12 / length, (x2 - x1) * 12 / length
        _text(root, (x1 + x2) / 2 + aside_x, (y1 + y2) / 2 + aside_y, atom.alias)
        return
    angle = 2 * pi * position / 7
    x = sum(spots[v][0] for v in ends) / len(ends) if ends else _SIZE / 2
    y = sum(spots[v][1] for v in ends) / len(ends) if ends else _SIZE / 2
    x, y = x + 46 * cos(angle), y + 46 * sin(angle)
    for variable in dict.fromkeys(ends):
        _arrow(root, (x, y), spots[variable], kind, head=False)
    ElementTree.SubElement(
        root,
        "rect",
        {"class": f"{kind} box"},
        x=_n(x - 34),
        y=_n(y - 13),
        width="68",
        height="26",
        rx="4",
    )
    _text(root, x, y, atom.alias)


def _predicate(
    root: ElementTree.Element, predicate: Inequality | Comparison, spots: dict[Variable, Point]
) -> None:
    ends = [spots[v] for v in (predicate.left, predicate.right) if isinstance(v, Variable)]
    if len(ends) != 2:
        return
    (x1, y1), (x2, y2) = ends
    # Bent to the side, so that the table between the same variables stays visible.
    bend_x, bend_y = (x1 + x2) / 2 + (y2 - y1) * 0.22, (y1 + y2) / 2 - (x2 - x1) * 0.22
    length = hypot(x2 - bend_x, y2 - bend_y) or 1.0
    back = (_NODE + 4) / length
    attributes = {"class": "predicate"}
    if isinstance(predicate, Comparison):
        attributes["marker-end"] = "url(#head-predicate)"
    end_x, end_y = x2 - (x2 - bend_x) * back, y2 - (y2 - bend_y) * back
    route = f"M{_n(x1)} {_n(y1)} Q{_n(bend_x)} {_n(bend_y)} {_n(end_x)} {_n(end_y)}"
    ElementTree.SubElement(root, "path", attributes, d=route)
    sign = "≠" if isinstance(predicate, Inequality) else "<" if predicate.strict else "≤"
    middle_x, middle_y = (x1 + x2) / 4 + bend_x / 2, (y1 + y2) / 4 + bend_y / 2
    _text(root, middle_x, middle_y, sign, "small")


def _arrow(root: ElementTree.Element, start: Point, end: Point, kind: str, *, head: bool) -> None:
    length = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    back = (_NODE + 4) / length
    attributes = {"class": kind}
    if head:
        attributes["marker-end"] = f"url(#head-{kind})"
    ElementTree.SubElement(
        root,
        "line",
        attributes,
        x1=_n(start[0]),
        y1=_n(start[1]),
        x2=_n(end[0] - (end[0] - start[0]) * back),
        y2=_n(end[1] - (end[1] - start[1]) * back),
    )


def _arrowheads(root: ElementTree.Element) -> None:
    defs = ElementTree.SubElement(root, "defs")
    for kind, colour in (("atom", "#afb8c1"), ("member", "#0969da"), ("predicate", "#8250df")):
        marker = ElementTree.SubElement(
            defs,
            "marker",
            id=f"head-{kind}",
            viewBox="0 0 10 10",
            refX="9",
            refY="5",
            markerWidth="10",
            markerHeight="10",
            markerUnits="userSpaceOnUse",
            orient="auto",
        )
        ElementTree.SubElement(marker, "path", d="M0 0 L10 5 L0 10 z", fill=colour)


def _text(root: ElementTree.Element, x: float, y: float, text: str, kind: str = "name") -> None:
    ElementTree.SubElement(root, "text", {"class": kind}, x=_n(x), y=_n(y)).text = text


def _n(value: float) -> str:
    return f"{value:.1f}"
