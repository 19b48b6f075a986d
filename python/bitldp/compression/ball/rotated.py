"""Vectors of the l2 ball, each reported by one coordinate after a public rotation, and their estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Rotation, Select
from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.client.mechanisms import no_document
from bitldp.client.program import ClientProgram, PublicRotation
from bitldp.client.record import ClientRecord, Type
from bitldp.compression.ball.base import check_shape, inside, norms
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.intervals import LetterLaw
from bitldp.estimate.means import MeanAccumulator
from bitldp.estimate.rotated import CohortMeanAccumulator, RotatedMeanAccumulator
from bitldp.letters.polytope import best_top, tops
from bitldp.letters.reach import Reach
from bitldp.letters.spread import Mixed
from bitldp.mechanism.base import Output, Part, Takes
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import RANDOMIZE, refuse_unknown
from bitldp.release.base import Call, called
from bitldp.release.rotated import RotatedRelease, RotatedReports

__all__ = ["RotatedMeans", "best_reports", "opposite_directions"]


class RotatedMeans(Means):
    """Base of the mechanisms that lift a vector of the l2 ball, rotate it in public and report a coordinate.

    Not a dataclass: a subclass chooses its parameters, and sets the release, its moments and its count.
    """

    radius: float
    cohorts: int | None = None

    _takes: ClassVar[Takes | None] = "ball"
    norm: ClassVar[str] = "l2"
    _usual_size: ClassVar[int] = 100
    outputs: ClassVar[tuple[str, ...]] = ("codes", "packed")
    _release: RotatedRelease
    _moments: tuple[float, float]  # m and t, the means of a reported coordinate and its square
    _count: int  # reports of a record
    _blocks = 1  # of coordinates, of which a report is about one

    @property
    def channel(self) -> Select:
        """The channel of one report: its weights are of the 2 D signed coordinates, smallest first."""
        return self._release.channel

    @property
    def codec(self) -> Rotation:
        """The public rotations, with their lift."""
        return self._release.rotation

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: the rotations' numbers, and log2(2 D) bits for each code."""
        return ((self._count, self._release.rotation_bits), (self._count, self._release.bits))

    def _join(self, parts: Sequence[NDArray[Any]]) -> RotatedReports:
        """Return reports, as `decode` takes them, of one array of shape (n, columns) for each part."""
        return RotatedReports(*(part.ravel() if self._count == 1 else part for part in parts))

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of a report; which rotation it is about does not depend on the record."""
        return (Symbols((self.channel,), self._count),) if self._release.epsilon else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return opposite vectors and the law of where their reports lie; see `Mechanism.extremes`.

        Opposite vectors of the sphere have their 2 D signed coordinates in opposite order. A report among the
        first k of one is therefore among the last k of the other, and its rotation shows which.
        """
        if pair is not None:
            return None
        return opposite_directions(self._release, self.radius)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law by rank, smallest of the 2 D values first, shape (2 D,)."""
        return self.channel.weights() / float(self.channel.total)

    @property
    def letters(self) -> NDArray[np.float64]:
        """Decoded value of a reported coordinate after its rotation: -R/m and R/m for codes 2 j and 2 j + 1.

        Where a report is about one of B blocks of coordinates, B times that.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0).
        """
        self._check_informative()
        scale = self._blocks * self.radius / self._moments[0]
        return np.array([-scale, scale])

    def _check_informative(self) -> None:
        if self._moments[0] <= 0.0:
            self._refuse_uninformative()

    @property
    def _streams(self) -> int:
        return self._count + 1

    def outside(self, x: ArrayLike) -> int:
        """Return how many records lie outside the ball and are scaled to it; see `Mechanism.outside`."""
        return int(np.count_nonzero(norms(x, self.features, 2)[1] > self.radius))

    @staticmethod
    def _single(reports: Any, call: Call) -> Any:
        """Return the report of a single value as that of any record."""
        return reports

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
        x : array_like of float32 or float64, shape (n, features) or (features,)
            Records. Those outside the ball count as its ends in their direction.
        first : int, optional
            Number of the first record's rotation, 0 or more, if client and server both know it, for example
            from client and round. Record i has the rotation ``first + i`` (modulo 2**32, or the cohorts;
            each further report of a record has the next one). No two clients should have the same number.
            None: drawn at random for each record, and reported.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        output : str
            One of `outputs`. "codes" have the smallest unsigned dtype. "values" are decoded by `decode`, in
            the dtype of `x`. "bits" are bytes of 0 and 1. "packed" are bytes that hold only the bits that a
            code needs.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks of the keys' streams to skip: of ``bitldp._core.CHUNK`` released values, or of
            ``channels[0].chunk`` records where whole records are released.
            The rotations do not depend on the channel's randomness.
        out : None
            Not offered.

        Returns
        -------
        RotatedReports, or ndarray
            The pair (rotations, codes), shapes (n,) or (), with several reports a record (n, reports) or
            (reports,). With `first`, the codes alone. "packed" parts are flat.

        Raises
        ------
        ValueError
            For NaN, a value that is not allowed (the message gives its index, never the value), a wrong
            shape, an `out` that does not fit, or "values" where reports are uninformative. Nothing is
            returned in that case. Values are checked while they are randomized: if one is refused, `out` is
            filled with zeros. If the arguments do not fit each other, `out` is unchanged.
        TypeError
            For a wrong dtype or kind of argument.
        """
        if first is None:
            return super().randomize(
                x, rng=rng, output=output, out=out, threads=threads, first_chunk=first_chunk, **unknown
            )
        number = checks.integer("first", first, 0)
        if unknown:
            refuse_unknown("randomize", unknown, RANDOMIZE)
        call = called(rng, output, out, threads, first_chunk, self.outputs, self._streams)
        values = self._admit(x)
        table = self._checked(values, call)
        return self._reported(values, table, self._release.numbered(len(table), number), call).codes

    def _checked(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        """Return records of shape (n, features)."""
        if call.out is not None:
            raise ValueError("out: not supported, since a report is a pair")
        check_shape("x", np.shape(x), self.features)
        if not self.clip:
            inside(x, self.features, 2, self.radius, False)
        return x.reshape(-1, self.features)

    def _program(self, numbers: Type) -> ClientProgram:
        release = self._release
        if type(release) is not RotatedRelease:
            raise no_document(self, self._no_document)
        if not self.clip:
            raise no_document(self, "it refuses vectors outside the ball, and other clients scale them to it")
        draw = PublicRotation(release.rotation, release.rotations, release.count)
        return ClientProgram(
            ClientRecord(numbers, self.features), self._report_parts, release.channel, draw=draw
        )

    def _perturb(self, x: NDArray[Any], call: Call) -> RotatedReports:
        table = self._checked(x, call)
        drawn = self._release.drawn(call.keys, len(table), call.first_chunk)
        return self._reported(x, table, drawn, call)

    def _reported(
        self, x: NDArray[Any], table: NDArray[Any], rotations: NDArray[np.uint32], call: Call
    ) -> RotatedReports:
        codes = self._release.select(table, rotations, call)
        if call.output == "packed":
            return self._release.packed(RotatedReports(rotations, codes))
        shape = x.shape[:-1] + ((self._count,) if self._count > 1 else ())
        return RotatedReports(rotations.reshape(shape), codes.reshape(shape))

    def numbered(self, codes: ArrayLike, first: int) -> RotatedReports:
        """Add the rotations to codes that were randomized with `first`.

        Parameters
        ----------
        codes : array_like of int, shape (n,) or (n, reports)
            As `randomize` gives them with `first`.
        first : int
            The number of the first one's rotation.

        Returns
        -------
        RotatedReports

        Raises
        ------
        ValueError, TypeError
            For a code out of range, or another shape.
        """
        result = self._release.coded(codes)
        number = checks.integer("first", first, 0)
        rotations = self._release.numbered(result.size // self._count, number)
        return RotatedReports(rotations.reshape(result.shape), result)

    def _pair(self, reports: Any, first: int | None) -> Any:
        return reports if first is None else self.numbered(reports, first)

    def decode(self, reports: Any, *, first: int | None = None) -> NDArray[np.float64]:
        """Return the decoded vectors of reports, whose mean over random bits and rotations is the record.

        Parameters
        ----------
        reports : RotatedReports, or array_like of int
            As `randomize` gives them; codes alone with `first`.
        first : int, optional
            The number of the first record's rotation, 0 or more, where client and server imply it, as by
            client and round: record i has the rotation ``first + i`` (modulo 2**32, or the cohorts; with
            several reports a record, each the next one). No two clients should have the same. None: drawn at
            random for each record, and reported.

        Returns
        -------
        ndarray of float64, shape (n, features) or (features,)

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), or for reports out of range or of another shape.
        """
        scale = self.letters[1] / self._count
        pair = self._pair(reports, first)
        rotations, codes = self._release.flat(pair)
        letters = self.codec.letters(rotations.ravel(), codes.ravel(), scale)
        if self._count > 1:
            letters = letters.reshape(-1, self._count, self.features).sum(axis=1)
        single = np.ndim(pair[1]) == (0 if self._count == 1 else 1)
        return letters[0] if single else letters

    @cached_property
    def _letter_law(self) -> LetterLaw | None:
        """Law of a decoded coordinate over the rotations, for intervals."""
        if self._moments[0] <= 0.0:
            return None
        length = float(self.letters[1])
        moment = min(length**2, self.worst_variance() + self.radius**2)
        return LetterLaw(Mixed.of_range(-self.radius, self.radius, moment), 2.0 * length)

    def accumulator(self) -> MeanAccumulator:
        """Return an empty accumulator of the mean: streams, merges and serialises.

        It takes pairs (rotations, codes), which `numbered` makes from codes. With `cohorts`, reports are
        counted, and each rotation is inverted once for all reports that share it. See
        `Mechanism.accumulator`.
        """
        scale = float(self.letters[1])
        if self.cohorts is None:
            return RotatedMeanAccumulator(self, self._release, scale)
        cohorts: Any = CohortMeanAccumulator(self, self._release, scale, self.cohorts)
        result: MeanAccumulator = cohorts  # both offer the same
        return result

    def estimate_mean(self, reports: Any, *, first: int | None = None) -> Estimate:
        """Estimate the mean of the (clipped) records, without bias over the rotations.

        Parameters
        ----------
        reports : RotatedReports, or array_like of int
            Of n >= 1 records, as `randomize` gives them; codes alone with `first`.
        first : int, optional
            The number of the first record's rotation, 0 or more, where client and server imply it, as by
            client and round: record i has the rotation ``first + i`` (modulo 2**32, or the cohorts; with
            several reports a record, each the next one). No two clients should have the same. None: drawn at
            random for each record, and reported.

        Returns
        -------
        Estimate
            `value` and `stderr` of shape (features,); the standard error needs two records, or cohorts, and
            is NaN otherwise.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), for no reports or one out of range, and for several
            that all share one rotation, unless ``cohorts=1``.
        """
        return self.accumulator()._filled(self._pair(reports, first)).estimate()

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of a record's decoded reports in each coordinate, over the rotations.

        Parameters
        ----------
        x : array_like of float, shape (n, features) or (features,)
            True records; those outside the ball are scaled to it first.

        Returns
        -------
        ndarray of float64
            Same shape, in squared units of `x`; its sum over a record is `total_variance` of its norm. It is
            the variance of one record under uniform rotations. The part that a cohort shares does not average
            out.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0), or for numbers that are not finite.
        """
        records = inside(x, self.features, 2, self.radius, True)
        shares = np.square(records / self.radius)
        second, flat = self._second_moments()
        spread: NDArray[np.float64] = self.radius**2 * (second * shares + flat * (1.0 - shares) - shares)
        return spread / self._count

    def total_variance(self, norm: float | None = None) -> float:
        """Return the sum of `variance` over the coordinates, which the norm of a record decides.

        Parameters
        ----------
        norm : float, optional
            Norm of the record, 0 or more; above the radius it is the radius. None: the radius.

        Returns
        -------
        float
            In squared units of `x`: the mean squared error of one report.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0), or for a norm that is negative or not finite.
        """
        shares = (self._length(norm) / self.radius) ** 2
        second, flat = self._second_moments()
        total = second * shares + flat * (self.features - shares) - shares
        return self.radius**2 * total / self._count

    def _length(self, norm: float | None) -> float:
        """Return the norm of a record in the ball; of one on the sphere for None."""
        return self.radius if norm is None else min(checks.budget("norm", norm), self.radius)

    def _second_moments(self) -> tuple[float, float]:
        """Return E[z^2]/R^2 of a letter z along the record, and in any direction across it."""
        self._check_informative()
        mean, square = self._moments
        scale = self._blocks / mean**2  # B^2, for one report in B
        return square * scale, (1.0 - square) / (self.codec.dimensions - 1) * scale

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the norm of a decoded vector, which bounds every coordinate under any rotation."""
        norm = float(self.letters[1])
        return (replace(Reach.of_numbers(-norm, norm, self._ends, self.features), norm=norm),)

    def mean_variance(self) -> float:
        """Return the mean of `variance` over the coordinates of a record on the sphere."""
        return self.total_variance() / self.features

    def worst_variance(self) -> float:
        """Return the largest `variance` of any coordinate of any record: it is 0, or the whole record."""
        second, flat = self._second_moments()
        return self.radius**2 * max(second - 1.0, flat) / self._count


