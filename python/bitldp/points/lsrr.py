"""L-SRR, the staircase randomized response for locations: groups by common prefix, one step for each.

Wang, Hong, Xiong, Qin and Hong, "L-SRR: local differential privacy for location-based services with staircase
randomized response", CCS 2022.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Matrix
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.mechanism.parameters import Calibration
from bitldp.points.candidates import Losses, Members, Points
from bitldp.points.exponential import largest_root
from bitldp.points.matrix import CandidateMatrix
from bitldp.privacy import calibrated, published

__all__ = ["LSRR", "location_codes"]

_SEARCHED = 4  # groups up to which all divisions are tried
_STEEPEST = 44.0  # ln c: past it the smallest step is no multiple of 2^-64


def location_codes(
    points: ArrayLike, *, bits: int = 46, box: tuple[ArrayLike, ArrayLike] | None = None
) -> NDArray[np.str_]:
    """Encode public points hierarchically: each bit halves the box along one coordinate.

    Parameters
    ----------
    points : array_like of float, shape (N,) or (N, d)
        Public candidates, finite.
    bits : int
        Length of a code, 1 to 64; 46 are 23 levels of map tiles.
    box : (array_like, array_like), optional
        Low and high corner, of shape (d,); points outside count as on its border. None: the smallest box
        around the points, which are public.

    Returns
    -------
    ndarray of str, shape (N,)
        Codes of zeros and ones. Points with a long common prefix are near to each other (the converse need
        not hold). The first characters serve as `regions` of a release.

    Raises
    ------
    ValueError, TypeError
        For points of another shape or not finite, or a box that does not fit.
    """
    table = np.asarray(points)
    if table.dtype.kind not in "iuf":
        raise TypeError(f"points: must be numbers, not {table.dtype}")
    table = table.astype(np.float64)
    if table.ndim not in (1, 2) or not table.size:
        raise ValueError(f"points: shape must be (N,) or (N, d), got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("points: must be finite")
    length = checks.integer("bits", bits, 1, 64)
    table = table.reshape(len(table), -1)
    if box is None:
        low, high = table.min(axis=0), table.max(axis=0)
    else:
        low, high = (np.asarray(corner, dtype=np.float64).reshape(-1) for corner in box)
        if low.shape != (table.shape[1],) or high.shape != low.shape or not (low <= high).all():
            raise ValueError(f"box: must be a low and a high corner of {table.shape[1]} coordinates each")
    with np.errstate(over="ignore", invalid="ignore"):
        span = np.where(high > low, high - low, 1.0)
        share = (np.clip(table, low, high) - low) / span
    if not np.isfinite(share).all():
        raise ValueError("points: their differences must be finite")
    digits = np.empty((len(table), length), "U1")
    for position in range(length):
        axis = position % table.shape[1]
        share[:, axis] *= 2.0
        upper = share[:, axis] >= 1.0
        share[:, axis] -= upper  # 1 stays 1: the border belongs to the last cell
        digits[:, position] = np.where(upper, "1", "0")
    return digits.view(f"U{length}").ravel()


def _common(codes: NDArray[np.str_]) -> NDArray[np.intp]:
    """Return the length of the longest common prefix of every two codes, shape (N, N)."""
    length = codes.dtype.itemsize // 4
    characters = np.ascontiguousarray(codes).view(np.uint32).reshape(len(codes), length)
    alive = np.ones((len(codes),) * 2, np.bool_)
    common = np.zeros(alive.shape, np.intp)
    for column in characters.T:
        alive &= column[:, None] == column
        if not alive.any():
            break
        common += alive
    return common


def steps(groups: int, log_growth: float) -> NDArray[np.float64]:
    """Return the weights of the groups, from c down to 1 in equal steps, divided by c: c = e^log_growth."""
    low = math.exp(-log_growth)
    return low + (1.0 - low) * np.arange(groups - 1, -1, -1) / (groups - 1)


def staircase(group: NDArray[np.intp], groups: int, log_growth: float) -> NDArray[np.float64]:
    """Return the law of L-SRR from the group of every report (column) for every input (row)."""
    weights = steps(groups, log_growth)[group]
    return weights / weights.sum(axis=1, keepdims=True)


def _column_loss(law: NDArray[np.float64]) -> float:
    return float(np.log(law.max(axis=0) / law.min(axis=0)).max())


@dataclass(frozen=True, eq=False, repr=False)
class LSRR(CandidateMatrix):
    """L-SRR: reports candidates more often the longer the code prefix that they share with the truth.

    Parameters
    ----------
    candidates : int or array_like
        N, 2 to 2048: the equidistant points 0 to N - 1 (or of `interval`; or 1 to N with
        ``utility="jaccard"``). Or the public points themselves: shape (N,) on a line, (N, d) in space; at
        most 2048 of them in a region.
    epsilon : float
        Privacy budget of one `unit`, finite, zero or more.
    calibration : {"exact", "paper"}
        "paper": c = e^epsilon. The rows have different normalisers, since inputs have groups of different
        sizes. The claim (`epsilon`) therefore holds only if all sizes are the same; otherwise a
        `PrivacyClaimWarning` is issued. "exact": the c at which the exact epsilon of the integers is
        `epsilon`, or just below it.
    encoding : array_like of str, shape (N,), optional
        Public codes of equal length. None: `location_codes` of the candidates, with 46 bits.
    prefixes : sequence of int, optional
        Lengths of common prefixes, descending, that separate the groups. The first group shares at least
        ``prefixes[0]`` characters with the input, the next at least ``prefixes[1]``, and the last one fewer
        than the last length. None: for each region, the division into `groups` that has the least expected
        error at c = e^epsilon; see `divisions`.
    groups : int
        Number of groups if `prefixes` is None: 2 to 4, and at most as many as there are different lengths of
        common prefixes in a region. (Candidates of a region that all share the same prefix, for example two
        equal points, form one group and are reported with equal probability.)
    metric, utility, interval, rounding, regions, features, unit
        As for `Exponential`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records are any two candidates (of the same region, if there are regions). With m groups, a
    report of group j has the weight 1 + (c - 1)(m - j)/(m - 1): c in the group that contains the input, 1 in
    the farthest, with equal steps between (as in the authors' program). Candidates of one group are equally
    likely. Two inputs with the same groups therefore have the same law, and then no unbiased decode exists.
    At equal exact epsilon, `BRR` has the smaller expected error. With `regions`, reports stay within a
    region, which is how the paper of `BRR` compares the two.

    The sampler reads the table row that the input selects. With more than 32 candidates this is not
    constant-time.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> places = np.random.default_rng(1).random((60, 2))
    >>> mechanism = bitldp.LSRR(places, epsilon=1.0)
    >>> mechanism.divisions, round(mechanism.guarantee.record, 9)
    ([(3, 2)], 1.0)
    """

    _: KW_ONLY
    calibration: Calibration = "exact"
    encoding: Any = None
    prefixes: Any = None
    groups: int = 3

    # Derived of the parameters while the mechanism is built.
    _codes: NDArray[np.str_] = field(init=False, repr=False, compare=False)
    _divisions: list[tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def _check(self) -> None:
        given = None
        if self.prefixes is not None:
            if np.ndim(self.prefixes) != 1 or not len(self.prefixes):
                raise ValueError("prefixes: must be a sequence of one length or more")
            given = tuple(checks.integer("prefixes", each, 1) for each in self.prefixes)
            if any(a <= b for a, b in itertools.pairwise(given)):
                raise ValueError("prefixes: must be descending, the longest first")
            groups = len(given) + 1
        else:
            groups = checks.integer("groups", self.groups, 2, _SEARCHED)
        self._set(prefixes=given, groups=groups, _divisions=[])

    def _arrange(self, points: Points) -> None:
        if self.encoding is None:
            self._set(_codes=location_codes(points))
            return
        codes = np.asarray(self.encoding)
        if codes.dtype.kind != "U":
            raise TypeError(f"encoding: must be strings, not {codes.dtype}")
        if codes.shape != (len(points),):
            raise ValueError(
                f"encoding: shape must be ({len(points)},), one code a candidate, got {codes.shape}"
            )
        if len(set(np.char.str_len(codes).tolist())) != 1 or codes[0] == "":
            raise ValueError("encoding: all codes must have the same length, 1 or more")
        self._set(encoding=readonly(codes), _codes=codes)

    @property
    def divisions(self) -> list[tuple[int, ...]]:
        """The lengths of common prefixes that separate the groups, for each region by ascending label."""
        return list(self._divisions)

    def _channel(self, points: Points, members: Members, losses: Losses, epsilon: float) -> Matrix:
        common = _common(self._codes[members])
        budget = min(epsilon, _STEEPEST)
        lengths = self.prefixes
        if lengths is None:
            lengths = _division(common, losses, self.groups, budget)
            if not lengths and self.regions is None:
                raise ValueError(
                    "groups: the codes share prefixes of only 1 length, so that there is only one group"
                )
        self._divisions.append(lengths)
        group = np.zeros(common.shape, np.intp)
        for length in lengths:
            group += common < length
        groups = len(lengths) + 1
        if groups == 1 or budget == 0.0:
            return Matrix(np.full(group.shape, 1.0 / len(group)))
        if self.calibration == "paper":
            return published(
                lambda target: Matrix(staircase(group, groups, target)),
                budget,
                lambda channel: channel.epsilon,
                _column_loss(staircase(group, groups, budget)),
            )

        def loss(log_growth: float) -> float:
            return _column_loss(staircase(group, groups, min(log_growth, _STEEPEST)))

        result = min(largest_root(loss, budget, budget / 2.0), _STEEPEST)

        def build(target: float) -> Matrix:
            return Matrix(staircase(group, groups, result * (target / epsilon)))

        return calibrated(build, epsilon, lambda channel: channel.epsilon)


def _division(
    common: NDArray[np.intp], losses: NDArray[np.float64], groups: int, log_growth: float
) -> tuple[int, ...]:
    """Return the lengths that part `groups` groups with the least expected error at c = e^log_growth.

    Where common prefixes have fewer different lengths there are as many groups; none where they have one.
    Sizes and losses are summed by the length of the common prefix first, so that a division costs as many
    operations as there are lengths, for each input.
    """
    lengths, position = np.unique(common, return_inverse=True)
    position = position.reshape(common.shape)
    rows, count = np.arange(len(common))[:, None], len(lengths)
    groups = min(groups, count)
    if groups == 1:
        return ()
    flat = (rows * count + position).ravel()
    sizes = np.bincount(flat, minlength=len(common) * count).reshape(-1, count)
    sums = np.bincount(flat, losses.ravel(), len(common) * count).reshape(-1, count)
    weights = steps(groups, log_growth)
    best = math.inf
    chosen: tuple[int, ...] = ()
    for cut in itertools.combinations(range(1, count), groups - 1):
        # lengths[cut[-1]:] is the first group, lengths[:cut[0]] the last
        steep = np.repeat(weights[::-1], np.diff([0, *cut, count]))
        error = float(np.mean((sums @ steep) / (sizes @ steep)))
        if error < best:
            best, chosen = error, cut
    return tuple(int(lengths[each]) for each in reversed(chosen))
