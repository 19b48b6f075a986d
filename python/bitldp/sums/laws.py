"""Laws of a share of noise, as integers: the sum of the shares of so many clients has a law that is known.

A share is the part of the noise that one client adds to its own number before it is masked. Its law is a
table of integers over 2^64 or 2^128, and the very integers are sampled, by channels of one input.
"""

from __future__ import annotations

import decimal
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix, Shift
from bitldp.channels.noise import skellam_chances
from bitldp.privacy import ONE
from bitldp.release.base import Source

__all__ = ["PolyaShare", "ShareLaw", "ShareTable", "SignShare", "SkellamShare", "rate_of"]

_CONTEXT = decimal.Context(prec=60, Emin=-999_999, Emax=999_999, traps=[])
_SHORT = decimal.Context(prec=40, rounding=decimal.ROUND_DOWN, traps=[])
_HALF = Decimal(1) / 2
_ENTRIES = (1 << 16) - 1  # of one table: the most that `Shift` takes
_LOW = 256  # values of the second draw of a table of 2^128
_ALLOWED = 1 << 21  # entries that are built in seconds
_KEPT = 4  # laws of sums, of up to some hundred thousand values, that are kept
_REACH = 32_767  # of Skellam noise
_TILTS = np.concatenate([np.linspace(0.02, 0.98, 49), 1.0 - np.logspace(-2, -6, 17)])
_UP = 1.0 + 1e-9


@dataclass(frozen=True, eq=False)
class ShareTable:
    """Integer weights of a draw.

    Attributes
    ----------
    weights : tuple of int
        Of the values first, first + 1, ...; they sum to 2**bits.
    first : int
        The least value.
    bits : int
        64 or 128. A weight over 2**128 is the product of one that its block of 256 values has and one that
        the value has in its block, both over 2**64.
    blocks, rows
        These factors; empty for 64 bits.
    """

    weights: tuple[int, ...]
    first: int = 0
    bits: int = 64
    blocks: tuple[int, ...] = ()
    rows: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the first value, the bits and the weights, in hexadecimal digits."""
        head = f"bitldp share table 1 {self.first} {self.bits} {len(self.weights)}\n".encode()
        return hashlib.sha256(head + b"".join(each.to_bytes(17, "big") for each in self.weights)).hexdigest()

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance, each within a few units in the last place."""
        scale = 1 << self.bits
        first = sum(k * w for k, w in enumerate(self.weights, self.first))
        second = sum(k * k * w for k, w in enumerate(self.weights, self.first))
        return first / scale, (second * scale - first * first) / (scale * scale)

    @cached_property
    def _channels(self) -> tuple[Shift, Matrix | None]:
        weights = self.blocks or self.weights
        padded = list(weights) + [0] * (1 - len(weights) % 2)
        reach = len(padded) // 2
        low = Matrix.from_weights(self.rows) if self.rows else None
        return Shift(1, len(padded), padded, reach), low

    @property
    def draws(self) -> int:
        """Random streams that a draw takes."""
        return 2 if self.rows else 1

    def sample(
        self, shape: tuple[int, int], sources: Sequence[Source], threads: int | None = None
    ) -> NDArray[np.int64]:
        """Return independent draws of a shape (records, coordinates); one source a stream."""
        high, low = self._channels
        codes = high.randomize(
            np.zeros(shape, np.uint8), None, None, sources[0], "codes", None, threads, 0
        ).astype(np.int64)
        if low is not None:
            fine = low.randomize(codes.astype(np.uint16), None, None, sources[1], "codes", None, threads, 0)
            codes = codes * _LOW + fine
        return codes + self.first


