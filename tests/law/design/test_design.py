"""Designs of minimum variance: the solver's objective, the exactness of its integers, and its refusals."""

from __future__ import annotations

import dataclasses
import itertools
import math
import types
from fractions import Fraction

import numpy as np
import pytest
from bitldp._core import log_ratio
from bitldp.design import Design, DesignError, _cache, mvu
from bitldp.design.__main__ import BUDGETS
from bitldp.design.distance import binding, canonical, distances
from bitldp.design.exact import unbiased
from bitldp.design.result import ONE, judged, residuals
from hypothesis import given, settings
from hypothesis import strategies as st

scipy = pytest.importorskip("scipy")

# Best known sums of variances: by bits, for epsilon 1, 3, 5. No unbiased mechanism is below the bound.
KNOWN = {
    2: {1.0: (3.997751, 3.959710), 3.0: (0.257273, 0.0), 5.0: (0.030559, 0.0)},
    3: {1.0: (7.882174, 7.860610), 3.0: (0.548243, 0.540347), 5.0: (0.095557, 0.094203)},
    4: {1.0: (15.656462, 15.643413), 3.0: (1.073574, 1.067652)},
}


def check_law(design: Design, budget: float, allowed=None) -> None:
    """Recompute everything from the integers, with fractions and the core's logarithm."""
    count = 1 << design.input_bits
    letters = [Fraction(letter) for letter in design.letters]
    for i, row in enumerate(design.weights):
        assert sum(row) == ONE
        assert min(row) >= 0
        mean = sum(Fraction(weight, ONE) * letter for weight, letter in zip(row, letters, strict=True))
        assert abs(mean - Fraction(i, count - 1)) < Fraction(1, 10**9)
    for i, row in enumerate(design.weights):
        for k, other in enumerate(design.weights):
            bound = budget if allowed is None else budget * allowed[i][k]
            for one, two in zip(row, other, strict=True):
                if one > two:
                    assert log_ratio(one, two) <= bound * (1 + 1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "epsilon"), [(2, 1.0), (3, 3.0), (4, 3.0)])
def test_the_solver_comes_within_half_a_percent_of_the_best_known(bits, epsilon):
    design = mvu.design(bits, bits, epsilon)
    best, bound = KNOWN[bits][epsilon]
    assert bound * (1 - 1e-6) <= design.objective <= best * 1.005
    assert 0.0 <= epsilon - design.epsilon < 1e-5
    check_law(design, epsilon)
    # The variance that the objective sums, from the integers by themselves.
    points = design.points()
    table = design.channel().probabilities()
    direct = (table * np.square(points[:, None] - np.array(design.letters))).sum()
    assert math.isclose(direct, design.objective, rel_tol=1e-9)


def test_vector_22(vectors):
    case = vectors[22]
    expected = case["expected"]
    for epsilon, bound, best in zip(
        case["inputs"]["eps"],
        expected["lower_bound_any_unbiased_mechanism"],
        expected["best_known"],
        strict=True,
    ):
        design = mvu.load_or_solve(3, 3, float(epsilon))  # shipped
        assert bound * (1 - 1e-6) <= design.objective <= best * (1 + case["tolerance"])
        check_law(design, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-4, 40.0])
def test_small_and_large_budgets(epsilon):
    design = mvu.design(2, 2, epsilon)
    check_law(design, epsilon)
    assert design.epsilon > min(epsilon, mvu.MOST) * (1 - 1e-4)
    if epsilon <= 0.1:  # four letters come down to two: randomized response
        assert math.isclose(design.objective, 4 / epsilon**2, rel_tol=1e-3)


# Best known objectives by input and output bits: what any search here has found, to seven digits.
SHIPPED = {
    (2, 2): {1.0: 3.997761, 2.0: 0.8209655, 3.0: 0.2572734, 5.0: 0.03055950},
    (2, 3): {0.5: 15.94840, 1.0: 3.959719, 2.0: 0.8049139},
    (3, 3): {0.5: 32.03513, 1.0: 7.881346, 2.0: 1.608554, 3.0: 0.5482440, 4.0: 0.2165933, 5.0: 0.09555750},
}


