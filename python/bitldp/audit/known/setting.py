"""What an audit knows of each kind of mechanism: inputs to compare, and the law of the reports."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import FixedPoint, Grid, Matrix, Window
from bitldp.audit.known.cube import cube_setting
from bitldp.audit.law import Block, Setting, neighbours, worst_pair
from bitldp.base import checks
from bitldp.bits.bitrand import BitRand
from bitldp.bits.words import FixedPointBits
from bitldp.categorical.unary import UnaryEncoding
from bitldp.categorical.window import CategoricalWindow
from bitldp.numeric.unbiased import Released
from bitldp.release.window import Law

__all__ = ["setting"]

_ONE = 1 << 64
INPUTS = 32  # inputs that are compared with each other where there are more
_TABLE = 1 << 22  # entries of a table that is still made for so many inputs


@singledispatch
def setting(mechanism: Any, pair: tuple[Any, Any] | None) -> Setting | None:
    """Return what is known of a mechanism; None where its law is not.

    Parameters
    ----------
    mechanism
        The mechanism. Other kinds than those below are known by their `channel`, if it is a `Matrix` or a
        `Window` and a report is one code of it.
    pair : tuple, optional
        The two inputs to compare; chosen from the law where it is None.

    Returns
    -------
    Setting or None
    """
    channel, codec = getattr(mechanism, "channel", None), getattr(mechanism, "codec", None)
    if getattr(mechanism, "features", 1) != 1 or not isinstance(channel, (Matrix, Window)):
        return None
    if isinstance(channel, Matrix):
        rows: Callable[[int], NDArray[np.float64]] = matrix_rows(channel)
        count, values = channel.inputs, channel.outputs
    else:
        rows, count, values = window_rows(Law(channel, mute=False)), channel.cells, channel.cells
    points = codec.values() if isinstance(codec, Grid) else None
    chosen = place(pair, count, points)
    return None if chosen is None else of_rows(rows, count, values, chosen, 1, points)


@setting.register
def _(mechanism: Released, pair: tuple[Any, Any] | None) -> Setting | None:
    return cube_setting(mechanism, pair)


@setting.register
def _(mechanism: FixedPointBits, pair: tuple[Any, Any] | None) -> Setting:
    inputs, names = _numbers(mechanism.codec, mechanism.channel.features)
    if pair is not None:
        inputs = [np.asarray(each, dtype=np.float64) for each in pair]
        for each in inputs:
            mechanism._check_axis("pair", each)
    block = _bits_block(mechanism, np.stack([each.reshape(-1) for each in inputs]))
    return Setting(inputs, names, [block], neighbours(len(inputs)), {"output": "bits"})


@setting.register
def _(mechanism: BitRand, pair: tuple[Any, Any] | None) -> Setting:
    # Every input of the features comes with a label; two that are compared differ in it.
    features, labels = mechanism.features_mechanism, mechanism.label_mechanism
    inputs, names = _numbers(features.codec, mechanism.features)
    classes = [each % 2 * (mechanism.classes - 1) for each in range(len(inputs))]
    if pair is not None:
        inputs = [np.asarray(x, dtype=np.float64).reshape(-1) for x, _ in pair]
        classes = [int(y) for y in checks.codes("pair", [y for _, y in pair], mechanism.classes)]
    names = [f"{name}, class {label}" for name, label in zip(names, classes, strict=False)]
    law = np.stack([window_rows(labels._law)(each) for each in classes])[:, None, :]
    return Setting(
        list(zip(inputs, classes, strict=True)),
        names,
        [
            _bits_block(features, np.stack(inputs)),
            Block(law, lambda _, value: f"class {value} is reported"),
        ],
        neighbours(len(inputs)),
        {"output": "bits"},
    )


@setting.register
def _(mechanism: UnaryEncoding, pair: tuple[Any, Any] | None) -> Setting:
    count = mechanism.channel.categories
    chosen = spread(count, min(INPUTS, max(2, _TABLE // count)))
    if pair is not None:
        chosen = [int(each) for each in checks.codes("pair", list(pair), count)]
    p, q = mechanism.channel.thresholds()
    own = np.array(chosen)[:, None] == np.arange(count)
    table = np.where(own[..., None], [(_ONE - p) / _ONE, p / _ONE], [(_ONE - q) / _ONE, q / _ONE])
    block = Block(table, lambda place, value: f"the bit of category {place} is reported {value}")
    names = [f"category {each}" for each in chosen]
    return Setting(chosen, names, [block], [(0, 1)], {"output": "bits"})


@setting.register
def _(mechanism: CategoricalWindow, pair: tuple[Any, Any] | None) -> Setting | None:
    channel = mechanism.channel
    chosen = place(pair, channel.cells, None)
    if chosen is None:  # a record with different categories: its rows differ by feature
        return None
    features = mechanism._columns
    return of_rows(window_rows(mechanism._law), channel.cells, channel.cells, chosen, features, None)


def spread(count: int, most: int) -> list[int]:
    """Return at most `most` numbers of [0, count): all, or the ends first and then evenly between."""
    if count <= most:
        return list(range(count))
    between = np.linspace(0, count - 1, most).round().astype(int)
    return list(dict.fromkeys([0, count - 1, 1, *between.tolist()]))[:most]


def place(pair: tuple[Any, Any] | None, count: int, points: NDArray[np.float64] | None) -> list[int] | None:
    """Return the codes of a given pair, no codes without one, None where an input is between the codes."""
    if pair is None:
        return []
    if points is None:
        alike = [np.unique(np.asarray(each)) for each in pair]
        if any(len(each) != 1 for each in alike):
            return None
        return [int(each[0]) for each in (checks.codes("pair", one, count) for one in alike)]
    codes = [np.flatnonzero(points == np.asarray(each).reshape(-1)[:1]) for each in pair]
    if any(np.size(each) != 1 for each in pair) or any(len(each) != 1 for each in codes):
        return None
    return [int(each[0]) for each in codes]


def _numbers(codec: FixedPoint, features: int) -> tuple[list[NDArray[np.float64]], list[str]]:
    """Return records whose code words are complements: largest and "-0", zero and the most negative.

    Zero is among them since code that scales noise by the data may leave it as it is.
    """
    tiny = -codec.step / 2.0  # truncated to the code word "-0"
    names = [f"every feature {codec.limit:g}", 'every feature "-0"']
    names += ["every feature 0", f"every feature {-codec.limit:g}"]
    return [np.full(features, x) for x in (codec.limit, tiny, 0.0, -codec.limit)], names


def _bits_block(mechanism: FixedPointBits, inputs: NDArray[np.float64]) -> Block:
    """Return the law of the bits of records, shape (inputs, features)."""
    codec, letters = mechanism.codec, mechanism._letters
    words = codec.encode(inputs).astype(np.int64)
    set_bits = words[..., None] >> np.arange(codec.bits - 1, -1, -1) & 1
    laws = np.array(
        [
            [[(_ONE - q) / _ONE, q / _ONE, (_ONE - p) / _ONE, p / _ONE] for p, q in law]
            for law in mechanism.channel.thresholds()
        ]
    ).reshape(-1, codec.bits, 2, 2)[letters.pattern]  # features, bits, input bit, report bit
    table = np.where(set_bits[..., None] == 1, laws[..., 1, :], laws[..., 0, :])

    def describe(symbol: int, value: int) -> str:
        return f"bit {symbol % codec.bits} of feature {symbol // codec.bits} is reported {value}"

    return Block(table.reshape(len(inputs), -1, 2), describe)


def matrix_rows(channel: Matrix) -> Callable[[int], NDArray[np.float64]]:
    weights = channel.weights()
    return lambda x: np.array([weight / _ONE for weight in weights[x]])


def window_rows(law: Law) -> Callable[[int], NDArray[np.float64]]:
    """Return the rows of a window channel, each made when it is asked for."""
    channel = law.channel
    order = channel.__getnewargs__()[3]
    inside = channel.high / (channel.width * _ONE)
    outside = (_ONE - channel.high) / ((channel.cells - channel.width) * _ONE)

    def row(x: int) -> NDArray[np.float64]:
        given = 0 if law.mute else x
        whole = np.full(channel.cells, outside)
        if order is None:
            start = channel.start(given)
            whole[start : start + channel.width] = inside
        else:
            whole[order[given, : channel.width]] = inside
        return whole

    return row


def of_rows(
    row: Callable[[int], NDArray[np.float64]],
    count: int,
    values: int,
    chosen: list[int],
    features: int,
    points: NDArray[np.float64] | None,
) -> Setting:
    """Return the setting of a channel with `count` inputs and `values` outputs, the same for all features."""
    codes = chosen or spread(count, min(INPUTS, max(2, _TABLE // (values * features))))
    rows = np.stack([row(code) for code in codes])
    table = np.repeat(rows[:, None, :], features, axis=1)
    one: list[Any] = codes if points is None else [float(points[code]) for code in codes]
    inputs = one if features == 1 else [np.full(features, each) for each in one]
    every = "" if features == 1 else "every feature "

    def describe(symbol: int, value: int) -> str:
        return f"{value} is reported" if features == 1 else f"feature {symbol} is reported as {value}"

    return Setting(
        inputs,
        [f"{every}{each}" for each in one],
        [Block(table, describe)],
        [worst_pair(rows)],
        {"output": "codes"},
    )
