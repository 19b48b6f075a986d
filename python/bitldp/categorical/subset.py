"""Subset selection: a report is a set of categories that likely holds the true one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Subset
from bitldp.categorical.supported import Supported
from bitldp.categorical.unary import BitStrings
from bitldp.design.blocks import subset_size
from bitldp.mechanism.law import Symbols
from bitldp.mechanism.parameters import Budget, CategoryNames, categories
from bitldp.privacy import ONE, Guarantee, calibrated
from bitldp.release.window import high_share

__all__ = ["SubsetSelection"]

_MOST = 4096  # categories: a subset is drawn one by one

_exact = attrgetter("epsilon")


@lru_cache(maxsize=64)
def _channel(count: int, epsilon: float) -> Subset:
    size = subset_size(count, epsilon, count)

    def build(target: float) -> Subset:
        # size/count is no multiple of 2^-64 unless count is a power of two: epsilon 0 leaves the input out
        return Subset(count, size, high_share(count, size, target), target == 0.0)

    return calibrated(build, epsilon, _exact)


@dataclass(frozen=True, eq=False, repr=False)
class SubsetSelection(BitStrings, Supported):
    """Subset selection: reports w of k categories; subsets with the true one are e^eps times as likely.

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories k, 2 to 4096: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget of a record, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    A report is a subset of w categories, as k bits. It contains the true category with probability p = w
    e^eps/(w e^eps + k - w), and any other one with probability q = (p (w - 1) + (1 - p) w)/(k - 1). The size
    w, near k/(e^eps + 1), minimises the mean variance, which is the lowest of all known mechanisms.
    `BlockDesign` reaches the same in about 2 log2(k) bits.

    Neighbouring records hold any two categories. No probability is nearer to 1 than 1 - 2**-53, so that the
    exact epsilon is at most 36.74 + ln((k - w)/w), however large the budget. Sources: Wang et al., "Mutual
    information optimally local private discrete distribution estimation", arXiv 1607.08025 (2016); Ye and
    Barg, "Optimal schemes for discrete distribution estimation under locally differential privacy", IEEE
    Trans. Inf. Theory 64 (2018).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.SubsetSelection(16, epsilon=1.0)
    >>> mechanism.size
    4
    >>> bits = mechanism.randomize(np.array([3, 3, 15]), rng=1)
    >>> bits.shape, bits.sum(axis=1).tolist()
    ((3, 16), [4, 4, 4])
    """

    categories: Annotated[CategoryNames, categories(_MOST)]
    _: KW_ONLY
    epsilon: Budget

    _channel: Subset = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        count = self._name(self.categories)
        if count > _MOST:  # labels, of which there may be more
            raise ValueError(f"categories: must be at most {_MOST}, got {count}; BlockDesign takes more")
        channel = _channel(count, self.epsilon)
        exact, w = channel.epsilon, channel.size
        p = Fraction(channel.high, ONE)
        q = (p * (w - 1) + (1 - p) * w) / (count - 1)
        self._set(
            _channel=channel,
            _law=(float(p), float(q), float(p * (w - 1) / (count - 1))),
            _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)),
        )

    @property
    def channel(self) -> Subset:
        """The channel: its `high` is the law; uninformative at epsilon 0."""
        return self._channel

    @property
    def size(self) -> int:
        """Categories of a report, w."""
        return self._channel.size

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of a report; none at epsilon 0."""
        return (Symbols((self._channel,), 1),) if self._channel.epsilon else ()

    def _doubt(self, n: int, counts: NDArray[np.int64]) -> str:
        """Count the ones: an honest report has w, neither more nor fewer."""
        ones = int(counts.sum())
        if ones == n * self.size:
            return ""
        return f"The reports hold {ones / n:.6g} ones each, but each should hold exactly {self.size}"

    def _support(self, reports: Any, categories: NDArray[np.int64]) -> NDArray[np.bool_]:
        return self._check_bits(reports)[..., categories] != 0
