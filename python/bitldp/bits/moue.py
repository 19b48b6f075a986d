"""MOUE and UER: unary-encoding ideas (OUE) on the bits of fixed-point numbers.

MOUE is the randomizer of LATENT, UER that of OME; both as [LDPFL] states them: "Local differential privacy
for federated learning in industrial settings" (Chamikara et al., 2022), Theorems 1 and 2. [BitRand] is
"Bit-aware randomized response for local differential privacy in federated learning" (submitted to ICLR 2022).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Bits
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.bits.fixed_point import FixedPointBits, Sign, of_unit
from bitldp.mechanism.parameters import Option, one_of, optional
from bitldp.privacy import Unit, calibrated

__all__ = ["MOUE", "UER", "latent_corrected_epsilon", "ome_corrected_epsilon", "spent_for"]

_SMALL = 0.5  # below, differences of probabilities are formed by expm1
_LARGE = 700.0  # e^700 is still a double
_LEAST = 2.0**-60  # keeps a finite budget from excluding a report
_UNIT_IN_LAST_PLACE = 2.0**-53  # keeps the other probability below 1, for the same reason
_PATTERN_LIMIT = 1 << 24  # features whose laws are listed one by one, which takes some bytes each


_Ways = Literal["exact", "paper", "corrected"]


def _rarity(name: str, value: float) -> float:
    number = checks.positive(name, value)
    if not 1e-6 <= number <= 1e6:
        raise ValueError(f"{name}: must be between 1e-6 and 1e6, got {number}")
    return number


@dataclass(frozen=True, eq=False, repr=False)
class _Asymmetric(FixedPointBits):
    """Base of those that report ones rarely, by a parameter of its own."""

    _: KW_ONLY
    calibration: Annotated[
        _Ways,
        one_of("exact", "paper", "corrected"),
        Option(short="Whether a budget is kept exactly, or a paper's formula or correction is used."),
    ] = "exact"  # type: ignore[assignment]  # one way more than others
    sign: Sign = "ldpfl"
    alpha: Annotated[float, _rarity] = 10.0

    @property
    def formula_epsilon(self) -> float:
        """The epsilon of the paper's formula: with "corrected" the one that is corrected to `epsilon`."""
        if self.calibration != "corrected":
            return self.epsilon
        return spent_for(self.features, self.bits, self.epsilon, self.alpha)

    @abstractmethod
    def paper_reported_epsilon(self) -> float:
        """Return the "corrected" epsilon of the paper."""

    def _bounds(self) -> dict[str, float]:
        """Return the corrected budget, and the one of the formula, where the law is a paper's."""
        if self.calibration == "exact":
            return {}
        return {
            "epsilon_of_the_formula": self.formula_epsilon,
            "reported_as_corrected_epsilon": self.paper_reported_epsilon(),
        }


@lru_cache(maxsize=64)
def _moue_channel(
    features: int, bits: int, epsilon: float, alpha: float, calibration: _Ways, unit: Unit
) -> Bits:
    p = _ones(alpha)
    positions = features * bits if unit == "record" else bits
    if calibration == "paper":
        # Theorem 1 of [LDPFL] is true: where E and E - A, or A, are nearly alike, rounding must not break it.
        return calibrated(
            lambda target: Bits([[p] * bits], [[_paper_q(alpha, target / positions)] * bits], features),
            epsilon,
            lambda channel: channel.epsilon[2],
        )

    def build(target: float) -> Bits:
        return Bits([[p] * bits], [[_least_q(p, target / positions)] * bits], features)

    return calibrated(build, epsilon, lambda channel: of_unit(channel, unit))


def _ones(alpha: float) -> float:
    """Return p = 1/(1 + alpha) in units of 2**-64, so that p and q, rounded inward, do not cross."""
    return math.floor(2.0**64 / (1.0 + alpha)) * 2.0**-64


