"""The laws of EXP, PS and PE as integer weights of ranks, and the chances of PE's perturbed status vector."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from bitldp._core import Select
from bitldp.channels.ranks import ROOM as _ROOM
from bitldp.channels.ranks import top_weights
from bitldp.privacy import Calibration, calibrated
from bitldp.selection.shares import chances_of_bit, log, mean_shares, product_of_powers

_FINE = 0.5  # budgets below it are formed by expm1, which keeps their digits
_LARGEST = 44.0  # above, the largest weight would pass 2^64
_STEEPEST = 700.0  # log-odds of a status bit; doubles end at e^709
_HALVINGS = 80  # of an interval of log-odds: past the last place of a double


@lru_cache(maxsize=64)
def exp_channel(dimensions: int, epsilon: float) -> Select:
    """Return EXP: rank z = 1..d with weight e^(eps z/(d-1))."""

    def build(target: float) -> Select:
        gaps = min(target, _LARGEST) * (np.arange(dimensions - 1, -1, -1) / (dimensions - 1))
        falling = np.exp(-gaps)
        top = math.floor(_ROOM / float(falling.sum()))
        # T e^-y, rounded up but for the largest: T less T (1 - e^-y) where y is small, to keep its digits
        small = np.maximum(np.ceil(top * falling), 1.0)
        weights = small.astype(np.uint64)
        near = gaps <= _FINE
        weights[near] = np.uint64(top) - np.floor(top * -np.expm1(-gaps[near])).astype(np.uint64)
        return Select(np.ones(dimensions, np.uint32), weights)

    return calibrated(build, epsilon, lambda channel: channel.epsilon)


@lru_cache(maxsize=64)
def ps_channel(dimensions: int, k: int, epsilon: float) -> Select:
    """Return PS: each of the k largest e^eps times as likely as each other coordinate."""

    def build(target: float) -> Select:
        return _two(dimensions, k, *top_weights(dimensions, k, target), None)

    return calibrated(build, epsilon, lambda channel: channel.epsilon)


def _two(dimensions: int, k: int, high: int, low: int, nothing: int | None) -> Select:
    """Return the channel of two runs: d - k ranks of weight `low`, then k of weight `high`."""
    counts = np.array([dimensions - k, k], np.uint32)
    return Select(counts, np.array([low, high], np.uint64), nothing)


def pe_channel(dimensions: int, k: int, epsilon: float, calibration: Calibration) -> tuple[Select, float]:
    """Return PE, and the p with which a status bit is kept.

    "paper": p = e^eps/(1 + e^eps), the budget of one bit. "exact": p such that the exact epsilon of the
    selection is `epsilon`.
    """
    if calibration == "paper":
        return _pe(dimensions, k, min(epsilon, _STEEPEST)), chances_of_bit(epsilon)[0]
    return _pe_exact(dimensions, k, epsilon)


@lru_cache(maxsize=64)
def _pe_exact(dimensions: int, k: int, epsilon: float) -> tuple[Select, float]:
    def build(target: float) -> tuple[Select, float]:
        odds = pe_odds(dimensions, k, target)
        return _pe(dimensions, k, odds), odds

    channel, odds = calibrated(build, epsilon, lambda built: built[0].epsilon)
    return channel, chances_of_bit(odds)[0]


@lru_cache(maxsize=64)
def _pe(dimensions: int, k: int, odds: float) -> Select:
    top, other, nothing = pe_chances(dimensions, k, odds)
    # Ranks beyond what 64 bits resolve keep a weight of 1; the top weight gives way.
    low = max(1, math.ceil(_ROOM * other))
    high = min(max(math.floor(_ROOM * top), low), (_ROOM - (dimensions - k) * low) // k)
    if odds == 0.0:  # the two chances are the same, and must not differ in their last digits
        high = low
    return _two(dimensions, k, high, low, math.floor(_ROOM * nothing))


def pe_chances(dimensions: int, k: int, odds: float) -> tuple[float, float, float]:
    """Return the output law of PE's algorithm: P(a given top coordinate), P(a given other one), P(none).

    Each status bit is kept with probability p = e^u/(1 + e^u), u = `odds`, and one of the ones is reported,
    uniformly. A given coordinate is reported with the probability of its bit times E 1/(1 + X), where X
    counts the ones among the others; nothing matters but whether the coordinate is one of the k largest.
    """
    keep, flip = chances_of_bit(odds)
    rest = dimensions - k
    of_top, of_other = mean_shares(keep, flip, [(k - 1, rest), (k, rest - 1)])
    return keep * of_top, flip * of_other, product_of_powers(flip, k, rest)


@lru_cache(maxsize=256)
def pe_odds(dimensions: int, k: int, epsilon: float) -> float:
    """Return the log-odds u of keeping a status bit at which PE's exact epsilon is `epsilon`.

    That epsilon is u plus a term between 0 and ln 2, so u lies between epsilon - ln 2 and epsilon.
    """
    if epsilon == 0.0:
        return 0.0
    low, high = max(0.0, epsilon - math.log(2.0)), min(epsilon, _STEEPEST)
    low = min(low, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        top, other, _nothing = pe_chances(dimensions, k, middle)
        within = other > 0.0 and log(top / other) <= epsilon
        low, high = (middle, high) if within else (low, middle)
    return low
