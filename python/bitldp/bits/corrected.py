"""The "corrected" budgets of LATENT and OME, as [BitRand] states them: reported figures, not privacy.

[BitRand] is "Bit-aware randomized response for local differential privacy in federated learning" (submitted
to ICLR 2022), Appendices I and J. Neither theorem gives the exact epsilon of its mechanism: they are here
because the paper's baselines run on budgets that they correct, and its Figure 9 draws them.
"""

from __future__ import annotations

import math

from bitldp.base import checks

__all__ = ["latent_corrected_epsilon", "ome_corrected_epsilon", "spent_for"]

_HALVINGS = 80  # the factor is at most a million, so what is left of the interval is below the last place


def latent_corrected_epsilon(features: int, bits: int, epsilon: float, alpha: float) -> float:
    """Return the "corrected" epsilon of LATENT by Theorem 5 of [BitRand], for code words of any length.

    Parameters
    ----------
    features, bits : int
        r and l, 1 or more.
    epsilon : float
        Budget of the formula of `MOUE` with ``calibration="paper"``, finite, zero or more.
    alpha : float
        As of `MOUE`, above zero.

    Returns
    -------
    float
        (1 + a)(1 + a e^E)/(a (1 + e^E)) epsilon, E = epsilon/(r l). It is not the privacy of the mechanism,
        between any records: that is `MOUE.guarantee`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Examples
    --------
    >>> from bitldp.bits import latent_corrected_epsilon
    >>> round(latent_corrected_epsilon(1000, 10, 0.1, 7.0) / 0.1, 3)  # Figure 9a: the paper prints 4.57
    4.571
    """
    share, epsilon, alpha = _share(features, bits, epsilon, alpha)
    low = math.exp(-share)
    return (1.0 + alpha) / alpha * (low + alpha) / (low + 1.0) * epsilon


def ome_corrected_epsilon(features: int, bits: int, epsilon: float, alpha: float) -> float:
    """Return the "corrected" epsilon of OME by Theorem 6 of [BitRand], for code words of any length.

    Parameters
    ----------
    features, bits, epsilon, alpha : int, int, float, float
        As of `latent_corrected_epsilon`; the formula is that of `UER`.

    Returns
    -------
    float
        (r l/Q1 - r l/Q2) ln a + epsilon/(2 Q1) + epsilon/(2 Q2), where Q1 and Q2 are p(1 - q) + q(1 - p) at
        even and at odd positions. It is not the privacy of the mechanism, between any records: that is
        `UER.guarantee`. It is negative for alpha > 1 at usual budgets: the paper draws its modulus.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Examples
    --------
    >>> from bitldp.bits import ome_corrected_epsilon
    >>> ome_corrected_epsilon(1000, 10, 0.1, 1.0) / 0.1
    2.0
    """
    share, epsilon, alpha = _share(features, bits, epsilon, alpha)
    low = math.exp(-share)
    q = low / (low + alpha)
    even, odd = alpha / (1.0 + alpha), 1.0 / (1.0 + alpha**3)
    q1 = even * (1.0 - q) + q * (1.0 - even)
    q2 = odd * (1.0 - q) + q * (1.0 - odd)
    return features * bits * (1.0 / q1 - 1.0 / q2) * math.log(alpha) + epsilon * (0.5 / q1 + 0.5 / q2)


def spent_for(features: int, bits: int, epsilon: float, alpha: float) -> float:
    """Return the budget that Theorem 5 of [BitRand] corrects to `epsilon`; alpha must be 1 or more.

    Theorem 6 says the same where alpha is 1, and no more than a constant elsewhere. For alpha >= 1 the factor
    of epsilon in Theorem 5 does not fall, and is at least (1 + a)**2/(2 a), 2 or more: so there is one such
    budget, of at most half of `epsilon`, found by bisection from below.
    """
    low, high = 0.0, epsilon / 2.0
    if latent_corrected_epsilon(features, bits, high, alpha) <= epsilon:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if latent_corrected_epsilon(features, bits, middle, alpha) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _share(features: int, bits: int, epsilon: float, alpha: float) -> tuple[float, float, float]:
    count, length = checks.integer("features", features, 1), checks.integer("bits", bits, 1)
    budget = checks.budget("epsilon", epsilon)
    return budget / (count * length), budget, checks.positive("alpha", alpha)
