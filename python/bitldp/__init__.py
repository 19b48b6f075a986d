"""Local differential privacy at the level of bits: exact, fast, honest about epsilon.

Parameters in, reports out, and a `guarantee` that is computed from the very integers that the sampler uses:

>>> import numpy as np, bitldp
>>> mechanism = bitldp.GRR(10, epsilon=1.0)
>>> reports = mechanism.randomize(np.array([3, 1, 4]))
>>> print(mechanism.guarantee)
exact epsilon 1 per record, 1 per feature, 1 worst bit; claimed 1 per record: holds

The house; every folder is one idea, and stands only on those that come before it:

    what all others stand on   base, privacy
    a value becomes a code     codecs
    privacy happens here       channels: a code becomes a report; nothing else makes anything private
    what a report is worth     letters
    the three as one           release
    what a mechanism is        mechanism; with estimate for many reports, and design for solved tables
    what releases cost         accounting, amplification, ledger
    the named mechanisms       categorical, numeric, bits, points, record, ordered, compression, selection
    what to do with them       recommend, audit, tables (verify, sklearn), federated; papers, on data
    where to meet them         report, cli; and reference, the same laws once more in NumPy

The rooms are there without a further import: `bitldp.audit`, `bitldp.numeric`, `bitldp.federated`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import bitldp.base.early  # noqa: F401 - first: it minds Ctrl-C while the others are imported
from bitldp._core import __version__, pack, unpack
from bitldp.accounting import Account, account
from bitldp.bits.bitrand import BitRand
from bitldp.bits.frr import FRR, SymmetricRR
from bitldp.bits.moue import MOUE, UER
from bitldp.categorical.blocks import BlockDesign, SteppedReports
from bitldp.categorical.hadamard import HadamardResponse
from bitldp.categorical.hashing import OLH
from bitldp.categorical.rappor import RAPPOR
from bitldp.categorical.responses import GRR, LabelRR, WarnerRR
from bitldp.categorical.subset import SubsetSelection
from bitldp.categorical.unary import OUE, SUE
from bitldp.channels import Bits, Cube, Matrix, Mixture, Select, Shift, Unary, Window
from bitldp.codecs import Categories, FixedPoint, Grid
from bitldp.compression import (
    CLDP,
    MVU,
    BallGaussian,
    BitwiseRR,
    CrossPolytope,
    GeneralizedRR,
    InterpolatedMVU,
    LaplaceBall,
    MetricMVU,
    OneRotationWarning,
    RandomCodebook,
    SignSGD,
    Skellam,
    VectorMVU,
)
from bitldp.estimate.accumulators import Accumulator, CountAccumulator
from bitldp.estimate.estimates import Estimate, project_simplex
from bitldp.estimate.means import MeanAccumulator
from bitldp.estimate.post import likeliest_frequencies, maximum_likelihood, norm_sub
from bitldp.ledger.budget import BudgetExceededError, Ledger
from bitldp.mechanism.memoized import Memoized
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
from bitldp.ordered import HeavyHitters, Hierarchy, SquareWave
from bitldp.points.brr import BRR
from bitldp.points.exponential import Exponential
from bitldp.points.lsrr import LSRR, location_codes
from bitldp.points.optimal import OptimalUtility
from bitldp.privacy import Guarantee, PrivacyClaimWarning
from bitldp.recommend.recommend import Recommendation, recommend
from bitldp.record.categorical import CategoricalRecord
from bitldp.record.mixed import MixedRecord
from bitldp.record.privunit import HypercubePrivUnit
from bitldp.record.signs import SampledSigns
from bitldp.release.rotated import RotatedReports
from bitldp.selection import EXP, PE, PS, FedSel, TwoStage

__all__ = [
    "BRR",
    "CLDP",
    "EXP",
    "FRR",
    "GRR",
    "LSRR",
    "MOUE",
    "MVU",
    "OLH",
    "OUE",
    "PE",
    "PS",
    "RAPPOR",
    "SUE",
    "UER",
    "Account",
    "Accumulator",
    "BallGaussian",
    "BitBudgets",
    "BitRand",
    "Bits",
    "BitwiseRR",
    "BlockDesign",
    "BudgetExceededError",
    "CategoricalRecord",
    "Categories",
    "CountAccumulator",
    "CrossPolytope",
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
    "HadamardResponse",
    "HeavyHitters",
    "Hierarchy",
    "Hybrid",
    "HypercubePrivUnit",
    "InterpolatedMVU",
    "LDPFLDuchi",
    "LabelLaplace",
    "LabelRR",
    "Laplace",
    "LaplaceBall",
    "Ledger",
    "Matrix",
    "MeanAccumulator",
    "Memoized",
    "MetricMVU",
    "MinimaxVariance",
    "MixedRecord",
    "Mixture",
    "OneRotationWarning",
    "OptimalUtility",
    "Piecewise",
    "PiecewiseSub",
    "PrivacyClaimWarning",
    "RandomCodebook",
    "Recommendation",
    "RotatedReports",
    "SampledReports",
    "SampledSigns",
    "Select",
    "Shift",
    "SignSGD",
    "Skellam",
    "SquareWave",
    "SteppedReports",
    "SubsetSelection",
    "SymmetricRR",
    "ThreeOutputs",
    "TwoStage",
    "Unary",
    "VectorMVU",
    "WarnerRR",
    "Window",
    "__version__",
    "account",
    "likeliest_frequencies",
    "location_codes",
    "maximum_likelihood",
    "norm_sub",
    "pack",
    "project_simplex",
    "recommend",
    "unpack",
]

# What is imported when it is asked for: heavier than a mechanism needs, or in need of an extra.
_LATER = (
    "accounting",
    "amplification",
    "audit",
    "channels",
    "codecs",
    "compression",
    "data",
    "demo",
    "design",
    "federated",
    "numeric",
    "ordered",
    "papers",
    "privacy",
    "reference",
    "report",
    "selection",
    "sklearn",
    "tables",
    "verify",
)


def __getattr__(name: str) -> ModuleType:
    """Import a room of the house when it is asked for; `MissingExtraError` says what it needs."""
    if name in _LATER:
        return import_module(f"bitldp.{name}")
    raise AttributeError(f"module 'bitldp' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of the package, and the rooms that are imported later."""
    return sorted({*globals(), *_LATER})
