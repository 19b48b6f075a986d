"""The kernels that `soak.py` draws from: one of each kind, its inputs in turn, and its law.

A kind is a path through the core's samplers: each law in each form that it is sampled in, from a stream and
with keyed randomness, from codes and from numbers that are dithered. What encodes, emits or picks an
instruction set only moves bits, and the tests compare it with its oracle byte by byte; here laws are compared
with counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from _soak_laws import (
    ONE,
    Law,
    about,
    agreements,
    chances,
    dithered,
    inside,
    rows,
    sizes_of,
    spelled,
    strings,
    thousands,
)
from bitldp import _core
from numpy.typing import NDArray

COLUMNS = 16  # of keyed records
KEY = hashlib.sha256(b"soak").digest()

Draw: TypeAlias = Callable[[NDArray[np.intp], Any, int], NDArray[Any]]


@dataclass(frozen=True)
class Kernel:
    """A channel, its inputs in turn, and its law.

    Attributes
    ----------
    law : ndarray of float64, shape (inputs, reports)
        The probability of each report.
    draw : callable
        Takes the batch's inputs as numbers below the rows of `law`, a key and the first chunk; gives codes
        below its columns.
    chunk : int
        Reports in a chunk of the key's stream.
    record : int
        Inputs that go together.
    dear : int
        Samples that are asked for to one that is drawn: keyed records of their own take a hash each.
    """

    law: Law
    draw: Draw
    chunk: int = _core.CHUNK
    record: int = 1
    dear: int = 1


def kernels() -> Iterator[tuple[str, Kernel]]:
    """Yield one kernel of each kind: the lanes, tables and laws that a channel chooses among."""
    found = [*_of_codes(), *_of_numbers(), *_of_bits(), *_of_strings()]
    yield from sorted(found, key=lambda one: "keyed" in one[0])


def _of_strings() -> Iterator[tuple[str, Kernel]]:
    found = dict(_strings_of_a_value())
    yield from found.items()
    for title, kernel in found.items():
        yield f"{title}, keyed", replace(kernel, draw=_by_record(kernel.draw, kernel.chunk), dear=20)


def _strings_of_a_value() -> Iterator[tuple[str, Kernel]]:
    unary = _core.Unary(9, 0.5, 0.25)
    one, zero = unary.thresholds()
    marginals = np.where(np.eye(9, dtype=bool), one / ONE, zero / ONE)
    yield "unary, 9 categories", Kernel(strings(marginals), _one_hot(unary), unary.chunk)
    subset = _core.Subset(7, 3, 0.6)
    holds = (np.arange(1 << 7) >> np.arange(6, -1, -1)[:, None] & 1).astype(bool)
    of_size = holds.sum(axis=0) == 3
    yield (
        "subset, 3 of 7",
        Kernel(inside(holds & of_size, ~holds & of_size, subset), _one_hot(subset), subset.chunk),
    )
    cube = _core.Cube(8, 5, 4, ONE // 4 * 3)
    yield "cube, 8 signs", Kernel(agreements(cube), _signs(cube), cube.chunk)
    cap = _core.Cap([(2, 1)], [(2, 1), (3, 1)], 1, ONE // 3)
    yield "cap, a number and two categories", Kernel(about(cap), _capped(cap), cap.chunk)
    select = _core.Select(np.array([3, 2], np.uint32), np.array([2, 7], np.uint64), 5)
    ranks = np.append(select.weights(), select.nothing).astype(np.float64) / select.total
    orders = np.array([np.roll(np.arange(5), turn) for turn in range(5)])
    law = np.column_stack([ranks[:5][orders], np.full(5, ranks[5])])
    yield "select, 5 coordinates", Kernel(law, _selected(select, orders), select.chunk)
    cells, x = np.arange(7), np.arange(7)[:, None]
    translates = _core.Design.translates(7, 3, 0.6, np.array([1, 2, 4, 0, 3, 5, 6], np.uint32))
    blocks = np.isin((cells - x) % 7, [1, 2, 4])
    yield "design, translates", Kernel(inside(blocks, ~blocks, translates), _designed(translates))
    progressions = _core.Design.progressions(7, 7, 3, 0.6)
    blocks = np.hstack([np.isin((cells - x) % 7, [0, step, 2 * step % 7]) for step in (1, 2, 3)])
    yield "design, progressions", Kernel(inside(blocks, ~blocks, progressions), _designed(progressions))
    halves = _core.Design.halves(14, 3, 1, 0.6)
    cells, x = np.arange(16), np.arange(14)[:, None]
    even = np.bitwise_count((cells & 7) & (1 + x // 2)) % 2 == 0
    blocks = even & (cells >> 3 == x % 2)
    yield "design, halves", Kernel(inside(blocks, ~blocks, halves), _designed(halves))


def _designed(design: _core.Design) -> Draw:
    return lambda x, key, first: design.randomize(
        x.astype(np.uint16), key, "codes", None, None, first
    ).astype(np.intp)


def _by_record(draw: Draw, chunk: int) -> Draw:
    """Return the draw with randomness of its key and of ids, one for each record."""

    def keyed(x: NDArray[np.intp], key: bytes, first: int) -> NDArray[Any]:
        ids = np.arange(len(x), dtype=np.uint64) + np.uint64(first * chunk)
        return draw(x, _core.KeyedRandomness(key, b"soak", ids), 0)

    return keyed


def _of_codes() -> Iterator[tuple[str, Kernel]]:
    order = np.array([np.roll(np.arange(9), turn) for turn in range(9)], np.uint16)
    eighths = [ONE // 8, ONE // 4, ONE // 4, ONE // 4, ONE // 8]
    for title, channel in {
        "window, flip": _core.Window(2, 1, 0.7),
        "window, GRR of 16": _core.Window(16, 1, 0.4),
        "window, 30 of 300": _core.Window(300, 30, 0.5),
        "window, in an order": _core.Window(9, 4, 0.6, order),
        "matrix, 8 x 8": _core.Matrix(rows(8, 8)),
        "matrix, 40 x 100": _core.Matrix(rows(40, 100)),
        "matrix, 40 x 300": _core.Matrix(rows(40, 300)),
        "shift, 5 to 9": _core.Shift(5, 9, eighths, 2),
        "shift, 5 to 67": _core.Shift(5, 67, [ONE // 64] * 62 + [ONE // 32], 31),
    }.items():
        law = channel.probabilities()
        yield title, Kernel(law, _categorical(channel))
        yield f"{title}, keyed", Kernel(law, _keyed(channel))
    wide = _core.Window(70_000, 7_000, 0.5)
    inputs = np.array([0, 34_567, 69_999], np.uint32)
    law = thousands(wide, inputs)
    for title, draw in {"": _categorical(wide, inputs), ", keyed": _keyed(wide, inputs)}.items():
        yield f"window, 7,000 of 70,000{title}", Kernel(law, _in_thousands(draw))


def _of_numbers() -> Iterator[tuple[str, Kernel]]:
    # The shares of the points beside a number are exact in binary.
    numbers = np.array([0.0, 0.25, 3.5, 6.0, 7.9375], np.float32)
    nine, two = _core.Grid(9, low=0.0, high=8.0), _core.Grid(2, low=0.0, high=8.0)
    flip, window = _core.Window(2, 1, 0.7), _core.Window(9, 4, 0.6)
    coin = _core.Matrix(np.array([[0.5, 0.375, 0.125], [0.5, 0.125, 0.375]]))
    wide = _core.Matrix(rows(9, 40))
    for title, channel, grid in (("flip", flip, two), ("window", window, nine), ("matrix", wide, nine)):
        law = dithered(channel.probabilities(), grid, numbers)
        yield f"{title} of numbers", Kernel(law, _categorical(channel, numbers, grid))
        yield f"{title} of numbers, keyed", Kernel(law, _keyed(channel, numbers, grid))
    cells, answers = (
        dithered(each.probabilities(), grid, numbers) for each, grid in ((window, nine), (coin, two))
    )
    mixture, grids = _core.Mixture(window, coin), (nine, two)
    law = np.hstack([answers[:, :1] * cells, answers[:, 1:]])

    def draw(x: NDArray[np.intp], key: bytes, first: int) -> NDArray[Any]:
        return mixture.randomize(numbers[x], grids, None, (key, KEY), "codes", None, None, first)

    yield "mixture", Kernel(law, draw)
    yield "mixture, keyed", Kernel(law, _keyed(mixture, numbers, grids))


def _of_bits() -> Iterator[tuple[str, Kernel]]:
    steps = 0.02 * np.arange(8)
    eights = np.array([0, 255, 0b10110100, 0b00001111], np.uint8)
    symmetric, two = (
        _core.Bits([list(p - steps)], [list(q + steps)], 4) for p, q in ((0.7, 0.3), (0.8, 0.35))
    )
    yield "bits, symmetric", _words(symmetric, eights)
    yield "bits, two laws a bit", _words(two, eights)
    field = _core.FixedPoint(8, integer_bits=3)
    numbers = field.decode(eights, np.float32)
    yield "bits of numbers", _words(symmetric, field.encode(numbers), given=(numbers, field))
    for laws in (3, 9):  # few are blended in the vector kernels, more are drawn one by one
        p = [[0.6 + 0.03 * law] * 8 for law in range(laws)]
        q = [[0.4 - 0.02 * law] * 8 for law in range(laws)]
        blended = _core.Bits(p, q, 16, [feature % laws for feature in range(16)])
        yield f"bits, {laws} laws in turn", _words(blended, eights[1:3])
    twelve = _core.Bits([[0.7, 0.6] * 6], [[0.3, 0.4] * 6], 4)
    yield "bits, 12 a word", _words(twelve, np.array([0, 4095, 0b101101001110, 77], np.uint16))
    twenty = _core.Bits([[0.75, 0.6] * 10], [[0.3, 0.35] * 10], 4)
    some = [0, 5, 6, 7, 12, 13, 18, 19]  # from both sides of every table's end
    yield "bits, 8 of 20 a word", _words(twenty, np.array([0, 0xFFFFF, 0xA5A5A, 0x12345], np.uint32), some)


def _in_thousands(draw: Draw) -> Draw:
    return lambda x, key, first: draw(x, key, first) // 1000


def _categorical(channel: Any, inputs: NDArray[Any] | None = None, grid: _core.Grid | None = None) -> Draw:
    values = np.arange(1 << 16, dtype=np.uint16) if inputs is None else inputs
    return lambda x, key, first: channel.randomize(
        values[x], grid, None, key, "codes", None, None, first
    ).astype(np.intp)


def _keyed(channel: Any, inputs: NDArray[Any] | None = None, grid: Any = None) -> Draw:
    values = np.arange(1 << 16, dtype=np.uint16) if inputs is None else inputs

    def draw(x: NDArray[np.intp], key: bytes, first: int) -> NDArray[Any]:
        # Records of many columns: a hash for each sample would take ten times as long as the samples.
        records = values[x].reshape(-1, COLUMNS if len(x) % COLUMNS == 0 else 1)
        ids = np.arange(len(records), dtype=np.uint64) + np.uint64(first * _core.CHUNK)
        randomness = _core.KeyedRandomness(key, b"soak", ids)
        source = (randomness, randomness) if isinstance(channel, _core.Mixture) else randomness
        codes = channel.randomize(records, grid, None, source, "codes", None, None, 0)
        return np.asarray(codes, np.intp).ravel()

    return draw


def _words(
    bits: _core.Bits,
    words: NDArray[Any],
    some: Sequence[int] = (),
    given: tuple[NDArray[np.float32], _core.FixedPoint] | None = None,
) -> Kernel:
    """Return the kernel of code words, the same one in all features of a record, in turn.

    Of `some` bits, counted from the most significant, where not all are looked at; `given` as numbers.
    """
    features, places = bits.features, list(some) or list(range(bits.bits))
    (laws, _, given_pattern) = bits.__reduce__()[1]
    pattern = given_pattern or [0] * features
    marginals = [
        [chances(laws[law], int(word))[place] for place in places] for word in words for law in pattern
    ]
    values, codec = given or (words, None)

    def draw(x: NDArray[np.intp], key: bytes, first: int) -> NDArray[Any]:
        records = values[x // features].reshape(-1, features)
        codes = bits.randomize(records, codec, key, "codes", None, None, first).ravel()
        return codes if not some else spelled(codes[:, None] >> (bits.bits - 1 - np.array(places)) & 1)

    return Kernel(strings(np.array(marginals)), draw, record=features)


def _one_hot(unary: _core.Unary | _core.Subset) -> Draw:
    def draw(x: NDArray[np.intp], key: Any, first: int) -> NDArray[Any]:
        strings = unary.randomize(x.astype(np.uint8), key, "bits", None, None, first)
        return spelled(strings.reshape(len(x), -1))

    return draw


def _signs(cube: _core.Cube) -> Draw:
    def draw(x: NDArray[np.intp], key: Any, first: int) -> NDArray[Any]:
        records = (x[:, None] >> np.arange(7, -1, -1) & 1).astype(np.uint8)
        return spelled(cube.randomize(records, None, None, key, "codes", None, None, first))

    return draw


def _capped(cap: _core.Cap) -> Draw:
    records, reports = (np.array(list(np.ndindex(*sizes)), np.uint8) for sizes in sizes_of(cap))

    def draw(x: NDArray[np.intp], key: Any, first: int) -> NDArray[Any]:
        codes = cap.randomize(records[x], None, None, key, "codes", None, None, first)
        return np.ravel_multi_index(tuple(codes.T), tuple(reports[-1] + 1))

    return draw


def _selected(select: _core.Select, orders: NDArray[np.intp]) -> Draw:
    vectors = (-1.5 * (orders + 1)).astype(np.float32)  # magnitudes in the order of the ranks
    return lambda x, key, first: select.randomize(vectors[x], key, "codes", None, None, first)
