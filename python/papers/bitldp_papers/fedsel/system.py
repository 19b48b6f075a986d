"""FedSel (Algorithm 1): in each epoch a client sends one perturbed coordinate of its accumulated gradient.

Linear models by federated stochastic gradient descent: each round asks a batch of the clients, each epoch all
of them. Beside the two stages are the baselines of the paper: random coordinates, a random projection, and
gradients without privacy. A client keeps a file of the gradient that it has not sent and of its last report,
which makes a round repeatable: a server that asks again for a round, with the same model, is sent the same
bytes again, and the client neither pays nor accumulates twice. Flower's own commands start the same two apps:
``bitldp_papers.fedsel:server_app`` and ``:client_app``.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from bitldp.base import documents
from bitldp.base.files import locked, replacing
from bitldp.base.keys import RandomSource
from bitldp.federated import (
    REPORT,
    STYPE,
    Layout,
    PrivateUpdateMod,
    UpdateCodec,
    UpdatePlan,
    from_record,
    write,
)
from bitldp.ledger import BudgetExceededError
from bitldp.privacy import composed
from bitldp.selection import FedSel
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from bitldp_papers.fedsel.settings import (
    MECHANISMS,
    MODELS,
    NAME,
    SELECTIONS,
    VALUES,
    FedSelSettings,
    codec,
    privacy,
    selecting,
    selection,
)
from bitldp_papers.models import linear
from bitldp_papers.run.rounds import Descent, DescentStrategy, Mod, Privacy, Rows, Turn, course, turn_of
from bitldp_papers.run.share import loaded, shuffled
from bitldp_papers.run.system import System
from bitldp_papers.run.vectors import Model, stepped

__all__ = ["SYSTEM", "FedSelRound", "FedSelSettings", "Memory", "client_app", "descend", "server_app"]

MEMORY = "residual.npz"
_FIELDS = ("identity", "residual", "released", "question", "answer")
_SPARSE = (
    "the mean of the sparse updates is a biased estimate of the mean gradient, on purpose: coordinates that "
    "are seldom selected count less"
)
_CAVEATS = {
    "fedsel": _SPARSE,
    "top": _SPARSE,
    "compressed": "the estimate of the mean gradient is biased: a random projection cannot be undone",
}

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """Memory of a client between two rounds. It is private and stays on the client's disk.

    Attributes
    ----------
    residual : ndarray of float64, shape (1, size)
        Gradients that it accumulated and did not send.
    released : int
        Answers that it has made.
    question, answer : bytes
        Digest of the last message that it answered, and that answer, which left or was about to.
    """

    residual: NDArray[np.float64]
    released: int = 0
    question: bytes = b""
    answer: bytes = b""

    def __repr__(self) -> str:
        """Return the count alone; the rest is private."""
        return f"<Memory: {self.released} answers>"

    @classmethod
    def load(cls, path: Path, identity: bytes, size: int) -> Memory:
        """Return the contents of a file; an empty memory where there is none.

        Raises
        ------
        ValueError
            If the file is damaged, or of a run with other settings.
        """
        if not path.exists():
            return cls(np.zeros((1, size)))
        try:
            kept = documents.arrays(path.read_bytes())
            kept = {name: kept[name] for name in _FIELDS}
            memory = cls(
                kept["residual"],
                int(kept["released"]),
                kept["question"].tobytes(),
                kept["answer"].tobytes(),
            )
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: is damaged") from None
        if kept["identity"].tobytes() != identity or memory.residual.shape != (1, size):
            raise ValueError(f"{path}: belongs to a run with other settings")
        return memory

    def save(self, path: Path, identity: bytes) -> None:
        """Write the file, whole or not at all."""
        with replacing(path) as file:
            np.savez(
                file,
                identity=np.frombuffer(identity, np.uint8),
                residual=self.residual,
                released=np.int64(self.released),
                question=np.frombuffer(self.question, np.uint8),
                answer=np.frombuffer(self.answer, np.uint8),
            )


def identity_of(settings: FedSelSettings, layout: Layout) -> bytes:
    """Return the digest of a run's settings and its model, which a client's memory belongs to."""
    text = json.dumps([settings.lasting(), layout.digest.hex()], sort_keys=True)
    return hashlib.sha256(text.encode()).digest()


def question_of(message: Message, layout: Layout, model: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a digest of a round's number and model."""
    digest = hashlib.sha256(turn_of(message).to_bytes(8, "little") + layout.digest)
    for array in model.values():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


