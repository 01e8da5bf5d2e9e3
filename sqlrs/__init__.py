"""Counting queries with joins under differential privacy, inside the database that holds the data.

Open the data, say what is public, ask:

    import sqlrs

    db = sqlrs.connect(tables={"visit": "visits.csv"}, keys={"visit": ["id"]})
    answer = db.count("SELECT count(*) FROM visit a JOIN visit b USING (patient)", epsilon=1)
    print(f"about {answer:,}")

``connect`` opens files, folders, data frames, DuckDB and PostgreSQL, and returns a ``Database``:

    count        one private number, an ``Answer``
    query        groups, sums and averages, a ``TableAnswer``
    explain      what would run and which error to expect; free, reads no private row
    sensitivity  for the owner's eyes: not private

Whatever goes wrong is a ``SqlrsError``: ``UsageError``, ``QueryRefused``, ``BudgetExhausted``,
``EngineFailed`` or ``Interrupted``. In a notebook, ``%load_ext sqlrs.notebook`` gives ``%%sqlrs``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlrs.answer import Answer, Interval
    from sqlrs.connecting import connect
    from sqlrs.database import Database
    from sqlrs.errors import (
        BudgetExhausted,
        EngineFailed,
        Interrupted,
        NotShown,
        QueryRefused,
        SqlrsError,
        UsageError,
    )
    from sqlrs.ledger import Ledger, MemoryLedger
    from sqlrs.settings import Settings
    from sqlrs.table_answer import TableAnswer

__all__ = [
    "Answer",
    "BudgetExhausted",
    "Database",
    "EngineFailed",
    "Interrupted",
    "Interval",
    "Ledger",
    "MemoryLedger",
    "NotShown",
    "QueryRefused",
    "Settings",
    "SqlrsError",
    "TableAnswer",
    "UsageError",
    "connect",
]

__version__ = "0.1.0"

_HOMES = {
    "answer": ("Answer", "Interval"),
    "connecting": ("connect",),
    "database": ("Database",),
    "errors": (
        "BudgetExhausted",
        "EngineFailed",
        "Interrupted",
        "NotShown",
        "QueryRefused",
        "SqlrsError",
        "UsageError",
    ),
    "ledger": ("Ledger", "MemoryLedger"),
    "settings": ("Settings",),
    "table_answer": ("TableAnswer",),
}


def __getattr__(name: str) -> object:
    """Load a public name on first use: the compiler is large, and importing sqlrs stays quick."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"sqlrs.{home}"), name)
    raise AttributeError(f"module 'sqlrs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
