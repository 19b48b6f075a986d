"""The client's mod: what leaves a client is a private report, or a fixed sentence."""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import (
    Bucketed,
    ClientAccount,
    InProcessGrid,
    PrivateUpdateMod,
    Randomized,
    UnprotectedMessageWarning,
    flower,
    to_record,
)
from bitldp.federated.client.account import RunBudgetWarning, node_file
from bitldp.federated.client.mod import (
    BUDGET_SENTENCE,
    FAILURE_SENTENCE,
    OTHERS_SENTENCE,
    REPORT,
    STYPE,
    question_of,
)
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from support.federated_app import CODEC, EPSILON, initial, make_client, target

pytestmark = pytest.mark.filterwarnings("ignore::bitldp.federated.RunBudgetWarning")


class Wire:
    """Grid of a few clients that records every byte that leaves one."""

    def __init__(self, mod, before=None, clients=3, **options):
        self.bytes: dict[int, bytes] = {}
        self.grid = InProcessGrid(make_client(mod, before), clients, recorder=self._record, **options)

    def _record(self, node, data):
        self.bytes[node] = self.bytes.get(node, b"") + data

    def ask(self, kind="train", turn=1, arrays=None):
        content = {"arrays": to_record(arrays or initial()), "config": ConfigRecord({"server-round": turn})}
        with flower.identity(1):
            nodes = self.grid.get_node_ids()
            return list(
                self.grid.send_and_receive([Message(RecordDict(content), node, kind) for node in nodes])
            )

    def assert_nothing_private(self):
        """No number that a client holds, or what it trained, is among its bytes, in any precision."""
        assert self.bytes
        for node, data in self.bytes.items():
            for name, array in target(node - 2).items():
                for mine in (array, array / 2, (array / 2).astype(np.float64), np.clip(array / 2, -0.5, 0.5)):
                    for value in mine.ravel():
                        for kind in ("<f4", ">f4", "<f8", ">f8"):
                            assert np.array(value, kind).tobytes() not in data, name
                        assert f"{value:.6g}".encode() not in data
            loss = float(np.abs(target(node - 2)["weight"]).sum())
            assert np.array(loss).tobytes() not in data
            assert b"train-loss" not in data


def private(**options):
    return PrivateUpdateMod(CODEC, **{"budget": 100.0, "ledger": "run", "rng": 5, **options})


def sentences(replies):
    return [reply.error.reason for reply in replies]


def test_the_recording_transport_sees_what_a_plain_app_sends():
    wire = Wire(None)
    wire.ask()
    with pytest.raises(AssertionError):
        wire.assert_nothing_private()


@pytest.mark.parametrize("seed", [5, None])
def test_a_report_leaves_and_nothing_else(seed):
    wire = Wire(private(rng=seed))
    replies = wire.ask()
    wire.assert_nothing_private()
    for reply in replies:
        assert set(reply.content) == {"arrays", "metrics"}
        assert list(reply.content["arrays"]) == [REPORT]
        array = reply.content["arrays"][REPORT]
        assert (array.dtype, array.stype, array.shape) == ("uint8", STYPE, (len(array.data),))
        assert dict(reply.content["metrics"]) == {"num-examples": 1}
        with pytest.raises(TypeError):
            array.numpy()  # Flower's own strategies cannot average codes by mistake
    assert all(len(data) < 400 for data in wire.bytes.values())


def test_other_messages_are_refused_or_pass_where_that_is_spelled():
    with pytest.warns(UnprotectedMessageWarning, match=r"evaluations and queries \(others='pass'\)"):
        passing = private(others="pass")
    for kind in ("evaluate", "query"):
        for reply, plain in zip(Wire(passing).ask(kind), Wire(None).ask(kind), strict=True):
            assert reply.content == plain.content
        for mod in (private(), private(others="refuse")):
            wire = Wire(mod)
            assert sentences(wire.ask(kind)) == [OTHERS_SENTENCE] * 3
            wire.assert_nothing_private()


def test_an_action_of_training_is_training():
    mod, calls = private(), []

    def call_next(message, context):
        calls.append(message)
        return Message(RecordDict({"arrays": message.content["arrays"]}), reply_to=message)

    with flower.identity(1):
        message = Message(RecordDict({"arrays": to_record(initial())}), 2, "train.again")
        reply = mod(message, Wire(None).grid.contexts[2], call_next)
    assert calls
    assert list(reply.content["arrays"]) == [REPORT]


