"""The picture of the query graph: well-formed, complete, with the residual's boundary marked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree

import duckdb
import pytest

import sqlrs
from sqlrs.owner.explain import Explanation
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
    svg = draw(q)
    assert marked(svg, "table", "rect") == 4
    assert marked(svg, "join", "path") == 4


def test_names_are_escaped() -> None:
    odd = table("<odd> & co", "x", "y")
    svg = draw(query(atom(odd, "a", "b", alias='"<&'), atom(odd, "b", "c", alias="two")))
    assert '"<&' in "".join(ElementTree.fromstring(svg).itertext())


QUERIES = [
    "SELECT count(*) FROM customer JOIN orders ON custkey = o_custkey WHERE segment = 'A'",
    "SELECT count(*) FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey "
    "AND a.orderkey <> b.orderkey AND a.day <= b.day AND a.price < b.price",
    "SELECT count(*) FROM customer c JOIN nation ON c.nationkey = nation.nationkey "
    "JOIN orders o1 ON o1.o_custkey = custkey JOIN orders o2 ON o2.o_custkey = custkey "
    "WHERE o1.day < o2.day AND o1.price + o2.price > balance",
    "SELECT count(DISTINCT o_custkey) FROM orders, customer a, customer b "
    "WHERE a.nationkey = b.nationkey AND price > 5 AND a.segment LIKE 'a%' "
    "AND a.balance < b.balance",
    "SELECT count(*) FROM orders a JOIN orders b ON a.orderkey = b.o_custkey "
    "WHERE a.price > b.price + 30 AND (a.o_custkey > 5 OR b.price > 100)",
    "SELECT count(*) FROM orders WHERE day + 1 > DATE '2024-01-01' "
    "AND price BETWEEN 1 AND 20000000",
]


@pytest.fixture
def shop() -> Iterator[sqlrs.Database]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE customer (custkey BIGINT PRIMARY KEY, nationkey BIGINT, segment VARCHAR, "
            "balance BIGINT)"
        )
        connection.execute(
            "CREATE TABLE orders (orderkey BIGINT PRIMARY KEY, o_custkey BIGINT, day DATE, "
            "price BIGINT)"
        )
        connection.execute("CREATE TABLE nation (nationkey BIGINT PRIMARY KEY)")
        with sqlrs.connect(connection, public=["nation"]) as database:
            yield database


def rectangles(svg: str, kind: str) -> list[tuple[float, float, float, float]]:
    return [
        (x, y, x + width, y + height)
        for node in ElementTree.fromstring(svg).iter(f"{SVG}rect")
        if kind in node.attrib.get("class", "").split()
        for x, y, width, height in [
            [float(node.attrib[part]) for part in ("x", "y", "width", "height")]
        ]
    ]


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@pytest.mark.parametrize("sql", QUERIES)
def test_a_relational_query_is_a_schema_on_which_nothing_overlaps(
    shop: sqlrs.Database, sql: str
) -> None:
    explanation = shop.explain(sql)
    assert isinstance(explanation, Explanation)
    aliases = [atom.alias for atom in explanation.query.atoms]
    for chosen in ([], aliases[:1], aliases[:2]):
        svg = explanation.svg(chosen)
        root = ElementTree.fromstring(svg)
        boxes, labels = rectangles(svg, "table"), rectangles(svg, "label-back")
        assert len(boxes) == len(aliases)
        for one, other in combinations([*boxes, *labels], 2):
            assert not overlap(one, other)
        width, height = (float(root.attrib[side]) for side in ("width", "height"))
        for _, _, right, bottom in (*boxes, *labels):
            assert right < width
            assert bottom < height
        # What is drawn later lies above: no line goes through a label.
        drawn = [one.attrib.get("class", "") for one in root]
        last_line = max((i for i, one in enumerate(root) if one.tag == f"{SVG}path"), default=0)
        assert "label-back" not in drawn[:last_line]
        # No text is longer than the box that it stands in.
        for group in root.iter(f"{SVG}g"):
            (_, _, right, _), *_ = rectangles(ElementTree.tostring(group, "unicode"), "table")
            for text in group.iter(f"{SVG}text"):
                if text.attrib["text-anchor"] == "start":
                    assert float(text.attrib["x"]) + len(text.text or "") * 7.3 <= right
                else:
                    assert float(text.attrib["x"]) < right


def test_the_boundary_of_a_schema_is_seen(shop: sqlrs.Database) -> None:
    explanation = shop.explain(QUERIES[0])
    assert isinstance(explanation, Explanation)
    svg = explanation.svg(["orders"])
    assert len(rectangles(svg, "boundary-row")) == 1
    assert marked(svg, "crossing", "path") == 1
    assert marked(svg, "member", "g") == marked(svg, "other", "g") == 1
    assert marked(svg, "private", "g") == 2
    assert "amber: its boundary, customer.custkey" in svg
    assert "segment = 'A'" in "".join(ElementTree.fromstring(svg).itertext())
    assert marked(explanation.svg(), "crossing", "path") == 0
