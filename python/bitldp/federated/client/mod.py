"""Flower mod of a client that lets nothing but private reports leave."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from numpy.typing import NDArray

from bitldp.base import checks, documents
from bitldp.base.files import locked, replacing
from bitldp.federated.client.account import UPDATE, Charge, ClientAccount, Place
from bitldp.federated.client.evaluation import COUNT, Evaluation
from bitldp.federated.client.examples import Bucketed, Examples, Randomized, said
from bitldp.federated.client.examples import check as check_examples
from bitldp.federated.flower import FAILED, REFUSED, refusal
from bitldp.federated.wire.codec import Factory, UpdateCodec, UpdatePlan
from bitldp.ledger.budget import BudgetExceededError
from bitldp.mechanism.base import Mechanism

__all__ = [
    "BUDGET_SENTENCE",
    "FAILURE_SENTENCE",
    "OTHERS_SENTENCE",
    "REPORT",
    "STYPE",
    "Answer",
    "Kept",
    "PrivateUpdateMod",
    "UnprotectedMessageWarning",
    "find_kept",
    "keep_report",
    "question_of",
    "refused",
    "warn_unprotected",
]


class UnprotectedMessageWarning(UserWarning):
    """Warning that a private value leaves a client without a mechanism or a charge."""


def warn_unprotected(*, others: bool, keep: Sequence[str], examples: Examples, evaluated: bool) -> None:
    """Warn of unprotected replies, metrics and numbers of examples."""
    leaves = []
    if others:
        kinds = "queries" if evaluated else "evaluations and queries"
        leaves.append(
            f"whatever the app replies to {kinds} (others='pass'): a server that chooses the model or the "
            "question can read records off it"
        )
    if keep:
        leaves.append(f"the metrics {', '.join(map(repr, keep))} of every training message (keep)")
    if examples == "exact":
        leaves.append("the number of examples (examples='exact')")
    elif isinstance(examples, Bucketed) and not isinstance(examples, Randomized):
        leaves.append("the bucket of the number of examples (examples=Bucketed)")
    if leaves:
        text = f"leaves a client without any mechanism, and uncharged: {'; '.join(leaves)}"
        warnings.warn(text, UnprotectedMessageWarning, stacklevel=3)


class Kept(NamedTuple):
    """Released report: its bytes, and the metrics that left with it."""

    report: bytes
    metrics: dict[str, Any]

    def __repr__(self) -> str:
        """Return the size alone."""
        return f"Kept({len(self.report)} bytes)"


def question_of(message: Message, settings: bytes) -> bytes:
    """Return the digest of a message's kind, arrays and configuration, and of the codec's settings."""
    result = hashlib.sha256(settings)
    if message.metadata.message_type != MessageType.TRAIN:
        result.update(f"\n{message.metadata.message_type}\n".encode())
    for name, record in sorted(message.content.items()):
        result.update(f"\n{name}\n".encode())
        if isinstance(record, ArrayRecord):
            for key, array in record.items():
                result.update(json.dumps([key, array.dtype, list(array.shape), array.stype]).encode())
                result.update(hashlib.sha256(array.data).digest())
        else:
            result.update(json.dumps(dict(record), sort_keys=True, default=repr).encode())
    return result.digest()


def find_kept(path: Path, asked: bytes) -> Kept | None:
    """Return the report that answered the same question last, or None."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        result = documents.arrays(raw)
        about, report = json.loads(result["about"].tobytes()), result["report"].tobytes()
        same = about["asked"] == asked.hex() and about["sha256"] == hashlib.sha256(report).hexdigest()
        return Kept(report, about["metrics"]) if same else None
    except (ValueError, KeyError, TypeError):
        log.warning("the file of the last report is damaged; a new one is released and charged")
        return None


def keep_report(path: Path, asked: bytes, kept: Kept) -> None:
    """Keep a report in place of the one before it."""
    about = {
        "asked": asked.hex(),
        "sha256": hashlib.sha256(kept.report).hexdigest(),
        "metrics": kept.metrics,
    }
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, about=text, report=np.frombuffer(kept.report, np.uint8))


FAILURE_SENTENCE = "bitldp: this client sent no report, a step before its release failed"
BUDGET_SENTENCE = "bitldp: this client sent no report, its privacy budget is exhausted"
OTHERS_SENTENCE = "bitldp: this client answers no messages of this kind"

