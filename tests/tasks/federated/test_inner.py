"""Flower's own strategies around private reports: those that use the mean alone, and no other."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import (
    DecodingStrategy,
    PrivateUpdateMod,
    UpdateCodec,
    from_record,
    run_in_process,
    to_record,
)
from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import strategy as flower
from support.federated_app import CODEC, initial, make_client, make_server

pytestmark = pytest.mark.filterwarnings("ignore::bitldp.federated.RunBudgetWarning")

QUIET: dict[str, Any] = {"fraction_evaluate": 0.0, "min_available_nodes": 2}
CODES = UpdateCodec(
    lambda size: bitldp.Duchi(epsilon=12.0, features=size), clip=0.5, norm="linf", integers="keep"
)


def run(
    server: Any, rounds: int = 1, codec: UpdateCodec = CODEC, arrays: Any = None
) -> dict[str, np.ndarray]:
    """Return the model of a run; `rng` and clients are the same each time, and so are their reports."""
    mod = PrivateUpdateMod(CODEC, budget=1000.0, ledger="run", rng=3)
    found = run_in_process(make_server(server, rounds), make_client(mod), 4).result
    return from_record(found.arrays)


class Seen(DecodingStrategy):
    """Keeps the model that the mean update makes, as the inner strategy sees it."""

    def updated(self, layout: Any, mean: Any) -> Any:
        self.seen = super().updated(layout, mean)
        return self.seen


def moved(server: Any) -> dict[str, np.ndarray]:
    return {name: array - initial()[name] for name, array in run(server).items()}


def mean_update() -> dict[str, np.ndarray]:
    return moved(DecodingStrategy(CODEC, fraction_evaluate=0.0))


def same(one: Any, other: Any, tolerance: float = 1e-6) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_allclose(array, other[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("inner", "step"),
    [
        (flower.FedAvg(**QUIET), lambda d: d),
        (flower.FedProx(**QUIET, proximal_mu=0.1), lambda d: d),
        (flower.FedAvgM(**QUIET, server_learning_rate=0.5, server_momentum=0.9), lambda d: 0.5 * d),
        (
            flower.FedAdagrad(**QUIET, eta=0.3, tau=0.01),
            lambda d: 0.3 * d / (np.abs(d) + 0.01),
        ),
        (
            flower.FedAdam(**QUIET, eta=0.3, tau=0.01, beta_1=0.9, beta_2=0.99),
            lambda d: 0.3 * np.sqrt(1 - 0.99**2) / (1 - 0.9**2) * 0.1 * d / (np.sqrt(0.01 * d * d) + 0.01),
        ),
        (
            flower.FedYogi(**QUIET, eta=0.3, tau=0.01, beta_1=0.9, beta_2=0.99),
            lambda d: 0.3 * 0.1 * d / (np.sqrt(0.01 * d * d) + 0.01),
        ),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, flower.Strategy) else "",
)
def test_each_strategy_of_the_mean_makes_its_own_step(inner: Any, step: Any) -> None:
    """By the formulas of Reddi et al., ICLR 2021, and of SGD with momentum, in the first round."""
    server = Seen(inner, mechanism=CODEC)
    made = moved(server)
    mean = {name: array - initial()[name] for name, array in server.seen.items()}
    assert all(np.abs(array).max() > 0.01 for array in mean.values() if array.size)
    same(made, {name: step(array.astype(float)) for name, array in mean.items()}, 1e-5)


def test_momentum_is_kept_between_rounds() -> None:
    inner = flower.FedAvgM(**QUIET, server_momentum=0.9)
    plain = run(DecodingStrategy(CODEC, fraction_evaluate=0.0), 3)
    assert not np.allclose(plain["bias"], run(DecodingStrategy(inner, mechanism=CODEC), 3)["bias"])
    assert inner.momentum_vector is not None


def test_the_rate_scales_what_the_inner_strategy_sees() -> None:
    half = moved(DecodingStrategy(flower.FedAvg(**QUIET), mechanism=CODEC, rate=0.5))
    same(half, {name: array / 2 for name, array in mean_update().items()})


def test_integers_stay_as_they_are_and_dtypes_are_kept() -> None:
    model = {**initial(), "counter": np.array([7, 8]), "half": np.zeros(3, np.float16)}

    def train(message: Message, context: Any) -> Message:
        arrays = {name: array + 1 for name, array in from_record(message.content["arrays"]).items()}
        metrics = MetricRecord({"num-examples": 1})
        return Message(RecordDict({"arrays": to_record(arrays), "metrics": metrics}), reply_to=message)

    client = ClientApp(mods=[PrivateUpdateMod(CODES, budget=1000.0, ledger="run", rng=3)])
    client.train()(train)
    server = DecodingStrategy(flower.FedAdam(**QUIET), mechanism=CODES)
    made = from_record(run_in_process(make_server(server, 1, model), client, 4).result.arrays)
    assert {name: array.dtype for name, array in made.items()} == {n: a.dtype for n, a in model.items()}
    np.testing.assert_array_equal(made["counter"], [7, 8])


def test_the_inner_strategy_configures_the_round() -> None:
    seen = []

    class Watched(flower.FedProx):
        def configure_train(self, server_round: int, *args: Any) -> Any:
            messages = list(super().configure_train(server_round, *args))
            seen.extend(message.content["config"]["proximal-mu"] for message in messages)
            return messages

    inner = Watched(fraction_evaluate=0.0, min_available_nodes=2, fraction_train=0.5, proximal_mu=0.25)
    run(DecodingStrategy(inner, mechanism=CODEC, mean_only=True, seed=1))
    assert seen == [0.25, 0.25]


class Own(flower.FedAvg):
    """A strategy of a user's, of which nobody knows what it needs."""


