"""The release path charges first, fails as one error, repeats for free and adds the right noise."""

from __future__ import annotations

import json
import logging
import traceback
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from sqlrs import mechanisms
from sqlrs.answer import Answer
from sqlrs.catalog import Catalog, Routine
from sqlrs.compiled import Compiled
from sqlrs.engines.base import Engine, Row, Snapshot, one_integer
from sqlrs.engines.open import open_engine
from sqlrs.errors import (
    BudgetExhausted,
    EngineFailed,
    Interrupted,
    QueryRefused,
    SqlrsError,
    UsageError,
)
from sqlrs.ledger import MemoryLedger
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms import mechanism_named
from sqlrs.mechanisms.base import Draw, Noisy
from sqlrs.noise import Laplace, PolyLaplace
from sqlrs.release import release
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.refined import reached, released_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.settings import Request, Settings
from tests.noise.sources import SeededBits
from tests.support import brute
from tests.support.builders import atom, query, table

PATH = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
EDGES: list[tuple[object, ...]] = [(1, 2), (2, 3), (3, 1), (1, 3), (3, 4), (4, 1)]
TRUE_COUNT = 10


@pytest.fixture
def engine() -> Iterator[Engine]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE edge (src BIGINT, dst BIGINT, PRIMARY KEY (src, dst))")
    connection.executemany("INSERT INTO edge VALUES (?, ?)", EDGES)
    opened = open_engine(connection)
    yield opened
    opened.close()


@dataclass
class Watched:
    """An engine that notes what was spent when data was read, and can be told to fail then."""

    engine: Engine
    ledger: MemoryLedger
    failure: BaseException | None = None
    spent_at_reads: list[Decimal] = field(default_factory=list)
    keeps_schema: bool = True

    @property
    def dialect(self) -> str:
        return self.engine.dialect

    def catalog(self) -> Catalog:
        return self.engine.catalog()

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        with self.engine.snapshot() as snapshot:
            yield WatchedSnapshot(snapshot, self)


@dataclass
class WatchedSnapshot:
    snapshot: Snapshot
    watched: Watched

    def catalog(self) -> Catalog:
        return self.snapshot.catalog()

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        return self.snapshot.routines(names)

    def scalar(self, statement: exp.Expression) -> int:
        return one_integer(self.rows(statement))

    def rows(self, statement: exp.Expression) -> list[Row]:
        self.watched.spent_at_reads.append(self.watched.ledger.spent())
        if self.watched.failure is not None:
            raise self.watched.failure
        return self.snapshot.rows(statement)

    def interrupt(self) -> None:
        self.snapshot.interrupt()


def ask(engine: object, ledger: MemoryLedger, sql: str = PATH, **request: object) -> Answer:
    return release(
        Request(sql=sql, **{"epsilon": "0.5", **request}),  # type: ignore[arg-type]
        engine=engine,  # type: ignore[arg-type]
        catalog=engine.catalog(),  # type: ignore[attr-defined]
        ledger=ledger,
        settings=Settings(),
    )


def test_the_charge_comes_before_the_first_read(engine: Engine) -> None:
    ledger = MemoryLedger(Decimal(1))
    watched = Watched(engine, ledger)
    answer = ask(watched, ledger)
    assert set(watched.spent_at_reads) == {Decimal("0.5")}
    assert answer.epsilon == Decimal("0.5")
    assert [r.outcome for r in ledger.history()] == ["released"]


def test_an_exhausted_budget_reads_nothing(engine: Engine) -> None:
    ledger = MemoryLedger(Decimal("0.4"))
    watched = Watched(engine, ledger)
    with pytest.raises(BudgetExhausted):
        ask(watched, ledger)
    assert watched.spent_at_reads == []
    assert ledger.spent() == 0


@pytest.mark.parametrize(
    "request_",
    [
        {"epsilon": "0"},
        {"epsilon": "-1"},
        {"epsilon": "nan"},
        {"epsilon": "inf"},
        {"epsilon": "1e-400"},
        {"epsilon": "0." + "1" * 100},
        {"epsilon": "1", "mechanism": "gauss"},
        {"epsilon": "1", "mechanism": "cauchy", "shape": 4},
        {"epsilon": "1", "shape": 1},
        {"epsilon": "1", "error_bars": "0"},
        {"epsilon": "1", "sql": "SELECT sum(src) FROM edge"},
        {"epsilon": "1", "sql": "SELECT count(*) FROM nowhere"},
        {"epsilon": "1", "analyst": ""},
    ],
)
def test_a_bad_request_charges_and_reads_nothing(engine: Engine, request_: dict[str, Any]) -> None:
    ledger = MemoryLedger()
    watched = Watched(engine, ledger)
    with pytest.raises(SqlrsError):
        ask(watched, ledger, **request_)
    assert watched.spent_at_reads == []
    assert ledger.history() == ()


