"""Malicious clients of this server, and what they can move: in training, in evaluation, by their weights.

The malicious server of these clients is in `test_evaluation_server`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import DecodingStrategy, PrivateUpdateMod, run_in_process, to_record
from bitldp.federated.client.mod import REPORT
from flwr.app import MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

CODEC = {"mechanism": lambda d: bitldp.Duchi(epsilon=2.0, features=d), "clip": 1.0}
METRICS = {"accuracy": bitldp.Duchi(epsilon=2.0, interval=(0.0, 1.0))}
LETTERS = [float(each) for each in METRICS["accuracy"].decode(np.array([[0], [1]])).ravel()]
HONEST = 9
LIAR = 2
"""Node of the one client that lies."""


def run(lie, rounds: int = 2, examples=1, **options):
    """Run an app whose client `LIAR` sends what `lie` makes of its honest reply, and of the round."""
    mod = PrivateUpdateMod(**CODEC, budget=1000.0, metrics=METRICS, rng=1, examples=examples)

    def lying(message, context, call_next):
        reply = call_next(message, context)
        if context.node_id != LIAR:
            return reply
        return lie(reply, message.content["config"]["server-round"])

    client, server = ClientApp(mods=[lying, mod]), ServerApp()

    def work(message, context):
        from flwr.app import Message

        metrics = MetricRecord({"accuracy": 0.75, "num-examples": 30})
        return Message(RecordDict({"arrays": message.content["arrays"], "m": metrics}), reply_to=message)

    client.train()(work)
    client.evaluate()(work)

    @server.main()
    def main(grid, context):
        strategy = DecodingStrategy(**CODEC, **{"metrics": METRICS, **options})
        strategy.start(grid, to_record({"w": np.zeros(3)}), num_rounds=rounds, timeout=60)

    return run_in_process(server, client, HONEST + 1).result


def kind_of(reply):
    return reply.metadata.message_type.split(".")[0]


LIES = {
    "a negative number of examples": {"num-examples": -99},
    "no number of examples": {"num-examples": math.nan},
    "another metric": {"loss": 0.5},
    "a large number": {"accuracy": 1e300},
    "no number": {"accuracy": math.nan},
    "infinity": {"accuracy": math.inf},
    "a value that nobody releases": {"accuracy": 0.75},
    "a list": {"accuracy": [0.5, 0.5]},
    "an integer": {"accuracy": 1},
    "many examples": {"num-examples": 10**15},
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.slow
def test_an_evaluation_counts_what_its_mechanism_releases_and_nothing_else(lie: str) -> None:
    def lying(reply, _):
        if kind_of(reply) == "evaluate":
            reply.content["metrics"] = MetricRecord({**reply.content["metrics"], **LIES[lie]})
        return reply

    honest = run(lambda reply, _: reply).evaluate_metrics_clientapp
    for turn, metrics in run(lying).evaluate_metrics_clientapp.items():
        ignored = set(LIES[lie]) == {"num-examples"}  # which weighs nothing
        assert metrics["rejected"] == (not ignored)
        assert metrics["reports"] == HONEST + ignored
        if ignored:
            assert dict(metrics) == dict(honest[turn])
        assert LETTERS[0] <= metrics["accuracy"] <= LETTERS[1]
        assert 0.0 < metrics["stderr-accuracy"] < 1.0


def test_an_evaluation_without_metrics_or_with_two_records_of_them_is_rejected() -> None:
    def silent(reply, _):
        if kind_of(reply) == "evaluate":
            del reply.content["metrics"]
        return reply

    def double(reply, _):
        if kind_of(reply) == "evaluate":
            reply.content["more"] = MetricRecord({"accuracy": LETTERS[1]})
        return reply

    for lie in (silent, double):
        for metrics in run(lie).evaluate_metrics_clientapp.values():
            assert (metrics["reports"], metrics["rejected"]) == (HONEST, 1)


def test_a_letter_of_the_liars_choice_moves_the_mean_by_its_share() -> None:
    def lying(reply, _):
        if kind_of(reply) == "evaluate":
            reply.content["metrics"] = MetricRecord({"accuracy": LETTERS[1], "num-examples": 10**15})
        return reply

    honest, moved = (run(lie).evaluate_metrics_clientapp for lie in (lambda reply, _: reply, lying))
    for turn in honest:
        step = (LETTERS[1] - LETTERS[0]) / (HONEST + 1)
        change = moved[turn]["accuracy"] - honest[turn]["accuracy"]
        assert min(abs(change), abs(change - step)) < 1e-12


def test_a_report_of_an_earlier_round_is_refused() -> None:
    kept = {}

    def replay(reply, turn):
        if kind_of(reply) == "train":
            kept.setdefault("first", reply.content["arrays"])
            reply.content["arrays"] = kept["first"]
        return reply

    result = run(replay, rounds=3, fraction_evaluate=0.0)
    rejected = [result.train_metrics_clientapp[turn].get("rejected-round", 0) for turn in (1, 2, 3)]
    assert rejected == [0, 1, 1]


def test_nobody_becomes_the_mean_by_stating_many_examples() -> None:
    def lying(reply, _):
        if kind_of(reply) == "train":
            reply.content["metrics"] = MetricRecord({"num-examples": 10**15})
        return reply

    options = {"weighting": "examples", "max_examples": 100, "fraction_evaluate": 0.0}
    for metrics in run(lying, examples=100, **options).train_metrics_clientapp.values():
        assert metrics["largest-share"] == 1 / (HONEST + 1)
    for metrics in run(lying, examples=1, **options).train_metrics_clientapp.values():
        assert metrics["largest-share"] == 100 / (100 + HONEST)
        assert metrics["stderr"] > 0.1
    for stated in (0, -1, math.nan, math.inf, 3.5):

        def strange(reply, _, stated=stated):
            if kind_of(reply) == "train":
                reply.content["metrics"] = MetricRecord({"num-examples": stated})
            return reply

        for metrics in run(strange, examples=100, rounds=1, **options).train_metrics_clientapp.values():
            assert (metrics["reports"], metrics["rejected-examples"]) == (HONEST, 1)


def test_the_bytes_of_a_liar_are_its_own_report() -> None:
    """A liar who draws its report anew moves the mean by no more than a report can."""

    def lying(reply, _):
        if kind_of(reply) == "train":
            data = bytearray(reply.content["arrays"][REPORT].data)
            data[-1] ^= 0xFF
            reply.content["arrays"][REPORT].data = bytes(data)
        return reply

    for metrics in run(lying, fraction_evaluate=0.0).train_metrics_clientapp.values():
        assert (metrics["reports"], metrics["rejected-checksum"]) == (HONEST, 1)
