"""Secure sums through the gate: it shares and masks; the app gives a plain number and sees nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import (
    BUDGET_SENTENCE,
    FAILURE_SENTENCE,
    SUM_SENTENCE,
    ClientAccount,
    PrivateUpdateMod,
    SummedMod,
    SumsAccount,
    UpdateCodec,
    flower,
    to_record,
)
from bitldp.federated.client.mod import OTHERS_SENTENCE
from bitldp.federated.gate import Gate, gate
from bitldp.federated.wire.sums import STYPE, SUM, sum_bytes, sum_record
from bitldp.sums import Count, Histogram, Number, SecureSum, Vector
from bitldp.sums.protocol import Agreement, Stage, SummingClient, SummingServer
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from support.gated import NODE, RUN, gated, holds
from support.sums import PlainSum, public, signing_keys

pytestmark = pytest.mark.slow  # an HTTP server and a client for each side

CLIENTS, EVERY, LATE = 3, 60.0, 0.4
SECRET = np.array([70_001, 99_991, 12_345, 31_337, 54_321]) + 0.123456789
"""What is private to the node."""
TEXT = "the record of patient 4711"
MODEL = {"w": np.zeros(5)}
OTHERS = np.array([[1, 20, 300, 4000, 50_000], [7, 70, 700, 7000, 70_000]], np.uint64)
"""What the clients without a gate sum."""
KEYS = signing_keys(CLIENTS)
AGREEMENT = Agreement(PlainSum(CLIENTS, 2, bits=20, coordinates=5), public(KEYS))
SLEEP = gate._sleep


def summed(message, values=SECRET, **records):
    """Return the reply of an app with its number, and whatever else it writes."""
    content = {"arrays": to_record({"w": np.asarray(values)}), **records}
    return Message(RecordDict(content), reply_to=message)


def honest(message, context, client):
    return summed(message)


def metric(message, context, client):
    return summed(message, metrics=MetricRecord({"loss": [float(each) for each in SECRET]}))


def config(message, context, client):
    return summed(message, note=ConfigRecord({"text": TEXT, "bytes": SECRET.tobytes()}))


def names(message, context, client):
    return summed(message, **{TEXT: to_record({TEXT: SECRET})})


def covert(message, context, client):
    """Write what looks like a message of the protocol, with bytes of the app's for masked words."""
    data = b"bLsS\x01\x02\x01" + bytes(40) + SECRET.tobytes()
    array = Array("uint8", (len(data),), STYPE, data)
    return summed(message, **{SUM: ArrayRecord({"message": array})})


def metadata(message, context, client):
    reply = summed(message)
    reply.metadata.__dict__["_ttl"] = float(SECRET[0])
    reply.metadata.__dict__["_group_id"] = TEXT
    return reply


def state(message, context, client):
    context.state["kept"] = ConfigRecord({"text": TEXT})
    return summed(message)


def error(message, context, client):
    return Message(Error(4711, TEXT), reply_to=message)


def crashes(message, context, client):
    raise RuntimeError(TEXT)


def silent(message, context, client):
    return None


def shapeless(message, context, client):
    return summed(message, np.zeros(7))


def covert_alone(message, context, client):
    reply = covert(message, context, client)
    del reply.content["arrays"]
    return reply


WAYS = [honest, metric, config, names, covert, metadata, state]
FAILURES = [error, crashes, silent, shapeless, covert_alone]


@pytest.fixture(scope="module")
def both():
    """Return a node, the runtimes of a gate before it, and what the app does, which a test sets."""
    app = SimpleNamespace(work=honest, seen=[])

    def work(message, context, client):
        app.seen.append(message)
        return app.work(message, context, client)

    with pytest.MonkeyPatch.context() as patch, gated(work) as (node, up, down):
        patch.setattr(gate, "_sleep", lambda until: None)  # replies leave at once
        yield SimpleNamespace(node=node, up=up, down=down, app=app)