Answer = Callable[[Message, Context, ClientAppCallable], Message]


class PrintedOnce:
    """Failures that a simulation printed to standard error: each once, however many clients have it."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, ...]] = set()

    def show(self, error: Exception) -> None:
        """Print a traceback, unless one of the same lines was printed."""
        lines = traceback.extract_tb(error.__traceback__)
        place = (type(error).__name__, *(f"{line.filename}:{line.lineno}" for line in lines))
        if place not in self._seen:
            self._seen.add(place)
            traceback.print_exception(error)


DEBUGGING: ContextVar[PrintedOnce | None] = ContextVar(
    "bitldp debugging", default=None
)  # to standard error, never sent


REPORT = "report"
"""Key of the report in the reply's record of arrays."""

STYPE = "bitldp.report"
"""Kind of serialisation of that array: Flower's own strategies refuse it, rather than average codes."""

Seed = int | Callable[[Context], int | None] | None

log = logging.getLogger("bitldp.federated")


def refused(
    message: Message,
    code: int,
    sentence: str,
    error: Exception,
    on_failure: Callable[[Exception], None] | None,
) -> Message:
    """Return an Error reply with a fixed sentence; the exception stays on the client."""
    noted(sentence, error, on_failure)
    return refusal(message, code, sentence)


def noted(sentence: str, error: Exception, on_failure: Callable[[Exception], None] | None) -> None:
    """Tell the client of an exception, and nobody else."""
    log.warning("%s (%s)", sentence, type(error).__name__)  # its text may hold private values
    if (shown := DEBUGGING.get()) is not None:
        shown.show(error)
    if on_failure is not None:
        try:
            on_failure(error)
        except Exception as another:
            log.warning("on_failure failed (%s)", type(another).__name__)


