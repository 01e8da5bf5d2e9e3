"""Shared digits bound the counts: the statement yields the largest one, or says it cannot tell."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings

from sqlrs.compiler.forms import tells_equal_values_apart
from sqlrs.measuring import sampling
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.planning import choose as choosing
from sqlrs.planning.choose import choose
from sqlrs.planning.inclusion_exclusion import Sum
from sqlrs.planning.limits import limit_of_steps
from sqlrs.planning.plan import Factorised, InWords
from sqlrs.planning.shared_digits import Limit, sharings
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.planning.words import (
    Words,
    form_in_words,
    packed_below,
    packings,
    read_from,
    steps_in_words,
)
from sqlrs.query import Variable
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql import in_words
from sqlrs.sql.leading_groups import NOT_ENOUGH
from sqlrs.sql.together import Stepped, together
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.planning.strategies import Case, cases
from tests.support.builders import pattern, table
from tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("one_seed")

BAG = table("shared_bag", "src", "dst")
SKEWED = Statistics(
    {BAG.identity: 3e4},
    {(BAG.identity, c): Repetition(3e3, 3e7, 3e3) for c in ("src", "dst")},
)

# Bits, digits of a word, values with their own digit, digits that the others share.
SIZES = ((20, 5, 1, 9), (20, 5, 3, 2), (20, 5, 4, 1), (20, 5, 4, 500), (3, 9, 2, 30))


def not_much(*, summed: Variable) -> int:
    """More than any group of the small tables here counts, whatever is summed."""
    return 10**6


def ways(residual: Residual, statistics: Statistics | None) -> list[tuple[Words, Factorised]]:
    """Every variable of a residual whose values can share digits."""
    if residual.external or any(map(tells_equal_values_apart, residual.generals)):
        return []
    plan = choose(residual, statistics, how="factorised")
    assert isinstance(plan, Factorised)
    found = sharings(plan.total, not_much, statistics or Statistics(), 10**9)
    return [(one, plan) for one in found]


def value(words: Words, plan: Factorised, on: Direct) -> int:
    return on.scalar(statement_of(InWords(plan.residual, words, plan), "duckdb"))


def check(residual: Residual, statistics: Statistics | None, on: Direct) -> int:
    """How many statements knew the value, of all that may say that they do not."""
    known = 0
    for words, plan in ways(residual, statistics):
        expected = on.scalar(statement_of(choose(residual, how="plain"), "duckdb"))
        for bits, lanes, alone, shared in (
            (20, 5, 1, 9),
            (20, 5, 3, 2),
            (20, 5, 4, 1),
            (3, 9, 2, 30),
        ):
            some = replace(words, bits=bits, lanes=lanes, alone=alone, shared=shared)
            found = value(some, plan, on)
            assert found in {expected, NOT_ENOUGH}, "\n".join(plan.lines())
            known += found == expected
        # Nothing is shared.
        every = replace(words, bits=1, lanes=100, alone=99, shared=1)
        assert value(every, plan, on) == (expected if expected < 2 else NOT_ENOUGH)
    return known


@settings(max_examples=examples(150))
@given(cases())
def test_random_queries(on_duckdb: Direct, case: Case) -> None:
    for t in {a.table.name: a.table for a in case.residual.atoms}.values():
        on_duckdb.fill(t, case.rows[t.name])
    check(case.residual, case.statistics, on_duckdb)


@pytest.mark.slow
@settings(max_examples=2500)
@given(cases(most_atoms=6))
def test_many_random_queries(on_duckdb: Direct, case: Case) -> None:
    for t in {a.table.name: a.table for a in case.residual.atoms}.values():
        on_duckdb.fill(t, case.rows[t.name])
    check(case.residual, case.statistics, on_duckdb)


def path() -> Residual:
    """Two edges that meet in a vertex, by both ends: the ends may be the same."""
    residuals = Residuals(pattern("ab bc ca", of=BAG, different=False))
    return residuals.of(frozenset({0, 1}))


# Through its middle each end leads to each other one once.
STAR = [(a, 9) for a in range(6)] + [(9, b) for b in range(10, 16)]


def skewed_edges(seed: str, number: int = 300) -> list[tuple[object, ...]]:
    rng = random.Random(seed)
    return [(int(12 * rng.random() ** 3), int(12 * rng.random() ** 3)) for _ in range(number)]


@pytest.mark.parametrize("seed", [*map(str, range(8))])
def test_paths(seed: str, on_duckdb: Direct) -> None:
    on_duckdb.fill(BAG, skewed_edges(seed))
    residual = path()
    found = ways(residual, SKEWED)
    assert found
    for words, _ in found:
        assert packed_below(words.first, words.packed) is not None
    assert check(residual, SKEWED, on_duckdb)


def test_a_shared_digit_is_no_count(on_duckdb: Direct) -> None:
    """Two ends that share a digit count twice; without what says so a number would be wrong."""
    residual = path()
    on_duckdb.fill(BAG, STAR)
    words, plan = ways(residual, SKEWED)[0]
    expected = on_duckdb.scalar(statement_of(choose(residual, how="plain"), "duckdb"))
    one = replace(words, bits=10, lanes=9, alone=1, shared=1)
    assert expected == 1
    assert value(one, plan, on_duckdb) == NOT_ENOUGH
    # One that has its own digit and as many lanes as values: all are told apart.
    assert value(replace(one, alone=8, shared=1), plan, on_duckdb) == expected


def test_few_words_stand_side_by_side(on_duckdb: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to three; some customers have no value in one of them. The same number either way."""
    residual = path()
    on_duckdb.fill(BAG, [*skewed_edges("beside"), *STAR])
    words, plan = ways(residual, SKEWED)[0]
    expected = on_duckdb.scalar(statement_of(choose(residual, how="plain"), "duckdb"))
    found = []
    for number in (1, 2, 3, 4, 5):
        some = replace(words, bits=20, lanes=5, alone=4, shared=5 * number - 4)
        text = statement_of(InWords(residual, some, plan), "duckdb").sql("duckdb")
        assert ("step_side_by_side" in text) is (number <= 3)
        beside = value(some, plan, on_duckdb)
        with monkeypatch.context() as one_below_another:
            one_below_another.setattr(in_words, "_MOST_BESIDE", 0)
            assert value(some, plan, on_duckdb) == beside
        assert beside in {expected, NOT_ENOUGH}
        found.append(beside)
    assert found.count(expected) > 1