def _paper_q(alpha: float, share: float) -> float:
    """Return q = 1/(1 + alpha e^E) of the budget E of one bit, kept above 0.

    At small E it is formed as p minus p alpha (e^E - 1)/(1 + alpha e^E), so that p - q keeps all its digits.
    """
    low = math.exp(-share)
    if share > _SMALL:
        return max(low / (low + alpha), _LEAST)
    p = _ones(alpha)
    return p - p * alpha * -math.expm1(-share) / (low + alpha)


def _least_q(p: float, share: float) -> float:
    """Return the least q with p/q <= e^E and (1 - q)/(1 - p) <= e^E, E the budget of one bit.

    Written as q = 1/(1 + alpha e^delta): where alpha >= 1, or E > -ln alpha, the first binds and gives
    e^delta = ((1 + alpha) e^E - 1)/alpha; otherwise the second, e^delta = e^E/(1 + alpha - alpha e^E).
    """
    share = min(share, _LARGE)
    if share > _SMALL:
        return max(p * math.exp(-share), 1.0 - (1.0 - p) * math.exp(share), _LEAST)
    return p - min(-p * math.expm1(-share), (1.0 - p) * math.expm1(share))


@dataclass(frozen=True, eq=False, repr=False)
class MOUE(_Asymmetric):
    """MOUE of LATENT: asymmetric flips, the same law for every bit.

    Every bit has p = 1/(1 + alpha) and q = 1/(1 + alpha e^(epsilon/(r l))).

    Parameters
    ----------
    features, bits, integer_bits, epsilon : int, int, int, float
        As of `FRR`.
    alpha : float
        How rare ones are among the reports, above zero; the larger, the rarer.
    calibration : {"exact",
        "paper", "corrected"} "exact": q is chosen so that the exact epsilon of one `unit` is at most
        `epsilon` (see Notes). "paper": Theorem 1 of [LDPFL]. Its claim holds, with slack. "corrected": the
        same formula at the smaller budget (`formula_epsilon`) that Theorem 5 of [BitRand] corrects to
        `epsilon`, for an alpha of 1 or more. That paper runs LATENT this way, with alpha 7. The exact epsilon
        is far below.
    unit, sign, infinities : str
        As of `FRR`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. Exact epsilon of the paper's parameters: r l max(A, E - A) with
    E = epsilon/(r l), A = ln((1 + alpha e^E)/(1 + alpha)). q is at least 2**-60, so the exact epsilon of a
    bit is at most 41.6 - ln(1 + alpha), however large the budget.
    """

    def _bits(self) -> tuple[Bits, None]:
        calibration, epsilon = self.calibration, self.epsilon
        if calibration == "corrected":
            if self.alpha < 1.0:
                raise ValueError(
                    "calibration: 'corrected' exists for alpha=1 or more, as the papers have it, got "
                    f"alpha={self.alpha}"
                )
            calibration, epsilon = "paper", self.formula_epsilon
        return _moue_channel(self.features, self.bits, epsilon, self.alpha, calibration, self.unit), None

    def paper_reported_epsilon(self) -> float:
        """Return the "corrected" epsilon of Theorem 5 of [BitRand], as the paper reports it.

        Returns
        -------
        float
            `latent_corrected_epsilon` of `formula_epsilon`. It is not the privacy of this mechanism; that is
            `guarantee`. Kept for comparison with the paper only.
        """
        return latent_corrected_epsilon(self.features, self.bits, self.formula_epsilon, self.alpha)


@lru_cache(maxsize=64)
def _uer_channel(
    features: int, bits: int, epsilon: float, alpha: float
) -> tuple[Bits, NDArray[np.intp] | None]:
    """Theorem 2 of [LDPFL], and the law of each feature.

    The parity is that of the 0-based position in the record's concatenated r*l bits, so every second feature
    starts at an odd position where l is odd.
    """
    q = _paper_q(alpha, epsilon / (features * bits))
    even, odd = alpha / (1.0 + alpha), min(1.0 / (1.0 + alpha**3), 1.0 - _UNIT_IN_LAST_PLACE)
    law = [even if position % 2 == 0 else odd for position in range(bits + 1)]
    if bits % 2 == 0 or features == 1:
        return Bits([law[:bits]], [[q] * bits], features), None
    if features > _PATTERN_LIMIT:
        raise ValueError(f"features: must be at most {_PATTERN_LIMIT} where bits is odd, got {features}")
    pattern = readonly(np.arange(features) % 2)
    return Bits([law[:bits], law[1:]], [[q] * bits] * 2, features, pattern.tolist()), pattern


