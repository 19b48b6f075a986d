"""Candidates of a release: their points, the losses between them, and the regions it stays within."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.release.base import Call, Release
from bitldp.release.keyed import by_column

_BLOCK = 1 << 22  # losses that are looked at together
_LINE_LIMIT = 1 << 24  # equidistant candidates: points and losses by rank take 2 GB on the way


Points: TypeAlias = NDArray[np.float64]
"""Candidates or inputs, shape (n, d); candidates on a line (n,), too."""

Members: TypeAlias = NDArray[np.intp]
"""Indices of the candidates of a region, ascending."""

Losses: TypeAlias = NDArray[np.float64]
"""Losses between the candidates of a region, shape (n, n)."""

Metric: TypeAlias = Callable[[Points, Points], NDArray[np.float64]]
"""Pairwise values of two sets of points, shape (len(a), len(b))."""

Loss: TypeAlias = "str | Metric | NDArray[np.float64]"
"""A loss between candidates: by name, by a function, or as a table."""


class Region(Protocol):
    """Candidates that a release stays within, and the release of their positions."""

    @property
    def members(self) -> NDArray[np.intp]:
        """Indices of the candidates, ascending."""

    @property
    def release(self) -> Release:
        """The release of positions in `members`."""


def checked_candidates(
    candidates: Any, interval: Any, utility: Any
) -> tuple[Any, tuple[float, float] | None, NDArray[np.float64]]:
    """Return candidates and interval, checked, and the points that they mean."""
    if isinstance(candidates, (int, np.integer)) and not isinstance(candidates, bool):
        count = checks.count("candidates", candidates, 2, _LINE_LIMIT)
        if interval is None:  # Eq. 13 is not defined at 0: the paper counts from 1
            return count, None, np.arange(count, dtype=np.float64) + (1.0 if utility == "jaccard" else 0.0)
        low, high = _check_interval(interval, count)
        return count, (low, high), np.linspace(low, high, count)
    if interval is not None:
        raise ValueError("interval: needs a number of candidates, not the candidates themselves")
    points = np.asarray(candidates)
    if points.dtype.kind not in "iuf":
        raise TypeError(f"candidates: must be a number or an array of numbers, not {points.dtype}")
    if points.ndim not in (1, 2) or len(points) < 2 or points.size == 0:
        raise ValueError(f"candidates: shape must be (N,) or (N, d) with N >= 2, got {points.shape}")
    points = readonly(points.astype(np.float64))
    with np.errstate(over="ignore"):  # values that are not finite are refused
        finite = np.isfinite(points.max(axis=0) - points.min(axis=0)).all()  # NaN and infinity show here, too
    if not finite:
        raise ValueError("candidates: must be finite, and so must their differences")
    return points, None, points


def _check_interval(value: Any, count: int) -> tuple[float, float]:
    low, high = checks.pair("interval", value)
    if not (math.isfinite(high - low) and (high - low) / (count - 1) >= sys.float_info.min):
        raise ValueError(
            f"interval: high - low and the step between {count} points must be normal doubles, "
            f"got ({low}, {high})"
        )
    return low, high


def check_metric(metric: Any, utility: Any, count: int) -> Loss:
    """Return the checked metric: a table as a read-only array, anything else as it is."""
    if utility is not None and not (isinstance(metric, str) and metric == "euclidean"):
        raise ValueError("utility: takes the place of metric; give one of the two")
    if isinstance(metric, str) or callable(metric):
        return metric
    table = np.asarray(metric)
    if table.dtype.kind not in "iuf" or table.shape != (count, count):
        raise ValueError(f"metric: a table must hold numbers of shape {(count, count)}, got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("metric: must give finite values between all candidates")
    return readonly(table.astype(np.float64))


def check_prior(prior: Any) -> NDArray[np.float64] | None:
    """Return how often each candidate is expected, as a read-only array; None where nothing is said."""
    if prior is None:
        return None
    result = np.asarray(prior)
    if result.dtype.kind not in "iuf":
        raise TypeError(f"prior: must be numbers, not {result.dtype}")
    result = result.astype(np.float64)
    if result.ndim != 1 or not np.isfinite(result).all() or (result < 0.0).any():
        raise ValueError("prior: must be a sequence of finite numbers, zero or more")
    return readonly(result)


def of_members(
    prior: NDArray[np.float64] | None, members: NDArray[np.intp], count: int
) -> NDArray[np.float64] | None:
    """Return the prior of a region's candidates, of `count` in all."""
    if prior is None:
        return None
    if len(prior) != count:
        raise ValueError(f"prior: shape must be ({count},), one number a candidate")
    chosen = np.ascontiguousarray(prior[members])
    if not chosen.any():
        raise ValueError("prior: must not be zero for all candidates of a region")
    return chosen


def region_members(regions: Any, count: int) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    """Return checked region labels, and the indices of the candidates of each region, by ascending label."""
    labels = np.asarray(regions)
    if labels.shape != (count,):
        raise ValueError(f"regions: shape must be ({count},), one label a candidate, got {labels.shape}")
    if labels.dtype.kind not in "biuUS":
        raise TypeError(f"regions: must be integers or strings, not {labels.dtype}")
    distinct, inverse = np.unique(labels, return_inverse=True)
    members = [np.flatnonzero(inverse == label) for label in range(len(distinct))]
    if min(len(each) for each in members) < 2:
        raise ValueError(
            "regions: each needs at least 2 candidates; a single one would be released unchanged"
        )
    return readonly(labels), members


