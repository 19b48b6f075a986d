"""Register of the figures: a decorator, and the search for who uses it."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING

from bitldp.privacy import PrivacyClaimWarning

if TYPE_CHECKING:
    from bitldp_papers.figures.result import FigureResult
    from bitldp_papers.figures.running import FigureRun

__all__ = ["FigureEntry", "chosen", "figure", "figures", "order_of"]

_ROOT = "bitldp_papers"
_FIRST = ("bitrand", "ldpfl", "mvu", "fedsel", "brr")  # the others follow by name


@dataclass(frozen=True)
class FigureEntry:
    """One figure or table.

    Attributes
    ----------
    name : str
        What ``bitldp paper`` calls it: the paper, a dash, the number.
    source : str
        Paper and figure.
    title : str
    claim : str
        What the paper says of it, one sentence.
    minutes : tuple of float
        On two cores, in each form: quick, medium, full.
    make : callable
        From a `FigureRun` to an `FigureResult`.
    """

    name: str
    source: str
    title: str
    claim: str
    minutes: tuple[float, float, float]
    make: Callable[[FigureRun], FigureResult]

    @property
    def paper(self) -> str:
        """The first part of the name."""
        return self.name.partition("-")[0]


_entries: dict[str, FigureEntry] = {}

_Function = Callable[["FigureRun"], "FigureResult"]


def figure(
    name: str, *, source: str, title: str, claim: str, minutes: tuple[float, ...] = (0.1, 0.1, 0.1)
) -> Callable[[_Function], _Function]:
    """Register a function as a figure; the arguments are those of `FigureEntry`.

    Raises
    ------
    ValueError
        For a name that another figure has.
    """

    def register(make: _Function) -> _Function:
        if name in _entries:
            raise ValueError(f"name: two figures are called {name!r}")

        @wraps(make)
        def quiet(run: FigureRun) -> FigureResult:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyClaimWarning)  # a figure shows both epsilons
                return make(run)

        quick, full = minutes[0], minutes[-1]
        medium = minutes[1] if len(minutes) == 3 else min(full, max(quick, 15.0))
        _entries[name] = FigureEntry(name, source, title, claim, (quick, medium, full), quiet)
        return quiet  # also where it is called by its own name

    return register


def figures() -> dict[str, FigureEntry]:
    """Return every figure by its name, paper after paper, in the order of the papers' numbers.

    All modules of the papers whose names begin with "figures" are imported.
    """
    packages = {each.name for each in pkgutil.iter_modules(import_module(_ROOT).__path__) if each.ispkg}
    for package in sorted(packages - {"figures"}):
        path = f"{_ROOT}.{package}"
        for module in pkgutil.iter_modules(import_module(path).__path__):
            if module.name.startswith("figures"):
                import_module(f"{path}.{module.name}")
    return {name: _entries[name] for name in sorted(_entries, key=order_of)}


def order_of(name: str) -> tuple[int, str, list[tuple[int, str]]]:
    """Return what sorts the names of figures: paper after paper, in the order of the papers' numbers."""
    paper, _, rest = name.partition("-")
    position = _FIRST.index(paper) if paper in _FIRST else len(_FIRST)
    parts = [(int(part) if part.isdigit() else 1 << 20, part) for part in rest.split("-")]
    return position, paper, parts


def chosen(names: Sequence[str]) -> list[FigureEntry]:
    """Return the figures of some names; a paper's name stands for all of its figures.

    Raises
    ------
    ValueError
        For a name that is neither.
    """
    known = figures()
    chosen_entries: dict[str, FigureEntry] = {}
    for name in names:
        some = [each for each in known.values() if name in (each.name, each.paper)]
        if not some:
            similar = [each for each in known if each.startswith(name.partition("-")[0])]
            raise ValueError(f"no figure {name!r}; `bitldp paper list` shows them" + _like(similar))
        chosen_entries |= {each.name: each for each in some}
    return [each for name, each in known.items() if name in chosen_entries]


def _like(similar: Sequence[str]) -> str:
    return f"; there are {', '.join(similar)}" if similar else ""