SECRET = 0.123456789


def _raises(message, context):
    raise ValueError(f"the loss of record 17 is {SECRET}")


def _error(message, context):
    return Message(Error(0, f"a private value: {SECRET}"), reply_to=message)


def _reply(**arrays):
    def before(message, context):
        made = ArrayRecord({name: Array(array) for name, array in {**initial(), **arrays}.items()})
        return Message(RecordDict({"arrays": made, "m": MetricRecord({"num-examples": 3})}), reply_to=message)

    return before


def _no_arrays(message, context):
    return Message(RecordDict({"m": MetricRecord({"loss": SECRET})}), reply_to=message)


def _nothing(message, context):
    return "no message"


class Broken(bitldp.Duchi):
    """A mechanism that fails when it is needed, and says why."""

    def randomize(self, x, **options):
        raise RuntimeError(f"cannot randomize {x} with {SECRET}")


FAILURES = {
    "exception": _raises,
    "error": _error,
    "nan": _reply(bias=np.array([SECRET, np.nan, 0.0])),
    "infinite": _reply(weight=np.full((5, 3), np.inf, np.float32)),
    "integers": _reply(bias=np.array([1, 2, 3])),
    "dtype": _reply(bias=np.array([SECRET, 1.0, 2.0], np.float32)),
    "shape": _reply(weight=np.full((3, 5), SECRET, np.float32)),
    "names": _reply(more=np.array([SECRET])),
    "objects": _reply(bias=np.array(["1", "2", "3"])),
    "none": _no_arrays,
    "nothing": _nothing,
}


@pytest.mark.parametrize("failure", FAILURES)
def test_any_failure_is_one_sentence(failure, caplog):
    found = []
    wire = Wire(private(on_failure=found.append, nonfinite="refuse"), FAILURES[failure])
    with caplog.at_level(logging.DEBUG):
        replies = wire.ask()
    assert sentences(replies) == [FAILURE_SENTENCE] * 3
    assert len(found) == 3
    wire.assert_nothing_private()
    assert str(SECRET) not in caplog.text
    for node, data in wire.bytes.items():
        assert np.float64(SECRET).tobytes() not in data
        assert np.float32(SECRET).tobytes() not in data
        assert b"0.1234" not in data
        assert ClientAccount(100.0, path="run").ledger(wire.grid.contexts[node]).spent == 0.0


def test_a_mechanism_that_fails_is_charged_and_silent():
    mod = PrivateUpdateMod(
        lambda d: Broken(epsilon=EPSILON, features=d), clip=0.5, budget=100.0, ledger="run"
    )
    wire = Wire(mod)
    assert sentences(wire.ask()) == [FAILURE_SENTENCE] * 3
    wire.assert_nothing_private()
    assert ClientAccount(100.0, path="run").ledger(wire.grid.contexts[2]).spent == EPSILON


def test_a_handler_that_fails_changes_nothing():
    def handler(error):
        raise KeyError(SECRET)

    wire = Wire(private(on_failure=handler), _raises)
    assert sentences(wire.ask()) == [FAILURE_SENTENCE] * 3


def test_integers_can_be_kept_at_home():
    arrays = {**initial(), "steps": np.array([7], np.int64), "mask": np.array([True])}

    def before(message, context):
        mine = {**target(0), "steps": np.array([123456789]), "mask": np.array([False])}
        return Message(
            RecordDict({"arrays": to_record(mine), "m": MetricRecord({"num-examples": 3})}), reply_to=message
        )

    codec = {"mechanism": lambda d: bitldp.Duchi(epsilon=EPSILON, features=d), "clip": 0.5}
    refused = Wire(PrivateUpdateMod(**codec, budget=99.0, ledger="run"), before)
    assert sentences(refused.ask(arrays=arrays)) == [FAILURE_SENTENCE] * 3
    kept = Wire(PrivateUpdateMod(**codec, budget=99.0, ledger="run", integers="keep"), before)
    assert not any(reply.has_error() for reply in kept.ask(arrays=arrays))
    assert all(np.int64(123456789).tobytes() not in data for data in kept.bytes.values())


