"""Skellam noise on a grid: integers of a fixed width, with (epsilon, delta) from their exact law."""

from __future__ import annotations

from dataclasses import dataclass

from bitldp.channels.noise import skellam_weights
from bitldp.compression.ball._additive import Additive

__all__ = ["Skellam"]


@dataclass(frozen=True, eq=False, repr=False)
class Skellam(Additive):
    """Skellam mechanism: a vector of an l2 ball on an integer grid with Skellam noise, with a delta.

    Parameters
    ----------
    features : int
        Coordinates of a record, d.
    epsilon : float
        Privacy of a record, above zero.
    delta : float
        Delta of a record, above 0 and below 1.
    radius : float
        Radius of the l2 ball, above zero, in units of `x`.
    clip : bool
        Whether records outside the ball are scaled to it, or refused.
    output_bits : int
        Bits of a coordinate's report, 4 to 14: codes 0 to 2**output_bits - 2. More bits make a finer grid.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or an epsilon that needs a finer grid; the message names it.
    MissingExtraError
        Without the extra ``design``.

    Notes
    -----
    Neighbouring records are any two of the ball. The noise is the difference of two Poisson(mu) numbers, so
    its variance is 2 mu steps squared; the sum is clamped to the codes, which leaves 6 standard deviations of
    room and a bias below 1e-8 of one. `guarantee.record` is an upper bound: the Rényi divergences of the
    clamped integer law, exact for two grid points, a relaxed knapsack over the coordinates (`renyi`), and the
    conversion to (epsilon, delta). The grid is reached by unbiased dither, where the paper rounds with
    conditions (and a bias): the same coins in both records keep the cost of the dither small.

    Source: Agarwal, Kairouz and Liu, "The Skellam mechanism for differentially private federated learning",
    NeurIPS 2021. There, sums of many clients are released; here each report is private by itself.

    Examples
    --------
    >>> from bitldp.compression import Skellam
    >>> mechanism = Skellam(64, epsilon=4.0, delta=1e-5, output_bits=9)
    >>> mechanism.report_bits
    576
    """

    @staticmethod
    def _noise_law(half: float, reach: int) -> list[int]:
        return skellam_weights(half, reach)

    @property
    def mu(self) -> float:
        """Mean of either Poisson number, in steps: the variance of the noise is 2 mu steps squared."""
        return self._half