SECRET = "4815162342"


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (RuntimeError(f"cannot cast {SECRET}"), EngineFailed),
        (EngineFailed(f"row {SECRET} broke"), EngineFailed),
        (MemoryError(SECRET), EngineFailed),
        (ZeroDivisionError(SECRET), EngineFailed),
        (KeyboardInterrupt(), Interrupted),
        (Interrupted("stopped"), Interrupted),
    ],
)
def test_every_failure_after_the_charge_is_one_error(
    engine: Engine, failure: BaseException, expected: type[SqlrsError]
) -> None:
    ledger = MemoryLedger(Decimal(1))
    with pytest.raises(expected) as caught:
        ask(Watched(engine, ledger, failure), ledger)
    assert ledger.spent() == Decimal("0.5")
    shown = "".join(traceback.format_exception(caught.value)) + caught.value.describe()
    assert SECRET not in shown
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    if expected is EngineFailed:
        assert caught.value.message == "the release could not be completed; its budget stays spent"


def test_a_failure_in_the_data_is_the_same_error(engine: Engine) -> None:
    ledger = MemoryLedger()
    with pytest.raises(EngineFailed) as caught:
        ask(engine, ledger, f"{PATH} WHERE CAST('x' || a.src AS BIGINT) > 0")
    assert caught.value.message == "the release could not be completed; its budget stays spent"
    assert ledger.spent() == Decimal("0.5")


def test_an_identical_request_is_answered_from_the_record(engine: Engine) -> None:
    ledger = MemoryLedger(Decimal(1))
    watched = Watched(engine, ledger)
    first = ask(watched, ledger)
    reads = len(watched.spent_at_reads)
    again = ask(watched, ledger, "select COUNT(*) from edge AS a, edge AS b where b.src = a.dst")
    assert again == first
    assert again.repeated and not first.repeated
    assert ledger.spent() == Decimal("0.5")
    assert len(watched.spent_at_reads) == reads
    ask(watched, ledger, epsilon="0.25")
    assert ledger.spent() == Decimal("0.75")


def test_error_bars_are_charged_and_released(engine: Engine) -> None:
    ledger = MemoryLedger()
    answer = ask(engine, ledger, error_bars="0.1")
    assert ledger.spent() == answer.epsilon == Decimal("0.6")
    assert answer.error_bars is not None
    assert answer.error_bars.low < answer.value < answer.error_bars.high
    assert Answer.from_json(answer.to_json()) == answer


def test_an_always_false_query_costs_nothing(engine: Engine) -> None:
    ledger = MemoryLedger(Decimal("0.1"))
    watched = Watched(engine, ledger)
    answer = ask(watched, ledger, f"{PATH} WHERE a.src < 3 AND a.src > 5")
    assert (answer.value, answer.epsilon) == (0, Decimal(0))
    assert ledger.spent() == 0
    assert watched.spent_at_reads == []


@pytest.mark.parametrize("mechanism", ["polylaplace", "cauchy"])
def test_a_public_count_is_exact_and_free(engine: Engine, mechanism: str) -> None:
    ledger = MemoryLedger(Decimal("0.001"))
    answer = release(
        Request(sql=PATH, epsilon="0.01", mechanism=mechanism, error_bars="0.5"),
        engine=engine,
        catalog=engine.catalog().declare(public=["edge"]),
        ledger=ledger,
        settings=Settings(),
    )
    assert (answer.value, answer.epsilon, answer.mechanism) == (TRUE_COUNT, Decimal(0), "exact")
    assert answer.error_bars is not None
    assert (answer.error_bars.low, answer.error_bars.high) == (TRUE_COUNT, TRUE_COUNT)
    assert ledger.history() == ()


def test_one_private_table_makes_a_count_private() -> None:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE visit (person BIGINT); INSERT INTO visit VALUES (1), (2)")
    connection.execute("CREATE TABLE person (id BIGINT PRIMARY KEY); INSERT INTO person VALUES (1)")
    opened = open_engine(connection)
    catalog = opened.catalog().declare(public=["person"])
    for sql in (
        "SELECT count(*) FROM person p JOIN visit v ON v.person = p.id",
        "SELECT count(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.person = p.id)",
        "SELECT count(*) FROM person p WHERE p.id IN (SELECT person FROM visit)",
        "SELECT count(DISTINCT p.id) FROM person p, visit v",
    ):
        ledger = MemoryLedger()
        answer = release(
            Request(sql=sql, epsilon="0.5"),
            engine=opened,
            catalog=catalog,
            ledger=ledger,
            settings=Settings(),
        )
        assert answer.epsilon == Decimal("0.5"), sql
        assert answer.mechanism in ("laplace", "polylaplace"), sql
        assert ledger.spent() == Decimal("0.5")
    opened.close()


