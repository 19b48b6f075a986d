"""Runs of FedSel that figures compare: each method at each budget over the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean, stdev
from typing import Any

from bitldp_papers.fedsel.settings import FedSelSettings
from bitldp_papers.fedsel.simulated import descend
from bitldp_papers.fedsel.system import SYSTEM
from bitldp_papers.figures import FigureRun
from bitldp_papers.figures.drawing import lines
from bitldp_papers.run.many import paired

__all__ = ["METHODS", "Runs", "methods"]

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


def methods(*names: str) -> dict[str, dict[str, Any]]:
    """Return the settings of some methods by name."""
    return {name: METHODS[name] for name in names}


@lru_cache(maxsize=4096)
def _scored(settings: FedSelSettings) -> dict[str, float]:
    return descend(settings)[-1]


class Runs:
    """Scores of methods over the seeds of a figure, kept as rows of a table.

    Parameters
    ----------
    run : FigureRun
    **common
        Settings of all runs, on top of the preset "paper".
    """

    def __init__(self, run: FigureRun, **common: Any) -> None:
        self._run, self._common = run, common
        self.rows: list[dict[str, Any]] = []

    def add(
        self,
        chosen: Mapping[str, Mapping[str, Any]],
        values: Sequence[Any],
        key: str = "epsilon",
        **more: Any,
    ) -> None:
        """Run every method with every value of a setting, each with all seeds."""
        for name, words in chosen.items():
            for value in self._run.each(list(values), name):
                for seed in self._run.seeds:
                    given = {**self._common, **more, **words, key: value, "seed": seed}
                    if name.endswith("-C"):
                        given["epsilon"] = given.get("epsilon", FedSelSettings.epsilon) * (1.0 + MU)
                    settings = SYSTEM.configure(preset="paper", **given)
                    assert isinstance(settings, FedSelSettings)
                    found = self._run.cached(str(settings), lambda s=settings: _scored(s))  # type: ignore[misc]
                    label = {"method": name, key: value, **more, "seed": seed}
                    self.rows.append({**label, "accuracy": found["accuracy"], "auc": found["auc"]})

    def of(self, method: str, score: str = "accuracy", **where: Any) -> list[float]:
        """Return the scores of a method by seed, of the rows that have the given values."""
        return [
            row[score]
            for row in self.rows
            if row["method"] == method and all(row.get(name) == value for name, value in where.items())
        ]

    def gain(
        self, method: str, over: str, score: str = "accuracy", **where: Any
    ) -> tuple[float, float, float]:
        """Return the mean difference of two methods, its deviation between seeds, and a paired test's p."""
        own, other = self.of(method, score, **where), self.of(over, score, **where)
        each = [a - b for a, b in zip(own, other, strict=True)]
        return fmean(each), stdev(each), paired(own, other)

    def draw(self, key: str = "epsilon", score: str = "accuracy", **where: Any) -> Callable[[Any], None]:
        """Return the drawing of every method's mean score, with its deviation, over a setting."""
        names = list(dict.fromkeys(row["method"] for row in self.rows))
        values = list(dict.fromkeys(row[key] for row in self.rows))

        def draw(canvas: Any) -> None:
            canvas.set_size_inches(5.6, 4.6)
            shown, spread = {}, {}
            for name in names:
                some = {value: self.of(name, score, **where, **{key: value}) for value in values}
                kept = [value for value in values if some[value]]
                shown[name] = (kept, [fmean(some[value]) for value in kept])
                spread[name] = [stdev(some[value]) for value in kept]
            lines(canvas.subplots(), shown, spread=spread, xlabel=key, ylabel=score)

        return draw
