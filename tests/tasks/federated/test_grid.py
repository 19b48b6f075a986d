"""Flower in one process: unmodified apps, isolated clients, the same model for any threads."""

from __future__ import annotations

import random
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

from bitldp.federated import (
    DecodingStrategy,
    InProcessGrid,
    PrivateUpdateMod,
    RoundFailedError,
    flower,
    from_record,
    run_in_process,
    to_numpy,
    to_record,
)
from bitldp.federated.flower import UnsupportedFlowerError, check_version
from bitldp.federated.grid import CLIENT_SENTENCE
from bitldp.federated.wire.arrays import Layout
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg, strategy_utils
from flwr.supercore.task_identity import TaskIdentity
from support.federated_app import CODEC, initial, make_client, make_server, target

pytestmark = pytest.mark.filterwarnings("ignore::bitldp.federated.RunBudgetWarning")

EXAMPLE = Path(__file__).parents[3] / "examples" / "flower"


def private(threads=1, seed=None, rounds=2, **options):
    strategy = DecodingStrategy(CODEC, fraction_evaluate=0.0, **options)
    client = make_client(PrivateUpdateMod(CODEC, budget=500.0, ledger="run", rng=1))
    return run_in_process(make_server(strategy, rounds), client, 12, threads=threads, seed=seed)


def arrays(run):
    return from_record(run.result.arrays)


def test_threads_change_nothing():
    one, many = private(1), private(4)
    assert one.result.train_metrics_clientapp == many.result.train_metrics_clientapp
    for name, array in arrays(one).items():
        np.testing.assert_array_equal(array, arrays(many)[name])


def test_threads_are_used_and_a_client_is_never_in_two():
    together, barrier, seen = set(), threading.Barrier(3, timeout=60), []

    def app(message, context):
        assert context.node_id not in together
        together.add(context.node_id)
        barrier.wait()
        seen.append(threading.get_ident())
        together.discard(context.node_id)
        return Message(RecordDict(), reply_to=message)

    grid = InProcessGrid(app, 3, threads=3)
    with flower.identity(1):
        messages = [Message(RecordDict(), node, "query") for node in (2, 2, 3, 3, 4, 4)]
        replies = list(grid.send_and_receive(messages))
    assert [reply.metadata.src_node_id for reply in replies] == [2, 2, 3, 3, 4, 4]
    assert not any(reply.has_error() for reply in replies)
    assert len(set(seen)) == 3


def test_a_seed_chooses_the_clients():
    def chosen(seed):
        found = private(seed=seed, fraction_train=0.25).grid.contexts
        return [node for node, context in found.items() if context.state]

    assert chosen(3) == chosen(3)
    assert len({tuple(chosen(seed)) for seed in range(5)}) > 1
    state = random.getstate()
    private(seed=3)
    assert random.getstate() == state


def plain_server(rounds=2):
    app = ServerApp()

    @app.main()
    def main(grid, context):
        result = FedAvg(fraction_evaluate=1.0).start(grid, to_record(initial()), num_rounds=rounds)
        context.state["arrays"] = result.arrays
        context.state["metrics"] = result.evaluate_metrics_clientapp[rounds]

    return app


def test_a_plain_flower_app_runs_unmodified():
    run = run_in_process(plain_server(), make_client(None), 4)
    assert run.result is None
    model = from_record(run.context.state["arrays"])
    mean = np.mean([target(client)["weight"] for client in range(4)], axis=0)
    np.testing.assert_allclose(model["weight"], 0.75 * mean, rtol=1e-5)  # half of the way, twice
    assert set(run.context.state["metrics"]) == {"train-loss"}


def test_messages_are_numbered_and_typed_as_on_the_network():
    seen = []

    def app(message, context):
        seen.append((message.metadata, context.node_config, context.run_config))
        return Message(RecordDict({"m": MetricRecord({"a": 1})}), reply_to=message)

    grid = InProcessGrid(app, 2, run_config={"lr": 0.5}, node_config={"seed": 3})
    with flower.identity(1):
        replies = list(grid.send_and_receive([Message(RecordDict(), 3, "query.size", group_id="g")]))
    metadata, node_config, run_config = seen[0]
    assert (metadata.src_node_id, metadata.dst_node_id, metadata.message_type) == (1, 3, "query.size")
    assert node_config == {"seed": 3, "partition-id": 1, "num-partitions": 2}
    assert run_config == {"lr": 0.5}
    assert replies[0].metadata.src_node_id == 3
    assert replies[0].metadata.reply_to_message_id == metadata.message_id != ""
    assert replies[0].metadata.group_id == "g"


