"""Charges and stores for the ledger's tests."""

from __future__ import annotations

from decimal import Decimal

from sqlrs.ledger import Charge


def charge(
    epsilon: str = "0.5",
    *,
    analyst: str = "ada",
    dataset: str = "graph",
    query: str = "SELECT COUNT(*) FROM edge",
    mechanism: str = "polylaplace, shape 5",
    unit: str = "row",
) -> Charge:
    return Charge(analyst, dataset, query, mechanism, Decimal(epsilon), unit)
