"""CLDP: one random coefficient of a record of an l1 or l2 ball, as one bit by randomized response."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import CHUNK, KeyedRandomness, Window, pack
from bitldp.base import checks
from bitldp.base.arrays import fill, readonly, zeros_if_refused
from bitldp.compression.ball.base import (
    GIVEN,
    OPPOSITE,
    Norm,
    ball_radius,
    check_shape,
    ends_of_ball,
    inside,
    norms,
)
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.statistics import Statistic
from bitldp.letters.spread import Spread
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.law import TABLE, Block, Experiment, Pair, Symbols
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import Budget, Flag, at_least
from bitldp.privacy import Guarantee
from bitldp.release.base import Call, Release, Source
from bitldp.release.draws import _words, coordinates
from bitldp.release.window import windowed

__all__ = ["CLDP", "blocks", "coordinate", "directions", "quantized", "second_moment"]

_MOST = 1 << 20
_MOST_SPHERE = 1 << 15  # 16 bits a coordinate
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class CLDP(Means):
    """CLDP: reports one random coefficient of a vector in a ball, and its sign, in log2(d) + 1 bits for l1.

    In the l2 ball, each coordinate takes log2(d) + 1 bits.

    Parameters
    ----------
    features : int
        Coordinates of a record, d, 1 to 2**20; padded with zeros to D, the next power of two. In the l2 ball
        1 to 2**15.
    epsilon, clip
        As of `CrossPolytope`.
    radius : float
        Radius of the ball, above zero, in units of `x`.
    norm : {"l1", "l2"}
        Records lie in the ball of this norm.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way, also outside the ball: privacy does not depend on clipping. A row
    j of the D x D Hadamard matrix H (entries +-1) is drawn without looking at the record, and the coefficient
    (H x)_j, a number of [-R, R], is released by Duchi's mechanism as +-C, C = R (e^eps + 1)/(e^eps - 1). The
    report is the code 2 j + sign; it is decoded as the vector +-C H_j, whose mean is x since H H = D I. The
    sum of its coordinates' variances is d C^2 - |x|^2.

    In the l2 ball, a direction w of the sphere is drawn without looking at the record. The sign of w x, or
    with probability (1 - |x|/R)/2 the opposite one, is released as s by randomized response. The vector t = s
    w is uniform on the half sphere around x with probability e^eps/(e^eps + 1), else on the other half: the
    mechanism of Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation",
    JASA 2018, Section 4.2.1. Every coordinate of t is dithered to log2(D) + 1 bits, and the report is decoded
    as B t, with B = R (e^eps + 1)/(e^eps - 1)/E|w_1|. Privacy depends on the bit alone, not on the floats of
    w. The sum of the variances is about (pi/2) d (R (e^eps + 1)/(e^eps - 1))^2 - |x|^2, and at least about
    1.57 d R^2 at any epsilon.

    Source: Girgis, Data, Diggavi, Kairouz and Suresh, "Shuffled model of differential privacy in federated
    learning", AISTATS 2021, the mechanisms for p = 1 and p = 2.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.compression import CLDP
    >>> mechanism = CLDP(6, epsilon=2.0)
    >>> x = np.array([0.5, -0.25, 0.0, 0.0, 0.25, 0.0])
    >>> reports = mechanism.randomize(np.tile(x, (100_000, 1)), rng=1)
    >>> bool(np.abs(mechanism.estimate_mean(reports).value - x).max() < 0.02)
    True
    >>> mechanism.report_bits
    4
    """

    features: Annotated[int, at_least(1, _MOST)]
    _: KW_ONLY
    epsilon: Budget
    radius: Annotated[float, ball_radius] = 1.0
    clip: Flag = True
    norm: Norm = "l1"

    _no_document: ClassVar[str] = (
        "it clips to the ball by sums of NumPy, which no other client makes in the same order"
    )
    _takes: ClassVar[Takes | None] = "ball"
    _usual_size: ClassVar[int] = 100
    outputs: ClassVar[tuple[str, ...]] = ("codes", "packed")
    # Derived of the parameters while the mechanism is built.
    _rows: int = field(init=False, repr=False, compare=False)
    _power: int = field(init=False, repr=False, compare=False)
    _sign: Release = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        if self.norm == "l2" and self.features > _MOST_SPHERE:
            raise ValueError(f"features: must be at most {_MOST_SPHERE} with norm='l2', got {self.features}")
        sign = windowed(2, 1, self.epsilon, (-self.radius, self.radius))
        release = sign if self.norm == "l1" else self._vectors(sign)
        self._set(
            _sign=sign,
            _power=1 if self.norm == "l1" else 2,
            _release=release,
            _ends=(-self.radius, self.radius),
            _spread=release.spread,
            _rows=1 << (self.features - 1).bit_length(),
            _guarantee=Guarantee.judge(self.epsilon, (release.epsilon,) * 3),
        )

    def _vectors(self, sign: Release) -> Release:
        """Return the release of a coordinate of the l2 ball, from that of the sign."""
        points = 2 << (self.features - 1).bit_length()
        if sign.letters is None:
            return replace(sign, alphabet=points)
        scale = float(sign.letters[1]) / coordinate(self.features)
        letters = readonly(scale * np.linspace(-1.0, 1.0, points))
        moment = scale * scale * second_moment(self.features, points)
        ends = readonly(np.array([-self.radius, self.radius]))
        spread = Spread(ends, readonly(np.array([moment, moment])))
        return replace(sign, alphabet=points, letters=letters, spread=spread)

    @property
    def channel(self) -> Window:
        """The channel of the sign; uninformative at epsilon 0."""
        return self._sign.channel

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: log2(D) + 1 bits, or as many a coordinate."""
        if self.norm == "l2":
            return ((self.features, self._rows.bit_length()),)
        return ((1, self._rows.bit_length()),)

    def _join(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return reports, as `decode` takes them: one code a record, or a row of them."""
        return parts[0].ravel() if self.norm == "l1" else parts[0]

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of the sign; which coefficient is reported does not depend on the record."""
        laws = self._sign.laws
        return (Symbols(laws, 1),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return opposite vectors of the ball and the law of their reports; see `Mechanism.extremes`."""
        if pair is None:
            inputs, names = ends_of_ball(self.features, self.radius), OPPOSITE
        else:
            inputs, names = np.stack([self._inside(each)[0] for each in pair]), GIVEN
        if 4 * self._rows > TABLE or self.norm == "l2":
            return Experiment(list(inputs), names) if pair is None else None
        ends = self.probabilities()  # of the coefficients -R and R
        matrix = signs(np.arange(self._rows), self.features)
        upper = np.clip((inputs @ matrix.T / self.radius + 1.0) / 2.0, 0.0, 1.0)[..., None]
        table = ((1.0 - upper) * ends[0] + upper * ends[1]) / self._rows

        def describe(symbol: int, value: int) -> str:
            return f"coefficient {value >> 1} is reported {'-+'[value & 1]}"

        block = Block(table.reshape(2, 1, -1), describe)
        return Experiment(list(inputs), names, [block], [(0, 1)], {"output": "codes"})

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of the sign, given the drawn row: P[i, s] for a coefficient at -R, and at R."""
        return self._sign.probabilities()

    def _inside(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return checked records in the ball, float64, shape (n, features)."""
        return inside(x, self.features, self._power, self.radius, self.clip).reshape(-1, self.features)

    def outside(self, x: ArrayLike) -> int:
        """Return how many records lie outside the ball and are scaled to it; see `Mechanism.outside`."""
        return int(np.count_nonzero(norms(x, self.features, self._power)[1] > self.radius))

    @property
    def _streams(self) -> int:
        return 2 if self.norm == "l1" else 3

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        check_shape("x", np.shape(x), self.features)
        with zeros_if_refused(call.out):
            records = self._inside(x)
        if self.norm == "l2":
            vectors = self._halved(records, call).reshape(np.shape(x))
            if call.output == "packed":
                vectors = pack(vectors, self._rows.bit_length())
            return vectors if call.out is None else fill(call.out, vectors)
        key, drawn = call.keys[:2]
        rows = coordinates(drawn, len(records), self._rows, 1, call.first_chunk)[:, 0].astype(np.int64)
        coefficients = np.empty(len(records))
        step = max(1, _BLOCK // self.features)
        for start in range(0, len(records), step):
            part = slice(start, start + step)
            coefficients[part] = (signs(rows[part], self.features) * records[part]).sum(axis=1)
        # the sum's rounding may pass an end by a unit in the last place; the grid clips
        said = self._release.randomize(coefficients, call.codes([key]))
        codes = (2 * rows + said).astype(np.min_scalar_type(2 * self._rows - 1))
        packed = call.output == "packed"
        reports = pack(codes, self.report_bits) if packed else codes.reshape(np.shape(x)[:-1])
        return reports if call.out is None else fill(call.out, reports)

    def _halved(self, records: NDArray[np.float64], call: Call) -> NDArray[Any]:
        """Return the codes of vectors of the half spheres."""
        key, drawn, dither = call.keys
        points = self._release.alphabet
        lengths = np.minimum(norms(records, self.features, 2)[1], self.radius)[:, 0]
        parts = blocks(len(records), self.features)
        # a fresh key is drawn once: the direction is needed twice
        drawn = os.urandom(32) if drawn is None else drawn
        dither = os.urandom(32) if dither is None else dither
        sides = np.empty(len(records))
        for part in parts:
            along = (directions(drawn, part, self.features, call.first_chunk) * records[part]).sum(axis=1)
            sides[part] = np.copysign(lengths[part], along)
        said = 2.0 * self._sign.randomize(sides, call.codes([key])).astype(np.float64) - 1.0
        codes = np.empty((len(records), self.features), np.min_scalar_type(points - 1))
        for part in parts:
            vectors = said[part, None] * directions(drawn, part, self.features, call.first_chunk)
            codes[part] = quantized(dither, vectors, part, points, call.first_chunk)
        return codes

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the decoded vectors of reports, whose mean over the random bits is the (clipped) record.

        Parameters
        ----------
        reports : array_like of int, shape (n,) or ()
            Codes as `randomize` gives them; shape (n, features) or (features,) with ``norm="l2"``.

        Returns
        -------
        ndarray of float64, shape (n, features) or (features,)

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), or for a code out of range or another shape.
        """
        if self.norm == "l2":
            return super().decode(reports)
        letters = self.letters
        codes = checks.codes("reports", reports, 2 * self._rows)
        if codes.ndim > 1:
            raise ValueError(f"reports: shape must be (n,) or (), got {codes.shape}")
        flat = codes.reshape(-1).astype(np.int64)
        vectors: NDArray[np.float64] = signs(flat >> 1, self.features) * letters[flat & 1][:, None]
        return vectors.reshape(*codes.shape, self.features)

    def _records(self, reports: ArrayLike) -> NDArray[np.float64]:
        return self.decode(reports).reshape(-1, self.features)

    def _statistic(self) -> Statistic | None:
        return super()._statistic() if self.norm == "l2" else None  # where a code stands for a whole vector

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the (clipped) records, without bias; see `Means.estimate_mean`."""
        if self.norm == "l2":
            return super().estimate_mean(reports)
        accumulator = self.accumulator()
        step = max(1, _BLOCK // self.features)
        codes = np.atleast_1d(np.asarray(reports))
        for start in range(0, max(1, len(codes)), step):
            accumulator.update(codes[start : start + step])
        return accumulator.estimate()


def signs(rows: NDArray[np.int64], columns: int) -> NDArray[np.float64]:
    """Return rows of a Hadamard matrix, (-1)^popcount(j & l) for l < columns, shape (len(rows), columns)."""
    parity = rows[:, None] & np.arange(columns)
    shift = 1 << max(0, math.ceil(math.log2(max(1, columns.bit_length()))))
    while shift:
        parity ^= parity >> shift
        shift >>= 1
    return np.asarray(1.0 - 2.0 * (parity & 1), dtype=np.float64)


_SMOOTH = 64  # dimensions from which on the density of a coordinate is smooth over a step of the grid
_NODES = 32
_ENTRIES = 1 << 20  # numbers of a block, about


def _width(features: int) -> int:
    """Return the words of a stream that a record takes: a power of two, so that blocks begin with chunks."""
    return max(2, 1 << (features - 1).bit_length())


def blocks(records: int, features: int) -> list[slice]:
    """Return which records are drawn together."""
    size = max(1, CHUNK // _width(features))
    size *= max(1, _ENTRIES // (size * _width(features)))
    return [slice(start, min(start + size, records)) for start in range(0, records, size)]


def _block(key: Source, part: slice, features: int, first_chunk: int) -> NDArray[np.uint64]:
    """Return the words of some records, shape (records, width)."""
    width = _width(features)
    if isinstance(key, KeyedRandomness):  # every record has a stream of its own
        key = key.taken(np.arange(part.start, part.stop, dtype=np.int64), 0)
        return _words(key, len(key) * width, 0).reshape(-1, width)
    words = _words(key, (part.stop - part.start) * width, first_chunk * width + part.start * width // CHUNK)
    return words.reshape(-1, width)


def directions(key: Source, part: slice, features: int, first_chunk: int) -> NDArray[np.float64]:
    """Return uniform vectors of the unit sphere, shape (records, features): normal ones over their norms.

    By Box and Muller, "A note on the generation of random normal deviates", 1958.
    """
    uniform = (
        (_block(key, part, features, first_chunk) >> np.uint64(11)).astype(np.float64) + 0.5
    ) * 2.0**-53
    half = uniform.shape[1] // 2
    radius, angle = np.sqrt(-2.0 * np.log(uniform[:, :half])), 2.0 * math.pi * uniform[:, half:]
    normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, :features]
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def quantized(
    key: Source, vectors: NDArray[np.float64], part: slice, points: int, first_chunk: int
) -> NDArray[np.int64]:
    """Return numbers of [-1, 1] dithered, without bias, to the indices of so many equidistant points."""
    features = vectors.shape[1]
    words = _block(key, part, features, first_chunk)[:, :features]
    positions = np.clip((vectors + 1.0) * ((points - 1) / 2.0), 0.0, points - 1.0)
    low = np.minimum(np.floor(positions), points - 2.0)
    upper = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 < positions - low
    return (low + upper).astype(np.int64)


def coordinate(features: int) -> float:
    """Return E|w_1| of a uniform vector w of the unit sphere: Gamma(d/2)/(sqrt(pi) Gamma((d + 1)/2))."""
    return math.exp(math.lgamma(features / 2.0) - math.lgamma((features + 1.0) / 2.0)) / math.sqrt(math.pi)


def second_moment(features: int, points: int) -> float:
    """Return E[y^2] of a coordinate of a uniform vector of the sphere, dithered to so many points of [-1, 1].

    1/d, and f (1 - f) steps squared of the dither, f being the position within a step: 1/6 on average where
    the density is smooth over a step, as it is but for few dimensions.
    """
    step = 2.0 / (points - 1)
    if features == 1:
        return 1.0
    if features >= _SMOOTH:
        return 1.0 / features + step * step / 6.0
    # w = sin(t) has the density cos(t)^(d - 2), up to a factor, between -pi/2 and pi/2
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    edges = np.arcsin(np.linspace(-1.0, 1.0, points))
    middle, half = (edges[1:] + edges[:-1]) / 2.0, np.diff(edges) / 2.0
    angles = middle[:, None] + half[:, None] * nodes
    mass = half[:, None] * weights * np.cos(angles) ** (features - 2)
    positions = (np.sin(angles) + 1.0) / step
    share = positions - np.floor(positions)
    return 1.0 / features + step * step * float((mass * share * (1.0 - share)).sum() / mass.sum())
