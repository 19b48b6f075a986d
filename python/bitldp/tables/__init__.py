"""Tables: plans over columns, their release on any engine, and answers from released tables.

    plan = TablePlan([Column(bitldp.GRR(3, epsilon=1.0), "city", categories=[...])], keep=["survey"])
    release = plan.release(ReleaseKey.from_env("BITLDP_RELEASE_KEY"), record="id", snapshot="2026-11")
    released = release(table)                      # Arrow, pandas or polars, the same kind out
    plan.aggregate().update(released).estimate()   # means and shares with intervals
    ReleasedTable(plan, released).share("city", "survey")  # questions, also of several columns

Needs the extra ``tables``.
"""

from __future__ import annotations

from bitldp.base.errors import require

require("tables", ["pyarrow"], "tables")

from bitldp.base.errors import DataError, PlanError  # noqa: E402
from bitldp.tables.aggregate import Aggregate  # noqa: E402
from bitldp.tables.answer import TableAnswer  # noqa: E402
from bitldp.tables.ask import ReleasedTable  # noqa: E402
from bitldp.tables.column import Column  # noqa: E402
from bitldp.tables.draft import ExpectedError, PlanDraft, PlannedQuestion, draft_plan, questions_of  # noqa: E402
from bitldp.tables.key import ReleaseKey  # noqa: E402
from bitldp.tables.plan import TablePlan, TableRelease  # noqa: E402
from bitldp.tables.question_counts import QuestionCounts  # noqa: E402

__all__ = [
    "Aggregate",
    "Column",
    "DataError",
    "ExpectedError",
    "PlanDraft",
    "PlanError",
    "PlannedQuestion",
    "QuestionCounts",
    "ReleaseKey",
    "ReleasedTable",
    "TableAnswer",
    "TablePlan",
    "TableRelease",
    "draft_plan",
    "questions_of",
]
