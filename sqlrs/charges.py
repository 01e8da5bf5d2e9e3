"""What a release is charged: the same for whoever releases it and for whoever asks its price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING

from sqlrs.compiled import Compiled, CompiledStatement
from sqlrs.ledger import Charge
from sqlrs.ledger.base import add
from sqlrs.mechanisms.base import Mechanism
from sqlrs.settings import Request
from sqlrs.units import ROW

if TYPE_CHECKING:
    from sqlrs.measures import Asked
    from sqlrs.mechanisms.vector_base import VectorMechanism


def count_charge(request: Request, mechanism: Mechanism, compiled: Compiled) -> Charge:
    """The charge of one count, by the mechanism that answers it."""
    return Charge(
        analyst=request.analyst,
        dataset=request.dataset,
        query=compiled.canonical,
        mechanism=", ".join([mechanism.describe(), *compiled.residuals.query.large_units]),
        epsilon=reduce(add, mechanism.prices),
    )


def statement_charge(
    request: Request,
    mechanisms: Mapping[Asked, VectorMechanism],
    compiled: CompiledStatement,
    price: Decimal,
) -> Charge:
    """The charge of a statement, one for all of its numbers."""
    described = [one.describe() for one in mechanisms.values()]
    return described_charge(request, described, compiled, price)


def described_charge(
    request: Request, lines: Iterable[str], compiled: CompiledStatement, price: Decimal
) -> Charge:
    """The same for mechanisms that are described already."""
    units = dict.fromkeys(unit for query in compiled.queries for unit in query.large_units)
    described = dict.fromkeys(lines)
    return Charge(
        analyst=request.analyst,
        dataset=request.dataset,
        query=compiled.canonical,
        mechanism=", ".join([*described, *units]),
        epsilon=price,
        unit=ROW if compiled.unit is None else compiled.unit.name,
    )
