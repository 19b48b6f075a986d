"""Events of an audit: their counts, the bounds that these prove, and the ratio that the law allows.

With k_a of n reports of input a in an event, and k_b of n of input b, Clopper and Pearson's intervals give
``ln P(event | a)/P(event | b) >= ln low(k_a)/high(k_b)``. All bounds of one audit share its error probability
evenly (Bonferroni), so that they hold together.

A symbol by itself shows nothing of random bits that two symbols share. So pairs of symbols are counted, too:
whether both, one or none are high, and whether they are equal.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.mechanism.law import Block, Experiment

__all__ = ["Counts", "Evidence", "PairEvents", "allowed", "clopper_pearson", "findings_of_symbols", "logs"]

_SEEN = 0.95  # probability with which what an audit would have found is found
_MOST = 64.0  # log-ratios above it are not looked for


@dataclass(frozen=True)
class Evidence:
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
    counts : tuple of int
        Reports of a and of b in the event.
    n : int
        Reports of each.
    tail : float
        Error probability of one bound.
    """

    lower: float
    exact: float
    a: int
    b: int
    event: str
    counts: tuple[int, int] = (0, 0)
    n: int = 0
    tail: float = 0.0

    def detectable(self, delta: float = 0.0) -> float:
        """Return the excess of the log-ratio above `exact` that would have been found with probability 0.95.

        It is that of an event as likely under a as this one, and the less likely under b. Infinite where no
        excess would have been found.
        """
        if self.counts[0] == 0 or not math.isfinite(self.exact):
            return math.inf
        special: Any = importlib.import_module("scipy.special")
        miss = (1.0 - _SEEN) / 2.0  # of each of the two counts
        own = self.counts[0] / self.n
        fewest = special.bdtrik(miss, self.n, own)
        low, _ = clopper_pearson(np.array([_whole(fewest, self.n, 0)]), self.n, self.tail)
        if own <= delta or low[0] <= delta:
            return math.inf

        def is_found(excess: float) -> bool:
            other = (own - delta) * math.exp(-self.exact - excess)
            if other >= 1.0:
                return False
            most = special.bdtrik(1.0 - miss, self.n, other)
            _, high = clopper_pearson(np.array([_whole(most, self.n, 1)]), self.n, self.tail)
            return math.log((low[0] - delta) / high[0]) > self.exact

        below, above = 0.0, _MOST
        if not is_found(above):
            return math.inf
        while above - below > 1e-6 * above:
            middle = (below + above) / 2.0
            below, above = (below, middle) if is_found(middle) else (middle, above)
        return above


def _whole(quantile: float, n: int, up: int) -> int:
    """Return a binomial quantile as a number of reports, rounded down, or up; 0 where there is none."""
    return min(n, max(0, math.floor(quantile) + up)) if math.isfinite(quantile) else 0


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
) -> Iterator[Evidence]:
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
    Evidence
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
                seen = (int(table[a, symbol, value]), int(table[b, symbol, value]))
                yield Evidence(
                    float(lower[symbol, value]),
                    float(exact[symbol, value]),
                    *(a, b, block.describe(symbol, value), seen, n, tail),
                )


def allowed(a: NDArray[np.float64], b: NDArray[np.float64], record: float) -> NDArray[np.float64]:
    """Return ln P(event | a)/P(event | b) from the two logarithms, rounded up, at most `record`.

    Minus infinity where a excludes the event.
    """
    with np.errstate(invalid="ignore"):
        ratio = a - b + 2.0**-50 * (np.abs(a) + np.abs(b) + 1.0)  # a few units in the last place each
    return np.where(np.isneginf(a), -np.inf, np.minimum(np.where(np.isnan(ratio), np.inf, ratio), record))


_JOINT = 64  # symbols whose pairs are counted: the first half of them, and others spread over the rest