def owner(folder, agreement=AGREEMENT, **options) -> SummedMod:
    """Return a new mod as the owner of a node has it; what lasts is in a folder."""
    account = options.pop("account", None) or SumsAccount(
        10.0, delta=1e-3, path=folder / "ledger.json", create=True
    )
    settings = {"budget": account, "failing": "zero", "secrets": "file", **options}
    return SummedMod(agreement, lambda context: KEYS[0], **settings)


class Sums:
    """Rounds of a server whose first client is a node behind a gate.

    The stages of `through` pass the node and the gate; in the others the mod is called.
    """

    def __init__(self, both, make, through=(Stage.MASK,), agreement=AGREEMENT, **options) -> None:
        self.through = through
        self.both, self.make, self.agreement = both, make, agreement
        self.options = {"every": EVERY, **options}
        self.clients = {index: SummingClient(agreement, KEYS[index]) for index in (1, 2)}
        self.server = SummingServer(agreement, 0)
        self.calls: dict[int, list[tuple[str, int]]] = {}
        self.replies: dict[int, Message] = {}

    def asked(self, data: bytes, kind="train") -> Message:
        """Return the reply of the node to a message; the gate is a new one each time."""
        node = self.both.node
        node.put(MODEL, kind, records={SUM: sum_record(data)})
        before = len(node.calls)
        assert Gate(self.make(), self.both.up, self.both.down, **self.options).step()
        left_out = ("send-task-heartbeat", "acquire-task")
        sent = [(path, len(body)) for path, body in node.calls[before:] if not path.endswith(left_out)]
        self.calls[data[5]] = sorted(sent)
        self.replies[data[5]] = node.reply()
        return self.replies[data[5]]

    def direct(self, data: bytes) -> Message:
        """Return the reply of a new mod to a message; it asks no app."""
        with flower.identity(RUN):
            message = Message(RecordDict({SUM: sum_record(data)}), NODE, "train")
        context = Context(run_id=RUN, node_id=NODE, node_config={}, state=RecordDict(), run_config={})
        reply = self.make()(message, context, None)
        assert not context.state
        return reply

    def run(self, number: int, until: int = 5, others=OTHERS) -> bytes | None:
        """Run a round up to a stage; return the node's message of it, or None after the last one."""
        self.server = SummingServer(self.agreement, number)
        messages = self.server.invite(list(range(CLIENTS)))
        for stage in range(until):
            replies = {
                index: client.answer(messages[index], lambda index=index: others[index - 1])
                for index, client in self.clients.items()
            }
            replies[0] = sum_bytes((self.asked if stage in self.through else self.direct)(messages[0]))
            messages = self.server.proceed(replies)
        return messages.get(0)

    @property
    def node_part(self) -> np.ndarray:
        """What the opened sum holds beside the other clients' numbers."""
        return (self.server.opened.total.astype(np.uint64) - OTHERS.sum(axis=0)) & np.uint64((1 << 20) - 1)


def invitation(number: int) -> bytes:
    return SummingServer(AGREEMENT, number).invite(range(CLIENTS))[0]


def leaks(data: bytes) -> bool:
    return TEXT.encode() in data or holds(data, SECRET) or holds(data, SECRET.astype(np.int64))


def test_numbers_are_recognised_but_not_in_hashes() -> None:
    for found in (b"loss: 12345", b"[31337, 2]", b"70001.123456789", SECRET[:1].tobytes(), TEXT.encode()):
        assert leaks(b"\x0a" + found + b"\x12")
    assert not leaks(b"5855511c-aba5-4b03-abde-07fc89db12345f 10239769c70001b170824132509")


