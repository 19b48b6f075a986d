"""Methods of FedSel's experiments over the same seeds: scores, constants, and rates chosen on public data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from statistics import fmean
from typing import Any

import numpy as np

from bitldp_papers.data import Dataset, DatasetError, using
from bitldp_papers.fedsel.settings import FedSelSettings
from bitldp_papers.fedsel.system import SYSTEM, descend
from bitldp_papers.figures import FigureRun, MissingData
from bitldp_papers.figures.drawing import panels, score_name, scored
from bitldp_papers.run.share import loaded

__all__ = [
    "EQUAL",
    "METHODS",
    "MORE_RATES",
    "MU",
    "PUBLIC",
    "RATES",
    "Runs",
    "cohort",
    "constants",
    "methods",
    "odd_against_even",
    "public_rate",
]

MU = 0.1

#: Settings of the methods, named as in the paper's Table 2; "-C" gives the value the whole budget, and the
#: selection mu of it on top; "-O" accumulates steps in place of gradients.
METHODS: dict[str, dict[str, Any]] = {
    "NP": {"mechanism": "full"},
    "PM": {"mechanism": "flat", "values": "pm"},
    "HM": {"mechanism": "flat", "values": "hm"},
    "Duchi": {"mechanism": "flat", "values": "duchi"},
    "PM-RP": {"mechanism": "compressed", "values": "pm", "ratio": 0.1},
}
for _select in ("EXP", "PE", "PS"):
    METHODS[f"{_select}-PM"] = {"select": _select, "values": "pm"}
    METHODS[f"{_select}-PM-C"] = {"select": _select, "values": "pm", "mu": MU / (1.0 + MU)}
    METHODS[f"{_select}-PM-O"] = {"select": _select, "values": "pm", "delay": "steps"}
    METHODS[f"{_select}-HM"] = {"select": _select, "values": "hm"}
    METHODS[f"{_select}-Duchi"] = {"select": _select, "values": "duchi"}

#: Which rates the methods have: all the same, or each the one that is best on other, public data.
EQUAL, PUBLIC = "equal", "public"
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_FEW_RATES, MORE_RATES = (0.01, 0.03, 0.3, 1.0, 3.0), (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_CHOICE_SEEDS = (101, 102, 103)  # of the choice of a rate: never those of a figure
#: Where the rates of a set are chosen: on the first of these that there is.
_ELSEWHERE = {
    "adult": ("bank_marketing",),
    "bank_marketing": ("adult",),
    "syn-L-0.01-0.9": ("syn-L-0.1-0.6",),
}
_BUNDLED = "breast_cancer"


def methods(*names: str) -> dict[str, dict[str, Any]]:
    """Return the settings of some methods by name."""
    return {name: METHODS[name] for name in names}


def cohort(data: Dataset, most: int = 1 << 30) -> dict[str, int]:
    """Return the settings of one epoch of 100 rounds in which every record is a client."""
    clients = min(len(data.train), most)
    return {"clients": clients, "batch": -(-clients // 100)}


def constants(data: Dataset, model: str = "logistic") -> dict[str, float]:
    """Return the best scores on test records of a model that looks at no feature.

    Returns
    -------
    dict
        "accuracy" of the training part's majority class, "auc" .5, "loss" of the constant that is best on the
        training part.
    """
    share = float(np.mean(data.train_labels == 1))
    test = float(np.mean(data.test_labels == 1))
    if model == "svm":  # of constants c in [-1, 1] one of the ends is the best
        loss = 2.0 * (1.0 - test) if share > 0.5 else 2.0 * test
    else:
        loss = -(test * math.log(share) + (1.0 - test) * math.log(1.0 - share))
    return {"accuracy": data.majority, "auc": 0.5, "loss": loss}


@contextmanager
def odd_against_even(data: Dataset) -> Iterator[str]:
    """Let a set of several classes stand under a name of its own, odd class numbers against even ones."""
    halves = {name: getattr(data, name).astype(np.int64) % 2 for name in ("train_labels", "test_labels")}
    with using(replace(data, name=f"{data.name}, odd against even", classes=2, **halves)) as name:
        yield name


def elsewhere(run: FigureRun, name: str) -> str:
    """Return the set on which the rates for another are chosen.

    Raises
    ------
    MissingData
        Where none of them is there.
    """
    for other in (*_ELSEWHERE.get(name, ("adult", "bank_marketing")), _BUNDLED):
        try:
            loaded(other)
        except DatasetError as error:
            reason = str(error)
        else:
            if run.given is None:
                run.data(other)  # notes its checksums
            return other
    raise MissingData(reason)


@lru_cache(maxsize=4096)
def _scored(settings: FedSelSettings) -> dict[str, float]:
    return descend(settings)[-1]


def _settings(**given: Any) -> FedSelSettings:
    settings = SYSTEM.configure(preset="paper", **given)
    assert isinstance(settings, FedSelSettings)
    return settings


def public_rate(run: FigureRun, name: str, method: str, **common: Any) -> float:
    """Return the rate of `RATES` at which a method has the least loss on another set than `name`.

    Parameters
    ----------
    run : FigureRun
    name : str
        The set that is not looked at.
    method : str
        Of `METHODS`.
    **common
        Settings: epsilon (the rates of epsilon 2 are taken but in the full form), model, ...; every record of
        the other set is a client of one epoch.
    """
    other = elsewhere(run, name)
    rates = run.choose(quick=_FEW_RATES, medium=MORE_RATES, full=RATES)
    seeds = run.choose(quick=_CHOICE_SEEDS[:1], medium=_CHOICE_SEEDS[:2], full=_CHOICE_SEEDS)
    own = {k: v for k, v in common.items() if k not in ("clients", "batch", "rate")}
    if run.form != "full":
        own["epsilon"] = FedSelSettings.epsilon
    words = {**own, **METHODS[method], **cohort(loaded(other)[0]), "data": other}

    def loss(rate: float) -> float:
        return fmean(_scored(_settings(**words, rate=rate, seed=seed))["loss"] for seed in seeds)

    def losses() -> dict[str, float]:
        return {str(rate): loss(rate) for rate in rates}

    known = run.shared(f"fedsel rate {sorted(words.items())} {rates} {seeds}", losses)
    return float(min(known, key=lambda rate: known[rate]))


class Runs:
    """Scores of methods over the seeds of a figure, kept as rows of a table.

    Parameters
    ----------
    run : FigureRun
    data : str
        Name of the data set.
    **common
        Settings of all runs, on top of the preset "paper".
    """

    def __init__(self, run: FigureRun, data: str, **common: Any) -> None:
        self._run, self._data, self._common = run, data, common
        self.rows: list[dict[str, Any]] = []
        self.rates: dict[tuple[str, Any], float] = {}

    def add(
        self,
        chosen: Mapping[str, Mapping[str, Any]],
        values: Sequence[Any],
        key: str = "epsilon",
        *,
        rates: str = EQUAL,
        on: str = "",
        **more: Any,
    ) -> None:
        """Run every method with every value of a setting, each with all seeds.

        Parameters
        ----------
        chosen : mapping
            Settings of each method.
        values : sequence
            Of the setting `key`.
        rates : {"equal", "public"}
            "public": `public_rate` of each method (of a control group the method's) and budget.
        on : str
            The set whose public rates are taken; the runs' own by default.
        **more
            Settings.
        """
        for name, words in chosen.items():
            for value in self._run.each(list(values), f"{name}, {rates} rate"):
                given = {**self._common, **more, **words, key: value, "data": self._data}
                if name.endswith("-C"):
                    given["epsilon"] = given.get("epsilon", FedSelSettings.epsilon) * (1.0 + MU)
                if rates == PUBLIC:
                    base = name.partition(",")[0].removesuffix("-C")
                    budget = {k: v for k, v in {**self._common, **more, key: value}.items() if k != "mu"}
                    given["rate"] = public_rate(self._run, on or self._data, base, **budget)
                    self.rates[name, value] = given["rate"]
                for seed in self._run.seeds:
                    settings = _settings(**{**given, "seed": seed})
                    scores = self._run.cached(str(settings), lambda s=settings: _scored(s))  # type: ignore[misc]
                    label = {"method": name, "rates": rates, "rate": settings.rate, key: value, **more}
                    own = {score: scores[score] for score in ("accuracy", "auc", "loss")}
                    self.rows.append({**label, "seed": seed, **own})

    def of(self, method: str, score: str = "accuracy", rates: str = EQUAL, **where: Any) -> list[float]:
        """Return the scores of a method by seed, of the rows that have the given values."""
        where = {"rates": rates, **where}
        return [
            row[score]
            for row in self.rows
            if row["method"] == method and all(row.get(name) == value for name, value in where.items())
        ]

    def differences(
        self, method: str, over: str, score: str = "accuracy", rates: str = EQUAL, **where: Any
    ) -> list[float]:
        """Return by how much a method is better than another, by seed: of a loss, how much lower."""
        own, other = (self.of(each, score, rates, **where) for each in (method, over))
        sign = -1.0 if score == "loss" else 1.0
        return [sign * (a - b) for a, b in zip(own, other, strict=True)]

    def draw(
        self,
        constant: Mapping[str, float],
        key: str = "epsilon",
        *,
        without: Sequence[str] = ("NP",),
        **more: Any,
    ) -> Callable[[Any], None]:
        """Return the drawing of the methods' mean scores over a setting, with constants as lines.

        Parameters
        ----------
        constant : mapping
            As of `constants`.
        key : str
            The setting.
        without : sequence of str
            Methods whose score does not depend on it.
        **more
            Of `panels`.
        """
        values = list(dict.fromkeys(row[key] for row in self.rows))
        shown: dict[str, dict[str, Any]] = {}
        kinds = dict.fromkeys(row["rates"] for row in self.rows if row["method"] not in without)
        clean = {row["method"]: row["rates"] for row in self.rows if row["method"] in without}
        for rates in kinds:
            which = "one rate for all" if rates == EQUAL else "each at its public rate"
            mine = [row for row in self.rows if row["rates"] == rates and row["method"] not in without]
            names = list(dict.fromkeys(row["method"] for row in mine))
            for score in ("accuracy", "auc"):
                word = score_name(score)
                panel: dict[str, Any] = shown.setdefault(f"{word}, {which}", {})
                panel["constant"] = constant[score]
                for name in names:
                    some = {value: self.of(name, score, rates, **{key: value}) for value in values}
                    kept = [value for value in values if some[value]]
                    panel[name] = scored(kept, [some[value] for value in kept])
                for name, of_rates in clean.items():
                    panel[f"{name}, without noise"] = fmean(self.of(name, score, of_rates))
        high = 3.3 * -(-len(shown) // 2) + 0.9
        words: dict[str, Any] = {"size": (7.6, high), "columns": 2, "xlabel": key, **more}
        return panels(shown, **words)
