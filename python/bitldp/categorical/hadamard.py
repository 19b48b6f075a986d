"""Hadamard response: a half of a block of codes, by a row of a Hadamard matrix."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Design
from bitldp.base import checks
from bitldp.categorical.supported import DesignCodes
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate, project_simplex
from bitldp.estimate.intervals import LetterLaw, Table
from bitldp.estimate.means import mean_of
from bitldp.letters.reach import Reach
from bitldp.letters.spread import Mixed
from bitldp.mechanism.frequencies import checked_share, labelled
from bitldp.mechanism.law import Experiment, Pair, codes_of, of_rows, spread
from bitldp.mechanism.parameters import Budget, CategoryNames, categories
from bitldp.privacy import ONE, Guarantee, calibrated
from bitldp.release.window import high_share

__all__ = ["HadamardResponse"]

_MOST = 1_000_000  # categories

_exact = attrgetter("epsilon")


@lru_cache(maxsize=64)
def _channel(count: int, epsilon: float) -> tuple[int, int, Design]:
    """Return the bits of a block, the bits that tell blocks apart, and the channel."""
    apart = max(0, math.ceil(math.log2(min(math.exp(min(epsilon, 60.0)), 2.0 * count))) - 1)
    bits = max(1, (-(-count // (1 << apart))).bit_length())  # 2^bits - 1 >= count/2^apart

    def build(target: float) -> Design:
        high = high_share(1 << (bits + apart), 1 << (bits - 1), target)
        return Design.halves(count, bits, apart, high, target == 0.0)

    return bits, apart, calibrated(build, epsilon, _exact)


@dataclass(frozen=True, eq=False, repr=False)
class HadamardResponse(DesignCodes):
    """Hadamard response: reports a code, e^eps times as likely one that the true category's row selects.

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories k, 2 to 1,000,000: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget of a record, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    There are B blocks of b codes, B = 2^(ceil(log2(min(e^eps, 2k))) - 1) and b the least power of two above
    k/B. Category x has the block j = x mod B, and in it the half whose numbers z have an even parity of z &
    (1 + x div B); its codes have the weight e^eps, all others 1. Let H be the probability of that half and o
    that of the other half. The decoded value for x is +1/(H - o) for a report in its half, -1/(H - o) for one
    in the other half of its block, and 0 elsewhere. Its mean is 1 for x, and 0 for every other category.

    `BlockDesign` has less variance in as few bits. Neighbouring records hold any two categories. No
    probability is nearer to 1 than 1 - 2**-53, so that the exact epsilon is bounded, however large the
    budget. Source: Acharya, Sun and Zhang, "Hadamard response: estimating distributions privately,
    efficiently, and with little communication", AISTATS 2019; blocks are taken in turns here.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.HadamardResponse(1000, epsilon=2.0)
    >>> mechanism.blocks, mechanism.report_bits
    (4, 10)
    >>> reports = mechanism.randomize(np.full(10_000, 7), rng=1)
    >>> bool(abs(mechanism.estimate_frequencies(reports).value[7] - 1.0) < 0.05)
    True
    """

    categories: Annotated[CategoryNames, categories(_MOST)]
    _: KW_ONLY
    epsilon: Budget

    # Derived of the parameters while the mechanism is built.
    _bits: int = field(init=False, repr=False, compare=False)
    _apart: int = field(init=False, repr=False, compare=False)
    _chances: tuple[float, float] = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        count = self._name(self.categories)
        if count > _MOST:  # labels, of which there may be more
            raise ValueError(f"categories: must be at most {_MOST}, got {count}")
        bits, apart, channel = _channel(count, self.epsilon)
        exact, high = channel.epsilon, Fraction(channel.high, ONE)
        other = (1 - high) * channel.width / (channel.cells - channel.width)
        self._set(
            _bits=bits,
            _apart=apart,
            _channel=channel,
            _chances=(float(high), float(other)),
            _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)),
        )

    @property
    def blocks(self) -> int:
        """Blocks of codes, B."""
        return 1 << self._apart

    @property
    def _cells(self) -> int:
        return self._size

    def _letter(self) -> float:
        """Return 1/(H - o), or raise where reports are uninformative."""
        if self._channel.epsilon == 0.0:
            raise self._uninformative("categories")
        own, other = self._chances
        return 1.0 / (own - other)

    @cached_property
    def _letter_law(self) -> LetterLaw:
        """Law of a letter, for intervals: it has two values where there is one block, else three."""
        letter, several = self._letter(), self.blocks > 1
        own, near, far = self._variances()
        least, most = (
            np.array([extreme(near, far if several else near), own]) + 0.25 for extreme in (min, max)
        )
        both = None if several else (-letter, letter)
        mixed = Mixed(np.array([0.0, 1.0]), least, most)
        return LetterLaw(mixed, 2.0 * letter, both, jump=letter, table=self._letter_table)

    def _letter_table(self) -> Table:
        """Return the law of the letters of a category, of others of its block, and of the rest."""
        letter, (own, other) = self._letter(), self._chances
        shares = np.array([[other, own], [(own + other) / 2.0] * 2, [other, other]])
        rows = np.column_stack([shares[:, 0], 1.0 - shares.sum(axis=1), shares[:, 1]])
        kept = 3 if self.blocks > 1 else 2
        points = np.array([1.0, 0.0, 0.0])
        return Table(points[:kept], rows[:kept], np.array([-letter, 0.0, letter]))

    def _signs(self, codes: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 1 for a code of the half of a category, -1 for one of the rest of its block, 0 elsewhere."""
        parity = codes & (1 << self._bits) - 1 & (1 + (chosen >> self._apart))
        for shift in (16, 8, 4, 2, 1):
            parity = parity ^ parity >> shift
        own = codes >> self._bits == chosen & (1 << self._apart) - 1
        return np.where(own, 1 - 2 * (parity & 1), 0)

    def _row(self, x: int) -> NDArray[np.float64]:
        """Return P(code | x)."""
        high, outside = self._chances[0] / self._channel.width, self._chances[1] / self._channel.width
        if self._channel.mute:
            return np.full(self._channel.cells, 1.0 / self._channel.cells)
        signs = self._signs(np.arange(self._channel.cells), np.array(x))
        return np.where(signs > 0, high, outside)

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return categories to compare and the law of their reports; see `Mechanism.extremes`."""
        chosen = codes_of(pair, self._size, None) or spread(self._size, 2)
        return of_rows(self._row, self._size, self._channel.cells, chosen)

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of codes, in one more axis of length `categories`; see `OLH.decode`."""
        letter = self._letter()
        codes = checks.codes("reports", reports, self._channel.outputs).astype(np.int64)
        signs = self._signs(codes[..., None], np.arange(self._size))
        return letter * signs.astype(np.float64)

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the counts of codes; see `Mechanism.accumulator`."""
        self._letter()
        return _HalfCounts(self, (self._channel.cells,), self._count, (1.0, 0.0), reported="codes")

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's unbiased indicator of every category; see `GRR.variance`.

        It is (H + o)/(H - o)^2 for categories of the block of `x`, less 1 for `x` itself; 2o/(H - o)^2 for
        the others.
        """
        own, same_block, other_block = self._variances()
        true = checks.codes("x", x, self._size).astype(np.int64)[..., None]
        every = np.arange(self._size)
        alike = np.where((true ^ every) & (1 << self._apart) - 1 == 0, same_block, other_block)
        return np.where(true == every, own, alike)

    def _variances(self) -> tuple[float, float, float]:
        """Return the variance of a letter of the true category, of others of its block, and of the rest."""
        square, (own, other) = self._letter() ** 2, self._chances
        return square * (own + other) - 1.0, square * (own + other), square * 2.0 * other

    def frequency_variance(self, frequency: float = 0.0) -> float:
        """Return the variance of an estimated frequency; see `GRR.frequency_variance`.

        It is averaged over categories; the records that have another one are spread evenly.
        """
        share = checked_share(frequency)
        own, near, far = self._variances()
        beside = self._beside() / (self._size - 1.0)
        return share * own + (1.0 - share) * (beside * near + (1.0 - beside) * far)

    def _beside(self) -> float:
        """Return how many other categories share the block of a uniform category, on average."""
        sizes = np.bincount(np.arange(self._size) % self.blocks, minlength=self.blocks).astype(np.float64)
        return float((sizes * (sizes - 1.0)).sum()) / self._size

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return what codes decode to: code 0 counts for its whole block, another against most of it."""
        letter, size = self._letter(), self._size
        values, counts = np.array([letter, -letter, 0.0]), []
        for block in {0, min(size, self.blocks) - 1}:  # those of the most and of the fewest categories
            among = -(-(size - block) // self.blocks)
            rows = np.zeros((1, 1 << self._bits), np.int64)
            rows[0, 1 : 1 + among] = 1
            sums = transformed(rows)[0] if total else np.array([among, -among])
            counts += [
                [(among + each) // 2, (among - each) // 2, size - among] for each in (among, sums.min())
            ]
        return (Reach(np.tile(values, (len(counts), 1)), np.array(counts), total=1),)

    def worst_variance(self) -> float:
        """Return the largest variance of a category's unbiased indicator; see `Mechanism.worst_variance`."""
        return max(self._variances())

    def mean_variance(self) -> float:
        """Return the mean of `variance` over categories and uniform inputs; see `Mechanism.mean_variance`."""
        own, near, far = self._variances()
        k, beside = self._size, self._beside()
        return (own + beside * near + (k - 1.0 - beside) * far) / k


