"""Draw the figures of these pages from the closed forms: ``make figures``.

Nothing is simulated. A point is the exact variance (or expected error) of one report, from the integers
that the mechanism samples with, at the exact epsilon of a record.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bitldp
import numpy as np
from bitldp.mechanism.base import Mechanism
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

HERE = Path(__file__).parent / "figures"
# Okabe and Ito's colours, told apart by colour-blind readers and, with the markers, in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^DvPX<>*"
EPSILONS = tuple(float(e) for e in np.geomspace(0.5, 8.0, 9))


@dataclass(frozen=True)
class Panel:
    """One set of axes: a figure of merit against epsilon, a line a mechanism."""

    title: str
    ylabel: str
    lines: dict[str, Callable[[float], float]]
    epsilons: Sequence[float] = EPSILONS
    scale: str = "log"


def mean(build: Callable[[float], Mechanism]) -> Callable[[float], float]:
    """Return the mean variance as a function of epsilon."""
    return lambda epsilon: build(epsilon).mean_variance()


def worst(build: Callable[[float], Mechanism]) -> Callable[[float], float]:
    """Return the worst variance as a function of epsilon."""
    return lambda epsilon: build(epsilon).worst_variance()


def error(build: Callable[[float], bitldp.BRR]) -> Callable[[float], float]:
    """Return the expected error of a released point as a function of epsilon."""
    return lambda epsilon: build(epsilon).expected_error()


def _top(mechanism: bitldp.EXP | bitldp.PE | bitldp.PS) -> float:
    """Return the chance of the ten ranks of greatest magnitude."""
    return float(mechanism.probabilities()[90:100].sum())


def _off(mechanism: bitldp.OUE) -> float:
    """Return the variance of the indicator of a category that a record has not."""
    return float(mechanism.variance([0])[0, 1])


def draw(name: str, title: str, panels: Sequence[Panel]) -> None:
    """Save a figure of one row of panels, logarithmic on both axes."""
    figure = Figure(figsize=(6.2 * len(panels), 4.9), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for place, (label, value) in enumerate(panel.lines.items()):
            axis.plot(
                panel.epsilons,
                [value(epsilon) for epsilon in panel.epsilons],
                color=COLOURS[place % len(COLOURS)],
                marker=MARKERS[place % len(MARKERS)],
                linestyle="-" if place < len(COLOURS) else "--",
                markersize=4.5,
                linewidth=1.5,
                label=label,
            )
        axis.set(
            xscale="log",
            yscale=panel.scale,
            xlabel="exact ε of a record",
            ylabel=panel.ylabel,
            title=panel.title,
        )
        axis.set_xticks([e for e in (0.5, 1, 2, 4, 8, 16) if panel.epsilons[0] <= e <= panel.epsilons[-1]])
        axis.xaxis.set_major_formatter(ScalarFormatter())
        low, high = axis.get_ylim()
        if panel.scale == "log" and high < 100.0 * low:  # too few powers of ten to read
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.minorticks_off()
        axis.grid(True, which="major", color="0.9")
        axis.legend(frameon=False, fontsize=8.5)
    figure.suptitle(title)
    HERE.mkdir(exist_ok=True)
    figure.savefig(HERE / f"{name}.png", dpi=110)


WORD = {"bits": 8, "integer_bits": 0}
ENDS = (-1.0, 1.0)
VARIANCE = "mean variance of a report's letter"

SHARE = "variance of a share, times users"
R = 768  # numbers of a record in the figure of whole records

FIGURES: dict[str, tuple[str, list[Panel]]] = {
    "bits": (
        "Numbers of [-1, 1] released bit by bit, against numeric mechanisms",
        [
            Panel(
                "One number a record",
                VARIANCE,
                {
                    "f-RR, 8 bits, exact": mean(lambda e: bitldp.FRR(1, epsilon=e, **WORD)),
                    "MOUE, alpha 1": mean(lambda e: bitldp.MOUE(1, epsilon=e, alpha=1.0, **WORD)),
                    "MOUE, alpha 10 (LATENT)": mean(lambda e: bitldp.MOUE(1, epsilon=e, **WORD)),
                    "bit budgets, 4 bits": mean(lambda e: bitldp.BitBudgets(e, bits=4)),
                    "PM": mean(bitldp.Piecewise),
                    "Duchi": mean(bitldp.Duchi),
                },
            )
        ],
    ),
    "categorical": (
        "Categories and points",
        [
            Panel(
                f"Frequency of one of {k} categories",
                "mean variance of a report's indicator",
                {
                    "GRR": mean(lambda e, k=k: bitldp.GRR(k, epsilon=e)),
                    "SUE (basic RAPPOR)": mean(lambda e, k=k: bitldp.SUE(k, epsilon=e)),
                    "OUE": mean(lambda e, k=k: bitldp.OUE(k, epsilon=e)),
                    "subset selection": mean(lambda e, k=k: bitldp.SubsetSelection(k, epsilon=e)),
                    "block design": mean(lambda e, k=k: bitldp.BlockDesign(k, epsilon=e)),
                    "Hadamard response": mean(lambda e, k=k: bitldp.HadamardResponse(k, epsilon=e)),
                },
            )
            for k in (4, 100)
        ]
        + [
            Panel(
                "A point of 24 on [-1, 1]",
                "expected distance of the report",
                {
                    "GRR": error(lambda e: bitldp.BRR(24, epsilon=e, m=1, interval=ENDS)),
                    "exponential": error(lambda e: bitldp.Exponential(24, epsilon=e, interval=ENDS)),
                    "L-SRR": error(lambda e: bitldp.LSRR(24, epsilon=e, interval=ENDS)),
                    "BRR, m of the paper": error(lambda e: bitldp.BRR(24, epsilon=e, interval=ENDS)),
                    "BRR, best m": error(lambda e: bitldp.BRR(24, epsilon=e, m="best", interval=ENDS)),
                    "optimal (LP)": error(lambda e: bitldp.OptimalUtility(24, epsilon=e, interval=ENDS)),
                },
            )
        ],
    ),
    "numeric": (
        "Numbers of [-1, 1]",
        [
            Panel(
                f"{name} variance of a report",
                f"{name.lower()} variance",
                {
                    "Duchi": of(bitldp.Duchi),
                    "PM": of(bitldp.Piecewise),
                    "PM-SUB": of(bitldp.PiecewiseSub),
                    "HM": of(bitldp.Hybrid),
                    "three outputs": of(bitldp.ThreeOutputs),
                    "Laplace": of(bitldp.Laplace),
                    "minimax (LP)": of(bitldp.MinimaxVariance),
                },
            )
            for name, of in (("Mean", mean), ("Worst", worst))
        ],
    ),
    "compression": (
        "Numbers of [-1, 1] and vectors in few bits",
        [
            Panel(
                "One number a record",
                VARIANCE,
                {
                    "MVU, 1 bit": mean(lambda e: bitldp.MVU(e, output_bits=1, interval=ENDS)),
                    "MVU, 3 bits": mean(lambda e: bitldp.MVU(e, interval=ENDS)),
                    "unbiased GRR, 3 bits": mean(lambda e: bitldp.GeneralizedRR(e, bits=3, interval=ENDS)),
                    "bitwise RR, 3 bits": mean(lambda e: bitldp.BitwiseRR(e, bits=3, interval=ENDS)),
                    "PM": mean(bitldp.Piecewise),
                },
                (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0),
            ),
            Panel(
                "A vector of 128 numbers in the unit l2 ball, delta 1e-4",
                "mean variance of a coordinate",
                {
                    "CrossPolytope, no delta": mean(lambda e: bitldp.CrossPolytope(128, epsilon=e)),
                    "VectorMVU, 1 bit": mean(
                        lambda e: bitldp.VectorMVU(128, epsilon=e, delta=1e-4, output_bits=1)
                    ),
                    "VectorMVU, 3 bits": mean(lambda e: bitldp.VectorMVU(128, epsilon=e, delta=1e-4)),
                    "InterpolatedMVU, 3 bits": mean(
                        lambda e: bitldp.InterpolatedMVU(128, epsilon=e, delta=1e-4, output_bits=3)
                    ),
                    "Skellam, Gaussian, 13 bits": mean(lambda e: bitldp.Skellam(128, epsilon=e, delta=1e-4)),
                },
                (1.0, 2.0, 4.0),
            ),
        ],
    ),
    "record": (
        f"Records of {R} numbers of [-1, 1]",
        [
            Panel(
                "At equal exact epsilon of a record",
                "mean variance of a coordinate",
                {
                    "PrivUnit on the cube": mean(lambda e: bitldp.HypercubePrivUnit(R, epsilon=e)),
                    "sampled signs, best k": mean(lambda e: bitldp.SampledSigns(R, epsilon=e)),
                    "Duchi by half-cubes": mean(lambda e: bitldp.Duchi(e, features=R, spend="cube")),
                    "PM, sampled": mean(lambda e: bitldp.Piecewise(e, features=R, spend="sample")),
                    "PM, split": mean(lambda e: bitldp.Piecewise(e, features=R)),
                },
                (1.0, 2.0, 4.0, 8.0, 16.0),
            )
        ],
    ),
    "ordered": (
        "Words, ranges, and numbers for their distribution",
        [
            Panel(
                "Share of a range of 1024 values",
                "mean variance of a share, times users",
                {
                    f"hierarchy, {b} children": mean(
                        lambda e, b=b: bitldp.Hierarchy(1024, epsilon=e, branching=b)
                    )
                    for b in (4, 16)
                }
                | {"sum of frequencies": mean(lambda e: bitldp.Hierarchy(1024, epsilon=e, branching=1024))},
            ),
            Panel(
                "Share of a rare word",
                SHARE,
                {
                    "64 bits, 10 groups": lambda e: bitldp.HeavyHitters(e).mean_variance(),
                    "64 bits, 5 groups": lambda e: bitldp.HeavyHitters(e, step=13).mean_variance(),
                    "12 bits, 1 group": lambda e: bitldp.HeavyHitters(e, bits=12).mean_variance(),
                    "OUE, a list that is known": lambda e: _off(bitldp.OUE(1000, e)),
                },
            ),
            Panel(
                "Mean of a number of [-1, 1]",
                VARIANCE,
                {
                    "square wave": mean(bitldp.SquareWave),
                    "PM": mean(bitldp.Piecewise),
                    "Duchi": mean(bitldp.Duchi),
                },
            ),
        ],
    ),
    "attributes": (
        "Records of categories",
        [
            Panel(
                f"{d} attributes of 16 categories",
                "mean variance of a category's indicator",
                {
                    "one sampled, best oracle": mean(
                        lambda e, d=d: bitldp.CategoricalRecord([16] * d, epsilon=e)
                    ),
                    "one sampled, GRR": mean(
                        lambda e, d=d: bitldp.CategoricalRecord([16] * d, epsilon=e, oracle="GRR")
                    ),
                    "split, best oracle": mean(
                        lambda e, d=d: bitldp.CategoricalRecord([16] * d, epsilon=e, spend="split")
                    ),
                    "split, GRR": mean(lambda e, d=d: bitldp.GRR(16, epsilon=e, features=d)),
                },
            )
            for d in (5, 10)
        ],
    ),
    "selection": (
        "Selecting one of 100 dimensions",
        [
            Panel(
                "Chance that the selected one is of the 10 largest",
                "probability",
                {
                    "PS": lambda e: _top(bitldp.PS(100, 10, epsilon=e)),
                    "PE, exact": lambda e: _top(bitldp.PE(100, 10, epsilon=e)),
                    "EXP": lambda e: _top(bitldp.EXP(100, epsilon=e)),
                },
                scale="linear",
            )
        ],
    ),
}


def main(names: Sequence[str]) -> None:
    """Draw the named figures, or all."""
    warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
    for name in names or FIGURES:
        title, panels = FIGURES[name]
        draw(name, title, panels)
        print(HERE / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
