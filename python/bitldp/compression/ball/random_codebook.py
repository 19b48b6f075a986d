"""RandomCodebook: vectors of the l2 ball in few dimensions, as one of many random directions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.compression.ball._records import inside, norms
from bitldp.compression.ball.base import ball_radius
from bitldp.compression.ball.rotated import RotatedMeans
from bitldp.letters.directions import best_directions, best_nearest
from bitldp.mechanism.parameters import Budget, Flag, Option, at_least, optional, whole
from bitldp.privacy import Guarantee
from bitldp.release.base import Call
from bitldp.release.directed import DirectedRelease, Directions
from bitldp.release.draws import public_key
from bitldp.release.rotated import signed_top

__all__ = ["RandomCodebook"]

_MOST = 127
_MOST_DIRECTIONS = 1 << 14
_MOST_SEED = (1 << 63) - 1


@dataclass(frozen=True, eq=False, repr=False)
class RandomCodebook(RotatedMeans):
    """Random codebook: a vector of the l2 ball at pure epsilon, as one of many public random directions.

    Parameters
    ----------
    features : int
        Coordinates of a record, d, 2 to 127. A report takes about n d operations, so that it is for few: the
        more there are, the nearer `CrossPolytope` comes.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    radius : float
        Radius of the l2 ball, above zero, in units of `x`.
    directions : int, optional
        Directions of a codebook, n, 2 to 16,384. None: the least power of two whose variance is within
        1.9 % of that of infinitely many, 16 to 4096. Holds the number afterwards.
    seed : int
        Of the codebooks, 0 or more. It is public: the server needs it, and no privacy rests on it.
    clip : bool
        Whether records outside the ball are scaled to it, or refused.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way, in their norm too, and outside the ball. A record x becomes the
    unit vector u = x/|x| with probability (1 + |x|/R)/2, else its opposite: u is x/R on average. Each record
    has a codebook of its own, n independent uniform directions v of the sphere. The 2 n numbers +-v u are
    ordered by value, ties at random; each of the k largest is e^epsilon times as likely to be reported as
    each other one, an exact ratio of integers, whatever the codebook is. The search is not constant-time.

    A report of +-v is worth +-(R/m) v, where m is the mean of a reported projection over uniform directions,
    (w1 - w0) S_k/(k w1 + (2 n - k) w0), with S_k the mean sum of the k largest of n independent projections,
    and k makes m largest. Over codebooks and coins its mean is x, exactly, and the sum of its variances over
    the coordinates R^2/m^2 - |x|^2. The more directions, the nearer that is to PrivUnit, whose cap of the
    sphere they fill; PrivUnit is continuous, and so has no exact epsilon in floating point.

    Codebook i is drawn from the keystream of the seed's key, nonce i. `randomize` draws a number i for each
    record by a key of its own, and a report carries its 32 bits; with `first` both sides imply it, and
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
    epsilon: Budget
    _: KW_ONLY
    radius: Annotated[float, ball_radius] = 1.0
    directions: Annotated[int | None, optional(at_least(2, _MOST_DIRECTIONS))] = None
    seed: Annotated[
        int, whole(0, _MOST_SEED), Option(name="codebook_seed", short="Public seed of the codebooks.")
    ] = 0
    clip: Flag = True

    usual_size: ClassVar[int] = 8
    cohorts: ClassVar[None] = None  # type: ignore[misc]
    k: ClassVar[int]  # type: ignore[misc]  # likely ranks; set on the instance
    _release: ClassVar[DirectedRelease]

    def _build(self) -> None:
        count = self.directions or best_directions(self.features, self.epsilon)
        k = best_nearest(self.features, count, self.epsilon)
        channel = signed_top(count, k, self.epsilon)
        exact = channel.epsilon
        codebooks: Any = Directions(self.features, count, public_key(self.seed, "codebook"))
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
        """Return the variance of what a record's reports are worth in each coordinate, over the codebooks.

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
            If the reports say nothing (epsilon 0), or for numbers that are not finite.
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
        self._check_speaks()
        length = self._length(norm)
        return (self.radius / self._moments[0]) ** 2 - length**2

    def _second_moments(self) -> tuple[float, float]:
        """Return E[z^2]/R^2 of a letter z along the record's direction, and in any one across it."""
        self._check_speaks()
        mean, square = self._moments
        return square / mean**2, (1.0 - square) / (self.features - 1) / mean**2

    def worst_variance(self) -> float:
        """Return the largest `variance` of any coordinate of any record: of 0, along its direction."""
        return self.radius**2 * max(self._second_moments())

    def facts(self, users: int | None = None) -> dict[str, Any]:
        """Return what is known of reports before there are any; see `Mechanism.facts`."""
        return super().facts(users) | {"law": {"k": self.k, "directions": self.directions}}
