"""Tables and plots: claimed against exact epsilon, and accuracy against exact epsilon."""

from __future__ import annotations

from bitldp.privacy import Total, number, total
from bitldp.report.answers import plot_answer
from bitldp.report.axes import plot_claims, plot_estimate, plot_variance
from bitldp.report.claims import Claim, claims, claims_markdown, claims_table
from bitldp.report.plots import accuracy_plot, rounds_plot
from bitldp.report.verdicts import Verdict, verdicts, verdicts_markdown, verdicts_table

__all__ = [
    "Claim",
    "Total",
    "Verdict",
    "accuracy_plot",
    "claims",
    "claims_markdown",
    "claims_table",
    "number",
    "plot_answer",
    "plot_claims",
    "plot_estimate",
    "plot_variance",
    "rounds_plot",
    "total",
    "verdicts",
    "verdicts_markdown",
    "verdicts_table",
]
