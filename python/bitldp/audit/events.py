"""Events of an audit: their counts, the bounds that these prove, and the ratio that the law allows.

With k_a of n reports of input a in an event, and k_b of n of input b, Clopper and Pearson's intervals give
``ln P(event | a)/P(event | b) >= ln low(k_a)/high(k_b)``. All bounds of one audit share its error probability
evenly (Bonferroni), so that they hold together.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.mechanism.law import Block, Experiment

__all__ = ["Counts", "Finding", "allowed", "clopper_pearson", "findings_of_symbols", "logs"]


@dataclass(frozen=True)
class Finding:
    """Evidence of one event about two inputs.

    Attributes
    ----------
    lower : float
        Lower bound of ln P(event | a)/P(event | b).
    exact : float
        What it must not exceed.
    a, b : int
        Numbers of the two inputs.
    event : str
        The event, in words.
    """

    lower: float
    exact: float
    a: int
    b: int
    event: str


def clopper_pearson(
    counts: NDArray[Any], n: int, tail: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper confidence bounds of probabilities, each wrong with probability at most `tail`.

    Parameters
    ----------
    counts : ndarray of int
        Successes in n independent trials, any shape.
    n : int
        Trials, 1 or more.
    tail : float
        Error probability of one bound.

    Returns
    -------
    lower, upper : ndarray of float64
        Quantiles of Beta(k, n - k + 1) and Beta(k + 1, n - k); 0 for no success, 1 for no failure.

    Notes
    -----
    Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934).
    """
    special: Any = importlib.import_module("scipy.special")
    distinct, inverse = np.unique(counts, return_inverse=True)
    k = distinct.astype(np.float64)
    lower = np.where(k > 0, special.betaincinv(np.maximum(k, 1.0), n - k + 1.0, tail), 0.0)
    upper = np.where(k < n, special.betainccinv(k + 1.0, np.maximum(n - k, 1.0), tail), 1.0)
    shape = np.shape(counts)
    return lower[inverse].reshape(shape), upper[inverse].reshape(shape)


def logs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return natural logarithms, minus infinity at 0."""
    with np.errstate(divide="ignore"):
        result: NDArray[np.float64] = np.log(values)
    return result


class Counts:
    """Exact counts of each symbol's values, by input.

    Parameters
    ----------
    blocks : sequence of Block
        Shapes of the tables.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.tables: list[NDArray[np.int64]] = [np.zeros(block.table.shape, np.int64) for block in blocks]

    def add(self, given: int, symbols: list[NDArray[Any]]) -> None:
        """Add reports of an input, as `Experiment.split` gives them."""
        for table, block in zip(self.tables, symbols, strict=True):
            values = table.shape[2]
            if values == 2:
                ones = np.rint(np.ones(len(block)) @ block).astype(np.int64)
                table[given, :, 1] += ones
                table[given, :, 0] += len(block) - ones
                continue
            for index, column in enumerate(block.T):
                table[given, index] += np.bincount(column, minlength=values)

    @property
    def bounds(self) -> int:
        """How many one-sided confidence bounds the tables need; two symbols of a bit share theirs."""
        return sum(2 * (table.size // 2 if table.shape[2] == 2 else table.size) for table in self.tables)


def findings_of_symbols(
    setting: Experiment, counts: Counts, n: int, tail: float, record: float
) -> Iterator[Finding]:
    """Yield, for each ordered pair of inputs and each block, the most telling events "symbol s is v".

    Parameters
    ----------
    setting : Experiment
        The law.
    counts : Counts
        Of n reports of each input.
    n : int
        Reports of each input.
    tail : float
        Error probability of one bound.
    record : float
        Exact epsilon of the mechanism; no log-ratio is allowed more.

    Yields
    ------
    Finding
        Of the largest lower bound, and of the one that exceeds its exact value most.
    """
    for block, table in zip(setting.blocks, counts.tables, strict=True):
        if table.shape[2] == 2:  # the two values of a bit have one interval
            low, high = clopper_pearson(table[..., 1], n, tail)
            low, high = np.stack([1.0 - high, low], -1), np.stack([1.0 - low, high], -1)
        else:
            low, high = clopper_pearson(table, n, tail)
        log_low, log_high, log_law = logs(low), logs(high), logs(block.table)
        for a, b in setting.comparable():
            lower = log_low[a] - log_high[b]
            exact = allowed(log_law[a], log_law[b], record)
            with np.errstate(invalid="ignore"):  # two infinities: nothing was seen, or anything is allowed
                excess = np.nan_to_num(lower - exact, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            for index in {int(np.argmax(lower)), int(np.argmax(excess))}:
                symbol, value = (int(each) for each in np.unravel_index(index, lower.shape))
                event = block.describe(symbol, value)
                yield Finding(float(lower[symbol, value]), float(exact[symbol, value]), a, b, event)


def allowed(a: NDArray[np.float64], b: NDArray[np.float64], record: float) -> NDArray[np.float64]:
    """Return ln P(event | a)/P(event | b) from the two logarithms, rounded up, at most `record`.

    Minus infinity where a excludes the event.
    """
    with np.errstate(invalid="ignore"):
        ratio = a - b + 2.0**-50 * (np.abs(a) + np.abs(b) + 1.0)  # a few units in the last place each
    return np.where(np.isneginf(a), -np.inf, np.minimum(np.where(np.isnan(ratio), np.inf, ratio), record))
