"""The query shapes that the exhaustive checks go through."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlrs.catalog import Table
from sqlrs.residuals.residual import Reading
from tests.sensitivity.exhaustive import Shape
from tests.support.builders import DECIMAL, atom, pattern, query, table

FAST = (Fraction(1, 2),)
EDGE = table("edge", "src", "dst", keys=["src dst"])
BAG = table("edge", "src", "dst")
NODE = table("node", "id")
SET = table("node", "id", keys=["id"])


def named(name: str, key: str = "", private: bool = True, columns: str = "x y") -> Table:
    return table(name, *columns.split(), keys=[key] if key else [], private=private)


def shapes() -> tuple[Shape, ...]:
    """All shapes, small enough that every instance and neighbour is tried."""
    return (*self_joins(), *several_tables(), *with_predicates(), *with_projection())


def self_joins() -> list[Shape]:
    wide = {"edge": [(a, b) for a in (0, 1, 2) for b in (0, 1, 2)]}
    loopless = {"edge": [(a, b) for a in (0, 1, 2, 3) for b in (0, 1, 2, 3) if a != b]}
    three = table("r", "a", "b", "c", keys=["a"])
    return [
        Shape("triangle", pattern("ab bc ca", of=EDGE), universe=loopless, most=4),
        Shape(
            "triangle, equal allowed", pattern("ab bc ca", different=False), universe=wide, most=4
        ),
        Shape("there and back", pattern("ab ba", different=False), universe=wide, most=5),
        Shape("path of two, set", pattern("ab bc", different=False), universe=wide, most=4),
        Shape("path of two, bag", pattern("ab bc", different=False, of=BAG), most=4),
        Shape("path of three, bag", pattern("ab bc cd", different=False, of=BAG), most=3),
        Shape("path of three, different", pattern("ab bc cd"), universe=loopless, most=3),
        Shape("star", pattern("ab ac ad"), universe=loopless, most=3),
        Shape("square", pattern("ab bc cd da", different=False), universe=wide, most=3),
        Shape("two triangles", pattern("ab bc ca bd da", different=False), most=3),
        Shape("twice the same", query(atom(EDGE, "a", "b"), atom(EDGE, "a", "b")), most=4),
        Shape(
            "repeated variable",
            query(atom(EDGE, "a", "a"), atom(EDGE, "a", "b"), atom(EDGE, "b", "c")),
            universe=wide,
            most=4,
        ),
        Shape(
            "repeated variable, bag",
            query(atom(BAG, "a", "a"), atom(BAG, "a", "b"), atom(BAG, "c", "b")),
            most=3,
        ),
        Shape(
            "constants", query(atom(EDGE, 0, "a"), atom(EDGE, "a", "b"), atom(EDGE, "b", 1)), most=4
        ),
        Shape(
            "constants, bag",
            query(atom(BAG, 0, "a"), atom(BAG, "a", 1), atom(BAG, 1, "c"), different="a c"),
            most=4,
        ),
        Shape(
            "key column",
            query(
                atom(three, "x", "y", "z"), atom(three, "y", "u", "v"), atom(three, "z", "v", "w")
            ),
            most=3,
        ),
        Shape(
            "disconnected",
            query(atom(EDGE, "a", "b"), atom(EDGE, "c", "d"), different="a c"),
            most=4,
        ),
        Shape(
            "disconnected, bag",
            query(atom(BAG, "a", "b"), atom(BAG, "b", "c"), atom(BAG, 0, "e"), different="a e"),
            most=3,
        ),
    ]


def several_tables() -> list[Shape]:
    r, s = named("r"), named("s")
    public = named("p", private=False)
    customer = table("c", "id", "n", keys=["id"])
    order = table("o", "id", "c", keys=["id"])
    item = table("i", "o", "k")
    nation = table("n", "n", keys=["n"], private=False)
    return [
        Shape("two bags", query(atom(r, "x", "y"), atom(s, "y", "z")), most=2),
        Shape(
            "public between",
            query(atom(r, "x", "y"), atom(public, "y", "z"), atom(r, "z", "w")),
            most=2,
        ),
        Shape(
            "public between two",
            query(atom(r, "x", "y"), atom(public, "y", "z"), atom(s, "z", "w")),
            most=2,
            universe={"r": [(0, 0), (0, 1)], "s": [(0, 0), (1, 0)]},
        ),
        Shape(
            "foreign keys",
            query(
                atom(customer, "c", "n"),
                atom(order, "o", "c"),
                atom(item, "o", "k"),
                atom(nation, "n"),
            ),
            most=2,
            universe={"i": [(0, 0), (1, 0)]},
        ),
        Shape(
            "self-join and another",
            query(atom(EDGE, "a", "b"), atom(EDGE, "b", "c"), atom(SET, "b"), different="a c"),
            most=4,
        ),
        Shape(
            "star of three tables",
            query(atom(EDGE, "a", "u"), atom(EDGE, "w", "a"), atom(NODE, "a")),
            most=2,
        ),
    ]


def with_predicates() -> list[Shape]:
    one = [table(name, "v") for name in "abcd"]
    two = table("t", "v", "w")
    decimal = table("f", "v", types={"v": DECIMAL})
    tests: dict[str, Any] = {"values": (0, 1, 2), "most": 2}
    return [
        Shape(
            "x≠y beside w",
            query(atom(NODE, "x"), atom(NODE, "y"), atom(one[0], "w"), different="x y"),
            most=3,
        ),
        Shape(
            "u≠v over three tables",
            query(
                atom(one[0], "u"),
                atom(one[1], "u"),
                atom(one[2], "v"),
                atom(one[3], "w"),
                different="u v",
            ),
            most=1,
            decays=FAST,
        ),
        Shape(
            "x≤y, y≤x",
            query(
                atom(one[0], "x"),
                atom(one[1], "y"),
                atom(one[2], "z"),
                at_most=[("x", "y"), ("y", "x")],
            ),
            most=2,
            decays=FAST,
        ),
        Shape(
            "between",
            query(
                atom(one[0], "x"),
                atom(one[1], "z"),
                atom(one[2], "y"),
                less=[("x", "z"), ("z", "y")],
            ),
            values=(0, 1, 2, 3),
            most=1,
            decays=FAST,
        ),
        Shape(
            "between, self-join",
            query(
                atom(NODE, "x"), atom(one[1], "z"), atom(NODE, "y"), less=[("x", "z"), ("z", "y")]
            ),
            values=(0, 1, 2, 3),
            most=2,
        ),
        Shape(
            "interval",
            query(atom(two, "x", "y"), atom(two, "u", "v"), less=[("x", "u"), ("u", "y")]),
            **tests,
        ),
        Shape(
            "ordered path",
            query(
                atom(BAG, "a", "b"),
                atom(BAG, "b", "c"),
                atom(BAG, "c", "d"),
                less=[("a", "b"), ("c", "d")],
                at_most=[("b", "d")],
            ),
            **tests,
        ),
        Shape(
            "ordered cycle",
            query(
                atom(EDGE, "a", "b"),
                atom(EDGE, "b", "c"),
                atom(EDGE, "c", "a"),
                less=[("a", "b")],
                at_most=[("b", "c")],
            ),
            values=(0, 1, 2),
            most=3,
        ),
        Shape(
            "with constants",
            query(atom(BAG, "a", "b"), atom(BAG, "b", "c"), less=[("a", 1), (0, "c")]),
            **tests,
        ),
        Shape(
            "two external",
            query(
                atom(NODE, "x"),
                atom(one[0], "y"),
                atom(one[1], "z"),
                atom(NODE, "w"),
                less=[("x", "y"), ("y", "z"), ("z", "w")],
            ),
            values=(0, 1, 3),
            most=1,
            decays=FAST,
        ),
        Shape(
            "dense between",
            query(
                atom(decimal, "x"),
                atom(decimal, "z"),
                atom(decimal, "y"),
                less=[("x", "z"), ("z", "y")],
            ),
            universe={"f": [(Decimal(0),), (Decimal(1),)]},
            most=3,
        ),
        Shape(
            "comparison dropped",
            query(
                atom(NODE, "x"),
                atom(one[0], "z"),
                atom(NODE, "y"),
                less=[("x", "z"), ("z", "y")],
            ),
            reading=Reading(exact_comparisons=False),
            values=(0, 1, 2),
            most=2,
        ),
        Shape(
            "inequality on an external variable",
            query(
                atom(NODE, "x"),
                atom(one[1], "z"),
                atom(NODE, "y"),
                less=[("x", "z"), ("z", "y")],
                different="x y",
            ),
            values=(0, 1, 2),
            most=2,
        ),
        Shape(
            "general",
            query(
                atom(BAG, "a", "b"),
                atom(BAG, "b", "c"),
                atom(NODE, "c"),
                general=[(lambda a, c: a is None or a != c, "a c")],
            ),
            most=2,
        ),
        Shape(
            "general across",
            query(
                atom(NODE, "a"),
                atom(NODE, "b"),
                atom(one[0], "c"),
                general=[(lambda a, b, c: a + b < 2 * c, "a b c")],
            ),
            values=(0, 1, 2),
            most=2,
        ),
    ]


def with_projection() -> list[Shape]:
    r, s = named("r"), named("s", key="x")
    null = table("n", "x", "y", nullable="x y")
    with_null = {"n": [(None, 0), (None, None), (0, 1), (1, 0), (0, None)]}
    return [
        Shape(
            "distinct ends", query(atom(BAG, "a", "b"), atom(BAG, "b", "c"), distinct="a c"), most=3
        ),
        Shape(
            "distinct start",
            query(atom(EDGE, "a", "b"), atom(EDGE, "b", "c"), atom(EDGE, "c", "d"), distinct="a"),
            most=4,
        ),
        Shape(
            "distinct over two", query(atom(r, "x", "y"), atom(s, "y", "z"), distinct="z"), most=2
        ),
        Shape(
            "distinct, disconnected",
            query(atom(NODE, "a"), atom(r, "x", "y"), atom(r, "y", "z"), distinct="z"),
            most=2,
        ),
        Shape(
            "distinct, different",
            query(atom(EDGE, "a", "b"), atom(EDGE, "b", "c"), different="a c", distinct="a"),
            values=(0, 1, 2),
            most=3,
        ),
        Shape(
            "nulls", query(atom(null, "a", "b"), atom(null, "b", "c")), universe=with_null, most=3
        ),
        Shape(
            "nulls, distinct",
            query(atom(null, "a", "b"), atom(null, "c", "b"), distinct="a", different="a c"),
            universe=with_null,
            most=3,
        ),
    ]