@pytest.mark.parametrize("bits", SHIPPED)
def test_the_best_known_are_shipped(bits):
    for budget, known in SHIPPED[bits].items():
        design = mvu.load_or_solve(*bits, budget)
        assert design.objective <= known * (1 + 1e-6), budget
        check_law(design, budget)


@pytest.mark.parametrize("budget", [1.0, 2.0])
def test_letters_need_not_mirror_themselves(budget):
    """Four letters below the middle, one at it, or beside it, and three above, at 1 and 2."""
    design = mvu.load_or_solve(3, 3, budget)
    if budget == 1.0:
        assert 7.860610 <= design.objective <= 7.882174
    sides = np.sign(np.round(np.array(design.letters) - 0.5, 2)).tolist()
    assert sorted(sides) == [-1.0] * 4 + [0.0] + [1.0] * 3


def test_more_output_bits_are_never_worse():
    """At every budget that is shipped; a design of fewer bits is one of more, too."""
    for inputs in (1, 2, 3):
        for budget in BUDGETS:
            found = [mvu.load_or_solve(inputs, bits, budget).objective for bits in (1, 2, 3)]
            worse = [b / a - 1.0 for a, b in itertools.pairwise(found)]
            assert max(worse) < 1e-12, (inputs, budget)  # the same integers, summed with zeros among them


@pytest.mark.slow
def test_a_search_that_does_worse_than_with_fewer_bits_is_not_the_design(monkeypatch):
    fewer = mvu.load_or_solve(2, 1, 0.7)
    right = mvu.exact

    def poor(*arguments):
        return dataclasses.replace(right(*arguments), objective=math.inf)

    monkeypatch.setattr(mvu, "exact", poor)
    design = mvu.design(2, 2, 0.7)
    assert design.objective == fewer.objective
    assert design.letters[:2] == fewer.letters
    assert design.output_bits == 2
    check_law(design, 0.7)


def test_unequal_bits():
    finer = mvu.load_or_solve(3, 2, 2.0)
    assert len(finer.weights) == 8
    assert {len(row) for row in finer.weights} == {4}
    check_law(finer, 2.0)
    assert mvu.load_or_solve(3, 3, 2.0).objective < finer.objective
    check_law(mvu.load_or_solve(1, 3, 2.0), 2.0)
    # More letters than points help at a budget of 1: the global optimum.
    assert mvu.load_or_solve(2, 3, 1.0).objective <= 3.959710 * 1.005


@pytest.mark.slow
def test_the_worst_variance_is_what_the_other_objective_minimises():
    mean, worst = mvu.load_or_solve(3, 2, 3.0), mvu.design(3, 2, 3.0, objective="worst")
    check_law(worst, 3.0)
    assert worst.objective == worst.spread().worst() < 0.95 * mean.spread().worst()
    assert mean.objective < sum(worst.spread().at(worst.points()))


