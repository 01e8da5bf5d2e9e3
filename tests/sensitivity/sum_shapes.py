"""The sums that the exhaustive checks go through."""

from __future__ import annotations

from fractions import Fraction

from tests.sensitivity.exhaustive import Shape
from tests.sensitivity.sums import weigh
from tests.support.builders import atom, query, table

FAST = (Fraction(1, 2),)
FLOW = table("flow", "src", "dst", "w")
LINK = table("link", "src", "dst", "w", keys=["src dst"])
ITEM = table("item", "id", "w")
KEYED = table("keyed", "id", "owner", "w", keys=["id"])
OTHER = table("other", "id", "w")
PRICE = table("price", "id", "w", private=False)


def rows(*ranges: int) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = [()]
    for n in ranges:
        found = [(*row, value) for row in found for value in range(n)]
    return found


SHAPES = [
    Shape(
        "one table",
        weigh(query(atom(ITEM, "a")), item1=("w", 2)),
        universe={"item": rows(2, 3)},
    ),
    Shape(
        "path, one weight",
        weigh(query(atom(FLOW, "a", "b"), atom(FLOW, "b", "c")), flow1=("w", 2)),
        universe={"flow": [(0, 0, 2), (0, 1, 1), (1, 0, 0), (1, 1, 2), (0, 1, 2)]},
    ),
    Shape(
        "path, both weights",
        weigh(query(atom(FLOW, "a", "b"), atom(FLOW, "b", "c")), flow1=("w", 3), flow2=("w", 3)),
        universe={"flow": [(0, 0, 3), (0, 1, 1), (1, 0, 0), (1, 1, 2), (0, 1, 3)]},
    ),
    Shape(
        "path of three, ends weighted",
        weigh(
            query(atom(LINK, "a", "b"), atom(LINK, "b", "c"), atom(LINK, "c", "d")),
            link1=("w", 2),
            link3=("w", 3),
        ),
        universe={"link": [(0, 0, 2), (0, 1, 1), (1, 0, 2), (1, 1, 0), (0, 1, 2)]},
    ),
    Shape(
        "triangle",
        weigh(
            query(
                atom(LINK, "a", "b"), atom(LINK, "b", "c"), atom(LINK, "c", "a"), different="a b c"
            ),
            link1=("w", 2),
            link2=("w", 1),
        ),
        universe={
            "link": [(0, 1, 1), (1, 2, 1), (2, 0, 1), (0, 1, 0), (1, 2, 0), (2, 1, 1), (1, 0, 1)]
        },
    ),
    Shape(
        "two tables",
        weigh(query(atom(ITEM, "a"), atom(OTHER, "a")), item1=("w", 2), other2=("w", 2)),
        universe={"item": [(0, 1), (0, 2), (1, 2)], "other": [(0, 0), (0, 2), (1, 1)]},
        most=2,
        decays=FAST,
    ),
    Shape(
        "apart",
        weigh(query(atom(ITEM, "a"), atom(OTHER, "b")), item1=("w", 2), other2=("w", 2)),
        universe={"item": rows(1, 3), "other": rows(1, 3)},
        decays=FAST,
    ),
    Shape(
        "apart, one weight",
        weigh(query(atom(ITEM, "a"), atom(OTHER, "b"), different="a b"), other2=("w", 3)),
        universe={"item": rows(2, 1), "other": rows(2, 4)},
        most=2,
    ),
    Shape(
        "one weight beside",
        weigh(query(atom(ITEM, "a"), atom(OTHER, "a"), atom(ITEM, "b")), item1=("w", 2)),
        universe={"item": [(0, 1), (0, 2), (1, 2)], "other": [(0, 0), (1, 0)]},
        most=2,
        decays=FAST,
    ),
    Shape(
        "three apart",
        weigh(
            query(atom(ITEM, "a"), atom(ITEM, "b"), atom(ITEM, "c")),
            item1=("w", 2),
            item2=("w", 2),
            item3=("w", 2),
        ),
        universe={"item": rows(1, 3)},
    ),
    Shape(
        "pair, one weight",
        weigh(query(atom(ITEM, "a"), atom(ITEM, "a")), item1=("w", 2)),
        universe={"item": rows(2, 3)},
    ),
    Shape(
        "star of bags",
        weigh(
            query(atom(ITEM, "a"), atom(ITEM, "a"), atom(OTHER, "a")),
            item1=("w", 2),
            other3=("w", 2),
        ),
        universe={"item": [(0, 0), (0, 2), (1, 1)], "other": [(0, 1), (0, 2), (1, 2)]},
        most=2,
        decays=FAST,
    ),
    Shape(
        "child of a keyed table",
        weigh(query(atom(KEYED, "a", "b"), atom(OTHER, "a")), keyed1=("w", 2), other2=("w", 2)),
        universe={"keyed": [(0, 0, 1), (0, 0, 2), (1, 0, 2)], "other": rows(2, 3)},
        most=2,
    ),
    Shape(
        "keyed self-join",
        weigh(query(atom(KEYED, "a", "b"), atom(KEYED, "b", "c")), keyed1=("w", 2)),
        universe={"keyed": [(a, b, w) for a, b, w in rows(3, 3, 3) if w != 1]},
        most=2,
    ),
    Shape(
        "public price",
        weigh(
            query(atom(FLOW, "a", "b"), atom(PRICE, "b"), atom(OTHER, "b")),
            flow1=("w", 2),
            price2=("w", 2),
        ),
        universe={
            "flow": [(0, 0, 2), (0, 1, 1)],
            "price": [(0, 1), (1, 2)],
            "other": [(0, 0), (1, 0)],
        },
        most=2,
        decays=FAST,
    ),
    Shape(
        "compared",
        weigh(
            query(
                atom(ITEM, "x"), atom(OTHER, "z"), atom(ITEM, "y"), less=[("x", "z"), ("z", "y")]
            ),
            item1=("w", 2),
        ),
        universe={"item": [(0, 1), (0, 2), (2, 2), (3, 1)], "other": [(1, 0), (2, 0)]},
        most=2,
        decays=FAST,
    ),
    Shape(
        "bound of nothing",
        weigh(query(atom(ITEM, "a"), atom(OTHER, "a")), item1=("w", 0)),
        universe={"item": rows(2, 1), "other": rows(2, 2)},
        most=2,
    ),
    Shape(
        "distinct, decided by a key",
        weigh(query(atom(KEYED, "a", "b"), atom(OTHER, "b"), distinct="a"), keyed1=("w", 2)),
        universe={"keyed": rows(2, 2, 3), "other": rows(2, 1)},
        most=2,
    ),
]


BY_NAME = {shape.name: shape for shape in SHAPES}
