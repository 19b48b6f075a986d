"""Designs for workloads: the optimum, bounds that nothing beats, integers within the budget, the cache."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp._core import Matrix
from bitldp.design import Certificate, DesignError, workload_cache
from bitldp.design.__main__ import WORKLOAD_BUDGETS, WORKLOADS
from bitldp.design.certificate import certified
from bitldp.design.pricing import (
    Dual,
    WorkloadProgram,
    climbed,
    every_violation,
    exact_bound,
    spectral_bound,
    subsets,
)
from bitldp.design.questions import NAMES, gram_of, questions
from bitldp.design.workload import Columns, integers, least_total_variance
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def second_moment(law: Floats, gram: Floats) -> float:
    """Return the least total second moment of unbiased letters, by the definition: least squares."""
    root = np.linalg.cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)))
    mass = law.mean(axis=0)
    letters = np.linalg.pinv(law / np.sqrt(mass), rcond=1e-13) @ root
    return float(np.square(letters).sum())


def designed(gram: Floats, epsilon: float) -> tuple[Matrix, WorkloadProgram, Dual]:
    columns = least_total_variance(gram, epsilon)
    program = WorkloadProgram(gram, epsilon)
    dual = Dual.of(program, program.evidence(columns.sets), columns.chances)
    return Matrix.from_weights(integers(columns, epsilon)), program, dual


def drawn(seed: int) -> tuple[Floats, float]:
    """Return the gram matrix of a drawn workload of 2 to 6 inputs, and a budget of 0.1 to 8."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    rows = rng.normal(size=(int(rng.integers(1, 9)), size)) * rng.integers(0, 2, size=size).clip(0.2)
    return rows.T @ rows, float(np.exp(rng.uniform(np.log(0.1), np.log(8.0))))


@pytest.mark.parametrize("seed", range(24))
def test_bounds_are_in_order_and_the_value_is_at_the_exact_one(seed: int) -> None:
    gram, epsilon = drawn(seed)
    channel, program, dual = designed(gram, epsilon)
    exact, spectral = exact_bound(program, dual).bound, spectral_bound(program)
    fixed = gram.sum() / len(gram) ** 2
    value = (second_moment(channel.probabilities(), gram) - fixed) / program.scale
    assert spectral <= exact * (1.0 + 1e-9)
    assert exact <= value * (1.0 + 1e-9)
    assert value <= exact * (1.0 + 1e-4)
    assert channel.epsilon <= epsilon


@pytest.mark.parametrize("seed", range(6))
def test_the_dual_holds_for_every_set_in_rational_numbers(seed: int) -> None:
    """The level of the bound, and the doubling that finds the worst set, against fractions."""
    gram, epsilon = drawn(seed)
    _, program, dual = designed(gram, epsilon)
    size = program.size
    growth = Fraction(program.growth)  # at least e^epsilon - 1: for all that are at most as private
    assert program.growth >= math.expm1(epsilon)
    matrix = program.basis @ dual.directions
    exactly = [[Fraction(each) for each in row] for row in (matrix @ matrix.T).tolist()]
    slope = [Fraction(each) for each in (program.basis @ dual.slope).tolist()]
    bound = exact_bound(program, dual)
    found = every_violation(program, dual)
    worst = Fraction(-1)
    for number, members in enumerate(itertools.product((0, 1), repeat=size)):
        inside = members[::-1]  # bit i of the number is input i
        factor = growth / (1 + growth * sum(inside) / size)
        chosen = [each for each in range(size) if inside[each]]
        square = sum((exactly[a][b] for a in chosen for b in chosen), Fraction(0))
        value = factor**2 * square + factor * sum((slope[each] for each in chosen), Fraction(0))
        assert float(value) - dual.level == pytest.approx(found[number], abs=1e-9 * dual.level)
        worst = max(worst, value)
    assert worst <= Fraction(bound.level) * (
        1 + Fraction(1, 10**10)
    )  # the bound is lowered by ten times that