def test_every_stage_is_answered_by_another_gate_and_the_sum_is_right(both, tmp_path) -> None:
    both.app.work, both.app.seen[:] = honest, []
    sums = Sums(both, lambda: owner(tmp_path), through=range(5))
    sums.run(1)
    assert sums.server.opened.members == (0, 1, 2)
    np.testing.assert_array_equal(sums.node_part, SECRET.astype(np.uint64))
    (message,) = both.app.seen  # asked once, and told nothing of the protocol
    assert sorted(message.content) == ["arrays", "config"]
    ledger = bitldp.Ledger.load(tmp_path / "ledger.json")
    assert (ledger.sums.spent, ledger.spent) == (1.0, 0.0)
    left = {path.name for path in tmp_path.iterdir() if path.suffix != ".lock"}
    assert left == {"ledger.json", "ledger.json.rounds"}


@pytest.fixture(scope="module")
def usual(both, tmp_path_factory):
    """Return a round in which the app is honest."""
    folder = tmp_path_factory.mktemp("usual")
    both.app.work = honest
    sums = Sums(both, lambda: owner(folder))
    sums.run(1)
    return sums


@pytest.mark.parametrize("way", [*WAYS, *FAILURES], ids=lambda way: way.__name__)
def test_no_way_out_leads_past_the_gate(way, both, usual, tmp_path) -> None:
    """Whatever the app does, the reply has the same fields and sizes, and a failure is nobody's record."""
    both.app.work, start = way, len(both.node.calls)
    every = LATE if way in (silent, crashes) else EVERY  # the gate waits for them
    sums = Sums(both, lambda: owner(tmp_path), every=every)
    sums.run(1)
    expected = np.zeros(5) if way in FAILURES else SECRET.astype(np.uint64)
    np.testing.assert_array_equal(sums.node_part, expected)
    assert sums.calls == usual.calls  # not even how many bytes, or requests, depends on the app
    assert not leaks(b"\n".join(bytes(body) for _, body in both.node.calls[start:]))
    reply, other = sums.replies[Stage.MASK], usual.replies[Stage.MASK]
    assert list(reply.content) == [SUM]
    assert list(reply.content[SUM]) == ["message"]
    for name in ("run_id", "src_node_id", "dst_node_id", "group_id", "message_type"):
        assert getattr(reply.metadata, name) == getattr(other.metadata, name)
    assert not both.node.context.state
    assert bitldp.Ledger.load(tmp_path / "ledger.json").sums.spent == 1.0


@pytest.mark.parametrize("stage", list(Stage))
def test_the_server_s_second_asking_is_refused(stage, both, tmp_path) -> None:
    both.app.work = honest
    sums = Sums(both, lambda: owner(tmp_path))
    data = sums.run(3, until=stage)
    assert not sums.asked(data).has_error()
    assert sums.asked(data).error.reason == SUM_SENTENCE
    assert not (tmp_path / "ledger.json.secrets").exists()
    assert sums.asked(invitation(3)).error.reason == SUM_SENTENCE
    assert not sums.asked(invitation(4)).has_error()  # a later round is another one


def test_what_a_round_keeps_is_its_owner_s_alone_and_gone_after_it(both, tmp_path) -> None:
    both.app.work = honest
    sums = Sums(both, lambda: owner(tmp_path))
    kept = tmp_path / "ledger.json.secrets"
    for stage in range(1, 5):
        data = sums.run(stage, until=stage)
        assert kept.stat().st_mode & 0o077 == 0
    kept.write_bytes(b"{}")  # damaged: this client drops out of the round, and says nothing else
    assert sums.direct(data).error.reason == FAILURE_SENTENCE
    assert not kept.exists()
    sums.run(9)
    assert not kept.exists()


