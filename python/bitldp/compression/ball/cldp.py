"""CLDP for the l1 ball: one random Hadamard coefficient of a record, as one bit by randomized response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window, pack
from bitldp.base import checks
from bitldp.base.arrays import fill, zeros_if_refused
from bitldp.compression.ball._records import check_shape, inside, norms
from bitldp.compression.ball.base import GIVEN, OPPOSITE, ball_radius, ends_of_ball
from bitldp.estimate.estimates import Estimate
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.law import TABLE, Block, Experiment, Pair, Symbols
from bitldp.mechanism.means import Means
from bitldp.mechanism.parameters import Budget, Flag, at_least
from bitldp.privacy import Guarantee
from bitldp.release.base import Call
from bitldp.release.draws import coordinates
from bitldp.release.window import windowed

__all__ = ["CLDP"]

_MOST = 1 << 20
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class CLDP(Means):
    """CLDP: one random coefficient of a vector of an l1 ball, and its sign: log2(d) + 1 bits a record.

    Parameters
    ----------
    features : int
        Coordinates of a record, d, 1 to 2**20; padded with zeros to D, the next power of two.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    radius : float
        Radius of the l1 ball, above zero, in units of `x`.
    clip : bool
        Whether records outside the ball are scaled to it, or refused.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way, also outside the ball: the privacy does not rest on the clipping.
    A row j of the D x D Hadamard matrix H (entries +-1) is drawn without looking at the record, and the
    coefficient (H x)_j, a number of [-R, R], is released by Duchi's mechanism as +-C,
    C = R (e^eps + 1)/(e^eps - 1). The report is the code 2 j + sign; it is worth the vector +-C H_j, whose
    mean is x since H H = D I. The sum of its coordinates' variances is d C^2 - |x|^2.

    Source: Girgis, Data, Diggavi, Kairouz and Suresh, "Shuffled model of differential privacy in federated
    learning", AISTATS 2021, the mechanism for p = 1.

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
    epsilon: Budget
    radius: Annotated[float, ball_radius] = 1.0
    clip: Flag = True

    takes: ClassVar[Takes | None] = "ball"
    usual_size: ClassVar[int] = 100
    outputs: ClassVar[tuple[str, ...]] = ("codes", "packed")
    k: ClassVar[None] = None  # type: ignore[misc]  # no coordinate is left out
    _rows: ClassVar[int]  # set on the instance, by _build; ClassVar keeps it out of the fields

    def _build(self) -> None:
        release = windowed(2, 1, self.epsilon, (-self.radius, self.radius))
        self._set(
            _release=release,
            _ends=(-self.radius, self.radius),
            _spread=release.spread,
            _rows=1 << (self.features - 1).bit_length(),
            _guarantee=Guarantee.judge(self.epsilon, (release.epsilon,) * 3),
        )

    @property
    def channel(self) -> Window:
        """The channel of the sign; mute at epsilon 0."""
        channel: Window = self._release.channel
        return channel

    @property
    def report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: log2(D) + 1 bits."""
        return ((1, self._rows.bit_length()),)

    def join(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return reports, as `decode` takes them: one code a record."""
        return parts[0].ravel()

    def symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of the sign; which coefficient is reported does not depend on the record."""
        laws = self._release.laws
        return (Symbols(laws, 1),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return opposite vectors of the ball and the law of their reports; see `Mechanism.extremes`."""
        if pair is None:
            inputs, names = ends_of_ball(self.features, self.radius), OPPOSITE
        else:
            inputs, names = np.stack([self._inside(each)[0] for each in pair]), GIVEN
        if 4 * self._rows > TABLE:
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
        return self._release.probabilities()

    def _inside(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return checked records in the ball, float64, shape (n, features)."""
        return inside(x, self.features, 1, self.radius, self.clip).reshape(-1, self.features)

    def outside(self, x: ArrayLike) -> int:
        """Return how many records lie outside the ball and are scaled to it; see `Mechanism.outside`."""
        return int(np.count_nonzero(norms(x, self.features, 1)[1] > self.radius))

    @property
    def _streams(self) -> int:
        return 2

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        check_shape("x", np.shape(x), self.features)
        with zeros_if_refused(call.out):
            records = self._inside(x)
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

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the vectors that reports are worth, whose mean over the coins is the (clipped) record.

        Parameters
        ----------
        reports : array_like of int, shape (n,) or ()
            Codes as `randomize` gives them.

        Returns
        -------
        ndarray of float64, shape (n, features) or (features,)

        Raises
        ------
        ValueError, TypeError
            If the reports say nothing (epsilon 0), or for a code out of range or another shape.
        """
        letters = self.letters
        codes = checks.codes("reports", reports, 2 * self._rows)
        if codes.ndim > 1:
            raise ValueError(f"reports: shape must be (n,) or (), got {codes.shape}")
        flat = codes.reshape(-1).astype(np.int64)
        vectors: NDArray[np.float64] = signs(flat >> 1, self.features) * letters[flat & 1][:, None]
        return vectors.reshape(*codes.shape, self.features)

    def _records(self, reports: ArrayLike) -> NDArray[np.float64]:
        return self.decode(reports).reshape(-1, self.features)

    def _statistic(self) -> None:
        return None  # a report is worth a whole vector

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the (clipped) records, without bias; see `Means.estimate_mean`."""
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
