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
from sqlrs.measuring import measurements
from sqlrs.measuring import sampling as reading
from sqlrs.measuring.evaluate import Batch, Evaluator
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Fold, Measurements
from sqlrs.measuring.sampling import read_statistics
from sqlrs.measuring.work import Progress
from sqlrs.noise import PolyLaplace
from sqlrs.planning.limits import limit
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


def folds(residuals: Residuals, snapshot: Direct) -> tuple[Fraction, Fraction]:
    """The bound from all values, and from those that seemed enough."""
    fold, engine = fold_of(residuals), Engine(snapshot)
    wanted = (*residuals.required, *reached(residuals))
    everything = measure(engine, residuals, wanted)
    enough = Measurements(engine).enough(residuals, wanted, fold)
    assert enough.count == everything.count
    return fold(everything.values), fold(enough.values)


# Four atoms can take seconds for one query.
@pytest.mark.parametrize("atoms", [3, pytest.param(4, marks=pytest.mark.slow)])
@settings(max_examples=examples(30))
@given(data=st.data())
def test_the_bound_is_the_same(on_duckdb: Direct, atoms: int, data: st.DataObject) -> None:
    residuals = Residuals(data.draw(queries(atoms)))
    fill(data, on_duckdb)
    everything, enough = folds(residuals, on_duckdb)
    assert enough == everything


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
    monkeypatch.setattr(measurements, "limit", lambda *_: 0)
    true, found = folds(on_sparse, clique)
    assert true != found
