"""EXP, PS and PE: private selection of a large coordinate.

Source: Liu, Cao, Yoshikawa and Chen, "FedSel: Federated SGD under Local Differential Privacy with Top-k
Dimension Selection", DASFAA 2020, Section 4.1 and Algorithms 2 to 4.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

from bitldp.base import checks
from bitldp.mechanism.parameters import Budget, Calibration, at_least
from bitldp.selection.base import MOST, Selection
from bitldp.selection.laws import exp_channel, pe_channel, ps_channel
from bitldp.selection.top import TopSelection

__all__ = ["EXP", "PE", "PS"]


@dataclass(frozen=True, eq=False, repr=False)
class EXP(Selection):
    """Exponential selection (EXP): a coordinate by the rank of its magnitude.

    That of rank z = 1..d has the weight e^(eps z/(d - 1)).

    Parameters
    ----------
    dimensions : int
        Coordinates d of a vector, 2 to 2**24.
    epsilon : float
        Privacy budget of a vector, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbours are any two vectors. The law is one of ranks: e^eps between the first and the last, whatever
    the numbers are, so Lemma 1 of the paper holds with equality. Weights are integers of 64 bits, which
    bounds the exact epsilon, however large the budget: 43 at d = 2, 34 at d = 10^6.

    The paper's Algorithm 2 takes O(d^2); here a rank is drawn by one 64-bit number and its coordinate
    found in O(d). The search is not constant-time.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.selection import EXP
    >>> EXP(5, epsilon=2.0).probabilities().round(3)
    array([0.058, 0.096, 0.158, 0.26 , 0.429])
    >>> EXP(3, epsilon=30.0).randomize(np.array([[0.5, -4.0, 1.0]]))
    array([1], dtype=uint8)
    """

    dimensions: Annotated[int, at_least(2, MOST)]
    epsilon: Budget

    def _build(self) -> None:
        self._finish(exp_channel(self.dimensions, self.epsilon))


@dataclass(frozen=True, eq=False, repr=False)
class PS(TopSelection):
    """Perturbed sampling (PS): one of the k largest with a chance, else one of the rest; the one to use.

    The chance is p = e^eps k/(d - k + e^eps k).

    Parameters
    ----------
    dimensions : int
        Coordinates d of a vector, 2 to 2**24.
    k : int
        How many coordinates count as large, 1 to d - 1.
    epsilon : float
        Privacy budget of a vector, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbours are any two vectors. Lemma 3 of the paper holds with equality. Of the three selections it is
    the one to take: at equal exact epsilon `PE` was never better, and `EXP` spreads its weight over all
    ranks. Weights are integers of 64 bits, which bounds the exact epsilon, however large the budget, at
    44.3 - ln(k).

    `estimate_frequencies` estimates the share of vectors that have each coordinate among their k largest.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.selection import PS
    >>> mechanism = PS(100, 10, epsilon=1.0)
    >>> mechanism.probabilities()[[0, -1]].round(6)
    array([0.008534, 0.023197])
    >>> mechanism.randomize(np.zeros((4, 100)), rng=1).shape
    (4,)
    """

    dimensions: Annotated[int, at_least(2, MOST)]
    k: int
    epsilon: Budget

    def _build(self) -> None:
        self._set(k=checks.integer("k", self.k, 1, self.dimensions - 1))
        self._finish(ps_channel(self.dimensions, self.k, self.epsilon))


@dataclass(frozen=True, eq=False, repr=False)
class PE(TopSelection):
    """Perturbed encoding (PE): randomized response on who is among the k largest, then one of them.

    Parameters
    ----------
    dimensions : int
        Coordinates d of a vector, 2 to 2**24.
    k : int
        How many coordinates count as large, 1 to d - 1.
    epsilon : float
        Privacy budget of a vector, finite, zero or more.
    calibration : {"exact", "paper"}
        "exact": a bit is kept with the `p` at which the exact epsilon of the selection is `epsilon`. "paper":
        p = e^eps/(1 + e^eps), for which Lemma 2 of the paper claims `epsilon`; the exact one is larger, by
        less than ln 2, and a `PrivacyClaimWarning` says so.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbours are any two vectors. Only one index leaves, so the d bits are not drawn one by one: by symmetry
    the index is each of the k largest with one probability, p E 1/(1 + Bin(k - 1, p) + Bin(d - k, 1 - p)),
    each other one with another, (1 - p) E 1/(1 + Bin(k, p) + Bin(d - k - 1, 1 - p)), and none (reported as
    `dimensions`) with (1 - p)^k p^(d - k), whatever the vector is. The integers that are sampled are those.

    The proof of Lemma 2 takes the number of ones to be the same for both vectors; it is not, which is the
    excess. Calibrated, `PE` was never better than `PS`.

    Examples
    --------
    >>> from bitldp.selection import PE
    >>> round(PE(100, 10, epsilon=4.0).p, 7)
    0.9805119
    """

    dimensions: Annotated[int, at_least(2, MOST)]
    k: int
    epsilon: Budget
    _: KW_ONLY
    calibration: Calibration = "exact"

    _p: ClassVar[float]

    def _build(self) -> None:
        self._set(k=checks.integer("k", self.k, 1, self.dimensions - 1))
        channel, p = pe_channel(self.dimensions, self.k, self.epsilon, self.calibration)
        self._finish(channel)
        self._set(_p=p)

    @property
    def p(self) -> float:
        """Probability that a status bit of the paper's algorithm is kept."""
        return self._p
