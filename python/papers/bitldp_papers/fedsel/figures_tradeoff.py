"""FedSel, Table 3 and Figure 3: what selection gains and costs, delayed steps, the share mu, the batch m."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from bitldp_papers.fedsel.compared import METHODS, Runs, methods
from bitldp_papers.figures import Compared, FigureRun, FigureResult, figure

_SELECTIONS = ("EXP", "PE", "PS")
#: Gains and losses in points, EXP, PE and PS (the paper has KDD99 besides).
_PRINTED = {
    ("syn-L-0.01-0.9", "logistic"): ((8.6074, 0.3517), (5.410, 1.192), (5.975, 0.4970)),
    ("syn-L-0.01-0.9", "svm"): ((7.1950, 2.1593), (3.7704, 0.8533), (5.065, 2.0816)),
    ("bank_marketing", "logistic"): ((2.4197, -0.157), (3.2338, 0.0464), (2.5525, 0.1463)),
    ("bank_marketing", "svm"): ((4.3823, 0.4436), (3.4369, 0.2530), (4.0244, 0.0164)),
    ("adult", "logistic"): ((5.5745, 0.2935), (5.6445, 1.3096), (6.0535, 0.8091)),
    ("adult", "svm"): ((5.5361, 0.1949), (5.6057, 0.9550), (5.1442, 0.3852)),
}
_CLIENTS = {"syn-L-0.01-0.9": 48_000, "bank_marketing": 36_169, "adult": 32_561}


@figure(
    "fedsel-table-3",
    source="FedSel, Table 3 (Section 5.3)",
    title="Gain and loss of accuracy by private selection at epsilon 2",
    claim="What selection gains (1.8 to 8.6 points over PM) is much more than its share of the budget costs.",
    minutes=(0.7, 15.0),
)
def gain_and_loss(run: FigureRun) -> FigureResult:
    majority = {name: run.data(name).majority for name in _CLIENTS}
    compared, kept, rows = [], [], []
    for (name, model), printed in _PRINTED.items():
        if run.quick and model == "svm":
            continue
        clients = _CLIENTS[name]
        runs = Runs(run, data=name, clients=clients, batch=clients // 100, model=model, rate=1.0)
        some = [f"{each}-PM{end}" for each in _SELECTIONS for end in ("", "-C")]
        runs.add(methods("PM", *some), (2.0,))
        rows += [{"data": name, "model": model, **row} for row in runs.rows]
        for each, (gain, loss) in zip(_SELECTIONS, printed, strict=True):
            ours, spread, p = runs.gain(f"{each}-PM-C", "PM")
            what = f"{each} {{}}, {name}, {model}"
            # The control group spends mu epsilon more than it says.
            compared.append(Compared(what.format("gain"), gain, 100.0 * ours, 100.0 * spread, 2.2, 2.0))
            lost, spread, _ = runs.gain(f"{each}-PM-C", f"{each}-PM")
            compared.append(Compared(what.format("loss"), loss, 100.0 * lost, 100.0 * spread, 2.0, 2.0))
            kept.append((ours, p))
        area = runs.gain("PS-PM", "PM", "auc")
        compared.append(Compared(f"PS over PM, AUC, {name}, {model}", None, area[0], area[1], 2.0, 2.0))
        flat = runs.of("PM")
        compared.append(Compared(f"PM, {name}, {model}", None, fmean(flat), stdev(flat), 2.0, 2.0))
        compared.append(Compared(f"majority class, {name}", None, majority[name]))
    sure = sum(gain > 0.0 and p < 0.05 for gain, p in kept)
    return FigureResult(
        rows=rows,
        compared=compared,
        stand_in="KDD99 is left out. The generated set is drawn anew by its procedure.",
        honest="The '-C' methods of a gain spend 2.2, not 2: selection's share comes on top of the value's.",
        verdict=f"{sum(gain > 0.0 for gain, _ in kept)} of {len(kept)} gains are positive, {sure} with p < "
        f".05; "
        "at this rate PM is at or below the majority class on Adult and Bank, so that a part of a gain is "
        "falling less far: see AUC.",
        parameters={"rate": 1.0, "epsilon": 2.0},
    )


@figure(
    "fedsel-3-a",
    source="FedSel, Fig. 3 (a) (Section 5.3)",
    title="Delayed gradients against delayed steps",
    claim="Accumulating gradients learns better than accumulating steps (alpha g): what selection gains is "
    "not lost.",
    minutes=(0.4, 8.0),
)
def delayed(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    rate = 0.3  # Theorem 2 is about rates below 1
    runs = Runs(run, data="adult", rate=rate, rounds=200)
    some = ("PS",) if run.quick else _SELECTIONS
    names = [f"{each}-PM{end}" for each in some for end in ("", "-O")]
    runs.add(methods(*names), (2.0, 8.0) if run.quick else (0.5, 1.0, 2.0, 4.0, 8.0))
    compared = [
        Compared(f"{each}-PM over {each}-PM-O, {score}, epsilon 2", None, *runs.gain(
            f"{each}-PM", f"{each}-PM-O", score, epsilon=2.0
        )[:2], 2.0, 2.0)
        for each in some
        for score in ("accuracy", "auc")
    ]  # fmt: skip
    gain, _, p = runs.gain("PS-PM", "PS-PM-O", "auc", epsilon=2.0)
    return FigureResult(
        rows=runs.rows,
        draw=runs.draw(score="auc"),
        compared=[*compared, Compared("majority class", None, data.majority)],
        verdict=f"PS with delayed gradients against delayed steps, two epochs, rate {rate:g}: {gain:+.3f} "
        f"AUC "
        f"(p {p:.2g}); steps of alpha g are sent with the noise of numbers of [-1, 1].",
        parameters={"rate": rate, "epochs": 2},
    )


@figure(
    "fedsel-3-b",
    source="FedSel, Fig. 3 (b) (Section 5.3)",
    title="The share mu of the budget that selection gets",
    claim="mu = 0.1 is best and works no worse than PM at any budget; mu = 0.8 learns worse, with a larger "
    "spread.",
    minutes=(0.4, 8.0),
)
def shares(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    runs = Runs(run, data="adult", rate=1.0)
    mus = (0.1, 0.4, 0.8) if run.quick else (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
    for mu in mus:
        runs.add({f"PS-PM, mu {mu:g}": {**METHODS["PS-PM"], "mu": mu}}, (0.5, 2.0, 8.0))
    runs.add(methods("PM"), (0.5, 2.0, 8.0))
    compared = []
    for name in [f"PS-PM, mu {mu:g}" for mu in mus] + ["PM"]:
        for score in ("accuracy", "auc"):
            own = runs.of(name, score, epsilon=2.0)
            compared.append(Compared(f"{name}, {score}, epsilon 2", None, fmean(own), stdev(own), 2.0, 2.0))
    best = max(mus, key=lambda mu: fmean(runs.of(f"PS-PM, mu {mu:g}", "auc", epsilon=2.0)))
    worst = fmean(runs.of("PS-PM, mu 0.8", "auc", epsilon=2.0))
    small = fmean(runs.of("PS-PM, mu 0.1", "auc", epsilon=2.0))
    return FigureResult(
        rows=runs.rows,
        draw=runs.draw(score="auc"),
        compared=[*compared, Compared("majority class", None, data.majority)],
        verdict=f"By AUC at epsilon 2 the best share tried is {best:g}; mu .8 has {worst:.3f}, mu .1 "
        f"{small:.3f}.",
        parameters={"rate": 1.0},
    )


@figure(
    "fedsel-3-c",
    source="FedSel, Fig. 3 (c) (Section 5.3)",
    title="Batches of different sizes, the budget split by theta = 0.2",
    claim="Where the value gets sqrt(d log d/m) first, selection gains at every batch, and deviates less "
    "than PM.",
    minutes=(0.4, 8.0),
)
def batches(run: FigureRun) -> FigureResult:
    data = run.data("adult")
    rounds = 30  # as many for each: within the clients of one epoch
    runs = Runs(run, data="adult", rate=1.0, rounds=rounds, epsilon=4.0)
    some = ("PS",) if run.quick else _SELECTIONS
    chosen: dict[str, Any] = {f"{each}-PM": {**METHODS[f"{each}-PM"], "split": "free"} for each in some}
    sizes = (100, 325, 1000) if run.quick else (50, 100, 200, 325, 500, 1000)
    runs.add({**chosen, **methods("PM")}, sizes, "batch")
    compared, won = [], 0
    for size in sizes:
        gain, spread, _ = runs.gain("PS-PM", "PM", "auc", batch=size)
        won += gain > 0.0
        compared.append(Compared(f"PS-PM over PM, AUC, m = {size}", None, gain, spread, 4.0, 4.0))
        for name in ("PS-PM", "PM"):
            own = runs.of(name, batch=size)
            compared.append(Compared(f"{name}, accuracy, m = {size}", None, fmean(own), stdev(own), 4.0, 4.0))
    return FigureResult(
        rows=runs.rows,
        draw=runs.draw("batch", "auc"),
        compared=[*compared, Compared("majority class", None, data.majority)],
        verdict=f"By AUC, PS gains at {won} of {len(sizes)} batches ({rounds} rounds, epsilon 4).",
        parameters={"rate": 1.0, "epsilon": 4.0, "theta": 0.2, "rounds": rounds},
    )
