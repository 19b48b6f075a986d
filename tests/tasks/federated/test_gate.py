"""The gate in one process: whatever an app writes, the SuperNode is sent a report of fixed fields.

The same app is first played straight at the SuperNode, where each of its ways out is seen to lead out.
"""

from __future__ import annotations

import io
import threading
import time

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
import httpx
from bitldp.federated import (
    BUDGET_SENTENCE,
    FAILURE_SENTENCE,
    REPORT,
    STYPE,
    ClientAccount,
    PrivateUpdateMod,
    UpdateCodec,
    to_record,
)
from bitldp.federated.client.mod import OTHERS_SENTENCE
from bitldp.federated.gate import Gate, NodeRuntime, gate
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.proto.log_pb2 import PushLogsRequest
from flwr.proto.runtime_pb2 import PushTaskEventsRequest
from flwr.proto.task_pb2 import TaskEvent
from flwr.supernode.runtime.run_clientapp import push_message
from support.gated import LAST, gated, holds, play, serving
from support.gated import Node as PlainNode

pytestmark = pytest.mark.slow  # an HTTP server and a client for each side

EVERY = 60.0
SHORT = 0.4
"""Seconds after which replies leave, where a test waits for that."""
EPSILON = 4.0
SECRET = np.array([0.12345678912, -0.98765432198, 0.55555123456])
"""What is private to the node."""
TEXT = "the record of patient 4711"
MODEL = {"w": np.zeros(3), "b": np.zeros(2)}
COST = bitldp.Duchi(epsilon=EPSILON, features=5).guarantee.record
CODEC = UpdateCodec(lambda size: bitldp.Duchi(epsilon=EPSILON, features=size), clip=1.0)
SLEEP = gate._sleep
METRICS = {"accuracy": bitldp.Duchi(epsilon=1.0, interval=(0.0, 1.0))}


