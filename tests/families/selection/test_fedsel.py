"""Two stages, the clients' state, the split of the budget, and the baselines."""

from __future__ import annotations

import math
import pickle

import bitldp
import numpy as np
import pytest
from bitldp import EXP, PE, PS, Duchi, FedSel, Hybrid, Piecewise, ThreeOutputs, TwoStage
from bitldp.audit import audit
from bitldp.selection import Compressed, flat, split_budget

STAGES = {
    "PS-PM": lambda: TwoStage(PS(6, k=2, epsilon=1.0), Piecewise(epsilon=1.0)),
    "EXP-Duchi": lambda: TwoStage(EXP(6, epsilon=1.0), Duchi(epsilon=2.0)),
    "PE-HM": lambda: TwoStage(PE(6, k=2, epsilon=1.0), Hybrid(epsilon=2.0)),
    "PE-3": lambda: TwoStage(PE(6, k=2, epsilon=1.0), ThreeOutputs(epsilon=2.0)),
}


@pytest.fixture(params=STAGES)
def stages(request):
    """Return each pair of stages in turn."""
    return STAGES[request.param]()


def test_the_exact_epsilon_is_that_of_the_enumerated_pair():
    """All reports of vectors whose order and whose values are at their worst."""
    for selection in (PS(3, k=1, epsilon=0.7), EXP(3, epsilon=0.7), PE(3, k=1, epsilon=0.7)):
        both = TwoStage(selection, Duchi(epsilon=1.1))
        vectors = np.array([[3.0, 2.0, 1.0], [-1.0, -2.0, -3.0], [1.0, 3.0, -2.0], [0.2, -0.1, 0.3]])
        value_law = both.release.probabilities()
        law = selection.law(vectors)
        pairs = np.empty((4, law.shape[1], 2))
        for row, vector in enumerate(vectors):
            for j in range(law.shape[1]):
                s = 0.0 if j == 3 else float(np.clip(vector[j], -1.0, 1.0))
                high = (1.0 + s) / 2.0
                pairs[row, j] = law[row, j] * ((1.0 - high) * value_law[0] + high * value_law[1])
        worst = max(np.log(a / b).max() for a in pairs for b in pairs)
        assert both.guarantee.record == pytest.approx(worst, rel=1e-12)
        assert both.guarantee.record == pytest.approx(1.8, rel=1e-9)


def test_updates_have_the_stated_mean_and_variance(stages):
    """With n = 40,000; each of 12 comparisons at 5 standard errors."""
    r = np.array([0.9, -0.4, 0.1, 3.0, -0.2, 0.0])
    s = r * 0.5
    x, y = (np.repeat(each[None], 40_000, axis=0) for each in (r, s))
    reports = stages.randomize(x, y, rng=3)
    dense = stages.decode(reports)
    chance = stages.selection.law(r[None])[0, :6]
    expected = chance * np.clip(s, -1.0, 1.0)
    variance = stages.variance(r[None], s[None])[0]
    found = stages.aggregate(reports)
    np.testing.assert_allclose(found.value, dense.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.stderr, dense.std(axis=0, ddof=1) / 200.0, rtol=1e-6)
    assert (np.abs(found.value - expected) < 5.0 * np.sqrt(variance / 40_000)).all()
    np.testing.assert_allclose(dense.var(axis=0), variance, rtol=0.15)
    assert (np.count_nonzero(dense, axis=1) <= 1).all()
    merged = stages.accumulator()
    merged.update(reports)
    again = type(merged).from_json(merged.to_json(), stages)
    np.testing.assert_array_equal(again.estimate().value, found.value)


def test_no_selection_comes_with_a_fixed_value():
    """Where PE reports none, the code is that of the middle, whatever the vector; alpha = 1e-6."""
    both = TwoStage(PE(2, k=1, epsilon=0.5), ThreeOutputs(epsilon=3.0))
    law = both.release.probabilities()
    for value in (-5.0, 5.0):
        reports = both.randomize(np.full((60_000, 2), value), rng=1)
        codes = reports.codes[reports.indices == 2]
        assert len(codes) > 5000
        expected = law[1] * len(codes)
        assert (np.square(np.bincount(codes, minlength=3) - expected) / expected).sum() < 27.6
    assert (both.decode(reports)[reports.indices == 2] == 0.0).all()
    assert "fixed value" in str(both.guarantee)


