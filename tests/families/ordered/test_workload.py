"""The design for a workload: unbiased answers, intervals that cover, refusals, pickles."""

from __future__ import annotations

import pickle
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp import WorkloadDesign
from bitldp.audit import audit

WORKLOADS: dict[str, dict[str, Any]] = {
    "ranges": {"workload": "ranges", "categories": 8},
    "cdf": {"workload": "cdf", "categories": 5},
    "moments": {"workload": "moments", "categories": 6},
    "histogram": {"workload": "histogram", "categories": ["a", "b", "c"]},
    "marginals": {"workload": "marginals", "categories": 6, "attributes": (3, 2)},
    "matrix": {"workload": [[1.0, -2.0, 0.5, 3.0], [0.0, 0.0, 1.0, 1.0]], "categories": 4},
    "one": {"workload": [[0, 1, 1, 0, 0]], "categories": 5},
}


@pytest.fixture(params=WORKLOADS, ids=list(WORKLOADS))
def given(request: pytest.FixtureRequest) -> dict[str, Any]:
    return WORKLOADS[request.param]


def test_letters_have_the_answers_as_their_mean_and_the_variance_is_theirs(given: dict[str, Any]) -> None:
    mechanism = WorkloadDesign(**given, epsilon=1.5)
    law = mechanism.probabilities()
    letters = mechanism.unbias(np.arange(law.shape[1]))
    np.testing.assert_allclose(law @ letters, mechanism.questions.T, atol=1e-9)
    variance = mechanism.variance(np.arange(len(law)))
    np.testing.assert_allclose(variance, law @ letters**2 - mechanism.questions.T**2, atol=1e-9)
    assert mechanism.mean_variance() == pytest.approx(variance.mean())
    assert mechanism.worst_variance() == pytest.approx(variance.max())
    assert mechanism.total_variance == pytest.approx(variance.mean(axis=0).sum())
    assert mechanism.certificate is not None
    assert mechanism.bound is not None
    assert mechanism.bound <= mechanism.total_variance <= mechanism.bound * (1.0 + 1e-5)
    assert mechanism.guarantee.holds
    assert mechanism.guarantee.record == pytest.approx(1.5, rel=1e-9)


def test_estimates(given: dict[str, Any]) -> None:
    mechanism = WorkloadDesign(**given, epsilon=4.0)
    size = mechanism.questions.shape[1]
    codes = np.random.default_rng(1).integers(0, size, 40_000) // 2
    x = codes if mechanism.labels is None else mechanism.labels[codes]
    truth = mechanism.questions @ (np.bincount(codes, minlength=size) / len(codes))
    reports = mechanism.randomize(x, rng=2)
    answers = mechanism.estimate(reports)
    assert (np.abs(answers.value - truth) <= 5.0 * answers.stderr + 1e-9).all()
    direct = mechanism.unbias(reports).mean(axis=0)
    np.testing.assert_allclose(answers.value, direct, atol=1e-9)
    low, high = answers.confidence_interval(0.999999)
    assert ((low <= truth + 1e-9) & (truth <= high + 1e-9)).all()
    chosen = answers[1:2] if len(truth) > 1 else answers[:1]
    np.testing.assert_array_equal(
        chosen.confidence_interval(0.999999)[0], low[1:2] if len(truth) > 1 else low
    )
    counts = mechanism.accumulator()
    counts.update(mechanism.randomize(x[:9], rng=3, output="packed"), output="packed", records=9)
    again = type(counts).from_json(counts.to_json(), mechanism)
    np.testing.assert_array_equal(again.estimate_answers().value, counts.estimate_answers().value)


def test_frequencies_and_other_questions_where_the_design_tells_them() -> None:
    mechanism = WorkloadDesign("ranges", categories=["xs", "s", "m", "l"], epsilon=4.0)
    sizes = np.array(["xs", "s", "m", "l"])[np.random.default_rng(1).integers(0, 4, 20_000) // 2]
    reports = mechanism.randomize(sizes, rng=1)
    shares = mechanism.estimate_frequencies(reports)
    assert shares.labels is not None
    assert shares.labels.tolist() == ["xs", "s", "m", "l"]
    assert abs(shares["xs"].value - 0.5) < 5.0 * float(shares["xs"].stderr)
    assert mechanism.estimate_frequencies(reports, project=True).value.sum() == pytest.approx(1.0)
    both = mechanism.estimate(reports, [[1, 1, 0, 0], [0, 0, 0, 5]])
    np.testing.assert_allclose(both.value, [shares.value[:2].sum(), 5.0 * shares.value[3]], atol=1e-12)
    few = WorkloadDesign([[0, 1, 1, 0, 0]], categories=5, epsilon=1.0)
    assert few.channel.outputs == 2
    codes = few.randomize(np.arange(5).repeat(20), rng=1)
    assert few.estimate(codes).value.shape == (1,)
    for ask in (lambda: few.estimate_frequencies(codes), lambda: few.estimate(codes, [[1, 0, 0, 0, 0]])):
        with pytest.raises(ValueError, match="WorkloadDesign: no unbiased decode exists of a question"):
            ask()
    assert few.influence(0.01) > 0.0


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["ranges", "moments"])
@pytest.mark.parametrize("n", [12, 600])
def test_intervals_cover(name: str, n: int) -> None:
    """Of 200 seeded repetitions, a 95 % interval holds the truth in 88.5 % at least: alpha 1e-4 an answer."""
    mechanism = WorkloadDesign(**WORKLOADS[name], epsilon=2.0)
    size = mechanism.questions.shape[1]
    chances = np.random.default_rng(5).dirichlet(np.ones(size))
    truth, held = mechanism.questions @ chances, np.zeros(len(mechanism.questions))
    rng = np.random.default_rng(6)
    for seed in range(200):
        x = rng.choice(size, n, p=chances)
        low, high = mechanism.estimate(mechanism.randomize(x, rng=seed)).confidence_interval(0.95)
        held += (low <= truth + 1e-9) & (truth <= high + 1e-9)
    assert held.min() >= 0.885 * 200


