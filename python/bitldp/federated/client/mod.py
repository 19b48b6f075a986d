"""Flower mod of a client that lets nothing but private reports leave."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.federated.client import examples as _examples
from bitldp.federated.client import repeat
from bitldp.federated.client.account import UPDATE, Account, Charge, Place
from bitldp.federated.flower import FAILED, REFUSED, refusal
from bitldp.federated.wire.arrays import Layout
from bitldp.federated.wire.codec import Factory, Plan, UpdateCodec
from bitldp.ledger.budget import BudgetExceededError
from bitldp.mechanism.base import Mechanism

__all__ = ["BUDGET_SENTENCE", "FAILURE_SENTENCE", "OTHERS_SENTENCE", "REPORT", "STYPE", "PrivateUpdateMod"]

FAILURE_SENTENCE = "bitldp: this client sent no report, a step before its release failed"
BUDGET_SENTENCE = "bitldp: this client sent no report, its privacy budget is exhausted"
OTHERS_SENTENCE = "bitldp: this client answers training messages only"

REPORT = "report"
"""Key of the report in the reply's record of arrays."""

STYPE = "bitldp.report"
"""Kind of serialisation of that array: Flower's own strategies refuse it, rather than average codes."""

Seed = int | Callable[[Context], int | None] | None

log = logging.getLogger("bitldp.federated")


