"""Counts of reports in the core, from Python: every form, against NumPy."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
from bitldp import _core


def _bits(words: np.ndarray, bits: int) -> np.ndarray:
    return (words[..., None] >> np.arange(bits)[::-1] & 1).astype(np.uint8).reshape(len(words), -1)


def _forms(words: np.ndarray, bits: int) -> list[tuple[str, np.ndarray]]:
    codes = words.astype(np.min_scalar_type((1 << bits) - 1))
    spread = _bits(words, bits)
    return [("codes", codes), ("bits", spread), ("packed", np.packbits(spread))]


@pytest.mark.parametrize("threads", [None, 1, 3])
@pytest.mark.parametrize(("records", "width"), [(0, 5), (1, 1), (1000, 7), (333, 128), (70_000, 3)])
def test_ones_are_column_sums(records, width, threads):
    spread = np.random.default_rng(1).integers(0, 2, (records, width), dtype=np.uint8)
    expected = spread.sum(axis=0, dtype=np.uint64)
    for reports in (spread, spread.astype(bool), np.asfortranarray(spread)):
        counts = _core.count_ones(reports, width, threads=threads)
        assert counts.dtype == np.uint64
        np.testing.assert_array_equal(counts, expected)
    packed = np.packbits(spread)
    counts = _core.count_ones(packed, width, form="packed", records=records, threads=threads)
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("bits", [2, 5, 10, 17])
def test_word_counts_are_moments_of_bits(bits):
    words = np.random.default_rng(2).integers(0, 1 << bits, (2000, 6))
    ones = _bits(words, bits).reshape(2000, 6, bits).astype(np.int64)
    sign, rest = ones[..., 0], ones[..., 1:]
    first, second = np.triu_indices(bits - 1, 1)
    half = np.concatenate(
        [np.ones_like(sign)[..., None], rest, rest[..., first] * rest[..., second]], axis=-1
    )
    expected = np.stack([half.sum(axis=0), (half * sign[..., None]).sum(axis=0)], axis=1)
    for form, reports in _forms(words, bits):
        counts = _core.count_words(reports, 6, bits, form=form, records=2000)
        np.testing.assert_array_equal(counts, expected, form)


@pytest.mark.parametrize("alphabet", [2, 3, 128, 1000, 70_000])
def test_histograms_and_sums_are_those_of_numpy(alphabet):
    words = np.random.default_rng(3).integers(0, alphabet, (5000, 4))
    table = np.stack([np.bincount(column, minlength=alphabet) for column in words.T])
    sums = np.stack([words.sum(axis=0), (words**2).sum(axis=0)], axis=1)
    for form, reports in _forms(words, (alphabet - 1).bit_length()):
        chosen = {"form": form, "records": 5000}
        np.testing.assert_array_equal(_core.histogram(reports, 4, alphabet, **chosen), table, form)
        np.testing.assert_array_equal(_core.sums(reports, 4, alphabet, **chosen), sums, form)


def test_sampled_counts_are_those_of_numpy():
    rng = np.random.default_rng(4)
    indices, codes = rng.integers(0, 300, (1000, 3)), rng.integers(0, 5, (1000, 3))
    table = np.zeros((300, 5), np.int64)
    np.add.at(table, (indices, codes), 1)
    sums = np.stack([table @ np.arange(5) ** power for power in range(3)], axis=1)
    pair = (indices.astype(np.uint16), codes.astype(np.uint8))
    packed = (_core.pack(pair[0], 9), _core.pack(pair[1], 3))
    for reports, chosen in ((pair, {}), (packed, {"form": "packed", "pairs": 3000})):
        np.testing.assert_array_equal(_core.sampled_histogram(*reports, 300, 5, **chosen), table)
        np.testing.assert_array_equal(_core.sampled_sums(*reports, 300, 5, **chosen), sums)


def test_batches_add():
    words = np.random.default_rng(5).integers(0, 1 << 9, (900, 11)).astype(np.uint16)
    parts = [_core.count_words(part, 11, 9) for part in np.split(words, [13, 500])]
    np.testing.assert_array_equal(sum(parts), _core.count_words(words, 11, 9))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: _core.count_ones([0, 1, 7], 3), TypeError, "reports"),
        (lambda: _core.count_ones(np.array([0, 1, 7], np.uint8), 3), ValueError, "element 2"),
        (lambda: _core.count_ones(np.zeros(7, np.uint8), 3), ValueError, "reports"),
        (lambda: _core.count_ones(np.zeros(7, np.uint16), 7), TypeError, "uint16"),
        (lambda: _core.count_ones(np.zeros(7, np.uint8), 0), ValueError, "columns"),
        (lambda: _core.count_ones(np.zeros(1, np.uint8), 7, form="packed"), ValueError, "records"),
        (
            lambda: _core.count_ones(np.ones(1, np.uint8), 7, form="packed", records=1),
            ValueError,
            "element 0",
        ),
        (lambda: _core.count_ones(np.zeros(6, np.uint8), 3, form="codes"), ValueError, "reports"),
        (lambda: _core.count_ones(np.zeros(6, np.uint8), 3, form="values"), ValueError, "form"),
        (lambda: _core.count_ones(np.zeros(6, np.uint8), 3, threads=0), ValueError, "threads"),
        (lambda: _core.count_words(np.full(6, 99, np.uint8), 3, 5), ValueError, "element 0"),
        (lambda: _core.count_words(np.zeros(6, np.float32), 3, 5), TypeError, "float32"),
        (lambda: _core.count_words(np.zeros(6, np.uint8), 3, 40), ValueError, "bits"),
        (lambda: _core.histogram(np.full(6, 99, np.uint8), 3, 5), ValueError, "element 0"),
        (lambda: _core.histogram(np.zeros(6, np.uint8), 3, 0), ValueError, "alphabet"),
        (lambda: _core.histogram(np.zeros(2, np.uint8), 2, 1 << 62), ValueError, "alphabet"),
        (lambda: _core.histogram(np.zeros(1 << 20, np.uint8), 1 << 20, 1 << 32), MemoryError, "memory"),
        (lambda: _core.sums(np.full(6, 99, np.uint8), 3, 5), ValueError, "element 0"),
        (lambda: _core.sums(np.zeros(1 << 10, np.uint32), 1, 1 << 32), ValueError, "records"),
        (
            lambda: _core.sampled_sums(np.array([3, 99], np.uint8), np.array([9, 0], np.uint8), 9, 9),
            ValueError,
            "indices: element 1",
        ),
        (
            lambda: _core.sampled_sums(np.array([3, 8], np.uint8), np.array([0, 99], np.uint8), 9, 9),
            ValueError,
            "codes: element 1",
        ),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(call, error, text):
    with pytest.raises(error, match=text) as refused:
        call()
    assert "99" not in str(refused.value)


@pytest.fixture
def nobody_interrupts():
    """Let a thread that has the interpreter keep it until it gives it up by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(30.0)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("nobody_interrupts")
def test_another_thread_runs_meanwhile():
    reports = np.zeros((100_000, 100), np.uint8)
    go, ran = threading.Event(), []
    other = threading.Thread(target=lambda: ran.append(go.wait()))
    other.start()
    go.set()
    deadline = time.monotonic() + 60  # on a busy machine the other waits for a core, too
    while time.monotonic() < deadline:
        _core.count_ones(reports, 100, threads=1)
        if ran:
            break
    assert ran
    other.join()
