"""Local differential privacy at the level of bits: exact, fast, honest about epsilon.

Parameters in, reports out, and a `guarantee` that is computed from the very integers that the sampler uses:

>>> import numpy as np, bitldp
>>> mechanism = bitldp.GRR(10, epsilon=1.0)
>>> reports = mechanism.randomize(np.array([3, 1, 4]))
>>> print(mechanism.guarantee)
exact epsilon 1 per record, 1 per feature, 1 worst bit; claimed 1 per record: holds
"""

from __future__ import annotations

from bitldp._core import __version__, pack, unpack
from bitldp.accumulate import Accumulator, CountAccumulator, MeanAccumulator
from bitldp.bitrand import BitRand
from bitldp.bits import FRR
from bitldp.brr import BRR
from bitldp.categorical import GRR, LabelRR, WarnerRR
from bitldp.channels import Bits, Cube, Matrix, Unary, Window
from bitldp.codecs import Categories, FixedPoint, Grid
from bitldp.estimate import Estimate, project_simplex
from bitldp.ledger import BudgetExceededError, Ledger
from bitldp.moue import MOUE, UER
from bitldp.numeric import (
    Duchi,
    Hybrid,
    LDPFLDuchi,
    Piecewise,
    PiecewiseSub,
    SampledReports,
    ThreeOutputs,
)
from bitldp.privacy import Guarantee, PrivacyClaimWarning
from bitldp.privunit import HypercubePrivUnit
from bitldp.signs import SampledSigns
from bitldp.unary import OUE, SUE

__all__ = [
    "BRR",
    "FRR",
    "GRR",
    "MOUE",
    "OUE",
    "SUE",
    "UER",
    "Accumulator",
    "BitRand",
    "Bits",
    "BudgetExceededError",
    "Categories",
    "CountAccumulator",
    "Cube",
    "Duchi",
    "Estimate",
    "FixedPoint",
    "Grid",
    "Guarantee",
    "Hybrid",
    "HypercubePrivUnit",
    "LDPFLDuchi",
    "LabelRR",
    "Ledger",
    "Matrix",
    "MeanAccumulator",
    "Piecewise",
    "PiecewiseSub",
    "PrivacyClaimWarning",
    "SampledReports",
    "SampledSigns",
    "ThreeOutputs",
    "Unary",
    "WarnerRR",
    "Window",
    "__version__",
    "pack",
    "project_simplex",
    "unpack",
]
