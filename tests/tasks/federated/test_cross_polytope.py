"""Updates of an l2 ball through the cross-polytope: a run has the mean squared error that was said."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import (
    DecodingStrategy,
    Layout,
    PrivateUpdateMod,
    UpdateCodec,
    from_record,
    run_in_process,
    to_record,
)
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from support.federated_app import make_server

SIZE, CLIP = 768, 2.0
MODEL = {"weight": np.zeros((64, 11)), "bias": np.zeros(64)}
CODEC = UpdateCodec(lambda size: bitldp.CrossPolytope(size, epsilon=8.0, radius=CLIP), clip=CLIP, norm="l2")
GOAL = 104.0 * CLIP**2


def update(length: float) -> np.ndarray:
    x = np.random.default_rng(4).normal(size=SIZE)
    return x * (length / np.linalg.norm(x))


@pytest.mark.slow
@pytest.mark.parametrize("length", [0.0, 0.7, CLIP, 50.0])
def test_a_codec_measures_the_variance_that_was_said(length):
    """1,200 reports of one update, 5 standard errors (6e-7): clipped to the ball where it is longer."""
    plan, x = CODEC.plan(Layout.of(MODEL)), update(length)
    truth = x * min(1.0, CLIP / max(length, 1e-9))
    rng = np.random.default_rng(int(length * 10))
    worth = np.array([plan.decode(plan.perturb(x, rng=rng)) for _ in range(1_200)])
    squares = np.square(worth - truth).sum(axis=1)
    said = plan.mechanism.total_variance(length)
    assert said <= GOAL
    assert abs(squares.mean() - said) < 5.0 * squares.std() / np.sqrt(1_200) + 1e-12 * said
    # 11 bits of a coordinate and 32 of its rotation, beside the header
    assert plan.header.payload == 2 + 4
    assert plan.mechanism.guarantee.record <= 8.0


@pytest.mark.slow
@pytest.mark.parametrize("length", [0.0, 0.7, CLIP])
def test_a_small_model_by_a_random_codebook(length):
    """1,200 reports of one update of 12 numbers, 5 standard errors (6e-7) or what sums round to.

    Of zeros all reports err equally far: their spread is rounding alone, which depends on the machine.
    """
    codec = UpdateCodec(
        lambda size: bitldp.RandomCodebook(size, epsilon=4.0, radius=CLIP), clip=CLIP, norm="l2"
    )
    plan = codec.plan(Layout.of({"weight": np.zeros((3, 3)), "bias": np.zeros(3)}))
    x = update(1.0)[:12]
    x *= length / np.linalg.norm(x)
    rng = np.random.default_rng(1)
    worth = np.array([plan.decode(plan.perturb(x, rng=rng)) for _ in range(1_200)])
    squares = np.square(worth - x).sum(axis=1)
    said = plan.mechanism.total_variance(length)  # of zeros every report is as far off, to rounding
    assert abs(squares.mean() - said) < 5.0 * squares.std() / np.sqrt(1_200) + 1e-12 * said
    assert plan.mechanism.guarantee.record <= 4.0


def client(mod: PrivateUpdateMod) -> ClientApp:
    app = ClientApp(mods=[mod])

    @app.train()
    def train(message: Message, context: Context) -> Message:
        model = from_record(message.content["arrays"])
        parts = np.split(update(CLIP), [MODEL["weight"].size])
        moved = {
            name: array + part.reshape(array.shape)
            for (name, array), part in zip(model.items(), parts, strict=True)
        }
        content = {"arrays": to_record(moved), "metrics": MetricRecord({"num-examples": 3})}
        return Message(RecordDict(content), reply_to=message)

    return app


@pytest.mark.slow
def test_a_flower_run_measures_the_same():
    """300 clients with the same update: its error, and the variance between reports.

    The squared error of the mean has a relative deviation of sqrt(2/768) = 5 %, the variance between reports
    one below .5 %; both within five of them. HypercubePrivUnit's sum of variances would be 78,558 times 4.
    """
    clients = 300
    mod = PrivateUpdateMod(CODEC, budget=8.0, rng=lambda context: 100 + context.node_config["partition-id"])
    server = make_server(DecodingStrategy(CODEC, fraction_evaluate=0.0), arrays=MODEL)
    result = run_in_process(server, client(mod), clients).result
    found = Layout.of(MODEL).flatten(from_record(result.arrays))
    said = bitldp.CrossPolytope(SIZE, epsilon=8.0, radius=CLIP).total_variance()
    assert said <= GOAL
    assert np.square(found - update(CLIP)).sum() * clients == pytest.approx(said, rel=0.25)
    metrics = result.train_metrics_clientapp[1]
    assert metrics["reports"] == clients
    assert metrics["stderr"] ** 2 * SIZE * clients == pytest.approx(said, rel=0.025)
