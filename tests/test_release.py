"""The release path charges first, fails as one error, repeats for free and adds the right noise."""

from __future__ import annotations

import json
import logging
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

import duckdb
import pytest

from sqlrs.answer import Answer
from sqlrs.catalog import Catalog
from sqlrs.engines.base import Engine, Snapshot
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
from sqlrs.measure import measure
from sqlrs.noise import PolyLaplace
from sqlrs.release import Compiled, Request, Settings, release, wanted_by
from sqlrs.residuals import Residuals
from sqlrs.sensitivity.refined import reached, released_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from tests import brute
from tests.builders import atom, query, table
from tests.noise.sources import SeededBits

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
    """An engine that notes what was spent when data was first read, and can be told to fail."""

    engine: Engine
    ledger: MemoryLedger
    failure: BaseException | None = None
    spent_at_reads: list[Decimal] = field(default_factory=list)

    @property
    def dialect(self) -> str:
        return self.engine.dialect

    def catalog(self) -> Catalog:
        return self.engine.catalog()

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        self.spent_at_reads.append(self.ledger.spent())
        if self.failure is not None:
            raise self.failure
        with self.engine.snapshot() as snapshot:
            yield snapshot


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
    assert watched.spent_at_reads == [Decimal("0.5")]
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
def test_a_bad_request_charges_and_reads_nothing(
    engine: Engine, request_: dict[str, object]
) -> None:
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
    again = ask(watched, ledger, "select COUNT(*) from edge AS a, edge AS b where b.src = a.dst")
    assert again == first
    assert ledger.spent() == Decimal("0.5")
    assert len(watched.spent_at_reads) == 1
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


def test_a_public_count_has_no_noise(engine: Engine) -> None:
    answer = release(
        Request(sql=PATH, epsilon="0.01"),
        engine=engine,
        catalog=engine.catalog().declare(public=["edge"]),
        ledger=MemoryLedger(),
        settings=Settings(),
    )
    assert answer.value == TRUE_COUNT


def test_no_private_value_in_logs_or_representations(
    engine: Engine, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    ledger = MemoryLedger()
    answer = ask(engine, ledger, error_bars="0.1")
    written = caplog.text + "".join(capfd.readouterr())
    assert written == ""
    public = {"answer", "epsilon", "mechanism", "error_bars"}
    assert set(json.loads(answer.to_json())) == public


def expected_sensitivity(epsilon: Decimal) -> tuple[int, PolyLaplace, object]:
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


@pytest.mark.parametrize(("factor", "passes"), [(1, True), (2, False)])
def test_the_released_noise_has_the_exact_distribution(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, factor: int, passes: bool
) -> None:
    """500 releases against exact probabilities, chi-square at an error rate of 1e-6.

    The negative control compares with twice the sensitivity and must fail.
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
    scale = mechanism.scale(factor * sensitivity)  # type: ignore[operator]
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
    assert (chi < 42.70) == passes, chi


def _freeze(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    """Compile and measure once, since neither the query nor the data changes between releases."""
    compiled = Compiled.of(PATH, engine.catalog(), Settings())
    assert isinstance(compiled, Compiled)
    wanted = wanted_by(PolyLaplace(Decimal(1), 5), compiled.residuals)
    measured = measure(engine, compiled.residuals, wanted)
    monkeypatch.setattr(Compiled, "of", lambda *_: compiled)
    monkeypatch.setattr("sqlrs.release.measure_for", lambda *_, **__: measured)


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
        Request(sql=PATH, epsilon="1", mechanism="gauss").noise()
    assert "polylaplace" in caught.value.describe()
