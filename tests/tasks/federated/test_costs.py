"""What a run says of itself: its noise beforehand, and local, shuffled and central costs at its end."""

from __future__ import annotations

import logging
import math
import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.accounting import account
from bitldp.amplification import (
    shuffled_central_epsilon,
    shuffled_histogram_central_epsilon,
    summed_central_epsilon,
)
from bitldp.federated import (
    DecodingStrategy,
    Layout,
    PrivateUpdateMod,
    RoundFailedError,
    UpdateCodec,
    central_costs,
    forecast,
    run_costs,
    run_in_process,
)
from bitldp.federated.server import costs
from bitldp.federated.server.costs import Attendance
from bitldp.sums import Count, SecureSum
from support.federated_app import CODEC, EPSILON, make_client, make_server

pytestmark = pytest.mark.filterwarnings("ignore::bitldp.federated.RunBudgetWarning")

DELTA = 1e-6


def run(rounds: int = 2, clients: int = 4, **options: Any) -> Any:
    strategy = DecodingStrategy(CODEC, **{"fraction_evaluate": 0.0, **options})
    mod = PrivateUpdateMod(CODEC, budget=EPSILON * 3, ledger="run", rng=1)
    return run_in_process(make_server(strategy, rounds), make_client(mod), clients).result


def planned(codec: UpdateCodec, size: int) -> Any:
    return codec.plan(Layout(("w",), ((size,),), ("<f8",)))


@pytest.mark.slow
def test_local_releases_add_up_and_an_accountant_may_do_better() -> None:
    mechanism = bitldp.Duchi(epsilon=0.1, features=3)
    found = run_costs([(mechanism, 100)], rounds=100, reports=10, delta=DELTA)
    basic, composed, *_ = found.costs
    assert basic.epsilon == account([(mechanism, 100)], delta=0.0, method="basic").epsilon
    assert composed.epsilon == account([(mechanism, 100)], delta=DELTA, method="pld").epsilon
    assert (basic.delta, composed.delta, found["local"]) == (0.0, DELTA, composed)


@pytest.mark.slow
def test_gaussian_rounds_compose_by_the_root_of_the_sum_of_squares() -> None:
    mechanism = bitldp.BallGaussian(20, epsilon=2.0, delta=1e-8)
    found = run_costs([(mechanism, 16)], rounds=16, reports=10, delta=DELTA)["local"]
    assert found.epsilon == account([(mechanism, 16)], delta=DELTA, method="pld").epsilon
    # 16 rounds are one of four times the mu: of noise of a quarter
    one = bitldp.BallGaussian(20, epsilon=found.epsilon, delta=DELTA)
    assert one.gdp_mu == pytest.approx(4.0 * mechanism.gdp_mu, rel=1e-3)
    assert found.epsilon < 16 * 2.0 / 2


def test_a_shuffled_round_has_the_bound_of_any_mechanism() -> None:
    mechanism = bitldp.Duchi(epsilon=1.0, features=3)
    found = run_costs([(mechanism, 1)], rounds=1, reports=100_000, delta=DELTA)
    direct = shuffled_central_epsilon(mechanism.guarantee.record, 100_000, DELTA)
    assert found["shuffled"].epsilon == pytest.approx(direct, rel=1e-9)
    assert found["shuffled"].epsilon >= direct
    assert found["summed"].epsilon == found["shuffled"].epsilon  # a sum is a function of them
    assert found["shuffled"].delta == DELTA


@pytest.mark.slow
def test_one_number_has_the_bounds_of_its_law() -> None:
    mechanism = bitldp.Duchi(epsilon=1.0)
    found = run_costs([(mechanism, 1)], rounds=1, reports=1000, delta=DELTA)
    assert found["shuffled"].epsilon == shuffled_histogram_central_epsilon(mechanism, 1000, DELTA)
    assert found["summed"].epsilon == summed_central_epsilon(mechanism, 1000, DELTA)
    assert found["summed"].epsilon <= found["shuffled"].epsilon < 1.0


@pytest.mark.slow
def test_several_rounds_compose_and_hold_at_their_delta() -> None:
    mechanism, rounds = bitldp.Duchi(epsilon=1.0, features=3), 5
    found = run_costs([(mechanism, rounds)], rounds=rounds, reports=100_000, delta=DELTA)["shuffled"]
    each = shuffled_central_epsilon(mechanism.guarantee.record, 100_000, DELTA / (2 * rounds))
    assert each < found.epsilon <= rounds * each * (1 + 1e-9)
    assert found.delta <= DELTA
    share = bitldp.Guarantee(each, each, each, each, DELTA / (2 * rounds))
    composed = account([(share, rounds)], delta=DELTA, method="pld").epsilon
    assert found.epsilon == pytest.approx(composed, rel=1e-9)


