"""The sampler inside the database: the same number from the same bits, and the exact law."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.noise import PolyLaplace
from sqlrs.noise.randomness import EXTENSION_BITS
from tests.noise.oracle import deviation_allowed
from tests.noise.sources import ScriptedBits
from tests.noise.test_polylaplace_sampler import largest_gap
from tests.procedures.desk import Connection, Desk
from tests.support.examples import examples
from tests.support.postgres_server import PostgresServer

FULL = 2**EXTENSION_BITS
SAMPLES = 4_000
ERROR_RATE = 1e-6
NOISE = "SELECT sqlrs.noise(%s, %s, sqlrs.smoothness_ratio(%s, %s), %s)"
SCRIPTED = """
CREATE TABLE script (place int, word numeric);
CREATE SEQUENCE script_place;
CREATE OR REPLACE FUNCTION sqlrs.random_word() RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  found numeric;
BEGIN
  SELECT word INTO STRICT found FROM public.script
  WHERE place = (SELECT nextval('public.script_place'));
  RETURN found;
END $$
"""


@pytest.fixture(scope="module")
def scripted(own_server: PostgresServer) -> Iterator[Connection]:
    """A session in a database whose random words come from a table."""
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.edges([(1, 2)])
        desk.install()
        desk.run(SCRIPTED)
        with desk.session() as connection:
            yield connection


def sample_there(
    session: Connection, mechanism: PolyLaplace, sensitivity: Fraction, words: list[int]
) -> tuple[int, int]:
    """The noise, and how many words it took; the sensitivity is a dyadic fraction."""
    session.execute("TRUNCATE script")
    session.execute("ALTER SEQUENCE script_place RESTART")
    session.cursor().executemany(
        "INSERT INTO script VALUES (%s, %s)", list(enumerate(map(Decimal, words), 1))
    )
    places = sensitivity.denominator.bit_length() - 1
    row = session.execute(
        NOISE,
        [Decimal(sensitivity.numerator), places, mechanism.epsilon, *[mechanism.shape] * 2],
    ).fetchone()
    used = session.execute("SELECT pg_sequence_last_value('script_place')").fetchone()
    assert row is not None and used is not None
    return int(row[0]), used[0] or 0


def sample_here(mechanism: PolyLaplace, sensitivity: Fraction, words: list[int]) -> tuple[int, int]:
    class Words:
        used = 0

        def bits(self, count: int) -> int:
            word = words[self.used]
            self.used += 1
            return word if count == EXTENSION_BITS else word % 2

    source = Words()
    return mechanism.sample(sensitivity, source), source.used


def dyadic() -> st.SearchStrategy[Fraction]:
    return st.builds(
        lambda n, places: Fraction(n, 2**places), st.integers(0, 10**20), st.integers(0, 70)
    )


@settings(max_examples=examples(60))
@given(
    st.sampled_from([("1", 5), ("0.5", 5), ("0.01", 2), ("7.25", 20), ("1000", 64)]),
    dyadic(),
    st.lists(
        st.one_of(st.integers(0, FULL - 1), st.sampled_from([0, 1, FULL - 1, FULL // 2])),
        min_size=6,
        max_size=6,
    ),
)
def test_the_same_bits_give_the_same_noise(
    scripted: Connection, noise: tuple[str, int], sensitivity: Fraction, words: list[int]
) -> None:
    mechanism = PolyLaplace(Decimal(noise[0]), noise[1])
    # Words of zeros make the size enormous, and telling enormous sizes apart takes many words.
    words = [*words, *[FULL // 3] * 8]
    here = sample_here(mechanism, sensitivity, words)
    assert sample_there(scripted, mechanism, sensitivity, words) == here


@pytest.mark.parametrize("shape", [2, 5])
@pytest.mark.parametrize("sensitivity", [Fraction(1, 4), Fraction(41, 8), Fraction(10**12)])
def test_a_uniform_number_cut_by_a_probability_draws_the_bits_that_decide(
    scripted: Connection, shape: int, sensitivity: Fraction
) -> None:
    mechanism = PolyLaplace(Decimal(1), shape)
    scale = mechanism.scale(sensitivity)
    for k in (1, 2, int(scale / 3) + 1, int(scale * 5) + 1):
        cut = int(mechanism.tail(scale, k) * FULL)
        for second, size in ((0, k), (FULL - 1, k - 1)):
            words = [cut, second, 1]
            found, used = sample_there(scripted, mechanism, sensitivity, words)
            assert found == -size
            assert used == (3 if size else 2)
            script = [(EXTENSION_BITS, cut), (EXTENSION_BITS, second)] + [(1, 1)] * bool(size)
            assert mechanism.sample(sensitivity, ScriptedBits(script)) == found


@pytest.mark.parametrize(("shape", "numerator", "places"), [(2, 3, 0), (5, 1, 1), (20, 40, 0)])
def test_frequencies_follow_the_exact_law(
    workshop: Desk, shape: int, numerator: int, places: int
) -> None:
    """Error rate 1e-6 for each of two statistics; a scale of 70 % must be seen."""
    mechanism = PolyLaplace(Decimal(1), shape)
    scale = mechanism.scale(Fraction(numerator, 2**places))
    draws = draw_there(workshop, Decimal(numerator), places, shape)
    allowed = deviation_allowed(SAMPLES, ERROR_RATE)
    assert largest_gap(mechanism, scale, [abs(draw) for draw in draws]) <= allowed
    signs = [draw > 0 for draw in draws if draw]
    assert abs(sum(signs) / len(signs) - 0.5) <= deviation_allowed(len(signs), ERROR_RATE)
    # Noise for seven eighths of the sensitivity against the law of five quarters of it.
    small = draw_there(workshop, Decimal(numerator) * 7, places + 3, shape)
    assert largest_gap(mechanism, scale * Fraction(5, 4), [abs(draw) for draw in small]) > allowed


def draw_there(workshop: Desk, numerator: Decimal, places: int, shape: int) -> list[int]:
    statement = (
        f"SELECT sqlrs.noise({numerator}, {places}, sqlrs.smoothness_ratio(1, {shape}), {shape}) "
        f"FROM generate_series(1, {SAMPLES})"
    )
    return [int(draw) for (draw,) in workshop.run(statement)]


def test_every_random_bit_is_fair_and_its_own(workshop: Desk) -> None:
    """Each of 128 bits, and each pair of neighbours, at an error rate of 1e-6 over all together."""
    words = [
        int(word)
        for (word,) in workshop.run(
            f"SELECT sqlrs.random_word() FROM generate_series(1, {SAMPLES})"
        )
    ]
    assert all(0 <= word < FULL for word in words)
    assert len(set(words)) == len(words)
    allowed = deviation_allowed(SAMPLES, ERROR_RATE / 256)
    for bit in range(EXTENSION_BITS):
        ones = sum(word >> bit & 1 for word in words)
        equal = sum((word >> bit & 1) == (word >> (bit + 1) % 128 & 1) for word in words)
        assert abs(ones / SAMPLES - 0.5) <= allowed
        assert abs(equal / SAMPLES - 0.5) <= allowed