@pytest.fixture(scope="module", autouse=True)
def _no_waiting():
    """Let replies leave at once; the app has all the time there is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "_sleep", lambda until: None)
        yield


@pytest.fixture
def _waiting(monkeypatch):
    monkeypatch.setattr(gate, "_sleep", SLEEP)


@pytest.fixture
def private(tmp_path):
    """Return a mod as the owner of a node has it; one folder, one ledger."""

    def make(budget=1000.0, **options):
        account = ClientAccount(budget, path=tmp_path / "ledger.json", create=True)
        options = {"rng": 5, "failing": "zero", **options}
        return PrivateUpdateMod(CODEC, budget=account, metrics=METRICS, **options)

    return make


def plain(message, arrays=None, **metrics):
    """Return the reply of an app without a mod."""
    if arrays is None:
        arrays = {"w": SECRET, "b": SECRET[:2]}
    metrics = {"num-examples": 3, "accuracy": float(SECRET[2]), **metrics}
    content = {"arrays": to_record(arrays), "metrics": MetricRecord(metrics)}
    return Message(RecordDict(content), reply_to=message)


def raw(message, context, client):
    return plain(message)


def metric(message, context, client):
    return plain(message, MODEL, loss=float(SECRET[0]), more=[float(each) for each in SECRET])


def config(message, context, client):
    reply = plain(message, MODEL)
    reply.content["note"] = ConfigRecord({"text": TEXT, "bytes": SECRET.tobytes()})
    return reply


def names(message, context, client):
    reply = plain(message, MODEL)
    reply.content[TEXT] = to_record({TEXT: np.zeros(2)})
    return reply


def covert(message, context, client):
    """Send a well-formed report of the codec's, but with bytes of the app's for its codes."""
    plan = CODEC.plan(CODEC.layout(MODEL)).at(1)
    report = plan.perturb(np.zeros(5), rng=1).tobytes()
    report = report[: -SECRET.nbytes] + SECRET.tobytes() if len(report) > SECRET.nbytes else report
    array = Array("uint8", (len(report),), STYPE, report)
    arrays = ArrayRecord({REPORT: array})
    content = {"arrays": arrays, "metrics": MetricRecord({"num-examples": 1})}
    return Message(RecordDict(content), reply_to=message)


def error(message, context, client):
    return Message(Error(4711, TEXT), reply_to=message)


def metadata(message, context, client):
    reply = plain(message, MODEL)
    reply.metadata.__dict__["_ttl"] = float(SECRET[0])
    reply.metadata.__dict__["_created_at"] = float(SECRET[1])
    reply.metadata.__dict__["_group_id"] = TEXT
    return reply


def state(message, context, client):
    context.state["kept"] = ConfigRecord({"text": TEXT})
    context.node_config["more"] = TEXT
    return plain(message, MODEL)


def logs(message, context, client):
    client.PushLogs(PushLogsRequest(logs=[TEXT]))
    return plain(message, MODEL)


def events(message, context, client):
    client.PushTaskEvents(PushTaskEventsRequest(events=[TaskEvent(event=TEXT)]))
    return plain(message, MODEL)


WAYS = [raw, metric, config, names, covert, error, metadata, state, logs, events]


def honest(message, context, client):
    return plain(message, MODEL)


def leaks(data: bytes) -> bool:
    return TEXT.encode() in data or holds(data, SECRET)


def shape(node) -> list[tuple[str, int]]:
    """Return the requests that a SuperNode was sent, each with its size; heartbeats come when they come."""
    left_out = ("send-task-heartbeat", "acquire-task")
    return sorted((path, len(body)) for path, body in node.calls if not path.endswith(left_out))


def asked(private, work, kind="train", every=EVERY, **options):
    """Return the node that a gate has answered once, and the reply."""
    with gated(work) as (node, up, app):
        node.put(MODEL, kind)
        assert Gate(private(**options), up, app, every=every).step()
        return node, node.reply()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_way_out_leads_out_without_the_gate(way) -> None:
    node, until = PlainNode(""), threading.Event()
    node.put(MODEL)
    with serving(node) as address:
        thread = threading.Thread(target=play, args=(address, way, until), daemon=True)
        thread.start()
        deadline = time.monotonic() + 60
        while not any(path.endswith("push-task-output") for path, _ in node.calls):
            assert time.monotonic() < deadline, LAST
            time.sleep(0.01)
        until.set()
        thread.join()
    assert leaks(node.bytes)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """Return the requests and the reply of a gate whose app is honest, and has learned nothing."""
    account = ClientAccount(1000.0, path=tmp_path_factory.mktemp("usual") / "ledger.json", create=True)

    def make(**_):
        return PrivateUpdateMod(CODEC, budget=account, metrics=METRICS, rng=5, failing="zero")

    node, reply = asked(make, honest)
    return shape(node), reply


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_out_leads_past_the_gate(way, private, usual) -> None:
    node, reply = asked(private, way)
    assert not leaks(node.bytes)
    assert shape(node) == usual[0]  # not even how many bytes, or requests, depends on the app
    assert list(reply.content) == ["arrays", "metrics"]
    assert list(reply.content["arrays"]) == [REPORT]
    array, other = (each.content["arrays"][REPORT] for each in (reply, usual[1]))
    assert (array.dtype, array.shape, array.stype) == ("uint8", other.shape, STYPE)
    assert array.data[:-9] == other.data[:-9]  # the header
    assert dict(reply.content["metrics"]) == {"num-examples": 1}
    mine, theirs = reply.metadata, usual[1].metadata
    for name in ("run_id", "src_node_id", "dst_node_id", "group_id", "message_type"):
        assert getattr(mine, name) == getattr(theirs, name)
    assert TEXT not in str(node.context.node_config)
    assert not node.context.state
    assert bitldp.Ledger.load(private().account.path).spent == COST


def crashes(message, context, client):
    raise RuntimeError(TEXT)


def silent(message, context, client):
    return None


def late(message, context, client):
    time.sleep(SHORT)
    return plain(message)


def shapeless(message, context, client):
    return plain(message, {"w": np.zeros((3, 3)), "b": np.zeros(2)})


def huge(message, context, client):
    """Send an array whose header claims 10^13 numbers."""
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    arrays = {"w": Array("float64", (3,), "numpy.ndarray", data.getvalue()), "b": Array(np.zeros(2))}
    return Message(RecordDict({"arrays": ArrayRecord(arrays)}), reply_to=message)


def infinite(message, context, client):
    return plain(message, {"w": np.full(3, np.inf), "b": np.zeros(2)})


def no_arrays(message, context, client):
    return Message(RecordDict(), reply_to=message)


FAILURES = [crashes, silent, late, shapeless, huge, infinite, no_arrays, error]


@pytest.mark.parametrize("way", FAILURES, ids=lambda way: way.__name__)
def test_a_failure_is_the_release_of_zeros(way, private, usual) -> None:
    """With the same key the report is, to the bit, that of an app that has learned nothing."""
    every = SHORT if way in (crashes, silent, late) else EVERY  # the gate waits for them
    node, reply = asked(private, way, every=every)
    assert reply.content["arrays"][REPORT].data == usual[1].content["arrays"][REPORT].data
    assert shape(node) == usual[0]
    assert bitldp.Ledger.load(private().account.path).spent == COST


def test_an_update_reaches_the_mechanism(private, usual) -> None:
    """With the same key, an update at the end of the ball makes another report than zeros do."""
    away = {"w": np.array([9.0, -9.0, 9.0]), "b": np.array([-9.0, 9.0])}
    report = asked(private, lambda message, *_: plain(message, away))[1].content["arrays"][REPORT].data
    other = usual[1].content["arrays"][REPORT].data
    plan = CODEC.plan(CODEC.layout(MODEL)).at(1)
    assert report[: len(report) - 5] == other[: len(other) - 5]
    assert report != other
    assert (plan.decode(report) != plan.decode(other)).any()


@pytest.mark.parametrize("pause", [0.0, 0.12])
@pytest.mark.usefixtures("_waiting")
def test_the_time_of_a_reply_does_not_depend_on_the_app(pause, private) -> None:
    def slow(message, context, client):
        time.sleep(pause)
        return plain(message)

    node, _ = asked(private, slow, every=2 * SHORT)
    (entry,) = node.inner.time_store.values()  # what Flower's server is told of the app's time
    assert entry.finished_at - entry.starting_at >= 2 * SHORT - 0.01


@pytest.mark.usefixtures("_waiting")
def test_a_later_deadline_says_how_many_bits_times_can_carry(private) -> None:
    with gated(late) as (node, up, app):
        node.put(MODEL)
        later = Gate(private(), up, app, every=SHORT, deadline=16 * SHORT)
        assert later.time_bits == 4.0
        start = time.monotonic()
        later.step()
        assert time.monotonic() - start >= 2 * SHORT  # the app took one; the reply leaves at the second
        assert not leaks(node.bytes)
        assert Gate(private(), up, app, every=SHORT).time_bits == 0.0
        for wrong in (0.5 * SHORT, 1.5 * SHORT):
            with pytest.raises(ValueError, match="deadline: must be a multiple of every"):
                Gate(private(), up, app, every=SHORT, deadline=wrong)


def test_an_evaluation_leaves_by_its_mechanism_alone(private) -> None:
    letters = METRICS["accuracy"].decode(np.array([[0], [1]])).ravel()
    for way in (raw, metric, crashes):
        node, reply = asked(private, way, "evaluate", every=SHORT if way is crashes else EVERY)
        assert not leaks(node.bytes)
        assert reply.content.keys() == {"metrics"}
        released = dict(reply.content["metrics"])
        assert released.keys() == {"accuracy", "num-examples"}
        assert min(abs(released["accuracy"] - letters)) < 1e-12
        assert released["num-examples"] == 1
    assert bitldp.Ledger.load(private().account.path).spent == pytest.approx(3.0)


def test_questions_are_refused_by_a_fixed_sentence(private) -> None:
    calls = []
    _, reply = asked(private, lambda *given: calls.append(given), "query")
    assert reply.error.reason == OTHERS_SENTENCE
    assert not calls


def test_the_budget_outlives_the_gate_the_node_and_the_app(private) -> None:
    for turn in (1, 2, 3):
        with gated(raw) as (node, up, app):
            node.put(MODEL, turn=turn)
            Gate(private(budget=2 * EPSILON), up, app, every=EVERY).step()
            reply = node.reply()
        assert reply.has_error() == (turn == 3)
    assert reply.error.reason == BUDGET_SENTENCE
    assert not leaks(node.bytes)


def test_a_server_that_asks_for_nonsense_gets_a_sentence(private) -> None:
    with gated(raw) as (node, up, app):
        node.put({"w": np.array([1, 2])})
        Gate(private(), up, app, every=EVERY).step()
        assert node.reply().error.reason == FAILURE_SENTENCE
        assert not leaks(node.bytes)


def test_the_app_finds_again_what_it_kept_and_the_node_does_not_see_it(private) -> None:
    found = []

    def keeping(message, context, client):
        found.append(context.state.get("kept"))
        return state(message, context, client)

    with gated(keeping) as (node, up, app):
        one = Gate(private(), up, app, every=EVERY)
        for turn in (1, 2):
            node.put(MODEL, turn=turn)
            one.step()
            node.reply()
        assert found[0] is None
        assert found[1]["text"] == TEXT
        assert not leaks(node.bytes)


def test_who_holds_an_old_token_reaches_nothing(private) -> None:
    held = []

    def holding(message, context, client):
        held.append((client, message, context))
        # its task is not finished

    with gated(holding) as (node, up, app):
        node.put(MODEL)
        Gate(private(), up, app, every=SHORT).step()
        client, message, context = held[0]
        before = len(node.calls)
        with pytest.raises(Exception, match=r"40\d"):
            push_message(client, plain(message), context)
        assert len(node.calls) == before


def test_the_gate_signs_with_the_nodes_secret(private) -> None:
    with gated(raw, b"a secret of thirty-two bytes....") as (node, up, app):
        node.put(MODEL)
        assert Gate(private(), up, app, every=EVERY).step()
        with NodeRuntime(up._address, secret=b"another") as stranger, pytest.raises(httpx.HTTPStatusError):
            Gate(private(), stranger, app, every=EVERY).step()


def test_what_would_let_more_than_reports_out_is_refused(private, tmp_path) -> None:
    with gated(honest) as (_, up, app):
        with pytest.raises(TypeError, match="PrivateUpdateMod"):
            Gate(3, up, app, every=EVERY)
        for name, value in (("failing", "refuse"), ("nonfinite", "refuse")):
            with pytest.raises(ValueError, match=f"mod: must have {name}='zero'"):
                Gate(private(**{name: value}), up, app, every=EVERY)
        with pytest.warns(UserWarning, match="others='pass'"):
            passing = private(others="pass")
        with pytest.raises(ValueError, match="others='refuse'"):
            Gate(passing, up, app, every=EVERY)
        with pytest.warns(UserWarning, match="ledger='run'"):
            fleeting = PrivateUpdateMod(CODEC, budget=9.0, ledger="run", failing="zero")
        with pytest.raises(ValueError, match="ledger in a file"):
            Gate(fleeting, up, app, every=EVERY)
