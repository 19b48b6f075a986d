"""The exponential mechanism over N candidates: the nearer to the truth, the likelier."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.mechanism.parameters import Calibration
from bitldp.points.candidates import Losses, Members, Points
from bitldp.points.matrix import CandidateMatrix
from bitldp.privacy import calibrated

__all__ = ["Exponential"]

_DOUBLINGS = 1100  # from any scale to one where a double's exponent ends
_STEPS = 200  # of the search for a scale; it takes about ten
_STEEPEST = 600.0  # budgets above are met by the law of this one, where weights are still normal doubles


def table(losses: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return the law with weights exp(-scale loss)."""
    weights = np.exp(-scale * (losses - losses.min(axis=1, keepdims=True)))
    return weights / weights.sum(axis=1, keepdims=True)


def loss_of(losses: NDArray[np.float64], scale: float) -> float:
    """Return the largest log-ratio in a column of that law, in floating point and without underflow."""
    shifted = -scale * (losses - losses.min(axis=1, keepdims=True))
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(np.max(logs.max(axis=0) - logs.min(axis=0)))


def largest_root(function: Callable[[float], float], target: float, start: float) -> float:
    """Return where a continuous function that starts at or below `target` and grows past it reaches it.

    Bracketing by doubling, then false position with the Illinois correction. Where the function never passes
    the target, the last point tried.
    """
    low, high = start, start
    above = function(high) - target
    below = above
    for _ in range(_DOUBLINGS):
        if above > 0.0 or not math.isfinite(2.0 * high):
            break
        low, below = high, above
        high *= 2.0
        above = function(high) - target
    if above <= 0.0:
        return high
    for _ in range(_STEPS):
        middle = high - above * (high - low) / (above - below)
        if not low < middle < high:
            middle = (low + high) / 2.0
        if not low < middle < high:
            break
        value = function(middle) - target
        if abs(value) <= 1e-14 * target:
            return middle
        if value > 0.0:
            high, above, below = middle, value, below / 2.0
        else:
            low, below, above = middle, value, above / 2.0
    return low


@dataclass(frozen=True, eq=False, repr=False)
class Exponential(CandidateMatrix):
    """Exponential mechanism: reports a candidate more often the nearer it is to the truth.

    A candidate at loss d from the truth has the weight exp(-s d).

    Parameters
    ----------
    candidates : int or array_like
        N, 2 to 2048: the equidistant points 0 to N - 1 (or of `interval`; or 1 to N with
        ``utility="jaccard"``). Or the public points themselves: shape (N,) on a line, (N, d) in space; at
        most 2048 of them in a region.
    epsilon : float
        Privacy budget of one `unit`, finite, zero or more.
    calibration : {"exact", "paper"}
        "exact": the scale s at which the exact epsilon of the integers is `epsilon`, or just below it.
        "paper": s = eps/(2 D), where D is the largest difference that the input makes to the loss of a
        report. The claim then holds with slack: on equidistant points, the exact epsilon is half of it.
    metric, interval, features, unit
        As of `BRR`.
    utility : {"jaccard"} or callable, optional
        In place of `metric`, where larger is better: the weight is exp(s utility).
    rounding : {"nearest", "dither"}
        How a real value becomes a candidate: the nearest one, or one of its two neighbours so that the mean
        is the value.
    regions : array_like, shape (N,), optional
        Public label of each candidate. A report stays in the region of its input, so the region is public.
        The guarantee is that of the worst region.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records are any two candidates (of the same region, if there are regions). The rows of the
    law have different normalisers, so its epsilon is neither s D nor 2 s D: s is found on the table itself.
    At equal exact epsilon on equidistant points, `BRR` with the best m has a smaller expected error, and
    `OptimalUtility` the smallest. Unlike with BRR, the rows of this law are independent, so you can estimate
    frequencies and means without bias. No probability is below 2**-64, so the exact epsilon of a value is at
    most 44.36, however large the budget. Sources: McSherry and Talwar, "Mechanism design via differential
    privacy", FOCS 2007; as a baseline, Zhang, Zhu, Chen and Hu, arXiv:2504.20926.

    The sampler reads the table row that the input selects. With more than 32 candidates this is not
    constant-time.

    Examples
    --------
    >>> import bitldp
    >>> mechanism = bitldp.Exponential(20, epsilon=1.0)
    >>> round(mechanism.guarantee.record, 9), round(mechanism.expected_error(), 3)
    (1.0, 5.631)
    >>> paper = bitldp.Exponential(20, epsilon=1.0, calibration="paper")
    >>> round(paper.guarantee.record, 6), round(paper.expected_error(), 3)
    (0.5, 6.129)
    """

    _: KW_ONLY
    calibration: Calibration = "exact"

    def _channel(self, points: Points, members: Members, losses: Losses, epsilon: float) -> Matrix:
        reach = float((losses.max(axis=0) - losses.min(axis=0)).max())  # D
        if reach == 0.0 or epsilon == 0.0:
            return Matrix(np.full(losses.shape, 1.0 / len(losses)))
        bounded = min(epsilon, _STEEPEST)
        if self.calibration == "paper":
            # McSherry and Talwar prove the claim: where it is reached, rounding must not pass it.
            return calibrated(
                lambda target: Matrix(table(losses, target / (2.0 * reach))),
                bounded,
                lambda channel: channel.epsilon,
            )
        result = largest_root(lambda scale: loss_of(losses, scale), bounded, bounded / (2.0 * reach))

        def build(target: float) -> Matrix:
            return Matrix(table(losses, result * (target / epsilon)))

        return calibrated(build, epsilon, lambda channel: channel.epsilon)
