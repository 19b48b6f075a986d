"""The clients of the systems against a server that means harm, clients that fail, and runs that are cut."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import InProcessGrid, RoundFailedError, flower, run_in_process, to_record
from bitldp.federated.client.mod import BUDGET_SENTENCE, FAILURE_SENTENCE
from bitldp.ledger import BudgetExceededError, Ledger
from bitldp_papers import get
from bitldp_papers.run.client import Client, silent
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from support.small_runs import SMALL, model, run, same

UPDATES = {"place": "updates", "mechanism": "hm", "epsilon": 6.0}


def settings(name: str, out: Path, **given: Any) -> Any:
    return get(name).configure(preset="quick", **{**SMALL[name], "out": str(out), **given})


def asked(name: str, chosen: Any, node: dict[str, Any], arrays: Any, turn: int = 1, **config: Any) -> Any:
    """Send one training message to the only client, as a server could write it; return its reply."""
    grid = InProcessGrid(
        get(name).client_app, 3, run_config=chosen.config(), node_config=node, raise_errors=True
    )
    with flower.identity(1):
        content = RecordDict(
            {"arrays": to_record(arrays), "config": ConfigRecord({"server-round": turn, **config})}
        )
        (reply,) = grid.send_and_receive([Message(content, 2, "train")])
    return reply


def weights(chosen: Any) -> dict[str, np.ndarray]:
    system: Any = get("bitrand" if hasattr(chosen, "place") else "brr")
    return {f"{index:03}": array for index, array in enumerate(system.rounds(chosen).initial())}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("bitrand", {"mechanism": "noiseless"}),
        ("bitrand", {"mechanism": "noiseless", "place": "updates"}),
        ("ldpfl", {"mechanism": "noiseless"}),
        ("ldpfl", {}),
        ("brr", {"mechanism": "noiseless"}),
        ("brr", {"mechanism": "noiseless", "task": "trees", "data": "breast_cancer", "depth": 2}),
        ("brr", {"task": "vectors"}),
    ],
)
def test_a_budget_refuses_a_run_that_lets_something_leave_as_it_is(
    name: str, given: dict[str, Any], tmp_path: Path
) -> None:
    """The server writes the mechanism into the run's configuration; "noiseless" must not undo a budget."""
    system, chosen = get(name), settings(name, tmp_path / "run", rounds=1, **given)
    sent: list[bytes] = []
    with pytest.raises(RoundFailedError):
        run_in_process(
            system.server_app,
            system.client_app,
            3,
            run_config=chosen.config(),
            node_config={"home": str(tmp_path / "clients"), "budget": 1e6},
            recorder=lambda node, data: sent.append(data),
        )
    assert len(sent) == 3
    assert all(BUDGET_SENTENCE.encode() in data and len(data) < 1000 for data in sent)


def test_a_client_may_take_part_all_the_same(tmp_path: Path) -> None:
    context = Context(1, 2, {}, RecordDict(), {})
    node = {"partition-id": 0, "num-partitions": 1, "home": str(tmp_path), "budget": 1.0}
    for given, refused in (
        (node, True),
        ({**node, "uncovered": True}, False),
        ({**node, "budget": 2e400}, 0),
    ):
        context.node_config = given
        client = Client.of(context, "bitrand")
        if refused:
            with pytest.raises(BudgetExceededError, match="the labels would leave"):
                client.expose("the labels")
        else:
            client.expose("the labels")


def test_a_budget_that_was_lowered_holds(tmp_path: Path) -> None:
    (tmp_path / "00000").mkdir()
    ledger = Ledger(10.0)
    ledger.charge(bitldp.Duchi(epsilon=2.0))
    ledger.save(tmp_path / "00000" / "ledger.json")
    context = Context(1, 2, {"partition-id": 0, "num-partitions": 1, "home": str(tmp_path)}, RecordDict(), {})
    Client.of(context, "bitrand")
    context.node_config["budget"] = 5.0
    with pytest.raises(BudgetExceededError, match="created with a larger budget"):
        Client.of(context, "bitrand")


