"""Numeric mechanisms: numbers of an interval, released so that the mean of their letters is the number.

Each mechanism dithers the number to a grid, randomizes the grid point with integer probabilities, and decodes
the report to a letter, its value. No report is a continuous number.
"""

from __future__ import annotations

from bitldp.numeric.bit_budgets import BitBudgets
from bitldp.numeric.duchi import Duchi, LDPFLDuchi
from bitldp.numeric.gaussian import Gaussian
from bitldp.numeric.hybrid import Hybrid
from bitldp.numeric.label_laplace import LabelLaplace
from bitldp.numeric.laplace import Laplace
from bitldp.numeric.minimax import MinimaxVariance
from bitldp.numeric.piecewise import Piecewise, PiecewiseSub
from bitldp.numeric.three_outputs import ThreeOutputs
from bitldp.release.sampled import SampledReports

__all__ = [
    "BitBudgets",
    "Duchi",
    "Gaussian",
    "Hybrid",
    "LDPFLDuchi",
    "LabelLaplace",
    "Laplace",
    "MinimaxVariance",
    "Piecewise",
    "PiecewiseSub",
    "SampledReports",
    "ThreeOutputs",
]
