"""The picture of the query graph: well-formed, complete, with the residual's boundary marked."""

from __future__ import annotations

from xml.etree import ElementTree

from sqlrs.owner.picture import draw
from sqlrs.residuals.residual import Residuals
from tests.support.builders import PATTERNS, atom, pattern, query, table

SVG = "{http://www.w3.org/2000/svg}"


def marked(svg: str, kind: str, tag: str) -> int:
    found = ElementTree.fromstring(svg).iter(f"{SVG}{tag}")
    return sum(kind in node.attrib.get("class", "").split() for node in found)


def test_the_square_with_a_residual_of_two_edges() -> None:
    q = pattern(PATTERNS["square"])
    svg = draw(q, Residuals(q).of(frozenset({0, 1})))
    assert marked(svg, "boundary", "circle") == 2
    assert marked(svg, "variable", "circle") == 2
    assert marked(svg, "member", "line") == 2
    assert marked(svg, "atom", "line") == 2
    assert marked(svg, "predicate", "path") == len(q.inequalities)
    assert "boundary a, c" in svg


def test_wide_tables_loops_and_lonely_atoms_are_boxes() -> None:
    wide = table("wide", "x", "y", "z")
    edge = table("edge", "x", "y")
    lonely = table("lonely", "x")
    q = query(
        atom(wide, "a", "b", "c"), atom(wide, "c", "d", "a"), atom(edge, "a", "a"), atom(lonely)
    )
    assert marked(draw(q), "box", "rect") >= 2


def test_names_are_escaped() -> None:
    odd = table("<odd> & co", "x", "y")
    svg = draw(query(atom(odd, "a", "b", alias='"<&'), atom(odd, "b", "c", alias="two")))
    assert '"<&' in "".join(ElementTree.fromstring(svg).itertext())
