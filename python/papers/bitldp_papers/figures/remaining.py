"""How long figures took when they were recorded, and how long the rest of a run will take on this machine."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from bitldp_papers.figures.running import FORMS

if TYPE_CHECKING:
    from bitldp_papers.figures.registry import FigureEntry

__all__ = ["SECONDS", "Remaining", "minutes", "planned", "recorded"]

#: Seconds by figure and form, from the record of the last runs: of itself, and of steps that others share.
SECONDS = Path(__file__).with_name("seconds.json")
#: Seconds at the recorded speed that count like measured ones: the first figures are small.
_PRIOR = 5.0


@lru_cache(maxsize=1)
def _all() -> Mapping[str, Mapping[str, Sequence[float]]]:
    result: Mapping[str, Mapping[str, Sequence[float]]] = json.loads(SECONDS.read_text(encoding="utf-8"))
    return result


def recorded(name: str) -> dict[str, list[float]]:
    """Return the recorded seconds of a figure by form: of itself, and of shared steps that others made."""
    return {form: list(some) for form, some in _all().get(name, {}).items()}


def minutes(entry: FigureEntry, form: str) -> float:
    """Return the minutes of a figure: as recorded, else as its author says."""
    known = recorded(entry.name).get(form)
    return known[0] / 60.0 if known else entry.minutes[list(FORMS).index(form)]


def planned(entries: Sequence[FigureEntry], form: str) -> dict[str, float]:
    """Return the seconds that each of some figures will take, in their order, at the recorded speed.

    Steps that a figure shares count where no figure of the same paper is before it.
    """
    seconds: dict[str, float] = {}
    papers: set[str] = set()
    for each in entries:
        shared = recorded(each.name).get(form, [0.0, 0.0])[1]
        seconds[each.name] = 60.0 * minutes(each, form) + (0.0 if each.paper in papers else shared)
        papers.add(each.paper)
    return seconds


class Remaining:
    """Time that is left of a run of several figures.

    Parameters
    ----------
    seconds : mapping
        By figure, in their order: as in `planned`.
    clock : callable
        Returns seconds; of a test, its own.
    jobs : int
        Number of processes: papers are made side by side, the figures of each one after the other.

    Notes
    -----
    What is left at the recorded speed, times the measured time of what has ended over its recorded time. The
    last fifth of the work counts most, since other programs come and go.
    """

    def __init__(
        self, seconds: Mapping[str, float], clock: Callable[[], float] = time.monotonic, *, jobs: int = 1
    ) -> None:
        self._left = dict(seconds)
        self._clock = clock
        self._jobs = jobs
        self._under_way: dict[str, float] = {}
        self._measured = self._recorded = _PRIOR
        self._memory = max(0.2 * sum(self._left.values()), 1.0)

    def begins(self, name: str) -> None:
        """Note that a figure is being made from now on."""
        self._under_way[name] = self._clock()

    def ended(self, name: str, *, made: bool = True) -> None:
        """Note that a figure ended; one that was there already, or has no data, measures nothing."""
        expected, begun = self._left.pop(name, 0.0), self._under_way.pop(name)
        if made:
            fade = math.exp(-expected / self._memory)
            self._measured = fade * self._measured + self._clock() - begun
            self._recorded = fade * self._recorded + expected

    def seconds(self) -> float:
        """Return the seconds that are left."""
        now = self._clock()
        run = {name: now - begun for name, begun in self._under_way.items()}
        ratio = self._measured / self._recorded
        # Those that take longer than they should say that the others will, in part.
        late = [name for name in run if run[name] > ratio * self._left[name]]
        if late:
            ratio = (self._measured + sum(run[name] for name in late)) / (
                self._recorded + sum(self._left[name] for name in late)
            )
        papers: dict[str, float] = {}
        for name, expected in self._left.items():
            takes = ratio * expected
            if name in run:
                takes = max(takes - run[name], 0.1 * run[name])
            paper = name.partition("-")[0] if self._jobs > 1 else ""
            papers[paper] = papers.get(paper, 0.0) + takes
        return max(sum(papers.values()) / self._jobs, max(papers.values(), default=0.0))
