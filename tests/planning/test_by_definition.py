"""What a release uses, on the first answer and on later ones, against brute force by definition.

Every shortcut that is for large tables is taken on small ones too: words, witnesses with bounds,
groups that lead, lookups that every row finds. Counts, all T_E and the sensitivity have to be what
the definitions say, with special values, keys, NULL, self-joins and distinct outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from math import prod
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from sqlrs.engines.base import Measurable, Opened
from sqlrs.measuring import sampling
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.smooth import Refined
from sqlrs.noise import PolyLaplace
from sqlrs.planning import choose as choosing
from sqlrs.planning import leading, prune, words
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.refined import reached
from sqlrs.trees.kept import Kept
from tests.planning.adapters import Direct, Lasting
from tests.planning.strategies import (
    NUMBERS,
    distinct_outputs,
    evaluate,
    queries,
    rows_of,
    statistics,
    tables,
)
from tests.support import brute
from tests.support.examples import examples
from tests.support.special import LINES, Line

WEIGHTS = PolyLaplace(Decimal(1), 5).weights
# Combinations of rows, with the values of external variables: more take the oracle too long.
MOST_TRIED = 1500
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@pytest.fixture(scope="module", autouse=True)
def whatever_the_size() -> Iterator[None]:
    """Small tables are otherwise too quick to be worth any of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "_SMALL", 0)
        patch.setattr(sampling, "_PATIENCE", 0.0)
        patch.setattr(leading, "_WORTH_KEEPING", 0)
        patch.setattr(choosing, "_QUICK", 0.0)
        patch.setattr(choosing, "_WORTH_PACKING", 0.0)
        patch.setattr(choosing, "_MANY_ROWS", 0.0)
        patch.setattr(prune, "SEEDS", 1)
        yield


def nonsense(guessed: Statistics) -> Callable[..., Statistics]:
    """Statistics that guide plans anywhere; what limits values stays true."""
    read = sampling.SampledTables.of

    def of(self: sampling.SampledTables, *args: Any, **named: Any) -> Statistics:
        known = read(self, *args, **named)
        rows = {one: max(number, known.rows.get(one, 0.0)) for one, number in guessed.rows.items()}
        return replace(guessed, rows=rows, frequencies=known.frequencies)

    return of


def for_nothing(ways: Callable[..., list[words.Words]]) -> Callable[..., list[words.Words]]:
    """The first way to pack a sum as if it cost nothing: words wherever they can be."""

    def first(*args: Any) -> list[words.Words]:
        return [replace(one, cost=0.0) for one in ways(*args)[:1]]

    return first


@st.composite
def drawn_queries(draw: st.DrawFn, line: Line) -> Query:
    """Queries of any kind, of rows alone, or of distinct outputs that mostly hold a key."""
    drawn = draw(queries(3, line))
    kind = draw(st.sampled_from(["any", "rows", "distinct"]))
    if kind == "distinct":
        return draw(distinct_outputs(drawn))
    if kind == "any":
        return drawn
    return replace(
        drawn, atoms=tuple(replace(one, weight=None) for one in drawn.atoms), distinct=None
    )


def check(data: st.DataObject, source: Measurable, fill: Direct, line: Line) -> None:
    """Several answers to a query on the same rows, each with another fold."""
    asked = [data.draw(drawn_queries(line)) for _ in range(data.draw(st.integers(1, 2)))]
    rows = {t.name: data.draw(rows_of(t, line)) for t in tables(line)}
    for one in tables(line):
        fill.fill(one, rows[one.name])
    kept = [Kept() for _ in asked]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leading, "LEADING", data.draw(st.sampled_from([1, 3, 1000])))
        # A digit of few bits often has no room; then another statement has the value.
        patch.setattr(words, "_ABOVE_EXPECTED", data.draw(st.sampled_from([0.1, 4.0])))
        if data.draw(st.booleans()):
            patch.setattr(sampling.SampledTables, "of", nonsense(data.draw(statistics())))
        for name in data.draw(st.sets(st.sampled_from(["packings", "sharings"]))):
            patch.setattr(choosing, name, for_nothing(getattr(choosing, name)))
        for _ in range(3):
            for query, own in zip(asked, kept, strict=True):
                compare(query, rows, source, own)


def compare(query: Query, rows: brute.Database, source: Measurable, kept: Kept) -> None:
    """One answer: all values, then those that a release reads, and what it makes of them."""
    residuals = Residuals(query)
    domain = brute.whole_domain(query, rows)
    external = {v for members in residuals.required for v in residuals.of(members).external}
    tried = prod(len(rows[a.table.name]) for a in query.atoms) * prod(
        len([*domain(v)]) for v in external
    )
    if tried > MOST_TRIED:
        event("too large")
        return
    wanted = tuple(dict.fromkeys((*residuals.required, *reached(residuals))))
    expected = brute.residual_values(residuals, wanted, rows, evaluate=evaluate)
    count = brute.count(query, rows, evaluate=evaluate)
    found = Measurements(source, kept=kept).enough(residuals, wanted, None)
    assert found.count == count
    assert dict(found.values) == expected
    bound = Refined()
    needed = bound.wanted(residuals)
    folding = bound.folding(residuals, WEIGHTS)
    released = Measurements(source, kept=kept).enough(residuals, needed, folding)
    assert released.count == count
    sensitivity = bound.fold(residuals, expected, WEIGHTS).value
    assert bound.fold(residuals, released.values, WEIGHTS).value == sensitivity
    assert released.settled in (None, sensitivity)


@settings(max_examples=examples(30), suppress_health_check=QUIET)
@given(data=st.data())
def test_on_duckdb(on_duckdb: Direct, data: st.DataObject) -> None:
    line = data.draw(st.just(NUMBERS) | st.sampled_from(LINES["duckdb"]))
    check(data, Lasting(on_duckdb, {}), on_duckdb, line)


@settings(max_examples=examples(12), suppress_health_check=QUIET)
@given(data=st.data())
def test_on_postgres(on_postgres: Direct, data: st.DataObject) -> None:
    line = data.draw(st.just(NUMBERS) | st.sampled_from(LINES["postgres"]))
    check(data, Opened(on_postgres, "postgres"), on_postgres, line)


@pytest.mark.slow
@settings(max_examples=3000, suppress_health_check=QUIET)
@given(data=st.data())
def test_many_on_duckdb(on_duckdb: Direct, data: st.DataObject) -> None:
    line = data.draw(st.just(NUMBERS) | st.sampled_from(LINES["duckdb"]))
    check(data, Lasting(on_duckdb, {}), on_duckdb, line)


@pytest.mark.slow
@settings(max_examples=1500, suppress_health_check=QUIET)
@given(data=st.data())
def test_many_on_postgres(on_postgres: Direct, data: st.DataObject) -> None:
    line = data.draw(st.just(NUMBERS) | st.sampled_from(LINES["postgres"]))
    check(data, Opened(on_postgres, "postgres"), on_postgres, line)