def test_no_count_is_read_from_a_digit_that_is_shared(on_duckdb: Direct) -> None:
    """The words of paths of two edges are a step of those of three, with a digit for each value."""
    three = Residuals(pattern("ab bc cd da", of=BAG, different=False)).of(frozenset({0, 1, 2}))
    rows = [(a, b) for a in range(4) for b in range(4)] + [(9, 1)] * 3
    on_duckdb.fill(BAG, rows)
    longer, whole = ways(three, SKEWED)[0]
    shared = replace(longer, bits=12, lanes=9, alone=1, shared=1)
    plan = choose(path(), SKEWED, how="factorised")
    assert isinstance(plan, Factorised)
    options = packings(plan.total, 10**6, SKEWED)
    steps = [*steps_in_words(shared)]
    as_if_own = replace(shared, shared=0, alone=0)
    forms = {form_in_words(step, as_if_own) for step in steps}
    alike = [replace(one, bits=12, lanes=9) for one in options]
    alike = [words for words in alike if form_in_words(words.whole, words) in forms]
    assert alike
    for words in alike:
        assert read_from(words, shared) is None
        plans: list[Stepped] = [InWords(path(), words, plan), InWords(three, shared, whole)]
        found = on_duckdb.rows(together(plans, "duckdb"))[0]
        assert found[0] == on_duckdb.scalar(statement_of(choose(path(), how="plain"), "duckdb"))


def test_releases_try_once(on_duckdb: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not enough is not tried again on the same rows."""
    monkeypatch.setattr(sampling, "_SMALL", 0)
    monkeypatch.setattr(choosing, "_WORTH_PACKING", 0.0)
    monkeypatch.setattr(choosing, "_QUICK", 0.0)
    monkeypatch.setattr(choosing, "prune", lambda *args: None)
    residual = path()
    on_duckdb.fill(BAG, STAR)

    def one(total: Sum, limit: Limit, statistics: Statistics) -> list[Words]:
        words, *_ = sharings(total, limit, statistics)
        return [replace(words, bits=10, lanes=9, alone=1, shared=1, cost=0.0)]

    monkeypatch.setattr(choosing, "sharings", one)
    monkeypatch.setattr(sampling.SampledTables, "of", lambda *args, **named: SKEWED)
    snapshot = Direct(on_duckdb.connection)
    # As of a file that nobody can write to.
    snapshot.learned, snapshot.scans_files = {}, lambda statement: False  # type: ignore[attr-defined]
    evaluator = Evaluator(snapshot, residual.query, "duckdb")
    for way in (InWords, Factorised):
        evaluation = evaluator(residual)
        assert isinstance(evaluation.plan, way)
        assert evaluation.value == 1


def test_no_sum_can_be_too_large() -> None:
    """A limit holds for all values of the variable together, and for every step."""
    residual = path()
    plan = choose(residual, SKEWED, how="factorised")
    assert isinstance(plan, Factorised)
    rows = 3 * 10**4
    whole = replace(
        SKEWED, frequencies={(BAG.identity, frozenset({c})): 3000 for c in ("src", "dst")}
    )
    for variable in plan.total.problem.free:
        assert limit_of_steps(residual, plan.total, whole, summed=variable) >= 3000**2
        assert limit_of_steps(residual, plan.total, SKEWED, summed=variable) >= rows

    def limit(*, summed: Variable) -> int:
        return most

    for most in (5, 1000, 10**6, 10**12, 10**20, 10**40):
        for words in sharings(plan.total, limit, SKEWED, 10**9):
            every = sum(words.above + 2 ** (words.bits * i) for i in range(words.lanes))
            assert most * every < 2**126
    assert not sharings(plan.total, limit, SKEWED)


def test_where_a_cycle_closes_nothing_is_shared() -> None:
    """How many triangles there are does not follow from how often each value occurs."""

    def shared(edges: str) -> list[Words]:
        """Of all edges but the last one."""
        residuals = Residuals(pattern(edges, of=BAG, different=False))
        members = frozenset(range(len(edges.split()) - 1))
        plan = choose(residuals.of(members), SKEWED, how="factorised")
        assert isinstance(plan, Factorised)
        return sharings(plan.total, not_much, SKEWED, 10**9)

    assert shared("xa ab xc dx cd")
    assert not shared("xa ab bx xc dx cd")
