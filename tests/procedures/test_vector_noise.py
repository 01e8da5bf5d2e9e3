"""Noise of installed functions whose sensitivity follows the data: the Lomax vector, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random

import psycopg
import pytest

from sqlrs.compiled import CompiledStatement
from sqlrs.connecting import connect
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.summand_bounds import bounds_of
from sqlrs.noise.lomax import Lomax, _Sizes
from sqlrs.sensitivity.exponential import exp_lower
from sqlrs.sensitivity.weights import Weights
from tests.noise.oracle import deviation_allowed
from tests.procedures.desk import Desk
from tests.procedures.test_tables import TABLES, asked, multiset
from tests.support.postgres_server import PostgresServer

NIGHTS = "SELECT v.urgent, count(*) AS n FROM visit v JOIN stay s ON s.visit = v.id GROUP BY 1"


@pytest.fixture
def hospital(own_server: PostgresServer) -> Iterator[Desk]:
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.run(TABLES)
        yield desk


def as_noise(desk: Desk, value: str) -> None:
    """Have this in the place of all noise."""
    desk.run(
        "CREATE OR REPLACE FUNCTION sqlrs.lomax(numerator numeric, places integer, ratio numeric, "
        "epsilon numeric, size integer) RETURNS numeric[] LANGUAGE sql AS "
        f"'SELECT array_fill(({value})::numeric, ARRAY[size])'"
    )
    desk.run(
        "CREATE OR REPLACE FUNCTION sqlrs.noise(numerator numeric, places integer, ratio numeric, "
        f"shape integer) RETURNS numeric LANGUAGE sql AS 'SELECT ({value})::numeric'"
    )


@pytest.mark.parametrize(
    ("statement", "plain"),
    [
        (NIGHTS, "SELECT u, count(s.visit) FROM (VALUES (true), (false), (NULL)) AS b (u) "
         "LEFT JOIN visit v ON v.urgent IS NOT DISTINCT FROM u LEFT JOIN stay s ON s.visit = v.id "
         "GROUP BY u"),
        ("SELECT count(*) AS n, sum(v.cost) AS c FROM visit v JOIN stay s ON s.visit = v.id", None),
        ("SELECT avg(v.cost) AS m FROM visit v JOIN stay s ON s.visit = v.id", None),
    ],
)  # fmt: skip
def test_without_noise_it_is_the_plain_statement(
    hospital: Desk, statement: str, plain: str | None
) -> None:
    hospital.install_table(statement)
    as_noise(hospital, "0")
    rows = asked(hospital, "20")
    assert multiset(rows) == multiset(hospital.run(plain or statement))
    assert asked(hospital, "20") == rows
    assert hospital.spent()["ada"] == 20


def test_the_sensitivity_is_that_of_the_package(hospital: Desk) -> None:
    definition = hospital.install_table(NIGHTS)
    assert definition.mechanism == "lomax noise, twice the sensitivity"
    as_noise(hospital, "1000 * numerator / 2::numeric ^ places")
    rows = {urgent: n for urgent, n in asked(hospital, "1")}
    with connect(hospital.url) as database:
        compiled = CompiledStatement.of(NIGHTS, database.catalog, database.settings)
        ((_, summands),) = compiled.asked.items()
        (found,) = hospital.run("SELECT sqlrs.smoothness_ratio(1, 15)")
        weights = Weights(Fraction(2**80, int(found[0]) ** 2))
        (bound,) = bounds_of(summands)
        smooth = bound.measure(Measurements(database.engine), weights)()
    true = dict(hospital.run(
        "SELECT urgent, count(*) FROM visit v JOIN stay s ON s.visit = v.id GROUP BY 1"
    ))  # fmt: skip
    for urgent, n in rows.items():
        assert float(n - true.get(urgent, 0)) == pytest.approx(1000 * 2 * float(smooth))


def test_too_small_an_epsilon_costs_nothing(hospital: Desk) -> None:
    hospital.install_table(NIGHTS)
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="too small"):
        asked(hospital, "0.000001")
    assert hospital.spent()["ada"] == 0


@pytest.mark.parametrize(("epsilon", "size"), [("1", 1), ("1", 2), ("0.1", 3), ("5", 40)])
def test_the_conditions_of_the_proof_hold(workshop: Desk, epsilon: str, size: int) -> None:
    ((m, pull),) = workshop.run(
        f"SELECT r, sqlrs.lomax_pull({epsilon}, {size}, r) "
        f"FROM sqlrs.smoothness_ratio({epsilon}, 5 * {size}) AS r"
    )
    ratio, alpha, shape = Fraction(int(m) ** 2, 2**80), Fraction(int(pull), 2**64), 5 * size
    most = exp_lower(Fraction(Decimal(epsilon)))
    slack = 1 + Fraction(1, 2**60)
    assert ratio**size * (1 + alpha / ratio) ** (size + shape) <= most * slack
    assert (1 + alpha) ** (size + shape) <= most * slack
    assert ratio**shape <= most * slack
    # No smaller than need be, and a larger one would not do.
    assert float(alpha) == pytest.approx(float(Lomax(Decimal(epsilon), size).pull), rel=1e-6)
    assert ratio**size * (1 + 1.001 * alpha / ratio) ** (size + shape) > float(most)


@pytest.mark.parametrize("bits", [128, 256])
def test_a_logarithm_is_enclosed(workshop: Desk, bits: int) -> None:
    random = Random(7)
    numbers = [1, 2, 3, 2**bits, 2**bits - 1, *(random.getrandbits(bits) + 1 for _ in range(20))]
    with localcontext(prec=120):
        for number in numbers:
            ((low, high),) = workshop.run(
                f"SELECT low, high FROM sqlrs.minus_logarithm({number}, {bits}, 200)"
            )
            true = (bits * Decimal(2).ln() - Decimal(number).ln()) * 2**200
            assert low <= true + Decimal("1e-30") and true - Decimal("1e-30") <= high
            assert high - low < 2**18


class Words:
    """The words of the database, in order, as bits."""

    def __init__(self, words: list[int]) -> None:
        self.words = list(words)

    def bits(self, count: int) -> int:
        assert count == 128
        return self.words.pop(0)


def draws(desk: Desk, words: list[int], call: str) -> list[int]:
    """A draw from these words in the place of random ones."""
    with desk.session() as connection:
        connection.execute("CREATE TEMP TABLE word AS SELECT * FROM unnest(%s::numeric[]) "
                           "WITH ORDINALITY AS w (word, place)", [words])  # fmt: skip
        connection.execute("CREATE TEMP SEQUENCE taken")
        connection.execute(
            "BEGIN; CREATE OR REPLACE FUNCTION sqlrs.random_word() RETURNS numeric "
            "LANGUAGE plpgsql AS 'DECLARE next integer := nextval(''pg_temp.taken''); "
            "BEGIN RETURN (SELECT word FROM pg_temp.word WHERE place = next); END'"
        )
        (found,) = connection.execute(f"SELECT sqlrs.{call}".encode()).fetchall()
        connection.execute("ROLLBACK")
    return [int(one) for one in found[0]]


@pytest.mark.parametrize(
    ("numerator", "places", "epsilon", "size"),
    [(1, 0, "1", 1), (7, 1, "1", 3), (12345678901234567890, 3, "0.5", 4), (3, 5, "9", 2)],
)
def test_the_same_bits_give_the_draw_of_the_package(
    workshop: Desk, numerator: int, places: int, epsilon: str, size: int
) -> None:
    """Both round the same real numbers, which the bits fix: no law needs to be compared."""
    random = Random(numerator)
    ((m, pull),) = workshop.run(
        f"SELECT r, sqlrs.lomax_pull({epsilon}, {size}, r) "
        f"FROM sqlrs.smoothness_ratio({epsilon}, 5 * {size}) AS r"
    )
    scale = Fraction(numerator * 2**64, 2**places * int(pull))
    for _ in range(5):
        words = [random.getrandbits(128) for _ in range(2 * size)]
        call = f"lomax({numerator}, {places}, {m}, {epsilon}, {size})"
        found = draws(workshop, words, call)
        sizes = _Sizes(scale, 5 * size, size, Words(words[:size])).rounded()
        assert list(map(abs, found)) == sizes
        signs = iter(words[size:])
        assert found == [-one if one and next(signs) % 2 else one for one in sizes]
        other = _Sizes(scale * Fraction(11, 10), 5 * size, size, Words(words[:size])).rounded()
        assert max(sizes) < 40 or other != sizes


def test_the_first_coordinate_has_its_law(workshop: Desk) -> None:
    """P(|X| > y) = (1 + y / scale)^-a; error rate 1e-6, and another scale must be seen."""
    number, size = 600, 2
    drawn = workshop.run(
        f"SELECT (sqlrs.lomax(1000, 0, sqlrs.smoothness_ratio(1, 10), 1, {size}))[1] "
        f"FROM generate_series(1, {number})"
    )
    sizes = sorted(abs(int(one)) for (one,) in drawn)
    ((pull,),) = workshop.run(f"SELECT sqlrs.lomax_pull(1, {size}, sqlrs.smoothness_ratio(1, 10))")
    scale = 1000 * 2.0**64 / float(pull)

    def gap(scale: float) -> float:
        return max(
            abs(sum(one > w for one in sizes) / number - (1 + (w + 0.5) / scale) ** (-5 * size))
            for w in sizes[::20]
        )

    allowed = deviation_allowed(number, 1e-6)
    assert gap(scale) <= allowed < gap(1.7 * scale)


@pytest.mark.parametrize(
    "call",
    ["lomax(NULL, 0, 2, 1, 1)", "lomax(-1, 0, 2, 1, 1)", "lomax('NaN', 0, 2, 1, 1)",
     "log_series(1, 2, 10)", "minus_logarithm(0, 128, 10)", "growth(-1, 1)"],
)  # fmt: skip
def test_there_is_no_noise_of_no_scale(workshop: Desk, call: str) -> None:
    with pytest.raises(psycopg.errors.RaiseException):
        workshop.run(f"SELECT sqlrs.{call}")