class ShareLaw(ABC):
    """Law of one client's share of the noise.

    Attributes
    ----------
    name : str
        As of the argument `noise` of `SecureSum`.
    honest : int
        Clients whose shares together are the noise that epsilon was fitted to.
    table : ShareTable
        What one draw has.
    mirrored : bool
        Whether a share is the difference of two draws.
    distance : float
        Total variation between the law of a share and the one that it stands for, rounded up.
    """

    name: str
    honest: int
    table: ShareTable
    mirrored: bool = False
    distance: float

    @property
    def streams(self) -> int:
        """Random streams that a share takes."""
        return self.table.draws * (2 if self.mirrored else 1)

    @property
    def variance(self) -> float:
        """Variance of a share, from its integers."""
        return self.table.moments[1] * (2 if self.mirrored else 1)

    def sample(
        self, shape: tuple[int, int], sources: Sequence[Source], threads: int | None = None
    ) -> NDArray[np.int64]:
        """Return independent shares.

        Parameters
        ----------
        shape : (int, int)
            Records and coordinates.
        sources : sequence of bytes, KeyedRandomness or None
            `streams` of them: keys, keyed randomness of the records, or None for fresh keys.
        threads : int, optional
            Number of threads; the shares do not depend on it.
        """
        draws = self.table.draws
        shares = self.table.sample(shape, sources[:draws], threads)
        return shares - self.table.sample(shape, sources[draws:], threads) if self.mirrored else shares

    @abstractmethod
    def parameters(self) -> dict[str, str]:
        """Return the parameters in decimal digits."""

    @abstractmethod
    def log_moment(self, tilt: float) -> float:
        """Return ln E e^(tilt X) of the law that the table stands for; infinite beyond its range."""

    @abstractmethod
    def ideal(self, shares: int, reach: int) -> Sequence[Decimal]:
        """Return the chances of the sums 0, ..., reach of shares of the law that the table stands for.

        Relative errors are below 1e-20; the law is symmetric. A sum beyond has what is missing to one.
        """

    def reach(self, shares: int, tail: float) -> int:
        """Return what the sum of shares of the ideal law exceeds with that chance at most, to one side."""
        best = math.inf
        for tilt in self._tilts(shares):
            moment = shares * self.log_moment(tilt)
            if moment < math.inf:
                best = min(best, (moment - math.log(tail)) / tilt)
        return math.ceil(best * _UP)

    def beyond(self, shares: int, reach: int) -> float:
        """Return a bound of the chance that such a sum of shares exceeds `reach`, to one side."""
        exponent = min(shares * self.log_moment(tilt) - tilt * (reach + 1) for tilt in self._tilts(shares))
        return min(1.0, math.exp(min(exponent, 0.0)) * _UP)

    @abstractmethod
    def _tilts(self, shares: int) -> NDArray[np.float64]:
        """Return tilts among which Chernoff's bound is about the best."""


def rate_of(number: float, parts: int) -> Decimal:
    """Return a number divided by parts, rounded down to 40 digits."""
    return _SHORT.divide(Decimal(number), Decimal(parts))


class PolyaShare(ShareLaw):
    """Pólya share: the difference of two negative binomial numbers of shape 1/h.

    The sum of h of them is two-sided geometric noise, P(k) in proportion to e^(-rate |k|).

    Parameters
    ----------
    rate : Decimal
        Above zero.
    honest : int
        h.
    tail : float
        Chance that a draw may be beyond the table, at most; what is beyond is drawn as 0.

    Notes
    -----
    With a = e^-rate, a draw has P(0) = (1 - a)^(1/h), P(k) = P(k - 1) a (k - 1 + 1/h)/k. Weights are the
    nearest integers; what is missing to the whole is the mode's, 0.
    """

    name = "polya"
    mirrored = True

    def __init__(self, rate: Decimal, honest: int, tail: float) -> None:
        self.rate, self.honest = rate, honest
        with decimal.localcontext(_CONTEXT):
            fading = (-rate).exp()
            shape = Decimal(1) / honest
            chances = [((1 - fading).ln() * shape).exp()]
            most = max(self._entries(tail), _ENTRIES)
            while len(chances) < most and chances[-1] * (ONE << 1) >= 1:
                k = len(chances)
                chances.append(chances[-1] * fading * (k - 1 + shape) / k)
            self.table, distance = _table(chances)
            self.distance = 2.0 * distance

    def _entries(self, tail: float) -> int:
        """Return entries beyond which a draw has at most the chance `tail`."""
        # P(k) <= a^k / (h k) and its sum from k on at most a^k / (h k (1 - a))
        rate = float(self.rate)
        entries = 1.0
        for _ in range(60):
            log = -math.log(tail) - math.log(self.honest) - math.log(entries) - math.log(-math.expm1(-rate))
            entries = max(1.0, log / rate)
        needed = math.ceil(entries) + 2
        if needed > _ALLOWED:
            raise ValueError(
                f"epsilon: so small for so many steps that a table of {needed} entries would be needed; "
                f"{_ALLOWED} are the most"
            )
        return needed

    def parameters(self) -> dict[str, str]:
        """Return the rate, and the share's shape as a fraction."""
        return {"rate": str(self.rate), "shape": f"1/{self.honest}"}

    def log_moment(self, tilt: float) -> float:
        """Return ln E e^(tilt X)."""
        rate = float(self.rate)
        if not abs(tilt) < rate:
            return math.inf
        product = math.expm1(-rate) ** 2 / (math.expm1(tilt - rate) * math.expm1(-tilt - rate))
        return math.log(product) / self.honest

    def ideal(self, shares: int, reach: int) -> Sequence[Decimal]:
        """Return the chances of 0, ..., reach.

        Notes
        -----
        The generating function G(z) = ((1 - a)^2/((1 - a z)(1 - a/z)))^r, r = shares/h, satisfies
        (1 - a z)(1 - a/z) z G' = r a (z - 1/z) G, so its coefficients satisfy
        ``a (k + 1 - r) g_(k+1) = (1 + a^2) k g_k - a (k - 1 + r) g_(k-1)``. That is run from above (Miller's
        algorithm), and scaled by the sum of all.
        """
        return _polya_sum(self.rate, shares, self.honest, reach)

    def _tilts(self, shares: int) -> NDArray[np.float64]:
        return _TILTS * float(self.rate)


