"""Runs of BitRand's learning figures and tables: one grid, which all of them read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any

from bitldp_papers.bitrand.settings import NUMERIC, BitRandSettings
from bitldp_papers.bitrand.system import learned
from bitldp_papers.figures import FigureRun, Finding, column, p_value

__all__ = [
    "OURS",
    "PANELS",
    "STAND_IN",
    "Row",
    "budgets",
    "constant",
    "data_sets",
    "features",
    "honest",
    "infinite",
    "label_budgets",
    "measured",
    "of",
    "tested",
    "together",
    "updates",
]

Row = dict[str, Any]

OURS = "bitrand-paper"
#: Data sets of the paper's panels, and the stand-in of each.
PANELS = {"AG": "ag_news", "SEC": "breast_cancer", "FEMNIST": "mnist"}
STAND_IN = (
    "AG: MiniLM embeddings (384 numbers; the paper's BERT has 768) of 8,000 of its 120,000 records; SEC: "
    "breast cancer; FEMNIST: MNIST; CelebA: Adult and Bank"
)

#: Records of the larger sets, and test records, in the shorter forms.
_SMALL = {name: {"records": 8000, "tested": 2000} for name in ("mnist", "adult", "bank_marketing")}
#: Rates of sets on which a network without noise learns nothing at the rate of the others.
_RATES = {"mnist": 0.1}
_CLIENTS = {"ag_news": 186, "breast_cancer": 152, "mnist": 264, "adult": 1628, "bank_marketing": 1808}


def data_sets(run: FigureRun) -> dict[str, str]:
    """Return the data sets of a figure, whose checksums are noted: AG alone in the short form."""
    chosen = {"AG": "ag_news"} if run.quick else PANELS
    for name in chosen.values():
        run.data(name)
    return dict(chosen)


def budgets(run: FigureRun) -> tuple[float, ...]:
    """Return the budgets of the features."""
    every = tuple(map(float, range(1, 11)))
    return run.choose(quick=(1.0, 10.0), medium=(1.0, 2.0, 5.0, 10.0), full=every)


def label_budgets(run: FigureRun) -> tuple[float, ...]:
    """Return the budgets of BitRand's labels."""
    return run.choose(
        quick=(1.0, math.inf), medium=(1.0, 2.5, math.inf), full=(1.0, 2.5, 5.0, 10.0, math.inf)
    )


def features() -> list[dict[str, Any]]:
    """Return the baselines on features: settings, and a name."""
    return [{"mechanism": name, "name": f"{name}, features"} for name in ("latent", "ome", *NUMERIC)]


def updates(*, anonymiser: bool) -> list[dict[str, Any]]:
    """Return the baselines on gradients: settings, and a name."""
    kinds = (*NUMERIC, "ldp-fl") if anonymiser else tuple(NUMERIC)
    behind = ", anonymiser" if anonymiser else ", gradients"
    words = {"place": "updates", "anonymiser": anonymiser}
    return [{"mechanism": name, "name": name + behind, **words} for name in kinds]


def shape(run: FigureRun, data: str, words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of a run in the form that is asked for: units, rounds, clients, records."""
    given: dict[str, Any] = run.choose(
        quick={"hidden": 32, "rounds": 60, "rate": 0.5},
        medium={"hidden": 64, "rounds": 80, "rate": 0.4},
        full={"hidden": 1500, "rounds": 200, "rate": 0.3},
    )
    given = {**given, "clients": _CLIENTS[data]}
    if run.form != "full":
        given |= _SMALL.get(data, {})
    if words.get("place") == "updates":  # every weight of every client is drawn in every round
        given |= {
            "rounds": run.choose(quick=15, medium=20, full=60),
            "hidden": run.choose(quick=32, medium=32, full=128),
            "rate": run.choose(quick=0.5, medium=0.5, full=0.3),
            "clients": min(given["clients"], 200),
        }
    given["rate"] = _RATES.get(data, given["rate"])
    if run.quick and words.get("place") != "updates" and data in ("adult", "bank_marketing"):
        given["rounds"] = 30
    return {**given, **words}


def measured(run: FigureRun, data: str, seed: int, **words: Any) -> Row:
    """Return the scores of one run on a data set, with its settings; all figures share it."""
    given = {**BitRandSettings.presets["paper"], **shape(run, data, words), "data": data, "seed": seed}
    settings = BitRandSettings(**given)
    if settings.once:
        settings = replace(settings, rounds=1)
    key = ", ".join(f"{name} {value}" for name, value in sorted(asdict(settings).items()))
    scores = run.shared(f"bitrand, {key}", lambda: dict(learned(settings)))
    return {
        "data": data,
        "place": settings.place,
        "mechanism": settings.mechanism,
        "label": settings.label,
        "epsilon": settings.epsilon,
        "label_epsilon": settings.label_epsilon,
        "seed": seed,
        **scores,
    }


def of(rows: Sequence[Row], metric: str, **where: Any) -> list[float]:
    """Return the scores of the rows that are as said, in points of a hundred."""
    return [100.0 * score for score in column(rows, metric, **where)]


def constant(run: FigureRun, data: str, metric: str) -> float:
    """Return the score, in points of a hundred, of a model that says the largest class always."""
    if metric == "auc":
        return 50.0
    known = run.data(data)
    classes = known.train_labels.tolist()
    largest = max(set(classes), key=classes.count)
    return 100.0 * float((known.test_labels == largest).mean())


def honest(run: FigureRun, metric: str = "accuracy", data: str = "ag_news") -> str:
    """Return the score of records released once at a true epsilon, in a sentence."""
    said = []
    for epsilon in (8.0, 4.0, 1.0):
        words = {**BitRandSettings.presets["honest"], "epsilon": epsilon}
        del words["clients"], words["data"]
        scores = [100.0 * measured(run, data, seed, **words)[metric] for seed in run.seeds]
        said.append(f"{fmean(scores):.1f} at {epsilon:g}")
    return (
        "released once at a true epsilon of features and label together (bitldp fl bitrand --preset "
        f"honest): {metric} {', '.join(said)}"
    )


def infinite(epsilon: float) -> str:
    """Return a budget of labels as the figures name it."""
    return "inf" if epsilon == math.inf else f"{epsilon:g}"


def tested(finding: Finding, ours: Sequence[float], theirs: Sequence[float]) -> Finding:
    """Return a finding with the p-value of a paired test beside it, where the seeds are enough for one."""
    p = p_value(ours, theirs)
    return finding if p is None else replace(finding, because=f"{finding.because}, p = {p:.1g}")


def together(says: str, findings: Mapping[str, Finding]) -> Finding:
    """Return one finding of several that have to hold together: by budget, or by data set."""
    worst = min(findings, key=lambda name: {False: 0, None: 1, True: 2}[findings[name].holds])
    held = sum(each.holds is True for each in findings.values())
    one = findings[worst]
    because = f"at {held} of {len(findings)}; {worst}: {one.because}"
    return Finding.of(says, one.word, because)
