"""The extension module on inputs, outputs and arguments that mostly do not fit."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bitldp import _core
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.fuzz import answer, fuzz, mostly
from support.odd_arrays import Lying, arrays

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Called:
    """A channel, the codecs and letters that its calls take, and what fits it.

    Attributes
    ----------
    codecs, letters : list
        Empty where the call has no such argument; without the first codec, None, the input is numbers.
    reports : int
        The alphabet of its codes.
    shape : tuple of int
        Of an input that fits.
    dtypes : str
        Of codes that fit, where there is no codec.
    """

    channel: Any
    codecs: list[Any]
    letters: list[Any]
    reports: int
    shape: tuple[int, ...] = (16,)
    dtypes: str = "u1 u2 i8"


def channels() -> dict[str, Called]:
    """Return channels, with codecs and letters that fit or not."""
    two, nine = _core.Grid(2, low=-1.0, high=1.0), _core.Grid(9, low=-1.0, high=1.0, clip=False)
    letters = [None, np.arange(9.0), np.arange(2.0), np.full(9, np.nan), [1.0, 2.0], "a"]
    rows = np.full((9, 9), 1 / 9)
    mixture = _core.Mixture(_core.Window(9, 2, 0.5), _core.Matrix(np.array([[0.5, 0.5], [0.5, 0.5]])))
    codecs = [None, _core.FixedPoint(4, integer_bits=2), _core.FixedPoint(5, integer_bits=2)]
    select = _core.Select(np.array([4, 4], np.uint32), np.array([1, 3], np.uint64))
    return {
        "flip": Called(_core.Window(2, 1, 0.7), [None, two, nine], letters, 2),
        "window": Called(_core.Window(9, 2, 0.5), [None, nine, two], letters, 9),
        "matrix": Called(_core.Matrix(rows), [None, nine, two], letters, 9),
        "shift": Called(_core.Shift(9, 9, [1 << 62, 1 << 63, 1 << 62], 0), [None, nine, two], letters, 9),
        "mixture": Called(mixture, [(nine, two), (two, nine)], [None, np.arange(10.0)], 10),
        "bits": Called(_core.Bits([[0.7] * 4], [[0.2] * 4], 8), codecs, [], 16, (4, 8)),
        "cube": Called(_core.Cube(8, 5, 4, 1 << 63), [None, two, nine], [None, (0.0, 1.0), 3], 256, (4, 8)),
        "unary": Called(_core.Unary(9, 0.5, 0.2), [], [], 512),
        "select": Called(select, [], [], 8, (4, 8), "f4 f8"),
        "cap": Called(
            _core.Cap([(9, 1)] * 4, [], 0, 1 << 62), [None, nine, two], [None, np.arange(11.0)], 11, (4, 4)
        ),
        "subset": Called(_core.Subset(9, 3, 0.6), [], [], 512),
        "design": Called(_core.Design.translates(9, 3, 0.6, np.arange(9, dtype=np.uint32)), [], [], 9),
    }


@dataclass(frozen=True)
class Drawn:
    """A call of a channel."""

    name: str
    x: Any
    codec: Any
    letters: Any
    key: Any
    form: Any
    out: str
    threads: Any
    first: Any


@st.composite
def calls(draw: st.DrawFn, names: list[str]) -> Drawn:
    """Draw a call of one of these channels."""
    name = draw(st.sampled_from(names))
    called = CHANNELS[name]
    some = called.codecs or [None]
    codec = draw(mostly(st.sampled_from(some[:2]), st.sampled_from(some)))
    dtypes = called.dtypes if codec is None else "f4 f8"
    form = draw(
        mostly(st.sampled_from(FORMS[name]), st.sampled_from(["codes", "bits", "values", "Codes", ""]))
    )
    some = called.letters or [None]
    letters = draw(mostly(st.just(some[form == "values" and len(some) > 1]), st.sampled_from(some)))
    return Drawn(
        name,
        draw(arrays(called.shape, dtypes)),
        codec,
        letters,
        draw(mostly(st.just(bytes(32)), st.sampled_from([None, b"short", "k" * 32, bytearray(32), 1]))),
        form,
        draw(st.sampled_from(OUT)),
        draw(mostly(st.sampled_from([None, 1, 2]), st.sampled_from([0, -1, 10**30, 1.5, "2"]))),
        draw(mostly(st.sampled_from([0, 5]), st.sampled_from([2**56, 2**64, -1, None]))),
    )


CHANNELS = channels()
CODES, STRINGS = ["codes", "packed"], ["codes", "bits", "packed"]
FORMS = {name: [*CODES, "values"] if called.letters else CODES for name, called in CHANNELS.items()}
FORMS |= {
    "bits": STRINGS,
    "cap": [*STRINGS, "values"],
    "cube": STRINGS,
    "unary": ["bits", "packed"],
    "subset": ["bits", "packed"],
}
OUT: list[str] = ["none", "none", "fits", "fits", "wide", "short", "strided", "read-only", "x", "list"]


def room(kind: str, x: Any, fitting: NDArray[Any]) -> Any:
    """Return an `out`, full of sevens, by its kind."""
    if kind == "none":
        return None
    if kind in ("x", "list"):
        return x if kind == "x" else [0] * 8
    out = np.full_like(fitting, 7, dtype=np.uint64 if kind == "wide" else fitting.dtype)
    if kind == "short":
        return out[:-1] if out.ndim else out
    if kind == "strided":
        return np.repeat(out, 2, axis=-1)[..., ::2]
    out.flags.writeable = kind != "read-only"
    return out


def test_channels_answer_or_refuse() -> None:
    def call(one: Drawn) -> bool:
        called = CHANNELS[one.name]
        keys = (one.key, bytes(range(32))) if one.name == "mixture" else one.key
        codec = [one.codec] if called.codecs else []
        arguments = [one.x, *codec, *([one.letters] if called.letters else []), keys, one.form]
        fresh = answer(called.channel.randomize, *arguments, None, one.threads, one.first)
        out = room(one.out, one.x, np.zeros(8, np.uint8) if fresh is None else fresh[0])
        before = out.copy() if isinstance(out, np.ndarray) else None
        made = answer(called.channel.randomize, *arguments, out, one.threads, one.first)
        if made is None:
            if one.out not in ("x", "list", "none"):
                assert (out == 0).all() or np.array_equal(out, before), "a refusal leaves reports"
            return fresh is not None
        (reports,) = made
        assert fresh is not None
        if one.key is not None:
            np.testing.assert_array_equal(reports, fresh[0])
        assert one.out == "none" or reports is out
        if one.form in ("codes", "bits") and reports.size:
            assert reports.max() < (2 if one.form == "bits" else called.reports)
        return True

    fuzz("channels", calls(sorted(CHANNELS)), call)


def test_keyed_calls_answer_or_refuse() -> None:
    ids = mostly(st.none(), st.one_of(arrays((16,), "u8 u1"), st.just(np.zeros((16, 32), np.uint8))), 6)

    def call(drawn: tuple[Drawn, Any]) -> bool:
        one, ids = drawn
        called = CHANNELS[one.name]
        if ids is None and isinstance(one.x, np.ndarray) and one.x.ndim:
            ids = np.arange(len(one.x), dtype=np.uint64)
        randomness = answer(_core.KeyedRandomness, one.key, b"fuzz", ids, one.first or 0)
        if randomness is None:
            return False
        source = (randomness[0], randomness[0]) if one.name == "mixture" else randomness[0]
        codec = [one.codec] if called.codecs else []
        arguments = [one.x, *codec, *([one.letters] if called.letters else []), source, one.form]
        made = answer(called.channel.randomize, *arguments, None, one.threads, 0)
        if made is not None and one.form == "codes" and made[0].size:
            assert made[0].max() < called.reports
        return made is not None

    fuzz("keyed randomness", st.tuples(calls(sorted(CHANNELS)), ids), call)


def test_codecs_and_packing_answer_or_refuse() -> None:
    codecs = [_core.FixedPoint(bits, integer_bits=bits // 2) for bits in (2, 8, 13, 32)]
    odd = st.sampled_from([0, 33, -1, 2**63, 10**30, 1.5, "1", None])
    numbers = mostly(st.sampled_from([1, 3, 8, 9, 16]), odd, 6)

    def call(one: tuple[int, Any, Any, Any, Any, str]) -> bool:
        which, x, bits, count, threads, kind = one
        codec, answered = codecs[which], False
        for call, arguments in (
            (codec.encode, (x,)),
            (codec.decode, (x,)),
            (_core.pack, (x, bits)),
            (_core.unpack, (x, bits, count)),
        ):
            fresh = answer(call, *arguments, threads=threads)
            out = room(kind, x, np.zeros(8, np.uint8) if fresh is None else fresh[0])
            before = out.copy() if isinstance(out, np.ndarray) else None
            made = answer(call, *arguments, out=out, threads=threads)
            if made is not None:
                assert fresh is not None
                np.testing.assert_array_equal(made[0], fresh[0])
            elif kind not in ("x", "list", "none"):
                assert (out == 0).all() or np.array_equal(out, before)
            answered |= fresh is not None
        return answered

    threads = mostly(st.sampled_from([None, 1, 2]), st.sampled_from([0, -1]))
    drawn = st.tuples(st.integers(0, 3), arrays(), numbers, numbers, threads, st.sampled_from(OUT))
    fuzz("codecs", drawn, call)


def test_counts_answer_or_refuse() -> None:
    odd = st.sampled_from([0, 3, 9, 33, -1, 2**40, 2**63, 10**30, None])
    numbers = mostly(st.sampled_from([1, 2, 8, 16]), odd, 6)
    forms = mostly(st.sampled_from(["codes", "bits", "packed"]), st.just("values"))

    def call(one: tuple[Any, Any, Any, Any, str]) -> bool:
        x, columns, alphabet, records, form = one
        made = [
            answer(_core.count_ones, x, columns, form=form, records=records),
            answer(_core.count_words, x, columns, alphabet, form=form, records=records),
            answer(_core.histogram, x, columns, alphabet, form=form, records=records),
            answer(_core.sums, x, columns, alphabet, form=form, records=records),
            answer(_core.sampled_histogram, x, x, columns, alphabet),
            answer(_core.sampled_sums, x, x, columns, alphabet),
        ]
        assert all(each is None or each[0].dtype == np.uint64 for each in made)
        return any(each is not None for each in made)

    fuzz("counts", st.tuples(arrays(), numbers, numbers, numbers, forms), call)


def test_constructors_answer_or_refuse() -> None:
    half, law = np.full((2, 2), 0.5), [1 << 62, 1 << 63, 1 << 62]
    four, two = np.array([4, 4], np.uint32), np.array([1, 3], np.uint64)
    fitting: list[tuple[Callable[..., Any], list[Any]]] = [
        (_core.Bits, [[[0.7] * 4], [[0.2] * 4], 8]),
        (_core.Bits, [[[0.7]] * 2, [[0.2]] * 2, 2, [0, 1]]),
        (_core.Cap, [[(9, 1)], [(4, 1), (5, 2)], 1, 1 << 63, False]),
        (_core.Cube, [8, 5, 4, 1 << 63, False]),
        (_core.Matrix, [half]),
        (_core.Matrix.from_weights, [[[1 << 63, 1 << 63]]]),
        (_core.Mixture, [_core.Window(9, 2, 0.5), _core.Matrix(half)]),
        (_core.Select, [four, two, 5]),
        (_core.Shift, [9, 9, law, 0, True]),
        (_core.Unary, [9, 0.5, 0.2]),
        (_core.Subset, [9, 3, 0.6, False]),
        (_core.Design.translates, [9, 3, 0.6, np.arange(9, dtype=np.uint32), False]),
        (_core.Design.progressions, [7, 7, 3, 0.6, False]),
        (_core.Design.halves, [14, 3, 1, 0.6, True]),
        (_core.Window, [9, 2, 0.5, None, False]),
        (_core.Window, [2, 1, 0.5, np.array([[0, 1], [1, 0]], np.uint16)]),
        (_core.log_ratio, [3, 4]),
        (lambda bits, integer: _core.FixedPoint(bits, integer_bits=integer), [9, 3]),
        (lambda points, low, high: _core.Grid(points, low=low, high=high), [9, -1.0, 1.0]),
        (_core.keystream, [bytes(32), 5, 100]),
        (_core.Window.from_integers, [9, 2, 1 << 63, None, False]),
        (_core.Subset.from_integers, [9, 3, 1 << 63, True]),
        (_core.Unary.from_integers, [9, 1 << 63, 1 << 61]),
        (_core.Bits.from_integers, [[[(1 << 63, 1 << 61)] * 4], 8, None]),
        (_core.Design.from_integers, ["halves", 14, 16, 4, 1 << 63, None, True]),
        (_core.words, [bytes(32), 5, 3, 7, 4]),
        (_core.coordinates, [bytes(32), 5, 9, 3, 7]),
        (_core.distinct, [np.arange(6, dtype=np.uint64).reshape(3, 2), 5]),
        (_core.scaled, [np.arange(6, dtype=np.uint64), 5]),
        (_core.functions, [np.arange(6, dtype=np.uint64).reshape(3, 2), 7]),
        (_core.function_values, [np.ones((3, 2), np.uint32), np.ones(3, np.uint32), 7, 2]),
    ]
    odd = [0, 1, 3, -1, 2**16, 2**64, 10**30, 0.5, 1.5, -0.5, np.nan, np.inf, None, "2", b"", "no"]
    odd += [
        [],
        [0.5],
        [[]],
        [[0.5] * 33],
        [[0.7, 0.3], [0.5]],
        [1 << 64],
        [-1, 1],
        [0.9],
        Lying(10**18, 3),
    ]
    odd += [
        np.full((2, 2), np.nan),
        np.zeros((0, 2)),
        np.eye(3),
        np.ones(3),
        np.full((2, 2), 9),
    ]

    def call(one: tuple[tuple[Callable[..., Any], list[Any]], list[tuple[int, Any]]]) -> bool:
        (kind, arguments), changes = one
        arguments = list(arguments)
        for place, value in changes:
            arguments[place % len(arguments)] = value
        made = answer(kind, *arguments)
        if made is not None and hasattr(made[0], "epsilon"):
            assert np.max(made[0].epsilon) >= 0.0
            assert repr(made[0])
        return made is not None

    odd_ones = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(odd)), min_size=1, max_size=2)
    changes = mostly(st.just([]), odd_ones, 3)
    fuzz("constructors", st.tuples(st.sampled_from(fitting), changes), call)


NUMBERS = mostly(
    st.sampled_from([2, 3, 5, 8, 16]), st.sampled_from([0, 1, -1, 2**16, 2**40, 2**63, 10**30]), 6
)
THREADS = mostly(st.sampled_from([None, 1, 2]), st.sampled_from([0, -1, 10**30, "2"]))
SCALES = mostly(st.sampled_from([1.0, -2.5]), st.sampled_from([0.0, np.nan, np.inf, 1e308, None]))


def test_rotations_answer_or_refuse() -> None:
    select = _core.Select(np.array([8, 8], np.uint32), np.array([1, 3], np.uint64), None, True)
    kinds = mostly(st.sampled_from(["hadamard", "haar"]), st.sampled_from(["Haar", "", None]))
    sizes = mostly(st.just(5), NUMBERS, 3)
    keys = mostly(st.just(bytes(32)), st.sampled_from([b"short", None, 1]))
    rows = arrays((4,), "u4")
    drawn = st.tuples(
        st.tuples(sizes, SCALES, kinds, keys),
        arrays((4, 5), "f4 f8"),
        rows,
        rows,
        arrays((4, 16), "u8"),
        THREADS,
    )

    def call(one: tuple[Any, Any, Any, Any, Any, Any]) -> bool:
        made = answer(_core.Rotation, *one[0])
        if made is None:
            return False
        (rotation,), (_, x, rotations, reports, counts, threads) = made, one
        answered = [
            answer(rotation.rotate, x, rotations, threads),
            answer(rotation.letters, rotations, reports, 2.0, threads),
            answer(rotation.sums, rotations, reports, 2.0, threads),
            answer(rotation.undo_counts, rotations, counts, 2.0, threads),
            answer(select.randomize_rotated, x, rotation, rotations, bytes(32), "codes", None, threads, 0),
        ]
        return any(each is not None for each in answered)

    fuzz("rotations", drawn, call)


def test_hashes_answer_or_refuse() -> None:
    drawn = st.tuples(
        arrays((16,), "u4"),
        arrays((16,), "u4"),
        arrays((16,), "u8"),
        arrays((16, 3), "u4"),
        NUMBERS,
        NUMBERS,
        THREADS,
    )

    def call(one: tuple[Any, Any, Any, Any, Any, Any, Any]) -> bool:
        seeds, reports, words, triples, cells, size, threads = one
        made = [
            answer(_core.hash_cells, seeds, words, cells),
            answer(_core.hash_supports, seeds, reports, words, cells, threads=threads),
            answer(_core.count_hashes, triples, size, 65537, cells, threads=threads),
            answer(_core.count_hashes, triples, 3, size, cells, threads=threads),
            answer(_core.count_progressions, reports, size, cells, 3, threads=threads),
            answer(_core.count_progressions, reports, 7, 7, size, records=cells, threads=threads),
        ]
        if made[0] is not None and made[0][0].size:
            assert made[0][0].max() < cells
        return any(each is not None for each in made)

    fuzz("hashes", drawn, call)


def test_texts_answer_or_refuse() -> None:
    rising = st.builds(lambda steps: np.cumsum([0, *steps]), st.lists(st.integers(0, 3), max_size=20))
    offsets = mostly(rising, arrays((16,), "i8"), 4)
    columns = st.lists(
        st.one_of(
            arrays((3,), "f4 f8 u1 i8"),
            st.tuples(st.one_of(st.none(), arrays((3,), "i4")), offsets, arrays((64,), "u1"), st.booleans()),
        ),
        max_size=3,
    )
    tables = mostly(columns, st.sampled_from([Lying(10**18, 3), Lying(0, 3), "abc", None, [()], [(None,)]]))
    marks = mostly(st.sampled_from([",", ";", "\t"]), st.sampled_from(["", ",,", "é", None, 3]))

    def call(one: tuple[Any, Any, Any, Any, Any]) -> bool:
        table, mark, starts, content, threads = one
        rows = answer(_core.csv_rows, table, mark)
        digests = answer(_core.text_digests, starts, content, threads=threads)
        if digests is not None:
            assert digests[0].shape == (len(starts) - 1, 32)
        return rows is not None or digests is not None

    fuzz("texts", st.tuples(tables, marks, offsets, arrays((64,), "u1"), THREADS), call)


def test_keys_of_records_answer_or_refuse() -> None:
    places = mostly(st.just(np.array([3, 0, 3])), arrays((3,), "i8"), 4)
    columns = mostly(st.integers(0, 9), st.sampled_from([-1, 2**32, 2**40, 10**30]))

    def taken_of(randomness: _core.KeyedRandomness, places: Any, column: Any) -> _core.KeyedRandomness:
        try:
            return randomness.taken(places, column)
        except IndexError as error:  # of a place beyond the records
            raise ValueError(str(error)) from None

    def call(one: tuple[Any, Any, Any, Any, Any]) -> bool:
        x, places, column, count, threads = one
        randomness = _core.KeyedRandomness(bytes(32), b"fuzz", np.arange(16, dtype=np.uint64))
        bound = answer(randomness.bound, x, threads)
        taken = answer(taken_of, randomness if bound is None else bound[0], places, column)
        stage = answer(randomness.stage, column)
        if taken is not None:
            assert len(taken[0]) == len(places)
        least = (
            None
            if isinstance(count, int) and count > 1 << 20
            else answer(randomness.words, count, 5, threads)
        )
        return any(each is not None for each in (bound, taken, stage, least))

    fuzz("keys of records", st.tuples(arrays((16,)), places, columns, NUMBERS, THREADS), call)


def test_sliding_masses_answer_or_refuse() -> None:
    highs = mostly(st.sampled_from([0.3, 0.7]), st.sampled_from([0.0, 1.0, np.nan, -1.0, None]))
    most = mostly(st.sampled_from([None, 0, 3]), st.sampled_from([-1, 10**30, 1.5]))

    def call(one: tuple[Any, Any, Any, Any, Any, Any]) -> bool:
        counts, width, high, gain, most, threads = one
        made = answer(_core.sliding_masses, counts, width, high, gain=gain, most=most, threads=threads)
        if made is not None:
            np.testing.assert_allclose(made[0].sum(axis=1), 1.0, atol=1e-9)
        return made is not None

    gains = mostly(st.sampled_from([1e-3, 1.0]), SCALES)
    fuzz("masses", st.tuples(arrays((2, 16), "u8"), NUMBERS, highs, gains, most, THREADS), call)


def test_methods_of_numbers_answer_or_refuse() -> None:
    grid, cube = _core.Grid(9, low=-1.0, high=1.0), _core.Cube(8, 5, 4, 1 << 63)
    window, shift = _core.Window(9, 2, 0.5), _core.Shift(9, 9, [1 << 62, 1 << 63, 1 << 62], 0)
    shares = mostly(st.integers(0, 2**64), NUMBERS)

    def call(one: tuple[Any, Any, Any, Any]) -> bool:
        x, place, share, scale = one
        made = [
            answer(grid.outside, x),
            answer(window.start, place),
            answer(cube.with_high, share),
            answer(shift.delta, scale),
        ]
        assert made[3] is None or 0.0 <= made[3][0] <= 1.0
        return any(each is not None for each in made)

    drawn = st.tuples(arrays((16,), "f4 f8"), NUMBERS, shares, SCALES)
    fuzz("methods of numbers", drawn, call)


NOT_DRAWN = {"isa": "takes nothing", "available_isas": "takes nothing"}


def test_every_entry_point_is_drawn() -> None:
    """Functions, classes, and the methods that take something, as the stub lists them."""
    drawn = {
        each.attr
        for each in ast.walk(ast.parse(Path(__file__).read_text()))
        if isinstance(each, ast.Attribute)
    }
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text())
    entries = [each for each in stub.body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    named = {each.name for each in entries}
    assert named == {name for name in _core.__all__ if callable(getattr(_core, name))}
    methods = {
        method.name
        for kind in entries
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("__")
        if len(method.args.posonlyargs) + len(method.args.args) > 1
        or (method.decorator_list and ast.unparse(method.decorator_list[0]) == "staticmethod")
    }
    assert (named | methods) - drawn == NOT_DRAWN.keys()
