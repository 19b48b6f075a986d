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
from bitldp.channels import Bits, Cube, Matrix, Mixture, Select, Shift, Unary, Window
from bitldp.codecs import Categories, FixedPoint, Grid
from bitldp.compression import (
    CLDP,
    MVU,
    BallGaussian,
    BitwiseRR,
    GeneralizedRR,
    InterpolatedMVU,
    MetricMVU,
    SignSGD,
    Skellam,
    VectorMVU,
)
from bitldp.estimate import Estimate, project_simplex
from bitldp.exponential import Exponential
from bitldp.ledger import BudgetExceededError, Ledger
from bitldp.lsrr import LSRR, location_codes
from bitldp.moue import MOUE, UER
from bitldp.numeric import (
    BitBudgets,
    Duchi,
    Gaussian,
    Hybrid,
    LabelLaplace,
    Laplace,
    LDPFLDuchi,
    MinimaxVariance,
    Piecewise,
    PiecewiseSub,
    SampledReports,
    ThreeOutputs,
)
from bitldp.optimal import OptimalUtility
from bitldp.privacy import Guarantee, PrivacyClaimWarning
from bitldp.privunit import HypercubePrivUnit
from bitldp.recommend import Recommendation, recommend
from bitldp.selection import EXP, PE, PS, FedSel, TwoStage
from bitldp.signs import SampledSigns
from bitldp.unary import OUE, SUE

__all__ = [
    "BRR",
    "CLDP",
    "EXP",
    "FRR",
    "GRR",
    "LSRR",
    "MOUE",
    "MVU",
    "OUE",
    "PE",
    "PS",
    "SUE",
    "UER",
    "Account",
    "Accumulator",
    "BallGaussian",
    "BitBudgets",
    "BitRand",
    "Bits",
    "BitwiseRR",
    "BudgetExceededError",
    "Categories",
    "CountAccumulator",
    "Cube",
    "Duchi",
    "Estimate",
    "Exponential",
    "FedSel",
    "FixedPoint",
    "Gaussian",
    "GeneralizedRR",
    "Grid",
    "Guarantee",
    "Hybrid",
    "HypercubePrivUnit",
    "InterpolatedMVU",
    "LDPFLDuchi",
    "LabelLaplace",
    "LabelRR",
    "Laplace",
    "Ledger",
    "Matrix",
    "MeanAccumulator",
    "MetricMVU",
    "MinimaxVariance",
    "Mixture",
    "OptimalUtility",
    "Piecewise",
    "PiecewiseSub",
    "PrivacyClaimWarning",
    "Recommendation",
    "SampledReports",
    "SampledSigns",
    "Select",
    "Shift",
    "SignSGD",
    "Skellam",
    "ThreeOutputs",
    "TwoStage",
    "Unary",
    "VectorMVU",
    "WarnerRR",
    "Window",
    "__version__",
    "account",
    "location_codes",
    "pack",
    "project_simplex",
    "recommend",
    "unpack",
]
