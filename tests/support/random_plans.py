"""Random plans over every kind of column, and records for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
from bitldp.tables import Column, TablePlan

_INTERVAL = (0.0, 10.0)
_NUMBERS = ("Duchi", "Piecewise", "PiecewiseSub", "Hybrid", "ThreeOutputs", "Laplace", "LDPFLDuchi")
_GRIDS = ("BitBudgets", "GeneralizedRR", "BitwiseRR", "SquareWave", "MVU")
_LABELS = ("GRR", "OUE", "SUE", "RAPPOR", "OLH", "BlockDesign", "HadamardResponse", "LabelRR", "LabelLaplace")
_ORACLES = ("GRR", "OUE", "SUE", "SubsetSelection", "BlockDesign")
_SIZES = (2, 3, 4, 11, 40)

Types = Mapping[str, int]
"""How many categories a column has; none, if it holds numbers."""


def _categories(size: int) -> list[str]:
    return [f"c{i}" for i in range(size)]


def _numbers(rng: np.random.Generator, name: str, epsilon: float) -> tuple[Column, Types]:
    kind = str(rng.choice((*_NUMBERS, *_GRIDS, "Gaussian")))
    features = int(rng.integers(1, 5))
    given: dict[str, Any] = {"epsilon": epsilon, "features": features, "interval": _INTERVAL}
    if rng.random() < 0.3:
        given["spend"] = "sample"
    elif rng.random() < 0.3 and kind == "Duchi":
        given["spend"] = "cube"
    elif rng.random() < 0.3:
        given["unit"] = "feature"
    if kind == "LDPFLDuchi":
        del given["interval"]
        given |= {"center": 5.0, "radius": 5.0}
    elif kind == "MVU":  # these designs come with the package
        given |= {"epsilon": float(rng.choice([1.0, 2.0, 4.0])), "features": 1, "unit": "record"}
    elif kind == "Gaussian":
        given |= {"epsilon": max(epsilon, 0.3), "delta": 1e-6}
    elif kind in ("GeneralizedRR", "BitwiseRR"):
        given["bits"] = int(rng.integers(1, 5))
    mechanism = getattr(bitldp, kind)(**given)
    codes = mechanism.k is None and rng.random() < 0.4
    names = [f"{name}n{j}" for j in range(mechanism.features)]
    return Column(mechanism, names, output="codes" if codes else None), dict.fromkeys(names, 0)


def _words(rng: np.random.Generator, name: str, epsilon: float) -> tuple[Column, Types]:
    ways = {"FRR": ("exact", "paper"), "SymmetricRR": ("exact",), "MOUE": ("exact", "paper", "corrected")}
    kind = str(rng.choice((*ways, "UER")))
    way = str(rng.choice(ways.get(kind, ("paper",))))
    features = int(rng.integers(1, 4))
    unit = "feature" if way == "exact" and rng.random() < 0.3 else "record"
    bits = int(rng.integers(2, 11))
    mechanism = getattr(bitldp, kind)(
        features, bits=bits, integer_bits=1, epsilon=epsilon, calibration=way, unit=unit
    )
    names = [f"{name}n{j}" for j in range(features)]
    output: Any = ("bits", "codes", None)[int(rng.integers(3))]
    return Column(mechanism, names, output=output), dict.fromkeys(names, 0)


def _labels(rng: np.random.Generator, name: str, epsilon: float) -> tuple[Column, Types]:
    size, missing = int(rng.choice(_SIZES)), bool(rng.random() < 0.5)
    kind = str(rng.choice((*_LABELS, "SubsetSelection")))
    mechanism = getattr(bitldp, kind)(size + missing, epsilon=epsilon)
    column = Column(
        mechanism, f"{name}c", categories=_categories(size), nulls="category" if missing else "refuse"
    )
    return column, {f"{name}c": size}


def _points(rng: np.random.Generator, name: str, epsilon: float) -> tuple[Column, Types]:
    kind = str(rng.choice(["BRR", "GRR", "Exponential", "LSRR"]))
    types = {f"{name}p": 0}
    if kind == "GRR":
        return Column(bitldp.GRR(11, epsilon=epsilon), f"{name}p", interval=_INTERVAL), types
    rounding = str(rng.choice(["nearest", "dither"]))
    count = int(rng.integers(3, 20))
    mechanism = getattr(bitldp, kind)(count, epsilon=epsilon, interval=_INTERVAL, rounding=rounding)
    return Column(mechanism, f"{name}p"), types


def _records(rng: np.random.Generator, name: str, epsilon: float) -> tuple[Column, Types]:
    features = int(rng.integers(0, 4))
    sizes = [int(size) for size in rng.choice(_SIZES, int(rng.integers(2, 5)))]
    own = tuple(str(each) for each in rng.choice(_ORACLES, len(sizes)))
    given: dict[str, Any] = {"epsilon": epsilon, "oracle": own if rng.random() < 0.7 else "best"}
    if rng.random() < 0.4:
        given["spend"] = "split"
    elif rng.random() < 0.6:
        given["k"] = int(rng.integers(1, features + len(sizes) + 1))
    if features:
        given |= {"features": features, "interval": _INTERVAL}
        given["number"] = str(rng.choice(["best", "Duchi", "Hybrid", "Piecewise", "ThreeOutputs"]))
    mechanism = (bitldp.MixedRecord if features else bitldp.CategoricalRecord)(sizes, **given)
    types = {f"{name}n{j}": 0 for j in range(features)} | {f"{name}c{j}": s for j, s in enumerate(sizes)}
    return Column(mechanism, list(types), categories=[_categories(size) for size in sizes]), types


_KINDS = (_numbers, _words, _labels, _points, _records)


def random_plan(seed: int) -> tuple[TablePlan, pa.Table]:
    """Return a plan of one to three columns at budgets from .05 to 12, and 0, 1 or 30 records for it."""
    rng = np.random.default_rng(seed)
    columns, types = [], {}
    for number in range(int(rng.integers(1, 4))):
        epsilon = math.exp(rng.uniform(math.log(0.05), math.log(12.0)))
        column, own = _KINDS[int(rng.integers(len(_KINDS)))](rng, f"k{number}_", epsilon)
        columns.append(column)
        types |= own
    rows = int(rng.choice([0, 1, 30]))
    made = {"group": pa.array(rng.choice(["a", "b"], rows).tolist(), pa.string())}
    for name, size in types.items():
        labels = pa.array([f"c{i}" for i in rng.integers(0, max(size, 1), rows)], pa.string())
        made[name] = labels if size else pa.array(rng.uniform(*_INTERVAL, rows))
    return TablePlan(columns, keep=["group"] if rng.random() < 0.5 else []), pa.table(made)
