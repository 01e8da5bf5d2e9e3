"""The choice of a threshold inside the database: exact enclosures, and the exact law of the choice.

The oracle takes its exponentials from Python's decimal module, not from the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from fractions import Fraction

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.noise.randomness import EXTENSION_BITS
from sqlrs.noise.threshold import choose_threshold
from tests.noise.oracle import deviation_allowed
from tests.procedures.desk import Connection, Desk
from tests.procedures.test_noise import ERROR_RATE, FULL, SCRIPTED
from tests.support.examples import examples
from tests.support.postgres_server import PostgresServer

SAMPLES = 800
CHOICE = "SELECT sqlrs.choose_threshold(%s::numeric[], %s::numeric[], %s, %s)"
PRECISE = Context(prec=400)


def exponential(exponent: Fraction) -> Fraction:
    """e**-exponent but for one part in 10**390; beyond 2000 no decision of these tests sees it."""
    exponent = min(exponent, Fraction(2000))
    ratio = PRECISE.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return Fraction(PRECISE.exp(ratio.copy_negate()))


def ends(grid: Sequence[int], above: Sequence[int], rate: Fraction) -> list[Fraction]:
    """Where the part of each threshold ends in the unit interval."""
    weights = [
        exponential(rate * (units - above[-1])) / threshold**3
        for threshold, units in zip(grid, above, strict=True)
    ]
    total = sum(weights)
    return [sum(weights[: place + 1], Fraction(0)) / total for place in range(len(grid))]


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


def choose_there(
    session: Connection,
    grid: Sequence[int],
    above: Sequence[int],
    rate: Fraction,
    words: Sequence[int],
) -> tuple[int, int]:
    """The place of the threshold from 0 on, and how many words it took."""
    session.execute("TRUNCATE script")
    session.execute("ALTER SEQUENCE script_place RESTART")
    session.cursor().executemany(
        "INSERT INTO script VALUES (%s, %s)", list(enumerate(map(Decimal, words), 1))
    )
    asked = [list(map(Decimal, grid)), list(map(Decimal, above))]
    row = session.execute(
        CHOICE, [*asked, Decimal(rate.numerator), Decimal(rate.denominator)]
    ).fetchone()
    used = session.execute("SELECT pg_sequence_last_value('script_place')").fetchone()
    assert row is not None and used is not None
    return row[0] - 1, used[0] or 0


class Words:
    """Bits from a list of words, which the package takes two or more at a time."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = list(words)

    def bits(self, count: int) -> int:
        taken = 0
        for _ in range(count // EXTENSION_BITS):
            taken = taken * FULL + self._words.pop(0)
        return taken


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[int], list[int], Fraction]:
    grid = sorted(draw(st.sets(st.integers(1, 2**40), min_size=1, max_size=12)))
    units = st.one_of(st.integers(0, 30), st.integers(0, 10**9))
    above = sorted(draw(st.lists(units, min_size=len(grid), max_size=len(grid))), reverse=True)
    rate = Fraction(draw(st.integers(1, 10**9)), 10 ** draw(st.integers(0, 12)))
    return grid, above, rate


@settings(max_examples=examples(60))
@given(choices(), st.one_of(st.integers(0, FULL - 1), st.sampled_from([0, 1, FULL // 2, FULL - 1])))
def test_the_bits_decide_as_the_exact_probabilities_do_and_as_in_the_package(
    scripted: Connection, choice: tuple[list[int], list[int], Fraction], word: int
) -> None:
    """A second word of one third follows, so that the uniform number is known to 256 bits."""
    grid, above, rate = choice
    uniform = Fraction(3 * word + 1, 3 * FULL)
    wanted = sum(end <= uniform for end in ends(grid, above, rate)[:-1])
    words = [word, *[FULL // 3] * 4]
    assert choose_there(scripted, grid, above, rate, words)[0] == wanted
    assert choose_threshold(grid, [rate * units for units in above], Words(words)) == wanted


def test_a_uniform_number_at_an_edge_draws_the_bits_that_decide(scripted: Connection) -> None:
    grid, above, rate = [1, 2, 4, 2**40], [60, 3, 2, 0], Fraction(3, 10)
    for place, edge in enumerate(ends(grid, above, rate)[:-1]):
        first = int(edge * FULL)
        second = int(edge * FULL**2) - first * FULL
        assert choose_there(scripted, grid, above, rate, [first, 0]) == (place, 2)
        assert choose_there(scripted, grid, above, rate, [first, FULL - 1]) == (place + 1, 2)
        # Two words that hold the edge itself: the third decides, and the weights are finer.
        assert choose_there(scripted, grid, above, rate, [first, second, 0]) == (place, 3)
        last = [first, second, FULL - 1]
        assert choose_there(scripted, grid, above, rate, last) == (place + 1, 3)


@settings(max_examples=examples(40))
@given(
    st.integers(0, 10**18), st.integers(1, 10**15), st.sampled_from([8, 64, 192, 400])
)  # fmt: skip
def test_an_exponential_is_enclosed_closely(
    scripted: Connection, numerator: int, denominator: int, places: int
) -> None:
    row = scripted.execute(
        "SELECT * FROM sqlrs.negative_exponential(%s, %s, %s)",
        [Decimal(numerator), Decimal(denominator), places],
    ).fetchone()
    assert row is not None
    low, high = map(Fraction, row)
    exact = exponential(Fraction(numerator, denominator)) * 2**places
    assert 0 <= low <= exact <= high
    # Each halving may double what rounding took, and there are few of them.
    assert high - low <= 2**20


@pytest.mark.parametrize(
    ("grid", "above"),
    [
        ([1, 2, 4], [1, 0]),
        ([], []),
        ([2, 1], [0, 0]),
        ([0, 1], [0, 0]),
        ([1, 2], [0, 1]),
        ([1, 2], [None, 0]),
        ([1, 2], [Decimal("NaN"), 0]),
        ([1, Decimal("Infinity")], [1, 0]),
        ([1, 2], [Decimal("0.5"), 0]),
    ],
)
def test_what_is_no_choice_is_an_error(
    workshop: Desk, grid: Sequence[object], above: Sequence[object]
) -> None:
    with workshop.session() as session, pytest.raises(psycopg.errors.RaiseException):
        session.execute(CHOICE, [_texts(grid), _texts(above), Decimal(1), Decimal(1)])


def _texts(numbers: Sequence[object]) -> list[str | None]:
    return [None if number is None else str(number) for number in numbers]


def gap(workshop: Desk, above: Sequence[int], law: list[Fraction]) -> Fraction:
    grid = "ARRAY[1, 2, 4, 9]"
    drawn = workshop.run(
        f"SELECT sqlrs.choose_threshold({grid}, ARRAY{list(above)}, 3, 10) "
        f"FROM generate_series(1, {SAMPLES})"
    )
    return max(
        abs(Fraction(sum(one <= place for (one,) in drawn), SAMPLES) - end)
        for place, end in enumerate(law, 1)
    )


def test_frequencies_follow_the_exact_law(workshop: Desk) -> None:
    """Error rate 1e-6; three units less above the first threshold must be seen."""
    law = ends([1, 2, 4, 9], [9, 2, 1, 0], Fraction(3, 10))
    allowed = deviation_allowed(SAMPLES, ERROR_RATE)
    assert gap(workshop, [9, 2, 1, 0], law) <= allowed
    assert gap(workshop, [6, 2, 1, 0], law) > allowed
