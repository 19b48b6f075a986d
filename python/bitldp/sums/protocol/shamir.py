"""Shamir's secret sharing of 32 bytes: any `threshold` shares give the secret back, fewer say nothing of it.

The polynomial is over the integers modulo the least prime above 2**256, so that a share is one number. Fields
of 128 bits need two polynomials a secret, and those libraries of Python that offer them multiply bit by bit:
100 clients would spend a minute on nothing else (`benches/sums_protocol.py` measures both).

Source: Shamir, "How to share a secret", Communications of the ACM 22 (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

__all__ = ["PRIME", "SHARE_BYTES", "Entropy", "join", "split"]

Entropy = Callable[[int], bytes]
"""Function from a number of bytes to that many secret ones: `os.urandom`, but in tests."""

PRIME = (1 << 256) + 297
SHARE_BYTES = 33
_SECRET_BYTES = 32


def split(secret: bytes, points: Sequence[int], threshold: int, entropy: Entropy) -> list[bytes]:
    """Return one share of a secret for each point.

    Parameters
    ----------
    secret : bytes
        32 bytes.
    points : sequence of int
        Where the polynomial is evaluated: different integers from 1 on.
    threshold : int
        Shares that give the secret back, 1 to the number of points.
    entropy : callable
        Source of the coefficients.

    Returns
    -------
    list of bytes
        33 bytes each.

    Raises
    ------
    ValueError
        For points that are not different or not above zero, or fewer than the threshold.
    """
    if len(secret) != _SECRET_BYTES:
        raise ValueError(f"secret: must be {_SECRET_BYTES} bytes")
    if len(set(points)) != len(points) or not all(0 < point < PRIME for point in points):
        raise ValueError("points: must be different and above zero")
    if not 1 <= threshold <= len(points):
        raise ValueError(f"threshold: must be between 1 and {len(points)}, the number of points")
    coefficients = [_element(entropy) for _ in range(threshold - 1)]
    constant = int.from_bytes(secret, "big")
    shares = []
    for point in points:
        value = 0
        for coefficient in coefficients:  # Horner
            value = (value + coefficient) * point % PRIME
        shares.append(((value + constant) % PRIME).to_bytes(SHARE_BYTES, "big"))
    return shares


def join(shares: Mapping[int, bytes]) -> bytes:
    """Return the secret of exactly as many shares as its threshold, by their points.

    Raises
    ------
    ValueError
        For what is no share, and for shares that do not belong together where that shows.
    """
    points = tuple(sorted(shares))
    numbers = [int.from_bytes(shares[point], "big") for point in points]
    if any(len(share) != SHARE_BYTES for share in shares.values()) or any(each >= PRIME for each in numbers):
        raise ValueError("shares: not of this field")
    secret = sum(map(int.__mul__, _weights(points), numbers)) % PRIME
    if secret >> (8 * _SECRET_BYTES):
        raise ValueError("shares: they do not belong together")
    return secret.to_bytes(_SECRET_BYTES, "big")


@lru_cache(maxsize=256)
def _weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Return the weights by which shares at some points add up to the value at zero (Lagrange)."""
    weights = []
    for point in points:
        above = below = 1
        for other in points:
            if other != point:
                above = above * other % PRIME
                below = below * (other - point) % PRIME
        weights.append(above * pow(below, -1, PRIME) % PRIME)
    return tuple(weights)


def _element(entropy: Entropy) -> int:
    """Return an integer below the prime, each as likely as the others."""
    while True:
        number = int.from_bytes(entropy(SHARE_BYTES), "big") & ((1 << 257) - 1)
        if number < PRIME:
            return number
