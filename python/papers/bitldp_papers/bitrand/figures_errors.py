"""BitRand, Figures 3 and 11: expected errors of a feature, and bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bitldp
import numpy as np
from bitldp.bits import frr_flips
from numpy.typing import NDArray

from bitldp_papers.bitrand.figures_flips import (
    BITS,
    FEATURES,
    claimed,
    corrected_latent,
    corrected_ome,
    exact,
)
from bitldp_papers.figures import Compared, FigureResult, FigureRun, Finding, Formula, figure
from bitldp_papers.figures.drawing import lines, panels

INTEGER_BITS = 5
EPSILONS = (0.1, 1.0, 2.0, 5.0, 10.0)
#: Bounds of f-RR at `EPSILONS`: the paper's Theorem 4, evaluated apart.
FRR_BOUNDS = (38.83, 29.58, 19.11, 3.272, 0.326)


def sensitivities(bits: int, integer_bits: int) -> NDArray[np.float64]:
    """Return how far a flip of each bit moves a value: 2^(m + 1) for the sign, 2^(m - i) for bit i."""
    steps = 2.0 ** (integer_bits - np.arange(bits, dtype=np.float64))
    steps[0] = 2.0 ** (integer_bits + 1)
    return steps


def bit_errors(epsilon: float) -> dict[str, NDArray[np.float64]]:
    """Return flip probability times sensitivity of every bit; of LATENT and OME on a bit 0 or 1 equally."""
    moved = sensitivities(BITS, INTEGER_BITS)
    latent, ome = corrected_latent(FEATURES, BITS, epsilon), corrected_ome(FEATURES, BITS, epsilon)
    return {
        "f-RR": frr_flips(FEATURES, BITS, epsilon) * moved,
        "f-RR, not bit-aware": frr_flips(FEATURES, BITS, epsilon, bit_aware=False) * moved,
        "corrected LATENT": _wrong(latent) * moved,
        "corrected OME": _wrong(ome) * moved,
    }


def _wrong(mechanism: Any) -> NDArray[np.float64]:
    """Return how often each bit is reported wrong, over a true 0 and a true 1."""
    law = mechanism.probabilities()[0]
    wrong: NDArray[np.float64] = 0.5 * (1.0 - law[:, 0] + law[:, 1])
    return wrong


def _numeric_errors(epsilon: float) -> dict[str, float]:
    """Return E|report - value| of a feature, the record's budget split, over values of the codec's range."""
    limit = 2.0**INTEGER_BITS
    share: dict[str, Any] = {"epsilon": epsilon / FEATURES, "interval": (-limit, limit)}
    bounds: dict[str, Any] = {
        "Duchi": bitldp.Duchi(**share),
        "PM": bitldp.Piecewise(**share),
        "HM": bitldp.Hybrid(**share),
        "PM-SUB": bitldp.PiecewiseSub(**share),
        "Laplace": bitldp.Laplace(**share),
    }
    rng = np.random.default_rng(1)
    x = rng.uniform(-limit, limit, 4000)
    return {
        name: float(np.mean(np.abs(each.randomize(x, rng=1, output="values") - x)))
        for name, each in bounds.items()
    }


@figure(
    "bitrand-3",
    source="BitRand (ICLR 2022 submission), Fig. 3",
    title="Expected error of a feature, 1000 features of 10 bits",
    claim="f-RR has the tightest expected error at every budget, and the gap grows with it.",
)
def expected_error(run: FigureRun) -> FigureResult:
    rows: list[dict[str, Any]] = []
    compared = []
    for epsilon, paper in zip(EPSILONS, FRR_BOUNDS, strict=True):
        mechanism = bitldp.FRR(features=FEATURES, epsilon=epsilon, calibration="paper")
        exact = mechanism.guarantee.record
        totals = {name: float(each.sum()) for name, each in bit_errors(epsilon).items()}
        compared.append(
            Compared(
                *(f"f-RR's bound, epsilon {epsilon:g}", Formula(paper), totals["f-RR"], None),
                *(exact, epsilon),
            )
        )
        totals |= _numeric_errors(epsilon)
        rows += [{"epsilon": epsilon, "mechanism": name, "error": value} for name, value in totals.items()]
        rows.append(
            {"epsilon": epsilon, "mechanism": "f-RR, E|error| itself", "error": mechanism.expected_error()}
        )

    names = dict.fromkeys(row["mechanism"] for row in rows)
    shown = {name: (EPSILONS, [row["error"] for row in rows if row["mechanism"] == name]) for name in names}
    draw = panels({"": shown}, xlabel="claimed epsilon", ylabel="expected error", xscale="log", yscale="log")

    honest = bitldp.HypercubePrivUnit(FEATURES, epsilon=1.0)
    deviation = 2.0**INTEGER_BITS * honest.mean_variance() ** 0.5
    return FigureResult(
        rows,
        draw,
        compared,
        honest=f"at an exact epsilon of 1 for the record, the best release of {FEATURES} numbers of "
        f"[-32, 32] (HypercubePrivUnit) has a standard deviation of {deviation:,.0f} a feature: the mean of "
        "many records can be had, not one record",
        findings=_expected_findings(rows),
        parameters={"features": FEATURES, "bits": BITS, "integer_bits": INTEGER_BITS},
    )


def _expected_findings(rows: Sequence[dict[str, Any]]) -> list[Finding]:
    """Return whether f-RR's bound is the least at every budget, and by how much."""
    gaps = {}
    for epsilon in EPSILONS:
        errors = {row["mechanism"]: row["error"] for row in rows if row["epsilon"] == epsilon}
        errors.pop("f-RR, E|error| itself")
        own = errors.pop("f-RR")
        nearest = min(errors, key=lambda name: errors[name])
        gaps[epsilon] = (errors[nearest] / own, nearest)
    least = min(gaps, key=lambda epsilon: gaps[epsilon][0])
    ratios = [gap for gap, _ in gaps.values()]
    return [
        Finding(
            "f-RR has the tightest expected error at every budget",
            min(ratios) > 1.0,
            f"the nearest, {gaps[least][1]}, has {gaps[least][0]:.2f} times its error at epsilon {least:g}",
        ),
        Finding(
            "the improvement is larger when epsilon increases",
            ratios == sorted(ratios),
            f"{ratios[0]:.2f} times at {EPSILONS[0]:g}, {ratios[-1]:,.0f} times at {EPSILONS[-1]:g}",
        ),
        claimed(1.0),
    ]


