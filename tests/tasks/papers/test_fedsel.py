"""The system fedsel: one report a client and epoch, whatever happens between, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import Account, InProcessGrid, Layout, UpdateCodec, WireError, flower, to_record
from bitldp.federated.client.mod import BUDGET_SENTENCE, FAILURE_SENTENCE, REPORT, STYPE, PrivateUpdateMod
from bitldp.ledger import Ledger
from bitldp.papers import get
from bitldp.papers.fedsel.settings import codec, selecting
from bitldp.papers.models import linear
from bitldp.papers.run.share import holding, loaded
from bitldp.selection import PE, Compressed, FedSel, TwoStage
from flwr.app import ConfigRecord, Message, RecordDict

SMALL = {"clients": 6, "batch": 2, "rounds": 6, "epsilon": 8.0}
SIZE = 31  # coordinates of a linear model of breast_cancer


def settings(out: Path, **given: Any) -> Any:
    return get("fedsel").configure(quick=True, **{**SMALL, "out": str(out), **given})


def run(out: Path, **given: Any) -> Any:
    words = {name: given.pop(name) for name in ("recorder", "watcher", "threads") if name in given}
    return get("fedsel").run(settings(out, **given), seeded=True, **words)


def weights(out: Path) -> np.ndarray:
    with np.load(out / "checkpoint.npz") as file:
        return file["000"]


class One:
    """One client that is asked by hand."""

    def __init__(self, home: Path, budget: float | None = None, **given: Any) -> None:
        self.settings = settings(home, **{"clients": 1, "batch": 1, "rounds": 2, **given})
        self.node = {"home": str(home), "seeded": True} | ({} if budget is None else {"budget": budget})
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


@pytest.mark.parametrize("values", ["pm", "hm", "duchi"])
@pytest.mark.parametrize("select", ["PS", "EXP", "PE"])
def test_every_selection_with_every_value(select: str, values: str, tmp_path: Path) -> None:
    given = {"select": select, "values": values, "rounds": 2, "split": "free", "model": "svm"}
    summary = run(tmp_path, **given)
    chosen = settings(tmp_path, **given)
    stages = selecting(chosen, SIZE).stages
    assert summary.privacy.claimed == 8.0
    assert 7.9 < summary.privacy.record <= 8.0
    assert summary.privacy.record == stages.guarantee.record  # two rounds are less than an epoch
    assert "biased" in summary.caveat
    header = codec(chosen).plan(Layout.of({"000": np.zeros((SIZE, 1), np.float32)})).header
    assert header.payload <= -(-stages.report_bits // 8) + 1 <= 3
    assert summary.bytes_up == 4 * header.size  # two clients, two rounds
    assert np.count_nonzero(weights(tmp_path)) <= 4


def test_every_client_takes_part_once_in_an_epoch(tmp_path: Path) -> None:
    summary = run(tmp_path, rounds=5)  # two epochs, the second cut short
    exact = selecting(settings(tmp_path, rounds=5), SIZE).guarantee.record
    assert summary.privacy.record == exact
    ledgers = [Ledger.load(folder / "ledger.json") for folder in (tmp_path / "clients").iterdir()]
    counts = sorted(sum(entry.count for entry in ledger.entries) for ledger in ledgers)
    assert counts == [1, 1, 2, 2, 2, 2]
    assert max(ledger.spent for ledger in ledgers) == exact
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert all(row["reports"] == 2 for row in rows[1:])


def test_a_paper_calibration_says_what_it_is_worth(tmp_path: Path) -> None:
    summary = run(tmp_path, select="PE", calibration="paper", mu=0.5)
    assert summary.privacy.claimed == 8.0 < summary.privacy.record < 8.0 + 2 * np.log(2.0)


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
        patch.setattr(Account, "charge", crash)
        assert client.ask(1).error.reason == FAILURE_SENTENCE
    assert (client.home / "residual.npz").exists()
    assert not (client.home / "ledger.json").exists()
    client.restart()
    assert len(client.report(2)) == len(whole)  # another question: two releases are paid for
    assert client.ledger.spent == selecting(client.settings, SIZE).guarantee.record
    client = One(tmp_path / "again")
    with monkeypatch.context() as patch:
        patch.setattr(Account, "charge", crash)
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
        patch.setattr(Account, "charge", crash)
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


@pytest.mark.parametrize("mechanism", ["flat", "compressed", "full", "random", "top"])
def test_the_baselines(mechanism: str, tmp_path: Path) -> None:
    summary = run(tmp_path, mechanism=mechanism, c=2, values="hm")
    if mechanism in ("flat", "compressed"):
        assert 7.9 < summary.privacy.record <= summary.privacy.claimed == 8.0
    else:
        assert summary.privacy.record == np.inf
        assert summary.bytes_up >= 12 * 4 * SIZE
    assert ("biased" in summary.caveat) == (mechanism in ("compressed", "top"))
    folders = list((tmp_path / "clients").iterdir())
    kept = mechanism not in ("full", "random")
    assert all((folder / "residual.npz").exists() == kept for folder in folders)


def test_a_selection_that_hardly_errs_is_the_largest_coordinate(tmp_path: Path) -> None:
    run(tmp_path / "top", mechanism="top")
    run(tmp_path / "PS", values="none", k=1, epsilon=80.0)
    assert np.array_equal(weights(tmp_path / "top"), weights(tmp_path / "PS"))
    summary = run(tmp_path / "blind", values="none", k=1, epsilon=1e-9)
    assert summary.privacy.record == np.inf
    assert not np.array_equal(weights(tmp_path / "top"), weights(tmp_path / "blind"))


@pytest.mark.parametrize("delay", ["gradients", "steps"])
def test_a_run_is_algorithm_1(delay: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams: dict[tuple[int, int], np.random.SeedSequence] = {}
    plain = PrivateUpdateMod._stream

    def noted(self: PrivateUpdateMod, message: Any, context: Any, asked: bytes) -> Any:
        found = plain(self, message, context, asked)
        assert found is not None
        place = int(context.node_config["partition-id"])
        streams[place, int(message.content["config"]["server-round"])] = found[0]
        return found

    monkeypatch.setattr(PrivateUpdateMod, "_stream", noted)
    words: dict[str, Any] = {"momentum": 0.5, "rate": 3.0, "delay": delay, "mu": 0.3, "select": "PE"}
    run(tmp_path, clients=3, batch=3, rounds=4, **words)  # everybody in every round: four epochs
    held = [holding("breast_cancer", place, 3, seed=1) for place in range(3)]
    clients = [
        FedSel(SIZE, epsilon=8.0, rounds=4, select="PE", mu=0.3, batch=3, momentum=0.5) for _ in range(3)
    ]
    w = np.zeros((SIZE, 1), np.float32)
    inner, outer = (3.0, 1.0) if delay == "steps" else (1.0, 3.0)
    for turn in range(1, 5):
        total = np.zeros(SIZE)
        for place, client in enumerate(clients):
            x, y = linear.design(held[place].x, -1.0), linear.targets(held[place].y, 1)
            gradient = (inner * linear.gradient(w, x, y, "logistic", 1e-4)).astype(np.float32)
            record = gradient.reshape(1, -1).astype(np.float64)
            reports = client.release(record, rng=streams[place, turn])
            total += client.stages.decode(reports)[0]
        w = (w.astype(np.float64) - outer * (total / 3)[:, None]).astype(np.float32)
    assert np.allclose(weights(tmp_path), w, rtol=1e-5, atol=1e-6)
    for place, client in enumerate(clients):
        with np.load(tmp_path / "clients" / f"{place:05}" / "residual.npz") as file:
            assert np.allclose(file["residual"], client.state()["residual"], rtol=1e-5, atol=1e-6)


def test_the_largest_coordinate_is_sent_and_begins_anew(tmp_path: Path) -> None:
    run(tmp_path, mechanism="top", clients=1, batch=1, rounds=6, rate=0.5, momentum=0.25)
    held = holding("breast_cancer", 0, 1, seed=1)
    x, y = linear.design(held.x, -1.0), linear.targets(held.y, 1)
    w, residual = np.zeros((SIZE, 1), np.float32), np.zeros(SIZE)
    for _ in range(6):
        before = residual.copy()
        residual += linear.gradient(w, x, y, "logistic", 1e-4).ravel()
        place = np.argmax(np.abs(residual))
        update = np.zeros((SIZE, 1))
        update[place] = residual[place] + 0.25 * before[place]
        residual[place] = 0.0
        w = (w - 0.5 * update).astype(np.float32)
    assert np.allclose(weights(tmp_path), w, rtol=1e-5, atol=1e-6)


def test_a_round_is_a_step_along_the_mean_of_the_sparse_updates(tmp_path: Path) -> None:
    run(tmp_path, clients=2, rounds=1, rate=3.0)
    chosen = settings(tmp_path, clients=2, rounds=1, rate=3.0)
    plan = codec(chosen).plan(Layout.of({"000": np.zeros((SIZE, 1), np.float32)}))
    total = np.zeros(SIZE)
    for place in range(2):
        with np.load(tmp_path / "clients" / f"{place:05}" / "residual.npz") as file:
            total += plan.decode(file["answer"])
    assert np.allclose(weights(tmp_path).ravel(), -3.0 * total / 2, rtol=1e-6)


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_gradients_are_those_of_the_loss(model: str) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 1, (40, 5)), linear.targets(rng.integers(0, 3, 40), 3)
    w, step = rng.normal(size=(5, 3)), 1e-6
    slope = linear.gradient(w, x, y, model, 0.25)
    for place in np.ndindex(w.shape):
        ends = []
        for sign in (1.0, -1.0):
            moved = w.copy()
            moved[place] += sign * step
            ends.append(linear.loss(moved, x, y, model) + 0.125 * float((moved * moved).sum()))
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / (2.0 * step), abs=1e-6)


def test_the_gradient_vanishes_where_scikit_learn_stops() -> None:
    from sklearn.linear_model import LogisticRegression

    data, train, test = loaded("breast_cancer")
    x, y = linear.design(train, -1.0), linear.targets(data.train_labels, 1)
    ridge = 1e-2
    other = LogisticRegression(C=1.0 / (ridge * len(x)), fit_intercept=False, tol=1e-10, max_iter=10_000)
    best = other.fit(x, data.train_labels).coef_.T
    assert np.abs(linear.gradient(best, x, y, "logistic", ridge)).max() < 1e-6
    design = linear.design(test, -1.0)
    assert linear.accuracy(best, design, data.test_labels) == other.score(design, data.test_labels)


def test_features_are_scaled_and_classes_told_apart() -> None:
    x = np.array([[-1.0, 0.0, 1.0]], np.float32)
    assert linear.design(x, 0.0).tolist() == [[0.0, 0.5, 1.0, 1.0]]
    assert linear.design(x, -1.0).tolist() == [[-1.0, 0.0, 1.0, 1.0]]
    assert linear.targets(np.array([0, 1]), 1).tolist() == [[-1.0], [1.0]]
    assert linear.targets(np.array([2]), 3).tolist() == [[-1.0, -1.0, 1.0]]
    assert linear.initial(4, 2).shape == (5, 1)
    assert linear.initial(4, 3).shape == (5, 3)


@pytest.mark.parametrize("dimensions", [31, 32, 33])
def test_no_selection_fits_the_wire(dimensions: int) -> None:
    stages = TwoStage(PE(dimensions, 3, epsilon=0.1), bitldp.Piecewise(1.0))
    layout = Layout.of({"w": np.zeros(dimensions)})
    options: dict[str, Any] = {"clip": 1.0, "norm": "linf", "interval": (-1.0, 1.0)}
    with pytest.raises(ValueError, match="averaged without bias"):
        UpdateCodec(stages, **options)
    plan = UpdateCodec(stages, **options, allow_biased=True).plan(layout)
    assert sum(part.columns * part.bits for part in plan.header.parts) == stages.report_bits
    from bitldp.federated.wire.wire import write

    def wire(index: int) -> np.ndarray:
        return plan.decode(write(plan.header, [np.array([index], np.uint8), np.array([0], np.uint8)]))

    assert not wire(dimensions).any()  # none
    assert np.flatnonzero(wire(dimensions - 1)).tolist() == [dimensions - 1]
    if dimensions + 1 < 1 << stages.selection.report_bits:
        with pytest.raises(WireError, match="outside the alphabet"):
            wire(dimensions + 1)


def test_a_projection_fits_the_wire() -> None:
    compressed = Compressed(40, 5, epsilon=4.0, seed=1, c=2)
    options: dict[str, Any] = {"clip": 1.0, "norm": "linf", "interval": (-1.0, 1.0)}
    with pytest.raises(ValueError, match="averaged without bias"):
        UpdateCodec(compressed, **options)
    plan = UpdateCodec(compressed, **options, allow_biased=True).plan(Layout.of({"w": np.zeros(40)}))
    vector = np.linspace(-0.5, 0.5, 40)
    sent = plan.decode(plan.perturb(vector, rng=3))
    assert np.allclose(sent, compressed.recover(compressed.randomize(vector[None], rng=3)))
    assert plan.header.payload == 3  # 6 bits of indices, 16 of codes


def test_new_clients_of_the_same_mechanism() -> None:
    first = FedSel(5, epsilon=4.0, rounds=2, clients=3, mu=0.1, momentum=0.5)
    first.release(np.full((3, 5), 0.25), rng=1)
    other = first.fresh(2)
    assert other.stages is first.stages
    assert (other.guarantee, other.rounds, other.momentum) == (first.guarantee, 2, 0.5)
    assert other.released.tolist() == [0, 0]
    assert not other.state()["residual"].any()
    other.release(np.full((2, 5), 0.25), rng=1)
    assert first.released.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="clients"):
        first.fresh(0)


@pytest.mark.parametrize(
    ("given", "fragment"),
    [
        ({"batch": 7}, "batch: must be between 1 and 6"),
        ({"select": "PX"}, "select: must be one of"),
        ({"values": "none", "mechanism": "flat"}, "values: 'none' is not for"),
        ({"calibration": "paper"}, "calibration: 'paper' is for select='PE'"),
        ({"mu": 1.0}, "mu: must be in"),
        ({"ratio": 1.5}, "ratio: must be at most 1"),
        ({"lowest": 0.5}, "lowest: must be between"),
        ({"epsilon": 0.0}, "epsilon: must be above zero"),
        ({"model": "tree"}, "model: must be one of"),
    ],
)
def test_settings_are_checked(given: dict[str, Any], fragment: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=fragment):
        settings(tmp_path, **given)


def test_the_screen_says_that_the_estimate_is_biased(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bitldp.cli.fl import _print_summary

    summary = run(tmp_path, rounds=1)
    assert json.loads((tmp_path / "summary.json").read_text())["caveat"] == summary.caveat
    capsys.readouterr()
    _print_summary(summary, tmp_path)
    shown = capsys.readouterr().out
    assert "caveat" in shown
    assert "biased" in shown
    _print_summary(run(tmp_path / "full", mechanism="full", rounds=1), tmp_path)
    assert "caveat" not in capsys.readouterr().out


def test_more_than_two_classes(tmp_path: Path) -> None:
    run(tmp_path, data="digits", rounds=2, model="svm")
    assert weights(tmp_path).shape == (65, 10)


def test_a_regression_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from bitldp.papers import fedsel

    data, train, test = loaded("breast_cancer")
    other = (dataclasses.replace(data, task="regression"), train, test)
    monkeypatch.setattr(fedsel, "loaded", lambda name: other)
    with pytest.raises(ValueError, match="has no classes to tell apart"):
        run(tmp_path)
