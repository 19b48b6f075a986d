"""Block designs: frequencies at the variance of subset selection, in the logarithm of its bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import CHUNK, Design, KeyedRandomness, count_progressions, pack
from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.categorical.supported import DesignCodes, Supported
from bitldp.client.program import ClientProgram, PublicDraw
from bitldp.client.record import Type
from bitldp.design.blocks import Blocks, best
from bitldp.estimate.accumulators import CountAccumulator, unpacked
from bitldp.estimate.estimates import Estimate, frequencies
from bitldp.mechanism.base import Output, Part
from bitldp.mechanism.frequencies import labelled
from bitldp.mechanism.parameters import (
    RANDOMIZE,
    Budget,
    CategoryNames,
    FieldId,
    Flag,
    Option,
    categories,
    refuse_unknown,
    whole,
)
from bitldp.privacy import ONE, Guarantee, calibrated
from bitldp.release.base import Call, Direct, Source, called
from bitldp.release.draws import public_key, whole_numbers
from bitldp.release.window import high_share

__all__ = ["BlockDesign", "SteppedReports", "Steps"]


class SteppedReports(NamedTuple):
    """Reports of n categories by progressions with public steps.

    Attributes
    ----------
    steps : ndarray of unsigned int, shape (n,)
        The step of each progression less 1, chosen without looking at the data.
    cells : ndarray of unsigned int, the same shape
        A number of the modulus.
    """

    steps: NDArray[Any]
    cells: NDArray[Any]


class Steps:
    """Cells of progressions whose steps are given.

    Parameters
    ----------
    design : Design
        Progressions. Whatever the step is, the ranks of cells have its window's law: so a report has its
        epsilon given the step.
    seed : int
        Of the steps that both sides imply.
    """

    def __init__(self, design: Design, seed: int) -> None:
        cells = design.cells
        order = np.arange(cells, dtype=np.uint32)
        self._ranks = Design.from_integers(
            "translates", cells, cells, design.width, design.high, order, design.mute
        )
        self._cells, self._count = cells, (cells - 1) // 2
        self._key = public_key(seed, "step")

    @property
    def parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(columns, bits) of a step and of a cell."""
        return (1, max(1, (self._count - 1).bit_length())), (1, (self._cells - 1).bit_length())

    def drawn(self, key: Source, records: int, first_chunk: int) -> NDArray[np.intp]:
        """Return steps less 1 for records, drawn without looking at them."""
        return whole_numbers(
            key, records, self._count, 0 if isinstance(key, KeyedRandomness) else first_chunk
        )

    def numbered(self, records: int, first: int) -> NDArray[np.intp]:
        """Return the steps less 1 of the numbers first, first + 1, ...: those of the public key's words."""
        chunk, skip = divmod(first, CHUNK)
        return whole_numbers(self._key, records, self._count, chunk, skip)

    def release(
        self, x: NDArray[Any], steps: NDArray[np.intp], key: Source, threads: int | None, first_chunk: int
    ) -> SteppedReports:
        """Return reports of checked categories, given their steps less 1.

        A rank is drawn whatever the category is, which then enters an addition: neither a branch nor an
        address depends on it.
        """
        drawn = self._ranks.randomize(np.zeros(len(x), np.uint32), key, "codes", None, threads, first_chunk)
        ranks, cells = drawn.astype(np.int64), self._cells
        chosen = steps.astype(np.int64) + 1
        # The multiples of a step come back to 0 where it shares a divisor; then those beside them follow.
        offsets = (ranks * chosen + ranks * np.gcd(chosen, cells) // cells) % cells
        positions = offsets + (0 if self._ranks.mute else x.astype(np.int64))
        positions -= cells * (positions >= cells)
        return self._small(steps, positions)

    def _small(self, steps: NDArray[Any], cells: NDArray[Any]) -> SteppedReports:
        dtypes = (np.min_scalar_type(most - 1) for most in (self._count, self._cells))
        return SteppedReports(
            *(part.astype(dtype) for part, dtype in zip((steps, cells), dtypes, strict=True))
        )

    def beside(self, cells: ArrayLike, first: int) -> SteppedReports:
        """Return checked cells with the steps that were implied."""
        result = checks.codes("reports", cells, self._cells)
        checks.records("reports", result, 1)
        return self._small(self.numbered(result.size, first).reshape(result.shape), result)

    def codes(self, reports: Any) -> NDArray[np.uint32]:
        """Return checked reports as codes of the design: step times modulus and cell."""
        if not isinstance(reports, (tuple, list)) or len(reports) != 2:
            raise TypeError("reports: must be a pair (steps, cells), as randomize gives it")
        steps = checks.codes("reports.steps", reports[0], self._count)
        cells = checks.codes("reports.cells", reports[1], self._cells)
        if steps.shape != cells.shape:
            raise ValueError(f"reports.steps: shape must be {cells.shape}, got {steps.shape}")
        return steps.astype(np.uint32) * np.uint32(self._cells) + cells.astype(np.uint32)


MOST_SEED = (1 << 63) - 1
"""The largest seed of public steps, and number of a record."""


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
class BlockDesign(DesignCodes, Supported):
    """Block design: reports a cell, more likely one in the block of the true category.

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories k, 2 to 1,000,000: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget of a record, finite, zero or more; the exact epsilon is at most that (see Notes).
    public : bool
        Whether the step of a progression is drawn publicly. It is then part of the report, or, with `first`,
        derived from a number that both sides know, so that a report is one cell of log2(v) bits.
    public_seed : int
        Seed of the derived steps, 0 or more. It is public: the server needs it, and privacy does not depend
        on it.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    There are v >= k cells, and a block of b cells for each category, of which any two share b (b - 1)/(v -
    1). A report is a cell from the block of the true category with probability p = b e^eps/(b e^eps + v - b).
    It counts for every category whose block contains it. For a category that the record does not have, this
    happens with probability q = (p (b - 1) + (1 - p) b)/(v - 1). `blocks` shows the chosen design: among the
    designs within 1 % of subset selection's mean variance, the one with the fewest bits; if there is none,
    the one with the least variance:

    - "single": v = k and b = 1, which is GRR;
    - "singer": translates of a hyperplane of a projective space over a finite field, in log2(v) bits;
    - "steps", up to 4096 categories, and up to 65,521 where b is at most 512: b numbers x, x + a, x + 2a, ...
      modulo an odd v without divisors below b, for a step a to (v - 1)/2 that is drawn without looking at x,
      and reported, in 2 log2(v) - 1 bits. Blocks share that many on average over the steps.

    With `public`, only the bits of the cell count, so a progression is chosen wherever it saves a bit.
    Reports are `SteppedReports`, pairs (steps, cells), or cells alone with `first`. Epsilon holds given the
    step, whoever chose it. Step i is drawn from number i of the keystream of the seed's key. Estimates are
    unbiased over the steps. Each record therefore needs its own number: with one step for everybody, blocks
    do not overlap equally. If the design has no steps, `first` changes nothing and a report is a cell.

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
    _: KW_ONLY
    epsilon: Budget
    public: Flag = False
    public_seed: Annotated[
        int,
        whole(0, MOST_SEED),
        Option(name="step_seed", short="Public seed of the steps."),
        FieldId("seed"),
    ] = 0

    _steps: Steps | None = field(init=False, repr=False, compare=False)  # None where a report is one code
    _blocks: Blocks = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        count = self._name(self.categories)
        if count > _MOST:  # labels, of which there may be more
            raise ValueError(f"categories: must be at most {_MOST}, got {count}")
        if self.public_seed and not self.public:
            raise ValueError("public_seed: is for public=True; otherwise no step is implied")
        blocks, channel = _channel(count, self.epsilon, self.public)
        exact, v, b = channel.epsilon, blocks.cells, blocks.width
        p = Fraction(channel.high, ONE)
        q = (p * (b - 1) + (1 - p) * b) / (v - 1)
        self._set(
            _blocks=blocks,
            _channel=channel,
            _steps=Steps(channel, self.public_seed) if self.public and blocks.family == "steps" else None,
            _law=(float(p), float(q), float(p * (b - 1) / (v - 1))),
            _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)),
        )

    @property
    def blocks(self) -> Blocks:
        """The design: its `family`, `cells` v, `width` b, and `field` (p, e, d) of a projective space."""
        return self._blocks

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one code, or a public step and a cell."""
        return super()._report_parts if self._steps is None else self._steps.parts

    def _join(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return reports, as `decode` takes them, of one array of shape (n, 1) for each part."""
        return (
            super()._join(parts) if self._steps is None else SteppedReports(*(each.ravel() for each in parts))
        )

    @property
    def _streams(self) -> int:
        return 1 if self._steps is None else 2

    @property
    def _bound(self) -> bool:
        return self._steps is not None  # two draws: of a step and of a cell

    def _shortcut(self) -> Direct | None:
        return super()._shortcut() if self._steps is None else None

    def randomize(
        self,
        x: ArrayLike,
        *,
        first: int | None = None,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
        **unknown: Any,
    ) -> Any:
        """Randomize records; see `Mechanism.randomize`.

        Parameters
        ----------
        x : array_like of int, or of labels, shape (n,) or ()
            Categories.
        first : int, optional
            With `public`: the number of the first record, 0 or more, which client and server both know, for
            example from client and round. Record i has the step of number ``first + i``. No two records
            should have the same number. None: steps are drawn at random, and reported.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        output : str
            One of `outputs`. "codes" have the smallest unsigned dtype. "values" are decoded by `decode`, in
            the dtype of `x`. "bits" are bytes of 0 and 1. "packed" are bytes that hold only the bits that a
            code needs.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`. Not available where
            a report is a pair of arrays.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks of the keys' streams to skip: of ``bitldp._core.CHUNK`` released values, or of
            ``channels[0].chunk`` records where whole records are released.
            `out` is not available where steps are public.

        Returns
        -------
        ndarray or SteppedReports
            Codes; where steps are public, the pair (steps, cells), or the cells alone with `first`. "packed"
            is flat.

        Raises
        ------
        ValueError
            For NaN, a value that is not allowed (the message gives its index, never the value), a wrong
            shape, an `out` that does not fit, or "values" where reports are uninformative. Nothing is
            returned in that case. Values are checked while they are randomized: if one is refused, `out` is
            filled with zeros. If the arguments do not fit each other, `out` is unchanged.
        TypeError
            For a wrong dtype or kind of argument.
            Also for `first` without `public`.
        """
        if first is not None:
            first = self._number(first)
        if first is None or self._steps is None:
            return super().randomize(
                x, rng=rng, output=output, out=out, threads=threads, first_chunk=first_chunk, **unknown
            )
        if unknown:
            refuse_unknown("randomize", unknown, RANDOMIZE)
        call = called(rng, output, out, threads, first_chunk, self.outputs, self._streams)
        values = self._admit(x)
        result = self._stepped(np.atleast_1d(values), call, first).cells
        return result if values.ndim or output == "packed" else result[0]

    def _number(self, first: int) -> int:
        """Return a checked number of a first record."""
        if not self.public:
            raise ValueError("first: is for public=True")
        return checks.integer("first", first, 0, MOST_SEED)

    def _program(self, numbers: Type) -> ClientProgram:
        cells = self._channel.cells
        draw = None if self._steps is None else PublicDraw("step", (cells - 1) // 2, cells)
        return replace(super()._program(numbers), draw=draw)

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        return super()._perturb(x, call) if self._steps is None else self._stepped(x, call, None)

    def _stepped(self, x: NDArray[Any], call: Call, first: int | None) -> SteppedReports:
        """Return reports with public steps, drawn or numbered."""
        if self._steps is None:
            raise TypeError("mechanism: its steps are not public")
        checks.records("x", x, 1)
        (key, step_key, *_), output, out, threads, first_chunk = call
        if out is not None:
            raise ValueError("out: not supported where steps are public, since a report has two parts")
        codes = checks.codes("x", x, self._size)
        flat = codes.reshape(-1)
        steps = (
            self._steps.drawn(step_key, flat.size, first_chunk)
            if first is None
            else self._steps.numbered(flat.size, first)
        )
        result = self._steps.release(flat, steps, key, threads, first_chunk)
        if output == "packed":
            both = zip(result, self._steps.parts, strict=True)
            return SteppedReports(*(pack(np.ascontiguousarray(part), bits) for part, (_, bits) in both))
        return SteppedReports(*(part.reshape(codes.shape) for part in result))

    def numbered(self, cells: ArrayLike, first: int) -> SteppedReports | ArrayLike:
        """Add the steps to cells that were randomized with `first`.

        Parameters
        ----------
        cells : array_like of int, shape (n,)
            As `randomize` gives them with `first`.
        first : int
            The number of the first one.

        Returns
        -------
        SteppedReports
            Or the cells as they are, where the design has no steps.

        Raises
        ------
        ValueError, TypeError
            For a cell out of range, another shape, or without `public`.
        """
        number = self._number(first)
        return cells if self._steps is None else self._steps.beside(cells, number)

    def decode(self, reports: Any, *, first: int | None = None) -> NDArray[np.float64]:
        """Return unbiased letters of reports; see `OLH.decode`. With `first` reports are cells alone."""
        return super().decode(reports if first is None else self.numbered(reports, first))

    def estimate_frequencies(
        self, reports: Any, *, project: bool = False, first: int | None = None
    ) -> Estimate:
        """Estimate the frequency of every category; see `GRR.estimate_frequencies`.

        With `first`, as in `randomize`, reports are cells alone.
        """
        given = reports if first is None else self.numbered(reports, first)
        return super().estimate_frequencies(given, project=project)

    def _read(self, reports: Any, records: int | None) -> tuple[str, Any, int]:
        if self._steps is not None:
            codes = self._steps.codes(unpacked(self, reports, records))
            return "codes", codes.ravel(), codes.size
        return super()._read(reports, records)

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

    def _support_sizes(self) -> tuple[int, int]:
        """Return how few and how many blocks of the categories hold one cell."""
        v, b, order = self._blocks.cells, self._blocks.width, self._channel.order
        if order is None:  # the progression of step 1 may lie in the categories, or reach all other cells
            return max(0, b - (v - self._size)), min(b, self._size)
        own = (np.arange(v) < self._size).astype(np.int64)
        sizes = correlated(own, order[:b])  # of every run of k neighbours, as the cells are of the categories
        return int(sizes.min()), int(sizes.max())

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

        See `Mechanism.accumulator`.
        """
        if self._blocks.family == "steps":
            return super().accumulator()
        law = self._check_informative()
        return _CellCounts(self, (self._blocks.cells,), self._count, law, reported="codes")


class _CellCounts(CountAccumulator):
    """Counts of cells, from which those of blocks follow at the end."""

    mechanism: BlockDesign

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the categories; see `CountAccumulator.estimate`."""
        mechanism, order = self.mechanism, self.mechanism.channel.order
        if order is None:
            raise TypeError("mechanism: its blocks are not translates of one another")
        block = order[: mechanism.blocks.width]
        supports = correlated(self.counts, block)[: mechanism._size]
        made = frequencies(supports, self.n, *self._law, project=project)
        return labelled(mechanism, self._judged(made))


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
        result = np.fft.irfft(np.fft.rfft(digits.astype(np.float64)) * kernel, cells)
        total += np.rint(result).astype(np.int64) << shift
        rest, shift = rest >> _DIGITS, shift + _DIGITS
    return total


@lru_cache(maxsize=4)
def _spectrum(cells: int, block: bytes) -> NDArray[np.complex128]:
    """Return the transform of a block that correlations use: estimates are repeated, designs stay."""
    inside = np.zeros(cells)
    inside[np.frombuffer(block, np.uint32)] = 1.0
    spectrum: NDArray[np.complex128] = np.conj(np.fft.rfft(inside))
    spectrum.flags.writeable = False
    return spectrum


# The error of a correlation is some units in the last place (2^-53) of the product of both norms: at most
# 2^20 sqrt(2^22) for the counts and sqrt(2^21) for the block, 2^41.5 in all.
_DIGITS = 20