class PrivateUpdateMod:
    """Mod that releases a client's update through a mechanism, and otherwise only values that you name.

    Parameters
    ----------
    mechanism : Mechanism, callable, or UpdateCodec
        Mechanism that releases the update, a function of its number of coordinates that returns one, or the
        `UpdateCodec` that both sides share.
    budget, delta : float
        Budget of a client for all rounds together: exact epsilon and delta of its whole update. Or a
        `ClientAccount` with the budget, which may compose rounds in its own way (`ComposedAccount`).
    ledger : path-like, callable of the Context that returns one, or "run", optional
        File that keeps the client's ledger over runs and restarts. Default: one of the node's own, as in
        `ClientAccount`. "run" keeps it for one run; the next run has the whole budget again. Use it for
        simulations only; it issues a warning.
    create : bool
        Whether to begin the ledger's file where there is none, as in `ClientAccount`. By default this is
        refused, so that an emptied or unmounted folder does not grant the budget again.
    examples : {"fixed", "exact"}, int, Bucketed or Randomized
        Number of examples in the reply: 1 ("fixed"), the true number ("exact"), a public number, the bucket
        of the number, or that bucket after randomized response.
    keep : sequence of str
        Names of other metrics of the reply that are sent unchanged. They are private: name only those that
        you decide to disclose.
    metrics : mapping of str to Mechanism, optional
        Metrics of an evaluation to release, each as one number that is clipped to its mechanism's interval,
        and charged for every evaluation, such as ``{"accuracy": bitldp.Duchi(epsilon=0.5, interval=(0.0,
        1.0))}``. Other metrics are not sent. The number of examples in the reply follows `examples`.
    others : {"refuse", "pass"}
        What happens to messages that neither train nor, with `metrics`, evaluate. "refuse" answers them with
        an Error. "pass" sends the replies unchanged, with a warning: a server that chooses the model can
        infer records from a loss, and no budget prevents it.
    rng : int, or callable of the Context that returns one, optional
        For experiments only: each client and round gets its own stream of that seed. None (the default) draws
        fresh keys from the operating system. Never read it from ``run_config``, which the server writes.
    arrays, config : str
        Keys of the message's records.
    repeat : path-like, or callable of the Context that returns one, optional
        File that keeps the last report (and ``NAME.evaluation`` the last metrics). A repeated message, for
        example from a server that was stopped within a round, is answered by the same bytes, at no charge.
        Without the file, it is a new release.
    nonfinite : {"zero", "refuse"}
        What to do with an update, or a metric, that is not finite. "zero" reports zeros in its place, or the
        middle of the metric's interval. This matters because a server can send a model that overflows on some
        records only, and an Error would reveal that. "refuse" sends the Error.
    failing : {"refuse", "zero"}
        What to do if the client's code fails, or returns a reply that does not fit. "refuse" sends the Error,
        which shows the server that it failed. "zero" releases and charges zeros in its place, or the middle
        of a metric's interval, so that a failure reveals nothing. It needs `examples` that are "fixed" or a
        public number, and no `keep`.
    on_failure : callable of an exception, optional
        Called on the client with the exception, which may hold private values, before the Error is sent.
    **options
        Of `UpdateCodec`: `clip` (needed), `norm`, `update`, `interval`, `integers`, `only`, `keep_local`,
        `allow_biased`, `rows`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.
    NoLedgerError
        If the ledger's file is not there, and the account does not begin one.

    Warns
    -----
    UnprotectedMessageWarning
        If `others`, `keep` or `examples` allow anything to be sent that no mechanism releases.

    Notes
    -----
    The mod fails closed: if training, evaluation, randomization or accounting fails, the reply is an Error
    with one of three fixed sentences. The failure itself is visible: with ``failing="refuse"``, make sure
    that the client's code does not fail on certain records only.

    The ledger is charged after training and before the release. The charge is the exact epsilon of a record
    of the mechanism, times the number of records in an update: neighbouring updates differ in any way.

    Put it into ``ClientApp(mods=[...])``: as a mod of one function, it does not see the messages of the
    others. Mods listed before it see only the report. Mods listed after it see the update itself, and
    additions of theirs to the reply are dropped. No mod can control client code that sends data other than by
    its reply, or an exception of a lifespan function, whose text Flower sends.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.federated import PrivateUpdateMod
    >>> from flwr.clientapp import ClientApp
    >>> mod = PrivateUpdateMod(lambda d: bitldp.Duchi(epsilon=1.0, features=d), clip=1.0, budget=10.0)
    >>> app = ClientApp(mods=[mod])
    """

    def __init__(
        self,
        mechanism: Mechanism | Factory | UpdateCodec,
        *,
        budget: float | ClientAccount,
        delta: float = 0.0,
        ledger: Place | Literal["run"] | None = None,
        create: bool = False,
        examples: Examples = "fixed",
        keep: tuple[str, ...] = (),
        metrics: Mapping[str, Mechanism] | None = None,
        others: Literal["refuse", "pass"] = "refuse",
        rng: Seed = None,
        arrays: str = "arrays",
        config: str = "config",
        repeat: Place | None = None,
        nonfinite: Literal["zero", "refuse"] = "zero",
        failing: Literal["refuse", "zero"] = "refuse",
        on_failure: Callable[[Exception], None] | None = None,
        **options: Any,
    ) -> None:
        self._on_failure = on_failure
        self.codec = UpdateCodec.of(mechanism, options)
        if isinstance(budget, ClientAccount):
            if delta != 0.0 or ledger is not None or create:
                raise TypeError("budget: the account has delta, ledger and create already; give them there")
            self.account = budget
        else:
            self.account = ClientAccount(budget, delta, ledger, create=create)
        check_examples(examples)
        self.examples = examples
        if isinstance(keep, str) or not all(isinstance(name, str) for name in keep):
            raise TypeError("keep: must be a sequence of names")
        self.keep = tuple(keep)
        self.evaluation = None if metrics is None else Evaluation(metrics)
        self.others = checks.choice("others", others, ("refuse", "pass"))
        if rng is not None and not callable(rng):
            rng = checks.integer("rng", rng, 0)
        self._rng = rng
        self._arrays, self._config = arrays, config
        self._repeat = repeat
        self.nonfinite = checks.choice("nonfinite", nonfinite, ("zero", "refuse"))
        self.failing = checks.choice("failing", failing, ("refuse", "zero"))
        if failing == "zero" and (keep or not (examples == "fixed" or isinstance(examples, int))):
            name = "keep" if keep else "examples"
            raise ValueError(
                f"{name}: would show that the client failed; it cannot be combined with failing='zero'"
            )
        warn_unprotected(
            others=others == "pass", keep=self.keep, examples=examples, evaluated=self.evaluation is not None
        )

    def __repr__(self) -> str:
        """Return the parameters that are no secrets; never the seed."""
        return f"PrivateUpdateMod({self.codec!r}, budget={self.account.budget:g}, examples={self.examples!r})"

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Answer a message; Flower calls this."""
        answer = self._answer(message.metadata.message_type.split(".")[0])
        if answer is None:
            return refusal(message, REFUSED, OTHERS_SENTENCE)
        try:
            return answer(message, context, call_next)
        except BudgetExceededError as error:
            return self._refused(message, REFUSED, BUDGET_SENTENCE, error)
        except Exception as error:  # of any kind: nothing of it may leave
            return self._refused(message, FAILED, FAILURE_SENTENCE, error)

    def _refused(self, message: Message, code: int, sentence: str, error: Exception) -> Message:
        return refused(message, code, sentence, error, self._on_failure)

    def _answer(self, kind: str) -> Answer | None:
        """Return the answer to messages of a kind ("train", "evaluate", ...), or None to refuse them."""
        if kind == MessageType.TRAIN:
            return self._private
        if kind == MessageType.EVALUATE and self.evaluation is not None:
            return self._evaluated
        return self._passed if self.others == "pass" else None

    def _private(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Train, perturb, charge; raise before anything could leave."""
        before = _numpy(message.content[self._arrays])
        layout = self.codec.layout(before)
        plan = self.codec.plan(layout).at(self._turn(message), examples=self.examples != "fixed")
        asked = question_of(message, plan.header.digest)
        path = self._kept_at(context)
        with nullcontext() if path is None else locked(path):
            kept = None if path is None else find_kept(path, asked)
            if kept is None:
                kept = self._released(plan, before, asked, message, context, call_next)
                if path is not None:
                    keep_report(path, asked, kept)
        array = Array("uint8", (len(kept.report),), STYPE, kept.report)
        record = ArrayRecord({REPORT: array})
        content = RecordDict({self._arrays: record, "metrics": MetricRecord(kept.metrics)})
        return Message(content, reply_to=message)

    def _evaluated(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Evaluate, charge, perturb; raise before anything could leave."""
        assert self.evaluation is not None
        asked = question_of(message, self.evaluation.digest)
        path = self._kept_at(context, ".evaluation")
        with nullcontext() if path is None else locked(path):
            kept = None if path is None else find_kept(path, asked)
            if kept is None:
                kept = Kept(b"", self._measured(self.evaluation, asked, message, context, call_next))
                if path is not None:
                    keep_report(path, asked, kept)
        return Message(RecordDict({"metrics": MetricRecord(kept.metrics)}), reply_to=message)

    @staticmethod
    def _passed(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Hand a reply through: its sender was warned. The text of an exception does not leave with it."""
        return call_next(message, context)

    def _kept_at(self, context: Context, suffix: str = "") -> Path | None:
        """Return the file of the last report, if one is kept."""
        path = self._repeat(context) if callable(self._repeat) else self._repeat
        return None if path is None else Path(f"{os.fspath(path)}{suffix}")

    def _released(
        self,
        plan: UpdatePlan,
        before: dict[str, NDArray[Any]],
        asked: bytes,
        message: Message,
        context: Context,
        call_next: ClientAppCallable,
    ) -> Kept:
        """Train, charge, perturb."""
        charges = self._charges(plan)
        stream = self._seeds(charges, asked, message, context)
        try:
            result, vector = self._trained(plan, before, message, context, call_next)
        except Exception as error:
            self._failed(error)
            result, vector = {}, np.zeros(plan.update_shape)
        metrics = {name: result[name] for name in self.keep}
        metrics[COUNT] = said(self.examples, result, None if stream is None else stream[1])
        self.account.charge(context, charges)
        report = plan.perturb(vector, rng=None if stream is None else stream[0])
        return Kept(report.tobytes(), metrics)

    def _trained(
        self,
        plan: UpdatePlan,
        before: dict[str, NDArray[Any]],
        message: Message,
        context: Context,
        call_next: ClientAppCallable,
    ) -> tuple[dict[str, Any], NDArray[np.float64]]:
        """Return the metrics and the update of the client's code, which `plan.perturb` will take."""
        reply = _reply(message, context, call_next)
        vector = plan.flatten(_numpy(reply.content[self._arrays]))
        if self.codec.update == "difference":
            with np.errstate(invalid="ignore", over="ignore"):
                vector -= plan.flatten(before)
        if self.nonfinite == "zero" and not np.isfinite(vector).all():
            log.warning("bitldp: an update was not finite; zeros are reported in its place")
            vector = np.zeros_like(vector)
        plan.clipped(vector)  # refuses what is not finite, before it is paid for
        return _metrics(reply), vector

    def _measured(
        self,
        evaluation: Evaluation,
        asked: bytes,
        message: Message,
        context: Context,
        call_next: ClientAppCallable,
    ) -> dict[str, Any]:
        """Evaluate, charge, perturb."""
        charges = [*evaluation.charges, *self._counting()]
        stream = self._seeds(charges, asked, message, context)
        try:
            result = _metrics(_reply(message, context, call_next))
            values = evaluation.clipped(result, refuse=self.nonfinite == "refuse")
        except Exception as error:
            self._failed(error)
            result, values = {}, evaluation.middles
        count = said(self.examples, result, None if stream is None else stream[1])
        self.account.charge(context, charges)
        return {**evaluation.release(values, None if stream is None else stream[0]), COUNT: count}

    def _failed(self, error: Exception) -> None:
        """Raise what the client's code raised again, unless zeros are to be released in its place."""
        if self.failing == "refuse":
            raise error
        noted("bitldp: a step before the release failed; zeros are reported", error, self._on_failure)

    def _seeds(
        self, charges: list[Charge], asked: bytes, message: Message, context: Context
    ) -> list[np.random.SeedSequence] | None:
        """Return the seeds of a release that can be paid for; raise before the client works in vain."""
        try:
            self.account.check(context, charges)
        except BudgetExceededError:
            raise
        except (OSError, ValueError) as error:  # of the ledger, and of nothing else
            log.warning("bitldp: the ledger cannot be charged: %s", error)
            raise
        return self._stream(message, context, asked)

    def _charges(self, plan: UpdatePlan) -> list[Charge]:
        return [Charge(plan.mechanism, plan.records, UPDATE), *self._counting()]

    def _counting(self) -> list[Charge]:
        """Return what the number of examples costs."""
        counting = self.examples.mechanism if isinstance(self.examples, Bucketed) else None
        return [] if counting is None else [Charge(counting, 1, "number of examples")]

    def _turn(self, message: Message, default: int = 0) -> int:
        """Return the number of the round that a message asks for."""
        config: Any = message.content.get(self._config, {})
        return checks.integer("server-round", config.get("server-round", default), 0)

    def _stream(
        self, message: Message, context: Context, asked: bytes
    ) -> list[np.random.SeedSequence] | None:
        """Return seeds of the report and of the number of examples: of this client, round and question.

        Two different models that are sent for one round are two streams: their reports share no random bit.
        """
        seed = self._rng(context) if callable(self._rng) else self._rng
        if seed is None:
            return None
        client = checks.integer("rng", context.node_config.get("partition-id", context.node_id), 0)
        releases = sum(entry.count for entry in self.account.ledger(context).entries)
        turn = self._turn(message, releases)
        words = (int.from_bytes(asked[index : index + 4], "little") for index in range(0, 16, 4))
        return np.random.SeedSequence(seed, spawn_key=(client, turn, *words)).spawn(2)


def _reply(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Return what the client's code replies."""
    reply = call_next(message, context)
    if reply.has_error():
        raise RuntimeError("the client app replied with an error")
    return reply


def _metrics(reply: Message) -> dict[str, Any]:
    """Return all metrics of a reply: private, until something is chosen of them."""
    result: dict[str, Any] = {}
    for record in reply.content.metric_records.values():
        result.update(record)
    return result


def _numpy(record: Any) -> dict[str, NDArray[Any]]:
    if not isinstance(record, ArrayRecord):
        raise TypeError("arrays: must be an ArrayRecord")
    return {name: array.numpy() for name, array in record.items()}
