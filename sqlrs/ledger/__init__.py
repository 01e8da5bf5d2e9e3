"""Budgets: what a release path needs of a ledger, and the ledger in memory."""

from sqlrs.ledger.base import Charge, JournalLine, Kind, Ledger, PrivacyBudget
from sqlrs.ledger.memory import MemoryLedger

__all__ = ["Charge", "JournalLine", "Kind", "Ledger", "MemoryLedger", "PrivacyBudget"]
