"""Secure sums in Flower apps: only the sum is seen, each round once, each share charged before it leaves."""

from __future__ import annotations

import copy
import json
import os

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.base.files import fleeting
from bitldp.federated import (
    SUM_SENTENCE,
    InProcessGrid,
    RoundFailedError,
    RunBudgetWarning,
    SummedMod,
    SummingStrategy,
    SumsAccount,
    flower,
    run_in_process,
    to_record,
)
from bitldp.federated.client.mod import BUDGET_SENTENCE, FAILURE_SENTENCE, OTHERS_SENTENCE
from bitldp.federated.wire.sums import SUM, sum_bytes, sum_record
from bitldp.sums import Count, SecureSum, Vector
from bitldp.sums.protocol import Agreement, Stage, SummingServer
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from support.sums import PlainSum, public, signing_keys

pytestmark = pytest.mark.filterwarnings("ignore::bitldp.federated.RunBudgetWarning")

CLIENTS, FLOOR = 7, 4


def agreed(total=None, clients: int = CLIENTS, **options) -> Agreement:
    total = total or PlainSum(clients, FLOOR, bits=20, coordinates=3)
    return Agreement(total, public(signing_keys(clients)), **options)


def private(client: int) -> np.ndarray:
    return np.array([12345, 70001, 99991]) * (client + 1) % 104_729


def client_app(mod, value=private, before=None) -> ClientApp:
    """Return a client; `before(message, context)`, a mod of its own, may answer in place of the others."""
    first = [] if before is None else [before]
    app = ClientApp(mods=[*first, mod])

    def work(message, context):
        mine = value(context.node_config["partition-id"])
        arrays = ArrayRecord({"x": Array(np.asarray(mine))})
        metrics = MetricRecord({"num-examples": 37, "train-loss": 0.123456789})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    app.train()(work)
    app.evaluate()(work)
    app.query()(work)
    return app


def mod(agreement: Agreement, **options) -> SummedMod:
    keys = signing_keys(agreement.clients)
    settings = {"value": "arrays", **options}
    if not isinstance(settings.get("budget"), SumsAccount):
        settings.setdefault("ledger", "run")
    return SummedMod(agreement, lambda context: keys[context.node_config["partition-id"]], **settings)


def run(agreement: Agreement, app: ClientApp, *, rounds: int = 1, arrays=None, recorder=None, **options):
    """Run rounds in process; return the strategy, and the run."""
    strategy = SummingStrategy(agreement, **{"update": "keep", "first_number": 5, **options})
    server = ServerApp()

    @server.main()
    def main(grid, context):
        strategy.start(grid, to_record(arrays or {"x": np.zeros(3)}), num_rounds=rounds, timeout=60)

    return strategy, run_in_process(server, app, agreement.clients, recorder=recorder)


def leaving(*gone: tuple[int, int]):
    """Return a mod that makes clients fail at a stage: pairs of a stage and a node."""

    def drop(message, context, call_next):
        data = sum_bytes(message)
        if (data[5], context.node_id) in gone:
            raise RuntimeError("gone")
        return call_next(message, context)

    return drop


def test_the_server_reads_the_sum_and_its_parts_in_the_metrics() -> None:
    agreement = agreed()
    strategy, done = run(agreement, client_app(mod(agreement)))
    np.testing.assert_array_equal(strategy.estimates[1].value, sum(map(private, range(CLIENTS))))
    assert strategy.survivors[1] == tuple(range(CLIENTS))
    metrics = done.result.train_metrics_clientapp[1]
    assert {metrics[name] for name in ("clients", "mask", "agree", "reveal", "survivors")} == {CLIENTS}
    assert metrics["failed"] == 0
    assert metrics["epsilon"] == 1.0


