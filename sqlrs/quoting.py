"""What may be known of a release before it is paid for: what it protects, its price, its error.

A sketch is made of the text and the schema alone. A quote also reads public rows, and the ledger.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Literal

from sqlrs.before_charge import dry_run
from sqlrs.catalog import Catalog, Table
from sqlrs.charges import count_charge, statement_charge
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.earlier_errors import EarlierError
from sqlrs.effort import bounded_analysis
from sqlrs.engines.base import Engine
from sqlrs.ledger import Charge
from sqlrs.mechanisms.base import Mechanism
from sqlrs.mechanisms.steady import Steady
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.owner.picture import draw
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.constant import constant_sensitivity, is_constant
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.settings import Request, Settings

_MOST_PICTURES = 3

Sort = Literal["count", "table", "public", "never"]


@dataclass(frozen=True)
class Sketch:
    """A text as it is understood. ``sort``: public rows alone and 0 on every database are free."""

    sort: Sort
    pictures: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    unit: str | None = None
    fixed: bool = False


@dataclass(frozen=True)
class Quote:
    """What a release would be charged, and how large its error is without a look at the data.

    ``half_width``: 95 % of the answers lie so near to the truth; None where the data decides it.
    ``earlier``: what earlier answers of the analyst tell of that.
    """

    charge: Charge | None
    noise: tuple[str, ...] = ()
    groups: int | None = None
    columns: tuple[str, ...] = ()
    half_width: int | None = None
    earlier: EarlierError | None = None

    @property
    def price(self) -> Decimal:
        """What it costs if it was not released before."""
        return Decimal(0) if self.charge is None else self.charge.epsilon


def sketch(sql: str, catalog: Catalog, settings: Settings) -> Sketch:
    """How a text is understood, or its refusal."""
    compiled = compiled_text(sql, catalog, settings)
    if isinstance(compiled, Contradiction):
        return Sketch("never")
    if isinstance(compiled, Compiled):
        query = compiled.residuals.query
        sort: Sort = "count" if query.private else "public"
        with bounded_analysis():
            fixed = bool(query.private) and is_constant(compiled.residuals)
        return Sketch(sort, (draw(query),), *_tables(query.tables), None, fixed)
    pictures = dict.fromkeys(draw(query) for query in compiled.queries[:_MOST_PICTURES])
    unit = None if compiled.unit is None else compiled.unit.name
    return Sketch("table", tuple(pictures), *_tables(compiled.tables(catalog)), unit)


def quote(request: Request, engine: Engine, catalog: Catalog, settings: Settings) -> Quote:
    """The charge that a release of this request would make; nothing is charged."""
    chosen = request.chosen_mechanism()
    compiled = compiled_text(request.sql, catalog, settings)
    if isinstance(compiled, Contradiction):
        return Quote(None)
    if isinstance(compiled, CompiledStatement):
        return _table_quote(request, engine, catalog, settings)
    if not compiled.residuals.query.private:
        return Quote(None)
    mechanism = chosen.fitted(compiled.residuals)
    mechanism.prepare(compiled.residuals)
    return Quote(
        count_charge(request, mechanism, compiled),
        (mechanism.describe(),),
        half_width=_half_width(mechanism, compiled.residuals),
    )


def _table_quote(request: Request, engine: Engine, catalog: Catalog, settings: Settings) -> Quote:
    with dry_run(request, engine, catalog, settings) as ready:
        ready.above.database.close()
        charge = None
        if any(sum(one.prices) for one in ready.mechanisms.values()):
            charge = statement_charge(request, ready.mechanisms, ready.compiled, ready.price)
        noise = dict.fromkeys(one.describe() for one in ready.mechanisms.values())
        groups = sum(prod(map(len, rows)) for rows in ready.groups.rows.values())
        return Quote(charge, tuple(noise), groups, tuple(name for name, _ in ready.above.columns))


def _half_width(mechanism: Mechanism, residuals: Residuals) -> int | None:
    """From the query alone: where a value of a public table takes part, nothing is said."""
    if not isinstance(mechanism, Steady) or compile_recursion(residuals).coordinates:
        return None
    sensitivity = Fraction(constant_sensitivity(residuals, {}))
    return mechanism.noise.half_width(sensitivity, 1 - DEFAULT_COVERAGE)


def _tables(tables: frozenset[Table]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    private = sorted(table.name for table in tables if table.private)
    public = sorted(table.name for table in tables if not table.private)
    return tuple(private), tuple(public)
