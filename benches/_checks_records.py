"""Checks of selections and of records of signs before they are timed, within six standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import bitldp
import numpy as np
from _checks import SIGMAS, Array, near
from _measure import require

_CALLS = 10  # selections from the same vectors, for enough of them
_PARTS = 10  # of the ranks


def ranks(mechanism: bitldp.PS | bitldp.EXP, x: Array, plain: Callable[[], Array]) -> None:
    """Check in which tenth of the ranks the selected coordinates are, ours and the reference's."""
    count, width = x.shape
    whole = mechanism.randomize(x, rng=1, threads=1)
    again = mechanism.randomize(x, rng=1, threads=2)
    require(np.array_equal(whole, again), "the selection depends on the number of threads")
    by_rank = np.argsort(np.argsort(np.abs(x), axis=1), axis=1)
    law = mechanism.probabilities().reshape(_PARTS, -1).sum(axis=1)
    drawn = {
        "ours": [mechanism.randomize(x, rng=seed, threads=1) for seed in range(_CALLS)],
        "reference": [plain() for _ in range(_CALLS)],
    }
    for name, reports in drawn.items():
        places = np.concatenate([by_rank[np.arange(count), codes] for codes in reports])
        counts = np.bincount(places * _PARTS // width, minlength=_PARTS)
        for part, (found, chance) in enumerate(zip(counts, law, strict=True)):
            near(f"{name}, selections in tenth {part}", found / len(places), float(chance), len(places))


def cap(mechanism: bitldp.HypercubePrivUnit, x: Array, plain: Callable[[Array], Array]) -> None:
    """Check the number of agreements with records of signs, and the means of the letters of others."""
    whole = mechanism.randomize(x, rng=1, threads=1)
    again = mechanism.randomize(x, rng=1, threads=2)
    require(np.array_equal(whole, again), "the reports depend on the number of threads")
    signs = np.where(x < 0, -1.0, 1.0).astype(x.dtype)
    shares = {"ours": mechanism.randomize(signs, rng=2), "reference": plain(signs)}
    true: Array = (signs > 0).view(np.uint8)
    variance = float(mechanism.variance(signs[:1]).max())
    for name, reports in shares.items():
        agreements = np.count_nonzero(reports == true, axis=1)
        inside = float(np.mean(agreements >= mechanism.threshold))
        near(f"{name}, reports in the cap", inside, mechanism.channel.high / 2.0**64, len(x))
        error = np.abs(np.mean(mechanism.decode(reports) * signs, axis=0) - 1.0)
        require(float(error.max()) < SIGMAS * math.sqrt(variance / len(x)), f"{name}: a biased place")
    for name, reports in {"ours": whole, "reference": plain(x)}.items():
        # The mean of (letter - x) x over a record: of independent records, so that their spread is its error.
        noise = np.mean((mechanism.decode(reports) - x) * x, axis=1)
        error_of_mean = float(noise.std()) / math.sqrt(len(x))
        require(abs(float(noise.mean())) < SIGMAS * error_of_mean, f"{name}: biased letters")


def categories(mechanism: bitldp.RecordCap, x: Array, plain: Callable[[Array], Array]) -> None:
    """Check how often an attribute is true, and how often enough of a record are."""
    (whole,) = mechanism.randomize(x, rng=1, threads=1)
    (again,) = mechanism.randomize(x, rng=1, threads=2)
    require(np.array_equal(whole, again), "the reports depend on the number of threads")
    channel = mechanism.channels[0]
    part, total = channel.share
    high = channel.high / 2.0**64
    chance: float = mechanism.mechanisms[0].probabilities()[0]
    for name, reports in {"ours": whole, "reference": plain(x)}.items():
        true = reports == x
        enough = float(np.mean(np.count_nonzero(true, axis=1) >= channel.hits))
        near(f"{name}, reports in the cap", enough, high + (1.0 - high) * part / total, len(x))
        for attribute, found in enumerate(true.mean(axis=0).tolist()):
            near(f"{name}, true answers about {attribute}", found, chance, len(x))


def symbols(
    mechanism: bitldp.SampledSigns,
    shape: tuple[int, ...],
    share: float,
    plain: Callable[[Array], tuple[Array, Array]],
) -> None:
    """Check how often a symbol is true, and how often each coordinate is sampled."""
    rng = np.random.default_rng(3)
    signs = rng.choice(np.array([-1.0, 1.0], np.float32), shape)
    pairs = {"ours": mechanism.randomize(signs, rng=2), "reference": plain(signs)}
    for name, (indices, codes) in pairs.items():
        k = indices.shape[1]
        bits = np.take_along_axis(signs, indices.astype(np.intp), axis=1) > 0
        near(
            f"{name}, true symbols",
            float(np.mean(bits @ (1 << np.arange(k - 1, -1, -1)) == codes)),
            share,
            len(signs),
        )
        for coordinate, found in enumerate(np.bincount(indices.ravel(), minlength=shape[1])):
            near(f"{name}, samples of {coordinate}", found / len(signs), k / shape[1], len(signs))


def joint(mechanism: bitldp.JointWindow, x: Array, plain: Callable[[Array], Any]) -> None:
    """Check means and variances of the decoded numbers, and how often a report is near a corner."""
    for name, reports in {"ours": mechanism.randomize(x, rng=2), "reference": plain(x)}.items():
        errors = mechanism.decode(reports) - x
        variance = mechanism.variance(x)
        off = np.abs(errors.mean(axis=0)) / np.sqrt(variance.mean(axis=0) / len(x))
        require(float(off.max()) < SIGMAS, f"{name}: biased letters")
        spread = np.square(errors) - variance
        off = np.abs(spread.mean(axis=0)) / (spread.std(axis=0) / math.sqrt(len(x)))
        require(float(off.max()) < SIGMAS, f"{name}: another variance")
    law = mechanism.extremes()
    assert law is not None
    corner = np.full_like(x, mechanism.interval[0])
    for name, reports in {"ours": mechanism.randomize(corner, rng=3), "reference": plain(corner)}.items():
        inside = float(np.mean(law.split(reports)[0] == 0))
        near(f"{name}, reports near the record", inside, float(law.blocks[0].table[0, 0, 0]), len(x))


def both(
    mechanism: bitldp.MixedCap, x: Array, y: Array, plain: Callable[[Array, Array], tuple[Array, ...]]
) -> None:
    """Check estimates of means and frequencies, and how often a report is near records at an end."""
    whole, again = (mechanism.randomize(x, y, rng=1, threads=threads) for threads in (1, 2))
    same = all(np.array_equal(one, other) for one, other in zip(whole, again, strict=True))
    require(same, "the reports depend on the number of threads")
    for name, reports in {"ours": whole, "reference": plain(x, y)}.items():
        means = mechanism.estimate_mean(reports)
        off = np.abs(means.value - x.mean(axis=0)) / means.stderr
        require(float(off.max()) < SIGMAS, f"{name}: biased letters")
        for attribute, shares in enumerate(mechanism.estimate_frequencies(reports)):
            truth = np.bincount(y[:, attribute], minlength=len(shares.value)) / len(y)
            off = np.abs(shares.value - truth) / shares.stderr
            require(float(off.max()) < SIGMAS, f"{name}: biased shares of {attribute}")
    law = mechanism.extremes()
    assert law is not None
    corner, first = np.full_like(x, mechanism.interval[0]), np.zeros_like(y)
    chance = float(law.blocks[0].table[0, 0, 0])
    drawn = {"ours": mechanism.randomize(corner, first, rng=3), "reference": plain(corner, first)}
    for name, reports in drawn.items():
        near(f"{name}, reports near the record", float(np.mean(law.split(reports)[0] == 0)), chance, len(x))