class Started(flower.FedAvg):
    def start(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("was not to be called")


NOISED = flower.DifferentialPrivacyServerSideFixedClipping(flower.FedAvg(), 1.0, 1.0, 4)


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (flower.FedMedian(), "inner: FedMedian takes a median of the clients' updates"),
        (flower.FedTrimmedAvg(), "inner: FedTrimmedAvg leaves out"),
        (flower.Krum(), "inner: Krum chooses"),
        (flower.MultiKrum(num_malicious_nodes=0, num_nodes_to_select=1), "inner: MultiKrum chooses"),
        (flower.Bulyan(num_malicious_nodes=0), "inner: Bulyan chooses"),
        (flower.QFedAvg(client_learning_rate=0.1), "inner: QFedAvg weighs"),
        (flower.FedXgbBagging(), "inner: FedXgbBagging joins"),
        (flower.FedXgbCyclic(), "inner: FedXgbCyclic hands"),
        (NOISED, "clips and adds noise to updates, which are private already"),
        (DecodingStrategy(CODEC), "inner: DecodingStrategy decodes reports itself"),
        (Own(), "inner: Own may need each client's update by itself; .* mean_only=True"),
        (Started(), "inner: Started has a `start` of its own, which would be skipped"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, flower.Strategy) else "",
)
def test_a_strategy_that_needs_more_than_the_mean_is_refused(inner: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        DecodingStrategy(inner, mechanism=CODEC)
    if not isinstance(inner, Own):  # nor by saying so
        with pytest.raises(TypeError, match=message):
            DecodingStrategy(inner, mechanism=CODEC, mean_only=True)


def test_one_s_own_strategy_is_taken_at_its_word() -> None:
    same(moved(DecodingStrategy(Own(**QUIET), mechanism=CODEC, mean_only=True)), mean_update())


@pytest.mark.parametrize("bases", [(DecodingStrategy, flower.FedAdam), (flower.FedAdam, DecodingStrategy)])
def test_a_second_strategy_among_the_bases_is_refused(bases: tuple[type, ...]) -> None:
    with pytest.raises(TypeError, match=r"Both: one of DecodingStrategy and FedAdam would be skipped; use"):
        type("Both", bases, {})


def test_a_base_that_only_configures_is_taken() -> None:
    """`FedProx` has no step of its own on the server: what it configures is used."""

    class Both(DecodingStrategy, flower.FedProx):
        pass

    assert Both(CODEC, proximal_mu=0.5).proximal_mu == 0.5


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, "mechanism: give it once"),
        ((CODEC,), {"mechanism": CODEC}, "mechanism: give it once"),
        ((flower.FedAdam(),), {}, "mechanism: needed beside an inner strategy"),
        (
            (flower.FedAdam(),),
            {"mechanism": CODEC, "fraction_train": 0.5},
            "fraction_train: give it to FedAdam",
        ),
        ((CODEC,), {"mean_only": True}, "mean_only: needs an inner strategy"),
    ],
)
def test_what_does_not_fit(arguments: Any, named: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        DecodingStrategy(*arguments, **named)


CNN = {"c1": (32, 1, 3, 3), "c2": (64, 32, 3, 3), "f1": (130, 9216), "b1": (130,), "f2": (10, 130)}
"""Shapes of a network of 1.2 million numbers."""


@pytest.mark.slow
def test_a_network_of_a_million_numbers_runs_with_adam(caplog: pytest.LogCaptureFixture) -> None:
    codec = UpdateCodec(lambda size: bitldp.CrossPolytope(size, epsilon=8.0), clip=1.0)
    model = {name: np.zeros(shape, np.float32) for name, shape in CNN.items()}
    count = sum(array.size for array in model.values())
    assert count >= 1_200_000
    client = ClientApp(mods=[PrivateUpdateMod(codec, budget=8.0, ledger="run")])

    @client.train()
    def train(message: Message, context: Any) -> Message:
        arrays = {name: array + np.float32(0.01) for name, array in model.items()}
        content = {"arrays": to_record(arrays), "m": MetricRecord({"num-examples": 1})}
        return Message(RecordDict(content), reply_to=message)

    logging.getLogger("flwr").propagate = True
    server = DecodingStrategy(flower.FedAdam(**QUIET, eta=0.01), mechanism=codec)
    with caplog.at_level(logging.INFO, "flwr"):
        result = run_in_process(make_server(server, 1, model), client, 3).result
    made = from_record(result.arrays)
    assert {name: array.shape for name, array in made.items()} == CNN
    assert all(0.0 < np.abs(array).max() < 0.1 for array in made.values())
    assert result.train_metrics_clientapp[1]["bytes-up"] < 3 * 150
    assert f"Noise: {count:,} numbers from 3 clients" in caplog.text
    assert "cannot be expected to learn" in caplog.text
