"""A limit is never below the value, and what is left out for its sake changes no bound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.epsilon import parse_epsilon
from sqlrs.measuring import evaluate
from sqlrs.measuring import sampling as reading
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.read_from_groups import Batch
from sqlrs.measuring.sampling import SampledTables, read_statistics
from sqlrs.measuring.work import Fold, Folding, Progress
from sqlrs.mechanisms.folding import refined_folding
from sqlrs.noise import PolyLaplace
from sqlrs.planning.limits import frequency_above, frequency_of, limit
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sensitivity.refined import is_quick, reached, released_sensitivity
from tests.planning.adapters import Direct
from tests.planning.strategies import TABLES, queries, rows_of
from tests.support.builders import EDGE, atom, pattern, query, table
from tests.support.examples import examples

WEIGHTS = PolyLaplace(parse_epsilon("1"), 5).weights


@pytest.fixture(scope="module", autouse=True)
def read_every_column() -> Iterator[None]:
    """Small tables are otherwise too quick to be worth their statistics."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_SMALL", 0)
        yield


@dataclass(frozen=True)
class Engine:
    """As much of an engine as a measurement needs."""

    direct: Direct
    dialect: str = "duckdb"

    @contextmanager
    def snapshot(self) -> Iterator[Direct]:
        yield self.direct


def fill(data: st.DataObject, snapshot: Direct) -> None:
    for one in TABLES:
        snapshot.fill(one, data.draw(rows_of(one)))


@settings(max_examples=examples(50))
@given(st.data())
def test_no_value_exceeds_its_limit(on_duckdb: Direct, data: st.DataObject) -> None:
    residuals = Residuals(data.draw(queries()))
    fill(data, on_duckdb)
    known = read_statistics(on_duckdb, residuals.query)
    plain = Evaluator(on_duckdb, residuals.query, "duckdb", "plain")
    for residual in residuals.undecided(residuals.required):
        assert plain(residual).value <= limit(residual, known), residual


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(25))
@given(data=st.data())
def test_frequencies_of_several_columns(
    on_duckdb: Direct, on_postgres: Direct, engine: str, data: st.DataObject
) -> None:
    """They limit the values of tables with lookups, and are those of a table alone."""
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    residuals = Residuals(data.draw(queries()))
    fill(data, snapshot)
    sampled = SampledTables()
    known = sampled.of(snapshot, residuals.query)
    plain = Evaluator(snapshot, residuals.query, engine, "plain")
    parts = residuals.undecided(residuals.required)
    wanted = [above for part in parts if (above := frequency_above(part)) is not None]
    if wanted:
        sampled.read_frequencies(snapshot, wanted)
    known = replace(known, frequencies=dict(sampled.frequencies(snapshot)))
    for part in parts:
        value = plain(part).value
        assert value <= limit(part, known), part
        if (table_and_names := frequency_above(part)) is not None:
            assert value <= known.most_frequent(*table_and_names), part
        if (columns := frequency_of(part)) is not None and columns in known.frequencies:
            assert value == known.frequencies[columns], part


def test_limits_of_a_star_and_a_path(on_duckdb: Direct) -> None:
    """Node 0 has five neighbours, all others have fewer."""
    on_duckdb.fill(EDGE, [*((0, v) for v in range(1, 6)), (1, 2), (1, 3), (2, 3)])
    residuals = Residuals(query(*(atom(EDGE, *p) for p in ("ab", "ac", "cd"))))
    known = read_statistics(on_duckdb, residuals.query)
    one, both = residuals.of(frozenset({0})), residuals.of(frozenset({0, 2}))
    assert limit(one, known) == 5
    assert limit(both, known) == 5 * 5
    cut = replace(known, frequencies={c: n - 1 for c, n in known.frequencies.items()})
    value = Evaluator(on_duckdb, residuals.query, "duckdb")(one).value
    assert value == 5 > limit(one, cut)


def test_a_null_is_counted_by_no_frequency(on_duckdb: Direct) -> None:
    """A column that one atom joins and another one leaves free may be NULL in the free one."""
    bag = table("bag", "p", "q", nullable="p q")
    on_duckdb.fill(bag, [(None, 1)] * 4 + [(1, 1)])
    residuals = Residuals(query(atom(bag, "a", "b"), atom(bag, "b", "c")))
    known = read_statistics(on_duckdb, residuals.query)
    for residual in residuals.undecided(residuals.required):
        value = Evaluator(on_duckdb, residuals.query, "duckdb", "plain")(residual).value
        assert value <= limit(residual, known)


def fold_of(residuals: Residuals) -> Fold:
    if residuals.query.weighted:
        return lambda values: Fraction(sum(values.values()))
    return lambda values: released_sensitivity(residuals, values, WEIGHTS).value


def folds(
    residuals: Residuals, snapshot: Direct, folding: Folding | None = None
) -> tuple[Fraction, Fraction]:
    """The bound from all values, and from those that seemed enough."""
    fold, engine = fold_of(residuals), Engine(snapshot)
    wanted = (*residuals.required, *reached(residuals))
    everything = measure(engine, residuals, wanted)
    enough = Measurements(engine).enough(residuals, wanted, folding or fold)
    assert enough.count == everything.count
    found = fold(enough.values)
    # Nobody works it out a second time.
    return fold(everything.values), found if enough.settled is None else enough.settled


# Four atoms can take seconds for one query.
@pytest.mark.parametrize("atoms", [3, pytest.param(4, marks=pytest.mark.slow)])
@settings(max_examples=examples(30))
@given(data=st.data())
def test_the_bound_is_the_same(on_duckdb: Direct, atoms: int, data: st.DataObject) -> None:
    residuals = Residuals(data.draw(queries(atoms)))
    fill(data, on_duckdb)
    everything, enough = folds(residuals, on_duckdb)
    assert enough == everything