def test_stages_are_streams(stages):
    x = np.random.default_rng(1).normal(size=(bitldp._core.CHUNK + 70, 6))
    whole = stages.randomize(x, rng=2)
    for threads in (1, 3):
        again = stages.randomize(x, rng=2, threads=threads)
        assert all(np.array_equal(a, b) for a, b in zip(again, whole, strict=True))
    head = stages.randomize(x[: stages.chunk], rng=2)
    tail = stages.randomize(x[stages.chunk :], rng=2, first_chunk=1)
    for part in range(2):
        np.testing.assert_array_equal(np.concatenate([head[part], tail[part]]), whole[part])
    packed = stages.randomize(x, rng=2, output="packed")
    assert (packed.indices.size + packed.codes.size) * 8 >= stages.report_bits * len(x)
    np.testing.assert_array_equal(
        bitldp.unpack(packed.indices, stages.selection.report_bits, len(x)), whole.indices
    )


def test_stages_are_mechanisms(stages):
    again = pickle.loads(pickle.dumps(stages))
    assert again == stages
    assert hash(again) == hash(stages)
    assert stages.guarantee.holds
    with pytest.raises(ValueError, match="aggregate"):
        stages.estimate_mean(None)


@pytest.mark.parametrize(
    ("selection", "values", "error", "message"),
    [
        (Duchi(epsilon=1.0), Duchi(epsilon=1.0), TypeError, "selection: must be EXP, PS or PE"),
        (EXP(3, epsilon=1.0), EXP(3, epsilon=1.0), TypeError, "release: must be a mechanism of numbers"),
        (
            EXP(3, epsilon=1.0),
            Duchi(epsilon=1.0, features=2),
            ValueError,
            "release: must be a pure mechanism of one",
        ),
        (EXP(3, epsilon=1.0), Duchi(epsilon=1.0, clip=False), ValueError, "with clip=True"),
    ],
)
def test_stages_that_do_not_fit(selection, values, error, message):
    with pytest.raises(error, match=message):
        TwoStage(selection, values)


def test_stages_refuse_bad_vectors(stages):
    good = np.ones((2, 6))
    bad = good.copy()
    bad[1, 3] = np.nan
    with pytest.raises(ValueError, match=r"scores: the value at index \(1, 3\) is not finite"):
        stages.randomize(bad)
    with pytest.raises(ValueError, match=r"values: the value at index \(1, 3\) is not finite"):
        stages.randomize(good, bad)
    with pytest.raises(ValueError, match="values: shape must be that of scores"):
        stages.randomize(good, np.ones((3, 6)))
    with pytest.raises(TypeError, match="scores: dtype"):
        stages.randomize(good.astype(bool))
    with pytest.raises(ValueError, match="scores: shape"):
        stages.randomize(np.ones(6))
    for reports in (
        None,
        (np.array([0]),),
        (np.array([99]), np.array([0])),
        (np.array([0, 1]), np.array([0])),
    ):
        with pytest.raises((TypeError, ValueError), match="reports"):
            stages.decode(reports)


def test_audit_of_stages():
    both = TwoStage(PS(8, k=2, epsilon=1.0), Duchi(epsilon=1.0))
    result = audit(both, n=5000, rng=1)
    assert result.passed
    assert result.lower > 1.0