def test_at_epsilon_zero_reports_say_nothing() -> None:
    mechanism = WorkloadDesign("ranges", categories=4, epsilon=0.0)
    assert mechanism.guarantee.record == 0.0
    assert mechanism.randomize([0, 1, 2, 3], rng=1).shape == (4,)
    for ask in (mechanism.accumulator, mechanism.mean_variance, lambda: mechanism.unbias([0])):
        with pytest.raises(ValueError, match="no unbiased decode exists at epsilon 0"):
            ask()
    assert "unbiased" in mechanism._facts()["errors"]


def test_a_pickle_holds_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from bitldp.ordered import workload

    mechanism = WorkloadDesign("cdf", categories=8, epsilon=1.0)
    text = pickle.dumps(mechanism)
    monkeypatch.setattr(workload, "load_or_solve", None)
    again = pickle.loads(text)
    assert again == mechanism
    assert again.fingerprint() == mechanism.fingerprint()
    assert again.channel.weights() == mechanism.channel.weights()
    rebuild, (kind, parameters, tables) = mechanism.__reduce__()
    with pytest.raises(ValueError, match="stored table"):
        rebuild(kind, {**parameters, "epsilon": 0.5}, tables)
    with pytest.raises(ValueError, match="stored table"):
        rebuild(kind, {**parameters, "categories": 9}, tables)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workload": "range"}, "workload: must be"),
        ({"workload": [[1.0, 2.0]]}, r"workload: shape must be \(answers, 8\)"),
        ({"workload": [[1.0] * 8]}, "workload: every question has the same answer"),
        ({"workload": [[np.nan] * 8]}, "workload: must be finite"),
        ({"workload": [["a"] * 8]}, "workload: must be numbers"),
        ({"categories": 513}, "categories: must be at most 512"),
        ({"categories": 1}, "categories: must be"),
        ({"epsilon": 1e-4}, "epsilon: 0, or 0.001 to 20"),
        ({"epsilon": 21.0}, "epsilon: 0, or 0.001 to 20"),
        ({"workload": "marginals"}, "attributes: are needed"),
        ({"workload": "marginals", "attributes": (3, 2)}, "attributes: their product"),
        ({"attributes": (4, 2)}, "attributes: is for"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        WorkloadDesign(**{"workload": "ranges", "categories": 8, "epsilon": 1.0, **options})


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 8.0, 20.0])
def test_extreme_budgets(epsilon: float) -> None:
    mechanism = WorkloadDesign("ranges", categories=5, epsilon=epsilon)
    assert epsilon * (1.0 - 1e-9) <= mechanism.guarantee.record <= epsilon
    law = mechanism.probabilities()
    np.testing.assert_allclose(
        law @ mechanism.unbias(np.arange(law.shape[1])), mechanism.questions.T, atol=1e-8
    )


@pytest.mark.statistical
def test_the_audit_passes() -> None:
    result = audit(WorkloadDesign("ranges", categories=8, epsilon=2.0), n=40_000, rng=1)
    assert result.passed


class MembersUnprotected(WorkloadDesign):
    """One time in ten the report is the likeliest of the category."""

    def randomize(self, x: Any, **options: Any) -> Any:
        codes = super().randomize(x, **options)
        likely = self.probabilities().argmax(axis=1)[np.asarray(x)]
        return np.where(np.arange(codes.size).reshape(codes.shape) % 10 == 0, likely, codes).astype(
            codes.dtype
        )


@pytest.mark.statistical
def test_a_planted_fault_is_found() -> None:
    """The audit of a release that hands out more than its law, n = 40,000, seeded."""
    assert not audit(MembersUnprotected("ranges", categories=8, epsilon=0.5), n=40_000, rng=1).passed
    assert bitldp.WorkloadDesign is WorkloadDesign