@dataclass(frozen=True, eq=False, repr=False)
class UER(_Asymmetric):
    """UER of OME: MOUE with different laws at even and odd bits; its claim does not hold.

    p is alpha/(1 + alpha) at even and 1/(1 + alpha^3) at odd positions, q is as in `MOUE`.

    Parameters
    ----------
    features, bits, integer_bits, epsilon : int, int, int, float
        As of `FRR`.
    alpha : float, optional
        Between 1e-6 and 1e6, as in `MOUE`. With an alpha other than 1, no epsilon of the formula is the exact
        one. None: 10 with "paper", as in the paper, and 1 otherwise, the only value allowed there. The
        attribute then holds the chosen number.
    calibration : {"exact", "paper", "corrected"}
        "paper": Theorem 2 of [LDPFL]. Its claim does not hold, and the guarantee shows by how much. "exact"
        exists for ``alpha=1`` only, where UER equals MOUE. "corrected": the formula at the budget that
        Theorem 6 of [BitRand] corrects to `epsilon`, which is half of it; for ``alpha=1`` only, as that paper
        runs OME. For another alpha the theorem adds a constant that no budget can offset.
    unit, sign, infinities : str
        As of `FRR`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Positions are counted from 0 over the r*l bits of a record, and start again with each record. With odd l,
    even and odd positions are therefore exchanged in every second feature. Neighbouring records differ in any
    way.
    """

    _: KW_ONLY
    alpha: Annotated[float, optional(_rarity)] = None  # type: ignore[assignment]  # set by `_build`

    def _build(self) -> None:
        if self.alpha is None:
            self._set(alpha=10.0 if self.calibration == "paper" else 1.0)
        super()._build()

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: those of the paper, since no others keep `alpha`."""
        return super()._usual(epsilon, size) | {"calibration": "paper"}

    def _bits(self) -> tuple[Bits, NDArray[np.intp] | None]:
        if self.calibration == "paper" or (self.calibration == "corrected" and self.alpha == 1.0):
            return _uer_channel(self.features, self.bits, self.formula_epsilon, self.alpha)
        if self.calibration == "corrected":
            raise ValueError(
                f"calibration: 'corrected' exists for UER only with alpha=1, got alpha={self.alpha}: "
                "elsewhere Theorem 6 adds a constant (negative for alpha > 1) that no budget undoes"
            )
        if self.alpha == 1.0:
            return _moue_channel(self.features, self.bits, self.epsilon, 1.0, "exact", self.unit), None
        raise ValueError(
            f"calibration: 'exact' exists for UER only with alpha=1, got alpha={self.alpha}: odd and even "
            "positions lose a constant each, whatever epsilon is; use MOUE, or calibration='paper'"
        )

    def paper_reported_epsilon(self) -> float:
        """Return the "corrected" epsilon of Theorem 6 of [BitRand], as the paper reports it.

        Returns
        -------
        float
            `ome_corrected_epsilon` of `formula_epsilon`. It is not the privacy of this mechanism (it is
            negative for alpha > 1); that is `guarantee`. Kept for comparison with the paper only.
        """
        return ome_corrected_epsilon(self.features, self.bits, self.formula_epsilon, self.alpha)


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
        How rare ones are among the reports, above zero; the larger, the rarer.

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
    features, bits : int
        r and l, 1 or more.
    epsilon : float
        Budget of the formula of `MOUE` with ``calibration="paper"``, finite, zero or more.
    alpha : float
        How rare ones are among the reports, above zero; the larger, the rarer.

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
