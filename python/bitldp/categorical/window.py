"""Base of GRR, label-RR and Warner's response: a window of one category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window
from bitldp.base import checks
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.frequencies import Labelled, TwoChances
from bitldp.mechanism.law import Experiment, Pair, Symbols, codes_of, of_rows
from bitldp.release.base import Call, Direct
from bitldp.release.window import WindowRelease


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalWindow(Labelled, TwoChances):
    """Base of the mechanisms that report the true category with p, any other with q."""

    takes: ClassVar[Takes | None] = "categories"
    sized_by: ClassVar[str | None] = "categories"
    usual_size: ClassVar[int] = 10

    # Set on the instance, by _build; ClassVar keeps them out of the dataclass' fields.
    _release: ClassVar[WindowRelease]
    _columns: ClassVar[int] = 1

    @property
    def channel(self) -> Window:
        """The channel: its `high` is the law; mute at epsilon 0."""
        channel: Window = self._release.channel
        return channel

    @property
    def columns(self) -> int:
        """Categories of a record."""
        return self._columns

    @property
    def _cells(self) -> int:
        return self._release.alphabet

    @property
    def report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: as few bits a feature as tell its reports apart."""
        return ((self._columns, self._release.bits),)

    def symbols(self) -> tuple[Symbols, ...]:
        """Return the channels behind a report: one a feature."""
        laws = self._release.laws
        return (Symbols(laws, self._columns),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return categories to compare and the law of their reports; see `Mechanism.extremes`."""
        chosen = codes_of(pair, self._cells, None)
        if chosen is None:  # a record with different categories: its rows differ by feature
            return None
        return of_rows(self._release.row, self._cells, self._cells, chosen, self._columns)

    @property
    def _bound(self) -> bool:
        return type(self)._perturb is not CategoricalWindow._perturb

    def _shortcut(self) -> Direct | None:
        plain = type(self)._perturb is CategoricalWindow._perturb and self.labels is None
        return self._release.direct(self._columns) if plain else None

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        checks.records("x", x, self._columns)
        return self._release.randomize(x, call)

    def decode(self, reports: ArrayLike) -> NDArray[Any]:
        """Return the reported categories, checked to be in range: their labels, where there are any."""
        return self._by_label(checks.codes("reports", reports, self._cells))

    def _check_speaks(self) -> tuple[float, float]:
        """Return P(report v | v) and P(report v | another), from the integers of the channel."""
        if self._release.epsilon == 0.0:
            raise ValueError(
                f"{type(self).__name__}: no unbiased decode exists at epsilon 0, where all categories are "
                "reported alike"
            )
        return self._release.chances()

    def letters_on(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return what each report is worth where the categories are points, shape (categories,).

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        self._check_speaks()
        return self._release.letters_on(np.asarray(points, dtype=np.float64))

    def bias_on(self, points: ArrayLike) -> float:
        """Return how far the mean of a reported point may be from the true one."""
        return self._release.bias_on(np.asarray(points, dtype=np.float64))

    def facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the two probabilities and the errors of a frequency; see `Mechanism.facts`."""
        truth, other = self._release.chances()
        law = {"the_true_category": truth, "each_other_category": other}
        return {"probabilities": law, **super().facts(users)}

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one category: P[x, y] = P(report y | x), shape (categories, categories)."""
        return self._release.probabilities()
