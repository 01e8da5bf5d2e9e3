"""The owner's diagnostics: sensitivities side by side with T_E and the true count. Not private."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from functools import partial

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Engine, Measurable, Opened
from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import QueryRefused, UsageError
from sqlrs.inputs import arguments
from sqlrs.measuring.drift import unchanged
from sqlrs.measuring.measure import Measured, measure
from sqlrs.measuring.work import Progress
from sqlrs.noise import Weights
from sqlrs.owner.frequencies import (
    irregular_edges,
    maximum_degree,
    maximum_frequency,
    triangle_pairs,
)
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.elastic import elastic_sensitivity, needed_frequencies
from sqlrs.sensitivity.exact_smooth import (
    Pair,
    Star,
    recognise,
    require_simple_graph,
    star_sensitivity,
    triangle_sensitivity,
)
from sqlrs.sensitivity.global_ import global_sensitivity
from sqlrs.sensitivity.local import local_bound
from sqlrs.sensitivity.refined import reached, refined_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from sqlrs.settings import Number, Settings
from sqlrs.trees.build import table_of


@dataclass(frozen=True)
class ResidualValue:
    """One evaluated residual: private."""

    atoms: tuple[str, ...]
    boundary: tuple[str, ...]
    value: int
    plan: str
    seconds: float


@dataclass(frozen=True)
class Diagnosis:
    """One sensitivity of one query on the data as it is: private, for the owner's eyes."""

    method: str
    beta: Decimal
    value: Fraction
    k: int | None
    count: int | None
    residuals: tuple[ResidualValue, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, object]:
        """The object that ``sqlrs sensitivity --json`` prints."""
        return {
            "method": self.method,
            "beta": f"{self.beta:f}",
            "value": decimal_text(self.value),
            "k": self.k,
            "count": self.count,
            "residuals": [
                {
                    "atoms": list(r.atoms),
                    "boundary": list(r.boundary),
                    "value": r.value,
                    "plan": r.plan,
                    "seconds": round(r.seconds, 6),
                }
                for r in self.residuals
            ],
            "seconds": round(self.seconds, 6),
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def to_json(self) -> str:
        """``as_dict`` as JSON text."""
        return json.dumps(self.as_dict())


def decimal_text(value: Fraction, digits: int = 6) -> str:
    """The value as a decimal, rounded up in the last of ``digits`` places."""
    scaled = -(-value.numerator * 10**digits // value.denominator)
    whole, part = divmod(scaled, 10**digits)
    return f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".")


def diagnose(
    sql: str,
    *,
    method: str,
    beta: Number,
    engine: Engine,
    catalog: Catalog,
    settings: Settings,
    progress: Progress | None = None,
) -> Diagnosis:
    """One sensitivity of the query, with everything that went into it."""
    if arguments.text("method", method) not in METHODS:
        raise UsageError(f"there is no method {method!r}", hint=f"one of {', '.join(METHODS)}")
    exact_beta = parse_epsilon(beta)
    weights = Weights.from_beta(Fraction(exact_beta))
    compiled = Compiled.of(sql, catalog, settings)
    if isinstance(compiled, Contradiction):
        return Diagnosis(method, exact_beta, Fraction(0), 0, 0, notes=(str(compiled),))
    start = time.perf_counter()
    same = partial(compiled.same, sql, settings=settings)
    with unchanged(compiled.residuals.query.tables, engine, catalog, same) as snapshot:
        source = Opened(snapshot, engine.dialect)
        found = _METHODS[method](_Task(compiled.residuals, weights, source, settings, progress))
    return Diagnosis(
        method=method,
        beta=exact_beta,
        value=found.bound.value,
        k=found.bound.k,
        count=found.measured.count if found.measured else None,
        residuals=_residual_values(found.measured),
        seconds=time.perf_counter() - start,
        notes=found.notes,
    )


def diagnose_all(
    sql: str,
    *,
    beta: Number,
    engine: Engine,
    catalog: Catalog,
    settings: Settings,
    progress: Progress | None = None,
) -> dict[str, Diagnosis | QueryRefused]:
    """Every method side by side; a method that does not apply gives its refusal."""
    results: dict[str, Diagnosis | QueryRefused] = {}
    for method in METHODS:
        try:
            results[method] = diagnose(
                sql,
                method=method,
                beta=beta,
                engine=engine,
                catalog=catalog,
                settings=settings,
                progress=progress,
            )
        except QueryRefused as refused:
            if refused.code != "single_rows_only" and not refused.code.startswith(method):
                raise
            results[method] = refused
    return results


@dataclass(frozen=True)
class _Task:
    residuals: Residuals
    weights: Weights
    source: Measurable
    settings: Settings
    progress: Progress | None

    def measure(self, wanted: Iterable[Members]) -> Measured:
        return measure(
            self.source,
            self.residuals,
            wanted,
            plan=self.settings.plan,
            solver_seconds=self.settings.solver_seconds,
            progress=self.progress,
        )


@dataclass(frozen=True)
class _Diagnosis:
    bound: Bound
    measured: Measured | None = None
    notes: tuple[str, ...] = ()


def _residual_values(measured: Measured | None) -> tuple[ResidualValue, ...]:
    return tuple(
        ResidualValue(
            atoms=tuple(atom.alias for atom in e.residual.atoms),
            boundary=tuple(map(str, sorted(e.residual.boundary))),
            value=e.value,
            plan=e.plan.name,
            seconds=e.seconds,
        )
        for e in (measured.evaluations if measured else ())
        if e.residual.members != e.residual.query.everything
    )


def _refined(task: _Task) -> _Diagnosis:
    measured = task.measure((*task.residuals.required, *reached(task.residuals)))
    return _Diagnosis(refined_sensitivity(task.residuals, measured.values, task.weights), measured)


def _residual(task: _Task) -> _Diagnosis:
    measured = task.measure(task.residuals.required)
    return _Diagnosis(residual_sensitivity(task.residuals, measured.values, task.weights), measured)


def _local(task: _Task) -> _Diagnosis:
    measured = task.measure(task.residuals.required)
    return _Diagnosis(local_bound(task.residuals, measured.values), measured)


def _require_single_rows(task: _Task, method: str) -> None:
    if units := task.residuals.query.large_units:
        raise refusal(
            "single_rows_only",
            f"the {method} sensitivity is that of single rows, not of {', '.join(units)}",
        )


def _elastic(task: _Task) -> _Diagnosis:
    _require_single_rows(task, "elastic")
    query = task.residuals.query
    needed = needed_frequencies(query)
    with task.source.snapshot() as snapshot:
        frequencies = {f: snapshot.scalar(maximum_frequency(f)) for f in needed}
    return _Diagnosis(elastic_sensitivity(query, frequencies, task.weights))


def _smooth(task: _Task) -> _Diagnosis:
    _require_single_rows(task, "smooth")
    pattern = recognise(task.residuals.query)
    with task.source.snapshot() as snapshot:
        if isinstance(pattern, Star):
            degree = snapshot.scalar(maximum_degree(pattern))
            return _Diagnosis(star_sensitivity(degree, pattern.size, task.weights))
        require_simple_graph(snapshot.scalar(irregular_edges(pattern)))
        pairs = [Pair(int(str(a)), int(str(b))) for a, b in snapshot.rows(triangle_pairs(pattern))]
    return _Diagnosis(triangle_sensitivity(pairs, task.weights))


def _global(task: _Task) -> _Diagnosis:
    _require_single_rows(task, "global")
    query = task.residuals.query
    rows = exp.Count(this=exp.Star())
    with task.source.snapshot() as snapshot:
        sizes = {
            atom.table.label: snapshot.scalar(exp.select(rows.copy()).from_(table_of(atom.table)))
            for atom in query.atoms
        }
    found = global_sensitivity(query, sizes)
    notes = (f"O(N^{found.exponent}): {found.formula} for tables of N rows",)
    return _Diagnosis(Bound(found.value or Fraction(0)), notes=notes)


_METHODS: dict[str, Callable[[_Task], _Diagnosis]] = {
    "refined": _refined,
    "residual": _residual,
    "elastic": _elastic,
    "smooth": _smooth,
    "global": _global,
    "local": _local,
}
METHODS = tuple(_METHODS)
