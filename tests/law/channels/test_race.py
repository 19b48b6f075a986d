"""A thread that rewrites the input meanwhile: reports are of the alphabet, or the batch is refused whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bitldp import _core

ROUNDS = 60
N = 1 << 16
KEY = bytes(32)


def _bits() -> tuple[Callable[..., Any], list[np.ndarray], int]:
    channel, codec = _core.Bits([[0.7] * 5], [[0.2] * 5], 4), _core.FixedPoint(5, integer_bits=2)
    inputs = [np.full((N // 4, 4), value, np.float32) for value in (1.0, np.nan, np.inf, -1e30, 1e-40)]
    return lambda x, out: channel.randomize(x, codec, KEY, "codes", out, 2, 0), inputs, 1 << 5


def _categorical(channel: Any, points: int, reports: int) -> tuple[Callable[..., Any], list[np.ndarray], int]:
    inputs = [np.full(N, value, np.uint16) for value in (0, points - 1, points, 65_535)]
    return lambda x, out: channel.randomize(x, None, None, KEY, "codes", out, 2, 0), inputs, reports


def _on_a_grid(channel: Any, points: int, reports: int) -> tuple[Callable[..., Any], list[np.ndarray], int]:
    grid = _core.Grid(points, low=0.0, high=1.0)
    inputs = [np.full(N, value, np.float32) for value in (0.0, 0.5, np.nan, np.inf, -1e30)]
    return lambda x, out: channel.randomize(x, grid, None, KEY, "codes", out, 2, 0), inputs, reports


def _law(inputs: int, reports: int) -> np.ndarray:
    return np.full((inputs, reports), 1.0 / reports)


CASES = {
    "numbers to bits": _bits,
    "window": lambda: _categorical(_core.Window(11, 3, 0.6), 11, 11),
    "flip on a grid": lambda: _on_a_grid(_core.Window(2, 1, 0.6), 2, 2),
    "window on a grid": lambda: _on_a_grid(_core.Window(300, 30, 0.6), 300, 300),
    "matrix": lambda: _categorical(_core.Matrix(_law(8, 5)), 8, 5),
    "wide matrix": lambda: _categorical(_core.Matrix(_law(70, 90)), 70, 90),
    "matrix on a grid": lambda: _on_a_grid(_core.Matrix(_law(8, 5)), 8, 5),
}


@pytest.mark.parametrize("name", CASES)
def test_no_report_is_outside_the_alphabet(name):
    run, inputs, alphabet = CASES[name]()
    x = inputs[0].copy()
    out = np.empty(x.shape, np.uint16 if alphabet > 256 else np.uint8)
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            for other in inputs:
                np.copyto(x[: len(x) // 2], other[: len(x) // 2])
                np.copyto(x, inputs[0])

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(ROUNDS):
            out.fill(alphabet)
            try:
                run(x, out)
            except ValueError:
                assert (out == 0).all()
            assert (out < alphabet).all()
    finally:
        stop.set()
        writer.join()
    np.copyto(x, inputs[0])
    run(x, out)  # nothing is left broken behind
    assert len(np.unique(out)) > 1


def test_offsets_that_change_are_refused_or_read_as_they_were():
    """Offsets of words beside their bytes, from another thread: no panic, and no byte from elsewhere."""
    words = np.full(100_000, ord("a"), np.uint8)
    right = np.arange(50_001, dtype=np.int64) * 2
    offsets, stop = right.copy(), threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            offsets[20_000:20_050] = 1 << 62
            offsets[20_000:20_050] = right[20_000:20_050]

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(ROUNDS // 4):
            for ask in (
                lambda: _core.csv_rows([(None, offsets, words, False)], ","),
                lambda: _core.text_digests(offsets, words),
            ):
                try:
                    made = ask()
                except ValueError:
                    continue
                assert set(np.unique(made)) <= {ord("a"), ord("\n")} or made.shape == (50_000, 32)
    finally:
        stop.set()
        writer.join()