def test_no_cost_is_above_the_one_that_holds_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bounds that are poor: the accountant by moments for one round, and one of shuffled reports."""
    monkeypatch.setattr(costs, "_MOST_SYMBOLS", 0)
    monkeypatch.setattr(costs, "shuffled_central_epsilon", lambda *given: 9.0)
    found = run_costs([(bitldp.Duchi(epsilon=1.0, features=3), 1)], rounds=1, reports=1000, delta=DELTA)
    assert [each.model for each in found.costs] == ["local", "shuffled", "summed"]
    assert {each.epsilon for each in found.costs} == {bitldp.Duchi(epsilon=1.0, features=3).guarantee.record}
    monkeypatch.setattr(costs, "summed_central_epsilon", lambda *given: 0.5)
    found = run_costs([(bitldp.Duchi(epsilon=1.0), 1)], rounds=1, reports=1000, delta=DELTA)
    assert found["summed"].epsilon == found["shuffled"].epsilon < 0.5  # a sum is a function of the reports


@pytest.mark.parametrize(
    ("mechanism", "why"),
    [
        (bitldp.Duchi(epsilon=8.0, features=3), r"the bound needs .* = 691996 reports a round, got 1000"),
        (bitldp.BallGaussian(20, epsilon=2.0, delta=1e-8), "the bound is for releases without a delta"),
    ],
)
def test_where_a_bound_says_nothing_the_local_one_stands(mechanism: Any, why: str) -> None:
    found = run_costs([(mechanism, 1)], rounds=1, reports=1000, delta=DELTA)
    for model in ("shuffled", "summed"):
        assert found[model].epsilon == found["local"].epsilon
        assert found[model].delta == found["local"].delta
        with pytest.raises(AssertionError, match=why):
            raise AssertionError(found[model].method)


def test_secure_sums_are_central_and_their_shares_are_not() -> None:
    sums = SecureSum(Count(), epsilon=1.0, clients=40, floor=30, colluding=3)
    one, four = central_costs(sums, rounds=1, reports=38), central_costs(sums, rounds=4, reports=38)
    assert one["summed"].epsilon == sums.guarantee.central(38).epsilon
    assert one["local"].epsilon == sums.guarantee.local.epsilon
    assert four["summed"].epsilon == account([(sums, 4)], delta=sums.delta).epsilon
    assert four["local"].epsilon == pytest.approx(4 * sums.guarantee.local.epsilon)


def test_a_run_ends_with_its_costs(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    with caplog.at_level(logging.INFO, "flwr"):
        result = run(rounds=2)
    plan = planned(CODEC, 18)
    costs = result.costs
    assert (costs.rounds, costs.reports) == (2, 4)
    assert costs["local"].epsilon <= 2 * plan.mechanism.guarantee.record * (1 + 1e-9)
    assert costs.influence == pytest.approx(plan.mechanism.influence(0.25) * 0.5)
    for line in str(costs).splitlines():
        assert line in caplog.text
    assert "trusted: nobody" in str(costs)
    assert "two populations that differ in one client; trusted: a shuffler" in str(costs)
    assert str(costs) in repr(result)
    assert pickle.loads(pickle.dumps(result)).train_metrics_clientapp == result.train_metrics_clientapp


def test_a_run_that_ends_early_says_what_it_cost() -> None:
    with pytest.raises(RoundFailedError) as caught:
        run(rounds=5)  # the budget is that of three
    costs = caught.value.result.costs
    assert costs.rounds == 4  # asked in the one that failed, too
    assert costs["local"].epsilon > 3 * EPSILON * 0.99


def test_a_run_without_a_report_has_no_costs() -> None:
    mod = PrivateUpdateMod(CODEC, budget=1.0, ledger="run")
    strategy = DecodingStrategy(CODEC, fraction_evaluate=0.0)
    with pytest.raises(RoundFailedError) as caught:
        run_in_process(make_server(strategy, 1), make_client(mod), 3)
    assert caught.value.result.costs is None
    assert "Global Arrays" in repr(caught.value.result)


def test_a_cost_is_of_the_busiest_client_the_smallest_round_and_the_largest_share() -> None:
    mechanism, metric = bitldp.Duchi(epsilon=1.0, features=3), bitldp.Duchi(epsilon=0.5)
    plan, attendance = planned(UpdateCodec(mechanism, clip=2.0), 6), Attendance()  # of two records
    for nodes, reports, share in (([1, 2], 50, 0.02), ([1], 40, 0.05), ([1, 3], 60, 0.01)):
        attendance.asked(nodes)
        attendance.came(reports, share)
    found = attendance.costs(plan, {"accuracy": metric}, DELTA)
    assert (found.rounds, found.reports) == (3, 40)
    assert found.costs[0].epsilon == account([(mechanism, 6)], delta=0.0, method="basic").epsilon
    assert found.influence == pytest.approx(2.0 * mechanism.influence(0.05))
    for nodes in ([1, 2], [2]):
        attendance.judged(nodes)
    more = attendance.costs(plan, {"accuracy": metric}, DELTA)
    assert more.costs[0].epsilon == account([(mechanism, 6), (metric, 2)], delta=0.0, method="basic").epsilon


def test_evaluations_are_a_part_of_the_cost() -> None:
    metrics = {"accuracy": bitldp.Duchi(epsilon=0.5, interval=(0.0, 1.0))}
    mod = PrivateUpdateMod(CODEC, budget=100.0, ledger="run", metrics=metrics, rng=1)
    strategy = DecodingStrategy(CODEC, metrics=metrics)
    result = run_in_process(make_server(strategy, 2), make_client(mod), 3).result
    whole = account([(planned(CODEC, 18).mechanism, 2), (metrics["accuracy"], 2)], delta=0.0, method="basic")
    assert result.costs.costs[0].epsilon == whole.epsilon


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan])
def test_delta_is_checked(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        DecodingStrategy(CODEC, delta=delta)


# -- the noise beforehand


@pytest.mark.parametrize(
    "codec",
    [
        UpdateCodec(lambda d: bitldp.CrossPolytope(d, epsilon=8.0, radius=2.0), clip=0.5),
        UpdateCodec(lambda d: bitldp.Duchi(epsilon=60.0, features=d), clip=0.5, norm="linf"),
        UpdateCodec(lambda d: bitldp.Piecewise(epsilon=8.0, features=d, spend="sample"), clip=3.0),
        UpdateCodec(bitldp.Laplace(epsilon=1.0), clip=1.0),
        UpdateCodec(lambda d: bitldp.Duchi(epsilon=60.0, features=d), clip=0.5, rows=4),
    ],
    ids=["ball", "linf", "sampled", "numbers", "rows"],
)
@pytest.mark.statistical
def test_the_forecast_is_the_noise_of_a_round(codec: UpdateCodec) -> None:
    """2,000 reports of zeros; the sum of squares of 40 numbers is within 15 % at alpha below 1e-6."""
    plan, n = planned(codec, 40), 2000
    found = forecast(plan, clients=100, rounds=4)
    assert found is not None
    zeros = np.zeros((n * codec.rows, 40))
    values = plan.values(plan.codes(plan.clipped_rows(zeros), 7))
    longest = codec.clip * (math.sqrt(40) if codec.norm == "linf" else 1.0)
    seen = float(np.square(values).sum(axis=1).mean()) / longest**2
    assert found.variance == pytest.approx(seen, rel=0.15)
    assert found.ratio == pytest.approx(math.sqrt(found.variance / 100))
    assert found.ratio_of_all == pytest.approx(found.ratio / 2)
    assert found.hopeless == (found.variance > 400)
    again = forecast(plan, clients=found.needed, rounds=4)
    assert again is not None
    assert not again.hopeless


def test_a_mechanism_without_a_variance_has_no_forecast() -> None:
    plan = replace(planned(CODEC, 18), mechanism=SimpleNamespace(columns=18))
    assert forecast(plan, clients=3) is None


def test_a_hopeless_run_is_warned_of_before_its_first_round(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    with caplog.at_level(logging.INFO, "flwr"):
        run(rounds=1, clients=2)
    lines = [
        record for record in caplog.records if "Noise: 18 numbers from 2 clients a round" in record.message
    ]
    assert len(lines) == 1
    warned = [record for record in caplog.records if "cannot be expected to learn" in record.message]
    assert [record.levelname for record in warned] == ["WARNING"]
    first = next(i for i, record in enumerate(caplog.records) if "Aggregated MetricRecord" in record.message)
    assert caplog.records.index(warned[0]) < first
    caplog.clear()
    with caplog.at_level(logging.INFO, "flwr"):
        run(rounds=2, clients=9)
    assert "cannot be expected to learn" not in caplog.text
    assert caplog.text.count("Noise: ") == 1