def test_arrays_without_coordinates_are_refused():
    wire = Wire(private())
    assert sentences(wire.ask(arrays={"empty": np.zeros((0, 3))})) == [FAILURE_SENTENCE] * 3


def test_every_round_is_charged_until_the_budget_is_spent():
    rounds, trained = 3, []
    wire = Wire(private(budget=rounds * EPSILON), lambda message, context: trained.append(context.node_id))
    for turn in range(1, rounds + 1):
        assert not any(reply.has_error() for reply in wire.ask(turn=turn))
        assert wire.grid.contexts[3].state.keys() == {"bitldp.ledger"}
        ledger = ClientAccount(rounds * EPSILON, path="run").ledger(wire.grid.contexts[3])
        assert ledger.spent == turn * EPSILON
        assert len(ledger.entries) == 1  # it does not grow with the rounds
    assert sentences(wire.ask(turn=4)) == [BUDGET_SENTENCE] * 3
    assert len(trained) == 3 * rounds  # and no client trained in vain
    wire.assert_nothing_private()


def test_a_mechanism_of_one_number_costs_as_many_as_there_are():
    wire = Wire(PrivateUpdateMod(bitldp.Duchi(epsilon=1.0), clip=0.5, budget=18.0, ledger="run"))
    assert not any(reply.has_error() for reply in wire.ask())
    assert (
        ClientAccount(18.0, path="run").ledger(wire.grid.contexts[2]).spent == 18.0
    )  # 15 weights and 3 biases
    assert sentences(wire.ask(turn=2)) == [BUDGET_SENTENCE] * 3


def test_a_ledger_on_disk_outlives_the_run(tmp_path):
    def place(context):
        return tmp_path / f"ledger-{context.node_config['partition-id']}.json"

    for spent in (1, 2):
        wire = Wire(private(budget=2 * EPSILON, ledger=place, create=spent == 1))
        assert not any(reply.has_error() for reply in wire.ask(turn=spent))
        assert not wire.grid.contexts[2].state
        assert [bitldp.Ledger.load(tmp_path / f"ledger-{i}.json").spent for i in range(3)] == [
            spent * EPSILON
        ] * 3
    assert sentences(Wire(private(budget=2 * EPSILON, ledger=place)).ask()) == [BUDGET_SENTENCE] * 3
    # another budget, or a damaged file, is no budget
    assert sentences(Wire(private(budget=9 * EPSILON, ledger=place)).ask()) == [FAILURE_SENTENCE] * 3
    for path in tmp_path.glob("*.json"):
        path.write_text(path.read_text().replace('"count": 2', '"count": 1'))
    assert sentences(Wire(private(budget=2 * EPSILON, ledger=place)).ask()) == [FAILURE_SENTENCE] * 3


