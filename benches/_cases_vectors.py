"""What is timed of vectors of a ball: rotated and selected by a client, undone and summed by a server."""

from __future__ import annotations

import math
from typing import Any

import bitldp
import numpy as np
from _cases import FEATURES, SEED, Array, Case
from _checks import SIGMAS
from _measure import require

RECORDS = 1_000
EPSILON = 8.0
_SIGNS = 1024  # bytes of keystream that a rotation takes, at the least
_PASSES = 3


def cases() -> list[Case]:
    """Return the cases of rotated vectors, with inputs and outputs allocated and touched."""
    rng = np.random.default_rng(SEED + 7)
    mechanism = bitldp.CrossPolytope(FEATURES, epsilon=EPSILON)
    x = rng.normal(size=(RECORDS, FEATURES)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return [_client(mechanism, x, rng), _server(mechanism, x, rng)]


def _hadamard(x: Array) -> Array:
    """Transform rows, normalised: a matrix product of two halves, which NumPy does fastest."""
    half = 1 << (x.shape[1].bit_length() - 1) // 2
    other = x.shape[1] // half
    cube = x.reshape(len(x), other, half)
    done: Array = np.matmul(np.matmul(_matrix(other), cube), _matrix(half)).reshape(x.shape)
    return done


def _matrix(size: int) -> Array:
    parity = np.bitwise_and.outer(np.arange(size), np.arange(size))
    odd = np.array([bin(each).count("1") & 1 for each in parity.ravel()]).reshape(size, size)
    return ((1.0 - 2.0 * odd) / math.sqrt(size)).astype(np.float32)


class _Plain:
    """The same law in NumPy: signs and selections of its own generator."""

    def __init__(self, mechanism: bitldp.CrossPolytope, rng: np.random.Generator) -> None:
        self.dimensions = mechanism.codec.dimensions
        self.k, self.rng = mechanism.k, rng
        law = mechanism.probabilities()
        self.share = float(law[-self.k :].sum())
        self.scale = float(mechanism.letters[1])
        self.signs: Array = np.zeros(0)

    def randomize(self, x: Array) -> tuple[Array, Array]:
        """Return places and signs; the rotations are kept for the server."""
        n, wide = len(x), self.dimensions
        y = np.zeros((n, wide), np.float32)
        y[:, : x.shape[1]] = x
        y[:, x.shape[1]] = np.sqrt(np.maximum(0.0, 1.0 - np.square(x).sum(axis=1)))
        bits = np.frombuffer(self.rng.bytes(_PASSES * n * wide // 8), np.uint8)
        self.signs = np.unpackbits(bits).reshape(_PASSES, n, wide) * np.float32(-2.0) + np.float32(1.0)
        for signs in self.signs:
            y = _hadamard(y * signs)
        order = np.argpartition(np.abs(y), wide - self.k, axis=1)[:, wide - self.k :]
        rows, inside = np.arange(n), self.rng.random(n) < self.share
        place = np.where(inside, order[rows, self.rng.integers(0, self.k, n)], 0)
        sign = np.sign(y[rows, place])
        # one of the 2 D - k others: drawn until it is none of the k
        left = np.flatnonzero(~inside)
        while len(left):
            drawn = self.rng.integers(0, wide, len(left))
            signed = self.rng.choice(np.array([-1.0, 1.0], np.float32), len(left))
            place[left], sign[left] = drawn, signed
            taken = (order[left] == drawn[:, None]).any(axis=1) & (signed == np.sign(y[left, drawn]))
            left = left[taken]
        return place, sign

    def sums(self, place: Array, sign: Array, features: int) -> Array:
        """Return the sum of what the last reports are worth, and of the squares."""
        z = np.zeros((len(place), self.dimensions), np.float32)
        z[np.arange(len(place)), place] = sign * self.scale
        for signs in self.signs[::-1]:
            z = _hadamard(z) * signs
        z = z[:, :features]
        return np.stack([z.sum(axis=0, dtype=np.float64), np.square(z).sum(axis=0, dtype=np.float64)])


def _check(mechanism: bitldp.CrossPolytope, x: Array, plain: _Plain) -> None:
    """Check the mean along one record and the sum of squares, ours and the reference's, and the threads."""
    same = np.repeat(x[:1], len(x), axis=0)
    whole = mechanism.randomize(same, rng=1, threads=1)
    again = mechanism.randomize(same, rng=1, threads=2)
    alike = all(np.array_equal(one, other) for one, other in zip(whole, again, strict=True))
    require(alike, "the reports depend on the number of threads")
    sums = {
        "ours": np.stack(_sums(mechanism, whole, 2)),
        "reference": plain.sums(*plain.randomize(same), x.shape[1]),
    }
    require(np.array_equal(np.stack(_sums(mechanism, whole, 1)), sums["ours"]), "the sums depend on threads")
    said = mechanism.total_variance()
    for name, (total, squares) in sums.items():
        along = float(total @ x[0]) / len(x) - 1.0
        # the length of a letter, in whichever direction, is R/m
        require(
            abs(along) < SIGMAS * math.sqrt(plain.scale**2 / plain.dimensions * 16.0 / len(x)),
            f"{name}: biased along the record",
        )
        near = abs(float(squares.sum()) / len(x) / (said + 1.0) - 1.0)
        require(near < SIGMAS * 0.1 / math.sqrt(len(x)), f"{name}: another variance")


def _sums(mechanism: bitldp.CrossPolytope, reports: Any, threads: int) -> list[Array]:
    codes = reports.codes.astype(np.uint32)
    return mechanism.codec.sums(reports.rotations, codes, float(mechanism.letters[1]), threads)


def _client(mechanism: bitldp.CrossPolytope, x: Array, rng: np.random.Generator) -> Case:
    """Return rotation and selection, against matrix products and a partition."""
    plain = _Plain(mechanism, rng)
    return Case(
        "CrossPolytope, d = 768, float32",
        ours=lambda threads: mechanism.randomize(x, threads=threads),
        reference=lambda: plain.randomize(x),
        tuned=None,
        check=lambda: _check(mechanism, x, plain),
        keystream=(_SIGNS + 16 + 4) * RECORDS,
        read=x.nbytes,
        written=6 * RECORDS,
    )


def _server(mechanism: bitldp.CrossPolytope, x: Array, rng: np.random.Generator) -> Case:
    """Return rotation back and sum, against matrix products."""
    plain = _Plain(mechanism, rng)
    drawn, reports = plain.randomize(x), mechanism.randomize(x)
    return Case(
        "CrossPolytope, d = 768, decode and sum",
        ours=lambda threads: _sums(mechanism, reports, threads),
        reference=lambda: plain.sums(*drawn, FEATURES),
        tuned=None,
        check=lambda: _check(mechanism, x, plain),
        keystream=_SIGNS * RECORDS,
        read=6 * RECORDS,
        written=16 * FEATURES,
    )