def test_a_public_count_that_fails_charges_nothing(engine: Engine) -> None:
    ledger = MemoryLedger()
    with pytest.raises(EngineFailed) as caught:
        release(
            Request(sql=f"{PATH} WHERE CAST('x' || a.src AS BIGINT) > 0", epsilon="1"),
            engine=engine,
            catalog=engine.catalog().declare(public=["edge"]),
            ledger=ledger,
            settings=Settings(),
        )
    assert "budget" not in caught.value.message
    assert ledger.history() == ()


@pytest.mark.parametrize(
    "clauses", ["ORDER BY 1", "LIMIT 1001", "ORDER BY 1 DESC NULLS LAST LIMIT 1 OFFSET 0"]
)
def test_clauses_after_a_count_change_neither_the_price_nor_the_record(
    engine: Engine, clauses: str
) -> None:
    ledger = MemoryLedger(Decimal("0.5"))
    first = ask(engine, ledger)
    assert ask(engine, ledger, f"{PATH} {clauses}") == first
    assert ledger.spent() == Decimal("0.5")


@pytest.mark.parametrize("clauses", ["LIMIT 0", "OFFSET 1", "HAVING count(*) > 3"])
def test_what_may_leave_no_row_is_refused_before_the_charge(engine: Engine, clauses: str) -> None:
    ledger = MemoryLedger()
    watched = Watched(engine, ledger)
    with pytest.raises(QueryRefused):
        ask(watched, ledger, f"{PATH} {clauses}")
    assert watched.spent_at_reads == []
    assert ledger.history() == ()


