"""RAPPOR: both epsilons by enumeration, answers that stay, reports that do not, and estimates."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import bitldp
import numpy as np
import pytest
from bitldp.privacy import ONE

KEY = bytes(range(40, 72))
BUDGETS = [(0.5, 0.25), (2.0, 1.0), (4.0, 0.1), (3.0, 3.0), (8.0, 2.0)]


def strings(mechanism: bitldp.RAPPOR, value: int, steps: int) -> dict[tuple[int, ...], Fraction]:
    """Return the law of the bits of a category after one step or both, of 3 categories, in fractions."""
    p, q = (Fraction(each, ONE) for each in mechanism.channel.thresholds())
    one, zero = (Fraction(each, ONE) for each in mechanism.second.thresholds()[0][0])
    found: dict[tuple[int, ...], Fraction] = {}
    for bits in product((0, 1), repeat=3):
        chance = Fraction(1)
        for place, bit in enumerate(bits):
            up = p if place == value else q
            chance *= up if bit else 1 - up
        if steps == 1:
            found[bits] = chance
            continue
        for said in product((0, 1), repeat=3):
            again = chance
            for bit, told in zip(bits, said, strict=True):
                up = one if bit else zero
                again *= up if told else 1 - up
            found[said] = found.get(said, Fraction(0)) + again
    assert sum(found.values()) == 1
    return found


@pytest.mark.parametrize(("epsilon", "first"), BUDGETS)
def test_both_epsilons_are_those_of_the_strings(epsilon: float, first: float) -> None:
    mechanism = bitldp.RAPPOR(3, epsilon=epsilon, first=first)
    for steps, guarantee in ((1, mechanism.guarantee), (2, mechanism.first_guarantee)):
        laws = [strings(mechanism, value, steps) for value in range(3)]
        ratio = max(one[bits] / other[bits] for one in laws for other in laws for bits in one)
        exact = math.log(ratio.numerator) - math.log(ratio.denominator)
        assert guarantee.record == pytest.approx(exact, rel=1e-12, abs=1e-14)
        assert guarantee.holds
        assert guarantee.record >= exact * (1.0 - 1e-15)
    assert mechanism.guarantee.record == pytest.approx(epsilon, rel=1e-9)
    assert mechanism.first_guarantee.record == pytest.approx(first, rel=1e-9)


@pytest.mark.slow
def test_a_report_follows_its_law() -> None:
    """Reports of `randomize`, and of both steps apart, are as likely as the strings.

    n = 400,000, 7 degrees of freedom, whose quantile at alpha = 1e-6 is 40.5; fixed keys.
    """
    n = 400_000
    mechanism = bitldp.RAPPOR(3, epsilon=3.0, first=1.5)
    law = strings(mechanism, 1, 2)
    values = np.full(n, 1)
    answers = mechanism.permanent(values, key=KEY, ids=np.arange(n, dtype=np.uint64))
    for bits in (mechanism.randomize(values, rng=4), mechanism.report(answers, rng=5)):
        codes = bits @ np.array([4, 2, 1])
        counts = np.bincount(codes, minlength=8)
        expected = np.array([float(law[tuple(int(b) for b in f"{code:03b}")]) for code in range(8)]) * n
        assert float(((counts - expected) ** 2 / expected).sum()) < 40.5


@pytest.mark.slow
def test_answers_stay_and_reports_do_not() -> None:
    """Of one value always the same, of another one independent: n = 100,000, five standard errors."""
    n = 100_000
    users = np.arange(n, dtype=np.uint64)
    mechanism = bitldp.RAPPOR(5, epsilon=2.0)
    threes, twos = (mechanism.permanent(np.full(n, v), key=KEY, ids=users) for v in (3, 2))
    assert np.array_equal(mechanism.permanent(np.full(n, 3), key=KEY, ids=users, threads=2), threes)
    q = mechanism.channel.thresholds()[1] / ONE
    alike = q * q + (1.0 - q) * (1.0 - q)
    share = (threes[:, 0] == twos[:, 0]).mean()
    assert abs(share - alike) < 5.0 * math.sqrt(alike * (1.0 - alike) / n)
    one, two = mechanism.report(threes), mechanism.report(threes)
    assert not np.array_equal(one, two)
    assert np.array_equal(mechanism.report(threes, rng=7), mechanism.report(threes, rng=7))
    # Many reports tell the permanent answer, and nothing behind it.
    mean = np.mean([mechanism.report(threes[:200]) for _ in range(400)], axis=0)
    assert np.array_equal(mean > 0.5, threes[:200] == 1)


def test_estimates_are_of_one_report() -> None:
    """Every frequency is within five standard errors: n = 100,000 users."""
    n = 100_000
    values = np.arange(n) % 4
    mechanism = bitldp.RAPPOR(["a", "b", "c", "d", "e"], epsilon=4.0, first=2.0)
    words = np.array(["a", "b", "c", "d"])[values]
    answers = mechanism.permanent(words, key=KEY, ids=np.arange(n, dtype=np.uint64))
    for reports in (mechanism.report(answers, rng=1), mechanism.randomize(words, rng=2)):
        estimate = mechanism.estimate_frequencies(reports)
        truth = np.array([0.25] * 4 + [0.0])
        assert (np.abs(estimate.value - truth) < 5.0 * estimate.stderr).all()
    packed = mechanism.report(answers, rng=1, output="packed")
    assert np.array_equal(bitldp.unpack(packed, 1, 5 * n), mechanism.report(answers, rng=1).ravel())


def test_chunks_concatenate() -> None:
    mechanism = bitldp.RAPPOR(70, epsilon=2.0)
    chunk = mechanism.channel.chunk
    x = np.arange(2 * chunk + 5) % 70
    for output in ("bits", "packed"):
        whole = mechanism.randomize(x, rng=3, output=output)
        head = mechanism.randomize(x[:chunk], rng=3, output=output)
        tail = mechanism.randomize(x[chunk:], rng=3, output=output, first_chunk=1)
        assert np.array_equal(np.concatenate([head, tail]), whole)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"first: must be at most epsilon=1\.0, got 2"):
        bitldp.RAPPOR(5, epsilon=1.0, first=2.0)
    for silent in (bitldp.RAPPOR(5, epsilon=0.0), bitldp.RAPPOR(5, epsilon=1.0, first=0.0)):
        assert silent.first_guarantee.record == 0.0
        with pytest.raises(ValueError, match="no unbiased decode"):
            silent.estimate_frequencies(silent.randomize([1, 2], rng=1))
    mechanism = bitldp.RAPPOR(5, epsilon=1.0)
    assert mechanism.first == 0.5
    assert "a value that changes" in mechanism.guarantee.given
    with pytest.raises(ValueError, match="reports"):
        mechanism.report(np.full((2, 5), 2))
    with pytest.raises(ValueError, match="ids: each may come up once"):
        mechanism.permanent([1, 1], key=KEY, ids=np.zeros(2, np.uint64))
