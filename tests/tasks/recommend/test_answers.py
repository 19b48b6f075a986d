"""The answer in one line: what is best, by how much, and what was left out; mechanisms that others bring."""

from __future__ import annotations

import json
import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import bitldp
import numpy as np
import pytest
from bitldp import recommend
from bitldp.channels import Matrix
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import whole
from bitldp.privacy import Guarantee
from bitldp.recommend.measure import measured
from bitldp.recommend.question import Norm
from bitldp.release.base import Interval, Release
from bitldp.release.window import windowed
from bitldp.sums import Histogram, Number, SecureSum, Vector


@dataclass(frozen=True, eq=False, repr=False)
class GridResponse(Numeric):
    """Randomized response of a number on a grid, as CONTRIBUTING.md has it: nobody's but the test's."""

    _: KW_ONLY
    bits: Annotated[int, whole(1, 8)] = 3

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return windowed(1 << self.bits, 1, epsilon, interval)


@dataclass(frozen=True, eq=False, repr=False)
class Table(Mechanism):
    """A mechanism that says its law, and no variance."""

    law: Any
    _: KW_ONLY
    epsilon: float

    def _build(self) -> None:
        self._set(_guarantee=Guarantee.judge(self.epsilon, (self.epsilon,) * 3))

    @property
    def _report_parts(self) -> tuple[tuple[int, int], ...]:
        return ((1, 3),)

    def probabilities(self) -> Any:
        return self.law

    def accumulator(self) -> Any:
        raise NotImplementedError

    def decode(self, reports: Any) -> Any:
        raise NotImplementedError


# -- the first line


def test_the_first_line_says_what_is_best_and_by_how_much() -> None:
    advice = recommend("frequency", epsilon=1.0, categories=6)
    first, second, *_ = advice.rows
    less = 100.0 * (1.0 - first.mean / second.mean)
    assert (
        advice.answer
        == f"{first.name}: mean {first.mean:.4g} in 6 bits, {less:.2g} % less than {second.name}"
    )
    assert str(advice).splitlines()[0] == advice.answer
    shorter = recommend("frequency", epsilon=2.0, categories=1000)
    assert shorter.answer == "BlockDesign: mean 0.7248 in 13 bits, 0.44 % above SubsetSelection in 1,000 bits"
    assert recommend("label", epsilon=1.0, categories=2).answer == "GRR: mean 0.2689 in 1 bit, as WarnerRR"
    far = recommend("frequency", epsilon=1.0, categories=1000, bits=20, criterion="worst")
    assert "in 11 bits; " in far.answer
    assert "the next, GRR, has " in far.answer


@pytest.mark.slow
def test_reports_above_four_kilobytes_are_only_given_where_they_are_asked_for() -> None:
    """OLH is as good as OUE for words; where nothing short is, what is long is named."""
    words = recommend("top", epsilon=6.0, size=10**6)
    assert isinstance(words.mechanism, bitldp.OLH)
    assert words.mechanism.report_bits <= 64
    listed = recommend("top", epsilon=6.0, size=10**6, bits=10**6)
    assert listed.rows[0].mean >= 0.999 * words.rows[0].mean
    many = recommend("frequency", epsilon=1.0, categories=10**8)
    assert many.rows[0].bits <= 1 << 15
    why = "takes 100,000,000 bits, more than 32,768; bits=100000000 allows it"
    assert many.answer.endswith(f"; OUE would have 3.683, but {why}")
    (left,) = many.left_out
    assert left.would is not None
    assert left.would.mean == bitldp.OUE(10**8, epsilon=1.0).mean_variance()
    assert isinstance(recommend("frequency", epsilon=1.0, categories=10**8, bits=10**8).mechanism, bitldp.OUE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "given"),
    [
        ("mean", {"features": 50_000}),
        ("vector", {"features": 50_000, "norm": "linf"}),
        ("vector", {"features": 50_000, "norm": "l1"}),
        ("frequency", {"categories": 50_000}),
        ("frequency", {"categories": [2] * 500}),
        ("record", {"categories": [2, 40_000]}),
        ("range", {"size": 50_000}),
        ("top", {"size": 10**6}),
    ],
)
def test_no_task_hands_out_more(task: Any, given: Any) -> None:
    for row in recommend(task, epsilon=4.0, **given).rows:
        assert row.mechanism is None or row.bits <= 1 << 15


def test_a_winner_that_bits_exclude_is_named() -> None:
    advice = recommend("frequency", epsilon=1.0, categories=64, bits=8)
    assert "BlockDesign would have" in advice.answer or "SubsetSelection would have" in advice.answer
    (best,) = advice.left_out
    assert best.would is not None
    assert best.mechanism is None
    assert best.would.mean == min(row.would.mean for row in advice.rows if row.would is not None)
    nothing = recommend("frequency", epsilon=1.0, categories=64, bits=2)
    assert nothing.answer.startswith("no mechanism fits; GRR: takes 6 bits, more than 2")
    assert nothing.proof.startswith("no lower bound")


