"""Checks a privacy report by itself: parameters to law to epsilon, plan, file and signature.

For auditors. This folder uses the standard library and nothing of bitldp, so that it can be read, copied and
run alone: ``python -I FOLDER REPORT OUTPUT``.

A report (`OUTPUT.privacy.json`) says for each mechanism its parameters, the law that was sampled in integers
over 2**64, and epsilon. Here the law is built again from the parameters of the plan: how many symbols, cells
and bits there are must be the same, and each chance within the rounding of a double. Of tables that a solver
made (`MVU`, `OptimalUtility` and others) the stated one is taken: its rows must add up, and its epsilon be
that of the budget. Epsilon and delta then follow from the integers, in exact arithmetic, and must be what the
report prints. Columns, rows and digest of the file must be those that plan and report say, and the values of
a text some that the laws can give.

Three verdicts: *proven*, *false*, and *cannot be proven from this report*, with what is missing. No file
shows that its reports were drawn by the law: who writes all of it consistently is trusted. A signature says
who that is, by the public key that you have of them, and never one that the report names.
"""

from __future__ import annotations

from .delta import delta_of
from .findings import Statement, Unproven, verdict
from .laws import epsilon_of
from .report import verify

__all__ = ["Statement", "Unproven", "delta_of", "epsilon_of", "verdict", "verify"]