@pytest.mark.parametrize("stage", list(Stage))
def test_clients_may_drop_out_in_every_stage(stage: Stage) -> None:
    agreement = agreed()
    app = client_app(mod(agreement), before=leaving((stage, 3), (stage, 7)))
    strategy, done = run(agreement, app)
    left = set(range(CLIENTS)) - ({1, 5} if stage <= Stage.MASK else set())
    assert set(strategy.survivors[1]) == left
    np.testing.assert_array_equal(strategy.estimates[1].value, sum(map(private, left)))
    assert done.result.train_metrics_clientapp[1]["failed"] == 2


def test_too_few_survivors_end_the_run() -> None:
    agreement = agreed()
    app = client_app(mod(agreement), before=leaving((2, 3), (2, 4), (2, 6), (2, 7)))
    with pytest.raises(RoundFailedError, match="round 1: stage mask: 3 clients answered, 4 are needed"):
        run(agreement, app)


def numbers_among_bytes(**options) -> set[tuple[int, int, str]]:
    """Run once; return which client's numbers are among the bytes that it sent, and in which form."""
    agreement, sent = agreed(), {}

    def keep(node, data):
        sent[node] = sent.get(node, b"") + data

    run(agreement, client_app(mod(agreement), **options), recorder=keep)
    for data in sent.values():
        assert len(data) > 1000
        assert b"loss" not in data
        assert b"num-examples" not in data
    return {
        (node, int(value), kind)
        for node, data in sent.items()
        for value in private(node - 2)
        for kind in ("<i4", ">i4", "<f4", "<f8", ">f8")
        if np.array(value, kind).tobytes() in data
    }


def test_nothing_of_a_client_is_among_its_bytes() -> None:
    """Keys are random: four bytes of them are a number's once in 20,000 runs, and not in three (1e-15)."""
    assert not numbers_among_bytes() & numbers_among_bytes() & numbers_among_bytes()


def test_learning_adds_the_mean_of_the_differences() -> None:
    class Fixed(PlainSum):
        """Differences in thousandths; the mean of the survivors."""

        def share(self, x, *, rng=None):
            return np.round(1000.0 * x).astype(np.int64).astype(np.uint64) & np.uint64((1 << self.bits) - 1)

        def decode(self, total, survivors):
            half = 1 << (self.bits - 1)
            signed = (total.astype(np.int64) + half) % (2 * half) - half
            return bitldp.Estimate(signed / 1000.0 / survivors, np.zeros(3), survivors)

    agreement = agreed(Fixed(CLIENTS, FLOOR, bits=20, coordinates=3))
    app = client_app(
        mod(agreement, value="difference", budget=10.0, delta=1e-5),
        lambda client: np.array([1.0, -2.0, client]),
    )
    _, done = run(agreement, app, update="add", rounds=2, rate=0.5)
    np.testing.assert_allclose(done.result.arrays["x"].numpy(), [0.75, -1.5, 2.25], atol=1e-9)


def test_an_update_that_is_not_finite_is_summed_as_zeros() -> None:
    seen = []

    class Kept(PlainSum):
        def share(self, x, *, rng=None):
            seen.append(np.array(x))
            return np.zeros(3, np.uint32)

    agreement = agreed(Kept(CLIENTS, FLOOR))
    app = client_app(
        mod(agreement, value="difference"),
        lambda client: np.array([1.0, np.inf if client == 2 else 0.0, 2.0]),
    )
    run(agreement, app)
    assert sum(bool(each.any()) for each in seen) == CLIENTS - 1


def test_a_secure_sum_with_its_noise_is_estimated_within_its_interval() -> None:
    total = SecureSum(Count(), epsilon=4.0, delta=1e-5, clients=CLIENTS, floor=FLOOR)
    agreement = agreed(total)
    app = client_app(mod(agreement, rng=7), lambda client: np.array(client % 2 == 0))
    strategy, done = run(agreement, app)
    low, high = strategy.estimates[1].confidence_interval(0.999)
    assert low[0] <= 4.0 <= high[0]
    metrics = done.result.train_metrics_clientapp[1]
    assert metrics["epsilon"] == total.guarantee.central(CLIENTS).epsilon < 4.0
    assert metrics["delta"] == 1e-5
    again, _ = run(agreement, client_app(mod(agreement, rng=7), lambda client: np.array(client % 2 == 0)))
    np.testing.assert_array_equal(again.estimates[1].value, strategy.estimates[1].value)


