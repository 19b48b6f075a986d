"""LOLOHA: its three epsilons by enumeration, answers that stay, and estimates."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product

import bitldp
import numpy as np
import pytest
from bitldp.privacy import ONE

KEY = bytes(range(40, 72))
BUDGETS = [(0.5, 0.25, 2), (2.0, 1.0, 3), (4.0, 0.1, 5), (3.0, 3.0, 4), (8.0, 2.0, None)]


def responses(channel: bitldp.Window) -> list[list[Fraction]]:
    """Return the law of one step in fractions, from its integer."""
    kept, g = Fraction(channel.high, ONE), channel.cells
    return [[kept if y == x else (1 - kept) / (g - 1) for y in range(g)] for x in range(g)]


def law(mechanism: bitldp.LOLOHA, hashed: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Return the law of the reports of a history of hashed values, each of which has an answer for ever."""
    once, again = responses(mechanism.channel), responses(mechanism.second)
    g, distinct = mechanism.cells, sorted(set(hashed))
    found = dict.fromkeys(product(range(g), repeat=len(hashed)), Fraction(0))
    for answers in product(range(g), repeat=len(distinct)):
        kept = dict(zip(distinct, answers, strict=True))
        chance = math.prod(once[x][y] for x, y in kept.items())
        for reports in found:
            found[reports] += chance * math.prod(
                again[kept[x]][y] for x, y in zip(hashed, reports, strict=True)
            )
    assert sum(found.values()) == 1
    return found


def epsilon_of(laws: list[dict[tuple[int, ...], Fraction]]) -> float:
    ratio = max(one[y] / other[y] for one, other in permutations(laws, 2) for y in one)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


@pytest.mark.parametrize(("epsilon", "first", "cells"), BUDGETS)
def test_one_report_has_the_exact_epsilon(epsilon: float, first: float, cells: int | None) -> None:
    mechanism = bitldp.LOLOHA(40, epsilon=epsilon, first=first, cells=cells)
    laws = [law(mechanism, (x,)) for x in range(mechanism.cells)]
    exact, guarantee = epsilon_of(laws), mechanism.first_guarantee
    assert exact * (1.0 - 1e-15) <= guarantee.record <= first
    assert guarantee.record == pytest.approx(exact, rel=1e-9)
    assert guarantee.record == pytest.approx(first, rel=1e-9)
    assert mechanism.guarantee.record == pytest.approx(epsilon, rel=1e-9)
    # What `_law` says, over all functions: of another category a hashed value of its own, or the same.
    p, q, both = mechanism._law
    assert p == pytest.approx(float(laws[0][0,]))
    alike = both / p
    assert q == pytest.approx(p * alike + (1.0 - alike) * float(laws[0][1,]), rel=1e-12)


def test_all_reports_of_histories_that_change_at_the_same_times() -> None:
    """As many hashed values as a history takes count once each, and no bound holds for other histories."""
    mechanism = bitldp.LOLOHA(40, epsilon=1.0, first=0.9, cells=2)
    constant = [law(mechanism, (x,) * 6) for x in range(2)]
    assert 0.98 < epsilon_of(constant) <= mechanism.over(1) <= 1.0
    pattern = (0, 1, 0, 1, 1, 0)
    changing = [law(mechanism, tuple(names[each] for each in pattern)) for names in permutations(range(2))]
    assert 1.95 < epsilon_of(changing) <= mechanism.longitudinal_guarantee.record <= 2.0
    assert mechanism.over(2) == mechanism.over(50) == mechanism.longitudinal_guarantee.record
    # That an answer changed is seen, and is not covered.
    assert epsilon_of([constant[0], changing[0]]) > mechanism.longitudinal_guarantee.record
    assert "change at the same times" in mechanism.longitudinal_guarantee.given
    three = bitldp.LOLOHA(40, epsilon=1.0, first=0.9, cells=3)
    laws = [law(three, tuple(names[each] for each in (0, 1, 2, 0))) for names in permutations(range(3))]
    assert 2.0 < epsilon_of(laws) <= three.over(3) <= 3.0


