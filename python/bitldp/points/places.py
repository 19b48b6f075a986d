"""The candidates of BRR: where they are, and the law of each set of them that a release stays within."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.points import metrics
from bitldp.release.base import Call
from bitldp.release.keyed import by_column

_BLOCK = 1 << 22  # losses that are looked at together
_LINE_LIMIT = 1 << 24  # equidistant candidates: points and losses by rank take 2 GB on the way
_TABLE_LIMIT = 8192  # candidates of a part that needs a table of all losses: 0.5 GB of float64


def place(
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
    with np.errstate(over="ignore"):  # what is not finite is refused
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


def check_metric(metric: Any, utility: Any, count: int) -> Any:
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
    found = np.asarray(prior)
    if found.dtype.kind not in "iuf":
        raise TypeError(f"prior: must be numbers, not {found.dtype}")
    found = found.astype(np.float64)
    if found.ndim != 1 or not np.isfinite(found).all() or (found < 0.0).any():
        raise ValueError("prior: must be a sequence of finite numbers, zero or more")
    return readonly(found)


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


def groups(regions: Any, count: int) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    """Return checked region labels, and the indices of the candidates of each region, by ascending label."""
    labels = np.asarray(regions)
    if labels.shape != (count,):
        raise ValueError(f"regions: shape must be ({count},), one label a candidate, got {labels.shape}")
    if labels.dtype.kind not in "biuUS":
        raise TypeError(f"regions: must be integers or strings, not {labels.dtype}")
    distinct, inverse = np.unique(labels, return_inverse=True)
    members = [np.flatnonzero(inverse == label) for label in range(len(distinct))]
    if min(len(each) for each in members) < 2:
        raise ValueError("regions: each needs 2 candidates or more; one alone would be released as it is")
    return readonly(labels), members


def region_index(members: list[NDArray[np.intp]], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the region of each candidate, and its place in the region."""
    part, place = np.empty(count, np.intp), np.empty(count, np.intp)
    for number, each in enumerate(members):
        part[each], place[each] = number, np.arange(len(each))
    return part, place


def losses_between(
    points: NDArray[np.float64], members: NDArray[np.intp], metric: Any, utility: Any
) -> NDArray[np.float64]:
    """Return the table of losses between some of the candidates; a utility counts as a negative one."""
    own = points[members].reshape(len(members), -1)
    if isinstance(metric, np.ndarray):
        return metric[np.ix_(members, members)]
    if utility is None:
        return metrics.table("metric", metrics.named("metric", metric, metrics.METRICS), own)
    return -metrics.table("utility", metrics.named("utility", utility, metrics.UTILITIES), own)


def nearest(
    points: NDArray[np.float64], table: NDArray[np.float64], metric: Any, utility: Any
) -> NDArray[Any]:
    """Return the code of the candidate of least loss (the first of equals) for each finite point."""
    if isinstance(metric, np.ndarray):
        raise ValueError(
            "x: the metric is a table between the candidates, which tells nothing of other points"
        )
    codes = np.empty(len(points), np.min_scalar_type(len(table) - 1))
    step = max(1, _BLOCK // len(table))
    for start in range(0, len(points), step):
        block = points[start : start + step]
        if utility is None:
            losses = metrics.named("metric", metric, metrics.METRICS)(block, table)
        else:
            losses = -metrics.named("utility", utility, metrics.UTILITIES)(block, table)
        codes[start : start + step] = losses.argmin(axis=1)
    return codes


def release(
    regions: Sequence[Any],
    index: tuple[NDArray[np.intp], NDArray[np.intp]],
    codes: NDArray[Any],
    call: Call,
) -> NDArray[Any]:
    """Release checked codes, each within its region; the region decides the channel, and is public."""
    region_of, place_of = index
    flat = codes.ravel()
    reports = np.empty(flat.shape, np.min_scalar_type(len(region_of) - 1))
    keys = call.keys if call.keys[0] is not None else [None] * len(regions)
    for number, (region, key) in enumerate(zip(regions, keys, strict=True)):
        everywhere = np.flatnonzero(region_of[flat] == number)
        for mine, own in by_column(everywhere, [key], flat.size // max(1, len(codes))):
            released = region.release.randomize(place_of[flat[mine]], call.codes(own))
            reports[mine] = region.members[released]
    return reports.reshape(codes.shape)