def test_clients_do_not_see_what_others_write():
    def app(message, context):
        content = message.content
        assert content["config"]["list"] == [1]
        assert list(content["arrays"]) == ["w"]
        content["config"]["list"].append(context.node_id)
        content["arrays"]["mine"] = content["arrays"]["w"]
        content["more"] = MetricRecord({"a": 1})
        return Message(RecordDict(), reply_to=message)

    grid = InProcessGrid(app, 3, raise_errors=True)
    shared = RecordDict({"arrays": to_record({"w": np.zeros(2)}), "config": ConfigRecord({"list": [1]})})
    with flower.identity(1):
        list(grid.send_and_receive([Message(shared, node, "train") for node in (2, 3, 4)]))
    assert shared["config"]["list"] == [1]
    assert set(shared) == {"arrays", "config"}


def test_what_a_client_remembers_stays_its_own():
    def app(message, context):
        count = context.state.get("count", MetricRecord({"n": 0}))["n"] + 1
        context.state["count"] = MetricRecord({"n": count})
        return Message(RecordDict({"m": MetricRecord({"n": count})}), reply_to=message)

    grid = InProcessGrid(app, 2)
    with flower.identity(1):
        for turn, nodes in enumerate([(2, 3), (2,), (2, 3)]):
            replies = list(grid.send_and_receive([Message(RecordDict(), node, "query") for node in nodes]))
            assert replies[0].content["m"]["n"] == turn + 1
    assert replies[1].content["m"]["n"] == 2


def test_an_exception_is_one_sentence_or_raised(caplog):
    def app(message, context):
        raise ValueError("record 17 is 0.123456789")

    with flower.identity(1):
        message = Message(RecordDict(), 2, "train")
        (reply,) = InProcessGrid(app, 1).send_and_receive([message])
        with pytest.raises(ValueError, match="record 17"):
            InProcessGrid(app, 1, raise_errors=True).send_and_receive([message])
        (other,) = InProcessGrid(lambda message, context: 3, 1).send_and_receive([message])
    assert reply.error.reason == other.error.reason == CLIENT_SENTENCE
    assert "0.1234" not in caplog.text


def test_the_recorder_sees_replies_as_bytes():
    seen = []
    private_bytes = np.float64(0.123456789).tobytes()

    def app(message, context):
        return Message(RecordDict({"a": to_record([np.array([0.123456789])])}), reply_to=message)

    grid = InProcessGrid(app, 1, recorder=lambda node, data: seen.append((node, data)))
    with flower.identity(1):
        list(grid.send_and_receive([Message(RecordDict(), 2, "train")]))
    assert [node for node, _ in seen] == [2]
    assert private_bytes in seen[0][1]


def test_push_and_pull():
    grid = InProcessGrid(lambda message, context: Message(RecordDict(), reply_to=message), 2)
    with flower.identity(1):
        names = list(grid.push_messages([grid.create_message(RecordDict(), "train", 2, "g")]))
        assert len(list(grid.pull_messages(names))) == 1
        assert list(grid.pull_messages([*names, "unknown"])) == []
        with pytest.raises(ValueError, match="node id 9"):
            grid.push_messages([Message(RecordDict(), 9, "train")])
    assert [node.node_id for node in grid.get_nodes()] == [2, 3]
    grid.set_run(flower.empty_run(5))
    assert grid.run.run_id == 5


def test_the_servers_identity_is_given_back():
    before = TaskIdentity._run_id
    with flower.identity(7):
        assert TaskIdentity.run_id == 7
    with suppress(ZeroDivisionError), flower.identity(7):
        raise ZeroDivisionError
    assert TaskIdentity._run_id == before


@pytest.mark.parametrize("version", ["1.40.9", "1.43.0", "2.0", "1.x", "nightly"])
def test_other_versions_of_flower_are_refused(version):
    with pytest.raises(UnsupportedFlowerError, match=r"flwr >=1.41,<1.43, found"):
        check_version(version)


