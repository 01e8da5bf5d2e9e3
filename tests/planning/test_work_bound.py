"""A bound of the largest join from declared sizes: never too low; a refusal before the charge."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqlrs
from sqlrs.errors import QueryRefused
from sqlrs.ledger.memory import MemoryLedger
from sqlrs.query import Variable
from sqlrs.work_bound import JoinInput, join_bound
from tests.support.builders import INTEGER
from tests.support.examples import examples

VARIABLES = [Variable(name, INTEGER) for name in "abcd"]
Q5 = """
SELECT count(*) FROM customer c JOIN orders o ON c.id = o.customer JOIN line l ON l.orders = o.id
JOIN supplier s ON s.id = l.supplier AND s.nation = c.nation
"""


@st.composite
def relations(draw: st.DrawFn) -> list[tuple[list[Variable], list[tuple[int, ...]], bool]]:
    """Tables over some variables, as bags or with all columns as their key."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        held = draw(st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=3, unique=True))
        row = st.tuples(*(st.integers(0, 2) for _ in held))
        keyed = draw(st.booleans())
        found.append((held, draw(st.lists(row, min_size=1, max_size=6, unique=keyed)), keyed))
    return found


@settings(max_examples=examples(150))
@given(relations(), st.booleans())
def test_no_join_has_more_rows(
    tables: list[tuple[list[Variable], list[tuple[int, ...]], bool]], with_degrees: bool
) -> None:
    """Against the join itself, with sizes and degrees as they are."""
    inputs = []
    for held, rows, keyed in tables:
        degrees = {
            v: max(sum(r[i] == value for r in rows) for value in range(3))
            for i, v in enumerate(held)
        }
        keys = (frozenset(held),) if keyed else ()
        said = degrees if with_degrees else {}
        inputs.append(JoinInput(frozenset(held), len(rows), keys, said))
    joined = 0
    for combination in product(*(rows for _, rows, _ in tables)):
        values: dict[Variable, int] = {}
        joined += all(
            values.setdefault(v, value) == value
            for (held, _, _), row in zip(tables, combination, strict=True)
            for v, value in zip(held, row, strict=True)
        )
    assert joined <= join_bound(inputs)


def test_triangle_and_keys_and_bags() -> None:
    """A cover beats an order for the triangle; a bag has no cover of half its rows."""
    a, b, c, _ = VARIABLES
    pairs = [frozenset(p) for p in ((a, b), (b, c), (c, a))]
    assert join_bound([JoinInput(p, 100, (p,)) for p in pairs]) == 1000
    assert join_bound([JoinInput(p, 100) for p in pairs]) == 100**3
    one, other = JoinInput(pairs[0], 100), JoinInput(pairs[1], 50, (frozenset({b}),))
    assert join_bound([one, other]) == 100
    assert join_bound([one, JoinInput(pairs[1], 50, (), {b: 7})]) == 700


def opened(
    folder: Path, rows: dict[str, int], most: int, ledger: MemoryLedger | None = None
) -> sqlrs.Database:
    files = {
        "customer": "id,nation\n1,1\n2,1\n",
        "orders": "id,customer\n1,1\n2,2\n",
        "line": "id,orders,supplier\n1,1,1\n2,2,1\n",
        "supplier": "id,nation\n1,1\n",
    }
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    tables = {name: folder / f"{name}.csv" for name in files}
    keys = {name: ["id"] for name in files}
    settings = sqlrs.Settings(declared_rows=rows, max_intermediate_rows=most)
    return sqlrs.connect(tables=tables, keys=keys, settings=settings, ledger=ledger)


ROWS = {"customer": 1000, "line": 40_000, "orders": 10_000, "supplier": 100}


def test_refused_before_the_charge(tmp_path: Path) -> None:
    """By declared sizes alone; the statement of a table answer too. Nothing is charged."""
    ledger = MemoryLedger()
    with opened(tmp_path, ROWS, 20_000, ledger) as database:
        for ask in (database.count, database.query):
            with pytest.raises(QueryRefused) as refused:
                ask(Q5, epsilon=1)
            assert refused.value.code == "too_large_join"
        assert ledger.spent() == 0 and not ledger.history()
        assert "refused: max_intermediate_rows is 20,000" in str(database.explain(Q5))


def test_keys_keep_joins_small(tmp_path: Path) -> None:
    """With all tables joined by keys no join is larger than the largest table."""
    with opened(tmp_path, ROWS, 40_000) as database:
        database.count(Q5, epsilon=1)
        assert "largest join: at most 40,000 rows" in str(database.explain(Q5))


def test_without_sizes_there_is_no_bound(tmp_path: Path) -> None:
    with opened(tmp_path, {"line": 5}, 1) as database:
        database.count(Q5, epsilon=1)
        assert "no bound, as declared_rows says nothing of main.customer" in str(
            database.explain(Q5)
        )
