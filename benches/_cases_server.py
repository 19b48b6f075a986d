"""What is timed of the server's side: estimates from every form of reports; encode, decode, pack alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bitldp
import numpy as np
from _cases import SAMPLES, SEED, Array, Case
from _measure import require

RECORDS, FEATURES = 10_000, 768
CATEGORIES, ANSWERS = 128, 65_536


def cases() -> list[Case]:
    """Return the cases of the server, with reports drawn beforehand."""
    rng = np.random.default_rng(SEED + 4)
    x = rng.normal(0.0, 2.0, (RECORDS, FEATURES)).astype(np.float32)
    words = bitldp.FRR(features=FEATURES, bits=10, integer_bits=5, epsilon=float(FEATURES))
    table = words.unbias(np.arange(1 << 10, dtype=np.uint16)[:, None].repeat(FEATURES, axis=1))[:, 0]
    category = rng.integers(0, CATEGORIES, ANSWERS).astype(np.uint8)
    number = rng.uniform(-1.0, 1.0, SAMPLES).astype(np.float32)
    oue, grr = bitldp.OUE(CATEGORIES, epsilon=1.0), bitldp.GRR(CATEGORIES, epsilon=1.0)
    found = [_estimate("FRR", words, x, form, lambda codes: _moments(table[codes])) for form in ("codes",)]
    found += [
        _estimate("FRR", words, x, form, lambda given, form=form: _of_bits(words, table, given, form))
        for form in ("bits", "packed")
    ]
    found.append(_estimate("OUE", oue, category, "bits", lambda bits: bits.sum(axis=0, dtype=np.int64)))
    found.append(_estimate("OUE", oue, category, "packed", _unpacked_sums))
    found.append(
        _estimate("GRR", grr, category, "codes", lambda codes: np.bincount(codes, minlength=CATEGORIES))
    )
    for mechanism in (bitldp.Duchi(2.0), bitldp.Piecewise(2.0), bitldp.MVU(1.0)):
        found.append(_numbers(mechanism, number))
    return [*found, *_alone(words, x)]


def _numbers(mechanism: Any, x: Array) -> Case:
    letters = mechanism.letters
    name = type(mechanism).__name__
    return _estimate(name, mechanism, x, "codes", lambda codes: _moments(letters[codes][:, None]))


def _moments(letters: Array) -> tuple[Array, Array]:
    """Return mean and standard error as a good NumPy does: letters looked up, then two passes."""
    return letters.mean(axis=0), letters.std(axis=0, ddof=1) / np.sqrt(len(letters))


def _of_bits(words: Any, table: Array, reports: Array, form: str) -> tuple[Array, Array]:
    flat = reports if form == "bits" else np.unpackbits(reports, count=RECORDS * FEATURES * 10)
    codes = flat.reshape(RECORDS, FEATURES, 10) @ (1 << np.arange(9, -1, -1, dtype=np.uint16))
    return _moments(table[codes])


def _unpacked_sums(reports: Array) -> Array:
    bits = np.unpackbits(reports, count=ANSWERS * CATEGORIES).reshape(ANSWERS, CATEGORIES)
    return bits.sum(axis=0, dtype=np.int64)


def _estimate(name: str, mechanism: Any, x: Array, form: str, reference: Callable[[Array], Any]) -> Case:
    """Return the case of an estimate from one batch of reports."""
    reports = mechanism.randomize(x, output=form)
    records = len(x) if form == "packed" else None

    def ours(threads: int) -> Any:
        accumulator = mechanism.accumulator()
        accumulator.update(reports, output=form, records=records, threads=threads)
        return accumulator.estimate()

    def check() -> None:
        value = ours(1).value
        if isinstance(expected := reference(reports), tuple):
            np.testing.assert_allclose(value, expected[0], rtol=1e-9, atol=1e-9)
        else:
            p, q = mechanism._check_speaks()
            np.testing.assert_allclose(value, (expected / len(x) - q) / (p - q), rtol=1e-12)

    size = reports.nbytes
    return Case(f"{name}, estimate from {form}", ours, lambda: reference(reports), None, check, 0, size, 0)


def _alone(words: Any, x: Array) -> list[Case]:
    """Return encode, decode and pack by themselves."""
    codec = words.codec
    codes = codec.encode(x)
    out, values, packed = np.ones_like(codes), np.ones_like(x), bitldp.pack(codes, 10)

    def plain() -> Array:
        magnitude = np.minimum(np.abs(x) * np.float32(16.0), np.float32(511.0)).astype(np.uint16)
        return magnitude | (x >= 0).astype(np.uint16) << np.uint16(9)

    def same() -> None:
        require(np.array_equal(plain(), codes), "encode: NumPy's code words differ")

    def back() -> Array:
        magnitude = (codes & 511) / np.float32(16.0)
        return np.where(codes >> 9, magnitude, -magnitude)

    def bits() -> Array:
        return np.packbits(codes[..., None] >> np.arange(9, -1, -1, dtype=np.uint16) & 1)

    size = (x.nbytes, codes.nbytes)
    return [
        Case(
            "encode, float32",
            lambda n: codec.encode(x, out=out, threads=n),
            plain,
            None,
            same,
            0,
            *size,
            goal=10,
        ),
        Case(
            "decode, to float32",
            lambda n: codec.decode(codes, np.float32, out=values, threads=n),
            back,
            None,
            lambda: require(np.array_equal(back(), codec.decode(codes)), "decode: NumPy's numbers differ"),
            0,
            *size[::-1],
        ),
        Case(
            "pack, 10 bits",
            lambda n: bitldp.pack(codes, 10, threads=n),
            bits,
            None,
            lambda: require(np.array_equal(bits(), packed), "pack: NumPy's bytes differ"),
            0,
            codes.nbytes,
            packed.nbytes,
        ),
    ]
