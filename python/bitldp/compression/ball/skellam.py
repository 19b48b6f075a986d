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
    output_bits : int, optional
        Bits of a coordinate's report, 4 to 16: codes 0 to 2**output_bits - 2. More bits make a finer grid.
        None: the least with which it costs no more than 1 % of the variance, 13 or 14 as a rule.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or a budget that needs a finer grid; the message names it.

    Notes
    -----
    Neighbouring records are any two of the ball, whose diameter is the sensitivity. The noise is the
    difference of two Poisson(mu) numbers, so its variance is 2 mu steps squared. The sum is clamped 5.5
    standard deviations beyond the ball (4.5 where epsilon is above 20), where a report stands for the mean of
    what is beyond: the bias is below 1e-7 of a deviation (`bias_bound`).

    Privacy: from the integers follows a c such that two inputs of a coordinate, dithered on the way, are told
    apart no better than normal laws whose means are c times their distance apart (`bitldp.channels.normal`).
    That composes over coordinates to the diameter of the ball, in any dimension, so `guarantee.record` is the
    analytic epsilon of Balle and Wang, "Improving the Gaussian mechanism for differential privacy",
    ICML 2018, at `gdp_mu`: within 1 % of the variance of continuous Gaussian noise up to an epsilon of 14,
    within 3 % at 20. From there on noise is not lowered further, since its tails have no chance in units of
    2**-64, and less than epsilon is spent.

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
        return skellam_weights(half, reach, lumped=True)

    @property
    def mu(self) -> float:
        """Mean of either Poisson number, in steps: the variance of the noise is 2 mu steps squared."""
        return self._half
