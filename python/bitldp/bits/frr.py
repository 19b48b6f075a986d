"""f-RR, the bit-aware randomizer of BitRand, on the bits of fixed-point numbers.

[BitRand] is "Bit-aware randomized response for local differential privacy in federated learning" (submitted
to ICLR 2022). Independent bits (l > 1) never beat a categorical or piecewise channel at equal exact epsilon:
they are here because the paper's users run them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Bits
from bitldp.base import checks
from bitldp.bits.fixed_point import FixedPointBits, of_unit
from bitldp.privacy import Calibration, Unit, calibrated

__all__ = ["FRR", "SymmetricRR", "frr_flips", "symmetric"]

_UNIT_IN_LAST_PLACE = 2.0**-53
_LARGE = 1e300  # 2 l times it is still a double; every law has reached its limit by then


def symmetric(losses: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Return p and q = 1 - p, exactly, of bits with ln(p/q) = loss.

    The larger of the two is formed first: subtracting it from 1 is exact. It stays below 1, so a finite
    budget never yields a certain bit.
    """
    large = np.minimum(0.5 + 0.5 * np.tanh(np.abs(losses) / 2.0), 1.0 - _UNIT_IN_LAST_PLACE)
    p = np.where(losses >= 0.0, large, 1.0 - large)
    return p.tolist(), (1.0 - p).tolist()


def frr_flips(features: int, bits: int, epsilon: float, *, bit_aware: bool = True) -> NDArray[np.float64]:
    """Return the flip probabilities of f-RR by its paper, for code words of any length.

    This is the law of `FRR` with ``calibration="paper"``, without a codec, for the values of l in the paper's
    figures.

    Parameters
    ----------
    features, bits : int
        r and l, 1 or more.
    epsilon : float
        The claimed epsilon of a record, finite, zero or more.
    bit_aware : bool
        Whether the exponent has the term i epsilon/l of bit i. Without it all bits are alike, and alpha is
        sqrt((epsilon + r l)/(2 r l)).

    Returns
    -------
    ndarray of float64, shape (bits,)
        q_i, from the sign on. The exact epsilon of a record is r times the sum of abs(ln(q_i/(1 - q_i))).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. Source: [BitRand], Eq. 2 with alpha at the upper end of Theorem 2.

    Examples
    --------
    >>> from bitldp.bits import frr_flips
    >>> frr_flips(1000, 10, 1.0).round(6)[:3].tolist()
    [0.293922, 0.315094, 0.337063]
    >>> frr_flips(1000, 64, 1.0, bit_aware=False).round(6)[[0, 63]].tolist()
    [0.414215, 0.414215]
    """
    count, length = checks.integer("features", features, 1), checks.integer("bits", bits, 1)
    losses = _frr_paper_losses(count, length, checks.budget("epsilon", epsilon), bool(bit_aware))
    return np.array(symmetric(losses)[1])


def _frr_paper_losses(features: int, bits: int, epsilon: float, aware: bool = True) -> NDArray[np.float64]:
    """Return ln(p_i/q_i) = -(ln alpha + i epsilon/l), alpha the upper end of Theorem 2 of [BitRand]."""
    epsilon = min(epsilon, _LARGE)
    steps = epsilon * np.arange(bits) / bits if aware else np.zeros(bits)
    log_sum = 2.0 * steps[-1] + math.log(math.fsum(np.exp(2.0 * (steps - steps[-1]))))
    log_alpha = 0.5 * (math.log(epsilon + features * bits) - math.log(2.0 * features) - log_sum)
    return -(log_alpha + steps)


@lru_cache(maxsize=64)
def _frr_channel(features: int, bits: int, epsilon: float, calibration: Calibration, unit: Unit) -> Bits:
    if calibration == "paper":
        p, q = symmetric(_frr_paper_losses(features, bits, epsilon))
        return Bits([p], [q], features)

    def build(target: float) -> Bits:
        # e_i = t (l - i)/l sums to t (l + 1)/2 over a feature
        per_feature = target / features if unit == "record" else target
        p, q = symmetric(2.0 * per_feature / (bits + 1) * np.arange(bits, 0, -1) / bits)
        return Bits([p], [q], features)

    return calibrated(build, epsilon, lambda channel: of_unit(channel, unit))


