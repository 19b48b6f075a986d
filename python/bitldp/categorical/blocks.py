"""Block designs: frequencies at the variance of subset selection, in the logarithm of its bits."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Design, count_progressions
from bitldp.base import checks
from bitldp.categorical.public import MOST_SEED, PublicSteps
from bitldp.categorical.stepped import Steps
from bitldp.design.blocks import Blocks, best
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate, frequencies
from bitldp.mechanism.frequencies import labelled
from bitldp.mechanism.parameters import Budget, CategoryNames, Flag, Option, categories, whole
from bitldp.privacy import ONE, Guarantee, calibrated
from bitldp.release.window import high_share

__all__ = ["BlockDesign"]

_MOST = 1_000_000  # categories

_exact = attrgetter("epsilon")


@lru_cache(maxsize=32)
def _channel(count: int, epsilon: float, public: bool) -> tuple[Blocks, Design]:
    blocks = best(count, epsilon, public)
    cells, width = blocks.cells, blocks.width
    order = None if blocks.family == "steps" else blocks.order()

    def build(target: float) -> Design:
        high, mute = high_share(cells, width, target), target == 0.0
        if order is None:
            return Design.progressions(count, cells, width, high, mute)
        return Design.translates(count, width, high, order, mute)

    return blocks, calibrated(build, epsilon, _exact)


@dataclass(frozen=True, eq=False, repr=False)
class BlockDesign(PublicSteps):
    """Block designs: a cell of a block of the true category, or one of the other cells.

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories k, 2 to 1,000,000: how many, or their labels, as of `GRR`.
    epsilon : float
        Privacy budget of a record, finite, zero or more; the exact epsilon is at most that (see Notes).
    public : bool
        Whether the step of a progression is a public coin: part of a report by itself, or, with `first`,
        implied by a number that both sides know, so that a report is a cell alone, of log2(v) bits.
    seed : int
        Of implied steps, 0 or more. It is public: the server needs it, and no privacy rests on it.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    There are v >= k cells, and a block of b cells for each category, of which any two share
    b (b - 1)/(v - 1). A report is a cell of the block of the true category with the probability
    p = b e^eps/(b e^eps + v - b). It counts for the categories whose blocks hold it, for one that a record
    has not with q = (p (b - 1) + (1 - p) b)/(v - 1). `blocks` says which design was chosen, the one of fewest
    bits of those within 1 % of subset selection's mean variance (or, where there is none, of the least):

    - "single": v = k and b = 1, which is GRR;
    - "singer": translates of a hyperplane of a projective space over a finite field, in log2(v) bits;
    - "steps", up to 4096 categories, and up to 65,521 where b is at most 512: b numbers x, x + a, x + 2a, ...
      modulo an odd v without divisors below b, for a step a to (v - 1)/2 that is drawn without looking at x,
      and reported, in 2 log2(v) - 1 bits. Blocks share that many on average over the steps.

    With `public` the fewest bits are those of a cell, so that there are progressions wherever they save a
    bit. Reports are `SteppedReports`, pairs (steps, cells), or cells alone with
    `first`; epsilon is that given the step, whoever chose it. Step i is drawn from number i of the keystream
    of the seed's key. Estimates are unbiased over the steps: each record needs a number of its own, for under
    one step for everybody blocks do not share equally many. Where the design is another, there is no step,
    `first` says nothing, and a report is a cell.

    Neighbouring records hold any two categories. No probability is nearer to 1 than 1 - 2**-53, so that the
    exact epsilon is at most 36.74 + ln((v - b)/b), however large the budget. Sources: Feldman, Nelson, Nguyen
    and Talwar, "Private frequency estimation via projective geometry", ICML 2022; Park, Nam and Lee, "Exactly
    optimal and communication-efficient private estimation via block designs", 2023; Singer, "A theorem in
    finite projective geometry and some applications to number theory", Trans. AMS 43 (1938). The progressions
    are this package's.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.BlockDesign(65_536, epsilon=2.0)
    >>> mechanism.report_bits, round(mechanism.mean_variance(), 4)
    (17, 0.7252)
    >>> reports = mechanism.randomize(np.full(10_000, 7), rng=1)
    >>> bool(abs(mechanism.estimate_frequencies(reports).value[7] - 1.0) < 0.05)
    True
    """

    categories: Annotated[CategoryNames, categories(_MOST)]
    epsilon: Budget
    _: KW_ONLY
    public: Flag = False
    seed: Annotated[int, whole(0, MOST_SEED), Option(name="step_seed", short="Public seed of the steps.")] = 0

    _blocks: ClassVar[Blocks]  # set on the instance, by _build; ClassVar keeps it out of the fields

    def _build(self) -> None:
        count = self._name(self.categories)
        if count > _MOST:  # labels, of which there may be more
            raise ValueError(f"categories: must be at most {_MOST}, got {count}")
        if self.seed and not self.public:
            raise ValueError("seed: is for public=True; otherwise no step is implied")
        blocks, channel = _channel(count, self.epsilon, self.public)
        exact, v, b = channel.epsilon, blocks.cells, blocks.width
        p = Fraction(channel.high, ONE)
        q = (p * (b - 1) + (1 - p) * b) / (v - 1)
        self._set(
            _blocks=blocks,
            _channel=channel,
            _steps=Steps(channel, self.seed) if self.public and blocks.family == "steps" else None,
            _law=(float(p), float(q), float(p * (b - 1) / (v - 1))),
            _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)),
        )

    @property
    def blocks(self) -> Blocks:
        """The design: its `family`, `cells` v, `width` b, and `field` (p, e, d) of a projective space."""
        return self._blocks

    def _support(self, reports: Any, categories: NDArray[np.int64]) -> NDArray[np.bool_]:
        if self._steps is not None:
            reports = self._steps.codes(reports)
        codes = checks.codes("reports", reports, self._blocks.outputs).astype(np.int64)[..., None]
        v, b = self._blocks.cells, self._blocks.width
        order = self._channel.order
        if order is None:
            steps, cells = codes // v + 1, codes % v
            hit = (cells - steps * np.arange(b)) % v
            everything = np.zeros((*codes.shape[:-1], v), np.bool_)
            np.put_along_axis(everything, hit, True, axis=-1)
            supported: NDArray[np.bool_] = everything[..., categories]
        else:
            inside = np.zeros(v, np.bool_)
            inside[order[:b]] = True
            supported = inside[(codes - categories) % v]
        return supported

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        if self._blocks.family != "steps":
            return super()._count(reports, records, threads)
        form, array, records = self._read(reports, records)
        v, b = self._blocks.cells, self._blocks.width
        try:
            counts = count_progressions(
                array,
                self._size,
                v,
                b,
                form=form,  # type: ignore[arg-type]
                records=records,
                threads=threads,
            )
        except ValueError:
            if form == "codes":
                checks.codes("reports", array, self._blocks.outputs)  # says where
            raise
        return records, counts.astype(np.int64)

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator: it counts cells, or, of progressions, categories.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0).
        """
        if self._blocks.family == "steps":
            return super().accumulator()
        law = self._check_speaks()
        return _CellCounts(self, (self._blocks.cells,), self._count, law)