_BLOCK = 1 << 22  # rotated coordinates that are compared at once


@lru_cache(maxsize=256)
def best_reports(dimensions: int, epsilon: float, most: int) -> int:
    """Return how many reports share a budget: 1 up to ln(2 D) + 1, then as the variance asks."""
    if epsilon <= math.log(2.0 * dimensions) + 1.0:
        return 1

    def spread(count: int) -> float:
        each = epsilon / count
        k, odds = best_top(dimensions, each), math.expm1(min(each, 700.0))
        mean = odds * tops(dimensions, k).sum / (k * odds + 2.0 * dimensions)
        return (1.0 / mean**2 - 1.0) / count

    best, least = 1, spread(1)
    for count in range(2, most + 1):
        result = spread(count)
        if result > least:
            break
        best, least = count, result
    return best


@dataclass(frozen=True, eq=False)
class _Ranked(Experiment):
    """Opposite records; a report is among the first k of one, of the other, or of neither.

    Attributes
    ----------
    release : RotatedRelease
        Whose reports they are.
    k : int
        The likely ranks.
    """

    _: KW_ONLY
    release: RotatedRelease
    k: int

    def split(self, reports: Any) -> list[NDArray[Any]]:
        """Return 2 for the first k of the first record, 0 for the last k, else 1, shape (n, reports)."""
        rotations, codes = self.release.flat(reports)
        flat, numbers = codes.ravel(), rotations.ravel()
        result = np.empty(len(flat), np.uint8)
        step = max(1, _BLOCK // self.release.rotation.dimensions)
        for start in range(0, len(flat), step):
            part = slice(start, start + step)
            x = np.repeat(self.inputs[0][None], len(flat[part]), axis=0)
            result[part] = self._placed(self.release.rotation.rotate(x, numbers[part]), flat[part])
        return [result.reshape(codes.shape)]

    def _placed(self, rotated: NDArray[np.float32], codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        chosen = rotated[np.arange(len(codes)), codes >> 1] * np.where(codes & 1, 1.0, -1.0)
        larger = (np.abs(rotated) > np.abs(chosen)[:, None]).sum(axis=1) < self.k
        return np.where(larger, np.where(chosen > 0.0, 2, 0), 1).astype(np.uint8)


def opposite_directions(release: RotatedRelease, radius: float) -> Experiment:
    """Return the experiment of two opposite records of the sphere of a radius.

    k w1, (2 D - 2 k) w0 and k w0 over their sum are the chances that a report is among the first k of its
    record, in the middle, and among the first k of the other.
    """
    k, high, low = release.runs
    total = release.channel.total
    shares = (k * low / total, (release.alphabet - 2 * k) * low / total, k * high / total)
    features = release.rotation.features
    record = np.cos(1.0 + np.arange(features) ** 2.0)  # irregular: no two rotated coordinates are equal
    record *= radius / math.sqrt(float(record @ record))
    table = np.array([shares, shares[::-1]])[:, None, :].repeat(release.count, axis=1)

    def describe(symbol: int, value: int) -> str:
        where = ("the opposite vector", "neither", "the vector")[value]
        return f"report {symbol} is among the likely coordinates of {where}"

    names = ["a vector of the sphere", "the opposite vector"]
    law = [Block(table, describe)]
    return _Ranked([record, -record], names, law, [(0, 1)], {"output": "codes"}, release=release, k=k)
