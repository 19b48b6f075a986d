"""Bounds of recommendations: no law is below them, and what is said to reach them does."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp import recommend
from bitldp.ordered.ranges import typical_ends
from bitldp.recommend.bounds import Bound, bound, least_false, least_indicator, least_of_table
from bitldp.recommend.measure import least_letters, measured, table_spread
from bitldp.recommend.question import Question, asked

EPSILONS = [0.25, 1.0, 3.0, 6.0]


def drawn_law(rng: np.random.Generator, inputs: int, epsilon: float) -> np.ndarray:
    """Return an epsilon-LDP law of columns c (1 + g 1_S).

    They are of sets and what they leave, or of all turns of sets: either way the rows have one sum.
    """
    sets = rng.random((2 * inputs, inputs)) < rng.uniform(0.1, 0.9)
    weights = rng.random(len(sets)) ** 4
    if rng.random() < 0.5:
        sets, weights = np.concatenate([sets, ~sets]), np.tile(weights, 2)
    else:
        sets = np.concatenate([np.roll(sets, turn, axis=1) for turn in range(inputs)])
        weights = np.tile(weights, inputs)
    sets, weights = np.concatenate([sets, np.eye(inputs) > 0]), np.append(weights, np.full(inputs, 0.1))
    law = ((1.0 + math.expm1(epsilon) * sets) * weights[:, None]).T
    return law / law.sum(axis=1, keepdims=True)


def question(task: str, epsilon: float, **given: Any) -> Question:
    """Return a question with what is not given left out."""
    names = ("features", "categories", "candidates", "interval", "norm", "metric", "size", "users", "liars")
    rest = {name: given.get(name) for name in names}
    return asked(task, epsilon, **rest, criterion="mean", thorough=False)


def mean_variance(law: np.ndarray, functions: np.ndarray) -> float:
    """Return the mean variance of functions of the input, decoded with the least that is unbiased."""
    letters = least_letters(law) @ functions
    return float((law @ np.square(letters) - np.square(functions)).mean())


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_law_of_one_category_is_below(epsilon: float) -> None:
    rng = np.random.default_rng(3)
    for k in (2, 3, 5, 8):
        least = least_indicator(k, epsilon)
        for _ in range(12):
            law = drawn_law(rng, k, epsilon)
            assert np.log(law.max(axis=0) / law.min(axis=0)).max() <= epsilon + 1e-9
            assert mean_variance(law, np.eye(k)) >= least * (1.0 - 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("k", "d"), [(2, 2), (2, 3), (3, 2)])
def test_no_law_of_a_record_is_below(k: int, d: int, epsilon: float) -> None:
    rng = np.random.default_rng(4)
    records = np.array(list(product(range(k), repeat=d)))
    functions = (records[:, :, None] == np.arange(k)).reshape(len(records), -1).astype(float)
    least = least_of_table(k, d, epsilon)
    for _ in range(25):
        assert mean_variance(drawn_law(rng, len(records), epsilon), functions) >= least * (1.0 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0, 8.0, 12.0])
def test_what_reaches_its_bound(epsilon: float) -> None:
    """Subset selection, randomized response of a label, and the caps of small records."""
    for k in (2, 3, 6, 16, 100):
        reached = bitldp.SubsetSelection(k, epsilon=epsilon).mean_variance()
        assert reached == pytest.approx(least_indicator(k, epsilon), rel=1e-5)
        wrong = 1.0 - bitldp.GRR(k, epsilon=epsilon).probabilities()[0, 0]
        assert wrong == pytest.approx(least_false(k, epsilon), rel=1e-6)
        assert least_of_table(k, 1, epsilon) == pytest.approx(least_indicator(k, epsilon)) if k < 17 else True
    for k, d in ((2, 2), (2, 3), (2, 4), (3, 2), (4, 2)):
        cap = bitldp.RecordCap((k,) * d, epsilon=epsilon).mean_variance()
        least = least_of_table(k, d, epsilon)
        assert least * (1.0 - 1e-9) <= cap <= 1.02 * least


def test_no_law_of_a_label_is_below() -> None:
    rng = np.random.default_rng(5)
    for epsilon in EPSILONS:
        for _ in range(20):
            law = drawn_law(rng, 4, epsilon)
            best = max(np.trace(law[:, list(order)]) for order in rng.integers(law.shape[1], size=(50, 4)))
            assert 1.0 - best / 4.0 >= least_false(4, epsilon) - 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [3, 6, 15])
def test_no_law_of_ranges_is_below(size: int, epsilon: float) -> None:
    """With a design's own dual, which the design reaches, and with eigenvalues alone."""
    rng = np.random.default_rng(6)
    asked_ = question("range", epsilon, size=size)
    bounds = [bound("range", asked_)]
    if size < 13:
        design = bitldp.WorkloadDesign("ranges", categories=size, epsilon=epsilon)
        bounds.append(bound("range", asked_, [design]))
        reached = measured("range", design)[0]
        assert bounds[-1] is not None
        assert bounds[-1].value <= reached * (1.0 + 1e-9)
        assert reached <= bounds[-1].value * (1.0 + 1e-5)
    for _ in range(10):
        spread = table_spread(drawn_law(rng, size, epsilon), *typical_ends(size)).mean()
        for each in bounds:
            assert each is not None
            assert spread >= each.value * (1.0 - 1e-9)


