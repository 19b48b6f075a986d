"""Draw the figures of these pages from the closed forms: ``make figures``.

    python docs/figures.py [--check] [NAME ...]

Nothing is simulated. A point is the exact variance (or expected error) of one report, from the integers
that the mechanism samples with, at the exact epsilon of a record. The one figure of a run, "honest", is
drawn from the record of the papers' figures, and those of ASKED from answers that docs/asked.py kept. With
``--check`` nothing is written; a figure that differs is named, and the exit code is 1.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
from bitldp.amplification import shuffled_histogram_central_epsilon
from bitldp.channels.normal import continuous_sigma
from bitldp.mechanism.base import Mechanism
from bitldp.report import plot_answer
from bitldp.sums import Count, SecureSum

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "site"))

import asked
import drawing
import fill

HERE = Path(__file__).parent / "figures"
RECORD = Path(__file__).parents[1] / "benches" / "records" / "papers.json"
EPSILONS = tuple(float(e) for e in np.geomspace(0.5, 8.0, 9))


@dataclass(frozen=True)
class Panel:
    """One set of axes: a figure of merit against epsilon, a line a mechanism."""

    title: str
    ylabel: str
    lines: dict[str, Callable[[float], float]]
    epsilons: Sequence[float] = EPSILONS
    scale: str = "log"
    xlabel: str = "exact ε of a record"
    ticks: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def mean(build: Callable[..., Mechanism]) -> Callable[[float], float]:
    """Return the mean variance as a function of epsilon."""
    return lambda epsilon: build(epsilon=epsilon).mean_variance()


def worst(build: Callable[..., Mechanism]) -> Callable[[float], float]:
    """Return the worst variance as a function of epsilon."""
    return lambda epsilon: build(epsilon=epsilon).worst_variance()


def error(build: Callable[..., bitldp.BRR]) -> Callable[[float], float]:
    """Return the expected error of a released point as a function of epsilon."""
    return lambda epsilon: build(epsilon=epsilon).expected_error()


def _top(mechanism: bitldp.EXP | bitldp.PE | bitldp.PS) -> float:
    """Return the chance of the ten ranks of greatest magnitude."""
    return float(mechanism.probabilities()[90:100].sum())


def _off(mechanism: bitldp.OUE) -> float:
    """Return the variance of the indicator of a category that a record has not."""
    return float(mechanism.variance([0])[0, 1])


DELTA = 1e-6
NEAR = {  # local ε of reports, by clients, that make about the central ε of the figure when they are shuffled
    100: (1.5, 1.7),
    1_000: (3.3, 3.6),
    10_000: (3.5, 4.0, 4.7, 5.3, 5.7, 6.0, 6.35, 6.5, 6.65),
    100_000: (7.6, 8.2),
}


def local(epsilon: float, clients: float) -> float:
    """Return the standard error of a fraction of the clients, by reports of a bit that anyone may see."""
    return float(np.sqrt(bitldp.WarnerRR(epsilon=epsilon).worst_variance() / clients))


def shuffled(epsilon: float, clients: float) -> float:
    """Return the same by shuffled reports, whose local epsilon is between two of those in `NEAR`."""
    n = round(clients)
    return local(float(np.interp(np.log(epsilon), np.log(_amplified(n)), NEAR[n])), clients)


@cache
def _amplified(clients: int) -> list[float]:
    """Return the central epsilon of shuffled reports for each local one."""
    reports = [bitldp.WarnerRR(epsilon=each) for each in NEAR[clients]]
    return [shuffled_histogram_central_epsilon(each, clients, DELTA) for each in reports]


def summed(epsilon: float, clients: float) -> float:
    """Return the same by a secure sum of all clients."""
    return SecureSum(Count(), epsilon=epsilon, delta=DELTA, clients=round(clients)).stderr() / clients


def central(epsilon: float, clients: float) -> float:
    """Return the same by Gaussian noise of a server that sees every record."""
    return continuous_sigma(epsilon, DELTA) / clients


def drawn(name: str) -> str:
    """Return a figure as SVG: a row of panels."""
    if name == "pool":
        return drawing.document(
            pooled(), "accuracy by a public pool and by rounds, against a client's true ε"
        )
    if name == "honest":
        kept = json.loads(RECORD.read_text(encoding="utf-8"))["figures"]["honest-updates"]
        (panel,) = kept["panels"]
        label = "exact ε of a client (dotted: above, the same model without noise; below, the majority class)"
        words = [word | {"y": 0.15} for word in panel["words"]]  # above the line of the majority class
        names = {str(float(10**power)): f"{10**power:,}" for power in range(6)}
        panel = panel | {"x": panel["x"] | {"label": label, "names": names}, "words": words}
        return drawing.document([panel], "Accuracy by exact epsilon: one report of each of 60,000 clients")
    if name in ASKED:
        answer = asked.recalled(name.removeprefix("asked_"))
        return drawing.document([{"draw": lambda axes: plot_answer(answer, ax=axes)}], ASKED[name])
    title, panels = FIGURES[name]
    return drawing.document([_panel(panel) for panel in panels], title)


def pooled() -> list[dict[str, Any]]:
    """Return panels of what one report of each client teaches, with 10 and 90 % quantiles over the seeds."""
    panels = []
    for data, title in {**fill.IMAGES, "ag_news": "AG News"}.items():
        lines = []
        for learner, name in (("pool", "2,000 public records"), ("rounds", "rounds of gradients")):
            if learner == "rounds" and data not in fill.IMAGES:
                continue
            kept = fill.learned(data, learner)
            low, middle, high = np.quantile([row["scores"] for row in kept["rows"]], (0.1, 0.5, 0.9), axis=1)
            spread = [(middle - low).tolist(), (high - middle).tolist()]
            x = [row["epsilon"] for row in kept["rows"]]
            lines.append({"name": name, "x": x, "y": middle.tolist(), "spread": spread})
        panels.append(
            {
                "title": f"{title}, {kept['clients']:,} clients",
                "x": {
                    "scale": "log",
                    "label": "ε of a client",
                    "names": {f"{each:g}": f"{each:g}" for each in x},
                },
                "y": {"label": "accuracy", "range": [0.5, 1.0]},
                "lines": lines,
            }
        )
    return panels


def _panel(panel: Panel) -> dict[str, Any]:
    ticks = [e for e in panel.ticks if panel.epsilons[0] <= e <= panel.epsilons[-1]]
    return {
        "title": panel.title,
        "x": {"scale": "log", "label": panel.xlabel, "names": {str(e): f"{e:,g}" for e in ticks}},
        "y": {"scale": panel.scale, "label": panel.ylabel},
        "lines": [
            {"name": name, "x": list(panel.epsilons), "y": [value(e) for e in panel.epsilons]}
            for name, value in panel.lines.items()
        ],
    }


WORD = {"bits": 8, "integer_bits": 0}
ENDS = (-1.0, 1.0)
VARIANCE = "mean variance of a report's letter"

SHARE = "variance of a share, times users"
R = 768  # numbers of a record in the figure of whole records

MODELS = {
    "local reports": local,
    "shuffled reports": shuffled,
    "Gaussian noise by a trusted server": central,
    "secure sum": summed,
}

FIGURES: dict[str, tuple[str, list[Panel]]] = {
    "sums": (
        "Error of a fraction of the clients, by who must be trusted",
        [
            Panel(
                "10,000 clients",
                "standard error of a fraction",
                {name: lambda e, of=of: of(e, 10_000) for name, of in MODELS.items()},
                (0.25, 0.5, 1.0, 2.0, 4.0),
                xlabel="ε: of a report, or central for the other three",
                ticks=(0.25, 0.5, 1.0, 2.0, 4.0),
            ),
            Panel(
                "ε = 1",
                "standard error of a fraction",
                {name: lambda n, of=of: of(1.0, n) for name, of in MODELS.items()},
                tuple(NEAR),
                xlabel="clients",
                ticks=tuple(NEAR),
            ),
        ],
    ),
    "bits": (
        "Numbers of [-1, 1] released bit by bit, against numeric mechanisms",
        [
            Panel(
                "One number a record",
                VARIANCE,
                {
                    "f-RR, 8 bits, exact": mean(lambda epsilon: bitldp.FRR(1, epsilon=epsilon, **WORD)),
                    "MOUE, alpha 1": mean(lambda epsilon: bitldp.MOUE(1, epsilon=epsilon, alpha=1.0, **WORD)),
                    "MOUE, alpha 10 (LATENT)": mean(lambda epsilon: bitldp.MOUE(1, epsilon=epsilon, **WORD)),
                    "bit budgets, 4 bits": mean(lambda epsilon: bitldp.BitBudgets(epsilon=epsilon, bits=4)),
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
                    "GRR": mean(lambda epsilon, k=k: bitldp.GRR(k, epsilon=epsilon)),
                    "SUE (basic RAPPOR)": mean(lambda epsilon, k=k: bitldp.SUE(k, epsilon=epsilon)),
                    "OUE": mean(lambda epsilon, k=k: bitldp.OUE(k, epsilon=epsilon)),
                    "subset selection": mean(lambda epsilon, k=k: bitldp.SubsetSelection(k, epsilon=epsilon)),
                    "block design": mean(lambda epsilon, k=k: bitldp.BlockDesign(k, epsilon=epsilon)),
                    "Hadamard response": mean(
                        lambda epsilon, k=k: bitldp.HadamardResponse(k, epsilon=epsilon)
                    ),
                },
            )
            for k in (4, 100)
        ]
        + [
            Panel(
                "A point of 24 on [-1, 1]",
                "expected distance of the report",
                {
                    "GRR": error(lambda epsilon: bitldp.BRR(24, epsilon=epsilon, m=1, interval=ENDS)),
                    "exponential": error(
                        lambda epsilon: bitldp.Exponential(24, epsilon=epsilon, interval=ENDS)
                    ),
                    "L-SRR": error(lambda epsilon: bitldp.LSRR(24, epsilon=epsilon, interval=ENDS)),
                    "BRR, m of the paper": error(
                        lambda epsilon: bitldp.BRR(24, epsilon=epsilon, interval=ENDS)
                    ),
                    "BRR, best m": error(
                        lambda epsilon: bitldp.BRR(24, epsilon=epsilon, m="best", interval=ENDS)
                    ),
                    "optimal (LP)": error(
                        lambda epsilon: bitldp.OptimalUtility(24, epsilon=epsilon, interval=ENDS)
                    ),
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
                    "MVU, 1 bit": mean(
                        lambda epsilon: bitldp.MVU(epsilon=epsilon, output_bits=1, interval=ENDS)
                    ),
                    "MVU, 3 bits": mean(lambda epsilon: bitldp.MVU(epsilon=epsilon, interval=ENDS)),
                    "unbiased GRR, 3 bits": mean(
                        lambda epsilon: bitldp.GeneralizedRR(epsilon=epsilon, bits=3, interval=ENDS)
                    ),
                    "bitwise RR, 3 bits": mean(
                        lambda epsilon: bitldp.BitwiseRR(epsilon=epsilon, bits=3, interval=ENDS)
                    ),
                    "PM": mean(bitldp.Piecewise),
                },
                (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0),
            ),
            Panel(
                "128 numbers in the unit l2 ball, δ = 1e-4",
                "mean variance of a coordinate",
                {
                    "CrossPolytope, no delta": mean(
                        lambda epsilon: bitldp.CrossPolytope(128, epsilon=epsilon)
                    ),
                    "VectorMVU, 1 bit": mean(
                        lambda epsilon: bitldp.VectorMVU(128, epsilon=epsilon, delta=1e-4, output_bits=1)
                    ),
                    "VectorMVU, 3 bits": mean(
                        lambda epsilon: bitldp.VectorMVU(128, epsilon=epsilon, delta=1e-4)
                    ),
                    "InterpolatedMVU, 3 bits": mean(
                        lambda epsilon: bitldp.InterpolatedMVU(
                            128, epsilon=epsilon, delta=1e-4, output_bits=3
                        )
                    ),
                    "Skellam, Gaussian, 13 bits": mean(
                        lambda epsilon: bitldp.Skellam(128, epsilon=epsilon, delta=1e-4)
                    ),
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
                    "PrivUnit on the cube": mean(
                        lambda epsilon: bitldp.HypercubePrivUnit(R, epsilon=epsilon)
                    ),
                    "joint window": mean(lambda epsilon: bitldp.JointWindow(R, epsilon=epsilon)),
                    "sampled signs, best k": mean(lambda epsilon: bitldp.SampledSigns(R, epsilon=epsilon)),
                    "Duchi by half-cubes": mean(
                        lambda epsilon: bitldp.Duchi(epsilon=epsilon, features=R, spend="cube")
                    ),
                    "PM, sampled": mean(
                        lambda epsilon: bitldp.Piecewise(epsilon=epsilon, features=R, spend="sample")
                    ),
                    "PM, split": mean(lambda epsilon: bitldp.Piecewise(epsilon=epsilon, features=R)),
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
                        lambda epsilon, b=b: bitldp.Hierarchy(1024, epsilon=epsilon, branching=b)
                    )
                    for b in (4, 16)
                }
                | {
                    "sum of frequencies": mean(
                        lambda epsilon: bitldp.Hierarchy(1024, epsilon=epsilon, branching=1024)
                    )
                },
            ),
            Panel(
                "Share of a rare word",
                SHARE,
                {
                    "64 bits, 10 groups": lambda epsilon: bitldp.HeavyHitters(
                        epsilon=epsilon
                    ).mean_variance(),
                    "64 bits, 5 groups": lambda epsilon: bitldp.HeavyHitters(
                        epsilon=epsilon, step=13
                    ).mean_variance(),
                    "12 bits, 1 group": lambda epsilon: bitldp.HeavyHitters(
                        epsilon=epsilon, bits=12
                    ).mean_variance(),
                    "OUE, a list that is known": lambda epsilon: _off(bitldp.OUE(1000, epsilon=epsilon)),
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
                        lambda epsilon, d=d: bitldp.CategoricalRecord([16] * d, epsilon=epsilon)
                    ),
                    "one sampled, GRR": mean(
                        lambda epsilon, d=d: bitldp.CategoricalRecord([16] * d, epsilon=epsilon, oracle="GRR")
                    ),
                    "split, best oracle": mean(
                        lambda epsilon, d=d: bitldp.CategoricalRecord(
                            [16] * d, epsilon=epsilon, spend="split"
                        )
                    ),
                    "split, GRR": mean(lambda epsilon, d=d: bitldp.GRR(16, epsilon=epsilon, features=d)),
                },
            )
            for d in (5, 10)
        ],
    ),
    "selection": (
        "Selecting one of 100 dimensions",
        [
            Panel(
                "Chance of one of the 10 largest",
                "probability",
                {
                    "PS": lambda epsilon: _top(bitldp.PS(100, k=10, epsilon=epsilon)),
                    "PE, exact": lambda epsilon: _top(bitldp.PE(100, k=10, epsilon=epsilon)),
                    "EXP": lambda epsilon: _top(bitldp.EXP(100, epsilon=epsilon)),
                },
                scale="linear",
            )
        ],
    ),
}

#: Answers of the guide "Ask a released table".
ASKED = {
    "asked_shares": "Shares of health by insurance, each with its interval",
    "asked_diseases": "Shares of the cells of health and diseases",
    "asked_quantiles": "Quantiles of diseases by health, with bands",
}


def alike(one: str, other: str) -> bool:
    """Tell whether no number of two pictures differs by half a point, and nothing else does."""
    number = r"-?\d+(?:\.\d+)?"
    if re.sub(number, "0", one) != re.sub(number, "0", other):
        return False
    pairs = zip(re.findall(number, one), re.findall(number, other), strict=True)
    return all(abs(float(a) - float(b)) < 0.5 for a, b in pairs)


def main(arguments: Sequence[str]) -> int:
    """Draw the named figures, or all; or compare them, and return 1 where one differs."""
    warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
    differs = 0
    for name in [each for each in arguments if each != "--check"] or [*FIGURES, *ASKED, "honest", "pool"]:
        path = HERE / f"{name}.svg"
        new = drawn(name)
        if "--check" not in arguments:
            path.write_text(new, encoding="utf-8")
        elif not alike(path.read_text(encoding="utf-8"), new):
            differs = 1
            print(f"{path.name}: is not what is computed; make figures", file=sys.stderr)
    return differs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