def test_what_nobody_measured_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        "not compared: OptimalUtility (more than 150"
        in recommend("point", epsilon=1.0, candidates=400).answer
    )
    words = recommend("top", epsilon=1.0, size=1 << 64).answer
    assert "HeavyHitters, steps of 12 bits would have 22.15, but the server searches for minutes" in words
    monkeypatch.setattr("bitldp.base.errors.missing", list)
    without = recommend("point", epsilon=1.2345, candidates=7)
    assert "not compared: OptimalUtility (" in without.answer
    assert 'pip install "bitldp[design]"' in without.answer
    nothing = recommend("frequency", epsilon=1.0, categories=5)  # what is for others is not left out
    assert not nothing.left_out


def test_answers_of_yes_and_no_are_released_together() -> None:
    """Sixteen questions at 8: a fifth of the variance of one of them that is sampled."""
    advice = recommend("frequency", epsilon=8.0, categories=[2] * 16)
    rows = {row.name: row for row in advice.rows}
    assert advice.rows[0].mean < 0.3112
    assert rows["GRR"].mean > 1.47
    assert advice.rows[0].bits == 75
    assert recommend("frequency", epsilon=8.0, categories=[2] * 16, bits=16).rows[0].mean < 0.3233
    whole = rows["HypercubePrivUnit, yes or no"]
    assert whole.mean == pytest.approx(
        (bitldp.HypercubePrivUnit(16, epsilon=8.0).worst_variance() - 1.0) / 4.0
    )
    assert "whose means are the shares of 1" in whole.why
    answers = (np.random.default_rng(1).random((20_000, 16)) < 0.3).astype(np.int64)
    best = advice.mechanism
    shares = best.estimate_frequencies(best.randomize(answers, rng=2))
    assert len(shares) == 16
    for each in shares:
        assert abs(each.value[1] - 0.3) < 6.0 * math.sqrt(0.6 / 20_000)
    other: Any = whole.mechanism
    means = other.estimate_mean(other.randomize(answers, rng=3))
    assert np.abs(means.value - 0.3).max() < 6.0 * math.sqrt(0.6 / 20_000)


@pytest.mark.slow
def test_the_answer_as_json() -> None:
    advice = recommend("frequency", epsilon=1.0, categories=10**6, bits=20)
    told = json.loads(json.dumps(advice.to_dict()))
    assert told["answer"] == advice.answer
    assert told["proof"] == advice.proof
    assert advice.bound is not None
    assert told["bound"]["value"] == advice.bound.value
    assert [row["name"] for row in told["rows"]] == [row.name for row in advice.rows]
    assert told["rows"][0]["parameters"]["categories"] == 10**6
    assert told["rows"][0]["mean"] == advice.rows[0].mean
    assert any("would" in row for row in told["rows"])
    assert recommend("mean", epsilon=1.0).to_dict()["bound"] is None


# -- what others bring


def test_a_mechanism_of_ones_own() -> None:
    own = GridResponse(epsilon=4.0, bits=3)
    advice = recommend(
        "mean", epsilon=4.0, extra=[own, lambda epsilon: GridResponse(epsilon=epsilon, bits=4)]
    )
    rows = {row.name: row for row in advice.rows}
    assert rows["extra[0], GridResponse"].mechanism is own
    assert rows["extra[0], GridResponse"].mean == own.mean_variance()
    assert rows["extra[1], <lambda>"].mean == GridResponse(epsilon=4.0, bits=4).mean_variance()
    again = recommend(
        "mean", epsilon=4.0, extra=[lambda epsilon: GridResponse(epsilon=epsilon)], collections=4
    )
    assert any("extra[0]" in row.name for row in again.rows)


def test_the_best_may_be_ones_own() -> None:
    """A mechanism that keeps its budget and is better is first."""
    better = bitldp.SubsetSelection(6, epsilon=1.0)
    advice = recommend("frequency", epsilon=1.0, categories=6, extra=[better], bits=6)
    assert {advice.rows[0].name, advice.rows[1].name} == {"SubsetSelection", "extra[0], SubsetSelection"}


@pytest.mark.parametrize("task", ["frequency", "top", "range", "label", "point"])
def test_tables(task: Any) -> None:
    """A bare table is measured as the mechanism that it is the law of."""
    grr = bitldp.GRR(7, epsilon=1.0)
    table = Matrix(grr.probabilities() * (1.0 - 1e-9) + 1e-9 / 7.0)
    named = {"frequency": "categories", "label": "categories", "point": "candidates"}.get(task, "size")
    advice = recommend(
        task, epsilon=1.0, **{named: 7}, extra=[table, Table(grr.probabilities(), epsilon=1.0)]
    )
    rows = {row.name: row for row in advice.rows}
    if task == "point":
        other = rows["GRR (BRR, m = 1)"]
        assert rows["extra[0], Matrix"].mean == pytest.approx(other.mean, rel=1e-6)
        return
    mean, worst = measured(task, grr)
    for name in ("extra[0], Matrix", "extra[1], Table"):
        assert rows[name].mean == pytest.approx(mean, rel=1e-6)
        if task != "top":
            assert rows[name].worst == pytest.approx(worst, rel=1e-6)
    assert rows["extra[0], Matrix"].bits == 3