def test_the_words_of_a_bound() -> None:
    least = Bound(2.0, "every law", "over all", "here")
    assert least.within(2.0) == "proven within 0.001 % of every law"
    assert least.within(2.0301) == "proven within 1.6 % of every law"
    assert least.within(5.0) == "proven at most 2.5 times the least of every law"
    assert least.within(2.0) < least.within(2.1)
    assert "says nothing" in Bound(0.0, "every law", "", "").within(1.0)


@pytest.mark.slow
def test_where_a_bound_is_known() -> None:
    known = recommend("frequency", epsilon=2.0, categories=1000)
    assert known.bound is not None
    assert known.bound.value <= known.rows[0].mean <= 1.02 * known.bound.value
    assert known.proof == str(known).splitlines()[1]
    assert known.proof.startswith(
        "proven within 0.45 % of every unbiased epsilon-LDP mechanism, over equally"
    )
    assert "Ye and Barg" in known.proof
    vectors = recommend("vector", epsilon=4.0, features=16, norm="l2")
    assert vectors.bound is not None
    assert vectors.bound.value <= vectors.rows[0].mean <= 1.02 * vectors.bound.value
    points = recommend("point", epsilon=1.0, candidates=9)
    assert points.proof.startswith("proven within 0.001 % of every epsilon-LDP mechanism, over equally")
    for unknown in (
        recommend("mean", epsilon=1.0),
        recommend("vector", epsilon=1.0, features=4, norm="linf"),
        recommend("record", epsilon=1.0, categories=[2, 30]),
        recommend("frequency", epsilon=1.0, categories=9, liars=0.01),
        recommend("point", epsilon=1.0, candidates=5, features=2),
    ):
        assert unknown.bound is None
        assert unknown.proof == "no lower bound is known for every mechanism here"


@pytest.mark.parametrize("d", [2, 3, 16, 128, 4096, 1 << 20])  # a question builds nothing
def test_the_bound_of_vectors_is_not_above_the_sphere(d: int) -> None:
    """PrivUnit's variance at caps between the nodes of the quadrature, by SciPy's functions."""
    special = pytest.importorskip("scipy.special")
    heights = special.expit(np.linspace(-30.0, 30.0, 6001))  # 1 - h^2
    share = 0.5 * special.betainc((d - 1) / 2.0, 0.5, heights)
    scale = special.gammaln(d / 2.0) - special.gammaln((d - 1) / 2.0) - 0.5 * math.log(math.pi)
    mass = np.exp(scale + (d - 1) / 2.0 * np.log(heights)) / (d - 1)
    for epsilon in (0.25, 1.0, 4.0, 8.0, 12.0):
        growth = math.expm1(epsilon)
        least = 1.0 / np.max(growth * mass / (1.0 + growth * share)) ** 2 - 1.0
        stated = bound("vector", question("vector", epsilon, features=d, norm="l2"))
        assert stated is not None
        assert 0.998 * least <= stated.value <= least
