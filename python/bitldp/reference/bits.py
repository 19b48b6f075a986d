"""Fixed-point code words and independent bits, in NumPy.

Bits are counted as everywhere in the package: position 0 is the sign, the most significant of the l bits.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Sign = Literal["bitrand", "ldpfl"]

_FLOAT32_BITS = 24  # integers up to 2**24 are exact in float32


def encode(x: NDArray[Any], bits: int, integer_bits: int, *, sign: Sign = "bitrand") -> NDArray[Any]:
    """Encode real numbers as sign, integer and fraction bits.

    Parameters
    ----------
    x : ndarray of float32 or float64
        Values, any shape. Infinities saturate.
    bits : int
        Bits l of a code word, 2 to 32.
    integer_bits : int
        Integer bits m, 0 to l - 1.
    sign : {"bitrand", "ldpfl"}
        Sign bit 1 where x >= 0, or 0 there.

    Returns
    -------
    ndarray of unsigned int
        Code words in the smallest dtype, same shape. The magnitude is
        ``min(floor(|x| 2^(l-1-m)), 2^(l-1) - 1)``.

    Raises
    ------
    ValueError
        If a value is NaN.
    """
    if np.isnan(x).any():
        raise ValueError("x: has a NaN, which has no code")
    magnitude = np.abs(x if bits <= _FLOAT32_BITS else x.astype(np.float64))
    with np.errstate(over="ignore"):
        magnitude *= magnitude.dtype.type(2.0 ** (bits - 1 - integer_bits))
    np.minimum(magnitude, magnitude.dtype.type((1 << bits - 1) - 1), out=magnitude)
    codes: NDArray[Any] = magnitude.astype(_code_dtype(bits))
    positive = x >= 0 if sign == "bitrand" else x < 0
    codes |= positive.astype(codes.dtype) << (bits - 1)
    return codes


def decode(
    codes: NDArray[Any],
    bits: int,
    integer_bits: int,
    *,
    sign: Sign = "bitrand",
    dtype: DTypeLike = np.float32,
) -> NDArray[Any]:
    """Decode code words into the numbers that they spell.

    Parameters
    ----------
    codes : ndarray of unsigned int
        Code words, any shape.
    bits, integer_bits, sign
        As for `encode`.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    ndarray of `dtype`
        Values, same shape; "-0" keeps its sign.
    """
    magnitude = (codes & ((1 << bits - 1) - 1)).astype(dtype)
    magnitude *= magnitude.dtype.type(2.0 ** (integer_bits + 1 - bits))
    top = codes >> (bits - 1)
    values: NDArray[Any] = np.where(top if sign == "bitrand" else top == 0, magnitude, -magnitude)
    return values


def bits_of(codes: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Spell code words out as bytes of 0 and 1.

    Parameters
    ----------
    codes : ndarray of unsigned int, shape (..., features)
        Code words.
    bits : int
        Bits l of each.

    Returns
    -------
    ndarray of uint8, shape (..., features * bits)
        The bits of the record, most significant first.
    """
    shifts = np.arange(bits - 1, -1, -1, dtype=codes.dtype)
    planes = ((codes[..., None] >> shifts) & 1).astype(np.uint8)
    strings: NDArray[np.uint8] = planes.reshape(*codes.shape[:-1], -1)
    return strings


def codes_of(planes: NDArray[np.uint8], bits: int) -> NDArray[Any]:
    """Collect bytes of 0 and 1 into code words: the inverse of `bits_of`.

    Parameters
    ----------
    planes : ndarray of uint8, shape (..., features * bits)
        The bits of each record, most significant first.
    bits : int
        Bits l of a code word.

    Returns
    -------
    ndarray of unsigned int, shape (..., features)
        Code words in the smallest dtype.
    """
    dtype = _code_dtype(bits)
    words = planes.reshape(*planes.shape[:-1], -1, bits).astype(dtype)
    shifts = np.arange(bits - 1, -1, -1, dtype=dtype)
    codes: NDArray[Any] = np.bitwise_or.reduce(words << shifts, axis=-1)
    return codes


def flip_bits(codes: NDArray[Any], flip: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    """Flip every bit with the probability of its position: the symmetric channel.

    One pass of float32 uniforms for each bit plane, XORed into the code words.

    Parameters
    ----------
    codes : ndarray of unsigned int, shape (..., features)
        Code words of l bits.
    flip : array_like, shape (l,) or (features, l)
        Probability that a position is reported wrongly; the last axis starts at the most significant bit.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray
        Reports, shape and dtype of `codes`.
    """
    chances = np.asarray(flip, dtype=np.float32)
    reports: NDArray[Any] = codes.copy()
    for shift, chance in enumerate(np.moveaxis(chances, -1, 0)[::-1]):
        flipped = rng.random(codes.shape, dtype=np.float32) < chance
        reports ^= flipped.astype(codes.dtype) << shift
    return reports


def randomize_bits(codes: NDArray[Any], p: ArrayLike, q: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    """Report every bit as 1 with the probability of its position and value: any channel of independent bits.

    Parameters
    ----------
    codes, rng
        As of `flip_bits`.
    p, q : array_like, shape (l,) or (features, l)
        P(report 1 | bit 1) and P(report 1 | bit 0); the last axis starts at the most significant bit.

    Returns
    -------
    ndarray
        Reports, shape and dtype of `codes`.

    Notes
    -----
    A bit is either 1 or 0, so one uniform serves both of its thresholds.
    """
    ones = np.moveaxis(np.asarray(p, dtype=np.float32), -1, 0)[::-1]
    zeros = np.moveaxis(np.asarray(q, dtype=np.float32), -1, 0)[::-1]
    kept = np.zeros_like(codes)
    made = np.zeros_like(codes)
    for shift, (p_i, q_i) in enumerate(zip(ones, zeros, strict=True)):
        uniform = rng.random(codes.shape, dtype=np.float32)
        kept |= (uniform < p_i).astype(codes.dtype) << shift
        made |= (uniform < q_i).astype(codes.dtype) << shift
    reports: NDArray[Any] = (codes & kept) | (~codes & made)
    return reports


def unary(
    x: NDArray[Any], categories: int, p: float, q: float, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Randomize one-hot strings: a 1 stays with probability p, a 0 becomes 1 with probability q.

    Parameters
    ----------
    x : ndarray of int, shape (n,)
        Categories, 0 to `categories` - 1.
    categories : int
        Length k of the strings.
    p, q : float
        P(report 1) at the position of the category, and at every other one.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of uint8, shape (n, categories)
        Bytes of 0 and 1.
    """
    ones = rng.random((len(x), categories), dtype=np.float32) < np.float32(q)
    reports: NDArray[np.uint8] = ones.view(np.uint8)
    reports[np.arange(len(x)), x] = rng.random(len(x), dtype=np.float32) < np.float32(p)
    return reports


def _code_dtype(bits: int) -> np.dtype[Any]:
    """Return the smallest unsigned dtype of `bits` bits."""
    return np.min_scalar_type((1 << bits) - 1)