def test_a_node_has_a_ledger_of_its_own_that_outlives_the_run(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("BITLDP_STATE", str(tmp_path / "state"))

    def rounds(budget=2 * EPSILON):
        wire = Wire(private(ledger=None, budget=budget))
        return wire, [reply.has_error() for turn in (1, 2, 3) for reply in wire.ask(turn=turn)]

    wire, failed = rounds()
    assert failed == [False] * 6 + [True] * 3
    names = sorted(path.name for path in (tmp_path / "state" / "ledgers").glob("*.json"))
    assert names == ["node-0.json", "node-1.json", "node-2.json"]
    for context in wire.grid.contexts.values():
        assert not context.state.keys()
        assert ClientAccount(2 * EPSILON).ledger(context).spent == 2 * EPSILON
    assert rounds()[1] == [True] * 9  # another run
    assert rounds(budget=99.0)[1] == [True] * 9
    assert (
        "was created with budget 24 and delta 0, not 99 and 0; name another file, or ledger='run'"
        in caplog.text
    )
    del context.node_config["partition-id"]
    assert node_file(context) == tmp_path / "state" / "ledgers" / "node.json"
    monkeypatch.delenv("BITLDP_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if os.name == "posix":
        assert node_file(context) == tmp_path / "bitldp" / "ledgers" / "node.json"


def test_a_budget_of_one_run_is_spelled_and_warned_of():
    with warnings.catch_warnings(action="error"):
        private(ledger=None)
    with pytest.warns(RunBudgetWarning, match="the budget of 100 is that of one run"):
        private()
    with pytest.raises(ValueError, match="create: needs a ledger with a path"):
        private(ledger=None, create=True)


def test_clients_that_share_a_ledger_share_its_budget(tmp_path):
    wire = Wire(private(budget=4 * EPSILON, ledger=tmp_path / "all.json", create=True), clients=6, threads=3)
    replies = wire.ask()
    assert sorted(reply.has_error() for reply in replies) == [False] * 4 + [True] * 2
    assert bitldp.Ledger.load(tmp_path / "all.json").spent == 4 * EPSILON


@pytest.mark.parametrize(
    ("examples", "said"), [("fixed", 1), (50, 50), ("exact", 37), (Bucketed(), 16), (Bucketed((40, 80)), 40)]
)
def test_the_number_of_examples(examples, said):
    with nullcontext() if examples in ("fixed", 50) else pytest.warns(UnprotectedMessageWarning):
        mod = private(examples=examples)
    for reply in Wire(mod).ask():
        assert dict(reply.content["metrics"]) == {"num-examples": said}


def test_a_randomized_number_of_examples_is_charged():
    edges = (1, 10, 100)
    mod = private(examples=Randomized(edges, epsilon=2.0), rng=None)
    wire = Wire(mod, clients=60)
    found = [reply.content["metrics"]["num-examples"] for reply in wire.ask()]
    assert set(found) <= set(edges)
    assert found.count(10) > 20  # of 60 at p = 0.79: below 21 with a chance under 1e-12
    assert ClientAccount(100.0, path="run").ledger(wire.grid.contexts[2]).spent == EPSILON + 2.0


def test_metrics_leave_by_name_alone():
    loss = float(np.abs(target(0)["weight"]).sum())
    with pytest.warns(UnprotectedMessageWarning, match=r"the metrics 'train-loss' of every training message"):
        mod = private(keep=("train-loss",))
    metrics = Wire(mod).ask()[0].content["metrics"]
    assert dict(metrics) == {"train-loss": loss, "num-examples": 1}
    with pytest.warns(UnprotectedMessageWarning):
        mod = private(keep=("absent",))
    assert sentences(Wire(mod).ask()) == [FAILURE_SENTENCE] * 3


def test_streams_differ_between_clients_and_rounds_and_fresh_keys_always():
    def sent(mod, turn=1):
        replies = Wire(mod).ask(turn=turn, arrays=many)
        return [reply.content["arrays"][REPORT].data for reply in replies]

    # Of 18 coordinates two fresh reports would be alike once in some 10,000 runs; of 600 they never are.
    many = {name: np.broadcast_to(array, (40, *array.shape)) for name, array in initial().items()}

    assert sent(private(rng=5)) == sent(private(rng=5))
    assert sent(private(rng=lambda context: 5)) == sent(private(rng=5))
    every = [*sent(private(rng=5)), *sent(private(rng=5), 2), *sent(private(rng=6)), *sent(private(rng=None))]
    assert len({data[-3:] for data in sent(private(rng=5))}) == 3
    assert len(set(every)) == len(every)


def test_two_questions_for_one_round_share_no_coin():
    """A server that asks for a round twice, with two models, must not subtract the noise."""
    context, keys = Wire(None).grid.contexts[2], []
    for shift in (0.0, 0.0, 1e-3):
        with flower.identity(1):
            arrays = to_record(
                {name: array + np.asarray(shift, array.dtype) for name, array in initial().items()}
            )
            content = RecordDict({"arrays": arrays, "config": ConfigRecord({"server-round": 1})})
            message = Message(content, 2, "train")
        stream, _ = private()._stream(message, context, question_of(message, b"settings"))
        keys.append(tuple(stream.generate_state(8)))
    assert keys[0] == keys[1] != keys[2]
    assert question_of(message, b"settings") != question_of(message, b"other settings")


def test_equal_updates_are_perturbed_differently():
    same = _reply(bias=np.array([0.1, 0.2, 0.3]))
    sent = [
        reply.content["arrays"][REPORT].data
        for turn in (1, 2)
        for reply in Wire(private(), same).ask(turn=turn)
    ]
    assert len(set(sent)) == 6


def test_the_seed_is_not_shown():
    assert "987654321" not in repr(private(rng=987654321))
    assert "budget=100" in repr(private())


def test_a_mod_can_be_pickled_with_its_parameters():
    mod = PrivateUpdateMod(bitldp.Duchi(epsilon=1.0), clip=0.5, budget=18.0, ledger="run")
    assert repr(pickle.loads(pickle.dumps(mod))) == repr(mod)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": -1.0}, "budget"),
        ({"budget": 1.0, "delta": 1.0}, "delta"),
        ({"clip": 0.0}, "clip"),
        ({"clip": np.nan}, "clip"),
        ({"norm": "l3"}, "norm"),
        ({"update": "sum"}, "update"),
        ({"interval": (1.0, 1.0)}, "interval"),
        ({"integers": "drop"}, "integers"),
        ({"examples": "some"}, "examples"),
        ({"examples": 0}, "examples"),
        ({"keep": "loss"}, "keep"),
        ({"others": "perturb"}, "others"),
        ({"create": True}, "create"),
        ({"nonfinite": "drop"}, "nonfinite"),
        ({"rng": -1}, "rng"),
        ({"ledger": "/no/such/folder/ledger.json"}, "ledger"),
        ({"mechanism": "duchi"}, "mechanism"),
        ({"mechanism": bitldp.GRR(4, epsilon=1.0)}, "interval|mechanism"),
        ({"mechanism": bitldp.BRR(9, epsilon=1.0, m=3, interval=(0.0, 1.0))}, "allow_biased"),
        ({"mechanism": CODEC}, "clip"),
        ({"more": 1}, "more"),
    ],
)
def test_bad_parameters(options, message):
    good = {"mechanism": bitldp.Duchi(epsilon=1.0), "clip": 1.0, "budget": 1.0}
    with pytest.raises((TypeError, ValueError), match=message):
        PrivateUpdateMod(**{**good, **options})


