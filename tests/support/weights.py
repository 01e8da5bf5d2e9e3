"""Tables whose rows may count more than once, or not at all: columns of weights, and who has them.

A table gets the columns of `COLUMNS` at its end, `cells(name)` draws their values, and `weighed`
gives some atoms of a query one of them as its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from sqlrs.catalog import Column, Table
from sqlrs.query import Atom, Weight
from tests.support.builders import INTEGER

COLUMNS = {"few": 3, "many": 10**17}
"""Little, and so much that a sum of a few hundred rows exceeds 64 bits, with their bounds."""
# A product of three such weights has more digits than a database holds.
_MOST_HEAVY = 2


def weighable(of: Table) -> Table:
    """The table with columns of weights, under another name."""
    columns = tuple(Column(name, INTEGER, nullable=False) for name in COLUMNS)
    return replace(of, name=f"weighable_{of.name}", columns=(*of.columns, *columns))


def weighing(atom: Atom, column: str | None) -> Atom:
    """The atom with a column as its weight, or with none."""
    return replace(atom, weight=None if column is None else Weight(column, COLUMNS[column]))


def cells(name: str) -> st.SearchStrategy[int]:
    """Values of a column of weights, nothing and its bound among them."""
    return st.sampled_from([0, 1, 2, COLUMNS[name] - 1, COLUMNS[name]])


def cells_of(rows: Sequence[tuple[object, ...]]) -> st.SearchStrategy[list[tuple[object, ...]]]:
    """The same rows with values of all columns of weights at their end."""
    more = st.tuples(*map(cells, COLUMNS))
    drawn = st.lists(more, min_size=len(rows), max_size=len(rows))
    return drawn.map(lambda ends: [(*row, *end) for row, end in zip(rows, ends, strict=True)])


@st.composite
def weighed(draw: st.DrawFn, atoms: Sequence[Atom]) -> tuple[Atom, ...]:
    """The atoms, some of them with weights."""
    found: list[Atom] = []
    for atom in atoms:
        heavy = sum(a.weight is not None and a.weight.column == "many" for a in found)
        options = [None, "few"] if heavy >= _MOST_HEAVY else [None, *COLUMNS]
        found.append(weighing(atom, draw(st.sampled_from(options))))
    return tuple(found)
