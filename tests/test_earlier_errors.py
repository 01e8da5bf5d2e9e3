"""What earlier answers tell an analyst of the error of the next one, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import sqlrs
from sqlrs.compiled import Compiled, compiled_text
from sqlrs.earlier_errors import earlier_error, told_by
from sqlrs.errors import NotShown
from sqlrs.ledger import Charge, JournalLine
from sqlrs.ledger.store import StoreLedger
from sqlrs.noise import PolyLaplace
from sqlrs.noise.published_scale import SHAPES, published_scale
from sqlrs.quoting import quote
from sqlrs.settings import Request
from sqlrs.wished_release import index_of

JOIN = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
THEN = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> StoreLedger:
    tmp_path.chmod(0o700)
    made = StoreLedger(f"sqlite:///{tmp_path}/budget.db")
    made.grant(dataset="data", epsilon=100)
    for name in ("ada", "bob"):
        made.grant(analyst=name, epsilon=50)
    return made


def opened(ledger: StoreLedger, analyst: str) -> sqlrs.Database:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE edge (src INT NOT NULL, dst INT NOT NULL, UNIQUE (src, dst));"
        "INSERT INTO edge SELECT i, (i * i + 1) % 40 FROM range(40) t(i)"
    )
    return sqlrs.connect(connection, ledger=ledger, analyst=analyst, dataset="data")


def charge_of(db: sqlrs.Database, analyst: str, epsilon: str, sql: str = JOIN) -> Charge:
    request = Request(sql=sql, epsilon=epsilon, analyst=analyst, dataset="data")
    found = quote(request, db.engine, db.catalog, db.settings).charge
    assert found is not None
    return found


def test_an_interval_tells_its_own_analyst(ledger: StoreLedger) -> None:
    db = opened(ledger, "ada")
    charge = charge_of(db, "ada", "1")
    assert earlier_error(charge, ledger) is None
    db.count(JOIN, epsilon=1)  # without an interval nothing is told
    assert earlier_error(charge, ledger) is None
    answer = db.count(JOIN, epsilon=1, error_bars="0.4")
    assert answer.error_bars is not None
    half = answer.error_bars.high - answer.value
    told = earlier_error(charge, ledger)
    assert told is not None
    # Both prices give shape 5: it is the same law, so the same width.
    assert (told.half_width, told.told, told.epsilon) == (half, half, Decimal(1))
    cheaper = earlier_error(charge_of(db, "ada", "0.5"), ledger)
    assert cheaper is not None and half < cheaper.half_width <= 3 * half
    assert earlier_error(charge_of(db, "bob", "1"), ledger) is None
    other = f"{JOIN} WHERE a.src < 9"
    assert earlier_error(charge_of(db, "ada", "1", other), ledger) is None
    assert earlier_error(replace(charge, dataset="other"), ledger) is None


def test_a_scale_tells_though_no_answer_followed(ledger: StoreLedger) -> None:
    db = opened(ledger, "ada")
    with pytest.raises(NotShown):
        db.count(JOIN, error="0.001", max_epsilon=1)
    scale, (line,) = published_scale(Decimal(1)), ledger.history("ada")
    index = index_of(line.answer or "")
    compiled = compiled_text(JOIN, db.catalog, db.settings)
    assert isinstance(compiled, Compiled)
    for shape in SHAPES:
        law = scale.laws[shape]
        charge = Charge("ada", "data", compiled.canonical, law.describe(), law.epsilon)
        told = earlier_error(charge, ledger)
        assert told is not None
        assert told.half_width - scale.half_width(index, shape) in (0, 1)  # both round up


def test_the_width_is_that_of_the_law() -> None:
    """Against the exact tails: at the sensitivity that was told, 5 % stray so far and no more."""
    sensitivity, miss = Fraction(1000), Fraction(1, 20)
    for shape, epsilon in ((2, "0.3"), (5, "0.25"), (64, "7")):
        earlier, law = PolyLaplace(Decimal(1), 5), PolyLaplace(Decimal(epsilon), shape)
        told = _exact_width(earlier, sensitivity, miss)
        line = _line(earlier, f'{{"low": {-told}, "high": {told}, "coverage": "19/20"}}')
        charge = replace(line.charge, mechanism=law.describe(), epsilon=law.epsilon)
        found = told_by(charge, [line])
        assert found is not None
        exact = _exact_width(law, sensitivity, miss)
        assert abs(found.half_width - exact) <= 2 + exact // 500


def test_the_nearest_law_tells_and_what_is_not_understood_is_passed_over() -> None:
    near, far = PolyLaplace(Decimal(1), 5), PolyLaplace(Decimal(4), 5)
    bars = '{"low": -70, "high": 70, "coverage": "19/20"}'
    good = _line(near, bars)
    wide = '{"low": -70, "high": 70, "coverage": "1/2"}'
    strange = [
        _line(near, wide),
        _line(near, "null"),
        replace(good, answer="[]"),
        replace(good, answer=None),
        replace(good, outcome="reserved"),
        *(
            replace(good, charge=replace(good.charge, mechanism=text))
            for text in (
                "cauchy noise",
                near.describe().replace("standard error", "error"),
                "polylaplace noise of shape 99, epsilon 1: ",
                "polylaplace noise of shape 5, epsilon ..: ",
                published_scale(Decimal(1)).describe(),
                published_scale(Decimal(1)).describe().replace("0.0368", "0.0367"),
                "scale of noise at epsilon .. times it, epsilon .",
            )
        ),
    ]
    assert told_by(good.charge, strange) is None
    found = told_by(good.charge, [_line(far, bars), *strange, good])
    assert found is not None and (found.told, found.epsilon) == (70, Decimal(1))


def _line(law: PolyLaplace, bars: str) -> JournalLine:
    charge = Charge("ada", "data", "query", law.describe(), law.epsilon)
    answer = f'{{"answer": 0, "epsilon": "1", "mechanism": "polylaplace", "error_bars": {bars}}}'
    return JournalLine(1, THEN, charge, "released", answer)


def _exact_width(law: PolyLaplace, sensitivity: Fraction, miss: Fraction) -> int:
    """The least width that noise exceeds with a chance of at most ``miss``."""
    scale, low, high = law.scale(sensitivity), 0, 1
    while law.tail(scale, high + 1) > miss:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if law.tail(scale, middle + 1) > miss else (low, middle)
    return high