class SkellamShare(ShareLaw):
    """Skellam share: the difference of two Poisson numbers; so is the sum of shares.

    Parameters
    ----------
    mean : Decimal
        Of either Poisson number, above zero: the variance of a share is twice that.
    honest : int
        h.
    """

    name = "skellam"

    def __init__(self, mean: Decimal, honest: int) -> None:
        self.mean, self.honest = mean, honest
        with decimal.localcontext(_CONTEXT):
            limit = 12.0 * math.sqrt(2.0 * float(mean)) + 40.0
            half = skellam_chances(mean, min(_REACH, math.ceil(limit)))
            last = next((k for k, each in enumerate(half) if each * (ONE << 1) < 1), len(half))
            half = half[:last]
            table, distance = _table([*half[:0:-1], *half], len(half) - 1)
            self.table, self.distance = table, distance

    def parameters(self) -> dict[str, str]:
        """Return the mean of either Poisson number."""
        return {"mean": str(self.mean)}

    def log_moment(self, tilt: float) -> float:
        """Return ln E e^(tilt X)."""
        half = math.sinh(min(abs(tilt), 1400.0) / 2.0)
        return 4.0 * float(self.mean) * half * half

    def ideal(self, shares: int, reach: int) -> Sequence[Decimal]:
        """Return the chances of 0, ..., reach."""
        with decimal.localcontext(_CONTEXT):
            return skellam_chances(self.mean * shares, reach)

    def _tilts(self, shares: int) -> NDArray[np.float64]:
        deviation = math.sqrt(2.0 * float(self.mean) * shares)
        return np.logspace(-1.0, 2.0, 120) / max(deviation, 1e-3)


class SignShare(ShareLaw):
    """Thinned sign: -1, 0 or 1, where a share's variance is one at the most.

    Parameters
    ----------
    weight : int
        P(1) = P(-1) = weight/2**64, 1 to 2**63.
    honest : int
        h.
    """

    name = "signs"
    distance = 0.0

    def __init__(self, weight: int, honest: int) -> None:
        self.weight, self.honest = weight, honest
        self.table = ShareTable((weight, ONE - 2 * weight, weight), -1)

    def parameters(self) -> dict[str, str]:
        """Return the chance of a sign, as an integer over 2**64."""
        return {"weight": str(self.weight)}

    def log_moment(self, tilt: float) -> float:
        """Return ln E e^(tilt X)."""
        half = math.sinh(min(abs(tilt), 700.0) / 2.0)
        return math.log1p(4.0 * self.weight / ONE * half * half)

    def ideal(self, shares: int, reach: int) -> Sequence[Decimal]:
        """Return the chances of 0, ..., reach."""
        return _sign_sum(self.weight, shares, reach)

    def _tilts(self, shares: int) -> NDArray[np.float64]:
        deviation = math.sqrt(2.0 * self.weight / ONE * shares)
        return np.logspace(-1.0, 2.0, 120) / max(deviation, 1e-3)