def test_split_budget():
    first, second = split_budget(100, epsilon=2.0, batch=10**6)
    assert (first, second) == (0.4, pytest.approx(1.6))  # plenty: the selection gets theta
    need = math.sqrt(100 * math.log(100) / 200)
    first, second = split_budget(100, epsilon=1.6, batch=200)
    assert first == pytest.approx(1.6 - need)
    assert second == pytest.approx(need)
    assert split_budget(100, epsilon=1.0, batch=5) == (0.0, 1.0)
    for bad in ({"batch": 0}, {"batch": 9, "threshold": 1.0}, {"batch": 9, "threshold": math.nan}):
        with pytest.raises(ValueError, match=next(iter(reversed(bad)))):
            split_budget(100, epsilon=1.0, **bad)


def test_a_client_accumulates_sends_and_resets():
    """By hand: with huge budgets the largest coordinate is sent, as it is, and forgotten."""
    fedsel = FedSel(3, epsilon=300.0, rounds=3, select="PS", k=1, release=Piecewise, mu=0.5, momentum=0.5)
    sent = fedsel.release(np.array([[0.5, -0.2, 0.1]]), rng=1)
    assert sent.indices.tolist() == [0]
    assert fedsel.stages.decode(sent)[0, 0] == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(fedsel.state()["residual"], [[0.0, -0.2, 0.1]])
    sent = fedsel.release(np.array([[0.05, -0.2, 0.1]]), rng=2)
    assert sent.indices.tolist() == [1]  # r = -0.4, and half of the -0.2 before
    assert fedsel.stages.decode(sent)[0, 1] == pytest.approx(-0.5, abs=0.01)
    np.testing.assert_allclose(fedsel.state()["residual"], [[0.05, 0.0, 0.2]])
    fedsel.release(np.array([[0.0, 0.0, 5.0]]), rng=3)
    with pytest.raises(bitldp.BudgetExceededError, match="client 0 has made all of its 3 releases"):
        fedsel.release(np.zeros((1, 3)))


def test_clients_take_part_by_batches_and_are_charged_one_by_one():
    fedsel = FedSel(4, epsilon=2.0, rounds=1, clients=5, mu=0.1)
    gradients = np.random.default_rng(1).normal(size=(2, 4))
    before = fedsel.state()
    for bad in ({"clients": [1, 1]}, {"clients": [9, 1]}, {"clients": [0]}, {"clients": [[0, 1]]}):
        with pytest.raises(ValueError, match=r"clients|gradients"):
            fedsel.release(gradients, **bad)
    spoilt = gradients.copy()
    spoilt[1, 1] = np.inf
    with pytest.raises(ValueError, match=r"gradients: the value at index \(1, 1\)"):
        fedsel.release(spoilt, clients=[1, 3])
    assert all(np.array_equal(before[name], fedsel.state()[name]) for name in before)
    fedsel.release(gradients, clients=[3, 1], output="packed")
    assert fedsel.released.tolist() == [0, 1, 0, 1, 0]
    with pytest.raises(bitldp.BudgetExceededError, match="client 3"):
        fedsel.release(np.zeros((3, 4)), clients=[0, 3, 1])
    assert fedsel.released.tolist() == [0, 1, 0, 1, 0]
    other = FedSel(4, epsilon=2.0, rounds=1, clients=5, mu=0.1)
    other.restore(fedsel.state())
    np.testing.assert_array_equal(other.state()["residual"], fedsel.state()["residual"])
    with pytest.raises(ValueError, match="state"):
        other.restore({"residual": np.zeros((2, 4)), "released": np.zeros(5, int)})


@pytest.mark.parametrize("select", ["PS", "EXP", "PE"])
@pytest.mark.parametrize("values", [Duchi, Piecewise, Hybrid, ThreeOutputs])
def test_every_round_keeps_its_part_of_the_budget(select, values):
    fedsel = FedSel(20, epsilon=3.0, rounds=7, select=select, release=values, batch=2000)
    assert fedsel.guarantee.holds
    assert fedsel.guarantee.record == pytest.approx(3.0, rel=1e-6)
    assert fedsel.stages.guarantee.record <= 3.0 / 7
    assert fedsel.report_bits == fedsel.stages.report_bits


