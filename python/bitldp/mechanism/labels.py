"""Categories by their labels: what a mechanism of categories takes, and what its estimates carry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.codecs import Categories
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.means import MeanAccumulator
from bitldp.mechanism.reports import OneArray


class Labelled(OneArray):
    """Base of the mechanisms that take categories: integers from 0, or labels of a public dictionary.

    Not a dataclass: a subclass has the parameter, and gives it to `_name` while it is built. Reports are
    codes in either case; `decode` returns labels where there are any, and estimates carry them.
    """

    # Set on the instance, by _name; ClassVar keeps them out of the fields.
    _dictionary: ClassVar[Categories | None] = None
    _size: ClassVar[int]  # how many categories

    def _name(self, categories: Any) -> int:
        """Keep the labels, if that is what was given; return how many categories there are."""
        labelled = isinstance(categories, Categories)
        size: int = len(categories) if labelled else categories
        self._set(_dictionary=categories if labelled else None, _size=size)
        return size

    @property
    def labels(self) -> NDArray[Any] | None:
        """The labels of the categories by code, read-only; None where they are integers from 0."""
        return None if self._dictionary is None else self._dictionary.labels

    def _admit(self, x: Any) -> NDArray[Any]:
        return self._codes_of("x", x)

    def _codes_of(self, name: str, x: Any) -> NDArray[Any]:
        """Return categories as integers, whatever they came as; errors call the argument `name`."""
        if self._dictionary is not None:
            return self._dictionary._encode(name, x)
        values = checks.plain(name, x)
        if values.dtype == np.bool_:  # answers to a yes-or-no question
            return values.view(np.uint8)
        if values.dtype.kind in "USO":
            raise TypeError(
                f"{name}: must be an array of integers from 0, not {values.dtype}; {self._hint()}"
            )
        return values

    def _hint(self) -> str:
        """Return how labels are released."""
        return (
            f'for labels, give them in place of their number: {type(self).__name__}(["red", "green"], ...), '
            "or encode them by bitldp.Categories"
        )

    def _by_label(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return checked codes as labels, where there are any."""
        return codes if self._dictionary is None else self._dictionary.decode(codes)


def labelled(mechanism: Any, estimate: Estimate) -> Estimate:
    """Return an estimate with the labels of its mechanism, where it has any."""
    labels = getattr(mechanism, "labels", None)
    return estimate if labels is None else replace(estimate, labels=labels)


class LabelledCounts(CountAccumulator):
    """Counts of categories whose estimate carries their labels."""

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies; `labels` are those of the mechanism."""
        return labelled(self.mechanism, super().estimate(project=project))


class LabelledMeans(MeanAccumulator):
    """Means of noisy one-hot vectors whose estimate carries the labels of their entries."""

    def estimate(self) -> Estimate:
        """Estimate the frequencies; `labels` are those of the mechanism."""
        return labelled(self.mechanism, super().estimate())