def test_a_folder_is_of_one_clients_records(tmp_path: Path) -> None:
    """Labels of one deal would train on the released features of another."""
    home = {"home": str(tmp_path / "clients"), "seeded": True}
    first = settings("brr", tmp_path / "a", task="vectors")
    arrays = [np.zeros(shape, np.float32) for shape in ((64, 4), 4, (4, 4), 4, (4, 10), 10)]
    named = {f"{place:03}": array for place, array in enumerate(arrays)}
    assert not asked("brr", first, home, named).has_error()
    assert not asked("brr", first, home, named, turn=2).has_error()
    reply = asked("brr", settings("brr", tmp_path / "b", task="vectors", seed=2), home, named)
    assert reply.error.reason == FAILURE_SENTENCE


@pytest.mark.parametrize("clip", [float("inf"), float("nan"), 0.0, -1.0, "x", None])
def test_a_threshold_that_is_none_is_refused_in_one_sentence(clip: Any, tmp_path: Path) -> None:
    chosen = settings("brr", tmp_path / "run")
    config = {} if clip is None else {"clip": clip}
    reply = asked("brr", chosen, {"home": str(tmp_path / "clients")}, weights(chosen), **config)
    assert reply.error.reason == FAILURE_SENTENCE
    assert not (tmp_path / "clients" / "00000" / "ledger.json").exists()


@pytest.mark.parametrize("clip", [5e-324, 1e-300, 1e300])
def test_a_threshold_out_of_scale_says_nothing_and_costs_the_same(clip: float, tmp_path: Path) -> None:
    chosen = settings("brr", tmp_path / "run")
    reply = asked("brr", chosen, {"home": str(tmp_path / "clients")}, weights(chosen), clip=clip)
    assert list(reply.content["arrays"]) == ["report"]
    ledger = Ledger.load(tmp_path / "clients" / "00000" / "ledger.json")
    assert ledger.spent == pytest.approx(ledger.budget / chosen.rounds)


def test_a_larger_model_costs_more_than_there_is(tmp_path: Path) -> None:
    """The budget is that of the system's model, not of what the server sends."""
    chosen = settings("bitrand", tmp_path / "run", **UPDATES, label_epsilon=1.0)
    big = {name: np.concatenate([array] * 4) for name, array in weights(chosen).items()}
    reply = asked("bitrand", chosen, {"home": str(tmp_path / "clients"), "budget": 1.0, "create": True}, big)
    assert reply.error.reason == BUDGET_SENTENCE


@pytest.mark.parametrize("turn", [1, 2, 0, -3, 3])
def test_no_tree_is_grown_that_the_run_has_not(turn: int, tmp_path: Path) -> None:
    chosen = settings("brr", tmp_path / "run", task="trees", data="breast_cancer", depth=2)
    grid = InProcessGrid(
        get("brr").client_app, 3, run_config=chosen.config(), node_config={"home": str(tmp_path / "clients")}
    )
    with flower.identity(1):
        content = RecordDict(
            {"arrays": to_record({"leaves": np.zeros(4)}), "ensemble": to_record([np.zeros((9, 4))])}
        )
        content["config"] = ConfigRecord({"server-round": turn})
        (answer,) = grid.send_and_receive([Message(content, 2, "train")])
    if turn in (1, 2):
        assert list(answer.content["arrays"]) == ["report"]
    else:
        assert answer.error.reason == FAILURE_SENTENCE