class PrivateUpdateMod:
    """Mod that releases a client's update through a mechanism, and drops all else in the reply.

    Parameters
    ----------
    mechanism : Mechanism, callable, or UpdateCodec
        What releases the update, a function of its number of coordinates that returns one, or both sides'
        common `UpdateCodec`.
    budget, delta : float
        What all rounds together may cost a client: epsilon and delta, exact ones of its whole update. Or
        `budget` is an `Account` that says it, with a way of its own to compose rounds (`ComposedAccount`).
    ledger : path-like, or callable of the Context that returns one, optional
        File that keeps the client's ledger over runs and restarts. Without one the ledger lives as long as
        the run, in `Context.state`. Clients that share a file share one budget.
    examples : {"fixed", "exact"}, int, Bucketed or Randomized
        What the reply says of the number of examples: 1, the number, a public number, the bucket that it is
        in, or that bucket through randomized response.
    keep : sequence of str
        Names of other metrics of the reply that may leave as they are. They are private: each is a choice.
    others : {"pass", "refuse"}
        What happens to messages that do not train. "pass" hands them through untouched: an evaluation's
        accuracy on the client's data then leaves as it is. "refuse" answers them with an Error.
    rng : int, or callable of the Context that returns one, optional
        For experiments only: each client and round gets its own stream of that seed. None (the default) draws
        fresh keys from the operating system. Never take it from ``run_config``, which the server writes.
    arrays, config : str
        Keys of the message's records.
    repeat : path-like, or callable of the Context that returns one, optional
        File that keeps the last report. A message that asks the same again, as that of a server which was
        stopped within a round, is answered by the same bytes, at no charge. Without one it is a new release.
    nonfinite : {"zero", "refuse"}
        What is done with an update that is not finite. "zero" reports zeros in its place: a server can send a
        model that overflows on some records alone, and would read that off an Error. "refuse" sends the
        Error.
    on_failure : callable of an exception, optional
        Called on the client with what went wrong, which may hold private values, before the Error is sent.
    **options
        Of `UpdateCodec`: `clip` (needed), `norm`, `update`, `interval`, `integers`, `allow_biased`,
        `rows`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    A mod fails closed: whatever goes wrong, in training, perturbation or accounting, the reply is an Error
    with one of two fixed sentences. That a client failed is itself visible: training code must not fail
    on some records alone.

    The ledger is charged after training and before the release. What is charged is the exact epsilon of a
    record of the mechanism times the number of records in an update: neighbouring updates differ in any way.

    Mods listed before it see the report alone. Those listed after it see the update as it is, and what they
    add to the reply is dropped. Client code that sends by other ways than its reply is beyond any mod.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.federated import PrivateUpdateMod
    >>> from flwr.clientapp import ClientApp
    >>> mod = PrivateUpdateMod(lambda d: bitldp.Duchi(1.0, features=d), clip=1.0, budget=10.0)
    >>> app = ClientApp(mods=[mod])
    """

    def __init__(
        self,
        mechanism: Mechanism | Factory | UpdateCodec,
        *,
        budget: float | Account,
        delta: float = 0.0,
        ledger: Place | None = None,
        examples: _examples.Examples = "fixed",
        keep: tuple[str, ...] = (),
        others: Literal["pass", "refuse"] = "pass",
        rng: Seed = None,
        arrays: str = "arrays",
        config: str = "config",
        repeat: Place | None = None,
        nonfinite: Literal["zero", "refuse"] = "zero",
        on_failure: Callable[[Exception], None] | None = None,
        **options: Any,
    ) -> None:
        self.codec = UpdateCodec.of(mechanism, options)
        if isinstance(budget, Account):
            if delta != 0.0 or ledger is not None:
                raise TypeError("budget: the account has delta and ledger already; give them there")
            self.account = budget
        else:
            self.account = Account(budget, delta, ledger)
        _examples.check(examples)
        self.examples = examples
        if isinstance(keep, str) or not all(isinstance(name, str) for name in keep):
            raise TypeError("keep: must be a sequence of names")
        self.keep = tuple(keep)
        self.others = checks.choice("others", others, ("pass", "refuse"))
        if rng is not None and not callable(rng):
            rng = checks.integer("rng", rng, 0)
        self._rng = rng
        self._arrays, self._config = arrays, config
        self._repeat = repeat
        self.nonfinite = checks.choice("nonfinite", nonfinite, ("zero", "refuse"))
        self._on_failure = on_failure

    def __repr__(self) -> str:
        """Return the parameters that are no secrets; never the seed."""
        return f"PrivateUpdateMod({self.codec!r}, budget={self.account.budget:g}, examples={self.examples!r})"

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Answer a message; Flower calls this."""
        if message.metadata.message_type.split(".")[0] != MessageType.TRAIN:
            if self.others == "refuse":
                return refusal(message, REFUSED, OTHERS_SENTENCE)
            return call_next(message, context)
        try:
            return self._private(message, context, call_next)
        except BudgetExceededError as error:
            return self._refused(message, REFUSED, BUDGET_SENTENCE, error)
        except Exception as error:  # of any kind: nothing of it may leave
            return self._refused(message, FAILED, FAILURE_SENTENCE, error)

    def _refused(self, message: Message, code: int, sentence: str, error: Exception) -> Message:
        log.warning("%s (%s)", sentence, type(error).__name__)  # its text may hold private values
        if self._on_failure is not None:
            try:
                self._on_failure(error)
            except Exception as another:
                log.warning("on_failure failed (%s)", type(another).__name__)
        return refusal(message, code, sentence)

    def _private(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Train, perturb, charge; raise before anything could leave."""
        before = _numpy(message.content[self._arrays])
        layout = Layout.of(before, self.codec.integers)
        plan = self.codec.plan(layout)
        asked = repeat.question(message, plan.header.digest)
        place = self._repeat(context) if callable(self._repeat) else self._repeat
        kept = None if place is None else repeat.find(Path(place), asked)
        if kept is None:
            kept = self._released(plan, before, asked, message, context, call_next)
            if place is not None:
                repeat.keep(Path(place), asked, kept)
        array = Array("uint8", (len(kept.report),), STYPE, kept.report)
        record = ArrayRecord({REPORT: array})
        content = RecordDict({self._arrays: record, "metrics": MetricRecord(kept.metrics)})
        return Message(content, reply_to=message)

    def _released(
        self,
        plan: Plan,
        before: dict[str, NDArray[Any]],
        asked: bytes,
        message: Message,
        context: Context,
        call_next: ClientAppCallable,
    ) -> repeat.Kept:
        """Train, charge, perturb."""
        charges = self._charges(plan)
        self.account.check(context, charges)  # spares a training that could not be released
        stream = self._stream(message, context, asked)
        reply = call_next(message, context)
        if reply.has_error():
            raise RuntimeError("the client app replied with an error")
        vector = plan.flatten(_numpy(reply.content[self._arrays]))
        if self.codec.update == "difference":
            with np.errstate(invalid="ignore", over="ignore"):
                vector -= plan.flatten(before)
        metrics = self._metrics(reply, None if stream is None else stream[1])
        if self.nonfinite == "zero" and not np.isfinite(vector).all():
            log.warning("bitldp: an update was not finite; zeros are reported in its place")
            vector = np.zeros_like(vector)
        plan.clipped(vector)  # refuses what is not finite, before it is paid for
        self.account.charge(context, charges)
        report = plan.perturb(vector, rng=None if stream is None else stream[0])
        return repeat.Kept(report.tobytes(), metrics)

    def _charges(self, plan: Plan) -> list[Charge]:
        charges = [Charge(plan.mechanism, plan.records, UPDATE)]
        counting = self.examples.mechanism if isinstance(self.examples, _examples.Bucketed) else None
        if counting is not None:
            charges.append(Charge(counting, 1, "number of examples"))
        return charges

    def _stream(
        self, message: Message, context: Context, asked: bytes
    ) -> list[np.random.SeedSequence] | None:
        """Return seeds of the update and of the number of examples: of this client, round and question.

        Two different models that are sent for one round are two streams: their reports share no coin.
        """
        seed = self._rng(context) if callable(self._rng) else self._rng
        if seed is None:
            return None
        client = checks.integer("rng", context.node_config.get("partition-id", context.node_id), 0)
        releases = sum(entry.count for entry in self.account.ledger(context).entries)
        config: Any = message.content.get(self._config, {})
        turn = checks.integer("server-round", config.get("server-round", releases), 0)
        words = (int.from_bytes(asked[place : place + 4], "little") for place in range(0, 16, 4))
        return np.random.SeedSequence(seed, spawn_key=(client, turn, *words)).spawn(2)

    def _metrics(self, reply: Message, rng: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for record in reply.content.metric_records.values():
            found.update(record)
        kept = {name: found[name] for name in self.keep}
        if isinstance(self.examples, int):
            return kept | {"num-examples": self.examples}
        if self.examples == "fixed":
            return kept | {"num-examples": 1}
        count = found["num-examples"]
        if isinstance(count, bool) or not (math.isfinite(count) and count >= 0 and count == int(count)):
            raise ValueError("num-examples: must be a whole number")
        if isinstance(self.examples, _examples.Bucketed):
            return kept | {"num-examples": self.examples.report(int(count), rng)}
        return kept | {"num-examples": int(count)}


def _numpy(record: Any) -> dict[str, NDArray[Any]]:
    if not isinstance(record, ArrayRecord):
        raise TypeError("arrays: must be an ArrayRecord")
    return {name: array.numpy() for name, array in record.items()}
