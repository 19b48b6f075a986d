"""Flower mod of a client whose number only a sum shows: the shares of a secure sum, and nothing else."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.documents import document
from bitldp.base.files import locked, replacing
from bitldp.federated.client.account import Charge, Place, SumsAccount
from bitldp.federated.client.mod import BUDGET_SENTENCE, FAILURE_SENTENCE, OTHERS_SENTENCE, noted, refused
from bitldp.federated.flower import FAILED, REFUSED, refusal, without
from bitldp.federated.wire.arrays import Layout
from bitldp.federated.wire.sums import SUM, sum_bytes, sum_record
from bitldp.ledger.budget import BudgetExceededError
from bitldp.sums.protocol import Agreement, Stage, SummingClient, SumRefusedError
from bitldp.sums.protocol.messages import head_of

__all__ = ["SUM_SENTENCE", "SummedMod"]

SUM_SENTENCE = "bitldp: this client takes no part, the message does not fit its own terms of the sum"
"""Sentence of an Error reply to a message that the client refuses."""

STATE = "bitldp.sum"
"""Name of the record of `Context.state` that holds the secrets of a round between its stages."""

JOURNAL = "bitldp.sums"
"""Name of the record of `Context.state` that holds the journal where no file does."""

Key = str | os.PathLike[str] | Callable[[Context], "str | os.PathLike[str] | Ed25519PrivateKey"]

log = logging.getLogger("bitldp.federated")


class SummedMod:
    """Flower mod that gives a client's masked share to a secure sum, and answers nothing else.

    Parameters
    ----------
    agreement : Agreement
        Terms of the sum, from the client's own configuration, never from the server.
    key : path-like, or callable of the Context that returns one
        File of the node's private key, whose public one is in the agreement (``bitldp keypair`` makes both).
    budget : float or SumsAccount, optional
        Central epsilon for all sums of the client's data. Default: that of one sum, so that a record takes
        part in one sum only.
    delta : float, optional
        Delta that they may cost. Default: that of one sum with the default budget, else 0.
    ledger : path-like, callable of the Context that returns one, or "run", optional
        Ledger of the node; by default a file for its sums alone (`SumsAccount`). One that exists says itself
        what sums may cost (`Ledger.allow_sums`), so that no budget is given beside it.
    create : bool
        Whether to begin a ledger where there is no file of the given path.
    value : {"difference", "arrays"} or callable of the reply's content
        What is summed of the reply: its arrays minus those that were sent, in one vector; its one array as it
        is (of one element: a number, a category); or what the callable returns.
    nonfinite : {"zero", "refuse"}
        What to do with a vector that is not finite: sum zeros in its place, or drop out.
    failing : {"refuse", "zero"}
        What to do if the client's code fails, or returns a reply that cannot be summed. "refuse" drops out,
        which shows the server that it failed. "zero" gives the share of a client without a record
        (`SecureSum.share_neutral`), charged like any other, so that a failure reveals nothing.
    secrets : {"context", "file"}
        Where the secrets of a round are between its stages: in `Context.state`, or in a file beside the
        ledger (``NAME.secrets``), which nobody but its owner may read.
    arrays : str
        Key of the message's arrays.
    rng : int, or callable of the Context that returns one, optional
        Seed of the noise, for experiments only: whoever knows it takes the noise off. Masks stay fresh.
    on_failure : callable of an exception, optional
        Called on the client with the exception, which may hold private values, before the Error is sent.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    The noise is added here, before the masks. The ledger is charged after the client's code has run and
    before its share leaves, for every sum that it gives a share to, whether or not that is opened. If
    anything fails, the reply is an Error with a fixed sentence, and the round is over for this client.

    Each stage of a round is answered once, even if a copy of the context arrives again. A journal beside the
    ledger (``NAME.rounds``) records the last stage and round before any work on it starts. It holds no
    secret. The secrets of a round are kept until it ends (`secrets`), except while a stage is being answered:
    a client that is killed at that time has dropped out.

    The client's code runs only in the third stage, and never sees a message of the protocol. Metrics and the
    number of examples are not sent; every client has the weight 1.

    Examples
    --------
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from flwr.clientapp import ClientApp
    >>> from bitldp.federated import SummedMod
    >>> from bitldp.sums import Count, SecureSum
    >>> from bitldp.sums.protocol import Agreement
    >>> keys = [Ed25519PrivateKey.generate().public_key().public_bytes_raw() for _ in range(10)]
    >>> agreement = Agreement(SecureSum(Count(), epsilon=1.0, clients=10, floor=8), keys)
    >>> app = ClientApp(mods=[SummedMod(agreement, "node.key", value="arrays")])
    """

    def __init__(
        self,
        agreement: Agreement,
        key: Key,
        *,
        budget: float | SumsAccount | None = None,
        delta: float | None = None,
        ledger: Place | Literal["run"] | None = None,
        create: bool = False,
        value: Literal["difference", "arrays"] | Callable[[RecordDict], Any] = "difference",
        nonfinite: Literal["zero", "refuse"] = "zero",
        failing: Literal["refuse", "zero"] = "refuse",
        secrets: Literal["context", "file"] = "context",
        arrays: str = "arrays",
        rng: int | Callable[[Context], int | None] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        if not isinstance(agreement, Agreement):
            raise TypeError(f"agreement: must be an Agreement, not {type(agreement).__name__}")
        self.agreement = agreement
        self._key = key
        if isinstance(budget, SumsAccount):
            if delta is not None or ledger is not None or create:
                raise TypeError("budget: the account has delta, ledger and create already; give them there")
            self.account = budget
        else:
            if ledger not in (None, "run") and not create and (budget is not None or delta is not None):
                raise TypeError("budget: sums have a budget in the ledger; see Ledger.allow_sums")
            cost = agreement.sum.guarantee.central()
            if delta is None:
                delta = cost.delta if budget is None else 0.0
            self.account = SumsAccount(
                cost.epsilon if budget is None else budget, delta, ledger, create=create
            )
        if not callable(value):
            checks.choice("value", value, ("difference", "arrays"))
        self._value = value
        self.nonfinite = checks.choice("nonfinite", nonfinite, ("zero", "refuse"))
        self.failing = checks.choice("failing", failing, ("refuse", "zero"))
        self.secrets = checks.choice("secrets", secrets, ("context", "file"))
        if secrets == "file" and self.account.path == "run":
            raise ValueError("secrets: are kept beside the ledger, which has no file")
        self._arrays = arrays
        self._rng = rng if rng is None or callable(rng) else checks.integer("rng", rng, 0)
        self._on_failure = on_failure

    def __repr__(self) -> str:
        """Return the parameters that are no secrets; never the seed or the key."""
        return f"SummedMod({self.agreement.sum!r}, budget={self.account.budget:g})"

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Answer a message; Flower calls this."""
        if message.metadata.message_type.split(".")[0] != MessageType.TRAIN:
            return refusal(message, REFUSED, OTHERS_SENTENCE)
        try:
            data = self._answered(sum_bytes(message), message, context, call_next)
        except BudgetExceededError as error:
            return refused(message, REFUSED, BUDGET_SENTENCE, error, self._on_failure)
        except SumRefusedError as error:
            log.warning("bitldp: %s", error)  # of the server's message; it holds nothing private
            return refused(message, REFUSED, SUM_SENTENCE, error, self._on_failure)
        except Exception as error:  # of any kind: nothing of it may leave
            return refused(message, FAILED, FAILURE_SENTENCE, error, self._on_failure)
        return Message(RecordDict({SUM: sum_record(data)}), reply_to=message)

    def _answered(
        self, data: bytes, message: Message, context: Context, call_next: ClientAppCallable
    ) -> bytes:
        """Return the reply of the machine, whose state is taken away while it works."""
        stage, _, number, _ = head_of(data, reply=False)
        place = self.account._path(context)
        file = None if place is None or self.secrets == "context" else _beside(place, "secrets")
        kept = _taken(context, file)
        self._claim(context, number, stage)
        key = self._key(context) if callable(self._key) else self._key
        machine = SummingClient(self.agreement, key, state=None if stage == Stage.ADVERTISE else kept)
        reply = machine.answer(data, lambda: self._share(number, message, context, call_next))
        if stage != Stage.REVEAL:
            _put(context, file, machine.state)
        return reply

    def _share(
        self, number: int, message: Message, context: Context, call_next: ClientAppCallable
    ) -> NDArray[Any]:
        """Run the client's code, charge, and return its noisy share."""
        charges = [Charge(self.agreement.sum, 1, f"secure sum {self.agreement.digest.hex()[:32]}")]
        self.account.check(context, charges)  # spares a training that could not be released
        seed = self._rng(context) if callable(self._rng) else self._rng
        client = checks.integer("rng", context.node_config.get("partition-id", context.node_id), 0)
        rng = None if seed is None else np.random.SeedSequence(seed, spawn_key=(client, number))
        try:
            reply = call_next(without(message, SUM), context)
            if reply.has_error():
                raise RuntimeError("the client app replied with an error")
            value = self._summed(message, reply)
            share = self.agreement.sum.share(value, rng=rng)  # refuses a wrong value before it is paid for
        except Exception as error:
            if self.failing == "refuse":
                raise
            noted("bitldp: a step before the share failed; a neutral one is given", error, self._on_failure)
            share = self.agreement.sum.share_neutral(rng=rng)
        self.account.charge(context, charges)
        return share

    def _summed(self, message: Message, reply: Message) -> Any:
        """Return what is summed of a reply."""
        if callable(self._value):
            return self._value(reply.content)
        record: Any = reply.content[self._arrays]
        arrays = {name: array.numpy() for name, array in record.items()}
        if self._value == "arrays":
            if len(arrays) != 1:
                raise ValueError("arrays: the reply must hold one")
            (array,) = arrays.values()
            return array.reshape(()) if array.size == 1 else array
        sent: Any = message.content[self._arrays]
        before = {name: array.numpy() for name, array in sent.items()}
        layout = Layout.of(before)
        with np.errstate(invalid="ignore", over="ignore"):
            vector = layout.flatten(arrays) - layout.flatten(before)
        if self.nonfinite == "zero" and not np.isfinite(vector).all():
            log.warning("bitldp: an update was not finite; zeros are summed in its place")
            vector = np.zeros_like(vector)
        return vector

    def _claim(self, context: Context, number: int, stage: Stage) -> None:
        """Write that a stage is being answered, or refuse one that was, or is not due."""
        path = self.account._path(context)
        if path is None:
            record: Any = context.state.get(JOURNAL)
            text = "{}" if record is None else record["json"]
            context.state[JOURNAL] = ConfigRecord({"json": self._claimed(text, number, stage)})
            return
        journal = _beside(path, "rounds")
        journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(journal):
            text = journal.read_text(encoding="utf-8") if journal.exists() else "{}"
            with replacing(journal) as file:
                file.write(self._claimed(text, number, stage).encode())

    def _claimed(self, text: str, number: int, stage: Stage) -> str:
        """Return the journal with one more stage.

        A round that was not finished is over once another one begins.
        """
        name = self.agreement.digest.hex()
        try:
            journal = dict(document(text))
            last, done = map(int, journal.get(name, (-1, -1)))
        except (TypeError, ValueError):
            raise ValueError("ledger: the journal of rounds beside it is damaged") from None
        if stage == Stage.ADVERTISE and number <= last:
            raise SumRefusedError("round", f"message: round {number} is not after round {last}")
        if stage != Stage.ADVERTISE and (number, stage) != (last, done + 1):
            raise SumRefusedError("stage", "message: of a stage that was answered, or is not due")
        return json.dumps({**journal, name: [number, int(stage)]}, sort_keys=True)


def _beside(ledger: Path, name: str) -> Path:
    """Return a file beside that of a ledger."""
    return Path(f"{os.fspath(ledger)}.{name}")


def _taken(context: Context, file: Path | None) -> bytes | None:
    """Return the secrets of a round, which are then kept nowhere; None where there are none."""
    if file is None:
        record: Any = context.state.pop(STATE, None)
        return None if record is None else bytes(record["state"])
    try:
        result = file.read_bytes()
        file.unlink()
    except FileNotFoundError:
        return None
    return result


def _put(context: Context, file: Path | None, state: bytes) -> None:
    """Keep the secrets of a round until its next stage."""
    if file is None:
        context.state[STATE] = ConfigRecord({"state": state})
        return
    new = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(new, "wb") as written:
        written.write(state)
