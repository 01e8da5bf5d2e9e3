"""Graph patterns as analyst SQL: triangle, star, path, cycle, square, two triangles, clique."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

from sqlglot import exp

from sqlrs.errors import UsageError
from sqlrs.trees.build import table_named
from sqlrs.trees.identifiers import column

Edges = tuple[tuple[str, str], ...]

_SIZED = re.compile(r"(star|path|cycle|clique)([1-9][0-9]?)")
_SMALLEST = {"star": 1, "path": 1, "cycle": 3, "clique": 3}
_LARGEST_EDGES = 10


def pattern_edges(name: str) -> Edges:
    """The edges of a pattern, between vertices named a, b, c, …"""
    fixed = {
        "triangle": "cycle3",
        "square": "cycle4",
    }
    if name == "two_triangles":
        return (("a", "b"), ("b", "c"), ("c", "a"), ("b", "d"), ("d", "a"))
    match = _SIZED.fullmatch(fixed.get(name, name))
    if match is None or int(match[2]) < _SMALLEST[match[1]]:
        raise UsageError(
            f"there is no graph pattern {name!r}",
            hint="one of triangle, square, two_triangles, starK, pathK, cycleK, cliqueK, "
            "for example star3",
        )
    kind, size = match[1], int(match[2])
    vertices = [chr(ord("a") + i) for i in range(min(size, 24) + 1)]
    edges: Edges
    if kind == "star":
        edges = tuple(("a", v) for v in vertices[1:])
    elif kind == "path":
        edges = tuple(pairwise(vertices))
    elif kind == "cycle":
        ring = vertices[:size]
        edges = tuple(zip(ring, [*ring[1:], ring[0]], strict=True))
    else:
        edges = tuple(combinations(vertices[:size], 2))
    if len(edges) > _LARGEST_EDGES or size > 24:
        raise UsageError(
            f"the pattern {name} has more than {_LARGEST_EDGES} edges",
            hint="residuals grow as 2 to the number of edges; choose a smaller pattern",
        )
    return edges


def automorphisms(edges: Edges, *, undirected: bool) -> int:
    """How often one occurrence of the pattern is counted: the symmetries of the pattern.

    The product over the vertices of the size of each one's orbit, those before it held fixed.
    """
    linked = {*edges, *((b, a) for a, b in edges if undirected)}
    vertices = sorted({vertex for edge in edges for vertex in edge})

    def extends(images: dict[str, str]) -> bool:
        """Whether some automorphism maps these vertices so."""
        *before, last = images
        if any(
            ((v, last) in linked) != ((images[v], images[last]) in linked)
            or ((last, v) in linked) != ((images[last], images[v]) in linked)
            for v in before
        ):
            return False
        left = [v for v in vertices if v not in images]
        free = [v for v in vertices if v not in images.values()]
        return not left or any(extends({**images, left[0]: image}) for image in free)

    fixed: dict[str, str] = {}
    total = 1
    for vertex in vertices:
        free = [v for v in vertices if v not in fixed]
        total *= sum(extends({**fixed, vertex: image}) for image in free)
        fixed[vertex] = vertex
    return total


def pattern_sql(name: str, table: str = "edge") -> str:
    """The count of the pattern over ``table``(src, dst), all vertices different, as analyst SQL."""
    edges = pattern_edges(name)
    places: dict[str, exp.Column] = {}
    joins: list[list[exp.Expression]] = []
    for i, ends in enumerate(edges, start=1):
        equal: list[exp.Expression] = []
        for vertex, end in zip(ends, ("src", "dst"), strict=True):
            here = column(end, f"e{i}")
            if vertex in places:
                equal.append(exp.EQ(this=places[vertex].copy(), expression=here))
            else:
                places[vertex] = here
        joins.append(equal)
    select = exp.select("COUNT(*)")
    for i, equal in enumerate(joins, start=1):
        source = table_named(table, alias=f"e{i}")
        select = select.from_(source) if i == 1 else select.join(source, on=exp.and_(*equal))
    different = [
        exp.NEQ(this=places[v].copy(), expression=places[w].copy())
        for v, w in combinations(sorted(places), 2)
    ]
    return select.where(*different).sql()