def test_no_private_value_in_logs_or_representations(
    engine: Engine, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    ledger = MemoryLedger()
    answer = ask(engine, ledger, error_bars="0.1")
    written = caplog.text + "".join(capfd.readouterr())
    assert written == ""
    public = {
        "answer",
        "epsilon",
        "mechanism",
        "error_bars",
        "repeated",
        "protects",
        "clipping",
    }
    assert set(json.loads(answer.to_json())) == public


def expected_sensitivity(epsilon: Decimal) -> tuple[int, PolyLaplace, Fraction]:
    """The count and sensitivity by brute force over the rows, apart from any SQL."""
    edge = table("edge", "src", "dst", keys=["src dst"])
    path = query(atom(edge, "a", "b"), atom(edge, "b", "c"))
    rows: brute.Database = {"edge": EDGES}
    residuals = Residuals(path)
    wanted = (*residuals.required, *reached(residuals))
    values = brute.residual_values(residuals, wanted, rows)
    mechanism = PolyLaplace(epsilon, 5)
    bound = released_sensitivity(residuals, values, mechanism.weights)
    return brute.count(path, rows), mechanism, bound.value


def test_the_released_noise_has_the_exact_distribution(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 releases against exact probabilities, chi-square at an error rate of 1e-6.

    The negative control compares the same ones with twice the sensitivity and must fail.
    """
    bits = SeededBits(20261)
    monkeypatch.setattr("sqlrs.release.SystemBits", lambda: bits)
    count, mechanism, sensitivity = expected_sensitivity(Decimal(1))
    assert count == TRUE_COUNT
    _freeze(monkeypatch, engine)
    draws = 500
    seen = Counter(
        abs(ask(engine, MemoryLedger(), epsilon="1").value - count) for _ in range(draws)
    )
    for factor, passes in ((1, True), (2, False)):
        scale = mechanism.scale(factor * sensitivity)
        edges = [0, 1, 2, 3, 4, 6, 8, 12, 20]
        chi = 0.0
        for low, high in zip(edges, [*edges[1:], None], strict=True):
            tail = mechanism.tail(scale, low) if low else 1
            beyond = mechanism.tail(scale, high) if high is not None else 0
            expected = float(tail - beyond) * draws
            observed = sum(
                n for value, n in seen.items() if value >= low and (high is None or value < high)
            )
            chi += (observed - expected) ** 2 / expected
        # The 1 - 1e-6 quantile of chi-square with 8 degrees of freedom is 42.70.
        assert (chi < 42.70) == passes, (factor, chi)


def _freeze(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    """Compile and measure once, since neither the query nor the data changes between releases."""
    compiled = Compiled.of(PATH, engine.catalog(), Settings())
    assert isinstance(compiled, Compiled)
    wanted = mechanism_named("polylaplace", Decimal(1), 5).prepare(compiled.residuals).wanted
    measured = measure(engine, compiled.residuals, wanted)
    monkeypatch.setattr("sqlrs.release.unchanged", lambda *_: nullcontext())
    monkeypatch.setattr(Compiled, "of", lambda *_, **__: compiled)
    monkeypatch.setattr("sqlrs.release.Measurements.enough", lambda *_, **__: measured)


@pytest.mark.parametrize("mechanism", ["polylaplace", "cauchy"])
def test_too_many_residuals_are_refused_before_the_charge(
    engine: Engine, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlrs.sensitivity.steps.MAX_STATEMENTS", 1)
    compile_recursion.cache_clear()
    ledger = MemoryLedger(Decimal(1))
    with pytest.raises(QueryRefused) as caught:
        ask(engine, ledger, mechanism=mechanism)
    compile_recursion.cache_clear()
    assert caught.value.code == "too_many_tables"
    assert ledger.spent() == 0


def test_system_randomness_is_used(engine: Engine) -> None:
    answers = {ask(engine, MemoryLedger(), epsilon="0.1").value for _ in range(12)}
    assert len(answers) > 3


def test_usage_errors_name_what_to_do() -> None:
    with pytest.raises(UsageError) as caught:
        Request(sql=PATH, epsilon="1", mechanism="gauss").chosen_mechanism()
    assert "polylaplace" in caught.value.describe()


@dataclass(frozen=True)
class Plus:
    """A mechanism that wants the count alone and adds what its second price says."""

    epsilon: Decimal
    name: str = "plus"
    coverage: Fraction | None = None

    @property
    def prices(self) -> tuple[Decimal, ...]:
        return self.epsilon, Decimal(3)

    def describe(self) -> str:
        return "plus three"

    def fitted(self, residuals: Residuals) -> Plus:
        return self

    def prepare(self, residuals: Residuals) -> PlusPreparation:
        return PlusPreparation(residuals, self.prices[1])


@dataclass(frozen=True)
class PlusPreparation:
    residuals: Residuals
    more: Decimal
    wanted: tuple[Members, ...] = ()

    def measure(self, measurements: Measurements) -> Draw:
        count = measurements.count(self.residuals)
        return lambda _: Noisy(count + int(self.more))


def test_a_new_mechanism_is_a_line_in_the_registry(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It measures what it wants and costs the sum of its prices; no stage knows of it."""
    monkeypatch.setitem(mechanisms._MECHANISMS, "plus", lambda epsilon, *_: Plus(epsilon))
    ledger = MemoryLedger(Decimal(10))
    watched = Watched(engine, ledger)
    answer = ask(watched, ledger, mechanism="plus")
    assert (answer.value, answer.mechanism) == (TRUE_COUNT + 3, "plus")
    assert answer.epsilon == ledger.spent() == Decimal("3.5")
    assert set(watched.spent_at_reads) == {Decimal("3.5")}
    assert ask(watched, ledger, mechanism="plus") == answer
    assert ledger.spent() == Decimal("3.5")


ONE_TABLE = "SELECT count(*) FROM edge WHERE src < 3"


def test_a_query_that_fixes_its_sensitivity_gets_laplace_noise(engine: Engine) -> None:
    ledger = MemoryLedger()
    answer = ask(engine, ledger, ONE_TABLE, epsilon="0.5")
    assert answer.mechanism == "laplace"
    # The same text with a shape asks for the noise that has one.
    assert ask(engine, ledger, ONE_TABLE, epsilon="0.5", shape=5).mechanism == "polylaplace"
    assert ask(engine, ledger, PATH, epsilon="0.5").mechanism == "polylaplace"
    assert ledger.spent() == Decimal("1.5")


def test_error_bars_of_a_fixed_sensitivity_are_free(engine: Engine) -> None:
    """The interval has a public width: that of two-sided geometric noise of S = 1 at 95 %."""
    ledger = MemoryLedger()
    answer = ask(engine, ledger, ONE_TABLE, epsilon="0.5", error_bars="0.1")
    assert ledger.spent() == answer.epsilon == Decimal("0.5")
    assert answer.error_bars is not None
    half = Laplace(Decimal("0.5")).half_width(Fraction(1), Fraction(1, 20))
    assert (answer.error_bars.low, answer.error_bars.high) == (
        answer.value - half,
        answer.value + half,
    )