class RememberingMod(PrivateUpdateMod):
    """Mod that releases a gradient, and remembers the report and the rest that was not sent.

    Parameters
    ----------
    settings : FedSelSettings
        Of the run.
    folder : pathlib.Path
        The client's, for its memory and its ledger.
    **options
        As of `PrivateUpdateMod`.

    Notes
    -----
    It fails closed as `PrivateUpdateMod` does. The report and the new residual are on disk before the ledger
    is charged, and the ledger is charged before the report leaves. Where a crash comes between, the next
    message finds more answers than charges, and pays first.
    """

    def __init__(self, settings: FedSelSettings, folder: Path, **options: Any) -> None:
        super().__init__(codec(settings), ledger=folder / "ledger.json", **options)
        self._settings, self._path = settings, folder / MEMORY

    def _private(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Train, accumulate, select, perturb, remember, charge; raise before anything could leave."""
        arrays = message.content["arrays"]
        if not isinstance(arrays, ArrayRecord):
            raise TypeError("arrays: must be an ArrayRecord")
        model = from_record(arrays)
        layout = Layout.of(model)
        with locked(self._path):
            answer = self._answered(message, context, call_next, layout, model)
        array = Array("uint8", (len(answer),), STYPE, answer)
        content = RecordDict({"arrays": ArrayRecord({REPORT: array})})
        content["metrics"] = MetricRecord({"num-examples": 1})
        return Message(content, reply_to=message)

    def _answered(
        self,
        message: Message,
        context: Context,
        call_next: ClientAppCallable,
        layout: Layout,
        model: Mapping[str, NDArray[Any]],
    ) -> bytes:
        plan = self.codec.plan(layout).at(turn_of(message))
        identity, question = identity_of(self._settings, layout), question_of(message, layout, model)
        memory = Memory.load(self._path, identity, layout.size)
        charged = sum(entry.count for entry in self.account.ledger(context).entries)
        (charge,) = self._charges(plan)
        if memory.released > charged:
            self.account.charge(context, [charge._replace(times=memory.released - charged)])
        if memory.question == question:
            return memory.answer
        self.account.check(context, [charge])
        stream = self._stream(message, context, question)
        reply = call_next(message, context)
        if reply.has_error():
            raise RuntimeError("the client app replied with an error")
        gradients = reply.content["arrays"]
        assert isinstance(gradients, ArrayRecord)
        gradient = layout.flatten(from_record(gradients))
        done = max(memory.released, charged)  # a memory that was lost does not bring releases back
        if done >= self._settings.releases:
            raise BudgetExceededError(f"all {self._settings.releases} releases are made")
        rng = None if stream is None else stream[0]
        if self._settings.mechanism == "fedsel":
            residual, report = self._selected(plan, memory.residual, gradient, rng)
        else:
            residual, report = memory.residual, plan.perturb(gradient, rng=rng)
        answer = report.tobytes()
        Memory(residual, done + 1, question, answer).save(self._path, identity)
        self.account.charge(context, [charge])
        return answer

    def _selected(
        self,
        plan: UpdatePlan,
        residual: NDArray[np.float64],
        gradient: NDArray[np.float64],
        rng: RandomSource,
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """Return the new residual, and the report of one coordinate of it (Algorithm 1, LocalUpdate)."""
        fedsel = selecting(self._settings, gradient.size).fresh()
        fedsel.restore({"residual": residual, "released": [0]})
        reports = fedsel.release(gradient[None], rng=rng, threads=1)
        return fedsel.state()["residual"], write(plan.header, plan.form.split(reports, 1))


class FedSelRound(Descent[FedSelSettings]):
    """Gradients of linear models, of which each client sends one coordinate, or as a baseline does."""

    def __init__(self, settings: FedSelSettings, dtype: type[np.floating] = np.float32) -> None:
        super().__init__(settings)
        self._dtype = dtype

    @property
    def rate(self) -> float:
        return self.settings.server_rate

    def initial(self) -> Model:
        data, train, _ = loaded(self.settings.data)
        if data.task != "classification":
            raise ValueError(f"data: {self.settings.data} has no classes to tell apart")
        return [linear.initial(train.shape[1], data.classes).astype(self._dtype)]

    @cached_property
    def size(self) -> int:
        """Number of coordinates of a gradient."""
        return int(self.initial()[0].size)

    def privacy(self) -> Privacy:
        return privacy(self.settings, self.size)

    @cached_property
    def _test(self) -> tuple[Table, NDArray[Any]]:
        data, _, test = loaded(self.settings.data)
        return linear.design(test, self.settings.lowest), data.test_labels

    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        x, labels = self._test
        (weights,) = model
        scores = {
            "accuracy": linear.accuracy(weights, x, labels),
            "loss": linear.loss(weights, x, linear.targets(labels, weights.shape[1]), self.settings.model),
        }
        if weights.shape[1] == 1:
            scores["auc"] = float(roc_auc_score(labels, (x @ weights)[:, 0]))
        return scores

    def caveat(self) -> str:
        return _CAVEATS.get(self.settings.mechanism, "")

    def codec(self) -> UpdateCodec:
        return codec(self.settings)

    def mod(self, turn: Turn) -> Mod | None:
        settings, client = self.settings, turn.client
        if not settings.private:
            return None
        needed = composed(settings.build(self.size).guarantee.record, settings.releases)
        return RememberingMod(
            settings,
            client.folder,
            budget=min(needed, client.budget),
            create=client.create,
            rng=settings.seed if client.seeded else None,
        )

    def train(self, turn: Turn) -> Model:
        """Return the gradient of the client's loss; without privacy, the model after a step."""
        settings, model = self.settings, turn.arrays()
        if len(model) != 1:
            raise ValueError("arrays: a linear model has one")
        (weights,) = model
        held = turn.client.holding(settings)
        x, y = linear.design(held.x, settings.lowest), linear.targets(held.y, weights.shape[1])
        gradient = linear.gradient(weights, x, y, settings.model, settings.ridge)
        row = settings.client_rate * gradient.reshape(1, -1)
        if settings.private:
            return [row.reshape(weights.shape).astype(weights.dtype)]
        return stepped(model, self.rate * self._plain(turn, row))

    def _plain(self, turn: Turn, row: Table) -> Table:
        """Return the update of a client without privacy, or with a private selection alone."""
        settings, client = self.settings, turn.client
        if not settings.accumulates:
            return self.updates(row, np.zeros_like(row), client.training_seed(settings, turn.number))[0]
        path = client.folder / MEMORY
        record = turn.message.content["arrays"]
        assert isinstance(record, ArrayRecord)
        model = from_record(record)
        layout = Layout.of(model)
        identity, question = identity_of(settings, layout), question_of(turn.message, layout, model)
        with locked(path):
            memory = Memory.load(path, identity, layout.size)
            if memory.question == question:  # asked again after a restart of the server
                return np.frombuffer(memory.answer)
            rng = client.release_seed(settings, turn.number)
            update, residual = self.updates(row, memory.residual, rng)
            Memory(residual, memory.released + 1, question, update.tobytes()).save(path, identity)
        return update

    def updates(self, rows: Table, before: Table, rng: np.random.SeedSequence | None) -> tuple[Table, Table]:
        """Return the mean update of some clients without privacy, and the rest that each keeps for later.

        Parameters
        ----------
        rows : ndarray of float64, shape (clients, size)
            Their gradients.
        before : ndarray of float64, shape (clients, size)
            What each kept so far.
        rng : SeedSequence, optional
            Of random coordinates, or of the private selection.
        """
        settings, (count, size) = self.settings, rows.shape
        if settings.mechanism == "full":
            return rows.mean(axis=0), before
        if settings.mechanism == "random":
            columns = np.random.default_rng(rng).integers(size, size=count)
            values = size * rows[np.arange(count), columns]
            return np.bincount(columns, values, size) / count, before
        after = before + rows
        if settings.mechanism == "top":
            columns = np.abs(after).argmax(axis=1)
        else:
            chosen: Any = selection(settings, size)
            columns = chosen.randomize(after, rng=rng, threads=1 if count == 1 else None).astype(np.intp)
        sent = np.flatnonzero(columns < size)
        columns = columns[sent]
        values = after[sent, columns] + settings.momentum * before[sent, columns]
        after[sent, columns] = 0.0
        return np.bincount(columns, values, size) / count, after

    def strategy(self, first_round: int, rows: Rows) -> FedAvg:
        if not self.settings.private:
            return Epochs(self.settings)
        return DescentEpochs(self, first_round=first_round, settings=self.settings)

    # One record a client, in this process.

    @cached_property
    def _residual(self) -> Table:
        return np.zeros((self.settings.clients, self.size))

    @cached_property
    def _clients(self) -> FedSel:
        """Memories of all clients, where they take part more than once."""
        return selecting(self.settings, self.size).fresh(self.settings.clients)

    @cached_property
    def _held(self) -> NDArray[np.intp]:
        settings, (data, train, _) = self.settings, loaded(self.settings.data)
        if data.classes != 2:
            raise ValueError(f"data: {settings.data} has {data.classes} classes, and two are needed")
        if settings.clients > len(train):
            raise ValueError(f"clients: {settings.clients} are more than the {len(train)} records")
        return shuffled(len(train), settings.seed)[: settings.clients]

    def mean(self, model: Model, turn: int) -> tuple[Table, float]:
        """Release the gradients of a batch of clients, each of one record."""
        settings, held = self.settings, self._held
        who = batch(settings, settings.clients, turn)
        data, train, _ = loaded(settings.data)
        x = linear.design(train[held[who]], settings.lowest)
        y = linear.targets(data.train_labels[held[who]], 1)
        rows = settings.client_rate * linear.gradients(model[0], x, y, settings.model, settings.ridge)
        rng = np.random.SeedSequence(settings.seed, spawn_key=(0xFED, turn))
        if not settings.private:
            before = self._residual[who]
            mean, self._residual[who] = self.updates(rows, before, rng)
            return mean, 0.0
        if settings.mechanism != "fedsel":
            return self.simulated(rows, rng)
        if settings.releases > 1:
            reports = self._clients.release(rows, clients=who, rng=rng)
        else:
            reports = selecting(settings, self.size).fresh(len(rows)).release(rows, rng=rng)
        return selecting(settings, self.size).stages.aggregate(reports).value, 0.0


def batch(settings: FedSelSettings, count: int, turn: int) -> NDArray[np.intp]:
    """Return which of `count` clients take part in a round, each once in an epoch."""
    epoch, index = divmod(turn - 1, settings.epoch)
    rng = np.random.default_rng(np.random.SeedSequence([settings.seed, 0xE90C, epoch]))
    return np.sort(np.array_split(rng.permutation(count), settings.epoch)[index])


class Epochs(FedAvg):
    """Federated averaging with a batch of clients in each round, and each client once in an epoch."""

    def __init__(self, settings: FedSelSettings, **options: Any) -> None:
        super().__init__(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=1,
            min_available_nodes=settings.clients,
            **options,
        )
        self._settings = settings
        self._met = False

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose the batch of a round by its number and the seed alone."""
        nodes = sorted(grid.get_node_ids())
        while not self._met and len(nodes) < self._settings.clients:
            time.sleep(1.0)  # until they are there; later on, nobody waits for those who left
            nodes = sorted(grid.get_node_ids())
        self._met = True
        config["server-round"] = server_round
        content = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return [
            Message(content=content, message_type=MessageType.TRAIN, dst_node_id=nodes[each])
            for each in batch(self._settings, len(nodes), server_round)
        ]


class DescentEpochs(DescentStrategy, Epochs):
    """Epochs of private reports, whose mean, times the rate, is subtracted."""


def descend(settings: FedSelSettings, *, every: int = 0) -> list[dict[str, Any]]:
    """Return the scores of a run of two classes without messages: `course`.

    Each client holds one record: the first `clients` of those that the seed shuffles.
    """
    return course(FedSelRound(settings, np.float64), every=every)  # messages carry float32


SYSTEM = System(
    name=NAME,
    summary="one coordinate of each client's gradient, selected and perturbed (FedSel, Algorithm 1)",
    settings=FedSelSettings,
    rounds=FedSelRound,
    choices={"mechanism": MECHANISMS, "select": SELECTIONS, "values": tuple(VALUES), "model": MODELS},
)
client_app, server_app = SYSTEM.client_app, SYSTEM.server_app