@pytest.mark.parametrize("bits", [1, 2, 5, 8])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 20.0, 100.0])
def test_one_bit_is_randomized_response(bits, epsilon):
    design = mvu.design(bits, 1, epsilon)
    assert abs(sum(design.letters) - 1.0) <= 1e-6 * design.letters[1]
    assert design.epsilon <= epsilon
    assert design.epsilon > min(epsilon, 27.7) * (1 - (1e-9 if epsilon < 5 else 1e-3))
    check_law(design, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("power", [0.5, 2.0])
def test_every_two_points_keep_a_budget_times_their_distance(power):
    design = mvu.design(2, 2, 2.0, metric=power)
    apart = distances(power, 4).tolist()
    check_law(design, 2.0, apart)
    assert design.objective > mvu.load_or_solve(2, 2, 2.0).objective  # less is allowed


@pytest.mark.slow
def test_a_metric_of_equal_distances_is_plain_privacy():
    plain = mvu.load_or_solve(2, 2, 2.0)
    table = mvu.design(2, 2, 1.0, metric=2.0 * (1 - np.eye(4)))
    assert math.isclose(table.objective, plain.objective, rel_tol=1e-3)


@pytest.mark.slow
def test_a_metric_that_is_not_the_same_from_both_ends():
    def metric(x: float, y: float) -> float:
        return abs(math.exp(x) - math.exp(y))

    design = mvu.design(2, 2, 2.0, metric=metric)
    points = design.points().tolist()
    check_law(design, 2.0, [[metric(x, y) for y in points] for x in points])


@given(st.integers(2, 6), st.randoms(use_true_random=False))
def test_binding_pairs_imply_the_others(count, random):
    table = np.zeros((count, count))
    for i in range(count):
        for k in range(i):
            table[i, k] = table[k, i] = random.choice([1.0, 1.5, 2.0, 3.0, 0.25])
    kept = np.where(binding(table), table, np.inf)
    np.fill_diagonal(kept, 0.0)
    for middle in range(count):
        kept = np.minimum(kept, kept[:, middle, None] + kept[middle])
    assert (kept <= table + 1e-9).all()


def test_neighbours_bind_on_a_line():
    on_a_line = binding(distances(1.0, 9))
    assert (on_a_line == (np.abs(np.subtract.outer(np.arange(9), np.arange(9))) == 1)).all()
    assert binding(distances(0.5, 9)).sum() == 9 * 8


@settings(max_examples=50)
@given(st.integers(1, 3), st.integers(1, 3), st.floats(0.01, 5.0), st.integers(0, 2**32))
def test_integers_become_unbiased_to_the_last_place(inputs, outputs, epsilon, seed):
    # A one-bit design spread over more letters, its integers jolted.
    base = mvu.design(inputs, 1, epsilon)
    rng = np.random.default_rng(seed)
    count = 1 << outputs
    letters = tuple(np.linspace(*base.letters, count).tolist())
    rows = []
    for low, _ in base.weights:
        row = [low, *([0] * (count - 2)), ONE - low]
        jolt = int(rng.integers(-(2**20), 2**20))
        rows.append([row[0] - jolt, *row[1:-1], row[-1] + jolt])
    fixed = unbiased(rows, letters)
    assert all(sum(row) == ONE for row in fixed)
    gap = Fraction(letters[-1]) - Fraction(letters[0])
    assert all(abs(rest) <= gap / ONE for rest in residuals(fixed, letters))


def test_a_failed_solve_raises(monkeypatch):
    failed = types.SimpleNamespace(status=4, x=None, fun=None, message="numerical difficulties")
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: failed)
    with pytest.raises(DesignError, match="linear programs of all starts failed"):
        mvu.design(3, 3, 1.0)
    with pytest.raises(DesignError):
        mvu.load_or_solve(3, 3, 1.2345)


def test_a_solver_that_lies_is_found_out(monkeypatch):
    def nothing(cost, **_):
        return types.SimpleNamespace(status=0, x=np.zeros(len(cost)), fun=0.0)

    monkeypatch.setattr("scipy.optimize.linprog", nothing)
    with pytest.raises(DesignError, match="do not sum to 1"):
        mvu.design(2, 2, 1.0)


def test_a_solver_that_cannot_be_unbiased_raises(monkeypatch):
    def biased(cost, **_):
        return types.SimpleNamespace(status=0, x=np.ones(len(cost)), fun=1.0)

    monkeypatch.setattr("scipy.optimize.linprog", biased)
    with pytest.raises(DesignError, match="least sum of biases"):
        mvu.design(2, 2, 1.0)