@pytest.mark.parametrize(
    ("brought", "why"),
    [
        (bitldp.GRR(6, epsilon=2.0), "has the exact epsilon 2, above 1"),
        (bitldp.GRR(5, epsilon=1.0), "is for 5 categories, not for 6"),
        (bitldp.GRR(6, epsilon=1.0, features=2), "is for records of 2, not of 1"),
        (bitldp.Gaussian(epsilon=1.0, delta=1e-6), "has a delta, and the comparison is of pure epsilon"),
        (Matrix(bitldp.GRR(5, epsilon=0.9).probabilities()), "a table of 6 rows is needed"),
        (Matrix(np.full((6, 6), 1.0 / 6.0)), "has no unbiased decode: its rows depend on each other"),
        (lambda epsilon: 7, "makes no mechanism and no Matrix, but a int"),
    ],
)
def test_what_does_not_fit_says_why(brought: Any, why: str) -> None:
    rows = recommend("frequency", epsilon=1.0, categories=6, extra=[brought]).rows
    (row,) = [row for row in rows if row.name.startswith("extra[0]")]
    assert row.mechanism is None
    assert why in row.why


@pytest.mark.parametrize(
    ("extra", "message"),
    [("GRR", "extra: must be a sequence"), (3, "extra: must be a sequence"), ([3], r"extra\[0\]: must be a")],
)
def test_what_is_no_mechanism_is_refused(extra: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        recommend("mean", epsilon=1.0, extra=extra)


def test_a_secure_sum_is_told_where_the_clients_are() -> None:
    alone = recommend("frequency", epsilon=1.0, categories=10)
    told = recommend("frequency", epsilon=1.0, categories=10, users=10_000)
    assert alone.in_sum is None
    assert "in_sum" not in alone.to_dict()
    assert told.in_sum is not None
    assert told.in_sum.local == pytest.approx(math.sqrt(told.rows[0].mean / 10_000))
    secure = SecureSum(Histogram(10), epsilon=1.0, clients=10_000)
    assert told.in_sum.stderr == pytest.approx(secure.stderr() / 10_000)
    assert "where only the total of 10,000 clients is seen (bitldp.sums, central epsilon 1" in str(told)
    assert told.to_dict()["in_sum"]["clients"] == 10_000
    assert [row.name for row in told.rows] == [row.name for row in alone.rows]


@pytest.mark.slow
def test_a_secure_sum_of_numbers_counts_the_dither() -> None:
    few = recommend("mean", epsilon=1.0, interval=(0.0, 10.0), users=500).in_sum
    many = recommend("mean", epsilon=1.0, interval=(0.0, 10.0), users=1 << 20).in_sum
    assert few is not None
    assert many is not None
    assert few.stderr == pytest.approx(10.0 * math.sqrt(2.0) / 500, rel=1e-3)
    assert many.stderr > 10.0 * math.sqrt(2.0) / (1 << 20)


@pytest.mark.slow
def test_a_secure_sum_of_numbers_has_the_errors_of_its_estimate() -> None:
    advice = recommend("mean", epsilon=1.0, interval=(0.0, 10.0), users=500).in_sum
    secure = SecureSum(Number((0.0, 10.0), 1023), epsilon=1.0, clients=500)
    assert advice is not None
    estimate = secure.decode(np.zeros(1, secure.dtype), 500)
    assert advice.stderr == pytest.approx(float(estimate.stderr), rel=1e-9)
    assert advice.epsilon == secure.guarantee.central(method="certificate").epsilon


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_secure_sum_of_vectors_has_the_errors_of_its_estimate(norm: Norm) -> None:
    advice = recommend("vector", epsilon=4.0, features=30, norm=norm, users=2_000)
    secure = SecureSum(Vector(30, math.sqrt(30.0) if norm == "linf" else 1.0), epsilon=4.0, clients=2_000)
    estimate = secure.decode(np.zeros(secure.kind.coordinates, secure.dtype), 2_000)
    told = advice.in_sum
    assert told is not None
    assert told.stderr == pytest.approx(float(np.linalg.norm(estimate.stderr)), rel=1e-9)
    assert told.local == pytest.approx(math.sqrt(advice.rows[0].mean / 2_000))
    assert told.stderr < told.local
    assert (told.epsilon, told.delta) == secure.guarantee.central(method="certificate")[:2]
    assert recommend("vector", epsilon=4.0, features=30, norm=norm).in_sum is None


def test_a_class_that_needs_more_than_epsilon_is_told_of_in_its_row() -> None:
    rows = recommend("frequency", epsilon=1.0, categories=6, extra=[bitldp.GRR]).rows
    (row,) = [row for row in rows if row.name == "extra[0], GRR"]
    assert not row.fits
    assert "is not made from epsilon= alone; give a mechanism" in row.why