def region_index(members: list[NDArray[np.intp]], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the region of each candidate, and its position in the region."""
    part, position = np.empty(count, np.intp), np.empty(count, np.intp)
    for number, each in enumerate(members):
        part[each], position[each] = number, np.arange(len(each))
    return part, position


def losses_between(
    points: NDArray[np.float64], members: NDArray[np.intp], metric: Loss, utility: str | Metric | None
) -> NDArray[np.float64]:
    """Return the table of losses between some of the candidates; a utility counts as a negative one."""
    own = points[members].reshape(len(members), -1)
    if isinstance(metric, np.ndarray):
        return metric[np.ix_(members, members)]
    if utility is None:
        return loss_table("metric", named_loss("metric", metric, METRICS), own)
    return -loss_table("utility", named_loss("utility", utility, UTILITIES), own)


def nearest(
    points: NDArray[np.float64], table: NDArray[np.float64], metric: Loss, utility: str | Metric | None
) -> NDArray[Any]:
    """Return the code of the candidate of least loss (the first of equals) for each finite point."""
    if isinstance(metric, np.ndarray):
        raise ValueError(
            "x: the metric is a table between the candidates, which does not measure other points"
        )
    codes = np.empty(len(points), np.min_scalar_type(len(table) - 1))
    step = max(1, _BLOCK // len(table))
    for start in range(0, len(points), step):
        block = points[start : start + step]
        if utility is None:
            losses = named_loss("metric", metric, METRICS)(block, table)
        else:
            losses = -named_loss("utility", utility, UTILITIES)(block, table)
        codes[start : start + step] = losses.argmin(axis=1)
    return codes


def release_by_region(
    regions: Sequence[Region],
    index: tuple[NDArray[np.intp], NDArray[np.intp]],
    codes: NDArray[Any],
    call: Call,
) -> NDArray[Any]:
    """Release checked codes, each within its region; the region decides the channel, and is public."""
    region_of, position_of = index
    flat = codes.ravel()
    reports = np.empty(flat.shape, np.min_scalar_type(len(region_of) - 1))
    keys = call.keys if call.keys[0] is not None else [None] * len(regions)
    for number, (region, key) in enumerate(zip(regions, keys, strict=True)):
        everywhere = np.flatnonzero(region_of[flat] == number)
        for mine, own in by_column(everywhere, [key], flat.size // max(1, len(codes))):
            released = region.release.randomize(position_of[flat[mine]], call.codes(own))
            reports[mine] = region.members[released]
    return reports.reshape(codes.shape)


_EARTH_RADIUS_KM = 6371.0088  # mean radius, IUGG


def euclidean(a: Points, b: Points) -> NDArray[np.float64]:
    """Return Euclidean distances."""
    return np.sqrt(_summed(np.square, a, b))


def manhattan(a: Points, b: Points) -> NDArray[np.float64]:
    """Return Manhattan distances."""
    return _summed(np.abs, a, b)


def _summed(term: Callable[[Points], Points], a: Points, b: Points) -> NDArray[np.float64]:
    total = np.zeros((len(a), len(b)))
    for axis in range(a.shape[1]):  # one (n, n) table at a time
        total += term(a[:, axis, None] - b[None, :, axis])
    return total


def haversine(a: Points, b: Points) -> NDArray[np.float64]:
    """Return great-circle distances in km; points are (latitude, longitude) in degrees."""
    for points in (a, b):
        if points.shape[1] != 2 or (np.abs(points[:, 0]) > 90.0).any():
            raise ValueError(
                "metric: 'haversine' needs (latitude, longitude) pairs, latitudes of -90 to 90 degrees"
            )
    (lat_a, lon_a), (lat_b, lon_b) = np.radians(a.T), np.radians(b.T)
    half = (
        np.sin((lat_a[:, None] - lat_b) / 2.0) ** 2
        + np.cos(lat_a)[:, None] * np.cos(lat_b) * np.sin((lon_a[:, None] - lon_b) / 2.0) ** 2
    )
    return 2.0 * _EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0)))


def jaccard(a: Points, b: Points) -> NDArray[np.float64]:
    """Return generalized Jaccard (Tanimoto) similarities x.y/(x.x + y.y - x.y): the larger, the better."""
    for points in (a, b):
        if (points < 0.0).any() or not points.any(axis=1).all():
            raise ValueError("utility: 'jaccard' needs points with no negative coordinate, and none at zero")
    products = a @ b.T
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1)
    return products / (squares - products)


METRICS: dict[str, Metric] = {"euclidean": euclidean, "manhattan": manhattan, "haversine": haversine}
UTILITIES: dict[str, Metric] = {"jaccard": jaccard}


def named_loss(argument: str, value: Any, names: dict[str, Metric]) -> Metric:
    """Return the function that a metric or utility argument means."""
    if callable(value):
        return value
    if not isinstance(value, str) or value not in names:
        shown = repr(value) if isinstance(value, str) else type(value).__name__
        words = ", ".join(repr(name) for name in names)
        raise ValueError(
            f"{argument}: must be one of {words}, or a function of two arrays of points, got {shown}"
        )
    return names[value]


def loss_table(argument: str, function: Metric, points: Points) -> NDArray[np.float64]:
    """Return the finite (N, N) table of a metric or utility between candidates."""
    with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are refused below
        values = np.asarray(function(points, points), dtype=np.float64)
    if values.shape != (len(points), len(points)):
        raise ValueError(f"{argument}: must give a table of shape {(len(points),) * 2}, got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{argument}: must give finite values between all candidates")
    return values