@pytest.mark.parametrize(("epsilon", "first"), [(2.0, 1.0), (4.0, 2.0), (5.0, 3.0)])
def test_the_second_step_of_the_paper_gives_less_and_varies_more(epsilon: float, first: float) -> None:
    """Equations 5 and 6 of the paper: its g is the best for its second step, which is exact for two alone."""
    a, b = math.exp(epsilon), math.exp(first)

    def kept(g: int) -> float:
        p, r = a / (a + g - 1.0), (a * b - 1.0) / (a * b - 1.0 + (g - 1.0) * (a - b))
        return p * r + (1.0 - p) * (1.0 - r) / (g - 1.0)

    def variance(g: int, p: float) -> float:
        return (g - 1.0) / (g * p - 1.0) ** 2

    root = math.sqrt(a**4 - 14.0 * a**2 + 12.0 * a * b * (1.0 - a * b) + 12.0 * a**3 * b + 1.0)
    papers = 1 + max(1, round((1.0 - a**2 + root) / (6.0 * (a - b))))
    assert papers == min(range(2, 60), key=lambda g: variance(g, kept(g)))
    assert math.log(kept(2) / (1.0 - kept(2))) == pytest.approx(first)
    assert math.log(kept(papers) * (papers - 1.0) / (1.0 - kept(papers))) < 0.98 * first
    ours = bitldp.LOLOHA(10_000, epsilon=epsilon, first=first)
    assert ours.frequency_variance() < 0.96 * variance(papers, kept(papers))
    assert ours.frequency_variance() == pytest.approx(
        bitldp.OLH(10_000, epsilon=first).frequency_variance(), rel=1e-6
    )


def test_an_answer_stays_and_its_function_too() -> None:
    mechanism = bitldp.LOLOHA(["a", "b", "c", "d", "e"], epsilon=3.0, first=1.5, cells=3)
    ids = np.arange(2000, dtype=np.uint64)
    monday = mechanism.permanent(["a", "b", "c", "d"] * 500, key=KEY, ids=ids)
    again = mechanism.permanent(["a", "b", "c", "d"] * 500, key=KEY, ids=ids)
    changed = mechanism.permanent(["e"] * 2000, key=KEY, ids=ids)
    assert (monday == again).all()
    assert (monday[:, :2] == changed[:, :2]).all()
    codes, (a, b) = np.tile(np.arange(4), 500), monday[:, :2].astype(np.int64).T
    hashed = [(a * each + b) % mechanism.prime * mechanism.cells // mechanism.prime for each in (codes, 4)]
    same = hashed[0] == hashed[1]  # two categories of one hashed value have one answer
    assert same.any()
    assert (monday[same, 2] == changed[same, 2]).all()
    assert (monday[~same, 2] != changed[~same, 2]).any()
    backwards = mechanism.permanent(["d", "c", "b", "a"] * 500, key=KEY, ids=ids[::-1].copy())
    assert (backwards[::-1] == monday).all()
    reports = mechanism.report(monday, rng=1)
    assert (reports[:, :2] == monday[:, :2]).all()
    assert (reports[:, 2] != mechanism.report(monday, rng=2)[:, 2]).any()
    estimate = mechanism.estimate_frequencies(reports)
    assert estimate.labels is not None
    packed = mechanism.report(monday, rng=1, output="packed")
    total = mechanism.accumulator()
    total.update(packed, output="packed", records=2000)
    assert (total.estimate().value == estimate.value).all()


@pytest.mark.slow
@pytest.mark.statistical
def test_intervals_cover_while_values_change() -> None:
    """300 rounds of 2,000 clients who move on each day; alpha = 1e-6, seed 7; the stated coverage is 95 %.

    Of 300 intervals a category the mean number that hold the truth is 285 (standard deviation 3.8); over 10
    categories at least 2,850 - 4.9 sqrt(3,000 .0475) = 2,791 were the intervals independent; 2,750 is asked.
    """
    mechanism = bitldp.LOLOHA(10, epsilon=3.0, first=2.0)
    held, days, ids = 0, 300, np.arange(2000, dtype=np.uint64)
    rng = np.random.default_rng(7)
    shares = np.arange(1.0, 11.0) / 55.0
    for day in range(days):
        x = rng.choice(10, 2000, p=shares)
        answers = mechanism.permanent(x, key=KEY, ids=ids, context=bytes([day % 256, day // 256]))
        estimate = mechanism.estimate_frequencies(mechanism.report(answers, rng=day))
        low, high = estimate.confidence_interval(0.95)
        held += int(((low <= shares) & (shares <= high)).sum())
    assert 2750 <= held <= 2960


def test_refusals() -> None:
    for options, words in (
        ({"first": 2.0}, "first: must be at most"),
        ({"cells": 1}, "cells: "),
        ({"cells": 1 << 20}, "cells: "),
    ):
        with pytest.raises(ValueError, match=words):
            bitldp.LOLOHA(5, epsilon=1.0, **options)
    for silent in (bitldp.LOLOHA(5, epsilon=0.0), bitldp.LOLOHA(5, epsilon=1.0, first=0.0)):
        assert silent.first_guarantee.record == 0.0
        with pytest.raises(ValueError, match="no unbiased decode"):
            silent.accumulator()
    mechanism = bitldp.LOLOHA(5, epsilon=1.0)
    with pytest.raises(ValueError, match="values: "):
        mechanism.over(0)
    with pytest.raises(ValueError, match="ids: "):
        mechanism.permanent([1, 2], key=KEY, ids=np.array([3, 3]))
    with pytest.raises(ValueError, match="reports: "):
        mechanism.report([[0, 0, 0]])