class _CellCounts(CountAccumulator):
    """Counts of cells, from which those of blocks follow at the end."""

    mechanism: BlockDesign

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the categories; see `CountAccumulator.estimate`."""
        mechanism, order = self.mechanism, self.mechanism.channel.order
        if order is None:
            raise TypeError("mechanism: its blocks are no translates")
        block = order[: mechanism.blocks.width]
        supports = correlated(self.counts, block)[: mechanism._size]
        return labelled(mechanism, frequencies(supports, self.n, *self._law, project=project))


def correlated(counts: NDArray[np.int64], block: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the sum of the counts over every translate of a block of cells, exactly.

    A circular correlation by the fast Fourier transform, whose result is rounded to the integers that it is
    of. Counts are taken a few bits at a time, so few that the error stays far below one half.
    """
    if len(block) == 1:
        return np.roll(counts, -int(block[0]))
    cells = len(counts)
    kernel = _spectrum(cells, block.astype(np.uint32).tobytes())
    total, rest, shift = np.zeros(cells, np.int64), counts, 0
    while rest.any():
        digits = rest & (1 << _DIGITS) - 1
        found = np.fft.irfft(np.fft.rfft(digits.astype(np.float64)) * kernel, cells)
        total += np.rint(found).astype(np.int64) << shift
        rest, shift = rest >> _DIGITS, shift + _DIGITS
    return total


@lru_cache(maxsize=4)
def _spectrum(cells: int, block: bytes) -> NDArray[np.complex128]:
    """Return the transform that a correlation with a block takes: estimates are repeated, designs stay."""
    inside = np.zeros(cells)
    inside[np.frombuffer(block, np.uint32)] = 1.0
    spectrum: NDArray[np.complex128] = np.conj(np.fft.rfft(inside))
    spectrum.flags.writeable = False
    return spectrum


# The error of a correlation is some units in the last place (2^-53) of the product of both norms: at most
# 2^20 sqrt(2^22) for the counts and sqrt(2^21) for the block, 2^41.5 in all.
_DIGITS = 20