class _HalfCounts(CountAccumulator):
    """Counts of codes, from which the estimate of each category follows by a Hadamard transform."""

    mechanism: HadamardResponse

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the categories; see `CountAccumulator.estimate`."""
        if self.n < 1:
            raise ValueError("reports: at least one is needed for an estimate")
        mechanism, n = self.mechanism, self.n
        letter, size = mechanism._letter(), mechanism._size
        blocks = transformed(self.counts.reshape(mechanism.blocks, -1))
        every = np.arange(size)
        of_block = every % mechanism.blocks
        value = letter * blocks[of_block, 1 + every // mechanism.blocks] / n
        # A letter is +-letter for the reports of the block, and 0 for others.
        variance = np.maximum(letter**2 * blocks[of_block, 0] / n - np.square(value), 0.0)
        made = mean_of(value, variance, n, mechanism._letter_law)
        if project:
            made = replace(made, value=project_simplex(value), projected=True)
        return labelled(mechanism, self._judged(made))


def transformed(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the Walsh-Hadamard transform of every row, whose length is a power of two."""
    count, length = rows.shape
    half = 1
    while half < length:
        pairs = rows.reshape(count, length // (2 * half), 2, half)
        rows = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        rows, half = rows.reshape(count, length), 2 * half
    return rows
