"""Budgets: what a release path needs of a ledger, and the ledger in memory."""

from sqlrs.ledger.base import Budget, Charge, Kind, Ledger, Release
from sqlrs.ledger.memory import MemoryLedger

__all__ = ["Budget", "Charge", "Kind", "Ledger", "MemoryLedger", "Release"]