@pytest.mark.parametrize("seed", range(6))
def test_no_drawn_mechanism_beats_a_bound(seed: int) -> None:
    """Channels with columns of drawn rates, not only of two: n = 200 of each workload, seeded."""
    gram, epsilon = drawn(seed + 100)
    _, program, dual = designed(gram, epsilon)
    bound = max(exact_bound(program, dual).bound, spectral_bound(program))
    rng, size = np.random.default_rng(seed), len(gram)
    for _ in range(200):
        rates = np.exp(-epsilon * rng.beta(0.2, 0.2, size=(size, 4 * size)))
        rates = rates * np.exp(-0.5 * (np.log(rates).max(axis=0) + np.log(rates).min(axis=0)))
        law = rates / rates.sum(axis=1, keepdims=True)
        least = float(np.log(law.max(axis=0) / law.min(axis=0)).max())
        private = law if least <= epsilon else law ** (epsilon / least)
        private = private / private.sum(axis=1, keepdims=True)
        if np.log(private.max(axis=0) / private.min(axis=0)).max() > epsilon:
            continue
        value = (second_moment(private, gram) - gram.sum() / size**2) / program.scale
        assert value >= bound * (1.0 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("size", [2, 5, 8])
def test_the_histogram_is_subset_selection(size: int, epsilon: float) -> None:
    """The optimum for frequencies is known (Ye and Barg 2018): the design is it, and the bound meets it."""
    channel, program, dual = designed(np.eye(size), epsilon)
    known = size * bitldp.SubsetSelection(size, epsilon=epsilon).mean_variance()
    value = second_moment(channel.probabilities(), np.eye(size)) - 1.0
    assert value == pytest.approx(known, rel=1e-6)
    bound = program.scale * exact_bound(program, dual).bound + 1.0 / size - 1.0
    assert bound == pytest.approx(known, rel=1e-6)


def test_generated_columns_end_at_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    from bitldp.design import workload

    gram = gram_of("ranges", 9)
    whole = designed(gram, 1.0)[2].objective
    monkeypatch.setattr(workload, "ENUMERATED", 4)
    assert designed(gram, 1.0)[2].objective == pytest.approx(whole, rel=2e-5)
    monkeypatch.setattr(workload, "ALL_PRICED", 4)
    assert designed(gram, 1.0)[2].objective == pytest.approx(whole, rel=5e-3)


def test_a_climb_finds_sets_that_break_the_dual_and_none_that_does_not() -> None:
    program = WorkloadProgram(gram_of("cdf", 9), 1.0)
    singles = Columns(np.eye(9, dtype=np.bool_), np.full(9, 1.0 / 9.0))
    dual = Dual.of(program, program.evidence(singles.sets), singles.chances)
    found = climbed(program, dual, singles.sets, 0.1 * dual.objective)
    numbers = found @ (1 << np.arange(9))
    broken = every_violation(program, dual)
    assert len(found)
    assert broken[numbers].min() > 0.1 * dual.objective
    assert broken[numbers].max() == pytest.approx(broken.max(), rel=1e-9)
    assert not len(climbed(program, dual, found, 2.0 * float(broken.max())))


@pytest.mark.parametrize("seed", range(5))
def test_integers_never_pass_the_budget(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon = float(np.exp(rng.uniform(np.log(1e-3), np.log(20.0))))
    columns = least_total_variance(drawn(seed)[0], epsilon)
    table = integers(columns, epsilon)
    assert all(sum(row) == 1 << 64 for row in table)
    exact = Matrix.from_weights(table).epsilon
    assert epsilon * (1.0 - 1e-9) - 1e-12 <= exact <= epsilon
    with pytest.raises(DesignError, match="do not sum to 1"):
        integers(Columns(columns.sets[:1], np.ones(1)), epsilon)


@pytest.mark.parametrize("name", NAMES)
def test_named_questions(name: str) -> None:
    shape = (3, 2, 2)
    rows = questions(name, 12, shape)
    np.testing.assert_allclose(gram_of(name, 12, shape), rows.T @ rows, rtol=1e-12)
    answers = {"cdf": 11, "histogram": 12, "identity": 12, "moments": 2, "ranges": 78}
    assert len(rows) == answers.get(name, 3 + 2 + 2 + 6 + 6 + 4)
    if (
        name == "marginals"
    ):  # each attribute, then each two: the first one's first value, then all cells of two
        assert rows[0].tolist() == [1.0] * 4 + [0.0] * 8
        assert rows[7:13].sum(axis=0).tolist() == [1.0] * 12
        assert len(questions(name, 5, (5,))) == 5


def test_subsets_are_numbered_by_their_bits() -> None:
    assert subsets(3)[6].tolist() == [False, True, True]


# -- certificates


@pytest.mark.parametrize(
    ("size", "epsilon", "gain"),
    [
        (8, 0.5, 1.17),
        (8, 1.0, 1.17),
        (8, 2.0, 1.06),
        (8, 4.0, 1.0),
        (10, 0.5, 1.25),
        (10, 1.0, 1.25),
        (10, 2.0, 1.16),
        (10, 4.0, 1.0),
    ],
)
def test_ranges_are_within_one_percent_of_every_mechanism(size: int, epsilon: float, gain: float) -> None:
    """And below the sums of the best frequencies by a factor, the sampling of uniform records included."""
    mechanism = bitldp.WorkloadDesign("ranges", categories=size, epsilon=epsilon)
    proof = mechanism.certificate
    assert proof is not None
    assert proof.gap < 0.01
    assert proof.bound <= mechanism.total_variance <= proof.value
    assert str(proof).startswith("proven within 0.0")
    bare = bitldp.WorkloadDesign("histogram", categories=size, epsilon=epsilon).probabilities()
    own, other = (second_moment(law, mechanism._gram) for law in (mechanism.probabilities(), bare))
    fixed = mechanism._gram.sum() / size**2
    assert gain * (1.0 - 1e-6) <= (other - fixed) / (own - fixed) <= gain + 0.01
    assert certified(mechanism._gram, mechanism.channel, epsilon, other).bound <= proof.bound  # type: ignore[union-attr]


def test_a_certificate_says_its_gap_rounded_up() -> None:
    sentence = str(Certificate(1.10001, 1.0, "total variance, inputs uniform", "by hand"))
    assert sentence.startswith("proven within 11 % of every unbiased epsilon-LDP mechanism (total variance")
    assert Certificate(1.0, 1.0, "", "").gap == 0.0
    assert str(Certificate(1.0, 1.0, "a", "b")).startswith("proven within 0.001 %")
    assert str(Certificate(1.00123, 1.0, "a", "b")).startswith("proven within 0.13 %")


def test_beyond_what_is_priced_the_bound_is_that_of_eigenvalues() -> None:
    mechanism = bitldp.WorkloadDesign("ranges", categories=32, epsilon=1.0)
    assert mechanism.certificate is not None
    assert mechanism.certificate.method == "spectral relaxation"
    assert mechanism.certificate.gap < 1.0
    assert bitldp.WorkloadDesign("ranges", categories=32, epsilon=4.0).certificate is None  # says too little
    assert bitldp.WorkloadDesign("ranges", categories=8, epsilon=0.0).certificate is None


# -- the cache, and what is shipped


def test_the_shipped_designs_are_read_and_optimal() -> None:
    assert len(WORKLOADS) * len(WORKLOAD_BUDGETS) == len(workload_cache._shipped())
    for name, size in WORKLOADS:
        assert all(
            bitldp.WorkloadDesign.solved(name, categories=size, epsilon=each) for each in WORKLOAD_BUDGETS[:2]
        )
    mechanism = bitldp.WorkloadDesign("cdf", categories=16, epsilon=2.0)
    assert mechanism.certificate is not None
    assert mechanism.certificate.gap < 0.01


@pytest.mark.slow
def test_solving_again_is_as_good_as_what_is_shipped() -> None:
    for name, size in WORKLOADS:
        if size <= 10:
            again = designed(gram_of(name, size), 1.0)[2].objective
            mechanism = bitldp.WorkloadDesign(name, categories=size, epsilon=1.0)
            total = mechanism.total_variance + np.trace(mechanism._gram) / size
            shipped = (total - mechanism._gram.sum() / size**2) / WorkloadProgram(mechanism._gram, 1.0).scale
            assert again == pytest.approx(shipped, rel=1e-5)


def test_the_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("BITLDP_CACHE", str(tmp_path))
    options: dict[str, Any] = {"categories": 4, "epsilon": 1.25}
    workload_cache._load_or_solve.cache_clear()
    assert not bitldp.WorkloadDesign.solved("ranges", **options)
    first = bitldp.WorkloadDesign("ranges", **options)
    assert bitldp.WorkloadDesign.solved("ranges", **options)
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(workload_cache, "least_total_variance", None)  # as if nothing could be solved
    workload_cache._load_or_solve.cache_clear()
    assert bitldp.WorkloadDesign("ranges", **options).channel.weights() == first.channel.weights()
    record = json.loads(file.read_text())
    for damaged in (
        "no json",
        json.dumps({**record, "chances": record["chances"][::-1]}),
        json.dumps({**record, "inputs": 5}),
        json.dumps([]),
    ):
        file.write_text(damaged)
        assert not bitldp.WorkloadDesign.solved("ranges", **options)
        assert "is refused, and solved again" in caplog.text
        caplog.clear()
    forged = {**record, "chances": [f"{int(each, 16) // 2:x}" for each in record["chances"]]}
    del forged["sha256"]
    file.write_text(json.dumps({**forged, "sha256": workload_cache._digest(forged)}))
    assert bitldp.WorkloadDesign.solved("ranges", **options) in (True, False)
    monkeypatch.setenv("BITLDP_CACHE", "")
    assert not bitldp.WorkloadDesign.solved("ranges", **options)
    workload_cache._load_or_solve.cache_clear()