class PairEvents:
    """Joint events of two symbols of a report, which are independent by the law.

    Of every two symbols whether both, one or none are high (a bit: 1; a code: in the upper half by its mass);
    and of codes of one alphabet, whether they are equal: each with the next one, and with the first.

    Parameters
    ----------
    law : Experiment
        The law of the symbols.
    """

    def __init__(self, law: Experiment) -> None:
        columns = [
            (part, each) for part, block in enumerate(law.blocks) for each in range(block.table.shape[1])
        ]
        if len(columns) > _JOINT:
            rest = np.linspace(_JOINT // 2, len(columns) - 1, _JOINT // 2).astype(int)
            columns = [*columns[: _JOINT // 2], *(columns[each] for each in rest)]
        self._columns = columns
        self._blocks = law.blocks
        self._cuts = [_upper_half(block) for block in law.blocks]
        self._pairs = np.triu_indices(len(columns), 1)
        alike = [
            (i, j)
            for i, (part, _) in enumerate(columns)
            for j in range(i + 1, len(columns))
            if columns[j][0] == part
            and law.blocks[part].table.shape[2] > 2
            and (j == i + 1 or columns[i][1] == 0)
        ]
        self._alike = np.array(alike, np.intp).reshape(-1, 2).T
        blocks = [self._joint()] if len(columns) > 1 else []
        if alike:
            blocks.append(self._equal())
        self._law = replace(law, blocks=blocks)
        self._counts = Counts(blocks)

    def _joint(self) -> Block:
        high = np.stack(
            [
                self._blocks[part].table[:, each, self._cuts[part] :].sum(axis=1)
                for part, each in self._columns
            ],
            1,
        )
        one, other = (np.stack([1.0 - high[:, each], high[:, each]], -1) for each in self._pairs)
        table = (one[..., :, None] * other[..., None, :]).reshape(len(high), -1, 4)

        def describe(pair: int, value: int) -> str:
            i, j = (self._columns[each[pair]] for each in self._pairs)
            return f"{self._high(i, value >> 1)}, and {self._high(j, value & 1)}"

        return Block(table, describe)

    def _equal(self) -> Block:
        own = [
            [self._blocks[part].table[:, each] for part, each in (self._columns[place] for place in places)]
            for places in self._alike
        ]
        same = np.stack([(one * other).sum(axis=1) for one, other in zip(*own, strict=True)], 1)

        def describe(pair: int, value: int) -> str:
            i, j = (self._columns[each[pair]][1] for each in self._alike)
            return f"symbols {i} and {j} are {'equal' if value else 'unlike'}"

        return Block(np.stack([1.0 - same, same], -1), describe)

    def _high(self, column: tuple[int, int], value: int) -> str:
        part, symbol = column
        block, cut = self._blocks[part], self._cuts[part]
        if block.table.shape[2] == 2:
            return block.describe(symbol, value)
        return (
            f"{block.describe(symbol, cut)} or above"
            if value
            else f"{block.describe(symbol, cut - 1)} or below"
        )

    @property
    def bounds(self) -> int:
        """How many one-sided confidence bounds the events need."""
        return self._counts.bounds

    def add(self, given: int, symbols: list[NDArray[Any]]) -> None:
        """Add reports of an input, as `Experiment.split` gives them."""
        if not self._counts.tables:
            return
        drawn = [symbols[part][:, each] for part, each in self._columns]
        high = np.stack(
            [each >= self._cuts[part] for (part, _), each in zip(self._columns, drawn, strict=True)], 1
        )
        ones = high.astype(np.float32)  # its sums are exact up to 2^24 reports, of which a block has fewer
        i, j = self._pairs
        both, single = np.rint(ones.T @ ones).astype(np.int64)[i, j], np.count_nonzero(high, axis=0)
        first, second = single[i] - both, single[j] - both
        self._counts.tables[0][given] += np.stack(
            [len(ones) - both - first - second, second, first, both], -1
        )
        for pair, (one, other) in enumerate(self._alike.T):
            equal = np.count_nonzero(drawn[one] == drawn[other])
            self._counts.tables[1][given, pair] += (len(ones) - equal, equal)

    def findings(self, n: int, tail: float, record: float) -> Iterator[Evidence]:
        """Yield the most telling of the events; see `findings_of_symbols`."""
        yield from findings_of_symbols(self._law, self._counts, n, tail, record)


def _upper_half(block: Block) -> int:
    """Return the value from which on codes are high: with half of the mass, as nearly as can be."""
    above = 1.0 - np.cumsum(block.table.mean(axis=(0, 1)))[:-1]
    return int(np.argmin(np.abs(above - 0.5))) + 1
