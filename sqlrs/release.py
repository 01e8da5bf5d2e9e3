"""The one path that runs every stage, and the only place a number leaves by.

text -> query -> residuals -> snapshot -> charge -> measurements -> noise -> ledger -> answer.
Everything that can be refused is refused before the charge; so are a database that does not answer,
a schema that has changed and a constant that the database cannot read; no row is read for that.
After it every failure is one error, whose text does not depend on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlrs.answer import Answer, Interval, unit_notes
from sqlrs.catalog import Catalog
from sqlrs.charges import count_charge, statement_charge
from sqlrs.compiled import CompiledStatement
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Engine, Opened, Snapshot, hold_still
from sqlrs.errors import EngineFailed, Interrupted, NotShown, QueryRefused, SqlrsError
from sqlrs.ledger import Charge, Ledger
from sqlrs.measuring.drift import unchanged
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.tried_constants import check_constants, check_constants_by_unit
from sqlrs.measuring.work import Progress
from sqlrs.mechanisms.base import Mechanism, Noisy, Preparation
from sqlrs.noise import SystemBits
from sqlrs.recent_statements import RECENT
from sqlrs.settings import Request, Settings
from sqlrs.work_bound import refuse_too_large

if TYPE_CHECKING:
    # What statements need beyond a single count is imported with the first of them.
    from sqlrs.before_charge import Groups, Ready
    from sqlrs.engines.released import ReleasedRelation
    from sqlrs.measures import Asked
    from sqlrs.mechanisms.vector_base import PreparedVector
    from sqlrs.releasing import AfterRelease
    from sqlrs.table_answer import TableAnswer

_Outcome = TypeVar("_Outcome")

Columns = tuple[tuple[str, str], ...]
"""The name of each column of a table and DuckDB's name of its type."""

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
    compiled = RECENT.count(request, catalog, settings)
    if isinstance(compiled, CompiledStatement):
        compiled.statement.require_count()
        table = release_table(
            request,
            engine=engine,
            catalog=catalog,
            ledger=ledger,
            settings=settings,
            progress=progress,
        )
        return one_number(table, chosen.coverage)
    if isinstance(compiled, Contradiction):
        return _exact(0, chosen)
    residuals = compiled.residuals
    same = partial(compiled.same, request.sql, settings=settings)

    def measurements(snapshot: Snapshot) -> Measurements:
        source = Opened(snapshot, engine.dialect)
        return Measurements(
            source,
            settings.plan,
            settings.solver_seconds,
            progress,
            kept=compiled.kept,
            fetch_limit=settings.fetch_limit,
        )

    if not residuals.query.private:
        with unchanged(residuals.query.tables, engine, catalog, same) as snapshot:
            check_constants([residuals.query], snapshot, engine.dialect, request.sql, compiled.kept)
            return _exact(measurements(snapshot).count(residuals), chosen)
    mechanism = chosen.fitted(residuals)
    charge = count_charge(request, mechanism, compiled)
    if recorded := ledger.repeat(charge):
        return replace(Answer.from_json(recorded), repeated=True)
    prepared = mechanism.prepare(residuals)
    refuse_too_large(residuals, prepared.wanted, settings.sizes)
    with ExitStack() as stack:
        snapshot = stack.enter_context(unchanged(residuals.query.tables, engine, catalog, same))
        check_constants([residuals.query], snapshot, engine.dialect, request.sql, compiled.kept)
        hold_still(snapshot, residuals.query.tables)
        ticket = ledger.reserve(charge)
        outcome = _noisy(prepared, measurements(snapshot), stack.pop_all())
    if isinstance(outcome, SqlrsError):
        ledger.fail(ticket, outcome.code)
        raise outcome
    answer = Answer(
        outcome.value,
        charge.epsilon,
        mechanism.name,
        outcome.error_bars,
        clipping=outcome.clipping,
    )
    ledger.settle(ticket, answer.to_json())
    return answer


def release_table(
    request: Request,
    *,
    engine: Engine,
    catalog: Catalog,
    ledger: Ledger,
    settings: Settings,
    progress: Progress | None = None,
    accept: Callable[[Columns], None] | None = None,
) -> TableAnswer:
    """Answer a statement with groups, sums and several aggregates, charging the ledger once.

    ``accept`` is told the columns before anything is charged; what it raises is raised.
    """
    from sqlrs.before_charge import dry_run

    intervals = request.error_bars is not None
    with ExitStack() as stack:
        ready = stack.enter_context(dry_run(request, engine, catalog, settings))
        compiled, groups, above = ready.compiled, ready.groups, ready.above
        if accept is not None:
            accept(above.columns)
        charge = None
        if any(sum(one.prices) for one in ready.mechanisms.values()):
            charge = statement_charge(request, ready.mechanisms, compiled, ready.price)
        if charge is not None and (recorded := ledger.repeat(charge)):
            relations = _from_record(recorded, ready)
            return table_of(above, relations, charge, repeated=True, intervals=intervals)
        prepared = {asked: one.prepare() for asked, one in ready.mechanisms.items()}
        check_constants(
            compiled.queries, ready.snapshot, engine.dialect, request.sql, compiled.kept
        )
        check_constants_by_unit(compiled.by_unit, ready.snapshot, engine.dialect, request.sql)
        source = Opened(ready.snapshot, engine.dialect)
        measurements = Measurements(
            source,
            settings.plan,
            settings.solver_seconds,
            progress,
            kept=compiled.kept,
            domains=groups.domains(compiled.statement.aggregations),
            fetch_limit=settings.fetch_limit,
        )
        hold_still(ready.snapshot, compiled.tables(catalog))
        ticket = None if charge is None else ledger.reserve(charge)
        outcome = _noisy_table(prepared, groups, measurements, compiled, stack.pop_all())
    if isinstance(outcome, SqlrsError):
        if ticket is not None:
            ledger.fail(ticket, outcome.code)
        raise outcome
    relations = _relations(ready, outcome)
    if charge is not None and ticket is not None:
        ledger.settle(ticket, _to_record(outcome, relations, ready, charge))
    return table_of(above, relations, charge, intervals=intervals)


