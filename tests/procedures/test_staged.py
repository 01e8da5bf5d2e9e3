"""A function measures no more than can matter; its sensitivity is the same as with all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import psycopg
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql
from sqlglot import exp

from sqlrs.catalog import Catalog, Column, Table
from sqlrs.compiled import Compiled
from sqlrs.connecting import connect
from sqlrs.graphs.patterns import pattern_sql
from sqlrs.noise import PolyLaplace
from sqlrs.procedures import Definition
from sqlrs.procedures.staged_measure import StagedMeasure
from sqlrs.procedures.staged_script import staged_measure
from sqlrs.sensitivity.refined import reached, refined_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.settings import Settings
from tests.procedures.desk import Connection, Desk
from tests.procedures.test_fold import fold_there
from tests.support.builders import INTEGER
from tests.support.examples import examples

QUERIES = (
    pattern_sql("square"),
    pattern_sql("cycle5"),
    pattern_sql("two_triangles"),
    "SELECT count(*) FROM edge a JOIN note n ON a.src = n.node JOIN note m ON a.dst = m.node",
    "SELECT count(*) FROM note n JOIN note m ON n.node = m.node JOIN note o ON m.word = o.word",
)
Rows = list[tuple[int | None, str | None]]
Edges = frozenset[tuple[int, int]]


class Staged:
    """The queries over a graph and a bag whose rows each example draws anew."""

    def __init__(self, desk: Desk, connection: Connection) -> None:
        self.connection = connection
        connection.execute("CREATE TABLE note (node int, word text)")
        self.definitions = [desk.define(text) for text in QUERIES]
        with connect(desk.url) as database:
            self.catalog = database.catalog

    def fill(self, edges: Edges, notes: Rows) -> None:
        self.connection.execute("TRUNCATE edge, note")
        cursor = self.connection.cursor()
        cursor.executemany("INSERT INTO edge VALUES (%s, %s)", sorted(edges))
        cursor.executemany("INSERT INTO note VALUES (%s, %s)", notes)

    def numbers(self, definition: Definition, epsilon: Decimal | None) -> list[Decimal]:
        """What the function measures; without an epsilon nothing is left out."""
        ratio: sql.Composable = sql.SQL("NULL::numeric")
        if epsilon is not None:
            ratio = sql.SQL("sqlrs.smoothness_ratio({}, 5)").format(sql.Literal(epsilon))
        text = staged_measure(definition).as_string().replace("$2", ratio.as_string())
        row = self.connection.execute(text.encode()).fetchone()
        assert row is not None
        found: list[Decimal] = row[0]
        return found

    def fold(self, definition: Definition, numbers: list[Decimal], epsilon: Decimal) -> Fraction:
        vector = values(definition, numbers)
        steps = list(definition.programs.steps)
        row = self.connection.execute(
            "SELECT sqlrs.within(%s::int[], %s::numeric[])", [steps, vector]
        ).fetchone()
        assert row is not None
        return fold_there(self.connection, definition.programs, tuple(row[0]), epsilon, 5)


def values(definition: Definition, numbers: list[Decimal]) -> list[Decimal]:
    vector = []
    for places in definition.values:
        value = Decimal(1)
        for place in places:
            value *= numbers[place - 1]
        vector.append(value)
    return vector


@pytest.fixture(scope="module")
def staged(own_server: Any) -> Iterator[Staged]:
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.edges([(1, 2)])
        desk.install()
        with desk.session() as connection:
            yield Staged(desk, connection)


NODE = st.integers(0, 5)
EDGES = st.frozensets(st.tuples(NODE, NODE), max_size=20)
HUBS = st.integers(6, 25).map(lambda n: frozenset({(0, i) for i in range(1, n)} | {(1, 0)}))
NOTES = st.lists(
    st.tuples(st.none() | NODE, st.sampled_from([None, "", "a", "A ", "ß"])), max_size=12
)


@settings(max_examples=examples(12))
@given(
    st.sampled_from(range(len(QUERIES))),
    EDGES | HUBS,
    NOTES,
    st.sampled_from([Decimal(1), Decimal(4), Decimal("20.5")]),
)
def test_what_is_left_out_does_not_matter(
    staged: Staged, position: int, edges: Edges, notes: Rows, epsilon: Decimal
) -> None:
    staged.fill(edges, notes)
    definition = staged.definitions[position]
    everything = staged.numbers(definition, None)
    enough = staged.numbers(definition, epsilon)
    assert enough[0] == everything[0]
    assert all(one >= other for one, other in zip(enough, everything, strict=True))
    expected = staged.fold(definition, everything, epsilon)
    assert staged.fold(definition, enough, epsilon) == expected
    compiled = Compiled.of(definition.sql, staged.catalog, Settings())
    assert isinstance(compiled, Compiled)
    coordinates = compile_recursion(compiled.residuals).coordinates
    known = dict(zip(coordinates, map(int, values(definition, everything)), strict=True))
    here = refined_sensitivity(compiled.residuals, known, PolyLaplace(epsilon, 5).weights)
    assert here.value == expected


def failing(definition: Definition) -> Definition:
    """The same with a last round that cannot be evaluated."""
    broken: Any = sqlglot.parse_one(
        "CAST((SELECT 1 / count(*) FROM pg_class WHERE false) AS numeric)"
    )
    *rounds, last = definition.rounds
    return replace(definition, rounds=(*rounds, tuple(broken for _ in last)))


def test_what_is_settled_is_not_evaluated(staged: Staged) -> None:
    square = failing(staged.definitions[0])
    # Of 24 nodes that all know each other two have 22 · 21 paths of three edges between them. That
    # paths of two are no more than 23, the most frequent value, is enough to know.
    staged.fill(frozenset({(a, b) for a in range(24) for b in range(24) if a != b}), [])
    enough = staged.numbers(square, Decimal(1))
    with pytest.raises(psycopg.errors.DivisionByZero):
        staged.numbers(square, None)
    everything = staged.numbers(staged.definitions[0], None)
    assert enough != everything
    assert staged.fold(square, enough, Decimal(1)) == staged.fold(square, everything, Decimal(1))


def test_a_limit_that_is_too_low_is_seen(staged: Staged) -> None:
    """The negative control: with limits of 0 every round but the first seems to be settled."""
    definition = staged.definitions[0]
    nothing: Any = sqlglot.parse_one("CAST(0 AS numeric)")
    wrong = replace(definition, frequencies=tuple(nothing for _ in definition.frequencies))
    staged.fill(frozenset({(a, b) for a in range(5) for b in range(5) if a != b}), [])
    right = staged.fold(definition, staged.numbers(definition, Decimal(1)), Decimal(1))
    assert staged.fold(wrong, staged.numbers(wrong, Decimal(1)), Decimal(1)) < right


def test_the_limits_hold(staged: Staged) -> None:
    """Every limit is at least the value that it stands for, on a skewed bag with NULLs."""
    staged.fill(frozenset({(0, i) for i in range(4)} | {(i, 1) for i in range(5)}), [
        (None, "a"), (1, None), (1, ""), (1, ""), (2, "A "), (0, "a"), (1, "a"),
    ])  # fmt: skip
    for definition in staged.definitions:
        first, *_ = definition.rounds
        zero: Any = sqlglot.parse_one("CAST(0 AS numeric)")
        # With nothing but limits behind the first round whatever is settled.
        limits = replace(definition, rounds=(tuple(zero for _ in first), *definition.rounds[1:]))
        everything = staged.numbers(definition, None)
        found = staged.numbers(limits, Decimal(1))
        behind = slice(len(first), None)
        assert all(
            one >= other for one, other in zip(found[behind], everything[behind], strict=True)
        )


def test_nothing_is_tried_where_a_fold_takes_long(staged: Staged) -> None:
    assert all(definition.in_rounds for definition in staged.definitions[:3])
    definition = staged.definitions[2]
    assert definition.quick_epsilon is not None
    assert definition.least_epsilon < definition.quick_epsilon


def test_a_computed_column_is_no_frequency() -> None:
    stored = Table("note", (Column("node", INTEGER), Column("word", INTEGER)))
    half = Column("half", INTEGER, computed=sqlglot.parse_one("node / 2", dialect="postgres"))
    catalog = Catalog("postgres", (stored.with_computed([half]),))
    text = "SELECT count(*) FROM note n, note m, note o WHERE n.half = m.half AND m.word = o.word"
    compiled = Compiled.of(text, catalog, Settings())
    assert isinstance(compiled, Compiled)
    residuals = compiled.residuals
    staged = StagedMeasure.of(residuals, reached(residuals))
    counted = {node.name for one in staged.frequencies for node in one.find_all(exp.Column)}
    # The stored column is counted; the computed one might fail on rows that the query leaves out.
    assert "word" in counted
    assert "half" not in counted
