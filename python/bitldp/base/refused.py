"""Errors of tables: a plan that does not fit, and a value that cannot be released."""

from __future__ import annotations

__all__ = ["DataError", "PlanError"]


class PlanError(ValueError):
    """Error for a plan that cannot be, or does not fit a table; it names the column and what is allowed."""


class DataError(ValueError):
    """Error for a value of a table that cannot be released; it names row and column, and never the value."""
