"""BitRand, Figures 8 and 15 to 21: networks on its and its baselines' records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from bitldp_papers.bitrand.runs import (
    OURS,
    STAND_IN,
    Row,
    budgets,
    constant,
    data_sets,
    features,
    honest,
    infinite,
    label_budgets,
    measured,
    of,
    tested,
    together,
    updates,
)
from bitldp_papers.figures import (
    Compared,
    FigureResult,
    FigureRun,
    Finding,
    Printed,
    figure,
    gain,
    ordered,
    trained,
)
from bitldp_papers.figures.drawing import panels, score_name, scored

#: Gains in points over the best baseline that the paper prints: of accuracy, of AUC.
FEATURES = {
    "AG": (Printed("46.03", "b08b71cebdac"), Printed("38.51", "3f5b688574d1")),
    "SEC": (Printed("13.69", "5b68754b4cfe"), Printed("13.79", "f4a9bf59b8fa")),
    "FEMNIST": (Printed("21.62", "11f8439d05c4"), Printed("13.42", "21d02511385d")),
}
GRADIENTS = {
    "AG": (Printed("44.95", "477e247e0035"), Printed("37.52", "86f59c5adeda")),
    "SEC": (Printed("12.82", "16d71721de9f"), Printed("12.92", "d22bd6558de3")),
    "FEMNIST": (Printed("24.17", "f7f9ca92e282"), Printed("13.40", "e7dfa94e16ba")),
}
ANONYMOUS = {
    "AG": (Printed("39.38", "1b6d926d957e"), Printed("32.75", "00ead7e2d015")),
    "SEC": (Printed("13.59", "42e4b576d1f9"), Printed("13.69", "ee2a9e1cd49b")),
    "FEMNIST": (Printed("23.12", "38f985b93483"), Printed("37.02", "146c12b7564a")),
}
LABELS = {
    1.0: {
        "AG": (Printed("9.65", "aaf88aca1f8f"), Printed("7.92", "4b681fece7ed")),
        "SEC": (Printed("7.84", "5fe9327fe47b"), Printed("7.35", "9943502f2209")),
        "FEMNIST": (Printed("9.91", "40e17bf2d7d0"), Printed("10.55", "52c26165864c")),
    },
    2.5: {
        "AG": (Printed("1.71", "2f8d39ab42d2"), Printed("1.37", "d94b85f75973")),
        "SEC": (Printed("4.65", "5a6038804f37"), Printed("4.73", "b0559f15ad56")),
        "FEMNIST": (Printed("14.43", "fa5106a07c10"), Printed("12.02", "ba9d593e0f7e")),
    },
}
#: Points that a gain may be below the printed one: other data, other embeddings.
NEAR = 2.0
#: Points over the constant's score that training without noise must reach for anything to be said.
LEARNED = 5.0
_RIVAL = "ldp-fl, anonymiser"

Printings = Mapping[str, tuple[Printed, Printed]]


def _against(
    run: FigureRun,
    metric: str,
    baselines: Sequence[dict[str, Any]],
    printed: Printings,
    label_epsilon: float,
) -> FigureResult:
    """Return the figure of BitRand at several budgets of labels against baselines, by data set."""
    results: list[Row] = []
    names = data_sets(run)
    ours = [
        {"mechanism": OURS, "label_epsilon": budget, "name": f"BitRand, labels {infinite(budget)}"}
        for budget in label_budgets(run)
    ]
    for panel, data in names.items():
        for seed in run.each(run.seeds, f"{panel}, seed"):
            for epsilon in budgets(run):
                for words in (*ours, *baselines):
                    given = {key: value for key, value in words.items() if key != "name"}
                    row = measured(run, data, seed, epsilon=epsilon, **given)
                    results.append({**row, "panel": panel, "name": words["name"]})
            row = measured(run, data, seed, mechanism="noiseless")
            results.append({**row, "panel": panel, "name": "noiseless", "epsilon": None})
    floors = {panel: constant(run, data, metric) for panel, data in names.items()}
    first = f"BitRand, labels {infinite(label_epsilon)}"
    compared, findings = [], []
    for panel in names:
        some = [row for row in results if row["panel"] == panel]
        numbers, found = _found(
            *(some, metric, panel, first),
            [words["name"] for words in baselines],
            printed[panel][0 if metric == "accuracy" else 1],
            floors[panel],
        )
        compared += numbers
        findings += found
    costs = [row["exact"] for row in results if (row["name"], row["epsilon"]) == (first, 1.0)]
    asked = 1.0 if label_epsilon == math.inf else 1.0 + label_epsilon
    says = f"{first}: a record costs what is claimed, {asked:g}"
    findings.append(Finding(says, max(costs) <= asked, f"exact {max(costs):,.0f}"))
    x = budgets(run)
    lines_of = list(dict.fromkeys(row["name"] for row in results))
    shown = {
        panel: {
            **{
                name: scored(x, [of(results, metric, panel=panel, name=name, epsilon=e) for e in x])
                for name in lines_of
                if name != "noiseless"
            },
            "without noise": fmean(of(results, metric, panel=panel, name="noiseless")),
            "constant": floors[panel],
        }
        for panel in names
    }
    return FigureResult(
        results,
        _side_by_side(shown, 5.6, metric),
        compared,
        honest=honest(run, metric),
        stand_in=STAND_IN,
        findings=findings,
        parameters={"budgets": budgets(run), "label_budgets": label_budgets(run)},
    )


def _side_by_side(shown: dict[str, dict[str, Any]], height: float, metric: str) -> Any:
    """Return the drawing of scores by claimed epsilon, a panel a data set."""
    size = (max(8.0, 4.2 * len(shown) + 1.4), height)  # wide enough for two columns of names
    return panels(
        shown, size=size, xlabel="claimed epsilon of the features", ylabel=f"{score_name(metric)}, %"
    )


def _found(
    results: list[Row],
    metric: str,
    panel: str,
    first: str,
    baselines: Sequence[str],
    printed: Printed,
    floor: float,
) -> tuple[list[Compared], list[Finding]]:
    """Return what a data set's runs say of the gain at claimed epsilon 1, and of the order at all."""

    def at(name: str, epsilon: float | None) -> list[float]:
        return of(results, metric, name=name, epsilon=epsilon)

    ours, clean = at(first, 1.0), at("noiseless", None)
    exact = next(row["exact"] for row in results if row["name"] == first)
    best = max((name for name in baselines if name != _RIVAL), key=lambda name: fmean(at(name, 1.0)))
    gains = [a - b for a, b in zip(ours, at(best, 1.0), strict=True)]
    what = f"{panel}: points of {score_name(metric)} over the best baseline"
    compared = [
        Compared.scored(f"{what} ({best})", printed, gains, exact, 1.0, NEAR),
        Compared.scored(f"{panel}: {first}", None, ours, exact, 1.0),
        Compared.scored(f"{panel}: without noise", None, clean, math.inf, math.inf),
        Compared(f"{panel}: constant", None, floor, None, 0.0, 0.0),
    ]
    learns = partial(trained, constant=floor, noiseless=clean, reach=floor + LEARNED)
    finding = gain(f"{what}, at claimed 1", printed, gains, NEAR)
    findings = [learns(tested(finding, ours, at(best, 1.0)), ours)]
    if _RIVAL in baselines:
        behind = [a - b for a, b in zip(ours, at(_RIVAL, 1.0), strict=True)]
        compared.append(
            Compared.scored(f"{panel}: points of {score_name(metric)} over LDP-FL", None, behind, exact, 1.0)
        )
    each = {}
    for epsilon in sorted({row["epsilon"] for row in results if row["epsilon"] is not None}):
        scores = {name: at(name, epsilon) for name in (first, *baselines)}
        each[f"epsilon {epsilon:g}"] = learns(ordered("above every baseline", scores, first), scores[first])
    findings.append(together(f"{panel}: {first} above every baseline at every budget", each))
    return compared, findings


