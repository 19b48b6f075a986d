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
from bitldp._mechanism import Mechanism
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

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


def mean(build: Callable[[float], Mechanism]) -> Callable[[float], float]:
    """Return the mean variance as a function of epsilon."""
    return lambda epsilon: build(epsilon).mean_variance()


def worst(build: Callable[[float], Mechanism]) -> Callable[[float], float]:
    """Return the worst variance as a function of epsilon."""
    return lambda epsilon: build(epsilon).worst_variance()


def error(build: Callable[[float], bitldp.BRR]) -> Callable[[float], float]:
    """Return the expected error of a released point as a function of epsilon."""
    return lambda epsilon: build(epsilon).expected_error()


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
            xscale="log", yscale="log", xlabel="exact ε of a record", ylabel=panel.ylabel, title=panel.title
        )
        axis.set_xticks([0.5, 1, 2, 4, 8])
        axis.xaxis.set_major_formatter(ScalarFormatter())
        axis.minorticks_off()
        axis.grid(True, which="major", color="0.9")
        axis.legend(frameon=False, fontsize=8.5)
    figure.suptitle(title)
    HERE.mkdir(exist_ok=True)
    figure.savefig(HERE / f"{name}.png", dpi=110)


WORD = {"bits": 8, "integer_bits": 0}
VARIANCE = "mean variance of a report's letter"

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
                },
            )
            for k in (4, 100)
        ]
        + [
            Panel(
                "A point of 24 on [-1, 1]",
                "expected distance of the report",
                {
                    "GRR": error(lambda e: bitldp.BRR(24, epsilon=e, m=1, interval=(-1.0, 1.0))),
                    "BRR, m of the paper": error(lambda e: bitldp.BRR(24, epsilon=e, interval=(-1.0, 1.0))),
                    "BRR, best m": error(lambda e: bitldp.BRR(24, epsilon=e, m="best", interval=(-1.0, 1.0))),
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
                },
            )
            for name, of in (("Mean", mean), ("Worst", worst))
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
