"""The one path that runs every stage, and the only place a number leaves by.

text -> query -> residuals -> snapshot -> charge -> measurements -> noise -> ledger -> answer.
Everything that can be refused is refused before the charge; so are a database that does not answer,
a schema that has changed and a constant that the database cannot read; no row is read for that.
After it every failure is one error, whose text does not depend on the data.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from functools import partial, reduce

from sqlrs.answer import Answer, Interval
from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Engine, Opened, Snapshot
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.ledger import Charge, Ledger
from sqlrs.ledger.base import add
from sqlrs.measuring.drift import unchanged
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.tried_constants import check_constants
from sqlrs.measuring.work import Progress
from sqlrs.mechanisms.base import Mechanism, Noisy, Preparation
from sqlrs.noise import SystemBits
from sqlrs.settings import Request, Settings

EXACT = "exact"
"""The mechanism of an answer without noise: of public tables alone, or 0 on every database."""


def release(
    request: Request,
    *,
    engine: Engine,
    catalog: Catalog,
    ledger: Ledger,
    settings: Settings,
    progress: Progress | None = None,
) -> Answer:
    """Answer one counting query with differential privacy, charging the ledger first."""
    chosen = request.chosen_mechanism()
    compiled = Compiled.of(request.sql, catalog, settings, as_rows=request.as_rows)
    if isinstance(compiled, Contradiction):
        return _exact(0, chosen)
    residuals = compiled.residuals
    same = partial(compiled.same, request.sql, settings=settings)

    def measurements(snapshot: Snapshot) -> Measurements:
        source = Opened(snapshot, engine.dialect)
        return Measurements(source, settings.plan, settings.solver_seconds, progress)

    if not residuals.query.private:
        with unchanged(residuals.query, engine, catalog, same) as snapshot:
            check_constants(residuals.query, snapshot, engine.dialect, request.sql)
            return _exact(measurements(snapshot).count(residuals), chosen)
    mechanism = chosen.fitted(residuals)
    charge = _charge(request, mechanism, compiled)
    if recorded := ledger.repeat(charge):
        return replace(Answer.from_json(recorded), repeated=True)
    prepared = mechanism.prepare(residuals)
    with ExitStack() as stack:
        snapshot = stack.enter_context(unchanged(residuals.query, engine, catalog, same))
        check_constants(residuals.query, snapshot, engine.dialect, request.sql)
        ticket = ledger.reserve(charge)
        outcome = _noisy(prepared, measurements(snapshot), stack.pop_all())
    if isinstance(outcome, SqlrsError):
        ledger.fail(ticket, outcome.code)
        raise outcome
    answer = Answer(outcome.value, charge.epsilon, mechanism.name, outcome.error_bars)
    ledger.settle(ticket, answer.to_json())
    return answer


def _exact(value: int, mechanism: Mechanism) -> Answer:
    """A count that says nothing about a private row: no noise, no cost."""
    coverage = mechanism.coverage
    interval = None if coverage is None else Interval(value, value, coverage)
    return Answer(value, Decimal(0), EXACT, interval)


def _charge(request: Request, mechanism: Mechanism, compiled: Compiled) -> Charge:
    return Charge(
        analyst=request.analyst,
        dataset=request.dataset,
        query=compiled.canonical,
        mechanism=", ".join([mechanism.describe(), *compiled.residuals.query.large_units]),
        epsilon=reduce(add, mechanism.prices),
    )


def _noisy(prepared: Preparation, measurements: Measurements, end: ExitStack) -> Noisy | SqlrsError:
    """Measure, end the snapshot, add noise. An error is returned: it must carry no context."""
    try:
        with end:
            draw = prepared.measure(measurements)
        return draw(SystemBits())
    except (KeyboardInterrupt, Interrupted):
        return Interrupted(
            "the release was stopped; its budget stays spent",
            hint="reading part of the data and then asking again would not be private",
        )
    except Exception:
        return EngineFailed(
            "the release could not be completed; its budget stays spent",
            hint="the database failed, ran out of time or memory, a file does not fit its schema "
            "or has changed, or the query divides by zero, overflows or casts a value that does "
            "not fit; the data owner can find out which with sqlrs sensitivity",
        )