def test_local_releases_and_sums_are_charged_side_by_side(both, tmp_path) -> None:
    both.app.work = honest
    path = tmp_path / "ledger.json"
    with bitldp.Ledger.open(path, budget=4.0, create=True) as ledger:
        ledger.allow_sums(1.5, delta=1e-5)
    codec = UpdateCodec(lambda size: bitldp.Duchi(epsilon=4.0, features=size), clip=1.0)
    local = PrivateUpdateMod(codec, budget=ClientAccount(4.0, path=path), failing="zero")
    own = owner(tmp_path, account=SumsAccount(1.5, delta=1e-5, path=path))
    sums = Sums(both, lambda: local, range(5), sums=own)
    sums.run(1)
    both.node.put(MODEL)
    Gate(local, both.up, both.down, every=EVERY).step()
    assert both.node.reply().content.keys() == {"arrays", "metrics"}
    after = bitldp.Ledger.load(path)
    assert after.spent == pytest.approx(4.0)
    assert (after.sums.spent, after.sums.budget) == (1.0, 1.5)
    assert sums.asked(sums.run(2, until=Stage.MASK)).error.reason == BUDGET_SENTENCE
    both.node.put(MODEL, turn=2)
    Gate(local, both.up, both.down, every=EVERY).step()
    assert both.node.reply().error.reason == BUDGET_SENTENCE


def test_other_messages_are_answered_by_a_sentence(both, tmp_path) -> None:
    both.app.seen[:] = []
    sums = Sums(both, lambda: owner(tmp_path))
    assert sums.asked(b"garbage").error.reason == SUM_SENTENCE
    for kind, sentence in (
        ("train", SUM_SENTENCE),
        ("evaluate", OTHERS_SENTENCE),
        ("query", OTHERS_SENTENCE),
    ):
        both.node.put(MODEL, kind)
        Gate(owner(tmp_path), both.up, both.down, every=EVERY).step()
        assert both.node.reply().error.reason == sentence
    assert not both.app.seen


def test_stages_without_the_app_are_answered_after_a_short_time(both, tmp_path, monkeypatch) -> None:
    waited = []
    both.app.work = honest
    monkeypatch.setattr(gate, "_sleep", waited.append)
    monkeypatch.setattr(gate, "time", SimpleNamespace(monotonic=lambda: 0.0))  # nothing takes time
    sums = Sums(both, lambda: owner(tmp_path), range(5), short=2.0)
    monkeypatch.setattr(type(both.down), "ask", lambda self, question, until: summed(question.message))
    sums.run(1)
    assert waited == [2.0, 2.0, EVERY, 2.0, 2.0]


def test_what_would_let_more_than_shares_out_is_refused(both, tmp_path) -> None:
    def refused(sentence, mod, **options):
        with pytest.raises((TypeError, ValueError), match=sentence):
            Gate(mod, both.up, both.down, **{"every": EVERY, **options})

    for name, value in (("failing", "refuse"), ("nonfinite", "refuse"), ("secrets", "context")):
        wrong = owner(tmp_path, **{name: value})
        refused(f"mod: must have {name}=", wrong)
        refused(f"sums: must have {name}=", owner(tmp_path), sums=wrong)
    refused("sums: must be a SummedMod, not int", owner(tmp_path), sums=3)
    refused("short: must be every at most", owner(tmp_path), short=61.0)
    refused("short", owner(tmp_path), short=0.0)
    with pytest.warns(UserWarning, match="run"):
        fleeting = SumsAccount(1.0, path="run")
    with pytest.raises(ValueError, match="secrets: are kept beside the ledger"):
        owner(tmp_path, account=fleeting)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Count(), [0.0]),
        (Histogram(3), [0.0, 0.0, 0.0]),
        (Number((0.0, 100.0), 255), 50.0),
        (Vector(4), np.zeros(4)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_neutral_share_is_noise_around_no_record(kind, expected) -> None:
    """100 shares, each of its seed: the estimate is within 5 standard errors of that of no records."""
    total = SecureSum(kind, epsilon=0.1, clients=100)
    shares = [total.share_neutral(rng=seed) for seed in range(100)]
    assert {share.dtype for share in shares} == {total.dtype}
    estimate = total.decode(total.add(*shares), 100)
    step = 100.0 / 255 if isinstance(kind, Number) else 0.0
    assert np.abs(np.asarray(estimate.value) - expected).max() < 5.0 * np.max(estimate.stderr) + step
    np.testing.assert_array_equal(total.share_neutral(rng=3), shares[3])
    assert any((share != shares[0]).any() for share in shares[1:])
