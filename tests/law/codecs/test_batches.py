"""Whole arrays encoded, decoded, packed and unpacked: threads, `out`, interpreter lock, memory, lengths."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import bitldp
import numpy as np
import pytest
from bitldp import _core

CODEC = bitldp.FixedPoint(10, integer_bits=5)
VALUES = (np.arange(300_000) % 7919 / 64.0 - 60.0).astype(np.float32).reshape(-1, 100)
CODES = CODEC.encode(VALUES)
PACKED = bitldp.pack(CODES, 10)

CALLS = {
    "encode": (lambda **how: CODEC.encode(VALUES, **how), CODES),
    "decode": (lambda **how: CODEC.decode(CODES, **how), CODEC.decode(CODES)),
    "pack": (lambda **how: bitldp.pack(CODES, 10, **how), PACKED),
    "unpack": (lambda **how: bitldp.unpack(PACKED, 10, CODES.size, **how), CODES.ravel()),
}


@pytest.mark.parametrize("name", CALLS)
def test_threads_and_out_change_nothing(name):
    call, expected = CALLS[name]
    for threads in (None, 1, 3):
        np.testing.assert_array_equal(call(threads=threads), expected)
        out = np.ones_like(expected)
        assert call(threads=threads, out=out) is out
        np.testing.assert_array_equal(out, expected)
    for wrong in (np.empty(3, expected.dtype), np.empty_like(expected)[::-1]):
        with pytest.raises(ValueError, match="out"):
            call(out=wrong)
    with pytest.raises(TypeError, match="out"):
        call(out=np.empty(expected.shape, np.int64))
    with pytest.raises(ValueError, match="threads"):
        call(threads=0)


def test_unpacked_and_packed_are_those_of_numpy():
    for bits in (1, 3, 8, 10, 16, 17, 32):
        words = np.random.default_rng(bits).integers(0, 1 << bits, 1003).astype(np.uint32)
        expected = np.packbits((words[:, None] >> np.arange(bits)[::-1] & 1).astype(np.uint8))
        np.testing.assert_array_equal(bitldp.pack(words, bits), expected)
        np.testing.assert_array_equal(bitldp.unpack(expected, bits, 1003), words)


def test_what_is_refused_leaves_zeros():
    values, out = VALUES.copy(), np.ones_like(CODES)
    values[[2000, 700], 3] = np.nan
    with pytest.raises(ValueError, match="element 70003"):
        CODEC.encode(values, out=out)
    assert not out.any()
    codes, packed, back = CODES.copy(), np.ones_like(PACKED), np.ones_like(VALUES)
    codes[[2000, 700], 3] = 1 << 10
    with pytest.raises(ValueError, match="element 70003"):
        bitldp.pack(codes, 10, out=packed)
    with pytest.raises(ValueError, match="element 70003"):
        CODEC.decode(codes, out=back)
    assert not packed.any()
    assert not back.any()


def test_decode_gives_one_precision():
    assert CODEC.decode(CODES, np.float64).dtype == np.float64
    out = np.empty(CODES.shape)
    np.testing.assert_array_equal(CODEC.decode(CODES, out=out), CODEC.decode(CODES, np.float64))
    with pytest.raises(ValueError, match="dtype"):
        CODEC.decode(CODES, np.float32, out=out)


@pytest.fixture
def nobody_interrupts():
    """Let a thread that has the interpreter keep it until it gives it up by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(30.0)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("nobody_interrupts")
@pytest.mark.parametrize("name", CALLS)
def test_another_thread_runs_meanwhile(name):
    call, _ = CALLS[name]
    go, ran = threading.Event(), []
    other = threading.Thread(target=lambda: ran.append(go.wait()))
    other.start()
    go.set()
    deadline = time.monotonic() + 60  # on a busy machine the other waits for a core, too
    while time.monotonic() < deadline:
        call(threads=1)
        if ran:
            break
    assert ran
    other.join()


class Lying(list):
    """A list that says it has another length."""

    def __len__(self):
        return self.said


def _lying(items, said):
    lying = Lying(items)
    lying.said = said
    return lying


@pytest.mark.parametrize("said", [0, 2, 1 << 40, sys.maxsize])
def test_a_length_that_lies_is_refused(said):
    half = _lying([1 << 62, 1 << 63, 1 << 62], said)
    probabilities = _lying([0.5, 0.5, 0.5], said)
    for call in (
        lambda: _core.Shift(2, 4, half),
        lambda: _core.Matrix.from_weights([half]),
        lambda: _core.Matrix.from_weights(_lying([[1 << 64]] * 3, said)),
        lambda: _core.Bits([probabilities], [probabilities], 1),
        lambda: _core.Bits([[0.5]], [[0.5]], 3, _lying([0, 0, 0], said)),
    ):
        with pytest.raises(ValueError, match="length"):
            call()


MEMORY = """
import resource
import bitldp, numpy as np
from bitldp import _core
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
short = np.zeros(1 << 28, np.uint8)
for call in (
    lambda: _core.Grid(2**31 - 1, low=0.0, high=1.0).values(),
    lambda: _core.keystream(bytes(32), 0, 1 << 62),
    lambda: bitldp.pack(np.broadcast_to(np.uint8(0), (1 << 40,)), 8),
    lambda: bitldp.unpack(short, 1, 1 << 31),
    lambda: bitldp.FixedPoint(30, integer_bits=5).encode(np.zeros(1 << 28, np.float32)),
    lambda: _core.histogram(short[:9], 1, 1 << 31),
    lambda: _core.count_ones(short[:0], 1 << 31),
    lambda: _core.Unary(1 << 31, 0.5, 0.25).randomize(short, None, "packed", None, None, 0),
):
    try:
        call()
    except MemoryError:
        print("MemoryError")
"""


def test_what_is_a_sequence_is_taken_and_nothing_else():
    half = [1 << 63, 1 << 63]
    for weights in ([*half, 0], (*half, 0), np.array([*half, 0], np.uint64)):
        assert _core.Shift(2, 4, weights).weights() == [*half, 0]
    for weights in ("123", dict.fromkeys(half), set(half), iter(half), 3, None):
        with pytest.raises(TypeError):
            _core.Shift(2, 4, weights)


@pytest.mark.slow
def test_what_memory_does_not_hold_is_a_memory_error():
    found = subprocess.run(
        [sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True, timeout=60
    )
    assert found.stdout.split() == ["MemoryError"] * 8, found.stderr


def test_lengths_that_no_memory_has_are_refused():
    for length in (1 << 63, -1):
        with pytest.raises(ValueError, match="length"):
            _core.keystream(bytes(32), 0, length)
    with pytest.raises(ValueError, match="packed"):
        bitldp.unpack(np.zeros(9, np.uint8), 8, 1 << 50)
