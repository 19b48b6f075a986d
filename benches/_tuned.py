"""The fastest plain NumPy that we know of for the same laws: what is left of the ratios against it.

`bitldp.reference` goes through whole arrays, for windows and tables in 64-bit integers. Here the rows
are taken in blocks that stay in the second-level cache, buffers are reused, dtypes are the narrowest,
and windows start where a table says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bitldp import reference
from numpy.typing import NDArray

_ROWS = 64  # of 768 features: 200 KB of uniforms


def codes(
    x: NDArray[np.float32],
    integer_bits: int,
    flip: NDArray[np.float64],
    rng: np.random.Generator,
    out: NDArray[np.uint16],
) -> NDArray[np.uint16]:
    """Encode and flip, a block of records at a time."""
    chances = flip.astype(np.float32)[::-1]
    uniform = np.empty((_ROWS, x.shape[1]), np.float32)
    flipped = np.empty(uniform.shape, np.bool_)
    mask = np.empty(uniform.shape, np.uint16)
    for start in range(0, len(x), _ROWS):
        block = out[start : start + _ROWS]
        count = len(block)
        block[...] = reference.encode(x[start : start + _ROWS], len(flip), integer_bits)
        for shift, chance in enumerate(chances):
            rng.random(out=uniform[:count], dtype=np.float32)
            np.less(uniform[:count], chance, out=flipped[:count])
            np.multiply(flipped[:count], np.uint16(1 << shift), out=mask[:count])
            block ^= mask[:count]
    return out


def values(
    x: NDArray[np.float32],
    integer_bits: int,
    flip: NDArray[np.float64],
    rng: np.random.Generator,
    out: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Encode, flip and decode, a block of records at a time."""
    words = np.empty((_ROWS, x.shape[1]), np.uint16)
    for start in range(0, len(x), _ROWS):
        part = x[start : start + _ROWS]
        reports = codes(part, integer_bits, flip, rng, words[: len(part)])
        out[start : start + _ROWS] = reference.decode(reports, len(flip), integer_bits)
    return out


def planes(
    x: NDArray[np.float32],
    integer_bits: int,
    flip: NDArray[np.float64],
    rng: np.random.Generator,
    out: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """Encode, flip and spell out as bytes, a block of records at a time."""
    bits = len(flip)
    words = np.empty((_ROWS, x.shape[1]), np.uint16)
    for start in range(0, len(x), _ROWS):
        part = x[start : start + _ROWS]
        reports = codes(part, integer_bits, flip, rng, words[: len(part)])
        spelt = np.unpackbits(reports.astype(">u2").view(np.uint8)).reshape(*reports.shape, 16)
        out[start : start + _ROWS].reshape(*reports.shape, bits)[...] = spelt[..., 16 - bits :]
    return out


def grr(x: NDArray[Any], categories: int, p: float, rng: np.random.Generator) -> NDArray[Any]:
    """GRR with a float32 coin."""
    truthful = rng.random(x.shape, dtype=np.float32) < np.float32(p)
    other = rng.integers(0, categories - 1, x.shape, dtype=x.dtype)
    other += other >= x
    return np.where(truthful, x, other)


def window(
    x: NDArray[np.uint16],
    starts: NDArray[np.uint16],
    width: int,
    high: float,
    rng: np.random.Generator,
) -> NDArray[np.uint16]:
    """BRR in 16 bits, with a float32 coin and the start of each cell's window in a table."""
    start = starts[x]
    inside = rng.random(x.shape, dtype=np.float32) < np.float32(high)
    near = rng.integers(0, width, x.shape, dtype=np.uint16)
    near += start
    far = rng.integers(0, len(starts) - width, x.shape, dtype=np.uint16)
    far += (far >= start) * np.uint16(width)
    return np.where(inside, near, far)


def dithered_matrix(
    x: NDArray[np.float32],
    threshold: NDArray[np.float32],
    alias: NDArray[np.uint8],
    rng: np.random.Generator,
) -> NDArray[np.uint8]:
    """Dither values of [0, 1] by adding a uniform before truncation, then one alias draw in float32."""
    rows, columns = threshold.shape
    position = x * np.float32(rows - 1)
    position += rng.random(x.shape, dtype=np.float32)
    cell = np.minimum(position.astype(np.intp), rows - 1)  # the sum can round up to the next integer
    cell *= columns
    column = rng.integers(0, columns, x.shape, dtype=alias.dtype)
    cell += column
    keep = rng.random(x.shape, dtype=np.float32) < threshold.ravel().take(cell)
    return np.where(keep, column, alias.ravel().take(cell))