def test_the_clients_state_stays_private():
    fedsel = FedSel(3, epsilon=1.0, rounds=2, mu=0.1)
    fedsel.release(np.array([[0.123456, 1.0, 2.0]]))
    assert "0.123" not in repr(fedsel)
    with pytest.raises(TypeError, match="private residuals"):
        pickle.dumps(fedsel)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({}, ValueError, "mu: give it, or give batch"),
        ({"mu": 1.0}, ValueError, r"mu: must be in \[0, 1\)"),
        ({"mu": 0.1, "rounds": 0}, ValueError, "rounds: must be at least 1"),
        ({"mu": 0.1, "epsilon": 0.0}, ValueError, "epsilon: must be above zero"),
        ({"mu": 0.1, "select": "top"}, ValueError, "select: must be one of"),
        ({"mu": 0.1, "select": "EXP", "k": 1}, ValueError, "k: is for"),
        ({"mu": 0.1, "calibration": "paper"}, ValueError, "calibration: 'paper' is for"),
        ({"mu": 0.1, "release": EXP}, TypeError, "release: must be a class of numeric"),
        ({"mu": 0.1, "momentum": -1.0}, ValueError, "momentum: must be zero or more"),
        ({"mu": 0.1, "dtype": np.int32}, TypeError, "dtype: must be float32 or float64"),
    ],
)
def test_bad_parameters_of_clients(parameters, error, message):
    with pytest.raises(error, match=message):
        FedSel(5, **{"epsilon": 1.0, "rounds": 2, **parameters})


def test_flat_is_the_sampled_numeric_mechanism():
    assert flat(30, epsilon=2.0, c=3, release=Duchi) == Duchi(epsilon=2.0, features=30, spend="sample", k=3)
    with pytest.raises(ValueError, match="c: must be between 1 and 30"):
        flat(30, epsilon=2.0, c=31)


def test_compressed_recovers_what_the_projection_keeps():
    """At a large budget it is the orthogonal projection of the mean; without compression, the mean."""
    x = np.repeat(np.random.default_rng(5).normal(0.0, 0.1, (1, 8)), 2_000, axis=0)
    for q in (3, 8):
        mechanism = Compressed(8, compressed=q, epsilon=40.0, public_seed=11, c=q, bound=2.0)
        basis = mechanism.projection
        kept = x[0] @ basis @ np.linalg.pinv(basis)
        reports = mechanism.randomize(x, rng=1)
        np.testing.assert_allclose(mechanism.recover(reports), kept, atol=0.06)
        np.testing.assert_allclose(
            mechanism.decode(reports).mean(axis=0), mechanism.recover(reports), atol=1e-9
        )
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    np.testing.assert_array_equal(again.projection, mechanism.projection)
    assert mechanism.guarantee.record <= 40.0
    large = Compressed(2000, compressed=50, epsilon=1.0, public_seed=3).projection
    assert abs(large.mean()) < 5.0 * math.sqrt(1 / 50 / large.size)  # entries are N(0, 1/50)
    assert large.var() == pytest.approx(1 / 50, rel=0.03)
    for refused in (mechanism.estimate_mean, mechanism.variance):
        with pytest.raises(ValueError, match=r"unbiased|biased"):
            refused(reports)
    with pytest.raises(ValueError, match="compressed: must be between 2 and 8"):
        Compressed(8, compressed=9, epsilon=1.0, public_seed=1)
    with pytest.raises(ValueError, match="not finite"):
        mechanism.randomize(np.full((1, 8), np.nan))


def test_new_clients_of_the_same_mechanism() -> None:
    first = FedSel(5, epsilon=4.0, rounds=2, clients=3, mu=0.1, momentum=0.5)
    first.release(np.full((3, 5), 0.25), rng=1)
    other = first.fresh(2)
    assert other.stages is first.stages
    assert (other.guarantee, other.rounds, other.momentum) == (first.guarantee, 2, 0.5)
    assert other.released.tolist() == [0, 0]
    assert not other.state()["residual"].any()
    other.release(np.full((2, 5), 0.25), rng=1)
    assert first.released.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="clients"):
        first.fresh(0)
