"""Tables of the independent symbols of a release, as the accountants take them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from bitldp._core import Bits, Cap, Cube, Design, Matrix, Mixture, Select, Shift, Subset, Unary, Window
from bitldp.accounting.loss_table import Curve, LossTable, Normal, of_weights, promised, two_rows
from bitldp.channels.caps import least_common
from bitldp.channels.noise import is_log_concave
from bitldp.privacy import ONE, Guarantee

__all__ = ["Overlap", "Tables", "overlap", "parts"]

_ENTRIES = 1 << 18  # of a table of shifts that is made
_LONG = 1 << 17  # bits of integers up to which chances are exact
_LOOKED_AT = 2048  # candidates up to which the overlaps of all windows are counted


class Tables(NamedTuple):
    """The law of independent symbols as an accountant takes it.

    Attributes
    ----------
    tables : tuple of LossTable, Normal or Curve
        The law; several where a public choice, such as the region, says which of them applies.
    times : int
        How many independent symbols.
    """

    tables: tuple[LossTable | Normal | Curve, ...]
    times: int


@singledispatch
def parts(release: Any) -> list[Tables]:
    """Return the symbols of a report; every input of a symbol may be met with every other.

    Parameters
    ----------
    release
        A channel, a mechanism (its `gdp_mu`, where it has one, says how far normal laws are apart that no two
        records are told apart better than; else its `_symbols` name its channels), or a `Guarantee`, which
        stands for the worst law that it allows of a record.

    Raises
    ------
    TypeError
        If it is none of them.
    """
    apart = getattr(release, "gdp_mu", None)
    if apart is not None:
        return [Tables((Normal(apart),), 1)]
    stated = getattr(release, "_symbols", None)  # a mechanism's own word; no kind of mechanism is known here
    if not callable(stated):
        name = type(release).__name__
        raise TypeError(f"release: must be a mechanism, a channel or a Guarantee, not {name}")
    result = []
    for laws, times in stated():
        of_laws = [parts(law) for law in laws]
        if len(of_laws) == 1:
            result += [Tables(each.tables, each.times * times) for each in of_laws[0]]
        else:  # one of several, each the law of one symbol
            result.append(
                Tables(tuple(table for law in of_laws for each in law for table in each.tables), times)
            )
    return result


@parts.register
def _(release: Guarantee) -> list[Tables]:
    return [Tables((promised(release.record, release.delta),), 1)]


@parts.register
def _(release: Matrix) -> list[Tables]:
    return [Tables((of_weights(release.weights(), release.epsilon),), 1)]


@parts.register(Cap)
@parts.register(Design)
@parts.register(Subset)
@parts.register(Window)
def _(release: Cap | Design | Subset | Window) -> list[Tables]:
    table = two_rows(*overlap(release).rows())
    return [Tables((LossTable(table.rows, min(table.epsilon, release.epsilon)),), 1)]


@parts.register
def _(release: Bits) -> list[Tables]:
    pattern = release.pattern
    features = [release.features] if pattern is None else np.bincount(pattern).tolist()
    return [
        Tables((_bernoulli(p, q),), count)
        for law, count in zip(release.thresholds(), features, strict=False)
        if count
        for p, q in law
    ]


@parts.register
def _(release: Unary) -> list[Tables]:
    # Two one-hot inputs differ in two bits: (1, 0) and (0, 1).
    p, q = (Fraction(each, ONE) for each in release.thresholds())
    one = [(1 - p) * (1 - q), (1 - p) * q, p * (1 - q), p * q]
    return [Tables((two_rows(one, [one[0], one[2], one[1], one[3]]),), 1)]


@parts.register
def _(release: Shift) -> list[Tables]:
    # With log-concave noise the likelihood ratios of reports are monotone, so that thresholds tell best, and
    # best between the two ends of the inputs.
    if is_log_concave(release.weights()):
        inputs = [0, release.inputs - 1]
    elif release.inputs * release.outputs <= _ENTRIES:
        inputs = list(range(release.inputs))
    else:
        return [Tables((promised(release.epsilon, 0.0),), 1)]
    return [Tables((of_weights([_shifted(release, x) for x in inputs], release.epsilon),), 1)]


@parts.register
def _(release: Cube) -> list[Tables]:
    if release.near != release.far + 1:  # ties are in both sets
        return [Tables((promised(release.epsilon, 0.0),), 1)]
    # As with windows: records whose likely sets have least in common are told apart best, opposite ones.
    near, far = release.sizes()
    high, own = release.high, min(near, far)
    # The chance of the likely one rounded up, of the other down: they are told apart no worse.
    inside, outside = -_share(-own * high, near), _share(own * (ONE - high), far)
    rest = 1 - inside - outside
    table = two_rows([inside, outside, rest], [outside, inside, rest])
    return [Tables((LossTable(table.rows, min(table.epsilon, release.epsilon)),), 1)]


def _share(part: int, whole: int) -> Fraction:
    """Return part/(2^64 whole): rounded down where the integers are so long that their gcd takes seconds."""
    if whole.bit_length() <= _LONG:
        return Fraction(part, whole * ONE)
    bits = 1024 + max(0, whole.bit_length() - part.bit_length())
    return Fraction((part << bits) // (whole * ONE), 1 << bits)


@parts.register
def _(release: Cap) -> list[Tables]:
    # As with windows: records whose likely reports have least in common are told apart best.
    near, both = Fraction(*release.share), least_common(release)
    high = Fraction(release.high, ONE)
    own = near - (max(Fraction(0), 2 * near - 1) if both is None else both)
    inside, outside = own * (1 - high + high / near), own * (1 - high)
    rest = 1 - inside - outside
    table = two_rows([inside, outside, rest], [outside, inside, rest])
    return [Tables((LossTable(table.rows, min(table.epsilon, release.epsilon)),), 1)]


@parts.register
def _(release: Mixture) -> list[Tables]:
    if release.matrix.inputs != 2:
        return [Tables((promised(release.epsilon, 0.0),), 1)]
    # Inputs are worst at both ends: those of the window that are told apart best, and the matrix's two.
    (heads, *low), (_, *high) = ([Fraction(w, ONE) for w in row] for row in release.matrix.weights())
    one, other = overlap(release.window).rows()
    table = two_rows([heads * each for each in one] + low, [heads * each for each in other] + high)
    return [Tables((LossTable(table.rows, min(table.epsilon, release.epsilon)),), 1)]


@parts.register
def _(release: Select) -> list[Tables]:
    counts, weights = release.runs()
    if not release.signed or len(counts) != 2 or counts[1] > release.dimensions:
        return [Tables((promised(release.epsilon, 0.0),), 1)]
    # As with windows: opposite vectors have no likely coordinate in common, and are told apart best.
    (_, k), (low, high), total = counts.tolist(), weights.tolist(), release.total
    inside, outside = Fraction(k * high, total), Fraction(k * low, total)
    table = two_rows([inside, outside, 1 - inside - outside], [outside, inside, 1 - inside - outside])
    return [Tables((LossTable(table.rows, min(table.epsilon, release.epsilon)),), 1)]


def _shifted(channel: Shift, x: int) -> list[int]:
    row = [0] * channel.outputs
    for index, weight in enumerate(channel.weights()):
        report = x + index - channel.reach + channel.offset
        row[min(max(report, 0), channel.outputs - 1)] += weight
    return row


def _bernoulli(p: int, q: int) -> LossTable:
    one, zero = Fraction(p, ONE), Fraction(q, ONE)
    return two_rows([1 - one, one], [1 - zero, zero])


class Overlap(NamedTuple):
    """The law of a report that is in a block of cells, one block an input, with some chance.

    It is any cell of the block alike, and else any other cell alike.

    Attributes
    ----------
    cells, width : int
        All cells, N, and those of a block, m.
    shared : Fraction
        How many cells two blocks have in common at least, k; on average where a public number says which
        blocks there are.
    high : int
        Chance of the block, H, in units of 2**-64.
    """

    cells: int
    width: int
    shared: Fraction
    high: int | Fraction

    def rows(self) -> tuple[list[Fraction], list[Fraction]]:
        """Return the laws of the two inputs whose blocks have least in common.

        No other two are easier to tell apart: with k cells in common, the others of the two blocks have the
        chance (m - k) H/m against (m - k)(1 - H)/(N - m), and all else is as likely for both. So the
        divergences decrease with k.
        """
        high, own = Fraction(self.high, ONE), self.width - self.shared
        inside, outside = own * high / self.width, own * (1 - high) / (self.cells - self.width)
        rest = 1 - inside - outside
        return [inside, outside, rest], [outside, inside, rest]


@singledispatch
def overlap(channel: Any) -> Overlap:
    """Return the blocks of a channel that has some, and what they share.

    Raises
    ------
    TypeError
        For another channel than a `Cap`, `Design`, `Subset` or `Window`.
    """
    raise TypeError(f"channel: must be a Cap, Design, Subset or Window, not {type(channel).__name__}")


@overlap.register
def _(channel: Window) -> Overlap:
    return Overlap(channel.cells, channel.width, Fraction(_least_overlap(channel)), channel.high)


@overlap.register
def _(channel: Subset) -> Overlap:
    # Of the subsets with one input, a share of (w - 1)/(k - 1) has the other one, too.
    k, w = channel.elements, channel.size
    return Overlap(k, w, Fraction(w * (w - 1), k - 1), channel.high)


@overlap.register
def _(channel: Design) -> Overlap:
    """Return the blocks; of progressions, on average over the steps.

    Whatever the step is, what lies in one of two blocks alone is told by the same ratio: so the average over
    steps is all that matters.
    """
    cells, width, order = channel.cells, channel.width, channel.order
    if channel.outputs != cells:
        shared = Fraction(width * (width - 1), cells - 1)
    elif order is None:  # halves: of two blocks, or of one
        shared = Fraction(0 if cells > 2 * width else width // 2)
    else:
        inside = np.zeros(cells)
        inside[order[:width]] = 1.0
        others = np.abs(np.fft.rfft(inside)) ** 2
        shared = Fraction(int(np.rint(np.fft.irfft(others, cells)[1:]).min()))
    return Overlap(cells, width, shared, channel.high)


@overlap.register
def _(channel: Cap) -> Overlap:
    """Return the reports near a record as a block of all reports, in units of one over all.

    Windows at both ends share the least; of lists of subsets, two sets of a share t share 2 t - 1 at least.
    """
    share = Fraction(*channel.share)
    width, cells = share.numerator, share.denominator
    shared = max(Fraction(0), 2 * share - 1)
    if not channel.subsets:
        both = ((max(0, 2 * b + 2 - points), points + 2 * b) for points, b in channel.windows)
        shared = math.prod((Fraction(*each) for each in both), start=Fraction(1))
    high = channel.high * (1 - share) + ONE * share  # of any report near the record, by chance or not
    return Overlap(cells, width, shared * cells, high)


def _least_overlap(channel: Window) -> int:
    """Return how many cells two windows share at least; of many windows in any order, a lower bound."""
    cells, width = channel.cells, channel.width
    least = max(0, 2 * width - cells)
    order = channel.order
    if order is None or cells > _LOOKED_AT:
        return least
    inside = np.zeros((len(order), cells), np.float32)
    np.put_along_axis(inside, order[:, :width].astype(np.intp), np.float32(1.0), axis=1)
    return max(least, int((inside @ inside.T).min()))
