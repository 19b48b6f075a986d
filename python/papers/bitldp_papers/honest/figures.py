"""Accuracy against a client's true epsilon, beside the exact epsilons of the papers' settings."""

from __future__ import annotations

import tempfile
import warnings
from typing import Any

import bitldp
import numpy as np
from bitldp.base.palette import INK, STYLES
from bitldp.privacy import PrivacyClaimWarning

from bitldp_papers.figures import Compared, FigureResult, FigureRun, Finding, figure, ordered, sure, trained
from bitldp_papers.figures.drawing import lines
from bitldp_papers.honest.system import SYSTEM

DATA = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
EPSILONS = (1.0, 2.0, 4.0, 8.0)
#: What noise may cost, as a share of all records.
LITTLE = 0.05


def papers_cost() -> dict[str, tuple[float, float]]:
    """Return claimed and exact epsilon of a record in the papers' own settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)  # the figure is about them
        bitrand = bitldp.FRR(features=768, bits=10, integer_bits=5, epsilon=1.0, calibration="paper")
        ldpfl = bitldp.UER(1024, bits=10, integer_bits=4, epsilon=0.5, alpha=10.0, calibration="paper")
    return {"BitRand": (1.0, bitrand.guarantee.record), "LDPFL": (0.5, ldpfl.guarantee.record)}


def accuracy(data: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    """Run the deployment once; return its accuracy, its exact epsilon and its bytes for a client."""
    with tempfile.TemporaryDirectory() as folder:
        settings = SYSTEM.configure(
            data=data, mechanism=mechanism, epsilon=epsilon, seed=seed, out=f"{folder}/run"
        )
        summary = SYSTEM.run(settings)
    each = summary.bytes_up / settings.clients
    return {"accuracy": summary.score, "exact": summary.privacy.record, "bytes": each}


@figure(
    "honest-updates",
    source="ours: every client sends one report in its life",
    title="Accuracy by exact epsilon: one report of each of 60,000 clients",
    claim="The papers have such accuracies at a claimed 1 and .5: an exact 3,311 and 34,885 of a record.",
    minutes=(1.5, 3.0, 3.0),
)
def updates(run: FigureRun) -> FigureResult:
    """Learn a linear model of public features at a client's epsilon for the whole run."""
    constants = {data: run.data(data).majority for data in DATA}
    cases = [(data, "polytope", epsilon) for data in DATA for epsilon in EPSILONS]
    cases += [(data, "noiseless", 1.0) for data in DATA]
    rows: list[dict[str, Any]] = []
    for data, mechanism, epsilon in run.each(cases, "honest"):
        for seed in run.seeds:
            step = (data, mechanism, epsilon, seed)
            scores = run.cached(f"updates {step}", lambda step=step: accuracy(*step))  # type: ignore[misc]
            rows.append({"data": data, "mechanism": mechanism, "epsilon": epsilon, "seed": seed, **scores})

    def of(data: str, mechanism: str, epsilon: float) -> list[float]:
        wanted = (data, mechanism, epsilon)
        return [row["accuracy"] for row in rows if (row["data"], row["mechanism"], row["epsilon"]) == wanted]

    cost = papers_cost()

    def _learned(data: str, epsilon: float) -> Finding:
        """Return whether one report of each client teaches more than the majority class."""
        says = f"{DATA[data]}: at a true epsilon of {epsilon:g} a client the model beats the majority class"
        scores, constant = of(data, "polytope", epsilon), constants[data]
        better = ordered(
            says,
            {"the model": scores, "the majority class": [constant] * len(scores)},
            "the model",
            run.seeds,
        )
        return trained(better, scores, constant, of(data, "noiseless", 1.0))

    def _near(data: str) -> Finding:
        """Return whether noise at the largest epsilon costs little."""
        pairs = zip(of(data, "noiseless", 1.0), of(data, "polytope", EPSILONS[-1]), strict=True)
        lost, half = sure([without - with_noise for without, with_noise in pairs])
        return Finding(
            f"{DATA[data]}: a true epsilon of {EPSILONS[-1]:g} costs less than {LITTLE:.0%} of all records",
            None if abs(lost - LITTLE) <= half else lost < LITTLE,
            f"{lost:.3f} ± {half:.2g} below the same model without noise, {len(run.seeds)} seeds",
        )

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(7.2, 4.4)
        axes = canvas.subplots()
        shown = {}
        for data, name in DATA.items():
            means = [float(np.mean(of(data, "polytope", epsilon))) for epsilon in EPSILONS]
            spread = [float(np.std(of(data, "polytope", epsilon), ddof=1)) for epsilon in EPSILONS]
            shown[name] = (EPSILONS, means, spread)
        lines(axes, shown, xscale="log", ylabel="accuracy on clean test records")
        for data, (color, _) in zip(DATA, STYLES, strict=False):
            without = float(np.mean(of(data, "noiseless", 1.0)))
            axes.axhline(without, color=color, linestyle=":", linewidth=1.0)
            axes.axhline(constants[data], color=color, linestyle="-.", linewidth=0.8)
        for name, (claimed, exact) in cost.items():
            axes.axvline(exact, color=INK, linestyle="--", linewidth=1.0)
            axes.annotate(
                f"{name}\nclaims {claimed:g},\nis {exact:,.0f}",
                (exact, 0.06),
                ha="right",
                fontsize=8,
                xytext=(-4, 0),
                textcoords="offset points",
            )
        label = "exact epsilon (dotted: the same model without noise; dash-dotted: the majority class)"
        axes.set(xlim=(0.7, 1e5), ylim=(0.0, 1.0), xlabel=label)

    exact_of = {row["epsilon"]: row["exact"] for row in rows if row["mechanism"] == "polytope"}
    compared = [
        Compared(
            f"{name}, one report of {rows[0]['bytes']:.0f} bytes a client",
            None,
            float(np.mean(of(data, "polytope", epsilon))),
            float(np.std(of(data, "polytope", epsilon), ddof=1)),
            exact_of[epsilon],
            epsilon,
        )
        for data, name in DATA.items()
        for epsilon in EPSILONS
    ]
    best = {data: float(np.mean(of(data, "polytope", 4.0))) for data in DATA}
    return FigureResult(
        rows,
        draw,
        compared,
        honest=f"this is it: MNIST {best['mnist']:.3f} and Fashion-MNIST {best['fashion_mnist']:.3f} at an "
        "exact epsilon of 4 of a client, for the whole run, labels included",
        findings=[
            *(_learned(data, epsilon) for data in DATA for epsilon in EPSILONS),
            *(_near(data) for data in DATA),
            *(
                Finding(
                    f"{name}: the claimed {claimed:g} is what a record has",
                    exact <= claimed,
                    f"exactly {exact:,.0f}",
                )
                for name, (claimed, exact) in cost.items()
            ),
        ],
        parameters={"clients": 60_000, "rounds": 60, "epsilons": list(EPSILONS)},
    )
