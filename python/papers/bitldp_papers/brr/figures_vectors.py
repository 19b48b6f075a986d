"""BRR, Figure 10: networks trained on records whose features were perturbed once (DNN-DP)."""

from __future__ import annotations

from functools import lru_cache
from statistics import fmean, stdev
from typing import Any

import numpy as np

from bitldp_papers.brr.settings import WITHOUT, BRRSettings, privacy
from bitldp_papers.brr.system import SYSTEM
from bitldp_papers.figures import Compared, FigureRun, FigureResult, figure
from bitldp_papers.figures.drawing import lines
from bitldp_papers.models import nets
from bitldp_papers.run.share import loaded, shuffled

_DATA = ("adult", "bank_marketing")
_NAMES = ("brr", "laplace", WITHOUT)


@lru_cache(maxsize=512)
def _scores(settings: BRRSettings, records: int) -> dict[str, float]:
    """Return accuracy and AUC of a network that was trained on the released features of some records."""
    data, train, test = loaded(settings.data)
    some = shuffled(len(train), settings.seed)[:records]
    x = train[some]
    if settings.private:
        mechanism = settings.build(x.shape[1], 1)
        x = np.asarray(mechanism.decode(mechanism.randomize(x, rng=settings.seed)), np.float32)
    model = nets.initial((x.shape[1], settings.hidden, settings.hidden, 2), settings.seed)
    words = {"epochs": settings.epochs, "batch": settings.batch, "rate": settings.rate}
    model = nets.train(model, x, data.train_labels[some], seed=settings.seed, **words)  # type: ignore[arg-type]
    return nets.judged(nets.logits(model, test), data.test_labels)


@figure(
    "brr-10",
    source="BRR, Fig. 10 (Section 5.6)",
    title="Networks on perturbed records, BRR against Laplace (Adult, Bank)",
    claim="BRR is above Laplace at every epsilon of .25 to 3.5: 3.22 % on average on Adult, 5.29 % at .25.",
    minutes=(0.6, 8.0),
)
def records(run: FigureRun) -> FigureResult:
    budgets = (0.25, 1.0, 3.5) if run.quick else (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
    count = 8000 if run.quick else 1 << 20
    given: dict[str, Any] = {"task": "vectors", "hidden": 64, "epochs": 5, "batch": 100, "rate": 0.02}
    rows: list[dict[str, Any]] = []
    majority, exact = {}, {}
    for data in _DATA:
        loaded_set = run.data(data)
        majority[data] = loaded_set.majority
        size = loaded_set.train.shape[1]
        for name in _NAMES:
            for epsilon in run.each(list(budgets if name != WITHOUT else budgets[:1]), f"{data} {name}"):
                for seed in run.seeds:
                    words = {**given, "data": data, "mechanism": name, "epsilon": epsilon, "seed": seed}
                    settings = SYSTEM.configure(**words)
                    assert isinstance(settings, BRRSettings)
                    key = f"{settings} {count}"
                    found = run.cached(key, lambda s=settings: _scores(s, count))  # type: ignore[misc]
                    own = {"data": data, "mechanism": name, "epsilon": None if name == WITHOUT else epsilon}
                    rows.append({**own, "seed": seed, **found})
                    if name != WITHOUT:
                        spent = privacy(settings, size, 1, covers="", not_covered="")
                        exact[data, epsilon] = spent.record

    def of(data: str, name: str, epsilon: float | None, score: str = "accuracy") -> list[float]:
        where = (data, name, epsilon)
        return [row[score] for row in rows if (row["data"], row["mechanism"], row["epsilon"]) == where]

    compared, gains = [], {}
    for data in _DATA:
        for epsilon in budgets:
            for score in ("accuracy", "auc"):
                pairs = zip(of(data, "brr", epsilon, score), of(data, "laplace", epsilon, score), strict=True)
                each = [a - b for a, b in pairs]
                gains[data, epsilon, score] = fmean(each)
                paper = 0.0529 if (data, epsilon, score) == ("adult", 0.25, "accuracy") else None
                what = f"BRR over Laplace, {data}, {score}, epsilon {epsilon:g}"
                cost = exact[data, epsilon]
                compared.append(Compared(what, paper, fmean(each), stdev(each), cost, epsilon))
        plain = of(data, WITHOUT, None)
        compared.append(Compared(f"without noise, {data}", None, fmean(plain), stdev(plain)))
        compared.append(Compared(f"majority class, {data}", None, majority[data]))
    mean = fmean(gains["adult", epsilon, "accuracy"] for epsilon in budgets)
    compared.insert(0, Compared("BRR over Laplace, adult, mean over epsilon", 0.0322, mean))
    above = sum(gain > 0.0 for (_, _, score), gain in gains.items() if score == "auc")

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(7.4, 4.2)
        for axes, data in zip(canvas.subplots(1, 2), _DATA, strict=True):
            shown = {
                name: (budgets, [fmean(of(data, name, epsilon, "auc")) for epsilon in budgets])
                for name in ("brr", "laplace")
            }
            spread = {
                name: [stdev(of(data, name, epsilon, "auc")) for epsilon in budgets]
                for name in ("brr", "laplace")
            }
            shown["without noise"] = (budgets, [fmean(of(data, WITHOUT, None, "auc"))] * len(budgets))
            lines(axes, shown, spread=spread, xlabel="epsilon a feature", ylabel="AUC", title=data)

    return FigureResult(
        rows=rows,
        draw=draw,
        compared=compared,
        honest="At a record's epsilon of 3.5 a feature of Adult gets .03; labels train as they are in "
        "either case.",
        stand_in="one-hot features: 108 of Adult (the paper counts 14), 51 of Bank (20)",
        verdict=f"BRR is above Laplace by AUC at {above} of {len(_DATA) * len(budgets)} settings, by "
        f"accuracy on Adult "
        f"{mean:+.3f} on average (majority class {majority['adult']:.3f}); a record costs exact "
        f"{exact['adult', 1.0]:.0f} at claimed 1. In the authors' public code the noise is +-.1 whatever "
        "epsilon is, so that their curve comes from no mechanism with that epsilon.",
        parameters={**given, "records": count},
    )