class ToldVectors(SecureSum):
    """A secure sum whose shares the test keeps, in the order of the vectors' first entries."""

    def share(self, x, *, rng=None, threads=None):
        result = super().share(x, rng=rng, threads=threads)
        self.__dict__.setdefault("told", {})[round(float(np.asarray(x)[0]), 6)] = result
        return result


@pytest.mark.slow
@pytest.mark.parametrize("stage", list(Stage))
def test_vectors_are_summed_with_dropouts_in_every_stage(stage: Stage) -> None:
    """Of 1,000 numbers: the opened sum is that of the survivors' shares modulo 2^b, entry by entry."""
    total = ToldVectors(Vector(1000), epsilon=4.0, delta=1e-5, clients=CLIENTS, floor=FLOOR)
    agreement = agreed(total)
    x = np.random.default_rng(4).normal(size=(CLIENTS, 1000))
    x /= 1.01 * np.linalg.norm(x, axis=1, keepdims=True)
    app = client_app(mod(agreement), lambda client: x[client], before=leaving((stage, 4)))
    strategy, done = run(agreement, app, arrays={"x": np.zeros(1000)})
    left = [client for client in range(CLIENTS) if client != 2 or stage > Stage.MASK]
    assert strategy.survivors[1] == tuple(left)
    assert done.result.train_metrics_clientapp[1]["failed"] == 1
    shares = [total.__dict__["told"][round(float(x[client, 0]), 6)] for client in left]
    plain = np.array(shares, dtype=np.uint64).sum(axis=0) & np.uint64(total.modulus - 1)
    expected = total.decode(plain.astype(total.dtype), len(left))
    np.testing.assert_array_equal(strategy.estimates[1].value, expected.value)
    errors = (strategy.estimates[1].value - x[left].mean(axis=0)) / expected.stderr
    assert np.abs(errors).max() < 6.0


# -- what a client charges, and when it refuses


class Asked:
    """One client under a server that sends what it likes; the others are honest."""

    def __init__(self, agreement: Agreement, app: ClientApp) -> None:
        self.agreement = agreement
        self.grid = InProcessGrid(app, agreement.clients)
        self.server = SummingServer(agreement, 1)
        self.messages: dict[int, bytes] = {}

    def send(self, messages, kind="train"):
        with flower.identity(1), fleeting():  # nothing waits for the disk
            return list(
                self.grid.send_and_receive(
                    [
                        Message(
                            RecordDict({SUM: sum_record(data), "arrays": to_record({"x": np.zeros(3)})}),
                            node,
                            kind,
                        )
                        for node, data in messages.items()
                    ]
                )
            )

    def until(self, stage: int, number: int = 1) -> dict[int, bytes]:
        """Run a round up to a stage, and return its messages."""
        self.server = SummingServer(self.agreement, number)
        messages = self.server.invite(list(self.grid.get_node_ids()))
        for _ in range(stage):
            replies = self.send(messages)
            messages = self.server.proceed(
                {each.metadata.src_node_id: sum_bytes(each) for each in replies if not each.has_error()}
            )
        return messages

    def refused(self, messages, kind="train") -> set[str]:
        replies = self.send(messages, kind)
        return {reply.error.reason if reply.has_error() else "answered" for reply in replies}


@pytest.mark.slow
def test_a_record_is_in_one_sum_unless_its_budget_says_more() -> None:
    agreement = agreed()
    asked = Asked(agreement, client_app(mod(agreement)))
    asked.until(5, number=1)
    assert asked.server.opened is not None
    assert asked.refused(asked.until(2, number=2)) == {BUDGET_SENTENCE}
    more = Asked(agreement, client_app(mod(agreement, budget=2.0, delta=2e-6)))
    for number in (1, 2):
        more.until(5, number=number)
        assert more.server.opened is not None
    assert more.refused(more.until(2, number=3)) == {BUDGET_SENTENCE}


