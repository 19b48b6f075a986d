"""What is timed of the server's side: estimates from every form of reports; encode, decode, pack alone.

Estimating may take as long as randomizing the same batch did, with the output given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bitldp
import numpy as np
from _cases import SAMPLES, SEED, Array, Beside, Case
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
        _estimate(
            "GRR",
            grr,
            np.resize(category, SAMPLES),
            "codes",
            lambda codes: np.bincount(codes, minlength=CATEGORIES),
        )
    )
    for mechanism in (bitldp.Duchi(epsilon=2.0), bitldp.Piecewise(epsilon=2.0), bitldp.MVU(epsilon=1.0)):
        found.append(_numbers(mechanism, number))
    return [*found, *_others(rng), *_alone(words, x)]


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

    return _of(name, mechanism, x, form, reports, ours, lambda: reference(reports), check)


def _of(
    name: str,
    mechanism: Any,
    x: Array,
    form: str,
    reports: Any,
    ours: Callable[[int], object],
    reference: Callable[[], object] | None,
    check: Callable[[], None],
) -> Case:
    pair = isinstance(reports, tuple)
    out = None if pair else np.ones_like(reports)
    return Case(
        f"{name}, estimate from {form}",
        ours,
        reference,
        None,
        check,
        keystream=0,
        read=sum(part.nbytes for part in reports) if pair else reports.nbytes,
        written=0,
        beside=Beside("randomizing", lambda: mechanism.randomize(x, output=form, out=out, threads=1), 1.0),
    )


def _others(rng: np.random.Generator) -> list[Case]:
    """Return an estimate of every other kind of report, beside randomizing only."""
    records = rng.uniform(-1.0, 1.0, (4_000, 64)).astype(np.float32)
    signs = rng.uniform(-1.0, 1.0, (2_000, 768)).astype(np.float32)
    numbers = rng.uniform(-1.0, 1.0, 1 << 18).astype(np.float32)
    numeric = bitldp.numeric
    mechanisms: list[tuple[str, Any, Array]] = [
        ("Warner", bitldp.WarnerRR(epsilon=1.0), rng.integers(0, 2, 1 << 18, dtype=np.uint8)),
        ("Hybrid", numeric.Hybrid(epsilon=2.0), numbers),
        ("ThreeOutputs", numeric.ThreeOutputs(epsilon=2.0), numbers),
        ("Laplace", numeric.Laplace(epsilon=1.0), numbers),
        ("Gaussian", numeric.Gaussian(epsilon=1.0, delta=1e-6), numbers),
        ("Duchi, sampled", bitldp.Duchi(epsilon=2.0, features=64, spend="sample", k=4), records),
        ("Duchi, cube", bitldp.Duchi(epsilon=2.0, features=64, spend="cube"), records),
        ("MOUE", bitldp.MOUE(768, epsilon=768.0, alpha=2.0), signs),
        ("HypercubePrivUnit", bitldp.HypercubePrivUnit(768, epsilon=8.0), signs),
        ("SampledSigns", bitldp.SampledSigns(768, epsilon=8.0), signs),
    ]
    return [
        _beside(name, one, x, form) for name, one, x in mechanisms for form in one.outputs if form != "values"
    ]


def _beside(name: str, mechanism: Any, x: Array, form: str) -> Case:
    reports = mechanism.randomize(x, output=form)
    records = len(x) if form == "packed" else None

    def ours(threads: int) -> Any:
        accumulator = mechanism.accumulator()
        accumulator.update(reports, output=form, records=records, threads=threads)
        return accumulator.estimate()

    def check() -> None:
        codes = mechanism.randomize(x, rng=SEED)
        usual = mechanism.accumulator()
        usual.update(codes)
        other = mechanism.accumulator()
        other.update(mechanism.randomize(x, rng=SEED, output=form), output=form, records=records, threads=2)
        same = np.array_equal(usual.estimate().value, other.estimate().value)
        require(same, f"{name}: the estimate from {form} is another")

    return _of(name, mechanism, x, form, reports, ours, None, check)


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
