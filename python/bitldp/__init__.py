"""Local differential privacy on a Rust core, with an exact epsilon for every mechanism.

A mechanism randomizes values into reports. Its `guarantee` is computed from the integers that it uses:

>>> import numpy as np, bitldp
>>> mechanism = bitldp.GRR(10, epsilon=1.0)
>>> reports = mechanism.randomize(np.array([3, 1, 4]))
>>> print(mechanism.guarantee)
exact epsilon 1 per record, 1 per feature, 1 worst bit; claimed 1 per record: holds

Each folder implements one idea, and imports only folders that come before it:

    foundations                base, privacy
    values to codes            codecs
    randomization              channels: a code becomes a report; nothing else makes anything private
    decoding                   letters
    the three together         release; as data for other clients: client
    mechanisms in general      mechanism; with estimate for many reports, and design for solved tables
    costs of releases          accounting, amplification, ledger, sums
    named mechanisms           categorical, numeric, bits, points, record, ordered, compression, selection
    uses                       recommend, audit, tables (verify, sklearn), federated
    interfaces                 report, cli; and reference, the same laws once more in NumPy

`import bitldp` is enough for all names and folders, such as `bitldp.GRR` and `bitldp.audit`. Each is imported
when it is first used.
"""

from __future__ import annotations

import bitldp.base.early  # noqa: F401 - first: it minds Ctrl-C while the others are imported

# isort: split
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from bitldp._core import __version__, pack, unpack

# The public names of each module: they are imported when they are asked for. `__init__.pyi` has the same for
# type checkers.
_NAMES = {
    "accounting": ("Account", "account"),
    "bits": ("FRR", "MOUE", "UER", "BitRand", "SymmetricRR"),
    "categorical": (
        "GRR",
        "LOLOHA",
        "OLH",
        "OUE",
        "RAPPOR",
        "SUE",
        "BlockDesign",
        "HadamardResponse",
        "LabelRR",
        "MatrixResponse",
        "SubsetSelection",
        "WarnerRR",
        "from_matrix",
    ),
    "categorical.blocks": ("SteppedReports",),
    "channels": ("Bits", "Cap", "Cube", "Matrix", "Mixture", "Select", "Shift", "Unary", "Window"),
    "codecs": ("Categories", "FixedPoint", "Grid"),
    "compression": (
        "CLDP",
        "MVU",
        "BallGaussian",
        "BallWindow",
        "BitwiseRR",
        "CrossPolytope",
        "GeneralizedRR",
        "InterpolatedMVU",
        "LaplaceBall",
        "MetricMVU",
        "OneRotationWarning",
        "RandomCodebook",
        "SignSGD",
        "Skellam",
        "VectorMVU",
    ),
    "estimate": (
        "Accumulator",
        "CountAccumulator",
        "Estimate",
        "MeanAccumulator",
        "likeliest_frequencies",
        "maximum_likelihood",
        "norm_sub",
        "project_simplex",
    ),
    "ledger": ("BudgetExceededError", "Ledger"),
    "mechanism.memoized": ("Memoized",),
    "numeric": (
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
    ),
    "ordered": ("HDG", "HeavyHitters", "Hierarchy", "SquareWave", "WorkloadDesign"),
    "points": ("BRR", "LSRR", "Exponential", "MetricPoints", "OptimalUtility", "location_codes"),
    "privacy": ("Guarantee", "PrivacyClaimWarning"),
    "recommend": ("Recommendation", "recommend"),
    "record.key_value": ("KeyValueEstimates",),
    "record": (
        *("CategoricalRecord", "HypercubePrivUnit", "ItemSet", "JointWindow", "KeyValue"),
        *("MixedCap", "MixedRecord", "RecordCap", "SampledSigns"),
    ),
    "release.rotated": ("RotatedReports",),
    "selection": ("EXP", "PE", "PS", "FedSel", "TwoStage"),
}

__all__ = ["__version__", "pack", "unpack", *(name for names in _NAMES.values() for name in names)]  # noqa: PLE0604

# What is imported when it is asked for: all that stands in the folder, but for what all others stand on.
_MODULES = (
    "accounting",
    "amplification",
    "audit",
    "bits",
    "categorical",
    "channels",
    "cli",
    "client",
    "codecs",
    "compression",
    "design",
    "estimate",
    "federated",
    "ledger",
    "letters",
    "mechanism",
    "numeric",
    "ordered",
    "points",
    "privacy",
    "record",
    "reference",
    "release",
    "report",
    "selection",
    "sklearn",
    "sums",
    "tables",
    "verify",
)


class _Package(ModuleType):
    """The package, in which `recommend` stays a function although a folder has its name."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; Python sets a folder when it was imported, and `_NAMES` go before folders."""
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> ModuleType:
    """Import a name or a folder when it is first asked for; `MissingExtraError` says what it needs.

    Type checkers know the names from `__init__.pyi`.
    """
    if name in _MODULES:
        return import_module(f"bitldp.{name}")
    for module, names in _NAMES.items():
        if name in names:
            value: Any = getattr(import_module(f"bitldp.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'bitldp' has no attribute {name!r}{_nearest(name)}", name=name)


def _nearest(name: str) -> str:
    """Return the question whether the public name that is most like this one was meant."""
    from difflib import get_close_matches

    spelt = {each.casefold(): each for each in __dir__()}
    near = get_close_matches(name.casefold(), spelt, n=1)
    return f"; did you mean {spelt[near[0]]!r}?" if near else ""


def __dir__() -> list[str]:
    """Return the public names and the folders."""
    return sorted({*__all__, *_MODULES})
