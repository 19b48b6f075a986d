"""Rounds of many clients in blocks: the estimate of messages to the bit, one ledger, flat memory."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import DecodingStrategy, Layout, UpdateCodec, flower, messages, simulate
from bitldp.federated.client.mod import REPORT, STYPE
from bitldp.federated.server.mean import ExactSum, ReportMean
from bitldp.ledger import BudgetExceededError, Ledger
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict

SIZE, CLIENTS = 40, 700
CODECS = {
    "polytope": UpdateCodec(lambda d: bitldp.CrossPolytope(d, epsilon=4.0, radius=0.5), clip=0.5),
    "several reports": UpdateCodec(lambda d: bitldp.CrossPolytope(d, epsilon=9.0, reports=3), clip=1.0),
    "duchi": UpdateCodec(lambda d: bitldp.Duchi(epsilon=4.0, features=d), clip=0.7, norm="linf"),
    "sampled": UpdateCodec(
        lambda d: bitldp.Piecewise(epsilon=4.0, features=d, spend="sample"), clip=0.7, norm="l1"
    ),
    "one number": UpdateCodec(bitldp.Laplace(epsilon=1.0), clip=0.3),
    "gradients": UpdateCodec(lambda d: bitldp.Duchi(epsilon=4.0, features=d), clip=0.7, rows=3),
}


def updates(codec: UpdateCodec, clients: int = CLIENTS) -> np.ndarray:
    shape = (clients, SIZE) if codec.rows == 1 else (clients, codec.rows, SIZE)
    return np.random.default_rng(3).normal(0.01, 0.1, size=shape)


def reply(node: int, report: bytes) -> Message:
    """Return a client's reply with a report, as `PrivateUpdateMod` makes it."""
    asked = Message(RecordDict(), dst_node_id=node, message_type="train")
    record = ArrayRecord({REPORT: Array("uint8", (len(report),), STYPE, report)})
    return Message(RecordDict({"arrays": record, "m": MetricRecord({"num-examples": 1})}), reply_to=asked)


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.slow
def test_the_estimate_is_that_of_messages_to_the_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitldp.federated.simulation._BLOCK", 256 * SIZE)  # several blocks, the last shorter
    codec, x = CODECS[name], updates(CODECS[name])
    layout = Layout.of({"weight": np.zeros((SIZE // 4, 3)), "bias": np.zeros(SIZE // 4)})
    found = simulate(codec, x, layout=layout, rng=5)
    reports = list(messages(codec, x, layout=layout, rng=5))
    assert len(reports) == found.clients == CLIENTS
    assert sum(map(len, reports)) == found.bytes_up
    strategy = DecodingStrategy(codec)
    strategy._model = {"weight": np.zeros((SIZE // 4, 3)), "bias": np.zeros(SIZE // 4)}
    nodes = np.random.default_rng(1).permutation(CLIENTS) + 2  # in another order than that of the rows
    strategy._asked = set(nodes.tolist())
    with flower.identity(1):
        arrays, metrics = strategy.aggregate_train(1, map(reply, nodes.tolist(), reports))
    assert arrays is not None
    assert metrics is not None
    model = np.concatenate([arrays[key].numpy().ravel() for key in ("weight", "bias")])
    assert model.tobytes() == found.value.tobytes()
    assert metrics["bytes-up"] == found.bytes_up
    assert metrics["stderr"] == pytest.approx(math.sqrt(np.mean(np.square(found.stderr))), rel=1e-9)


def test_a_seed_decides_and_threads_do_not() -> None:
    codec = CODECS["polytope"]
    x = updates(codec)
    one = simulate(codec, x, rng=5, threads=1).value
    assert (
        one.tobytes()
        == simulate(codec, lambda a, b: x[a:b], clients=CLIENTS, rng=5, threads=2).value.tobytes()
    )
    assert one.tobytes() == simulate(codec, x, rng=np.random.SeedSequence(5)).value.tobytes()
    assert (one != simulate(codec, x, rng=6).value).any()
    assert (simulate(codec, x).value != simulate(codec, x).value).any()
    # Blocks share no coins: equal rows in two blocks do not give equal reports.
    half = (1 << 18) // SIZE
    reports = list(messages(codec, np.repeat(x[:1], 2 * half, axis=0), rng=5))
    assert sum(a == b for a, b in zip(reports[:half], reports[half:], strict=True)) < half // 100


def test_the_mean_is_right_and_its_error_is_stated() -> None:
    """20,000 clients; 40 coordinates within 5 standard errors, and their mean square (alpha below 1e-4)."""
    codec = CODECS["polytope"]
    x = updates(codec, 20_000)
    found = simulate(codec, x, rng=11)
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    truth = (x * np.minimum(1.0, 0.5 / lengths)).mean(axis=0)
    z = (found.value - truth) / found.stderr
    assert np.abs(z).max() < 5.0
    assert 0.3 < np.mean(np.square(z)) < 2.2


def test_a_cohort_has_one_ledger() -> None:
    codec, ledger = CODECS["polytope"], Ledger(8.0)
    x = updates(codec)
    simulate(codec, x, ledger=ledger)
    simulate(codec, x, ledger=ledger)
    assert ledger.spent == pytest.approx(8.0)
    assert len(ledger.entries) == 2
    drawn: list[int] = []
    with pytest.raises(BudgetExceededError):
        simulate(codec, lambda a, b: drawn.append(a) or x[a:b], clients=CLIENTS, ledger=ledger)
    assert drawn == [0]  # looked at for its shape, and released by nobody
    many = Ledger(100.0)
    simulate(CODECS["gradients"], updates(CODECS["gradients"]), ledger=many)
    assert many.spent == pytest.approx(12.0)  # three gradients at 4


@pytest.mark.parametrize(
    ("given", "fragment"),
    [
        ({"updates": np.zeros(SIZE)}, "updates: shape must be"),
        ({"updates": np.zeros((0, SIZE))}, "updates: shape must be"),
        ({"updates": np.zeros((5, 2, SIZE))}, "updates: of each client shape"),
        ({"updates": np.zeros((5, SIZE)), "clients": 4}, "clients: 4 are not the 5 rows"),
        ({"updates": np.full((5, SIZE), np.nan)}, "coordinates that are not finite"),
        ({"updates": lambda a, b: np.zeros((1, SIZE)), "clients": 5}, "updates: rows 0 to 5 have shape"),
    ],
)
def test_updates_are_checked(given: dict, fragment: str) -> None:
    with pytest.raises(ValueError, match=fragment):
        simulate(CODECS["polytope"], **given)


def test_memory_does_not_grow_with_the_clients() -> None:
    codec = CODECS["duchi"]
    row = updates(codec, 1)

    def peak(clients: int) -> int:
        tracemalloc.start()
        simulate(codec, lambda a, b: np.broadcast_to(row, (b - a, SIZE)), clients=clients, rng=1)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)
    assert peak(60_000) < 1.2 * peak(20_000)


def test_a_sum_is_exact_in_any_order_and_in_any_blocks() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(900, 5)) * 10.0 ** rng.integers(-12, 12, size=(900, 5))
    x[:400] -= x[400:800]  # cancels
    exact = [float(sum(map(Fraction, column))) for column in x.T.tolist()]
    for blocks in ([900], [1] * 900, [7, 600, 293]):
        found, order = ExactSum(5), rng.permutation(900)
        start = 0
        for size in blocks:
            found.add(x[order[start : start + size]])
            start += size
        assert found.value.tolist() == exact
    empty = ExactSum(3)
    empty.add(np.zeros((0, 3)))
    assert empty.value.tolist() == [0.0] * 3


def test_a_weighted_mean_adds_the_same_one_by_one_and_together() -> None:
    x = np.random.default_rng(2).normal(size=(50, 4))
    one, together = ReportMean(4), ReportMean(4)
    for row in x:
        one.add(row, 1.0)
    together.add_all(x[:20])
    together.add_all(x[20:])
    assert one.value.tobytes() == together.value.tobytes()
    assert together.errors() == pytest.approx(x.std(axis=0, ddof=1) / math.sqrt(50))
    assert one.errors() == pytest.approx(together.errors(), rel=1e-12)