def test_a_share_is_charged_before_it_leaves_and_not_before_it_is_made() -> None:
    agreement, entries = agreed(), []
    own = mod(agreement)
    asked = Asked(agreement, client_app(own))
    for stage in range(5):
        messages = asked.until(stage, number=10 + stage) if stage < 3 else {}
        entries.append(len(own.account.ledger(asked.grid.contexts[2]).entries))
        if stage == 2:
            asked.send(messages)
            _, entry = own.account.ledger(asked.grid.contexts[2]).entries
    assert entries[:3] == [1, 1, 1]  # what sums may cost
    assert (entry.mechanism, entry.model, entry.guarantee.record) == ("PlainSum", "central", 1.0)
    assert entry.note == f"secure sum {agreement.digest.hex()[:32]}"


def test_a_client_whose_code_fails_is_not_charged_and_says_nothing() -> None:
    def failing(client):
        raise ValueError("a private 4711")

    agreement = agreed()
    own = mod(agreement)
    asked = Asked(agreement, client_app(own, failing))
    assert asked.refused(asked.until(2)) == {FAILURE_SENTENCE}
    assert own.account.ledger(asked.grid.contexts[2]).sums.spent == 0.0


def test_a_client_is_told_that_its_app_replied_with_an_error() -> None:
    def erring(message, context, call_next):
        return Message(Error(7, "a private 4711"), reply_to=message)

    agreement, failures = agreed(), []
    own = mod(agreement, on_failure=failures.append)
    app = ClientApp(mods=[own, erring])
    app.train()(lambda message, context: Message(RecordDict(), reply_to=message))
    asked = Asked(agreement, app)
    assert asked.refused(asked.until(2)) == {FAILURE_SENTENCE}
    assert {str(each) for each in failures} == {"the client app replied with an error"}


@pytest.mark.parametrize("kind", ["evaluate", "query"])
def test_other_messages_are_refused(kind: str) -> None:
    agreement = agreed()
    asked = Asked(agreement, client_app(mod(agreement)))
    assert asked.refused(asked.until(0), kind) == {OTHERS_SENTENCE}


def test_a_message_without_the_protocol_is_refused() -> None:
    agreement = agreed()
    grid = InProcessGrid(client_app(mod(agreement)), CLIENTS)
    with flower.identity(1):
        messages = [
            Message(RecordDict({"arrays": to_record({"x": np.zeros(3)})}), 2, "train"),
            Message(RecordDict({SUM: to_record({"message": np.zeros(3)})}), 3, "train"),
            Message(RecordDict({SUM: sum_record(b"garbage")}), 4, "train"),
        ]
        assert {each.error.reason for each in grid.send_and_receive(messages)} == {SUM_SENTENCE}


@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize("file", [False, True])
def test_a_stage_is_answered_once_whatever_copy_of_the_context_comes_by(stage, file, tmp_path) -> None:
    """An older context is put back: with a file the client refuses; a run's ledger goes back with it."""
    agreement = agreed()
    place = (lambda context: tmp_path / f"{context.node_id}.json") if file else "run"
    asked = Asked(agreement, client_app(mod(agreement, ledger=place, create=file)))
    messages = asked.until(stage)
    kept = copy.deepcopy(asked.grid.contexts)
    assert asked.refused(messages) == {"answered"}
    if file:
        asked.grid.contexts = kept
    assert asked.refused(messages) == {SUM_SENTENCE}


@pytest.mark.slow
def test_a_round_number_of_before_is_refused_after_a_restart(tmp_path) -> None:
    agreement = agreed()

    def fresh() -> Asked:
        place = lambda context: tmp_path / f"{context.node_id}.json"  # noqa: E731
        return Asked(agreement, client_app(mod(agreement, ledger=place, create=True, budget=5.0, delta=1e-3)))

    fresh().until(5, number=8)
    for number in (8, 7):
        assert fresh().refused(SummingServer(agreement, number).invite(range(2, 2 + CLIENTS))) == {
            SUM_SENTENCE
        }
    later = fresh()
    later.until(5, number=9)
    assert later.server.opened is not None
    journal = json.loads((tmp_path / "2.json.rounds").read_text())
    assert journal == {agreement.digest.hex(): [9, 4]}


