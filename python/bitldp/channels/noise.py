"""Symmetric integer noise as integer weights over 2^64, for the channel `Shift`.

Every law here is computed in decimal arithmetic of 60 digits, whose results are the same on every platform.
A weight is its real value, rounded; what is missing to 2^64 is made up for where it matters least.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import TypeAlias

from bitldp.privacy import ONE

__all__ = ["gaussian_weights", "geometric_weights", "is_log_concave", "skellam_chances", "skellam_weights"]

Real: TypeAlias = "float | Decimal"

_UNITS = Decimal(ONE)
_CONTEXT = decimal.Context(
    prec=60, rounding=decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[]
)
_MOST = (1 << 15) - 1  # the largest reach: 65,535 weights
_ROUNDS = 8  # of scaling up for what the tails were lowered by; two or three do
_FAINT = Decimal(10) ** -30  # of the first of a tail: what of it is left out
_START = 60.0  # how far above its last term the recurrence for Skellam starts: e^-120 of its value


def geometric_weights(rate: Real, reach: int) -> list[int]:
    """Return the weights of two-sided geometric noise, e^(-rate |k|), with its tails lumped at the ends.

    Parameters
    ----------
    rate : float or Decimal
        Above zero, taken exactly.
    reach : int
        K, 1 to 32767: the noise is from -K to K.

    Returns
    -------
    list of int
        2 K + 1 weights that sum to 2^64: with a = e^-rate, that of k is 2^64 (1 - a)/(1 + a) a^abs(k), and
        that of both ends the whole tail, 2^64 a^K/(1 + a).

    Notes
    -----
    All are rounded up, so that none is 0 and no small one is less likely than it should be. The excess, at
    most one unit a weight, is taken off the larger of the middle and the ends.
    """
    _check(reach)
    with decimal.localcontext(_CONTEXT):
        fading = (-Decimal(rate)).exp()
        share = _UNITS / (1 + fading)
        powers = [Decimal(1)]
        for _ in range(reach):
            powers.append(powers[-1] * fading)
        middle = share * (1 - fading)
        half = [_up(middle * power) for power in powers[:-1]]
        half.append(_up(share * powers[-1]))
    excess = half[0] + 2 * sum(half[1:]) - ONE
    half[0] -= excess & 1
    excess -= excess & 1
    if half[reach] > half[0]:
        half[reach] -= excess // 2
    else:
        half[0] -= excess
    return _mirrored(half)


def gaussian_weights(sigma: Real, reach: int, *, lumped: bool = False) -> list[int]:
    """Return the weights of discrete Gaussian noise, e^(-k^2/(2 sigma^2)), for abs(k) <= reach.

    Parameters
    ----------
    sigma : float or Decimal
        Above zero, taken exactly.
    reach : int
        K, 1 to 32767: the noise is from -K to K.
    lumped : bool
        Whether -K and K stand for the whole tails. Cut off otherwise.

    Returns
    -------
    list of int
        2 K + 1 weights that sum to 2^64 and are exactly log-concave (`is_log_concave`); where they are
        lumped, each is the nearest integer, and so is each tail.

    Raises
    ------
    ValueError
        If sigma is so large that weights in units of 2^-64 cannot be log-concave (above about 10^4).

    Notes
    -----
    Each is within one unit of its real value while that is above some sigma^2 units. Farther out, where one
    unit is more than the curvature of the law, a weight is lowered if log-concavity needs it. Source:
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
    """
    _check(reach)
    with decimal.localcontext(_CONTEXT):
        step = (-1 / (2 * Decimal(sigma) ** 2)).exp()
        factor, square = step, step * step
        law = [Decimal(1)]
        for _ in range(reach):
            law.append(law[-1] * factor)  # k^2 grows by 2 k + 1
            factor *= square
        if not lumped:
            return _log_concave("sigma", law)
        each = law[-1]
        while each > law[-1] * _FAINT:
            each *= factor
            factor *= square
            law[-1] += each
        return _rounded("sigma", law)


def skellam_weights(mu: Real, reach: int, *, lumped: bool = False) -> list[int]:
    """Return the weights of Skellam noise, a difference of two Poisson(mu), for abs(k) <= reach.

    Parameters
    ----------
    mu : float or Decimal
        Mean of either Poisson number, above zero, taken exactly: the variance of the noise is 2 mu.
    reach, lumped
        As of `gaussian_weights`.

    Returns
    -------
    list of int
        As of `gaussian_weights`.

    Raises
    ------
    ValueError
        If mu is so large that weights in units of 2^-64 cannot be log-concave (above about 10^8).

    Notes
    -----
    The chances are those of `skellam_chances`; rounding is that of `gaussian_weights`.
    """
    _check(reach)
    law = skellam_chances(mu, reach)
    with decimal.localcontext(_CONTEXT):
        if not lumped:
            return _log_concave("mu", law)
        law[-1] += (1 - law[0] - 2 * sum(law[1:], Decimal(0))) / 2
        return _rounded("mu", law)


def skellam_chances(mu: Real, reach: int) -> list[Decimal]:
    """Return the chances of 0, ..., reach of Skellam noise, a difference of two Poisson(mu).

    Parameters
    ----------
    mu : float or Decimal
        As of `skellam_weights`.
    reach : int
        Zero or more.

    Returns
    -------
    list of Decimal
        P(k) = e^(-2 mu) I_k(2 mu), with a relative error below e^-100; what is missing to one is that of
        the two tails.

    Notes
    -----
    The recurrence of the modified Bessel function, ``I_(k-1) = I_(k+1) + (k/mu) I_k``, is stable from above
    (Miller's algorithm); it starts where the law has fallen by another e^-60.
    """
    # The sum of all, which the chances are divided by, needs those beyond a small reach, too.
    start = max(reach, int(12.0 * (2.0 * float(mu)) ** 0.5)) if reach else 0
    fallen = 0.0
    while fallen < _START:  # I_(k+1)/I_k is below e^-asinh(k/(2 mu)), and asinh(t) above 0.88 min(1, t)
        start += 1
        fallen += 0.88 * min(1.0, start / (2.0 * float(mu)))
    with decimal.localcontext(_CONTEXT):
        mean = Decimal(mu)
        above, here = Decimal(0), Decimal(1)
        law, tail = [], Decimal(0)
        for k in range(start, 0, -1):
            if k > reach:
                tail += here
            else:
                law.append(here)
            above, here = here, above + here * k / mean
        law.append(here)
        whole = here + 2 * (tail + sum(law[:-1], Decimal(0)))
        return [each / whole for each in reversed(law)]


def is_log_concave(weights: list[int]) -> bool:
    """Tell whether the square of each weight is at least the product of its neighbours, without gaps.

    Then noise that is shifted farther is told apart better, by every hockey-stick divergence: the likelihood
    ratio of a shift is monotone, so the best test is a threshold, and a larger shift moves more beyond it.
    """
    first = next(index for index, weight in enumerate(weights) if weight)
    last = len(weights) - next(index for index, weight in enumerate(reversed(weights)) if weight)
    inside = weights[first:last]
    return all(inside) and all(
        b * b >= a * c for a, b, c in zip(inside[:-2], inside[1:-1], inside[2:], strict=True)
    )


def _log_concave(name: str, law: list[Decimal]) -> list[int]:
    """Return weights in proportion to `law`, half of a symmetric one from its middle on."""
    unit = _UNITS / (law[0] + 2 * sum(law[1:], Decimal(0)))
    for _ in range(_ROUNDS):
        half = [int((unit * each).to_integral_value()) for each in law]
        for k in range(2, len(half)):
            # As the ratio of neighbours must not rise again, none may be above what the two before it allow.
            half[k] = min(half[k], half[k - 1] * half[k - 1] // half[k - 2] if half[k - 2] else 0)
        missing = ONE - half[0] - 2 * sum(half[1:])
        if abs(missing) <= len(half):
            break
        unit *= 1 + Decimal(missing) / ONE
    half[0] += missing
    weights = _mirrored(half)
    if half[0] <= 0 or not is_log_concave(weights):
        raise ValueError(f"{name}: too large for log-concave weights in units of 2**-64")
    return weights


def _rounded(name: str, law: list[Decimal]) -> list[int]:
    """Return the nearest weights to half of a symmetric `law`; its middle takes the rest."""
    unit = _UNITS / (law[0] + 2 * sum(law[1:], Decimal(0)))
    half = [int((unit * each).to_integral_value()) for each in law]
    half[0] += ONE - half[0] - 2 * sum(half[1:])
    if half[0] < half[1]:
        raise ValueError(f"{name}: too large for weights in units of 2**-64")
    return _mirrored(half)


def _check(reach: int) -> None:
    if not 1 <= reach <= _MOST:
        raise ValueError(f"reach: must be between 1 and {_MOST}, got {reach}")


def _up(value: Decimal) -> int:
    return int(value.to_integral_value(decimal.ROUND_CEILING))


def _mirrored(half: list[int]) -> list[int]:
    return half[:0:-1] + half