def test_laws_that_are_not_private_or_biased_are_refused():
    design = mvu.design(2, 1, 1.0)

    def check(weights, letters, budget=1.0):
        return judged((2, 1), budget, None, "mean", weights, letters)

    assert check(design.weights, design.letters) == design
    with pytest.raises(DesignError, match="more than was asked for"):
        check(design.weights, design.letters, 0.999)
    with pytest.raises(DesignError, match="off by"):
        check(design.weights, (design.letters[0], design.letters[1] + 1e-6))
    with pytest.raises(DesignError, match="not finite"):
        check(design.weights, (design.letters[0], math.nan))
    with pytest.raises(DesignError, match="2\\^64"):
        check(((ONE, 1), *design.weights[1:]), design.letters)
    with pytest.raises(DesignError, match="2\\^64"):
        check(((-1, ONE + 1), *design.weights[1:]), design.letters)
    with pytest.raises(DesignError, match="4 rows"):
        check(design.weights[:3], design.letters)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        ((0, 3, 1.0), {}, ValueError, "input_bits: must be between 1 and 9"),
        ((3, 9, 1.0), {}, ValueError, "output_bits: must be between 1 and 8"),
        ((3.0, 3, 1.0), {}, TypeError, "input_bits"),
        ((3, 3, 0.0), {}, ValueError, "epsilon: must be above zero"),
        ((3, 3, 1e-5), {}, ValueError, "epsilon: 3 output bits need at least"),
        ((3, 1, 1e-10), {}, ValueError, "epsilon: 1 output bits need at least"),
        ((3, 3, math.nan), {}, ValueError, "epsilon"),
        ((3, 7, 1.0), {"metric": 1.0}, ValueError, "output_bits: must be between 1 and 6"),
        ((2, 2, 1.0), {"objective": "median"}, ValueError, "objective"),
        ((2, 2, 1.0), {"metric": 0.0}, ValueError, "metric: must be above zero"),
        ((2, 2, 1.0), {"metric": np.ones((3, 3))}, ValueError, "shape"),
        ((2, 2, 1.0), {"metric": np.ones((4, 4))}, ValueError, "to itself"),
        ((2, 2, 1.0), {"metric": np.triu(np.ones((4, 4)), 1)}, ValueError, "above 0 to any other"),
        ((2, 2, 1.0), {"metric": lambda x, y: 2 * abs(x - y) if x < y else abs(x - y)}, ValueError, "symm"),
        ((2, 2, 1.0), {"metric": np.full((4, 4), math.inf)}, ValueError, "finite"),
        ((2, 2, 1.0), {"metric": [["a"] * 4] * 4}, TypeError, "metric"),
        ((2, 2, 1.0), {"metric": "near"}, TypeError, "metric"),
    ],
)
def test_bad_arguments_are_named(arguments, options, error, match):
    for function in (mvu.design, mvu.load_or_solve):
        with pytest.raises(error, match=match):
            function(*arguments, **options)


def test_a_table_is_stored_as_numbers():
    assert canonical(np.abs(np.subtract.outer(range(2), range(2))), (0.0, 1.0)) == ((0.0, 1.0), (1.0, 0.0))
    assert canonical(np.float32(2), (0.0, 1.0)) == 2.0


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("bitldp.base.errors.missing", list)
    with pytest.raises(ImportError, match=r'pip install "bitldp\[design\]"'):
        mvu.design(2, 2, 1.0)
    assert mvu.load_or_solve(3, 3, 1.0).epsilon <= 1.0  # shipped


@pytest.mark.slow
def test_the_shipped_designs_are_what_the_solver_finds():
    from bitldp.design.__main__ import BUDGETS, SHAPES

    for shape in SHAPES:
        for budget in BUDGETS:
            key = _cache.Key(shape, budget, None, "mean")
            design = _cache.shipped(key)  # judged when it is loaded
            assert design is not None
            assert design.epsilon <= budget
            if (shape, budget) in {((2, 3), 3.0), ((3, 2), 0.5)}:
                assert math.isclose(mvu.design(*shape, budget).objective, design.objective, rel_tol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("points", "letters"), [(8, 4), (16, 8)])
def test_a_little_budget_is_searched_from_near_the_optimum(points, letters, monkeypatch):
    """The variance is that of the search from all starts, to 3 parts in a million of the letters' moments."""
    pytest.importorskip("scipy", reason='needs pip install "bitldp[design]"')
    from bitldp.design import _search

    budget = 0.05

    def moment():
        table, own = _search.best((points, letters), budget, 1.0, "mean")
        centred = np.arange(points) / (points - 1) - 0.5
        assert np.abs(table @ (own - 0.5) - centred).max() < 1e-6  # without bias
        return float((table @ np.square(own - 0.5)).sum())

    near = moment()
    monkeypatch.setattr(_search, "_LITTLE", 0.0)
    assert near == pytest.approx(moment(), rel=3e-6)
