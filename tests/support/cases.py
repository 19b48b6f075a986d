"""One of each mechanism, with inputs to match."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import bitldp
import numpy as np
from bitldp.compression import CLDP, BallGaussian, BallWindow, LaplaceBall, Skellam
from bitldp.selection import Compressed


@dataclass(frozen=True)
class Case:
    """A mechanism, a maker of inputs for it, and the forms that its reports come in."""

    name: str
    build: Callable[[], Any]
    inputs: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]
    outputs: tuple[str, ...]

    def make(self) -> Any:
        """Build the mechanism; a failing claim is not the subject here."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
            return self.build()


def _floats(
    features: int, scale: float = 3.0
) -> Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]:
    return lambda rng, n: (rng.normal(0.0, scale, (n, features)).astype(np.float32),)


def _codes(count: int, *shape: int) -> Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]:
    return lambda rng, n: (rng.integers(0, count, (n, *shape)),)


_POINTS = (np.arange(60).reshape(30, 2) * 37 % 101) / 101.0  # scattered, without a random stream
_BITS = ("codes", "bits", "values", "packed")
_CODES = ("codes", "packed")
#: A table with more reports than categories.
GIVEN = (1.0 + 4.0 * np.eye(5, 7) + 2.0 * np.eye(5, 7, 2)) / np.array([[13.0]] * 5)

CASES = [
    Case("FRR", lambda: bitldp.FRR(5, epsilon=4.0), _floats(5), _BITS),
    Case("FRR-paper", lambda: bitldp.FRR(5, epsilon=1.0, calibration="paper"), _floats(5), _BITS),
    Case("FRR-24", lambda: bitldp.FRR(2, bits=24, integer_bits=3, epsilon=9.0), _floats(2), _BITS),
    Case("MOUE", lambda: bitldp.MOUE(4, epsilon=6.0), _floats(4), _BITS),
    Case(
        "UER-odd",
        lambda: bitldp.UER(4, bits=9, integer_bits=4, epsilon=0.5, calibration="paper"),
        _floats(4),
        _BITS,
    ),
    Case("UER-even", lambda: bitldp.UER(4, epsilon=0.5, calibration="paper"), _floats(4), _BITS),
    Case("SymmetricRR", lambda: bitldp.SymmetricRR(4, epsilon=6.0), _floats(4), _BITS),
    Case("SUE", lambda: bitldp.SUE(7, epsilon=2.0), _codes(7), ("bits", "packed")),
    Case("OUE", lambda: bitldp.OUE(7, epsilon=2.0), _codes(7), ("bits", "packed")),
    Case("RAPPOR", lambda: bitldp.RAPPOR(7, epsilon=3.0), _codes(7), ("bits", "packed")),
    Case("SubsetSelection", lambda: bitldp.SubsetSelection(13, epsilon=1.0), _codes(13), ("bits", "packed")),
    Case("BlockDesign", lambda: bitldp.BlockDesign(90, epsilon=2.0), _codes(90), ("codes", "packed")),
    Case("BlockDesign-steps", lambda: bitldp.BlockDesign(37, epsilon=1.0), _codes(37), ("codes", "packed")),
    Case("OLH", lambda: bitldp.OLH(37, epsilon=2.0), _codes(37), ("codes", "packed")),
    Case("LOLOHA", lambda: bitldp.LOLOHA(37, epsilon=3.0, first=2.0), _codes(37), ("codes", "packed")),
    Case(
        "HadamardResponse", lambda: bitldp.HadamardResponse(37, epsilon=2.0), _codes(37), ("codes", "packed")
    ),
    Case("GRR", lambda: bitldp.GRR(11, epsilon=2.0), _codes(11), ("codes", "packed")),
    Case("GRR-3", lambda: bitldp.GRR(300, epsilon=6.0, features=3), _codes(300, 3), ("codes", "packed")),
    Case("MatrixResponse", lambda: bitldp.from_matrix(GIVEN), _codes(5), ("codes", "packed")),
    Case("LabelRR", lambda: bitldp.LabelRR(5, epsilon=1.0), _codes(5), ("codes", "packed")),
    Case("WarnerRR", lambda: bitldp.WarnerRR(epsilon=0.7), _codes(2), ("codes", "packed")),
    # its design is shipped
    Case(
        "WorkloadDesign",
        lambda: bitldp.WorkloadDesign("ranges", categories=8, epsilon=2.0),
        _codes(8),
        _CODES,
    ),
    Case("BRR", lambda: bitldp.BRR(40, epsilon=1.5), _codes(40), ("codes", "values", "packed")),
    Case(
        "BRR-interval",
        lambda: bitldp.BRR(21, epsilon=1.0, m="best", interval=(-1.0, 1.0), rounding="dither"),
        lambda rng, n: (rng.uniform(-1.1, 1.1, n),),
        ("codes", "values", "packed"),
    ),
    Case("BRR-plane", lambda: bitldp.BRR(_POINTS, epsilon=2.0), _codes(30), ("codes", "values", "packed")),
    Case(
        "BRR-regions",
        lambda: bitldp.BRR(_POINTS, epsilon=2.0, regions=np.arange(30) % 3),
        _codes(30),
        ("codes", "values", "packed"),
    ),
    Case(
        "BRR-jaccard", lambda: bitldp.BRR(25, epsilon=1.0, utility="jaccard"), _codes(25), ("codes", "values")
    ),
    Case(
        "BitRand",
        lambda: bitldp.BitRand(5, categories=4, epsilon_x=4.0, epsilon_y=1.0),
        lambda rng, n: (rng.normal(0.0, 3.0, (n, 5)), rng.integers(0, 4, n)),
        _BITS,
    ),
]


