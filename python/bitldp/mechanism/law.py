"""A mechanism's own law: its independent symbols, and inputs that its reports tell apart.

Whoever asks (an accountant, an audit, a wire format, the command line) asks the mechanism; nobody keeps a
list of mechanisms. A report is a string of independent symbols: bits, or codes. `Symbols` name the channels
behind them; an `Experiment` is the law of whole reports of a few inputs, made from the integers that the
sampler compares with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Shift
from bitldp.base import checks
from bitldp.privacy import ONE

INPUTS = 32
"""Inputs that are compared with each other where there are more."""

TABLE = 1 << 22
"""Entries of a table that is still made for them."""

Pair = tuple[Any, Any]

Codes: TypeAlias = int | NDArray[Any]
"""Codes of an input: one for all features, or one for each."""


class Symbols(NamedTuple):
    """Independent symbols of a report with the same law.

    Attributes
    ----------
    laws : tuple
        A channel of `bitldp.channels`, or a `Guarantee` where no more than that is known; several where a
        public choice, such as the region, says which of them applies. Every input of a symbol may be met with
        every other.
    times : int
        How many independent symbols.
    """

    laws: tuple[Any, ...]
    times: int


class Coordinates(NamedTuple):
    """Independent coordinates of a report, each an input that is dithered and has integer noise.

    Attributes
    ----------
    channel : Shift
        Of every coordinate.
    features : int
        How many coordinates, d.
    diameter : float
        How far the inputs of two records are apart at most, in steps and in the l2 norm.
    """

    channel: Shift
    features: int
    diameter: float


@dataclass(frozen=True, eq=False)
class Block:
    """Independent symbols with the same alphabet.

    Attributes
    ----------
    table : ndarray of float64, shape (inputs, symbols, values)
        P(symbol has value | input).
    describe : callable
        The event that a symbol (by number) is reported with a value, in words.
    """

    table: NDArray[np.float64]
    describe: Callable[[int, int], str]


@dataclass(frozen=True, eq=False)
class Experiment:
    """Inputs that are far apart, and the law of their reports where it is known.

    Attributes
    ----------
    inputs : sequence
        One record each; a tuple holds one for each argument of `randomize`.
    names : sequence of str
        The inputs in words.
    blocks : sequence of Block
        Law of the reports; empty where it is not known in closed form.
    pairs : sequence of (int, int)
        Pairs of inputs whose whole reports are compared.
    options : mapping
        Options of `randomize`, such that a report is the symbols of the blocks.
    groups : sequence of int
        Inputs are compared only within their group (the public region); empty: all of them.
    read : callable, optional
        Makes the blocks' symbols of reports, where they are not the reports themselves.
    """

    inputs: Sequence[Any]
    names: Sequence[str]
    blocks: Sequence[Block] = ()
    pairs: Sequence[tuple[int, int]] = ((0, 1),)
    options: Mapping[str, Any] = field(default_factory=dict)
    groups: Sequence[int] = ()
    read: Callable[[Any], Any] | None = None

    @property
    def symbols(self) -> int:
        """Symbols of a report."""
        return sum(block.table.shape[1] for block in self.blocks)

    def comparable(self) -> list[tuple[int, int]]:
        """Return the ordered pairs of inputs whose symbols are compared."""
        count, groups = len(self.inputs), self.groups or [0] * len(self.inputs)
        return [(a, b) for a in range(count) for b in range(count) if a != b and groups[a] == groups[b]]

    def split(self, reports: Any) -> list[NDArray[Any]]:
        """Return the symbols of reports, shape (n, symbols) for each block; bits as float64, for sums."""
        reports = reports if self.read is None else self.read(reports)
        parts = reports if isinstance(reports, tuple) else (reports,)
        symbols: list[NDArray[Any]] = []
        for part, block in zip(parts, self.blocks, strict=True):
            table = np.asarray(part).reshape(-1, block.table.shape[1])
            symbols.append(table.astype(np.float64) if block.table.shape[2] == 2 else table)
        return symbols


def arguments(record: Any, rows: int) -> tuple[NDArray[Any], ...]:
    """Return the arguments of `randomize` for `rows` copies of a record."""
    parts = record if isinstance(record, tuple) else (record,)
    return tuple(np.repeat(np.asarray(part)[None], rows, axis=0) for part in parts)


def neighbours(count: int) -> list[tuple[int, int]]:
    """Return the pairs (0, 1), (2, 3), ... of `count` inputs."""
    return [(a, a + 1) for a in range(0, count, 2)]


def worst_pair(rows: NDArray[np.float64]) -> tuple[int, int]:
    """Return the pair of rows with the largest finite log-ratio in the likeliest cells."""
    best, pair = (-np.inf, -np.inf), (0, 1)
    logs = np.log(np.maximum(rows, 2.0**-80))
    for a in range(len(rows)):
        gaps = logs[a] - logs
        top = np.where(gaps < 40.0, gaps, -np.inf).max(axis=1)
        mass = np.where(gaps > top[:, None] - 1e-9, rows[a], 0.0).sum(axis=1)
        for b in np.lexsort((mass, top.round(9)))[-1:]:
            if b != a and (float(top[b].round(9)), float(mass[b])) > best:
                best, pair = (float(top[b].round(9)), float(mass[b])), (a, int(b))
    return pair


def spread(count: int, most: int) -> list[int]:
    """Return at most `most` numbers of [0, count): all, or the ends first and then evenly between."""
    if count <= most:
        return list(range(count))
    between = np.linspace(0, count - 1, most).round().astype(int)
    return list(dict.fromkeys([0, count - 1, 1, *between.tolist()]))[:most]


def codes_of(
    pair: Pair | None, count: int, points: NDArray[np.float64] | None, features: int = 1
) -> list[Codes] | None:
    """Return the codes of a given pair, no codes without one, None where an input is between the codes.

    An input is one code, or as many as `features` where they differ.
    """
    if pair is None:
        return []
    chosen: list[Codes] = []
    for each in pair:
        values = np.atleast_1d(np.asarray(each))
        if points is None:
            codes = checks.codes("pair", values, count)
        elif not np.isin(values, points).all():
            return None
        else:
            codes = np.argmax(points == values[..., None], axis=-1)
        if len(alike := np.unique(codes)) == 1:
            chosen.append(int(alike[0]))
        elif codes.shape == (features,):
            chosen.append(codes)
        else:
            return None
    return chosen


def of_rows(
    row: Callable[[int], NDArray[np.float64]],
    count: int,
    values: int,
    chosen: Sequence[Codes],
    features: int = 1,
    points: NDArray[np.float64] | None = None,
) -> Experiment:
    """Return the experiment of a channel with `count` inputs and `values` outputs, alike for all features."""
    codes = list(chosen) or list(spread(count, min(INPUTS, max(2, TABLE // (values * features)))))
    rows = {code: row(code) for each in codes for code in np.unique(each).tolist()}
    table = np.stack([[rows[code] for code in np.broadcast_to(each, features).tolist()] for each in codes])
    inputs: list[Any] = [each if points is None else points[each] for each in codes]
    single = [isinstance(each, int) for each in codes]
    names = [_named(each, features) for each in inputs]
    if features == 1:
        inputs = [each if points is None else float(each) for each in inputs]
    else:
        inputs = [np.broadcast_to(each, features).copy() for each in inputs]

    def describe(symbol: int, value: int) -> str:
        return f"{value} is reported" if features == 1 else f"feature {symbol} is reported as {value}"

    worst = worst_pair(table[:, 0]) if all(single) else (0, 1)
    return Experiment(inputs, names, [Block(table, describe)], [worst], {"output": "codes"})


def of_neighbourhoods(
    inputs: Sequence[Any],
    names: Sequence[str],
    sizes: tuple[int | Fraction, int | Fraction, int | Fraction],
    high: int,
    read: Callable[..., Any],
) -> Experiment:
    """Return the experiment of two records of a law that is uniform near a record, or uniform anywhere.

    Parameters
    ----------
    inputs, names
        As of `Experiment`.
    sizes : tuple of int or Fraction
        Reports near a record, near both records, and all; or their shares.
    high : int
        Chance of a report that is drawn near the record, over 2**64.
    read : callable
        Tells of reports whether each is near the first record, and whether near the second.
    """
    near, both, every = sizes
    counts = np.array([near - both, near - both, both, every - 2 * near + both], object)
    inside = np.array([[near - both, 0, both, 0], [0, near - both, both, 0]], object)
    share = Fraction(high, ONE)
    law = share * inside / Fraction(near) + (1 - share) * counts / Fraction(every)
    where = ("the first record alone", "the second record alone", "both records", "neither record")

    def describe(_: int, value: int) -> str:
        return f"the report is near {where[value]}"

    def symbols(reports: Any) -> NDArray[np.intp]:
        first, second = read(reports)
        return np.where(first, np.where(second, 2, 0), np.where(second, 1, 3))[:, None]

    block = Block(law.astype(np.float64)[:, None], describe)
    return Experiment(inputs, names, [block], [(0, 1)], {"output": "codes"}, read=symbols)


def _named(value: Any, features: int) -> str:
    """Return an input of one value, or of one for each feature, in words."""
    if np.ndim(value) == 0:
        return f"{value}" if features == 1 else f"every feature {value}"
    first = ", ".join(map(str, value[:4].tolist()))
    return f"features {first}{', ...' if len(value) > 4 else ''}"


def far_ends(ends: tuple[float, float], columns: int) -> Experiment:
    """Return records at the two ends of an interval; nothing is said of their law."""
    low, high = (float(end) for end in ends)
    inputs = (low, high) if columns == 1 else (np.full(columns, low), np.full(columns, high))
    return Experiment(inputs, [f"every value {low:g}", f"every value {high:g}"])
