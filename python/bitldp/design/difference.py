"""Difference sets: cells of a circle of which any two translates share equally many.

Singer's come from the hyperplanes of a projective space over a finite field. Field arithmetic is that of
polynomials over a prime field: a primitive polynomial gives a linear recurrence, and the zeros of its
sequences are the set.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from bitldp.base.arrays import readonly

__all__ = ["is_prime", "powers", "primitive", "singer", "singer_shape"]

_FIRST = 256  # terms of a sequence that are made one by one
Terms = NDArray[np.int64]


def is_prime(n: int) -> bool:
    """Return whether an integer is prime, by trial division."""
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def powers(below: int) -> list[tuple[int, int, int]]:
    """Return the prime powers below a number, ascending: (q, p, e) with q = p**e."""
    result = []
    for p in range(2, below):
        if is_prime(p):
            for e in count(1):
                if p**e >= below:
                    break
                result.append((p**e, p, e))
    return sorted(result)


def singer_shape(q: int, dimension: int) -> tuple[int, int, int]:
    """Return (v, b, lambda) of the hyperplanes of the projective space of a dimension over GF(q).

    v = (q^(d+1) - 1)/(q - 1) cells, b = (q^d - 1)/(q - 1) of them in a block, and as many of the next lower
    dimension in the overlap of any two.
    """
    v, b, overlap = ((q**power - 1) // (q - 1) for power in (dimension + 1, dimension, dimension - 1))
    return v, b, overlap


@lru_cache(maxsize=8)
def singer(p: int, e: int, dimension: int) -> NDArray[np.uint32]:
    """Return Singer's difference set over GF(p**e): ascending, shape (b,), read-only.

    Parameters
    ----------
    p, e : int
        A prime, and a power of it: q = p**e.
    dimension : int
        d, 2 or more: of the projective space.

    Returns
    -------
    ndarray of uint32
        Cells below v; see `singer_shape`.

    Notes
    -----
    With alpha primitive in GF(q^(d+1)), powers of alpha are points of the space, alpha^i and alpha^(i + v)
    the same one. A hyperplane is where a linear form L over GF(q) is 0. For a form l over GF(p), the points
    where l(alpha^(i + v j)) = 0 for j = 0 .. e - 1 are one: alpha^(v j) is a basis of GF(q) over GF(p).
    Source: Singer, "A theorem in finite projective geometry and some applications to number theory", Trans.
    AMS 43 (1938).
    """
    n = e * (dimension + 1)
    v, b, _ = singer_shape(p**e, dimension)
    field = _Field(p, primitive(p, n))
    inside = np.ones(v, np.bool_)
    for j in range(e):
        inside &= field.sequence(field.power(v * j), v) == 0
    result = np.flatnonzero(inside).astype(np.uint32)
    if len(result) != b:
        raise ArithmeticError(f"a hyperplane of {b} points was expected, and {len(result)} were found")
    return readonly(result)


@lru_cache(maxsize=64)
def primitive(p: int, n: int) -> tuple[int, ...]:
    """Return the c of the first polynomial x^n - c[n-1] x^(n-1) - ... - c[0] that is primitive over GF(p).

    A root of it has the order p^n - 1, which no root of a reducible polynomial has.
    """
    order = p**n - 1
    divisors = [order // prime for prime in _primes(order)]
    units = {c for c in range(1, p) if all(pow(c, (p - 1) // prime, p) != 1 for prime in _primes(p - 1))}
    for number in count(1):
        c = tuple(number // p**i % p for i in range(n))
        # The product of the roots, (-1)^(n+1) c[0], generates the units of GF(p).
        if (c[0] if n % 2 else -c[0] % p) not in units:
            continue
        field = _Field(p, c)
        if field.is_one(field.power(order)) and not any(field.is_one(field.power(d)) for d in divisors):
            return c
    raise AssertionError("there is one of every degree")


def _primes(n: int) -> Iterator[int]:
    """Yield the prime divisors of an integer."""
    d = 2
    while d * d <= n:
        if n % d == 0:
            yield d
            while n % d == 0:
                n //= d
        d += 1
    if n > 1:
        yield n


class _Field:
    """Polynomials over GF(p) modulo x^n - c[n-1] x^(n-1) - ... - c[0], as arrays of n coefficients."""

    def __init__(self, p: int, c: tuple[int, ...]) -> None:
        self._p, self._c, self._n = p, np.array(c, np.int64), len(c)
        rows = [self._c]  # x^n, x^(n+1), ...
        for _ in range(self._n - 2):
            last = rows[-1]
            rows.append((np.concatenate([[0], last[:-1]]) + last[-1] * self._c) % p)
        self._rest = np.array(rows)

    def _times(self, one: Terms, other: Terms) -> Terms:
        product = np.convolve(one, other) % self._p
        reduced: Terms = (product[: self._n] + product[self._n :] @ self._rest[: self._n - 1]) % self._p
        return reduced

    def power(self, exponent: int) -> Terms:
        """Return x to a power."""
        result, square = np.zeros(self._n, np.int64), np.zeros(self._n, np.int64)
        result[0] = square[1 % self._n] = 1
        if self._n == 1:
            square = self._c.copy()
        while exponent:
            if exponent & 1:
                result = self._times(result, square)
            square = self._times(square, square)
            exponent >>= 1
        return result

    @staticmethod
    def is_one(element: Terms) -> bool:
        """Return whether an element is 1."""
        return bool(element[0] == 1 and not element[1:].any())

    def sequence(self, start: Terms, length: int) -> Terms:
        """Return the coefficient of 1 of start, start x, start x^2, ...: a sequence of the recurrence c.

        From its first L terms follow nearly as many more: x^L is a sum of r[j] x^j, so the term i + L is the
        sum of r[j] times the term i + j.
        """
        first, element = [], start
        x = self.power(1)
        for _ in range(min(length, _FIRST)):
            first.append(int(element[0]))
            element = self._times(element, x)
        terms = np.array(first, np.int64)
        while len(terms) < length:
            known = len(terms)
            more = min(known - self._n + 1, length - known)
            following = np.zeros(more, np.int64)
            for j, r in enumerate(self.power(known).tolist()):
                if r:
                    following += r * terms[j : j + more]
            terms = np.concatenate([terms, following % self._p])
        return terms