_VALUES = ("codes", "values", "packed")
_UNIT: dict[str, Any] = {"interval": (0.0, 1.0)}
_FIVE: dict[str, Any] = {"features": 5, "spend": "sample", "k": 2}

# Those of numbers, compression and selection: `families/mechanism` holds them to what all have in common.
# No table here comes from a solver that may be of another version elsewhere.
FAMILIES = [
    Case("Duchi", lambda: bitldp.Duchi(epsilon=1.5), _floats(1, 0.5), _VALUES),
    Case("Duchi-sample", lambda: bitldp.Duchi(epsilon=1.5, **_FIVE), _floats(5, 0.5), _VALUES),
    Case("Duchi-cube", lambda: bitldp.Duchi(epsilon=1.5, features=4, spend="cube"), _floats(4, 0.5), _VALUES),
    Case(
        "LDPFLDuchi", lambda: bitldp.LDPFLDuchi(epsilon=2.0, center=1.0, features=2), _floats(2, 0.5), _VALUES
    ),
    Case("Piecewise", lambda: bitldp.Piecewise(epsilon=3.0, features=3), _floats(3, 0.5), _VALUES),
    Case("Piecewise-sample", lambda: bitldp.Piecewise(epsilon=1.5, **_FIVE), _floats(5, 0.5), _VALUES),
    Case("PiecewiseSub", lambda: bitldp.PiecewiseSub(epsilon=1.5), _floats(1, 0.5), _VALUES),
    Case("SquareWave", lambda: bitldp.SquareWave(epsilon=2.0, cells=40), _floats(1, 0.5), _VALUES),
    Case(
        "SquareWave-sample",
        lambda: bitldp.SquareWave(epsilon=2.0, cells=9, **_FIVE),
        _floats(5, 0.5),
        _VALUES,
    ),
    Case("Hybrid", lambda: bitldp.Hybrid(epsilon=3.0), _floats(1, 0.5), _VALUES),
    Case("Hybrid-sample", lambda: bitldp.Hybrid(epsilon=3.0, **_FIVE), _floats(5, 0.5), _VALUES),
    Case("ThreeOutputs", lambda: bitldp.ThreeOutputs(epsilon=6.0, features=3), _floats(3, 0.5), _VALUES),
    Case("BitBudgets", lambda: bitldp.BitBudgets(epsilon=4.0, bits=3), _floats(1, 0.5), _VALUES),
    Case("Laplace", lambda: bitldp.Laplace(epsilon=3.0, features=3), _floats(3, 0.5), _VALUES),
    Case("Gaussian", lambda: bitldp.Gaussian(epsilon=1.5, delta=1e-6), _floats(1, 0.5), _VALUES),
    Case("LabelLaplace", lambda: bitldp.LabelLaplace(4, epsilon=2.0), _codes(4), _VALUES),
    Case("HypercubePrivUnit", lambda: bitldp.HypercubePrivUnit(6, epsilon=2.0), _floats(6, 0.5), _VALUES),
    Case("JointWindow", lambda: bitldp.JointWindow(3, epsilon=4.0), _floats(3, 0.5), _VALUES),
    Case("JointWindow-drawn", lambda: bitldp.JointWindow(5, epsilon=3.0, k=2), _floats(5, 0.5), _VALUES),
    Case("SampledSigns", lambda: bitldp.SampledSigns(6, epsilon=3.0, k=3), _floats(6, 0.5), _VALUES),
    Case(
        "CategoricalRecord",
        lambda: bitldp.CategoricalRecord((7, 4, 30), epsilon=2.0, oracle=("GRR", "GRR", "OUE")),
        _codes(4, 3),
        _CODES,
    ),
    Case(
        "CategoricalRecord-split",
        lambda: bitldp.CategoricalRecord((4, 4, 9), epsilon=3.0, spend="split", oracle="GRR"),
        _codes(4, 3),
        _CODES,
    ),
    Case("RecordCap", lambda: bitldp.RecordCap((4, 4, 9), epsilon=5.0, m=2), _codes(4, 3), _CODES),
    Case(
        "RecordCap-all",
        lambda: bitldp.RecordCap((4, 5, 4), epsilon=3.0, m=3, hits=2, subset=(1, 2, 1)),
        _codes(4, 3),
        _CODES,
    ),
    Case("MVU", lambda: bitldp.MVU(epsilon=2.0, interval=(-1.0, 1.0)), _floats(1, 0.5), _VALUES),
    Case(
        "MVU-one-bit",
        lambda: bitldp.MVU(epsilon=2.0, output_bits=1, features=2, **_UNIT),
        _floats(2, 0.5),
        _VALUES,
    ),
    Case(
        "GeneralizedRR", lambda: bitldp.GeneralizedRR(epsilon=2.0, bits=4, **_UNIT), _floats(1, 0.5), _VALUES
    ),
    Case(
        "BitwiseRR",
        lambda: bitldp.BitwiseRR(epsilon=4.0, bits=3, features=2, **_UNIT),
        _floats(2, 0.5),
        _VALUES,
    ),
    Case("CLDP", lambda: CLDP(6, epsilon=2.0), _floats(6, 0.1), _CODES),
    Case("BallWindow", lambda: BallWindow(2, epsilon=4.0), _floats(2, 0.1), _VALUES),
    Case("LaplaceBall", lambda: LaplaceBall(6, epsilon=2.0), _floats(6, 0.1), _VALUES),
    Case("BallGaussian", lambda: BallGaussian(6, epsilon=2.0, delta=1e-6), _floats(6, 0.1), _VALUES),
    Case(
        "Skellam",
        lambda: Skellam(6, epsilon=2.0, delta=1e-6, output_bits=10, radius=2.0),
        _floats(6, 0.1),
        _VALUES,
    ),
    Case("CrossPolytope", lambda: bitldp.CrossPolytope(40, epsilon=3.0), _floats(40, 0.1), _CODES),
    Case(
        "CrossPolytope-haar",
        lambda: bitldp.CrossPolytope(6, epsilon=9.0, radius=2.0, rotation="haar", public_seed=3),
        _floats(6, 0.5),
        _CODES,
    ),
    Case(
        "RandomCodebook", lambda: bitldp.RandomCodebook(6, epsilon=2.0, radius=2.0), _floats(6, 0.5), _CODES
    ),
    Case("EXP", lambda: bitldp.EXP(6, epsilon=2.0), _floats(6, 0.5), _CODES),
    Case("PS", lambda: bitldp.PS(6, k=2, epsilon=2.0), _floats(6, 0.5), _CODES),
    Case("PE", lambda: bitldp.PE(6, k=2, epsilon=2.0), _floats(6, 0.5), _CODES),
    Case(
        "TwoStage",
        lambda: bitldp.TwoStage(bitldp.PE(6, k=2, epsilon=2.0), bitldp.Duchi(epsilon=2.0)),
        _floats(6, 0.5),
        _CODES,
    ),
    Case(
        "Compressed", lambda: Compressed(6, compressed=3, epsilon=2.0, public_seed=1), _floats(6, 0.3), _CODES
    ),
    Case("Exponential", lambda: bitldp.Exponential(8, epsilon=2.0), _codes(8), _VALUES),
    Case("LSRR", lambda: bitldp.LSRR(8, epsilon=2.0), _codes(8), _VALUES),
]