def test_learned_ranges_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from bitldp_papers.run import drive

    data, *parts = drive.loaded("digits")
    assert "ranges" not in run("bitrand", tmp_path / "a", rounds=1)[0].privacy.not_covered
    learned = (replace(data, public_ranges=False), *parts)
    monkeypatch.setattr(drive, "loaded", lambda name: learned)
    assert (
        "ranges that features are scaled by"
        in run("bitrand", tmp_path / "b", rounds=1)[0].privacy.not_covered
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_a_model_that_overflows_on_some_records_is_no_oracle(
    value: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether a gradient is finite depends on the records: a report leaves and is charged either way.

    One feature alone reaches the outputs, which overflow where it is positive: sums of many terms overflow in
    one order and not in another, and the order is the machine's.
    """
    chosen = settings("brr", tmp_path / "run")
    arrays = {name: np.zeros_like(array) for name, array in weights(chosen).items()}
    first, _, second, _ = arrays.values()
    first[36], second[:, 0] = value, value
    with caplog.at_level(logging.WARNING, "bitldp.federated"):
        reply = asked("brr", chosen, {"home": str(tmp_path / "clients")}, arrays, clip=0.1)
    assert list(reply.content["arrays"]) == ["report"]
    assert "not finite" in caplog.text
    assert Ledger.load(tmp_path / "clients" / "00000" / "ledger.json").spent > 0.0


def test_what_goes_wrong_in_a_client_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no update is perturbed, and training is on released records."""
    from bitldp_papers.models import nets

    def fail(*arguments: Any, **options: Any) -> Any:
        raise RuntimeError("record 17 is 0.123456789")

    chosen = settings("bitrand", tmp_path / "run")
    monkeypatch.setattr(nets, "train", fail)
    reply = asked("bitrand", chosen, {"home": str(tmp_path / "clients")}, weights(chosen))
    assert reply.error.reason == FAILURE_SENTENCE


@pytest.mark.parametrize("name", SMALL)
def test_every_systems_client_is_silent(name: str) -> None:
    """Flower sends an exception's text to the server: the first mod of every client app keeps it in."""
    assert get(name).client_app._mods[0] is silent


@pytest.mark.parametrize("seeded", [True, False])
def test_a_round_that_is_asked_twice_is_released_once(seeded: bool, tmp_path: Path) -> None:
    chosen = settings("bitrand", tmp_path / "run", **UPDATES)
    node, arrays = {"home": str(tmp_path / "clients"), "seeded": seeded}, weights(chosen)

    def report(sent: dict[str, np.ndarray], turn: int = 1) -> bytes:
        return bytes(asked("bitrand", chosen, node, sent, turn).content["arrays"]["report"].data)

    def spent() -> float:
        return Ledger.load(tmp_path / "clients" / "00000" / "ledger.json").spent

    first = report(arrays)
    assert spent() == pytest.approx(2.0)
    assert report(arrays) == first
    assert spent() == pytest.approx(2.0)
    # Another model for the same round is another release: its price, and none of the first one's coins.
    other = {name: array + np.float32(1e-3) for name, array in arrays.items()}
    assert report(other) != first
    assert spent() == pytest.approx(4.0)
    # A damaged file of the last report is a new release.
    (tmp_path / "clients" / "00000" / "last-report.npz").write_bytes(b"PK")
    assert (report(other) == first) is False
    assert spent() == pytest.approx(6.0)
    assert asked("bitrand", chosen, node, arrays, 2).error.reason == BUDGET_SENTENCE


def test_a_server_that_stops_within_a_round_resumes_with_the_budget_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reports of the round that was cut are paid for: asked again, the clients send them again."""
    whole, _ = run("bitrand", tmp_path / "whole", **UPDATES)
    answer, answered = InProcessGrid._answer, []

    def stop(self: InProcessGrid, message: Message) -> Message:
        if len(answered) == 5:  # two of three clients have answered in the second round
            raise KeyboardInterrupt
        answered.append(answer(self, message))
        return answered[-1]

    cut = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(InProcessGrid, "_answer", stop)
        with pytest.raises(KeyboardInterrupt):
            run("bitrand", cut, **UPDATES)
    summary, rows = run("bitrand", cut, **UPDATES, resume=True)
    assert same(model(cut), model(tmp_path / "whole"))
    assert [row.get("reports") for row in rows] == [None, 3, 3, 3]
    assert summary.privacy == whole.privacy
    for folder in (cut / "clients").iterdir():
        assert Ledger.load(folder / "ledger.json").spent == pytest.approx(summary.privacy.record)


#: Settings in which everybody is asked in every round.
ALL = {"fedsel": {"clients": 3, "batch": 3}}


@pytest.mark.parametrize("name", SMALL)
def test_a_client_that_dies_does_not_end_the_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = InProcessGrid._answer

    def dying(self: InProcessGrid, message: Message) -> Message:
        if message.metadata.dst_node_id == 3:
            return flower.refusal(message, flower.FAILED, "gone")
        return answer(self, message)

    monkeypatch.setattr(InProcessGrid, "_answer", dying)
    _, rows = run(name, tmp_path / "run", rounds=2, **ALL.get(name, {}))
    assert [(row["reports"], row["failed"], row["rejected"]) for row in rows[1:]] == [(2, 1, 0)] * 2


def test_a_client_that_leaves_for_good_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("the server waits"))
    monkeypatch.setattr("flwr.serverapp.strategy.strategy_utils.sleep", lambda s: pytest.fail("it waits"))
    rounds: list[int] = []
    nodes = InProcessGrid.get_node_ids
    monkeypatch.setattr(
        InProcessGrid, "get_node_ids", lambda self: list(nodes(self))[: 3 if not rounds else 2]
    )
    chosen = settings("bitrand", tmp_path / "run", rounds=3)
    get("bitrand").run(chosen, watcher=lambda row: rounds.append(1) if row["round"] == 1 else None)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line).get("reports") for line in lines] == [None, 3, 2, 2]


GARBAGE = {
    "shape": lambda arrays: {**arrays, "000": np.zeros((2, 2), np.float32)},
    "names": lambda arrays: {"x": np.zeros(3)},
    "nan": lambda arrays: {**arrays, "001": np.full_like(arrays["001"], np.nan)},
    "none": lambda arrays: {},
    "bytes": lambda arrays: None,
    "weight": lambda arrays: arrays,
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_client_that_sends_garbage_is_left_out(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = InProcessGrid._answer

    def bad(self: InProcessGrid, message: Message) -> Message:
        reply = answer(self, message)
        if message.metadata.dst_node_id == 3:
            arrays = {name: each.numpy() for name, each in reply.content["arrays"].items()}
            made = GARBAGE[kind](arrays)
            if made is None:
                made = {name: Array("float32", (3,), "numpy.ndarray", b"garbage") for name in arrays}
                reply.content["arrays"] = ArrayRecord(made)
            else:
                reply.content["arrays"] = to_record(made)
            if kind == "weight":
                reply.content["metrics"] = MetricRecord({"num-examples": float("inf")})
        return reply

    monkeypatch.setattr(InProcessGrid, "_answer", bad)
    _, rows = run("bitrand", tmp_path / "run", rounds=1)
    assert (rows[1]["reports"], rows[1]["failed"], rows[1]["rejected"]) == (2, 0, 1)
    assert all(np.isfinite(array).all() for array in model(tmp_path / "run").values())


def test_all_clients_fail_and_the_run_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = run("bitrand", tmp_path / "whole")
    answer = InProcessGrid._answer

    def failing(self: InProcessGrid, message: Message) -> Message:
        if message.content["config"]["server-round"] == 2:
            return flower.refusal(message, flower.FAILED, "gone")
        return answer(self, message)

    with monkeypatch.context() as patch:
        patch.setattr(InProcessGrid, "_answer", failing)
        with pytest.raises(RoundFailedError, match=r"round 2: no client sent .*\(3 failed, 0 rejected\)"):
            run("bitrand", tmp_path / "cut")
    assert int(model(tmp_path / "cut")["round"]) == 1
    summary, _ = run("bitrand", tmp_path / "cut", resume=True)
    assert same(model(tmp_path / "cut"), model(tmp_path / "whole"))
    assert summary.score == whole.score


def test_what_looks_at_nothing_costs_nothing(tmp_path: Path) -> None:
    summary, rows = run("bitrand", tmp_path / "run", mechanism="random", rounds=1)
    assert (summary.privacy.claimed, summary.privacy.record) == (0.0, 0.0)
    assert rows[0]["accuracy"] == rows[1]["accuracy"]


@pytest.mark.parametrize("name", SMALL)
def test_nothing_of_a_client_but_its_reply_leaves(name: str, tmp_path: Path) -> None:
    """A recording transport: of a record, no row of four numbers or more is in any byte that leaves."""
    from bitldp_papers.run.share import holding

    sent: dict[int, list[bytes]] = {}
    chosen = settings(name, tmp_path / "run", rounds=2, **ALL.get(name, {}))
    get(name).run(chosen, recorder=lambda node, data: sent.setdefault(node, []).append(data))
    assert len(sent) == 3
    for node, messages in sent.items():
        held = holding(chosen.data, node - 2, 3, seed=chosen.seed)
        for data in messages:
            for row in held.x[:50]:
                for kind in (np.float32, np.float64):
                    assert row[16:20].astype(kind).tobytes() == bytes(4 * kind().nbytes) or (
                        row[16:20].astype(kind).tobytes() not in data
                    )
        # Nor does the size of a message depend on the client (but for the length of its number).
        assert {len(data) for data in messages} <= {
            len(data) + d for data in sent[2] for d in (-2, -1, 0, 1, 2)
        }