_TITLES = {"accuracy": "Accuracy", "auc": "AUC"}
_BEHIND = "gradients behind an anonymiser"
_BITWISE = features()[:2]


for _number, _metric, _where, _minutes, _baselines, _printed, _budget in (
    (15, "accuracy", "features", (0.7, 5.0, 600.0), features(), FEATURES, math.inf),
    (19, "auc", "features", (0.1, 0.3, 10.0), features(), FEATURES, math.inf),
    (
        *(16, "accuracy", "gradients", (0.2, 2.0, 900.0)),
        *([*updates(anonymiser=False), *_BITWISE], GRADIENTS, 1.0),
    ),
    (
        *(20, "auc", "gradients", (0.1, 0.3, 10.0)),
        *([*updates(anonymiser=False), *_BITWISE], GRADIENTS, 1.0),
    ),
    (
        *(17, "accuracy", _BEHIND, (0.1, 0.3, 10.0)),
        *([*updates(anonymiser=True), *_BITWISE], ANONYMOUS, 1.0),
    ),
    (
        *(8, "auc", _BEHIND, (0.5, 4.0, 900.0)),
        *([*updates(anonymiser=True), *_BITWISE], ANONYMOUS, 1.0),
    ),
):
    figure(
        f"bitrand-{_number}",
        source=f"BitRand, Fig. {_number}",
        title=f"{_TITLES[_metric]}, mechanisms on the {_where}",
        claim="BitRand is above every baseline at every budget; at 1, the best of them by "
        f"{_printed['AG'][0 if _metric == 'accuracy' else 1].text} points on AG.",
        minutes=_minutes,
    )(partial(_against, metric=_metric, baselines=_baselines, printed=_printed, label_epsilon=_budget))


