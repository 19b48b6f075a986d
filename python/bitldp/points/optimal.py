"""The release of a candidate with the least expected loss that an exact epsilon allows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bitldp._core import Matrix
from bitldp.mechanism.designed import Designed, DesignTable
from bitldp.points.candidates import Losses, Members, Points, check_prior, of_members
from bitldp.points.matrix import CandidateMatrix

__all__ = ["OptimalUtility"]

_EXACT = 300  # candidates of a region whose program is solved as it is: 90,000 variables, some seconds
_MOST = 1024  # candidates of a region for which columns are generated
_LEAST, _LARGEST = 1e-3, 30.0  # budgets that a solver in double precision resolves


@lru_cache(maxsize=32)
def _solved(losses: bytes, count: int, epsilon: float, prior: bytes | None) -> Matrix:
    """Solve once for all mechanisms of these parameters."""
    from bitldp.design.optimal import least_loss, nearly_least_loss

    table = np.frombuffer(losses).reshape(count, count)
    weights = None if prior is None else np.frombuffer(prior)
    if count > _EXACT:
        return nearly_least_loss(table, epsilon, weights).channel
    return least_loss(table, epsilon, weights)


@dataclass(frozen=True, eq=False, repr=False)
class OptimalUtility(Designed, CandidateMatrix):
    """Optimal release: least expected loss of a released point, from a linear program (needs SciPy).

    Parameters
    ----------
    candidates : int or array_like
        N, 2 to 1024: the equidistant points 0 to N - 1 (or of `interval`; or 1 to N with
        ``utility="jaccard"``). Or the public points themselves: shape (N,) on a line, (N, d) in space; at
        most 1024 of them in a region.
    epsilon : float
        Privacy budget of one `unit`; that of one value must be from 1e-3 to 30.
    prior : array_like of float, shape (N,), optional
        Expected frequency of each candidate; public. Zero or more, in each region not all zero. None:
        uniform. It determines the law, not the guarantee, and `expected_error` is the mean over it.
    metric, interval, rounding, regions, features, unit
        As of `Exponential`.
    utility : {"jaccard"} or callable, optional
        In place of `metric`, where larger is better.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    MissingExtraError
        Without SciPy: ``pip install "bitldp[design]"``.
    DesignError
        If the solver fails; nothing is returned in its place.

    Notes
    -----
    Neighbouring records are any two candidates (of the same region, if there are regions). The optimum often
    never reports some candidates (with a small budget, all but one) and gives several inputs the same law;
    then no unbiased decode exists. Its expected loss is the least of all mechanisms with these candidates:
    within a relative 1e-6 up to 300 candidates, and within 0.3 % of a bound from the dual program
    (`bitldp.design.optimal`) for more. `BRR` with the best m has 1.07 to 1.30 times its expected loss on
    equidistant points, and needs no solver. Solving takes 0.01 s for 20 candidates, 0.3 s for 100 and up to
    10 s for 300. For 1000 candidates of a line the search takes 2 to 4 s, and up to half a minute with an
    uneven prior.

    A different solver version may find a different table with the same loss. Share one mechanism between
    client and server as a pickle, which holds the table; `fingerprint` identifies it.

    The sampler reads the table row that the input selects. With more than 32 candidates this is not
    constant-time.

    Examples
    --------
    >>> import bitldp
    >>> mechanism = bitldp.OptimalUtility(20, epsilon=1.0)
    >>> round(mechanism.expected_error(), 4), round(bitldp.BRR(20, epsilon=1.0).expected_error(), 4)
    (4.2599, 4.8715)
    """

    _: KW_ONLY
    prior: Any = None

    def _check(self) -> None:
        self._set(prior=check_prior(self.prior))

    def _channel(self, points: Points, members: Members, losses: Losses, epsilon: float) -> Matrix:
        if len(members) > _MOST:
            raise ValueError(f"candidates: at most {_MOST} in a region, got {len(members)}")
        if not _LEAST <= epsilon <= _LARGEST:
            raise ValueError(
                f"epsilon: {_LEAST} to {_LARGEST} for one value, as the solver resolves, got {epsilon}"
            )
        chosen = of_members(self.prior, members, len(points))
        prior = None if chosen is None else chosen.tobytes()
        table = np.ascontiguousarray(losses).tobytes()
        made = self._table(lambda: DesignTable(_solved(table, len(members), epsilon, prior), None))
        return made.channel

    def _expected(self) -> float:
        if self.prior is None:
            return super()._expected()
        order = np.concatenate([part.members for part in self._regions])
        return float(np.average(self._errors(), weights=self.prior[order]))
