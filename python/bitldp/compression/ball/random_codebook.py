"""RandomCodebook: vectors of the l2 ball in few dimensions, as one of many random directions."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import KeyedRandomness, keystream
from bitldp.compression.ball.base import ball_radius, inside, norms
from bitldp.compression.ball.rotated import RotatedMeans
from bitldp.letters.directions import best_directions, best_nearest, nearest
from bitldp.mechanism.parameters import Budget, FieldId, Flag, Option, at_least, optional, whole
from bitldp.privacy import Guarantee
from bitldp.release.base import Call, Source
from bitldp.release.draws import public_key
from bitldp.release.rotated import RotatedRelease, signed_top

__all__ = ["DirectedRelease", "Directions", "RandomCodebook"]

_MOST = 127
_MOST_DIRECTIONS = 1 << 16
_MOST_SEED = (1 << 63) - 1


@dataclass(frozen=True, eq=False, repr=False)
class RandomCodebook(RotatedMeans):
    """Random codebook: reports one of many public random directions near a vector of the l2 ball.

    Parameters
    ----------
    features : int
        Coordinates of a record, d, 2 to 127. A report takes about n d operations, so use it for few
        coordinates. With more coordinates, `CrossPolytope` comes close.
    epsilon, radius, clip
        As of `CrossPolytope`.
    directions : int, optional
        Directions of a codebook, n, 2 to 65,536. None: the least power of two, 16 or more, whose variance is
        within 1.9 % of that of infinitely many, as long as n d is at most 2**21. This holds up to epsilon 12,
        and up to 13 for at most 32 features. Fewer directions are faster. The attribute then holds the chosen
        number.
    public_seed : int
        Seed of the codebooks, 0 or more. It is public: the server needs it, and privacy does not depend on
        it.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way, including their norm, also outside the ball. A record x becomes
    the unit vector u = x/|x| with probability (1 + |x|/R)/2, else its opposite: u is x/R on average. Each
    record has a codebook of its own, n independent uniform directions v of the sphere. The 2 n numbers +-v u
    are ordered by value, ties at random; each of the k largest is e^epsilon times as likely to be reported as
    each other one, an exact ratio of integers, whatever the codebook is. The search is not constant-time.

    A report of +-v is decoded as +-(R/m) v, where m is the mean of a reported projection over uniform
    directions, (w1 - w0) S_k/(k w1 + (2 n - k) w0), with S_k the mean sum of the k largest of n independent
    projections, and k makes m largest. Over codebooks and random bits its mean is x, exactly, and the sum of
    its variances over the coordinates R^2/m^2 - |x|^2. With more directions, which fill PrivUnit's cap of the
    sphere, it approaches PrivUnit. PrivUnit itself is continuous and has no exact epsilon in floating point.

    A report draws n d normal numbers, from 8 n d bytes of keystream; a decoded one, those of one direction,
    and the keystream up to it.

    Codebook i is drawn from the keystream of the seed's key, nonce i. `randomize` draws a number i for each
    record with a separate key, and a report carries its 32 bits. With `first`, both sides know it, and
    reports are codes alone, of log2(2 n) bits.

    Sources: Bhowmick, Duchi, Freudiger, Kapoor and Rogers, arXiv:1812.00984 (PrivUnit, and the direction of
    short records); Isik, Chen, Ozgur, Weissman and No, "Exact optimality of communication-privacy-utility
    tradeoffs in distributed mean estimation", NeurIPS 2023 (the k closest words of a random codebook); Shah,
    Chen, Balle, Kairouz and Theis, "Optimal compression of locally differentially private mechanisms",
    AISTATS 2022 (candidates from public randomness).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.RandomCodebook(3, epsilon=4.0)
    >>> mechanism.directions, mechanism.k, round(mechanism.total_variance(), 3)
    (128, 31, 0.736)
    >>> x = np.tile([0.6, 0.0, -0.8], (2000, 1))
    >>> estimate = mechanism.estimate_mean(mechanism.randomize(x, rng=1))
    >>> bool(np.square(estimate.value - x[0]).sum() < 0.002)
    True
    """

    features: Annotated[int, at_least(2, _MOST)]
    _: KW_ONLY
    epsilon: Budget
    radius: Annotated[float, ball_radius] = 1.0
    directions: Annotated[int | None, optional(at_least(2, _MOST_DIRECTIONS))] = None
    public_seed: Annotated[
        int,
        whole(0, _MOST_SEED),
        Option(name="codebook_seed", short="Public seed of the codebooks."),
        FieldId("seed"),
    ] = 0
    clip: Flag = True

    _no_document: ClassVar[str] = (
        "its codebook is made of NumPy's logarithms and cosines, which differ between machines"
    )
    _usual_size: ClassVar[int] = 8
    k: int = field(init=False, repr=False, compare=False)  # likely ranks; set on the instance
    _release: DirectedRelease = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        count = self.directions or best_directions(self.features, self.epsilon)
        k = best_nearest(self.features, count, self.epsilon)
        channel = signed_top(count, k, self.epsilon)
        exact = channel.epsilon
        codebooks: Any = Directions(self.features, count, public_key(self.public_seed, "codebook"))
        release = DirectedRelease(
            channel,
            exact,
            channel.outputs,
            points=np.array([-self.radius, self.radius]),
            rotation=codebooks,
            radius=self.radius,
        )
        self._set(
            directions=count,
            k=k,
            _count=1,
            _spread=None,
            _ends=(-self.radius, self.radius),
            _release=release,
            _moments=release.moments,
            _guarantee=Guarantee.judge(self.epsilon, (exact,) * 3),
        )

    @property
    def _streams(self) -> int:
        return 3  # the channel's, the codebooks', and that of the side of short records

    def _checked(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        super()._checked(x, call)
        return inside(x, self.features, 2, self.radius, self.clip).reshape(-1, self.features)

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of a record's decoded reports in each coordinate, over the codebooks.

        Parameters
        ----------
        x : array_like of float, shape (n, features) or (features,)
            True records; those outside the ball are scaled to it first.

        Returns
        -------
        ndarray of float64
            Same shape, in squared units of `x`; its sum over a record is `total_variance` of its norm.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0), or for numbers that are not finite.
        """
        records = inside(x, self.features, 2, self.radius, True)
        _, lengths = norms(records, self.features, 2)
        first = np.eye(1, self.features)[0]
        unit = np.where(lengths > 0.0, records / np.where(lengths > 0.0, lengths, 1.0), first)
        second, flat = self._second_moments()
        shares = np.square(unit)
        spread: NDArray[np.float64] = self.radius**2 * (second * shares + flat * (1.0 - shares))
        return spread - np.square(records)

    def total_variance(self, norm: float | None = None) -> float:
        """Return the sum of `variance` over the coordinates; see `CrossPolytope.total_variance`."""
        self._check_informative()
        length = self._length(norm)
        return (self.radius / self._moments[0]) ** 2 - length**2

    def _second_moments(self) -> tuple[float, float]:
        """Return E[z^2]/R^2 of a letter z along the record's direction, and in any one across it."""
        self._check_informative()
        mean, square = self._moments
        return square / mean**2, (1.0 - square) / (self.features - 1) / mean**2

    def worst_variance(self) -> float:
        """Return the largest `variance` of any coordinate of any record: of 0, along its direction."""
        return self.radius**2 * max(self._second_moments())

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the law of a report and its errors; see `Mechanism._facts`."""
        return super()._facts(users) | {"law": {"k": self.k, "directions": self.directions}}


_WORD = 8  # bytes of a random number
_BLOCK = 1 << 20  # coordinates of letters, or projections, at once
_DRAWN = 1 << 15  # coordinates of directions at once: their numbers stay in a cache


class Directions:
    """Codebooks of independent uniform directions of the sphere, each drawn from a number and a public key.

    Codebook i is drawn from the keystream of nonce i, direction j from its words j w to (j + 1) w, with w the
    least even number from the features on. Normal numbers over their norm; Box and Muller, "A note on the
    generation of random normal deviates", 1958.

    Parameters
    ----------
    features : int
        Coordinates of a direction.
    count : int
        Directions of a codebook.
    key : bytes
        32 of them, public.
    """

    def __init__(self, features: int, count: int, key: bytes) -> None:
        self.features = features
        self.dimensions = count  # ranked projections
        self._key = key
        self._width = features + features % 2

    def _units(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return directions of random numbers, shape (..., width) to (..., features)."""
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        half = self._width // 2
        radius, angle = np.sqrt(-2.0 * np.log(uniform[..., :half])), 2.0 * np.pi * uniform[..., half:]
        normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
        normal = normal[..., : self.features]
        return normal / np.linalg.norm(normal, axis=-1, keepdims=True)

    def rotate(
        self, x: NDArray[Any], numbers: NDArray[np.uint32], threads: int | None = None
    ) -> NDArray[np.float32]:
        """Return the projections of vectors on the directions of codebooks, shape (n, count)."""
        row = self.dimensions * self._width
        result = np.empty((len(x), self.dimensions), np.float32)
        step, size = max(1, _DRAWN // row), max(1, _DRAWN // self._width)
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            stream = b"".join(keystream(self._key, int(each), _WORD * row) for each in numbers[part])
            words = np.frombuffer(stream, "<u8").reshape(-1, self.dimensions, self._width)
            for first in range(0, self.dimensions, size):
                some = slice(first, first + size)
                # not a matrix product, whose rounding may depend on how many vectors there are
                result[part, some] = (self._units(words[:, some]) * x[part, None, :]).sum(axis=2)
        return result

    def letters(
        self,
        numbers: NDArray[np.uint32],
        codes: NDArray[np.uint32],
        scale: float,
        threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Return the directions that reports are of, times a length and their sign, shape (n, features)."""
        positions = codes >> 1
        words = np.empty((len(codes), self._width), np.uint64)
        for report, (number, position) in enumerate(zip(numbers.tolist(), positions.tolist(), strict=True)):
            end = (position + 1) * self._width
            words[report] = np.frombuffer(keystream(self._key, number, _WORD * end), "<u8")[-self._width :]
        signs = np.where(codes & 1, scale, -scale)
        return self._units(words) * signs[:, None]

    def sums(
        self,
        numbers: NDArray[np.uint32],
        codes: NDArray[np.uint32],
        scale: float,
        threads: int | None = None,
    ) -> list[NDArray[np.float64]]:
        """Return the sums of the letters of reports and of their squares, shape (features,) each."""
        total, squares = np.zeros(self.features), np.zeros(self.features)
        step = max(1, _BLOCK // self._width)
        for start in range(0, len(codes), step):
            part = slice(start, start + step)
            letters = self.letters(numbers[part], codes[part], scale)
            total += letters.sum(axis=0)
            squares += np.square(letters).sum(axis=0)
        return [total, squares]


@dataclass(frozen=True, eq=False)
class DirectedRelease(RotatedRelease):
    """A release of vectors by a selection from their signed projections on the directions of a codebook.

    `rotation` is the `Directions`; a report is one number of a codebook, and one code.
    """

    radius: float = 1.0

    @property
    def moments(self) -> tuple[float, float]:
        """(m, t): the means of a reported projection and of its square, for unit vectors; see `nearest`."""
        k, high, low = self.runs
        features, count = self.rotation.features, self.rotation.dimensions
        sums = nearest(features, count, k)
        total = self.channel.total
        squares = (high - low) * sums.squares + 2.0 * low * count / features
        return (high - low) * sums.sum / total, squares / total

    def select(self, x: NDArray[Any], rotations: NDArray[np.uint32], call: Call) -> NDArray[Any]:
        """Return the codes of vectors of the ball under their codebooks, shape (n, 1)."""
        keys = call.keys if len(call.keys) > 2 else [None] * 3
        unit = self._units(x, keys[2], call.first_chunk)
        return self._column(unit, np.ascontiguousarray(rotations[:, 0]), keys[0], call)[:, None]

    def _units(self, x: NDArray[Any], key: Source, first_chunk: int) -> NDArray[np.float64]:
        """Return unit vectors whose mean is x over the radius: of its direction, or of the opposite one.

        Zero has the direction of the first coordinate. No privacy rests on the draw: the law of a report is
        as far apart for any two unit vectors.
        """
        top = np.maximum(np.abs(x).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        shares = x / top
        lengths = np.sqrt(np.square(shares).sum(axis=1, keepdims=True))
        nothing = lengths[:, 0] < 0.5  # of others the largest share is 1
        unit = shares / np.where(nothing[:, None], 1.0, lengths)
        unit[nothing] = np.eye(1, x.shape[1])[0]
        norm = np.where(nothing, 0.0, lengths[:, 0] * (top[:, 0] / self.radius))
        flipped = self._uniform(key, len(x), first_chunk) >= (1.0 + norm) / 2.0
        return np.where(flipped[:, None], -unit, unit)

    def _uniform(self, key: Source, records: int, first_chunk: int) -> NDArray[np.float64]:
        """Return numbers of [0, 1) for records; chunk c of the channel's records takes those of nonce c."""
        if isinstance(key, KeyedRandomness):
            words = key.words(1, 0)
        else:
            key, chunk = os.urandom(32) if key is None else key, self.channel.chunk
            stream = b"".join(
                keystream(key, first_chunk + position, _WORD * min(chunk, records - start))
                for position, start in enumerate(range(0, records, chunk))
            )
            words = np.frombuffer(stream, "<u8")
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def _column(self, x: NDArray[Any], rotations: NDArray[Any], key: Source, call: Call) -> NDArray[Any]:
        if isinstance(key, KeyedRandomness):
            return super()._column(x, rotations, key, call)
        chunk = self.channel.chunk
        key = os.urandom(32) if key is None else key
        step = chunk * max(1, _BLOCK // (chunk * self.rotation.dimensions))
        result = [
            self.channel.randomize(
                self.rotation.rotate(x[start : start + step], rotations[start : start + step]),
                key,
                "codes",
                None,
                call.threads,
                call.first_chunk + start // chunk,
            )
            for start in range(0, max(1, len(x)), step)
        ]
        return np.concatenate(result)
