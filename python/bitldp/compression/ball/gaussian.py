"""Gaussian noise for records of an l2 ball: discrete, on a grid, with the analytic (epsilon, delta)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bitldp.channels.noise import gaussian_weights
from bitldp.compression.ball._additive import Additive

__all__ = ["BallGaussian"]


@dataclass(frozen=True, eq=False, repr=False)
class BallGaussian(Additive):
    """Gaussian mechanism for an l2 ball: a vector on an integer grid with discrete noise, with a delta.

    The mechanism of DP-SGD, as each client applies it by itself. `bitldp.numeric.Gaussian` is for records
    whose numbers may all move by the whole interval; here they may move within a ball.

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
    The analytic Gaussian mechanism: neighbouring records are any two of the ball, whose diameter is the
    sensitivity, and the noise is the least of Balle and Wang, "Improving the Gaussian mechanism for
    differential privacy", ICML 2018. Grid, clamp, dither and the proof behind `guarantee.record` are
    those of `bitldp.compression.Skellam`; the noise is the discrete Gaussian of Canonne, Kamath and Steinke,
    "The discrete Gaussian for differential privacy", NeurIPS 2020. Source of its use: Abadi et al.,
    "Deep learning with differential privacy", CCS 2016.

    Examples
    --------
    >>> from bitldp.compression import BallGaussian
    >>> mechanism = BallGaussian(64, epsilon=4.0, delta=1e-5, output_bits=9)
    >>> mechanism.report_bits
    576
    >>> mechanism.guarantee.record <= 4.0
    True
    """

    @staticmethod
    def _noise_law(half: float, reach: int) -> list[int]:
        return gaussian_weights(math.sqrt(2.0 * half), reach, lumped=True)
