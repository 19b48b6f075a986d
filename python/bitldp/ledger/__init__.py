"""Ledger of a privacy budget: the releases so far and what is left."""

from __future__ import annotations

from bitldp.ledger.budget import BudgetExceededError, Ledger, LedgerState
from bitldp.ledger.entry import Entry
from bitldp.ledger.file import LedgerChangedError, NoLedgerError

__all__ = ["BudgetExceededError", "Entry", "Ledger", "LedgerChangedError", "LedgerState", "NoLedgerError"]
