"""What is timed of the mechanisms of frequencies: block designs, subsets, estimates from reports."""

from __future__ import annotations

import math

import bitldp
import numpy as np
from _cases import SAMPLES, SEED, Array, Case
from _checks import near
from _measure import require

RECORDS = 1 << 14
MANY = 1_000_000


def cases() -> list[Case]:
    """Return the cases of frequencies, with inputs and outputs allocated and touched."""
    rng = np.random.default_rng(SEED + 6)
    small = [_blocks(rng), _blocks(rng, epsilon=4.0), _subsets(rng)]
    return [*small, _large(rng), _hashes(rng), _answers(rng)]


def _blocks(rng: np.random.Generator, epsilon: float = 2.0) -> Case:
    """Return reports of a design of 1024 categories: of a space, or with steps for a large budget."""
    count = 1024
    mechanism = bitldp.BlockDesign(count, epsilon=epsilon)
    v, b = mechanism.blocks.cells, mechanism.blocks.width
    high = mechanism.channel.high / 2.0**64
    x = rng.integers(0, count, SAMPLES, dtype=np.uint16)
    out = np.ones_like(mechanism.randomize(x))
    order = mechanism.channel.order

    def plain() -> Array:
        inside = rng.random(SAMPLES, dtype=np.float32) < high
        ranks = np.where(inside, rng.integers(0, b, SAMPLES), rng.integers(b, v, SAMPLES))
        if order is not None:
            return (order[ranks] + x) % v
        steps = rng.integers(1, (v + 1) // 2, SAMPLES)
        return (steps - 1) * v + (x + steps * ranks) % v

    def check() -> None:
        whole = mechanism.randomize(x, rng=1, threads=1)
        require(np.array_equal(whole, mechanism.randomize(x, rng=1, threads=2)), "depends on the threads")
        for name, reports in (("ours", whole), ("reference", plain())):
            _hits(f"{name}, k = {count}", mechanism, x, reports)

    return Case(
        f"BlockDesign, k = 1024, eps = {epsilon:g}",
        ours=lambda threads: mechanism.randomize(x, out=out, threads=threads),
        reference=plain,
        tuned=None,
        check=check,
        keystream=(4 if order is not None else 8) * SAMPLES,
        read=x.nbytes,
        written=out.nbytes,
    )


def _subsets(rng: np.random.Generator) -> Case:
    """Return subsets of 1024 categories against a partition of random numbers."""
    count = 1024
    mechanism = bitldp.SubsetSelection(count, epsilon=2.0)
    size, (p, _) = mechanism.size, mechanism.probabilities()
    x = rng.integers(0, count, RECORDS, dtype=np.uint16)
    out = np.ones((RECORDS, count), np.uint8)
    rows = np.arange(RECORDS)

    def plain() -> Array:
        keys = rng.random((RECORDS, count), dtype=np.float32)
        keys[rows, x] = np.where(rng.random(RECORDS) < p, -1.0, 2.0)
        bits = np.zeros((RECORDS, count), np.uint8)
        np.put_along_axis(bits, np.argpartition(keys, size - 1, axis=1)[:, :size], 1, axis=1)
        return bits

    def check() -> None:
        whole = mechanism.randomize(x, rng=1, threads=1)
        require(np.array_equal(whole, mechanism.randomize(x, rng=1, threads=2)), "depends on the threads")
        for name, reports in (("ours", whole), ("reference", plain())):
            require(bool((reports.sum(axis=1, dtype=np.int64) == size).all()), f"{name}: another size")
            _hits(f"{name}, subsets", mechanism, x, reports)

    return Case(
        "SubsetSelection, k = 1024, to bits",
        ours=lambda threads: mechanism.randomize(x, out=out, threads=threads),
        reference=plain,
        tuned=None,
        check=check,
        keystream=(4 * size + 8) * RECORDS,
        read=x.nbytes,
        written=out.nbytes,
    )


def _large(rng: np.random.Generator) -> Case:
    """Return the estimate of 65,536 frequencies from a million reports of 17 bits."""
    count = 65_536
    mechanism = bitldp.BlockDesign(count, epsilon=2.0)
    x = (rng.random(MANY) ** 3 * count).astype(np.uint32)
    reports = mechanism.randomize(x)
    order = mechanism.channel.order
    require(order is not None, "a space was expected")
    v, b = mechanism.blocks.cells, mechanism.blocks.width
    inside = np.zeros(v)
    inside[order[:b]] = 1.0  # type: ignore[index]

    def ours(threads: int) -> Array:
        accumulator = mechanism.accumulator()
        accumulator.update(reports, threads=threads)
        return accumulator.estimate().value

    def plain() -> Array:
        counts = np.bincount(reports, minlength=v).astype(np.float64)
        hits = np.fft.irfft(np.fft.rfft(counts) * np.conj(np.fft.rfft(inside)), v)[:count]
        p, q = mechanism.probabilities()
        return (np.rint(hits) / MANY - q) / (p - q)

    def check() -> None:
        np.testing.assert_allclose(ours(1), plain(), rtol=1e-9, atol=1e-12)
        truth = np.bincount(x, minlength=count) / MANY
        error = float(np.square(ours(1) - truth).mean())
        expected = mechanism.mean_variance() / MANY
        require(abs(error / expected - 1.0) < 0.05, f"{error:.3g} where {expected:.3g} is expected")

    return Case(
        "BlockDesign, k = 65,536, estimate of 10^6",
        ours=ours,
        reference=plain,
        tuned=None,
        check=check,
        keystream=0,
        read=reports.nbytes,
        written=8 * count,
        batch=False,
    )


def _hashes(rng: np.random.Generator) -> Case:
    """Return the estimate of 1024 frequencies from reports of hashes, each of which is looked at for all."""
    count = 1024
    mechanism = bitldp.OLH(count, epsilon=2.0)
    x = rng.integers(0, count, RECORDS)
    reports = mechanism.randomize(x)
    prime, values = mechanism.prime, mechanism.values

    def ours(threads: int) -> Array:
        accumulator = mechanism.accumulator()
        accumulator.update(reports, threads=threads)
        return accumulator.counts

    def plain() -> Array:
        a, b, value = reports.astype(np.int64).T
        found = np.empty(count, np.int64)
        for category in range(count):
            found[category] = np.count_nonzero((a * category + b) % prime * values // prime == value)
        return found

    return Case(
        "OLH, k = 1024, estimate",
        ours=ours,
        reference=plain,
        tuned=None,
        check=lambda: require(np.array_equal(ours(1), plain()), "other counts"),
        keystream=0,
        read=reports.nbytes,
        written=8 * count,
    )


def _answers(rng: np.random.Generator) -> Case:
    """Return the estimate of all ranges of 16 values from a million reports of a design."""
    count = 16
    mechanism = bitldp.WorkloadDesign("ranges", categories=count, epsilon=1.0)
    x = rng.binomial(count - 1, 0.4, MANY).astype(np.uint8)
    reports = mechanism.randomize(x)
    law, questions = mechanism.probabilities(), mechanism.questions
    weighted = law / law.mean(axis=0)
    letters = np.linalg.solve(weighted @ law.T, weighted).T @ questions.T

    def ours(threads: int) -> Array:
        accumulator = mechanism.accumulator()
        accumulator.update(reports, threads=threads)
        return accumulator.estimate_answers().value

    def plain() -> Array:
        return np.bincount(reports, minlength=law.shape[1]) / MANY @ letters

    def check() -> None:
        np.testing.assert_allclose(ours(1), plain(), rtol=1e-9, atol=1e-12)
        error = float(np.square(ours(1) - questions @ np.bincount(x, minlength=count) / MANY).sum())
        expected = mechanism.total_variance / MANY
        require(error < 5.0 * expected, f"{error:.3g} where {expected:.3g} is expected")

    return Case(
        "WorkloadDesign, 136 ranges, estimate of 10^6",
        ours=ours,
        reference=plain,
        tuned=None,
        check=check,
        keystream=0,
        read=reports.nbytes,
        written=8 * len(questions),
        batch=False,
    )


def _hits(
    name: str, mechanism: bitldp.BlockDesign | bitldp.SubsetSelection, x: Array, reports: Array
) -> None:
    """Check how often reports count for their own category, and on average for others."""
    p, q = mechanism.probabilities()
    n, k = len(x), int(mechanism.categories)  # type: ignore[call-overload]
    counts = mechanism.estimate_frequencies(reports).value * (p - q) + q
    share = np.bincount(x, minlength=k) / n
    expected = q + share * (p - q)
    error = np.abs(counts - expected) / np.sqrt(expected * (1.0 - expected) / n)
    require(float(error.max()) < 6.5, f"{name}: a category is counted too often or too seldom")
    near(f"{name}, category 0", float(counts[0]), float(expected[0]), n)
    require(math.isfinite(float(counts.sum())), f"{name}: a count is missing")
