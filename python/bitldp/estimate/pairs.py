"""Accumulator for records with features and a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bitldp.estimate.accumulators import Accumulated, Accumulator, CountAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.means import MeanAccumulator


class PairAccumulator(Accumulator):
    """Accumulators of the features and of the label of a record, updated together.

    Parameters
    ----------
    mechanism : Mechanism
        The composite mechanism.
    features : MeanAccumulator
        Accumulator of the first part of its reports.
    labels : CountAccumulator
        Accumulator of the second part.
    """

    kind = "pair"

    def __init__(self, mechanism: Accumulated, features: MeanAccumulator, labels: CountAccumulator) -> None:
        super().__init__(mechanism)
        self.features = features
        self.labels = labels

    def update(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        output: str = "codes",
        records: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Add a batch of reported features and labels, of equal length; `output` is that of the features."""
        before, n = self.features.kept(), self.features.n
        self.features.update(features, output=output, records=records, threads=threads)
        try:
            if self.features.n - n != np.size(labels):
                raise ValueError("labels: must be as many as there are records of features")
            self.labels.update(labels, threads=threads)
        except (TypeError, ValueError):
            self.features.restore(before)
            raise
        self.n = self.labels.n

    def merge(self, other: PairAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind.
        """
        self._same(other)
        self.features.merge(other.features)
        self.labels.merge(other.labels)
        self.n = self.labels.n

    def estimate(self, *, project: bool = False) -> tuple[Estimate, Estimate]:
        """Estimate the means of the features and the frequencies of the labels.

        Raises
        ------
        ValueError
            If nothing has been accumulated.
        """
        return self.features.estimate(), self.labels.estimate(project=project)

    def _state(self) -> dict[str, Any]:
        return {"features": self.features._state(), "labels": self.labels._state()}

    def _restore(self, state: dict[str, Any]) -> None:
        features, labels = state.get("features"), state.get("labels")
        if (
            not isinstance(features, dict)
            or not isinstance(labels, dict)
            or features.get("n") != labels.get("n")
        ):
            raise ValueError("text: the contents are damaged")
        self.features._restore(features)
        self.labels._restore(labels)
        self.n = self.labels.n
