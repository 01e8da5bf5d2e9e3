"""Counts as digits of words are the counts, or the statement says that a digit has no room."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings

from sqlrs.compiler.forms import tells_equal_values_apart
from sqlrs.measuring import sampling
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.planning import choose as choosing
from sqlrs.planning.choose import choose
from sqlrs.planning.limits import limit
from sqlrs.planning.plan import Factorised, InWords
from sqlrs.planning.sharing import that_share, with_shared_steps
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.planning.words import Words, packed_below, packings, read_from
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql import in_words as writing
from sqlrs.sql.leading_groups import NOT_ENOUGH
from sqlrs.sql.together import together
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.planning.strategies import Case, cases
from tests.support.builders import EDGE, pattern, table
from tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("one_seed")

# More than any group of the small tables here counts.
MOST = 10**6
EVEN = Statistics(
    {EDGE.identity: 3e4},
    {(EDGE.identity, c): Repetition(3e3, 3.3e5, 25.0) for c in ("src", "dst")},
)


def ways(residual: Residual, statistics: Statistics | None) -> list[tuple[Words, Factorised]]:
    """Every way to pack every variable of a residual."""
    if residual.external or any(map(tells_equal_values_apart, residual.generals)):
        return []
    plan = choose(residual, statistics, how="factorised")
    assert isinstance(plan, Factorised)
    return [(one, plan) for one in packings(plan.total, MOST, statistics or Statistics())]


def values(residual: Residual, words: Words, plan: Factorised, on: Direct) -> dict[int, int]:
    """What the statement yields with digits of some numbers of bits."""
    found = {}
    for bits, lanes in ((1, 5), (3, 20), (20, 5)):
        packed = replace(words, bits=bits, lanes=lanes)
        found[bits] = on.scalar(statement_of(InWords(residual, packed, plan), "duckdb"))
    return found


def check(case: Case, snapshot: Direct) -> None:
    residual = case.residual
    for t in {a.table.name: a.table for a in residual.atoms}.values():
        snapshot.fill(t, case.rows[t.name])
    for words, plan in ways(residual, case.statistics):
        expected = snapshot.scalar(statement_of(choose(residual, how="plain"), "duckdb"))
        for bits, found in values(residual, words, plan, snapshot).items():
            # Groups that are left out of account have their room too.
            assert found == expected or (found == NOT_ENOUGH and bits < 20), "\n".join(plan.lines())
            assert found == NOT_ENOUGH or found < 2**bits


@settings(max_examples=examples(120))
@given(cases())
def test_random_queries(on_duckdb: Direct, case: Case) -> None:
    check(case, on_duckdb)


@pytest.mark.slow
@settings(max_examples=2500)
@given(cases(most_atoms=6))
def test_many_random_queries(on_duckdb: Direct, case: Case) -> None:
    check(case, on_duckdb)


def edges(seed: str, vertices: int = 9, number: int = 60) -> list[tuple[object, ...]]:
    rng = random.Random(seed)
    drawn = {(rng.randrange(vertices), rng.randrange(vertices)) for _ in range(number)}
    return [*sorted(drawn)]


@pytest.mark.parametrize("name", ["ab bc ca", "ab bc cd da", "ab bc cd de ea", "ab ac bc bd cd"])
@pytest.mark.parametrize("different", [True, False])
def test_patterns(name: str, different: bool, on_duckdb: Direct) -> None:
    """Of cycles and two triangles; every pair of ends has a count."""
    on_duckdb.fill(EDGE, edges(name))
    residuals = Residuals(pattern(name, different=different))
    packed = 0
    for residual in {*representatives(residuals.undecided(residuals.required)).values()}:
        expected = on_duckdb.scalar(statement_of(choose(residual, how="plain"), "duckdb"))
        for words, plan in ways(residual, EVEN):
            packed += 1
            found = values(residual, words, plan, on_duckdb)
            assert found[20] == expected, "\n".join(plan.lines())
            assert {*found.values()} <= {expected, NOT_ENOUGH}
    assert packed


def four_edges() -> Residual:
    """The cycle of five edges without one, all vertices different."""
    residuals = Residuals(pattern("ab bc cd de ea"))
    return residuals.of(frozenset(range(4)))


def test_joins_of_words(on_duckdb: Direct) -> None:
    """A step is packed before it is joined, and the ends that are equal are left out at the end."""
    residual = four_edges()
    on_duckdb.fill(EDGE, edges("joined", 12, 90))
    (words, plan), *_ = [one for one in ways(residual, EVEN) if one[0].apart is not None]
    assert packed_below(words.first, words.packed) is not None
    assert len(words.others) > 0
    expected = on_duckdb.scalar(statement_of(choose(residual, how="plain"), "duckdb"))
    assert values(residual, words, plan, on_duckdb)[20] == expected
    # Of four vertices no path of four edges has five, but cycles lead back to where they began.
    on_duckdb.fill(EDGE, [(a, b) for a in range(4) for b in range(4) if a != b])
    assert values(residual, words, plan, on_duckdb)[20] == 0
    ignored = replace(words, apart=None, bits=20, lanes=4)
    closed = replace(
        ignored,
        total=replace(
            words.total, terms=(replace(words.total.terms[0], join=words.first), *words.others)
        ),
    )
    found = on_duckdb.scalar(statement_of(InWords(residual, closed, plan), "duckdb"))
    assert found == 6


@pytest.mark.parametrize("bits", [2, 5, 20])
@pytest.mark.parametrize("different", [True, False])
@pytest.mark.parametrize("direction", ["ab bc cd de ea", "ba cb dc ed ae"])
def test_words_that_others_have_as_a_step(
    direction: str, different: bool, bits: int, on_duckdb: Direct
) -> None:
    """Paths of three edges are a step of those of four: the digits are read where they stand."""
    on_duckdb.fill(EDGE, edges(direction, 10, 60))
    residuals = Residuals(pattern(direction, different=different))
    longer, shorter = (residuals.of(frozenset(range(n))) for n in (4, 3))
    expected = [
        on_duckdb.scalar(statement_of(choose(one, how="plain"), "duckdb"))
        for one in (longer, shorter)
    ]
    read = 0
    for (words, plan), (others, below) in product(ways(longer, EVEN), ways(shorter, EVEN)):
        packed = replace(words, bits=bits, lanes=5)
        if (alike := read_from(others, packed)) is None:
            continue
        read += 1
        plans = [InWords(longer, packed, plan), InWords(shorter, others, below)]
        assert with_shared_steps(plans) == [plans[0], InWords(shorter, alike, below)]
        assert that_share(plans[:1], plans[1:]) == plans[1:]
        (row,) = on_duckdb.rows(together(with_shared_steps(plans), "duckdb"))
        for value, right in zip(row, expected, strict=True):
            assert value == right or (bits < 20 and value == NOT_ENOUGH)
    assert read


def test_a_digit_without_room_is_found(on_duckdb: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what is counted above the digits, a number would be wrong."""
    residual = four_edges()
    on_duckdb.fill(EDGE, edges("room", 12, 90))
    words, plan = ways(residual, EVEN)[0]
    expected = on_duckdb.scalar(statement_of(choose(residual, how="plain"), "duckdb"))
    narrow = InWords(residual, replace(words, bits=2, lanes=20), plan)
    assert expected >= 4
    assert on_duckdb.scalar(statement_of(narrow, "duckdb")) == NOT_ENOUGH
    monkeypatch.setattr(writing, "NOT_ENOUGH", 3)
    assert on_duckdb.scalar(statement_of(narrow, "duckdb")) == 3


