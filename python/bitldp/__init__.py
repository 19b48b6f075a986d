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
from bitldp.accounting import Account, account
from bitldp.accumulate import Accumulator, CountAccumulator, MeanAccumulator
from bitldp.bitrand import BitRand
from bitldp.bits import FRR
from bitldp.brr import BRR
from bitldp.categorical import GRR, LabelRR, WarnerRR
from bitldp.channels import Bits, Matrix, Unary, Window
from bitldp.codecs import Categories, FixedPoint, Grid
from bitldp.compression import (
    CLDP,
    MVU,
    BitwiseRR,
    GeneralizedRR,
    MetricMVU,
    SignSGD,
    Skellam,
    VectorMVU,
)
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
from bitldp.unary import OUE, SUE

__all__ = [
    "BRR",
    "CLDP",
    "FRR",
    "GRR",
    "MOUE",
    "MVU",
    "OUE",
    "SUE",
    "UER",
    "Account",
    "Accumulator",
    "BitRand",
    "Bits",
    "BitwiseRR",
    "BudgetExceededError",
    "Categories",
    "CountAccumulator",
    "Duchi",
    "Estimate",
    "FixedPoint",
    "GeneralizedRR",
    "Grid",
    "Guarantee",
    "Hybrid",
    "LDPFLDuchi",
    "LabelRR",
    "Ledger",
    "Matrix",
    "MeanAccumulator",
    "MetricMVU",
    "Piecewise",
    "PiecewiseSub",
    "PrivacyClaimWarning",
    "SampledReports",
    "SignSGD",
    "Skellam",
    "ThreeOutputs",
    "Unary",
    "VectorMVU",
    "WarnerRR",
    "Window",
    "__version__",
    "account",
    "pack",
    "project_simplex",
    "unpack",
]
