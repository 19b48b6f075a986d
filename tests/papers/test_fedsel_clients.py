"""The clients of the system fedsel: one report an epoch, whatever happens between, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.federated import ClientAccount, InProcessGrid, flower, to_record
from bitldp.federated.client.mod import BUDGET_SENTENCE, FAILURE_SENTENCE, REPORT, STYPE
from bitldp.ledger import Ledger
from bitldp_papers import get
from bitldp_papers.fedsel.settings import selecting
from bitldp_papers.models import linear
from bitldp_papers.run.share import holding
from flwr.app import ConfigRecord, Message, RecordDict
from support.fedsel_runs import SIZE, run, settings, weights


class One:
    """One client that is asked by hand."""

    def __init__(self, home: Path, budget: float | None = None, **given: Any) -> None:
        self.settings = settings(home, **{"clients": 1, "batch": 1, "rounds": 2, **given})
        self.node = {"home": str(home), "seeded": True} | (
            {} if budget is None else {"budget": budget, "create": True}
        )
        self.sent: list[bytes] = []
        self.home = home / "00000"
        self.restart()

    def restart(self) -> None:
        self.grid = InProcessGrid(
            get("fedsel").client_app,
            1,
            run_config=self.settings.config(),
            node_config=self.node,
            recorder=lambda node, data: self.sent.append(data),
        )

    def ask(self, turn: int, model: np.ndarray | None = None) -> Message:
        arrays = np.zeros((SIZE, 1), np.float32) if model is None else model
        content = {"arrays": to_record({"000": arrays}), "config": ConfigRecord({"server-round": turn})}
        with flower.identity(1):
            message = Message(RecordDict(content), 2, "train")
            (reply,) = self.grid.send_and_receive([message])
        return reply

    def report(self, turn: int) -> bytes:
        reply = self.ask(turn)
        assert not reply.has_error()
        return bytes(reply.content["arrays"][REPORT].data)

    @property
    def ledger(self) -> Ledger:
        return Ledger.load(self.home / "ledger.json")

    def residual(self) -> np.ndarray:
        with np.load(self.home / "residual.npz") as file:
            return file["residual"]


def test_nothing_but_the_report_leaves(tmp_path: Path) -> None:
    client = One(tmp_path)
    reply = client.ask(1)
    assert set(reply.content) == {"arrays", "metrics"}
    assert dict(reply.content["metrics"]) == {"num-examples": 1}
    assert set(reply.content["arrays"]) == {REPORT}
    assert reply.content["arrays"][REPORT].stype == STYPE
    client.ask(2)
    held = holding("breast_cancer", 0, 1, seed=1)
    x, y = linear.design(held.x, -1.0), linear.targets(held.y, 1)
    gradient = linear.gradient(np.zeros((SIZE, 1)), x, y, "logistic", 1e-4)
    private = [client.residual(), gradient, x, held.x[: 1 << 8]]
    everything = b"".join(client.sent)
    for number in np.concatenate([each.ravel() for each in private]):
        for dtype in (np.float64, np.float32):
            written = dtype(number).tobytes()
            assert abs(number) in (0.0, 1.0) or written not in everything
    assert np.count_nonzero(client.residual()) == SIZE - 1  # one was sent, and begins anew


def test_a_client_stops_after_its_releases(tmp_path: Path) -> None:
    client = One(tmp_path)
    exact = selecting(client.settings, SIZE).guarantee.record
    for turn in (1, 2):
        assert not client.ask(turn).has_error()
    assert client.ledger.spent == exact
    before = client.residual()
    client.restart()  # a restart brings nothing back
    third = client.ask(3)
    assert third.error.reason == BUDGET_SENTENCE
    assert not third.has_content()
    assert np.array_equal(client.residual(), before)
    (client.home / "residual.npz").unlink()  # nor does a memory that is lost
    assert client.ask(4).error.reason == BUDGET_SENTENCE
    assert client.ledger.spent == exact


def test_a_client_keeps_its_own_budget(tmp_path: Path) -> None:
    client = One(tmp_path, budget=5.0)  # of 8: one round
    assert not client.ask(1).has_error()
    assert client.ask(2).error.reason == BUDGET_SENTENCE
    assert client.ledger.spent <= 4.0


def test_a_question_asked_again_is_answered_by_the_same_bytes(tmp_path: Path) -> None:
    client = One(tmp_path)
    first = client.report(1)
    kept = client.residual()
    client.restart()
    assert client.report(1) == first
    assert np.array_equal(client.residual(), kept)
    assert client.ledger.spent == pytest.approx(4.0)
    # The same round about another model is another question, and is paid for.
    assert not client.ask(1, np.full((SIZE, 1), 0.5, np.float32)).has_error()
    assert client.ledger.spent == pytest.approx(8.0)


def test_a_crash_before_the_charge_is_paid_for_before_anything_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = One(tmp_path)
    whole = One(tmp_path / "other").report(1)

    def crash(*_: Any) -> None:
        raise OSError("no power")

    with monkeypatch.context() as patch:
        patch.setattr(ClientAccount, "charge", crash)
        assert client.ask(1).error.reason == FAILURE_SENTENCE
    assert (client.home / "residual.npz").exists()
    assert not (client.home / "ledger.json").exists()
    client.restart()
    assert len(client.report(2)) == len(whole)  # another question: two releases are paid for
    assert client.ledger.spent == selecting(client.settings, SIZE).guarantee.record
    client = One(tmp_path / "again")
    with monkeypatch.context() as patch:
        patch.setattr(ClientAccount, "charge", crash)
        client.ask(1)
    assert client.report(1) == whole
    assert client.ledger.spent == pytest.approx(4.0)


def test_a_memory_that_was_lost_hides_no_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = One(tmp_path, rounds=3)
    client.ask(1)
    (client.home / "residual.npz").unlink()

    def crash(*_: Any) -> None:
        raise OSError("no power")

    with monkeypatch.context() as patch:
        patch.setattr(ClientAccount, "charge", crash)
        assert client.ask(2).error.reason == FAILURE_SENTENCE
    assert not client.ask(2).has_error()
    assert sum(entry.count for entry in client.ledger.entries) == 2


def test_whatever_fails_nothing_leaves(tmp_path: Path) -> None:
    client = One(tmp_path)
    client.ask(1)
    spent, kept = client.ledger.spent, client.residual()
    bad = np.full((SIZE, 1), np.nan, np.float32)
    assert client.ask(2, bad).error.reason == FAILURE_SENTENCE
    assert client.ledger.spent == spent  # not even paid
    assert np.array_equal(client.residual(), kept)
    assert client.ask(2, np.zeros((SIZE, 2), np.float32)).error.reason == FAILURE_SENTENCE
    path = client.home / "residual.npz"
    path.write_bytes(path.read_bytes()[:-40])
    assert client.ask(2).error.reason == FAILURE_SENTENCE
    path.unlink()
    client = One(tmp_path, epsilon=9.0)  # a server that changes its mind: the ledger is of another budget
    assert client.ask(2).error.reason == FAILURE_SENTENCE
    assert all(FAILURE_SENTENCE.encode() in data for data in client.sent)
    other = One(tmp_path / "other")
    other.ask(1)
    other.settings = settings(tmp_path / "other", clients=1, batch=1, rounds=2, ridge=0.5)
    other.restart()  # of the same budget: but the memory belongs to another loss
    assert other.ask(2).error.reason == FAILURE_SENTENCE


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"delay": "steps"},
        {"mechanism": "flat"},
        {"mechanism": "compressed"},
        {"mechanism": "top"},
        {"values": "none"},
    ],
)
def test_a_server_that_dies_within_a_round_goes_on_as_if_it_had_not(
    given: dict[str, Any], tmp_path: Path
) -> None:
    whole = run(tmp_path / "whole", **given)
    replies = 0

    def die(node: int, data: bytes) -> None:
        nonlocal replies
        replies += 1
        if replies == 8:  # the second client of the fourth round, in the second epoch
            raise KeyboardInterrupt

    cut = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        run(cut, recorder=die, **given)
    resumed = run(cut, resume=True, **given)
    assert np.array_equal(weights(cut), weights(tmp_path / "whole"))
    assert resumed.score == whole.score
    for folder in (cut / "clients").iterdir():
        other = tmp_path / "whole" / "clients" / folder.name
        with np.load(folder / "residual.npz") as mine, np.load(other / "residual.npz") as theirs:
            assert np.array_equal(mine["residual"], theirs["residual"])
            assert mine["released"] == 2
        if whole.privacy.record < np.inf:
            assert Ledger.load(folder / "ledger.json").spent == whole.privacy.record
