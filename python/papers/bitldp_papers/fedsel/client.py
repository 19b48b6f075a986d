"""Client of `fedsel`, with a file of the gradient that it has not sent and of its last report.

The file is what makes a round repeatable: a server that asks again for a round, with the same model, is sent
the same bytes again, and the client neither pays nor accumulates twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bitldp.base import documents
from bitldp.base.files import replacing
from bitldp.base.keys import RandomSource
from bitldp.base.lock import locked
from bitldp.federated import Layout, PrivateUpdateMod, UpdatePlan, from_record
from bitldp.federated.client.mod import REPORT, STYPE
from bitldp.federated.wire.wire import write
from bitldp.ledger.budget import BudgetExceededError
from bitldp.privacy import composed
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from numpy.typing import NDArray

from bitldp_papers.fedsel.settings import FedSelSettings, codec, selecting
from bitldp_papers.run.client import Client
from bitldp_papers.run.drive import turn_of

__all__ = ["Memory", "RememberingMod", "identity_of", "question_of", "update_mod"]

MEMORY = "residual.npz"
_FIELDS = ("identity", "residual", "released", "question", "answer")


@dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """Memory of a client between two rounds. It is private and stays on the client's disk.

    Attributes
    ----------
    residual : ndarray of float64, shape (1, size)
        What it accumulated and did not send.
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
            found = cls(
                kept["residual"],
                int(kept["released"]),
                kept["question"].tobytes(),
                kept["answer"].tobytes(),
            )
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: is damaged") from None
        if kept["identity"].tobytes() != identity or found.residual.shape != (1, size):
            raise ValueError(f"{path}: is of a run with other settings")
        return found

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
    """Mod that releases a gradient, and remembers the report and what was not sent.

    Parameters
    ----------
    settings : FedSelSettings
        Of the run.
    home : pathlib.Path
        The client's folder, for its memory and its ledger.
    **options
        As of `PrivateUpdateMod`.

    Notes
    -----
    It fails closed as `PrivateUpdateMod` does. The report and the new residual are on disk before the ledger
    is charged, and the ledger is charged before the report leaves. Where a crash comes between, the next
    message finds more answers than charges, and pays first.
    """

    def __init__(self, settings: FedSelSettings, home: Path, **options: Any) -> None:
        super().__init__(codec(settings), ledger=home / "ledger.json", **options)
        self._settings, self._path = settings, home / MEMORY

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
        plan = self.codec.plan(layout)
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


def update_mod(settings: FedSelSettings, client: Client, size: int) -> RememberingMod:
    """Return the mod that releases a client's gradient of `size` coordinates."""
    needed = composed(settings.build(size).guarantee.record, settings.releases)
    return RememberingMod(
        settings,
        client.home,
        budget=min(needed, client.budget),
        create=client.create,
        rng=settings.seed if client.seeded else None,
    )
