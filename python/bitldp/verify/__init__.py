"""Verification of a privacy report: from parameters to law to epsilon; plan, file and signature.

For auditors: this folder uses only the standard library and nothing of bitldp, so you can read, copy and run
it alone: ``python -I FOLDER REPORT OUTPUT``.

A report (`OUTPUT.privacy.json`) states for each mechanism its parameters, the sampled law in integers over
2**64, and epsilon. The verifier rebuilds the law from the parameters of the plan: the numbers of symbols,
cells and bits must be the same, and each probability equal within the rounding of a double. For tables from a
solver (`MVU`, `OptimalUtility` and others) the verifier uses the stated table: its rows must add up, and its
epsilon must be that of the budget. Epsilon and delta then follow from the integers, in exact arithmetic, and
must equal those in the report. Columns, rows and digest of the file must match plan and report, and the
values of a text file must be possible under the laws.

There are three verdicts: *proven*, *false*, and *cannot be proven from this report*, with what is missing. A
file cannot show that its reports were drawn by the law, so you trust whoever wrote it. A signature shows who
that is, by a public key that you already have; a key that the report names is never used.
"""

from __future__ import annotations

from .delta import delta_of
from .findings import Statement, Unproven, verdict
from .laws import epsilon_of
from .report import verify

__all__ = ["Statement", "Unproven", "delta_of", "epsilon_of", "verdict", "verify"]