def _relations(ready: Ready, numbers: Mapping[Asked, Sequence[Noisy]]) -> list[ReleasedRelation]:
    return [
        ready.relation(one, ready.groups.rows[one.name], [numbers[asked] for asked in one.asked])
        for one in ready.compiled.statement.aggregations
    ]


def _to_record(
    numbers: Mapping[Asked, Sequence[Noisy]],
    relations: Sequence[ReleasedRelation],
    ready: Ready,
    charge: Charge,
) -> str:
    """What the ledger keeps; of one count what ``release`` keeps, so that either repeats both."""
    from sqlrs.engines import released_json

    asked = ready.compiled.one_count
    if asked is None:
        return released_json.to_json(relations)
    (noisy,) = numbers[asked]
    name = ready.mechanisms[asked].name
    answer = Answer(noisy.value, charge.epsilon, name, noisy.error_bars, clipping=noisy.clipping)
    return answer.to_json()


def _from_record(recorded: str, ready: Ready) -> Sequence[ReleasedRelation]:
    from sqlrs.engines import released_json

    asked = ready.compiled.one_count
    if asked is None:
        return released_json.from_json(recorded)
    answer = Answer.from_json(recorded)
    return _relations(ready, {asked: [Noisy(answer.value, answer.error_bars, answer.clipping)]})


def describe_table(
    request: Request, *, engine: Engine, catalog: Catalog, settings: Settings
) -> Columns:
    """The columns that a statement's answer has. Reads public rows alone and charges nothing."""
    from sqlrs.before_charge import dry_run

    with dry_run(request, engine, catalog, settings) as ready:
        ready.above.database.close()
        return ready.above.columns


def table_of(
    above: AfterRelease,
    relations: Sequence[ReleasedRelation],
    charge: Charge | None,
    *,
    repeated: bool = False,
    intervals: bool = False,
) -> TableAnswer:
    """What stands above the released relations, which touches no private row."""
    from sqlrs.table_answer import TableAnswer

    try:
        result = above.run(relations)
    except QueryRefused as problem:
        if charge is None:
            raise
        cost = "an earlier answer" if repeated else f"epsilon {charge.epsilon:f} stays charged"
        raise NotShown(
            f"{problem.message}; its numbers are released ({cost})",
            hint="write what follows the aggregates in another way: the same aggregates at the "
            "same epsilon are answered from the record, free of charge",
        ) from None
    if charge is None:
        exact = TableAnswer(result.columns, result.rows, Decimal(0), EXACT)
        return replace(exact, intervals=intervals)
    clippings = tuple(cut for one in relations for cut in one.clippings if cut is not None)
    return TableAnswer(
        result.columns,
        result.rows,
        charge.epsilon,
        charge.mechanism,
        repeated=repeated,
        notes=unit_notes(charge.unit, clippings),
        protects=charge.unit,
        clippings=clippings,
        intervals=intervals,
    )


def _noisy_table(
    prepared: Mapping[Asked, PreparedVector],
    groups: Groups,
    measurements: Measurements,
    compiled: CompiledStatement,
    end: ExitStack,
) -> dict[Asked, tuple[Noisy, ...]] | SqlrsError:
    """Measure all, end the snapshot, add noise. An error is returned: it must carry no context."""

    def work() -> dict[Asked, tuple[Noisy, ...]]:
        with end:
            if compiled.unit is None:
                measurements.read_ahead(
                    (one.signed, one.residuals, asked[0])
                    for asked, terms in compiled.asked.items()
                    for one in terms
                )
            draws = {
                asked: one.measure(measurements, asked[0], groups.of[asked])
                for asked, one in prepared.items()
            }
        bits = SystemBits()
        return {asked: draw(bits) for asked, draw in draws.items()}

    return guarded(work)


def one_number(table: TableAnswer, coverage: Fraction | None) -> Answer:
    """The count that is the only one in a table, with its ends where there is a coverage."""
    ((value, *ends),) = table.rows
    bars = None
    if coverage is not None:
        low, high = ends
        bars = Interval(int(str(low)), int(str(high)), coverage)
    clipping = table.clippings[0] if len(table.clippings) == 1 else None
    return Answer(
        int(str(value)),
        table.epsilon,
        table.mechanism,
        bars,
        repeated=table.repeated,
        protects=table.protects,
        clipping=clipping,
    )


def _exact(value: int, mechanism: Mechanism) -> Answer:
    """A count that says nothing about a private row: no noise, no cost."""
    coverage = mechanism.coverage
    interval = None if coverage is None else Interval(value, value, coverage)
    return Answer(value, Decimal(0), EXACT, interval)


def _noisy(prepared: Preparation, measurements: Measurements, end: ExitStack) -> Noisy | SqlrsError:
    """Measure, end the snapshot, add noise. An error is returned: it must carry no context."""

    def work() -> Noisy:
        with end:
            draw = prepared.measure(measurements)
        return draw(SystemBits())

    return guarded(work)


def guarded(work: Callable[[], _Outcome]) -> _Outcome | SqlrsError:
    """What the work gives, or the one error that tells nothing about the data."""
    try:
        return work()
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