@pytest.mark.parametrize("version", ["1.41.0", "1.42.3", "1.42.0.dev1"])
def test_these_versions_are_known(version):
    check_version(version)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((None, 2), "client_app"), ((ClientApp(), 0), "clients"), ((ClientApp(), 1.5), "clients")],
)
def test_bad_parameters(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        InProcessGrid(*arguments)
    with pytest.raises((TypeError, ValueError), match="threads"):
        InProcessGrid(ClientApp(), 1, threads=0)


def test_arrays_of_any_framework():
    jax = pytest.importorskip("jax.numpy", reason="jax is not installed")
    made = jax.arange(6, dtype="float32").reshape(2, 3)
    record = to_record({"w": made, "b": np.zeros(2)})
    assert isinstance(record, ArrayRecord)
    np.testing.assert_array_equal(from_record(record)["w"], np.arange(6).reshape(2, 3))
    assert from_record(record)["w"].dtype == np.float32
    assert list(from_record(to_record([made, made]))) == ["0", "1"]


class Tensor:
    """What torch does: no ``__array__`` while a gradient is wanted, or off the CPU."""

    def __init__(self, array, steps=()):
        self._array, self._steps = array, steps

    def detach(self):
        return Tensor(self._array, (*self._steps, "detach"))

    def cpu(self):
        return Tensor(self._array, (*self._steps, "cpu"))

    def __array__(self, dtype=None, copy=None):
        assert self._steps == ("detach", "cpu")
        return self._array


class Capsule:
    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_to_numpy():
    array = np.arange(4.0)
    assert to_numpy(array) is array
    assert to_numpy(Tensor(array)) is array
    np.testing.assert_array_equal(to_numpy(Capsule(array)), array)
    for wrong in (3, "text", [1.0], None):
        with pytest.raises(TypeError, match="__array__ or __dlpack__"):
            to_numpy(wrong)
    with pytest.raises(TypeError, match="masked"):
        to_numpy(np.ma.masked_array([1.0]))
    with pytest.raises(TypeError, match="dtype object"):
        to_record([np.array([{}], dtype=object)])


def test_a_layout_restores_shapes_and_dtypes():
    made = {
        "half": np.ones((2, 2), np.float16),
        "none": np.zeros((0, 3), np.float32),
        "scalar": np.array(3.0),
        "strided": np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
    }
    layout = Layout.of(made)
    assert layout.size == 4 + 0 + 1 + 6
    vector = layout.flatten(made)
    for name, array in layout.restore(vector, {}).items():
        np.testing.assert_array_equal(array, made[name])
        assert (array.dtype, array.shape) == (made[name].dtype, made[name].shape)
    with pytest.raises(TypeError, match="complex"):
        Layout.of({"z": np.zeros(2, complex)}, "keep")
    with pytest.raises(TypeError, match="integers='keep'"):
        Layout.of({"n": np.zeros(2, int)})
    with pytest.raises(ValueError, match="no floating-point coordinate"):
        Layout.of({"n": np.zeros(2, int)}, "keep")
    with pytest.raises(ValueError, match="names"):
        layout.flatten({})


@pytest.mark.slow
def test_the_example_learns(monkeypatch, capsys, tmp_path):
    pytest.importorskip("sklearn", reason="the example's digits come with scikit-learn")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from digits_app.client_app import app as client
    from digits_app.server_app import app as server

    config = {"num-server-rounds": 10, "save-to": str(tmp_path / "model.npz")}
    run = run_in_process(server, client, 50, run_config=config, node_config={"seed": 1})
    scores = run.result.evaluate_metrics_serverapp
    assert scores[0]["accuracy"] < 0.2
    assert scores[10]["accuracy"] > 0.7
    assert run.result.train_metrics_clientapp[10]["reports"] == 50
    assert "accuracy" in capsys.readouterr().out
    with np.load(tmp_path / "model.npz") as file:
        np.testing.assert_array_equal(file["weight"], arrays(run)["weight"])
    assert isinstance(run.context, Context)
    for name in [name for name in sys.modules if name.startswith("digits_app")]:
        del sys.modules[name]


@pytest.mark.parametrize("threads", [1, 3])
def test_debug_prints_what_a_client_raised(capsys, threads):
    """Of the step that the mod guards, too; without it nothing of the error is printed."""

    def dies(message, context):
        raise KeyError("layer of mine")

    app = make_client(PrivateUpdateMod(CODEC, budget=1000.0, ledger="run"), dies)
    server = make_server(DecodingStrategy(CODEC, fraction_evaluate=0.0))
    for debug in (False, True):
        with pytest.raises(RoundFailedError):
            run_in_process(server, app, 3, threads=threads, debug=debug)
        printed = capsys.readouterr().err
        assert printed.count("KeyError: 'layer of mine'") == int(debug)  # once, whoever has it
        assert ("in dies" in printed) == debug


def test_a_strategy_that_waits_for_more_clients_than_there_are_is_told(monkeypatch):
    monkeypatch.setattr(strategy_utils, "sleep", lambda _: None)
    with pytest.raises(RuntimeError, match="waits for more than the 1 of this run; give more"):
        run_in_process(make_server(DecodingStrategy(CODEC, fraction_evaluate=0.0)), make_client(None), 1)


def test_the_two_apps_in_the_wrong_order_are_told():
    server, client = make_server(FedAvg()), make_client(None)
    with pytest.raises(TypeError, match="wrong order; give the ServerApp first"):
        run_in_process(client, server, 3)
