"""MOUE and UER: unary-encoding ideas (OUE) on the bits of fixed-point numbers.

MOUE is the randomizer of LATENT, UER that of OME; both as [LDPFL] states them: "Local differential privacy
for federated learning in industrial settings" (Chamikara et al., 2022), Theorems 1 and 2. [BitRand] is
"Bit-aware randomized response for local differential privacy in federated learning" (submitted to ICLR 2022).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache

from bitldp import _checks
from bitldp._core import Bits, FixedPoint
from bitldp._fixed import FixedPointBits, Infinities, Sign, of_unit
from bitldp.privacy import Calibration, Unit, calibrated

__all__ = ["MOUE", "UER"]


def _check_alpha(alpha: float) -> float:
    value = _checks.positive("alpha", alpha)
    if not 1e-6 <= value <= 1e6:
        raise ValueError(f"alpha: must be between 1e-6 and 1e6, got {value}")
    return value


@lru_cache(maxsize=64)
def _moue_channel(
    features: int, bits: int, epsilon: float, alpha: float, calibration: Calibration, unit: Unit
) -> Bits:
    p = 1.0 / (1.0 + alpha)
    positions = features * bits if unit == "record" else bits
    if calibration == "paper":
        # q = 1/(1 + alpha e^E), as p minus the difference: nothing is lost at small E = epsilon/(r l)
        q = p - _paper_gap(p, alpha, epsilon / positions)
        return Bits([[p] * bits], [[q] * bits], features)

    def build(target: float) -> Bits:
        # The least q with p/q <= e^E and (1 - q)/(1 - p) <= e^E. The first binds where alpha >= 1 (then
        # q = 1/(1 + alpha e^delta), delta = ln(((1 + alpha) e^E - 1)/alpha)); the second where alpha < 1 and
        # E is small (e^delta = e^E/(1 + alpha - alpha e^E)).
        share = min(target / positions, 700.0)
        q = p - min(-p * math.expm1(-share), (1.0 - p) * math.expm1(share))
        return Bits([[p] * bits], [[max(q, 2.0**-60)] * bits], features)

    return calibrated(build, epsilon, lambda channel: of_unit(channel, unit))


def _paper_gap(p: float, alpha: float, share: float) -> float:
    """Return p - 1/(1 + alpha e^E) = p alpha (e^E - 1)/(1 + alpha e^E), divided through by e^E."""
    return p * alpha * -math.expm1(-share) / (math.exp(-share) + alpha)


@dataclass(frozen=True, eq=False, repr=False)
class MOUE(FixedPointBits):
    """MOUE (LATENT): every bit with p = 1/(1 + alpha), q = 1/(1 + alpha e^(epsilon/(r l))).

    Parameters
    ----------
    features, bits, integer_bits, epsilon : int, int, int, float
        As of `FRR`.
    alpha : float
        Above zero; the larger, the rarer are ones among the reports.
    calibration : {"exact", "paper"}
        "exact": q is chosen so that `epsilon` is the exact epsilon of one `unit`. "paper": Theorem 1 of
        [LDPFL], whose claim holds with slack.
    unit, sign, infinities : str
        As of `FRR`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. Exact epsilon of the paper's parameters: r l max(A, E - A) with
    E = epsilon/(r l), A = ln((1 + alpha e^E)/(1 + alpha)).
    """

    features: int
    _: KW_ONLY
    bits: int = 10
    integer_bits: int = 5
    epsilon: float
    alpha: float = 10.0
    calibration: Calibration = "exact"
    unit: Unit = "record"
    sign: Sign = "ldpfl"
    infinities: Infinities = "refuse"

    def _build(self) -> None:
        self._check_shape(self.features, self.bits, self.integer_bits, self.epsilon)
        self._check_words(self.calibration, self.unit, self.sign, self.infinities)
        self._set(alpha=_check_alpha(self.alpha))
        codec = FixedPoint(
            self.bits, integer_bits=self.integer_bits, sign=self.sign, infinities=self.infinities
        )
        channel = _moue_channel(
            self.features, self.bits, self.epsilon, self.alpha, self.calibration, self.unit
        )
        self._finish(channel, codec, self.epsilon, self.unit, None)

    def paper_reported_epsilon(self) -> float:
        """Return the "corrected" epsilon of Theorem 5 of [BitRand], as the paper reports it.

        Returns
        -------
        float
            (1 + a)(1 + a e^E)/(a (1 + e^E)) epsilon, E = epsilon/(r l). It is not the privacy of this
            mechanism; that is `guarantee`. Kept for comparison with the paper only.
        """
        share = self.epsilon / (self.features * self.bits)
        weight = (math.exp(-share) + self.alpha) / (math.exp(-share) + 1.0)
        return (1.0 + self.alpha) / self.alpha * weight * self.epsilon


@lru_cache(maxsize=64)
def _uer_channel(features: int, bits: int, epsilon: float, alpha: float) -> tuple[Bits, list[int] | None]:
    """Theorem 2 of [LDPFL], and the law of each feature.

    The parity is that of the 0-based position in the record's concatenated r*l bits, so every second feature
    starts at an odd position where l is odd.
    """
    one = 1.0 / (1.0 + alpha)
    q = one - _paper_gap(one, alpha, epsilon / (features * bits))
    even, odd = alpha / (1.0 + alpha), 1.0 / (1.0 + alpha**3)
    law = [even if place % 2 == 0 else odd for place in range(bits + 1)]
    if bits % 2 == 0 or features == 1:
        return Bits([law[:bits]], [[q] * bits], features), None
    pattern = [feature % 2 for feature in range(features)]
    return Bits([law[:bits], law[1:]], [[q] * bits] * 2, features, pattern), pattern


@dataclass(frozen=True, eq=False, repr=False)
class UER(FixedPointBits):
    """UER (OME): p = alpha/(1 + alpha) at even and 1/(1 + alpha^3) at odd positions, q as of MOUE.

    Parameters
    ----------
    features, bits, integer_bits, epsilon : int, int, int, float
        As of `FRR`.
    alpha : float
        Above zero. With alpha other than 1 no epsilon of the formula is the exact one.
    calibration : {"exact", "paper"}
        "paper": Theorem 2 of [LDPFL], whose claim fails; the guarantee shows by how much. "exact" exists for
        ``alpha=1`` only, where UER is MOUE, and is refused otherwise.
    unit, sign, infinities : str
        As of `FRR`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Positions are counted, from 0, over the r*l bits of the record, and start again at each record: with odd
    l, every second feature has even and odd exchanged. Neighbouring records differ in any way.
    """

    features: int
    _: KW_ONLY
    bits: int = 10
    integer_bits: int = 5
    epsilon: float
    alpha: float = 10.0
    calibration: Calibration = "exact"
    unit: Unit = "record"
    sign: Sign = "ldpfl"
    infinities: Infinities = "refuse"

    def _build(self) -> None:
        self._check_shape(self.features, self.bits, self.integer_bits, self.epsilon)
        self._check_words(self.calibration, self.unit, self.sign, self.infinities)
        self._set(alpha=_check_alpha(self.alpha))
        codec = FixedPoint(
            self.bits, integer_bits=self.integer_bits, sign=self.sign, infinities=self.infinities
        )
        if self.calibration == "paper":
            channel, pattern = _uer_channel(self.features, self.bits, self.epsilon, self.alpha)
        elif self.alpha == 1.0:
            channel = _moue_channel(self.features, self.bits, self.epsilon, 1.0, "exact", self.unit)
            pattern = None
        else:
            raise ValueError(
                f"calibration: 'exact' exists for UER only with alpha=1, got alpha={self.alpha}: odd and "
                "even positions lose a constant each, whatever epsilon is; use MOUE, or calibration='paper'"
            )
        self._finish(channel, codec, self.epsilon, self.unit, pattern)

    def paper_reported_epsilon(self) -> float:
        """Return the "corrected" epsilon of Theorem 6 of [BitRand], as the paper reports it.

        Returns
        -------
        float
            (r l/Q1 - r l/Q2) ln a + epsilon/(2 Q1) + epsilon/(2 Q2), where Q1 and Q2 are p(1 - q) + q(1 - p)
            at even and at odd positions. It is not the privacy of this mechanism (it is negative for alpha >
            1); that is `guarantee`. Kept for comparison with the paper only.
        """
        positions = self.features * self.bits
        one = 1.0 / (1.0 + self.alpha)
        q = one - _paper_gap(one, self.alpha, self.epsilon / positions)
        even, odd = self.alpha / (1.0 + self.alpha), 1.0 / (1.0 + self.alpha**3)
        q1 = even * (1.0 - q) + q * (1.0 - even)
        q2 = odd * (1.0 - q) + q * (1.0 - odd)
        return positions * (1.0 / q1 - 1.0 / q2) * math.log(self.alpha) + self.epsilon * (0.5 / q1 + 0.5 / q2)