def test_clip_is_needed():
    with pytest.raises(TypeError, match="clip"):
        PrivateUpdateMod(bitldp.Duchi(epsilon=1.0), budget=1.0)


def test_a_biased_mechanism_may_be_allowed():
    mechanism = bitldp.BRR(9, epsilon=1.0, m=3, interval=(0.0, 1.0))
    wire = Wire(PrivateUpdateMod(mechanism, clip=0.5, budget=18.0, ledger="run", allow_biased=True))
    assert not any(reply.has_error() for reply in wire.ask())


def test_other_mods_see_or_send_no_more_than_the_report():
    outside = []

    def outer(message, context, call_next):
        reply = call_next(message, context)
        outside.append(flower.to_bytes(reply))
        return reply

    def inner(message, context, call_next):
        reply = call_next(message, context)
        reply.content["copy"] = reply.content["arrays"]
        return reply

    app = ClientApp(mods=[outer, private(), inner])
    app.train()(_reply(bias=target(0)["bias"]))
    grid = InProcessGrid(app, 1)
    with flower.identity(1):
        message = Message(RecordDict({"arrays": to_record(initial())}), 2, "train")
        (reply,) = grid.send_and_receive([message])
    assert set(reply.content) == {"arrays", "metrics"}
    assert all(value.tobytes() not in outside[0] for value in target(0)["bias"])


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_can_be_the_release_of_zeros(failure, caplog):
    """With the same key the bytes are those of a client that has learned nothing."""

    def nothing(message, context):
        return Message(RecordDict({"arrays": message.content["arrays"]}), reply_to=message)

    found = []
    failing, usual = (
        Wire(private(failing="zero", on_failure=found.append), before)
        for before in (FAILURES[failure], nothing)
    )
    with caplog.at_level(logging.DEBUG):
        replies = failing.ask()
    for reply, other in zip(replies, usual.ask(), strict=True):
        assert reply.content == other.content
    assert len(found) == 3 * (failure not in ("nan", "infinite"))  # nonfinite="zero" knows these
    failing.assert_nothing_private()
    assert str(SECRET) not in caplog.text
    spent = ClientAccount(100.0, path="run").ledger(failing.grid.contexts[2]).spent
    assert spent == ClientAccount(100.0, path="run").ledger(usual.grid.contexts[2]).spent == EPSILON


def test_zeros_do_not_go_with_what_would_show_the_failure():
    for name, options in (("keep", {"keep": ("loss",)}), ("examples", {"examples": Bucketed()})):
        with pytest.raises(ValueError, match=f"{name}: would show that the client failed"):
            private(failing="zero", **options)
