"""FedSel, Figure 2 (f) to (i): accuracy against epsilon, of two stages and of the flat methods."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from bitldp_papers.fedsel.compared import Runs, methods
from bitldp_papers.figures import Compared, FigureRun, FigureResult, figure

_PANELS = "Which data set a panel shows, alpha and eta are not in the paper's text: Adult, rate 1, eta .1."


def budgets(run: FigureRun) -> tuple[float, ...]:
    """Return the budgets of a client in an epoch."""
    return (0.5, 2.0, 8.0) if run.quick else (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def outcome(runs: Runs, pairs: dict[str, str], epsilon: float, majority: float, **words: Any) -> FigureResult:
    """Return the outcome of a panel: gains of methods over others at one budget, and the majority class."""
    compared, said = [], []
    for method, over in pairs.items():
        gain, spread, p = runs.gain(method, over, epsilon=epsilon)
        area, _, p_area = runs.gain(method, over, "auc", epsilon=epsilon)
        compared.append(Compared(f"{method} over {over}, accuracy", None, gain, spread, epsilon, epsilon))
        compared.append(Compared(f"{method} over {over}, AUC", None, area, None, epsilon, epsilon))
        said.append(f"{method} over {over} {gain:+.3f} (p {p:.2g}), AUC {area:+.3f} (p {p_area:.2g})")
    names = dict.fromkeys([*pairs, *pairs.values()])
    own = {name: runs.of(name, epsilon=epsilon) for name in names}
    below = [name for name, scores in own.items() if fmean(scores) < majority - 1e-9]
    compared.append(Compared("majority class", None, majority))
    compared += [
        Compared(f"{n}, accuracy", None, fmean(s), stdev(s), epsilon, epsilon) for n, s in own.items()
    ]
    return FigureResult(
        rows=runs.rows,
        draw=runs.draw(score="auc"),
        compared=compared,
        honest="Epsilon is a client's, and exact: the claim holds (of PE with its exact calibration).",
        verdict=f"At epsilon {epsilon:g}: {'; '.join(said)}. Who looks at nothing reaches {majority:.3f}"
        + (f", more than {', '.join(below)}." if below else "."),
        **words,
    )


@figure(
    "fedsel-2-f",
    source="FedSel, Fig. 2 (f) (Section 5.3)",
    title="Accuracy against epsilon: two stages and random coordinates (logistic, one epoch)",
    claim="With any selection the two stages have a higher test accuracy than PM, the best flat method.",
    minutes=(0.5, 10.0),
)
def one_epoch(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    runs = Runs(run, data="adult", rate=1.0)
    some = ("PS-PM", "PE-PM", "EXP-PM", "PS-PM-C", "PM")
    runs.add(methods(*some, *(() if run.quick else ("PE-PM-C", "EXP-PM-C", "NP"))), budgets(run))
    pairs = dict.fromkeys(("PS-PM", "PE-PM", "EXP-PM"), "PM")
    return outcome(runs, pairs, 2.0, data.majority, stand_in="", parameters={"rate": 1.0, "note": _PANELS})


@figure(
    "fedsel-2-g",
    source="FedSel, Fig. 2 (g) (Section 5.3)",
    title="Accuracy against epsilon: two stages and random coordinates (SVM, two epochs)",
    claim="Over two epochs accumulation with momentum helps against the noise, above all where epsilon is "
    "small.",
    minutes=(0.5, 10.0),
)
def two_epochs(run: FigureRun) -> FigureResult:
    data = run.data("bank_marketing")
    runs = Runs(run, data="bank_marketing", clients=36_169, batch=362, model="svm", rounds=200, rate=1.0)
    runs.add(methods("PS-PM", "PM", *(() if run.quick else ("PE-PM", "EXP-PM", "NP"))), budgets(run))
    words = {"parameters": {"rate": 1.0, "note": _PANELS.replace("Adult", "Bank")}}
    return outcome(runs, {"PS-PM": "PM"}, 2.0, data.majority, **words)


@figure(
    "fedsel-2-h",
    source="FedSel, Fig. 2 (h) (Section 5.3)",
    title="Two stages with PM, HM and Duchi against the same without selection",
    claim="The gain does not depend on what perturbs the value: lower misclassification, and smaller "
    "deviation.",
    minutes=(0.5, 10.0),
)
def other_values(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    runs = Runs(run, data="adult", rate=1.0)
    pairs = {"PS-PM": "PM", "PS-HM": "HM", "PS-Duchi": "Duchi"}
    runs.add(methods(*pairs, *pairs.values()), (2.0,) if run.quick else budgets(run))
    return outcome(runs, pairs, 2.0, data.majority, parameters={"rate": 1.0, "note": _PANELS})


@figure(
    "fedsel-2-i",
    source="FedSel, Fig. 2 (i) (Section 5.3)",
    title="Two stages against a random projection to a tenth of the coordinates",
    claim="A random projection lowers the noise, but what it loses ruins the accuracy; selection works.",
    minutes=(0.5, 10.0),
)
def projected(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    runs = Runs(run, data="adult", rate=1.0)
    runs.add(methods("PS-PM", "PM-RP", "PM"), budgets(run))
    pairs = {"PS-PM": "PM-RP", "PM": "PM-RP"}
    return outcome(runs, pairs, 2.0, data.majority, parameters={"rate": 1.0, "note": _PANELS})