@pytest.mark.slow
def test_a_ledger_of_local_releases_takes_sums_once_they_are_allowed(tmp_path) -> None:
    def place(context):
        return tmp_path / f"{context.node_id}.json"

    for node in range(2, 2 + CLIENTS):
        with bitldp.Ledger.open(tmp_path / f"{node}.json", budget=1.0, create=True) as ledger:
            ledger.charge(bitldp.WarnerRR(epsilon=1.0))
    agreement = agreed()
    own = mod(agreement, ledger=place)
    asked = Asked(agreement, client_app(own))
    assert asked.refused(asked.until(2, number=1)) == {BUDGET_SENTENCE}
    for node in range(2, 2 + CLIENTS):
        with bitldp.Ledger.open(tmp_path / f"{node}.json") as ledger:
            ledger.allow_sums(1.0, delta=1e-6)
    asked.until(5, number=2)
    assert asked.server.opened is not None
    ledger = own.account.ledger(asked.grid.contexts[2])
    assert (ledger.spent, ledger.sums.spent) == (bitldp.WarnerRR(epsilon=1.0).guarantee.record, 1.0)
    with pytest.raises(TypeError, match="budget: sums have a budget in the ledger"):
        mod(agreement, ledger=place, budget=3.0)


def test_the_usual_ledger_is_a_file_of_the_node_for_its_sums(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BITLDP_STATE", os.fspath(tmp_path))
    agreement = agreed()
    keys = signing_keys(CLIENTS)
    own = SummedMod(agreement, lambda context: keys[context.node_config["partition-id"]], value="arrays")
    assert own.account.budget == 1.0
    assert own.account.delta == 1e-6
    run(agreement, client_app(own))
    assert {path.name for path in (tmp_path / "ledgers").glob("*.sums.json")} == {
        f"node-{client}.sums.json" for client in range(CLIENTS)
    }
    other = SummedMod(agreement, lambda context: keys[context.node_config["partition-id"]], budget=2.0)
    with pytest.raises(ValueError, match="was created with budget 1 and delta 1e-06 for sums, not 2"):
        other.account.ledger(InProcessGrid(client_app(own), 1).contexts[2])
    with pytest.raises(RoundFailedError, match="stage mask: 0 clients"):
        run(agreement, client_app(own), first_number=99)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"value": "all"}, "value: "),
        ({"nonfinite": "drop"}, "nonfinite: "),
        ({"rng": -1}, "rng: "),
        ({"budget": SumsAccount(1.0), "ledger": "run"}, "budget: the account has"),
        ({"budget": -1.0}, "budget: "),
    ],
)
def test_parameters_of_the_mod_are_checked(options, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        mod(agreed(), **options)


def test_parameters_of_the_strategy_are_checked() -> None:
    for options, problem in (
        ({"update": "mean"}, "update"),
        ({"patience": 0}, "patience"),
        ({"rate": "x"}, "rate"),
    ):
        with pytest.raises((TypeError, ValueError), match=problem):
            SummingStrategy(agreed(), **options)
    for make in (SummingStrategy, lambda other: SummedMod(other, "key")):
        with pytest.raises(TypeError, match="agreement: must be an Agreement, not int"):
            make(3)


def test_a_run_s_ledger_is_warned_of() -> None:
    with pytest.warns(RunBudgetWarning):
        mod(agreed())


def test_the_mod_shows_no_key() -> None:
    assert repr(mod(agreed(), rng=12345)).startswith("SummedMod(PlainSum(clients=7, floor=4")
    assert "12345" not in repr(mod(agreed(), rng=12345))