# Those whose reports are several arrays, public coins among them; and records that are sets.
ORDERED = [
    Case("Hierarchy", lambda: bitldp.Hierarchy(100, epsilon=2.0), _codes(100), _CODES),
    Case("HeavyHitters", lambda: bitldp.HeavyHitters(epsilon=2.0, bits=30), _codes(1 << 30), _CODES),
    Case(
        "BlockDesign-public",
        lambda: bitldp.BlockDesign(37, epsilon=1.0, public=True),
        _codes(37),
        _CODES,
    ),
    Case("HDG", lambda: bitldp.HDG((16, 40), epsilon=2.0, cells=(8, 4)), _codes(16, 2), _CODES),
    Case("ItemSet", lambda: bitldp.ItemSet(9, epsilon=2.0, padding=3), _codes(2, 9), _CODES),
    Case("ItemSet-blocks", lambda: bitldp.ItemSet(120, epsilon=1.0, padding=3), _codes(2, 120), _CODES),
    Case("KeyValue", lambda: bitldp.KeyValue(5, epsilon=2.0, padding=2), _floats(5, 0.5), _CODES),
]

# Of numbers and categories: records of two arrays, and estimates of both.
MIXED = [
    Case(
        "MixedCap",
        lambda: bitldp.MixedCap((4, 4, 5), features=2, epsilon=5.0, subset=(1, 1, 2), hits=2),
        lambda rng, n: (rng.normal(0.0, 1.0, (n, 2)), rng.integers(0, 4, (n, 3))),
        _CODES,
    ),
    Case(
        "MixedRecord",
        lambda: bitldp.MixedRecord(
            (4, 4), features=5, epsilon=6.0, spend="split", number="Duchi", oracle="GRR"
        ),
        lambda rng, n: (rng.normal(0.0, 3.0, (n, 5)), rng.integers(0, 4, (n, 2))),
        _CODES,
    ),
]


def reports_of(mechanism: Any, inputs: tuple[np.ndarray, ...], **options: Any) -> np.ndarray:
    """Randomize, and return the reports as one array of bytes."""
    reports = mechanism.randomize(*inputs, **options)
    parts = reports if isinstance(reports, tuple) else (reports,)
    return np.concatenate([np.ascontiguousarray(part).view(np.uint8).ravel() for part in parts])