@pytest.mark.parametrize("atoms", [3, pytest.param(4, marks=pytest.mark.slow)])
@settings(max_examples=examples(30))
@given(data=st.data())
def test_numbers_below_and_above_settle_the_same_bound(
    on_duckdb: Direct, atoms: int, data: st.DataObject
) -> None:
    residuals = Residuals(data.draw(queries(atoms)))
    fill(data, on_duckdb)
    folding = None if residuals.query.weighted else refined_folding(residuals, WEIGHTS)
    everything, enough = folds(residuals, on_duckdb, folding)
    assert enough == everything


PEOPLE = table("people", "p", "n", keys=["p"])
ORDERS = table("orders", "o", "p", keys=["o"])
LINES = table("lines", "o", "i", "s", keys=["o i"])
SELLERS = table("sellers", "s", "n", keys=["s"])
TRADE = (
    atom(PEOPLE, "p", "n"),
    atom(ORDERS, "o", "p"),
    atom(LINES, "o", "i", "s"),
    atom(SELLERS, "s", "n"),
)
ROWS: dict[str, st.SearchStrategy[list[tuple[int, ...]]]] = {
    "people": st.lists(st.integers(0, 2), max_size=5).map(lambda ns: [*enumerate(ns)]),
    "orders": st.lists(st.integers(0, 4), max_size=6).map(lambda ps: [*enumerate(ps)]),
    "lines": st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)),
        unique_by=lambda row: row[:2],
        max_size=14,
    ),
    "sellers": st.lists(st.integers(0, 2), max_size=3).map(lambda ns: [*enumerate(ns)]),
}


@settings(max_examples=examples(25))
@given(data=st.data())
def test_four_tables_joined_by_keys(on_duckdb: Direct, data: st.DataObject) -> None:
    """A later query finds the frequencies that the first one left, and the same bound."""
    residuals = Residuals(query(*TRADE))
    for one in (PEOPLE, ORDERS, LINES, SELLERS):
        on_duckdb.fill(one, data.draw(ROWS[one.name]))
    folding = refined_folding(residuals, WEIGHTS)
    assert folding is not None and folding.gauge is not None and any(folding.factors.values())
    everything, enough = folds(residuals, on_duckdb, folding)
    assert enough == everything
    measurements = Measurements(Engine(on_duckdb))
    wanted = reached(residuals)
    for _ in range(2):
        found = measurements.enough(residuals, wanted, folding)
        assert released_sensitivity(residuals, found.values, WEIGHTS).value == everything


def test_a_factor_that_is_too_low_would_show(on_duckdb: Direct) -> None:
    residuals = Residuals(query(*TRADE))
    on_duckdb.fill(PEOPLE, [(p, 0) for p in range(3)])
    on_duckdb.fill(ORDERS, [(o, o % 3) for o in range(6)])
    on_duckdb.fill(LINES, [(o, i, i % 2) for o in range(6) for i in range(9)])
    on_duckdb.fill(SELLERS, [(0, 0), (1, 0)])
    folding = refined_folding(residuals, WEIGHTS)
    assert folding is not None
    true, found = folds(residuals, on_duckdb, folding)
    assert true == found
    wrong = {part.members: () for part in residuals.undecided(reached(residuals))}
    true, found = folds(residuals, on_duckdb, replace(folding, factors=wrong))
    assert true != found


@pytest.fixture
def clique(on_duckdb: Direct) -> Direct:
    """Dense enough that the smaller residuals of a pattern do not matter."""
    on_duckdb.fill(EDGE, [(a, b) for a in range(30) for b in range(30) if a != b])
    return on_duckdb


@pytest.mark.parametrize("text", ["ab bc cd da", "ab bc ca bd da", "ab bc cd de ea"])
def test_small_residuals_of_dense_data_are_left_out(
    text: str, clique: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    residuals = Residuals(pattern(text))
    assert is_quick(residuals, WEIGHTS)
    rounds: list[list[Members]] = []
    run = Evaluator.together

    def recorded(self: Evaluator, parts: list[Residual]) -> Iterator[Batch]:
        rounds.append([part.members for part in parts])
        return run(self, parts)

    monkeypatch.setattr(Evaluator, "together", recorded)
    heard: list[tuple[int, int, str]] = []
    listen: Progress = lambda *event: heard.append(event)  # noqa: E731
    wanted = (*residuals.required, *reached(residuals))
    fold, engine = fold_of(residuals), Engine(clique)
    limited = Measurements(engine, progress=listen)
    enough = limited.enough(residuals, wanted, fold)
    everything = measure(engine, residuals, wanted)
    assert fold(enough.values) == fold(everything.values)
    assert rounds[0][0] == residuals.query.everything
    assert len(rounds) == 1 and len(rounds[0]) < len(heard)
    # A listener hears of every residual: how many are left out follows from the data.
    assert [(n, total) for n, total, _ in heard] == [
        (i, len(heard)) for i in range(1, len(heard) + 1)
    ]


def test_a_limit_that_is_too_low_would_show(
    clique: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_sparse = Residuals(pattern("ab bc cd da"))
    clique.fill(EDGE, [(0, v) for v in range(1, 12)] + [(v, 0) for v in range(1, 12)])
    true, found = folds(on_sparse, clique)
    assert true == found
    monkeypatch.setattr(evaluate, "limit", lambda *_: 0)
    true, found = folds(on_sparse, clique)
    assert true != found
