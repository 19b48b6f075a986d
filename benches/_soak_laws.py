"""The laws that `soak.py` compares counts with: a row of probabilities for each input.

They come from the integers over 2^64 that the channel compares with, by other means than the channel's.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from bitldp import _core
from numpy.typing import NDArray

ONE = 1 << 64

Law: TypeAlias = NDArray[np.float64]


def inside(blocks: NDArray[np.bool_], others: NDArray[np.bool_], channel: Any) -> Law:
    """Return the law of a report of the input's block, as likely as `high`, or else of the others."""
    high = channel.high / ONE
    share = blocks / blocks.sum(axis=1, keepdims=True)
    rest = others / others.sum(axis=1, keepdims=True)
    law: Law = high * share + (1.0 - high) * rest
    return law


def rows(inputs: int, outputs: int) -> Law:
    table = np.random.default_rng(1).uniform(0.2, 1.0, (inputs, outputs))
    scaled: Law = table / table.sum(axis=1, keepdims=True)
    return scaled


def dithered(law: Law, grid: _core.Grid, numbers: NDArray[np.float32]) -> Law:
    """Return the law of numbers: the two points beside a number, as likely as it is near."""
    step = (grid.high - grid.low) / (grid.points - 1)
    place = (numbers - grid.low) / step
    below = np.minimum(place.astype(int), grid.points - 2)
    share = (place - below)[:, None]
    return law[below] * (1.0 - share) + law[below + 1] * share


def thousands(window: _core.Window, inputs: NDArray[np.uint32]) -> Law:
    """Return the law of the thousands of a report of a window too wide for a table of its law."""
    inside = window.high / ONE
    law = np.full((len(inputs), window.cells), (1.0 - inside) / (window.cells - window.width))
    for row, x in zip(law, inputs.tolist(), strict=True):
        row[(window.start(x) + np.arange(window.width)) % window.cells] = inside / window.width
    return law.reshape(len(inputs), -1, 1000).sum(axis=2)


def spelled(strings: NDArray[Any]) -> NDArray[np.uint16]:
    codes = np.zeros(len(strings), np.uint16)
    for column in strings.T:
        codes = codes << 1 | column.astype(np.uint16)
    return codes


def chances(law: list[tuple[int, int]], word: int) -> list[float]:
    """Return the chance of a 1 at each position of a word, the most significant bit first."""
    places = range(len(law) - 1, -1, -1)
    return [(one if word >> at & 1 else zero) / ONE for (one, zero), at in zip(law, places, strict=True)]


def strings(ones: Law) -> Law:
    """Return the law of whole strings of independent bits, a row for each row of chances."""
    law = np.ones((len(ones), 1))
    for chance in ones.T:
        law = (law[:, :, None] * np.stack([1.0 - chance, chance], axis=1)[:, None, :]).reshape(len(ones), -1)
    return law


def agreements(cube: _core.Cube) -> Law:
    """Return the law of 8 signs for each of 256 records."""
    near, far = cube.sizes()
    high = cube.high / ONE
    strings = np.arange(256)
    agreements = 8 - np.bitwise_count(strings[:, None] ^ strings)
    law: Law = np.where(agreements >= cube.near, high / near, 0.0)
    return law + np.where(agreements <= cube.far, (1.0 - high) / far, 0.0)


def sizes_of(cap: _core.Cap) -> tuple[list[int], list[int]]:
    """Return how many codes each column of a record has, and of a report; subsets are of one element."""
    sets = [size for size, _ in cap.subsets]
    return [each for each, _ in cap.windows] + sets, [each + 2 * reach for each, reach in cap.windows] + sets


def about(cap: _core.Cap) -> Law:
    """Return the law of all reports for each of all records."""
    records, reports = (np.array(list(np.ndindex(*sizes))) for sizes in sizes_of(cap))
    windows = len(cap.windows)
    offsets = (reports - records[:, None])[..., :windows]
    near = np.all((offsets >= 0) & (offsets <= 2 * np.array([reach for _, reach in cap.windows])), axis=2)
    near &= np.sum(reports[:, windows:] == records[:, None, windows:], axis=2) >= cap.hits
    high = cap.high / ONE
    law: Law = near * (high / near.sum(axis=1, keepdims=True)) + (1.0 - high) / len(reports)
    return law