@figure(
    "bitrand-11",
    source="BitRand, Fig. 11",
    title="Expected error by bit, and its mean over the first k",
    claim="f-RR's error is smaller on the significant bits, and smaller for the first k bits at every k.",
)
def expected_error_by_bit(run: FigureRun) -> FigureResult:
    rows: list[dict[str, Any]] = []
    compared = []
    budgets = (0.1, 1.0, 2.0)
    for epsilon in budgets:
        errors = bit_errors(epsilon)
        record = exact(frr_flips(FEATURES, BITS, epsilon), FEATURES)
        for name, by_bit in errors.items():
            top = np.cumsum(by_bit) / np.arange(1, BITS + 1)
            rows += [
                {
                    "epsilon": epsilon,
                    "law": name,
                    "bit": bit,
                    "error": float(by_bit[bit]),
                    "mean": float(top[bit]),
                }
                for bit in range(BITS)
            ]
            ours = f"{by_bit[0]:.3g} / {top[-1]:.3g}"
            compared.append(
                Compared(
                    f"{name}, sign / mean of all, epsilon {epsilon:g}",
                    None,
                    ours,
                    None,
                    record if name == "f-RR" else None,
                    epsilon,
                )
            )

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(9.0, 6.0)
        grid = canvas.subplots(2, 3, sharex=True)
        for column, epsilon in zip(grid.T, budgets, strict=True):
            for axes, key in zip(column, ("error", "mean"), strict=True):
                of = [row for row in rows if row["epsilon"] == epsilon]
                shown = {
                    name: (range(BITS), [row[key] for row in of if row["law"] == name])
                    for name in dict.fromkeys(row["law"] for row in of)
                }
                lines(axes, shown, yscale="log", title=f"claimed epsilon {epsilon:g}")
            column[1].set_xlabel("bit, from the sign on")
        grid[0, 0].set_ylabel("expected error of the bit")
        grid[1, 0].set_ylabel("mean of the first k")

    return FigureResult(
        rows,
        draw,
        compared,
        findings=[*_bit_findings(rows, budgets), claimed(1.0)],
    )


def _bit_findings(rows: Sequence[dict[str, Any]], budgets: Sequence[float]) -> list[Finding]:
    """Return whether f-RR errs least on the significant bits, and for the first k bits at every k."""
    others = ("corrected LATENT", "corrected OME")

    def values(key: str, name: str, epsilon: float) -> NDArray[np.float64]:
        return np.array([row[key] for row in rows if row["law"] == name and row["epsilon"] == epsilon])

    first: list[NDArray[np.bool_]] = []
    every: list[NDArray[np.bool_]] = []
    for epsilon in budgets:
        for key, kept in (("error", first), ("mean", every)):
            best = np.min([values(key, name, epsilon) for name in others], axis=0)
            kept.append(values(key, "f-RR", epsilon) < best)
    whole = 1 + INTEGER_BITS  # the sign and the integer bits
    significant = np.concatenate([below[:whole] for below in first])
    tops = np.concatenate(every)
    rest = np.concatenate([below[whole:] for below in first])
    return [
        Finding(
            "less error than corrected LATENT and OME on the sign and the integer bits",
            bool(significant.all()),
            f"{significant.sum()} of {len(significant)} bits and budgets (of the fraction bits "
            f"{rest.sum()} of {len(rest)}); a bit of theirs is a 0 or a 1 equally often",
        ),
        Finding(
            "less for the first k bits, at every k",
            bool(tops.all()),
            f"{tops.sum()} of {len(tops)} values of k and budgets",
        ),
    ]