@pytest.fixture
def worth_it() -> Iterator[None]:
    """Small tables are otherwise too quick to be worth their statistics or words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "_SMALL", 0)
        patch.setattr(choosing, "_WORTH_PACKING", 0.0)
        patch.setattr(choosing, "_QUICK", 0.0)
        yield


def test_releases_run_another_plan_where_a_digit_has_no_room(
    on_duckdb: Direct, worth_it: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    residual = four_edges()
    on_duckdb.fill(EDGE, edges("turn", 12, 90))
    expected = on_duckdb.scalar(statement_of(choose(residual, how="plain"), "duckdb"))

    def narrow(total: object, most: int, statistics: Statistics) -> Words | None:
        one, *_ = packings(total, most, statistics)  # type: ignore[arg-type]
        return replace(one, bits=2, lanes=20)

    monkeypatch.setattr(choosing, "in_words", narrow)
    evaluation = Evaluator(on_duckdb, residual.query, "duckdb")(residual)
    assert isinstance(evaluation.plan, InWords)
    assert evaluation.value == expected


def test_chosen_for_even_columns_alone() -> None:
    """No other plan is left for the ends of four edges of an even graph; a skewed one is pruned."""
    residual = four_edges()
    whole = replace(EVEN, frequencies={(EDGE.identity, frozenset({c})): 25 for c in ("src", "dst")})
    plan = choose(residual, whole, in_turn=True, words=True)
    assert isinstance(plan, InWords)
    assert plan.cost < plan.otherwise.cost / 2
    assert "digits of words" in "\n".join(plan.lines())
    assert isinstance(choose(residual, whole, in_turn=True), Factorised)
    assert isinstance(choose(residual, whole, words=True), Factorised)
    columns = {(EDGE.identity, c): Repetition(3e3, 9e6, 2e3) for c in ("src", "dst")}
    skewed = replace(whole, columns=columns)
    assert not isinstance(choose(residual, skewed, in_turn=True, words=True), InWords)


def test_no_sum_can_be_too_large() -> None:
    """Whatever a digit holds, 128 bits are enough for all sums of words."""
    residual = four_edges()
    plan = choose(residual, EVEN, how="factorised")
    assert isinstance(plan, Factorised)
    terms = sum(abs(term.coefficient) for term in plan.total.terms)
    for most in (5, 1000, 10**6, 10**12, 10**20):
        for words in packings(plan.total, most, EVEN):
            every = sum(words.above + 2 ** (words.bits * i) for i in range(words.lanes))
            assert most * terms * every < 2**126
    assert not packings(plan.total, 10**40, EVEN)


def test_a_limit_is_above_all_groups() -> None:
    """What sums are sized by counts every result, whatever the inequalities say."""
    whole = replace(EVEN, frequencies={(EDGE.identity, frozenset({c})): 25 for c in ("src", "dst")})
    assert limit(four_edges(), whole) == 25**3


def test_texts_and_nulls(on_duckdb: Direct) -> None:
    """Values are numbered in their order, whatever they are; what is NULL joins nothing."""
    bag = table("packed_bag", "src", "dst", nullable="src dst")
    rows = [*edges("bag", 5, 20), *edges("bag", 5, 9), (None, 1), (2, None), (None, None)]
    on_duckdb.fill(bag, rows)
    residuals = Residuals(pattern("ab bc cd da", of=bag))
    for members in ({0, 1}, {0, 1, 2}):
        residual = residuals.of(frozenset(members))
        expected = on_duckdb.scalar(statement_of(choose(residual, how="plain"), "duckdb"))
        for words, plan in ways(residual, EVEN):
            assert values(residual, words, plan, on_duckdb)[20] == expected
