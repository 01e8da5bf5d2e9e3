"""The one path that runs every stage, and the only place a number leaves by.

text -> query -> residuals -> snapshot -> charge -> sensitivity -> noise -> ledger -> answer.
Everything that can be refused is refused before the charge; so are a database that does not answer
and a schema that has changed, and no row is read for that. After it every failure is one error,
whose text does not depend on the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal

from sqlrs.answer import Answer, Interval
from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Engine, Opened, Snapshot, Source
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError, UsageError
from sqlrs.ledger import Charge, Ledger
from sqlrs.ledger.base import add
from sqlrs.measuring.drift import Schema, current_catalog, moved, schema_changed
from sqlrs.measuring.measure import Fold, Measured, Progress, measure_for
from sqlrs.mechanisms.base import Mechanism
from sqlrs.noise import ErrorBars, SystemBits
from sqlrs.residuals.residual import Members, Residuals
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
    mechanism = request.chosen_mechanism()
    bars = request.bars(mechanism.noise)
    compiled = Compiled.of(request.sql, catalog, settings, as_rows=request.as_rows)
    if isinstance(compiled, Contradiction):
        return _exact(0, bars)
    if not compiled.residuals.query.private:
        with unchanged(request.sql, compiled, engine, catalog, settings) as snapshot:
            source = Opened(snapshot, engine.dialect)
            return _exact(_public_count(compiled.residuals, source, settings, progress), bars)
    charge = _charge(request, mechanism, bars, compiled)
    if recorded := ledger.repeat(charge):
        return Answer.from_json(recorded)
    wanted = mechanism.wanted(compiled.residuals)
    with ExitStack() as stack:
        snapshot = stack.enter_context(unchanged(request.sql, compiled, engine, catalog, settings))
        ticket = ledger.reserve(charge)
        outcome = _compute(
            compiled.residuals,
            wanted,
            mechanism,
            bars,
            charge,
            engine,
            snapshot,
            stack.pop_all(),
            settings,
            progress,
        )
    if isinstance(outcome, SqlrsError):
        ledger.fail(ticket, outcome.code)
        raise outcome
    ledger.settle(ticket, outcome.to_json())
    return outcome


def _begin(engine: Engine, catalog: Catalog, stack: ExitStack) -> tuple[Snapshot, Schema]:
    """A snapshot and the schema in it. A database that does not answer is told without details."""
    try:
        snapshot = stack.enter_context(engine.snapshot())
        return snapshot, Schema.of(snapshot, catalog)
    except (UsageError, Interrupted):
        raise
    except Exception:
        # The driver would name the server and its user, which is nothing for an analyst.
        pass
    raise EngineFailed(
        "the database does not answer; nothing was read or charged",
        code="backend_failed",
        hint="ask again when it is back",
    )


@contextmanager
def unchanged(
    sql: str, compiled: Compiled, engine: Engine, catalog: Catalog, settings: Settings
) -> Iterator[Snapshot]:
    """A snapshot in which the schema is what the query was compiled for; no row is read for it."""
    with ExitStack() as stack:
        snapshot, now = _begin(engine, catalog, stack)
        current = current_catalog(catalog, now)
        if current is not catalog and not compiled.same(sql, current, settings):
            raise schema_changed(compiled.residuals.query, current)
        yield snapshot
        stack.close()
        if engine.keeps_schema:
            return
        with engine.snapshot() as afterwards:
            if moved(compiled.residuals.query, now, Schema.of(afterwards, catalog)):
                raise EngineFailed("tables or functions changed during the work")


def _exact(value: int, bars: ErrorBars | None) -> Answer:
    """A count that says nothing about a private row: no noise, no cost."""
    interval = Interval(value, value, bars.coverage) if bars else None
    return Answer(value, Decimal(0), EXACT, interval)


def _public_count(
    residuals: Residuals, source: Source, settings: Settings, progress: Progress | None
) -> int:
    """The count of a query that reads public tables alone."""
    return measure_for(None, source, residuals, (), plan=settings.plan, progress=progress).count


def _charge(
    request: Request, mechanism: Mechanism, bars: ErrorBars | None, compiled: Compiled
) -> Charge:
    parts = [mechanism.noise.describe()] + ([bars.describe()] if bars else [])
    parts += compiled.residuals.query.large_units
    return Charge(
        analyst=request.analyst,
        dataset=request.dataset,
        query=compiled.canonical,
        mechanism=", ".join(parts),
        epsilon=add(mechanism.noise.epsilon, bars.epsilon) if bars else mechanism.noise.epsilon,
    )


def _compute(
    residuals: Residuals,
    wanted: tuple[Members, ...],
    mechanism: Mechanism,
    bars: ErrorBars | None,
    charge: Charge,
    engine: Engine,
    snapshot: Snapshot,
    end: ExitStack,
    settings: Settings,
    progress: Progress | None,
) -> Answer | SqlrsError:
    """Measure, fold and add noise. An error is returned, not raised: it must carry no context."""
    try:
        with end:
            measured = measure_for(
                _repeatable_fold(mechanism, residuals),
                Opened(snapshot, engine.dialect),
                residuals,
                wanted,
                plan=settings.plan,
                solver_seconds=settings.solver_seconds,
                progress=progress,
            )
        return _noisy(residuals, measured, mechanism, bars, charge)
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


def _repeatable_fold(mechanism: Mechanism, residuals: Residuals) -> Fold | None:
    """The sensitivity as a function of the values T_E, where it is quick enough to try often."""
    if not mechanism.is_quick(residuals):
        return None
    return lambda values: mechanism.sensitivity(residuals, values).value


def _noisy(
    residuals: Residuals,
    measured: Measured,
    mechanism: Mechanism,
    bars: ErrorBars | None,
    charge: Charge,
) -> Answer:
    bits = SystemBits()
    sensitivity = mechanism.sensitivity(residuals, measured.values).value
    value = measured.count + mechanism.noise.sample(sensitivity, bits)
    interval = None
    if bars is not None:
        interval = Interval(*bars.interval(value, sensitivity, bits), bars.coverage)
    return Answer(value, charge.epsilon, mechanism.noise.name, interval)
