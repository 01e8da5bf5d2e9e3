"""sqlrs: counting queries with joins under differential privacy, inside the database."""

from __future__ import annotations

from sqlrs.answer import Answer, Interval
from sqlrs.database import Database, connect
from sqlrs.errors import (
    BudgetExhausted,
    EngineFailed,
    Interrupted,
    QueryRefused,
    SqlrsError,
    UsageError,
)
from sqlrs.ledger import Ledger, MemoryLedger
from sqlrs.release import Settings

__all__ = [
    "Answer",
    "BudgetExhausted",
    "Database",
    "EngineFailed",
    "Interrupted",
    "Interval",
    "Ledger",
    "MemoryLedger",
    "QueryRefused",
    "Settings",
    "SqlrsError",
    "UsageError",
    "connect",
]