@dataclass(frozen=True, eq=False, repr=False)
class FRR(FixedPointBits):
    """f-RR of BitRand: flips bits of fixed-point numbers, the significant ones less often.

    Parameters
    ----------
    features : int
        Features r of a record.
    bits : int
        Bits l of a code word, 2 to 32: one sign, `integer_bits`, the rest fraction.
    integer_bits : int
        Integer bits m, 0 to l - 1. Values saturate at ``2**m - 2**(m + 1 - l)``.
    epsilon : float
        Privacy budget, finite, zero or more.
    calibration : {"exact", "paper"}
        "exact": the exact epsilon of one `unit` is at most `epsilon` (see Notes), with bit budgets in
        proportion to l - i. "paper": the flip probabilities of [BitRand], Eq. 2 with alpha at the upper end
        of Theorem 2. The paper's claim (`epsilon` for the whole record) does not hold. The guarantee shows by
        how much, and a `PrivacyClaimWarning` is issued.
    unit : {"record", "feature"}
        What an exact `epsilon` covers.
    sign : {"bitrand", "ldpfl"}
        Sign bit 1 or 0 for x >= 0.
    infinities : {"refuse", "saturate"}
        What to do with infinite values.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way: every bit may differ between them. No probability is nearer to 1
    than 1 - 2**-53, so the exact epsilon of a bit is at most 36.74, however large the budget. At equal exact
    epsilon, independent bits (l > 1) never beat a mechanism that releases a number as one symbol. Use this
    mechanism if you need its report format, or to compare with the paper.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.FRR(features=2, bits=8, integer_bits=1, epsilon=8.0)
    >>> codes = mechanism.randomize(np.array([[0.5, -1.25]]), rng=1)
    >>> codes.shape, codes.dtype
    ((1, 2), dtype('uint8'))
    >>> mechanism.guarantee.record <= 8.0
    True
    """

    def _bits(self) -> tuple[Bits, None]:
        return _frr_channel(self.features, self.bits, self.epsilon, self.calibration, self.unit), None

    def _bounds(self) -> dict[str, float]:
        return {"theorem_4_bound": self.error_bound()}

    def error_bound(self) -> float:
        """Return the bound of Theorem 4 of [BitRand] on the expected error: the sum of q_i times sensitivity.

        Returns
        -------
        float
            In units of `x`. The paper calls it the expected error; it is an upper bound (see
            `expected_error`). Its sensitivities are 2**(m + 1) for the sign and 2**(m - i) for bit i.
        """
        flips = self.probabilities()[0, :, 1]
        sensitivities = 2.0 ** (self.integer_bits - np.arange(self.bits, dtype=np.float64))
        sensitivities[0] = 2.0 ** (self.integer_bits + 1)
        return float(flips @ sensitivities)


@lru_cache(maxsize=64)
def _channel(features: int, bits: int, epsilon: float, unit: Unit) -> Bits:
    positions = features * bits if unit == "record" else bits

    def build(target: float) -> Bits:
        p, q = symmetric(np.full(bits, target / positions))
        return Bits([p], [q], features)

    return calibrated(build, epsilon, lambda channel: of_unit(channel, unit))


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricRR(FixedPointBits):
    """Symmetric randomized response of bits: every one kept with probability e^E/(1 + e^E), E = eps/(r l).

    Parameters
    ----------
    features, bits, integer_bits, epsilon : int, int, int, float
        As of `FRR`.
    calibration : {"exact", "paper"}
        The same law: the paper's Eq. 15 has its epsilon exactly.
    unit, sign, infinities : str
        As of `FRR`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way, in all of their r l bits. Source: Arachchige et al., "LDPFL", Eq.
    15, which its MOUE and UER are to improve on. `BitBudgets` has the best budgets of bits of one number.

    Examples
    --------
    >>> import bitldp
    >>> mechanism = bitldp.SymmetricRR(1024, epsilon=0.5)
    >>> round(mechanism.guarantee.record, 9)
    0.5
    """

    def _bits(self) -> tuple[Bits, None]:
        return _channel(self.features, self.bits, self.epsilon, self.unit), None