def _table(chances: list[Decimal], mode: int = 0) -> tuple[ShareTable, float]:
    """Return the nearest weights, and their total variation from the chances; the mode takes the rest.

    Where one table of `Shift` has too few entries, a draw is a block of values and a value in it.
    """
    if len(chances) <= _ENTRIES:
        weights = [int((ONE * each).to_integral_value()) for each in chances]
        weights[mode] += ONE - sum(weights)
        return ShareTable(tuple(weights), -mode), _distance(weights, chances, ONE)
    return _wide(chances)


def _wide(chances: list[Decimal]) -> tuple[ShareTable, float]:
    """Return the same with weights over 2^128, of values from 0 on."""
    groups = [chances[start : start + _LOW] for start in range(0, len(chances), _LOW)]
    blocks, rows = [], []
    for group in groups:
        mass = sum(group, Decimal(0))
        blocks.append(int((ONE * mass).to_integral_value()))
        row = [int((ONE * each / mass).to_integral_value()) for each in group]
        row += [0] * (_LOW - len(row))
        row[0] += ONE - sum(row)
        rows.append(tuple(row))
    blocks[0] += ONE - sum(blocks)
    weights = [block * each for block, row in zip(blocks, rows, strict=True) for each in row]
    weights = weights[: len(chances)]
    return ShareTable(tuple(weights), 0, 128, tuple(blocks), tuple(rows)), _distance(
        weights, chances, ONE * ONE
    )


def _distance(weights: list[int], chances: list[Decimal], scale: int) -> float:
    """Return the total variation of weights from chances that may lack a tail, rounded up."""
    unit = Decimal(1) / scale
    apart = sum((abs(w * unit - each) for w, each in zip(weights, chances, strict=True)), Decimal(0))
    return float((apart + abs(1 - sum(chances, Decimal(0)))) * _HALF) * _UP


@lru_cache(maxsize=_KEPT)
def _polya_sum(rate: Decimal, shares: int, honest: int, reach: int) -> tuple[Decimal, ...]:
    """Return the chances of 0, ..., reach; see `PolyaShare.ideal`."""
    with decimal.localcontext(_CONTEXT):
        fading = (-rate).exp()
        if shares == honest:
            chances = [(1 - fading) / (1 + fading)]
            for _ in range(reach):
                chances.append(chances[-1] * fading)
            return tuple(chances)
        shape, square = Decimal(shares) / honest, 1 + fading * fading
        fall = float(rate)
        # a start whose chances are e^-25 of those at `reach`: the error there fades twice as fast
        start = max(reach + math.ceil(25.0 / fall), math.ceil(55.0 / fall)) + 20

        def below(k: int, here: Decimal, above: Decimal) -> Decimal:
            return (square * k * here - fading * (k + 1 - shape) * above) / (fading * (k - 1 + shape))

        return _from_above(start, reach, below)


@lru_cache(maxsize=_KEPT)
def _sign_sum(weight: int, shares: int, reach: int) -> tuple[Decimal, ...]:
    """Return the chances of 0, ..., reach of the sum of thinned signs.

    With q = weight/2^64 and p = 1 - 2 q, G(z) = (q z + p + q/z)^n has
    ``q (n - k + 1) g_(k-1) = p k g_k + q (k + 1 + n) g_(k+1)``, all of whose terms are positive.
    """
    with decimal.localcontext(_CONTEXT):
        sign, none = Decimal(weight), Decimal(ONE - 2 * weight)
        deviation = math.sqrt(2.0 * weight / ONE * shares)
        start = min(shares, max(reach, math.ceil(12.0 * deviation)) + math.ceil(12.0 * deviation) + 40)

        def below(k: int, here: Decimal, above: Decimal) -> Decimal:
            return (none * k * here + sign * (k + 1 + shares) * above) / (sign * (shares - k + 1))

        return _from_above(start, reach, below)


def _from_above(
    start: int, reach: int, below: Callable[[int, Decimal, Decimal], Decimal]
) -> tuple[Decimal, ...]:
    """Return the chances of 0, ..., reach of a symmetric law by a recurrence from `start` down to 0.

    `below` returns what k - 1 has from what k and k + 1 have (Miller's algorithm).
    """
    above, here = Decimal(0), Decimal(1)
    law, total = [Decimal(0)] * max(0, reach - start), Decimal(0)
    for k in range(start, 0, -1):
        if k <= reach:
            law.append(here)
        total += here
        above, here = here, below(k, here, above)
    law.append(here)
    whole = here + 2 * total
    return tuple(each / whole for each in reversed(law))