def _labels(run: FigureRun, metric: str) -> FigureResult:
    """Return the figure of label-RR against label-Laplace."""
    results: list[Row] = []
    names = data_sets(run)
    kinds = ("label-rr", "label-laplace")
    some = run.choose(quick=(1.0, 2.5), medium=(1.0, 2.5), full=(1.0, 2.5, 5.0, 10.0))
    for panel, data in names.items():
        for seed in run.each(run.seeds, f"{panel}, seed"):
            for epsilon in budgets(run):
                for budget in some:
                    for kind in kinds:
                        words = {"mechanism": OURS, "label": kind, "label_epsilon": budget}
                        row = measured(run, data, seed, epsilon=epsilon, **words)
                        results.append({**row, "panel": panel})
            results.append({**measured(run, data, seed, mechanism="noiseless"), "panel": panel})
    floors = {panel: constant(run, data, metric) for panel, data in names.items()}
    x = budgets(run)

    def by_seed(panel: str, kind: str, budget: float) -> list[float]:
        where: dict[str, Any] = {
            **{"panel": panel, "label": kind, "label_epsilon": budget, "mechanism": OURS}
        }
        return [fmean(of(results, metric, **where, seed=seed)) for seed in run.seeds]

    def at(panel: str, kind: str, budget: float, epsilon: float) -> list[float]:
        words: dict[str, Any] = {"panel": panel, "label": kind, "label_epsilon": budget}
        return of(results, metric, epsilon=epsilon, **words)

    compared, findings = [], []
    index = 0 if metric == "accuracy" else 1
    for budget in (1.0, 2.5):
        for panel in names:
            rr, laplace = (by_seed(panel, kind, budget) for kind in kinds)
            gains = [a - b for a, b in zip(rr, laplace, strict=True)]
            clean = of(results, metric, panel=panel, mechanism="noiseless")
            exact = next(row["exact"] for row in results if row["panel"] == panel)
            what = f"{panel}: points of {score_name(metric)}, label-RR over label-Laplace at {budget:g}"
            paper = LABELS[budget][panel][index]
            compared.append(Compared.scored(what, paper, gains, exact, 1.0 + budget, NEAR))
            finding = tested(gain(what, paper, gains, NEAR), rr, laplace)
            floor = floors[panel]
            findings.append(trained(finding, rr, floor, clean, reach=floor + LEARNED))
    shown: dict[str, dict[str, Any]] = {
        panel: {
            **{
                f"{kind}, {budget:g}": scored(x, [at(panel, kind, budget, e) for e in x])
                for budget in some
                for kind in kinds
            },
            "without noise": fmean(of(results, metric, panel=panel, mechanism="noiseless")),
            "constant": floors[panel],
        }
        for panel in names
    }
    return FigureResult(
        results,
        _side_by_side(shown, 4.8, metric),
        compared,
        honest=honest(run, metric),
        stand_in=f"{STAND_IN}; label-Laplace's noisy vectors are projected to the simplex and train as soft "
        "labels",
        findings=findings,
        parameters={"budgets": budgets(run), "label_budgets": some},
    )


for _number, _metric, _claim, _minutes in (
    (18, "accuracy", "by 9.65 points on AG at 1, by 1.71 at 2.5.", (0.5, 2.5, 200.0)),
    (21, "auc", "by 7.92 points of AUC on AG at 1, by 1.37 at 2.5.", (0.1, 0.3, 10.0)),
):
    figure(
        f"bitrand-{_number}",
        source=f"BitRand, Fig. {_number}",
        title=f"{_TITLES[_metric]}, label-RR against label-Laplace",
        claim=f"label-RR is above label-Laplace everywhere: {_claim}",
        minutes=_minutes,
    )(partial(_labels, metric=_metric))
