"""FedSel, Figures 2 (f) to (i) and 3: two stages and flat methods over the same seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from bitldp_papers.data import Dataset
from bitldp_papers.fedsel.runs import EQUAL, METHODS, PUBLIC, Runs, cohort, constants, elsewhere, methods
from bitldp_papers.figures import Compared, FigureResult, FigureRun, Finding, everywhere, figure, trained
from bitldp_papers.figures.drawing import score_name

_SELECTIONS = ("EXP", "PE", "PS")
_PANELS = "Which data set a panel shows, alpha and eta are not in the paper's text: Adult, rate 1, eta .1."
_EQUAL = "with one rate for all"
_OWN = "with each method's public rate"
_HONEST = "Epsilon is a client's, and exact: the claim holds (of PE with its exact calibration)."


def budgets(run: FigureRun) -> tuple[float, ...]:
    """Return the budgets of a client in an epoch."""
    wide = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    return run.choose(quick=(0.5, 2.0, 8.0), medium=(0.5, 2.0, 8.0), full=wide)


def judged(
    runs: Runs, pairs: Sequence[tuple[str, str]], constant: Mapping[str, float], **where: Any
) -> list[Finding]:
    """Return what the scores say of methods that are said to be above others: by one rate, and by their own.

    Accuracy is what the paper reports. A method that is at the majority class has learned nothing by it;
    AUC and loss tell more.
    """
    findings = []
    for rates, how in ((EQUAL, _EQUAL), (PUBLIC, _OWN)):
        for score in ("accuracy", "auc", "loss"):
            gains = {f"{a} over {b}": runs.differences(a, b, score, rates, **where) for a, b in pairs}
            says = f"{', '.join(dict.fromkeys(a for a, _ in pairs))} above "
            says += f"{', '.join(dict.fromkeys(b for _, b in pairs))} by {score_name(score)}, {how}"
            least = min((a for a, _ in pairs), key=lambda a: fmean(runs.of(a, score, rates, **where)))
            without = runs.of("NP", score, PUBLIC)
            findings.append(
                trained(
                    everywhere(says, gains),
                    runs.of(least, score, rates, **where),
                    constant[score],
                    without,
                    higher=score != "loss",
                )
            )
    return findings


def outcome(
    run: FigureRun,
    runs: Runs,
    pairs: Sequence[tuple[str, str]],
    data: Dataset,
    *,
    model: str = "logistic",
    more: Sequence[Finding] = (),
    **words: Any,
) -> FigureResult:
    """Return the result of a panel: gains of methods over others at epsilon 2, and constants beside them."""
    constant = constants(data, model)
    where: dict[str, Any] = {"epsilon": 2.0}
    compared = []
    for rates, how in ((EQUAL, "equal rate"), (PUBLIC, "public rates")):
        for score in ("accuracy", "auc", "loss"):
            for method, over in pairs:
                gain = runs.differences(method, over, score, rates, **where)
                what = f"{method} over {over}, {score_name(score)}, {how}"
                compared.append(Compared.scored(what, None, gain, 2.0, 2.0))
    for name in dict.fromkeys([*(a for a, _ in pairs), *(b for _, b in pairs)]):
        for rates in (EQUAL, PUBLIC):
            own = runs.of(name, rates=rates, **where)
            rate = 1.0 if rates == EQUAL else runs.rates[name, 2.0]
            compared.append(Compared.scored(f"{name}, accuracy, rate {rate:g}", None, own, 2.0, 2.0))
    compared.append(Compared.scored("NP, accuracy, without noise", None, runs.of("NP", rates=PUBLIC)))
    for score, value in constant.items():
        compared.append(Compared(f"constant, {score_name(score)}", None, value))
    parameters = {
        "rate": 1.0,
        "public rates": {f"{name}, {value}": rate for (name, value), rate in runs.rates.items()},
        "public rates of": elsewhere(run, data.name),
        **words.pop("parameters", {}),
    }
    return FigureResult(
        rows=runs.rows,
        draw=runs.draw(constant),
        compared=compared,
        honest=_HONEST,
        findings=[*judged(runs, pairs, constant, **where), *more],
        parameters=parameters,
        **words,
    )


def _both(runs: Runs, names: Sequence[str], values: Sequence[float], **more: Any) -> None:
    """Run methods with one rate, with their public ones, and without noise."""
    for rates in (EQUAL, PUBLIC):
        runs.add(methods(*names), values, rates=rates, **more)
    runs.add(methods("NP"), values[:1], rates=PUBLIC, **more)


@figure(
    "fedsel-2-f",
    source="FedSel, Fig. 2 (f) (Section 5.3)",
    title="Two stages and random coordinates (logistic, one epoch)",
    claim="With any selection the two stages have a higher test accuracy than PM, the best flat method.",
    minutes=(0.8, 2.0, 3.0),
)
def one_epoch(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    runs = Runs(run, "adult", **cohort(data), rate=1.0)
    _both(runs, ("PS-PM", "PE-PM", "EXP-PM", "PM"), budgets(run))
    pairs = [(f"{each}-PM", "PM") for each in _SELECTIONS]
    return outcome(run, runs, pairs, data, parameters={"note": _PANELS})


@figure(
    "fedsel-2-g",
    source="FedSel, Fig. 2 (g) (Section 5.3)",
    title="Two stages and random coordinates (SVM, two epochs)",
    claim="Over two epochs accumulation with momentum helps against the noise, above all where epsilon is "
    "small.",
    minutes=(0.8, 2.0, 3.0),
)
def two_epochs(run: FigureRun) -> FigureResult:
    data = run.data("bank_marketing")
    runs = Runs(run, "bank_marketing", **cohort(data), model="svm", rounds=200, rate=1.0)
    _both(runs, ("PS-PM", *(("PE-PM", "EXP-PM") if run.form == "full" else ()), "PM"), budgets(run))
    low, high = min(budgets(run)), max(budgets(run))
    ends = [runs.differences("PS-PM", "PM", "auc", PUBLIC, epsilon=epsilon) for epsilon in (low, high)]
    shrinks = [a - b for a, b in zip(*ends, strict=True)]
    says = f"PS gains more AUC at epsilon {low:g} than at {high:g}, {_OWN}"
    more = [everywhere(says, {"the one less the other": shrinks})]
    return outcome(
        run,
        runs,
        [("PS-PM", "PM")],
        data,
        model="svm",
        more=more,
        parameters={"note": _PANELS.replace("Adult", "Bank")},
    )


@figure(
    "fedsel-2-h",
    source="FedSel, Fig. 2 (h) (Section 5.3)",
    title="Two stages with PM, HM and Duchi against the same without selection",
    claim="The gain does not depend on what perturbs the value: lower misclassification, and smaller "
    "deviation.",
    minutes=(0.5, 2.0, 3.0),
)
def other_values(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    runs = Runs(run, "adult", **cohort(data), rate=1.0)
    pairs = [("PS-PM", "PM"), ("PS-HM", "HM"), ("PS-Duchi", "Duchi")]
    _both(runs, [each for pair in pairs for each in pair], (2.0,) if run.quick else budgets(run))
    return outcome(run, runs, pairs, data, parameters={"note": _PANELS})


@figure(
    "fedsel-2-i",
    source="FedSel, Fig. 2 (i) (Section 5.3)",
    title="Two stages against a random projection to a tenth of the coordinates",
    claim="A random projection lowers the noise, but what it loses ruins the accuracy; selection works.",
    minutes=(0.5, 2.0, 3.0),
)
def projected(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    runs = Runs(run, "adult", **cohort(data), rate=1.0)
    _both(runs, ("PS-PM", "PM", "PM-RP"), budgets(run))
    return outcome(run, runs, [("PS-PM", "PM-RP")], data, parameters={"note": _PANELS})


@figure(
    "fedsel-3-a",
    source="FedSel, Fig. 3 (a) (Section 5.3)",
    title="Delayed gradients against delayed steps",
    claim="Accumulating gradients learns better than accumulating steps (alpha g): what selection gains is "
    "not lost.",
    minutes=(0.4, 2.0, 3.0),
)
def delayed(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    rate = 0.3  # Theorem 2 is about rates below 1
    runs = Runs(run, "adult", **cohort(data), rate=rate, rounds=200)
    some = ("PS",) if run.quick else _SELECTIONS
    names = [f"{each}-PM{end}" for each in some for end in ("", "-O")]
    values = (2.0, 8.0) if run.quick else (0.5, 2.0, 8.0)
    runs.add(methods(*names), values)
    runs.add(methods("NP"), values[:1], rates=PUBLIC)
    constant = constants(data)
    compared = [
        Compared.scored(
            f"{each}-PM over {each}-PM-O, {score_name(score)}, epsilon {epsilon:g}",
            None,
            runs.differences(f"{each}-PM", f"{each}-PM-O", score, epsilon=epsilon),
            epsilon,
            epsilon,
        )
        for each in some
        for epsilon in values
        for score in ("accuracy", "auc", "loss")
    ]
    findings = []
    for score in ("accuracy", "auc", "loss"):
        gains = {
            f"{each}, epsilon {epsilon:g}": runs.differences(
                f"{each}-PM", f"{each}-PM-O", score, epsilon=epsilon
            )
            for each in some
            for epsilon in values
        }
        own = runs.of(f"{some[0]}-PM", score, epsilon=2.0)
        says = f"delayed gradients are better than delayed steps by {score_name(score)}"
        findings.append(
            trained(
                everywhere(says, gains),
                own,
                constant[score],
                runs.of("NP", score, PUBLIC),
                higher=score != "loss",
            )
        )
    return FigureResult(
        rows=runs.rows,
        draw=runs.draw(constant),
        compared=[*compared, *(Compared(f"constant, {score_name(k)}", None, v) for k, v in constant.items())],
        findings=findings,
        honest="Steps of alpha g are sent with the noise of numbers of [-1, 1], as gradients are: " + _HONEST,
        parameters={"rate": rate, "epochs": 2},
    )


@figure(
    "fedsel-3-b",
    source="FedSel, Fig. 3 (b) (Section 5.3)",
    title="The share mu of the budget that selection gets",
    claim="mu = 0.1 is best and works no worse than PM at any budget; mu = 0.8 learns worse, with a larger "
    "spread.",
    minutes=(0.4, 2.0, 3.0),
)
def shares(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    runs = Runs(run, "adult", **cohort(data), rate=1.0)
    mus = (0.1, 0.4, 0.8) if run.quick else (0.05, 0.1, 0.2, 0.4, 0.8)
    named = {f"PS-PM, mu {mu:g}": {**METHODS["PS-PM"], "mu": mu} for mu in mus}
    values = (0.5, 2.0, 8.0)
    for rates in (EQUAL, PUBLIC):
        runs.add({**named, **methods("PM")}, values, rates=rates)
    runs.add(methods("NP"), values[:1], rates=PUBLIC)
    constant = constants(data)
    small, large = "PS-PM, mu 0.1", "PS-PM, mu 0.8"
    compared = [
        Compared.scored(
            f"{name}, {score_name(score)}, epsilon 2, {rates} rate",
            None,
            runs.of(name, score, rates, epsilon=2.0),
            2.0,
            2.0,
        )
        for name in (*named, "PM")
        for rates in (EQUAL, PUBLIC)
        for score in ("accuracy", "auc", "loss")
    ]
    findings = []
    for rates, how in ((EQUAL, _EQUAL), (PUBLIC, _OWN)):
        for says, others in (
            ("mu .1 is the best share", [name for name in named if name != small]),
            ("mu .1 is no worse than PM at any budget", ["PM"]),
            ("mu .8 is worse than mu .1", [large]),
        ):
            gains = {
                f"{other}, epsilon {epsilon:g}": runs.differences(small, other, "auc", rates, epsilon=epsilon)
                for other in others
                for epsilon in (values if others == ["PM"] else (2.0,))
            }
            own = runs.of(small, "auc", rates, epsilon=2.0)
            finding = everywhere(f"{says}, by AUC, {how}", gains)
            findings.append(trained(finding, own, constant["auc"], runs.of("NP", "auc", PUBLIC)))
    return FigureResult(
        rows=runs.rows,
        draw=runs.draw(constant),
        compared=[*compared, *(Compared(f"constant, {score_name(k)}", None, v) for k, v in constant.items())],
        findings=findings,
        honest=_HONEST,
        parameters={"rate": 1.0, "public rates": {f"{n}, {v}": rate for (n, v), rate in runs.rates.items()}},
    )


@figure(
    "fedsel-3-c",
    source="FedSel, Fig. 3 (c) (Section 5.3)",
    title="Batches of different sizes, the budget split by theta = 0.2",
    claim="Where the value gets sqrt(d log d/m) first, selection gains at every batch, and deviates less "
    "than PM.",
    minutes=(0.4, 2.0, 3.0),
)
def batches(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    rounds, epsilon = 30, 4.0  # as many for each: within the clients of one epoch
    runs = Runs(run, "adult", clients=len(data.train), rate=1.0, rounds=rounds, epsilon=epsilon)
    some = ("PS",) if run.quick else _SELECTIONS
    chosen: dict[str, Any] = {f"{each}-PM": {**METHODS[f"{each}-PM"], "split": "free"} for each in some}
    chosen |= methods("PM")
    most = len(data.train) // rounds
    asked = (100, 325, 1000) if run.quick else (50, 100, 325, 1000)
    sizes = [size for size in asked if size <= most] or [most]
    for rates in (EQUAL, PUBLIC):
        runs.add(chosen, sizes, "batch", rates=rates)
    runs.add(methods("NP"), sizes[-1:], "batch", rates=PUBLIC)
    constant = constants(data)
    compared, findings = [], []
    for rates, how in ((EQUAL, _EQUAL), (PUBLIC, _OWN)):
        for score in ("accuracy", "auc", "loss"):
            gains = {
                f"{each}-PM, m = {size}": runs.differences(f"{each}-PM", "PM", score, rates, batch=size)
                for each in some
                for size in sizes
            }
            own = runs.of(f"{some[-1]}-PM", score, rates, batch=sizes[-1])
            finding = everywhere(f"selection gains {score_name(score)} at every batch, {how}", gains)
            findings.append(
                trained(finding, own, constant[score], runs.of("NP", score, PUBLIC), higher=score != "loss")
            )
            compared += [
                Compared.scored(
                    f"{what} over PM, {score_name(score)}, {rates} rate", None, each, epsilon, epsilon
                )
                for what, each in gains.items()
            ]
    return FigureResult(
        rows=runs.rows,
        draw=runs.draw(constant, "batch"),
        compared=[*compared, *(Compared(f"constant, {score_name(k)}", None, v) for k, v in constant.items())],
        findings=findings,
        honest=_HONEST,
        parameters={"rate": 1.0, "epsilon": epsilon, "theta": 0.2, "rounds": rounds},
    )
