"""Flower strategy that decodes private reports and averages them without bias."""

from __future__ import annotations

import hashlib
import inspect
import logging
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, NamedTuple

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import (
    Bulyan,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedTrimmedAvg,
    FedXgbBagging,
    FedXgbCyclic,
    FedYogi,
    MultiKrum,
    QFedAvg,
    Strategy,
)
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.client.message import WireError, parse, read
from bitldp.federated import flower
from bitldp.federated.client.evaluation import Evaluation
from bitldp.federated.client.mod import BUDGET_SENTENCE, FAILURE_SENTENCE, REPORT, STYPE
from bitldp.federated.server.costs import Attendance, RunCosts, RunResult, printed
from bitldp.federated.server.forecast import forecast
from bitldp.federated.server.mean import ReportMean
from bitldp.federated.wire.arrays import Layout
from bitldp.federated.wire.codec import Factory, UpdateCodec, UpdatePlan
from bitldp.mechanism.base import Mechanism

__all__ = ["DecodingStrategy", "RoundFailedError"]

log = logging.getLogger("bitldp.federated")

_MEAN_ALONE = (FedAvg, FedAvgM, FedAdam, FedAdagrad, FedYogi, FedProx)
_NOT_MEAN: dict[type[Strategy], str] = {
    FedMedian: "takes a median of the clients' updates",
    FedTrimmedAvg: "leaves out the largest of the clients' updates",
    MultiKrum: "chooses among the clients' updates",
    Bulyan: "chooses among the clients' updates",
    QFedAvg: "weighs each client by its own loss",
    FedXgbBagging: "joins trees",
    FedXgbCyclic: "hands trees on",
}
_CAUSES = {BUDGET_SENTENCE: "budget", FAILURE_SENTENCE: "step"}
#: What to look at, by the commonest cause of a round that failed.
_HINTS = {
    "failed-budget": "the clients' budget is spent; give a larger budget=, fewer rounds, or ledger='run' "
    "in a simulation",
    "failed-step": "a step of the client app raised an exception; run_in_process(..., debug=True) prints it",
    "failed-other": "the client app raised an exception; run_in_process(..., debug=True) prints it",
    "rejected-garbage": "what came is no report; pass mods=[PrivateUpdateMod(...)] to the ClientApp, and no "
    "other mod that changes the reply",
    "rejected-settings": "clients and server differ; give the mod and the strategy the same settings",
    "rejected-mechanism": "clients and server differ; give the mod and the strategy the same mechanism",
}
_START = inspect.signature(FedAvg.start)
_FED_AVG = tuple(inspect.signature(FedAvg).parameters)


class _Arrivals(NamedTuple):
    """Replies of a round, sorted.

    Attributes
    ----------
    answers : list of (Message, bool)
        Replies without an error, and whether each is the first one of a client that was asked.
    failed : Counter of str
        Replies with an error, by cause: "budget", "step" or "other".
    missing : int
        Clients that did not reply.
    """

    answers: list[tuple[Message, bool]]
    failed: Counter[str]
    missing: int

    @classmethod
    def of(cls, asked: set[int], replies: Iterable[Message]) -> _Arrivals:
        """Sort the replies of the clients that were asked, and of others."""
        waiting, failed = set(asked), Counter[str]()
        answers: list[tuple[Message, bool]] = []
        for reply in replies:
            node = reply.metadata.src_node_id
            expected = node in waiting
            waiting.discard(node)
            if reply.has_error():
                failed[_CAUSES.get(reply.error.reason or "", "other")] += 1
                log.info("client %d sent no report: error %d", node, reply.error.code)
            else:
                answers.append((reply, expected))
        return cls(answers, failed, len(waiting))

    def counts(self, rejected: Counter[str]) -> dict[str, int]:
        """Return what did not come and what was rejected, by cause, as metrics of the round."""
        counts = {"failed": self.failed.total(), "missing": self.missing, "rejected": rejected.total()}
        counts |= {f"failed-{cause}": count for cause, count in sorted(self.failed.items())}
        return counts | {f"rejected-{reason}": count for reason, count in sorted(rejected.items())}


def _hint(counts: Mapping[str, int]) -> str:
    """Return what to look at, if most clients failed for one cause that is known here."""
    known = [cause for cause in _HINTS if counts.get(cause)]
    return f". {_HINTS[max(known, key=counts.__getitem__)]}" if known else ""


class RoundFailedError(RuntimeError):
    """Error for a round with too few readable reports.

    Attributes
    ----------
    result : RunResult
        The last good model, or the one that the run began with, the clients' metrics of the rounds before,
        and what they cost. Filled in by `DecodingStrategy.start`; empty where a round is driven by hand.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.result = RunResult()


class DecodingStrategy(FedAvg):
    """Federated averaging of private reports, without bias.

    Parameters
    ----------
    inner : FedAvg, Mechanism, callable, or UpdateCodec, optional
        Flower's strategy that makes the next model of the mean: `FedAvg`, `FedAvgM`, `FedAdam`, `FedAdagrad`,
        `FedYogi` or `FedProx`, already constructed. It chooses the clients, too, and sees one reply a round:
        the model moved by the mean update. Without it this is `FedAvg`; the mechanism may then stand first.
    mechanism : Mechanism, callable, or UpdateCodec
        What releases the clients' updates, equal to that of their `PrivateUpdateMod`.
    mean_only : bool
        Declares that another `inner` strategy of your own uses only the weighted mean of the clients' arrays.
        A strategy that needs each client's update would silently get the mean.
    rate : float
        Factor of the mean update before it is added, for example -0.1 for gradients of a loss. Not for
        ``update="replace"``.
    weighting : {"fixed", "examples"}
        Whether every report has the same weight, or that of the number of examples that the client states.
        With "examples", a client that states none (the default of `PrivateUpdateMod`) is rejected.
    max_examples : int, optional
        Largest number of examples of a client; required with ``weighting="examples"``. A larger number counts
        as this one, so that no client can dominate the mean.
    metrics : mapping of str to Mechanism, optional
        Metrics of evaluations that clients release, as in `PrivateUpdateMod`: equal on both sides. Without it
        no client is asked for an evaluation (`fraction_evaluate` is 0), and none is counted.
    min_fraction : float
        Share of the clients asked whose reports must arrive, in [0, 1]. At least one always must.
    seed : int, optional
        Makes the choice of clients reproducible (where fewer than all are asked).
    delta : float
        Delta of the costs that are printed at the end of a run where they need one, in (0, 1).
    first_round : int
        Number of the first round, for a run that goes on from a checkpoint: clients are told, and metrics
        are filed under, the number of the round since the beginning.
    **options
        Of `UpdateCodec` (`clip`, `norm`, `update`, `interval`, `integers`, `only`, `keep_local`,
        `allow_biased`, `rows`) and, where there is no `inner` strategy, of
        `flwr.serverapp.strategy.FedAvg`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, and for an `inner` strategy that does not use the mean alone. A
        subclass is refused when it is defined if it inherits another `aggregate_train` or `start` as well:
        one of the two would be skipped.

    Notes
    -----
    Each round's metrics are: "clients" asked, "reports" averaged, "failed" (Error replies), "missing" (no
    reply in time), "rejected" (bytes that are no such report), and their causes where they occurred:
    "failed-budget" (the client's budget is exhausted), "failed-step" (its training or release failed),
    "failed-other", and "rejected-REASON"; "bytes-up" of all reports that came, headers included; "stderr",
    the standard error of the mean update, as root mean square over its coordinates (absent for one report);
    and, where examples weigh, "largest-share": the part of the mean that is one client's.

    A report names its round, and one of another round is rejected. Of an evaluation only those replies count
    whose every metric is a number that its mechanism releases; all weigh the same, whatever they state.
    Metrics of an evaluation are the means, "stderr-NAME" of each, and the counts of a training round.

    Reports are summed in an order that depends on their bytes alone, so that the same reports make the same
    model, whatever the clients' numbers and the order of arrival.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.federated import DecodingStrategy
    >>> strategy = DecodingStrategy(lambda d: bitldp.Duchi(epsilon=1.0, features=d), clip=1.0)

    With Adam on the server:

    >>> from flwr.serverapp.strategy import FedAdam
    >>> mechanism = lambda d: bitldp.Duchi(epsilon=1.0, features=d)
    >>> strategy = DecodingStrategy(FedAdam(eta=0.01), mechanism=mechanism, clip=1.0)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a base with an `aggregate_train` or `start` of its own: one of the two would be skipped."""
        super().__init_subclass__(**options)
        for base in cls.__mro__:
            own = issubclass(base, DecodingStrategy) or base in (FedAvg, Strategy)
            if issubclass(base, Strategy) and not own and {"aggregate_train", "start"} & vars(base).keys():
                raise TypeError(
                    f"{cls.__name__}: one of DecodingStrategy and {base.__name__} would be skipped; use "
                    f"DecodingStrategy({base.__name__}(...), mechanism=...)"
                )

    def __init__(
        self,
        inner: FedAvg | Mechanism | Factory | UpdateCodec | None = None,
        *,
        mechanism: Mechanism | Factory | UpdateCodec | None = None,
        mean_only: bool = False,
        rate: float = 1.0,
        weighting: Literal["fixed", "examples"] = "fixed",
        max_examples: int | None = None,
        metrics: Mapping[str, Mechanism] | None = None,
        min_fraction: float = 0.0,
        seed: int | None = None,
        delta: float = 1e-6,
        first_round: int = 1,
        **options: Any,
    ) -> None:
        own = [each.name for each in fields(UpdateCodec) if each.init and each.name != "mechanism"]
        released, self.inner = _parted(inner, mechanism, checks.flag("mean_only", mean_only))
        self.codec = UpdateCodec.of(released, {name: options.pop(name) for name in own if name in options})
        if self.inner is not None:
            for name in options:
                raise TypeError(f"{name}: give it to {type(self.inner).__name__}, or leave that out")
            options = {name: getattr(self.inner, name) for name in _FED_AVG}
        super().__init__(**options)
        if metrics is None and (self.inner is not None or "fraction_evaluate" not in options):
            self.fraction_evaluate = 0.0  # no reply could be read
        self.rate = checks.real("rate", rate)
        if self.codec.update == "replace" and self.rate != 1.0:
            raise ValueError("rate: not allowed with update='replace', where the mean replaces the model")
        self.weighting = checks.choice("weighting", weighting, ("fixed", "examples"))
        if (max_examples is None) == (self.weighting == "examples"):
            raise TypeError(
                "max_examples: the most that a client counts for; needed with weighting='examples', and "
                "for nothing else"
            )
        self.max_examples = None if max_examples is None else checks.integer("max_examples", max_examples, 1)
        self._evaluation = None if metrics is None else Evaluation(metrics)
        if self._evaluation is not None:
            _ = self._evaluation.letters  # refuses now what could not be checked
        self.min_fraction = checks.real("min_fraction", min_fraction)
        if not 0.0 <= self.min_fraction <= 1.0:
            raise ValueError(f"min_fraction: must be in [0, 1], got {min_fraction}")
        self.seed = None if seed is None else checks.integer("seed", seed, 0)
        self.delta = checks.real("delta", delta)
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta: must be above 0 and below 1, got {delta}")
        self.first_round = checks.integer("first_round", first_round, 1)
        self._model: dict[str, NDArray[Any]] = {}
        self._asked: set[int] = set()
        self._judges: set[int] = set()
        self._past = RunResult()  # the rounds so far, for an error that ends the run
        self._attendance = Attendance()
        self._ahead = 0  # rounds of a run that has not begun

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose the clients of a round, and remember the model that they are sent."""
        turn = self._turn(server_round)
        self._model = {name: array.numpy() for name, array in arrays.items()}
        plan = self.codec.plan(self.codec.layout(self._model))  # refuses now what no client could send
        configure = super().configure_train if self.inner is None else self.inner.configure_train
        if self.seed is None:
            messages = list(configure(turn, arrays, config, grid))
        else:  # FedAvg draws from Python's global generator
            state = random.getstate()
            random.seed(f"bitldp {self.seed} {turn}")
            try:
                messages = list(configure(turn, arrays, config, grid))
            finally:
                random.setstate(state)
        self._asked = {message.metadata.dst_node_id for message in messages}
        self._attendance.asked(self._asked)
        if self._ahead and self._asked:
            self._foretell(plan)
        return messages

    def _foretell(self, plan: UpdatePlan) -> None:
        """Log the noise of a run before its first round; warn where it cannot be expected to learn."""
        noise, self._ahead = forecast(plan, len(self._asked), self._ahead), 0
        if noise is None:
            return
        flower.console.info("Noise: %s", noise)
        if noise.hopeless:
            flower.console.warning(
                "This run cannot be expected to learn: its noise is longer than all that its clients can "
                "say. %s clients a round, fewer numbers (only=), more rounds or a larger epsilon would "
                "change that.",
                f"{noise.needed:,}",
            )

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Decode the reports, and return the new model and the metrics of the round.

        Raises
        ------
        RoundFailedError
            If no report, or less than `min_fraction` of those asked for, could be read.
        """
        if not self._asked:
            return None, None
        layout = self.codec.layout(self._model)
        plan = self.codec.plan(layout).at(self._turn(server_round))
        mean, counts = self._collect(plan, replies)
        if mean.reports == 0 or mean.reports < self.min_fraction * len(self._asked):
            seen = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "bytes-up")
            raise RoundFailedError(
                f"round {self._turn(server_round)}: {mean.reports} of {len(self._asked)} clients sent a "
                f"report that could be read ({seen}){_hint(counts)}"
            )
        self._attendance.came(mean.reports, mean.largest_share)
        arrays = self.updated(layout, mean.value)
        if self.inner is not None:
            arrays = self._stepped(self._turn(server_round), layout, arrays)
        metrics: dict[str, Any] = {"clients": len(self._asked), "reports": mean.reports, **counts}
        if mean.reports > 1:
            metrics["stderr"] = mean.stderr()
        if self.weighting == "examples":
            metrics["largest-share"] = mean.largest_share
        model = ArrayRecord({name: Array(array) for name, array in arrays.items()})
        self._past.arrays = model
        self._past.train_metrics_clientapp[self._turn(server_round)] = MetricRecord(metrics)
        return model, MetricRecord(metrics)

    def updated(self, layout: Layout, mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the new arrays of the model, given the mean update; subclasses may replace this."""
        if self.codec.update == "replace":
            return layout.restore(mean, self._model)
        return layout.restore(layout.flatten(self._model) + self.rate * mean, self._model)

    def _stepped(
        self, turn: int, layout: Layout, arrays: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        """Return the arrays that the inner strategy makes of the mean, as of one reply."""
        assert self.inner is not None
        record = RecordDict(
            {
                self.arrayrecord_key: ArrayRecord({name: Array(array) for name, array in arrays.items()}),
                "metrics": MetricRecord({self.weighted_by_key: 1}),
            }
        )
        reply = Message(content=record, message_type=MessageType.TRAIN, dst_node_id=0)
        made, _ = self.inner.aggregate_train(turn, [reply])
        if made is None or set(made) != set(self._model):
            name = type(self.inner).__name__
            raise TypeError(f"inner: {name} did not turn the mean into a model")
        # What no client has sent stays: a step of Adam makes floats of integers.
        return {
            name: made[name].numpy().astype(array.dtype) if layout.sends(name) else array
            for name, array in self._model.items()
        }

    def _collect(self, plan: UpdatePlan, replies: Iterable[Message]) -> tuple[ReportMean, dict[str, int]]:
        """Decode and average what came; count what did not, and why."""
        came = _Arrivals.of(self._asked, replies)
        rejected: Counter[str] = Counter()
        size = 0
        result: list[tuple[bytes, bytes, float]] = []
        for reply, expected in came.answers:
            try:
                if not expected:
                    raise WireError("unexpected", "report: of a client that was not asked, or a second one")
                data = self._report(reply)
                size += len(data)
                result.append((hashlib.sha256(data).digest(), data, self._weight(data, reply)))
            except WireError as error:
                rejected[error.reason] += 1
                log.warning("client %d: %s", reply.metadata.src_node_id, error)
        mean = ReportMean(plan.header.coordinates)
        for _, data, weight in sorted(result):
            try:
                mean.add_all(plan.decoded(read(data, plan.header)), weight)
            except WireError as error:
                rejected[error.reason] += 1
                log.warning("a client's %s", error)
        return mean, came.counts(rejected) | {"bytes-up": size}

    def _report(self, reply: Message) -> bytes:
        record = reply.content.get(self.arrayrecord_key) if reply.has_content() else None
        array = record.get(REPORT) if isinstance(record, ArrayRecord) else None
        if array is None or array.stype != STYPE:
            raise WireError("garbage", "report: the reply holds none")
        return bytes(array.data)

    def _weight(self, data: bytes, reply: Message) -> float:
        if self.max_examples is None:
            return 1.0
        if not parse(data).examples:
            raise WireError("examples", "report: its client states no number of examples (examples='fixed')")
        for record in reply.content.metric_records.values():
            stated = record.get(self.weighted_by_key)
            if type(stated) is int and stated > 0:
                return float(min(stated, self.max_examples))
        raise WireError("examples", f"report: {self.weighted_by_key!r} must be an integer above zero")

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose the clients of an evaluation."""
        if self.inner is None or self._evaluation is None:
            configure = super().configure_evaluate
        else:
            configure = self.inner.configure_evaluate
        messages = list(configure(self._turn(server_round), arrays, config, grid))
        self._judges = {message.metadata.dst_node_id for message in messages}
        self._attendance.judged(self._judges)
        return messages

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Average the released metrics, and count what did not come, and what is no release."""
        if not self._judges:
            return None
        came, rejected = _Arrivals.of(self._judges, replies), 0
        rows: list[dict[str, float]] = []
        for reply, expected in came.answers:
            released = None if not expected or self._evaluation is None else self._evaluation.read(reply)
            if released is None:
                rejected += 1
                node = reply.metadata.src_node_id
                log.warning("client %d: its evaluation holds something else than released metrics", node)
            else:
                rows.append(released)
        metrics: dict[str, Any] = {"clients": len(self._judges), "reports": len(rows)}
        metrics |= came.counts(Counter()) | {"rejected": rejected}
        for name in rows[0] if rows else ():
            values = np.array([row[name] for row in rows])
            metrics[name] = math.fsum(values) / len(values)
            if len(rows) > 1:
                metrics[f"stderr-{name}"] = float(np.std(values, ddof=1)) / math.sqrt(len(rows))
        self._past.evaluate_metrics_clientapp[self._turn(server_round)] = MetricRecord(metrics)
        return MetricRecord(metrics)

    def summary(self) -> None:
        """Log the settings: those of the inner strategy, where there is one."""
        super().summary() if self.inner is None else self.inner.summary()

    def _turn(self, server_round: int) -> int:
        return server_round + self.first_round - 1

    def _costs(self) -> RunCosts | None:
        """Return what the rounds so far cost the client that was asked most often; None before a report."""
        if not self._model:
            return None
        metrics = {} if self._evaluation is None else self._evaluation.metrics
        return self._attendance.costs(self.codec.plan(self.codec.layout(self._model)), metrics, self.delta)

    def start(self, grid: Grid, *args: Any, **options: Any) -> RunResult:
        """Run the rounds: `FedAvg.start`, with the rounds numbered from `first_round`.

        Before the first round Flower's log has the noise of its mean update (`forecast`), with a warning
        where that of all rounds is longer than all that the clients can say; at the end it has what the run
        cost a client: locally, if a shuffler is trusted, and if nothing but sums is seen.

        Raises
        ------
        RoundFailedError
            See `aggregate_train`; its `result` has the last good model.
        """
        self._past, self._attendance = RunResult(), Attendance()
        given = _START.bind(self, grid, *args, **options)
        given.apply_defaults()
        self._ahead = given.arguments["num_rounds"]
        try:
            found = super().start(grid, *args, **options)
        except RoundFailedError as error:
            error.result = self._past
            if not error.result.arrays:  # it was the first round
                error.result.arrays = ArrayRecord({name: Array(each) for name, each in self._model.items()})
            error.result.costing = self._costs
            raise
        result = RunResult(**vars(found), costing=self._costs)
        if self.first_round > 1:
            for name in ("train_metrics_clientapp", "evaluate_metrics_clientapp"):
                filed = {self._turn(number): metrics for number, metrics in getattr(result, name).items()}
                setattr(result, name, filed)
            scored = result.evaluate_metrics_serverapp
            result.evaluate_metrics_serverapp = {self._turn(turn): each for turn, each in scored.items()}
        printed(result)
        keep = getattr(grid, "keep_result", None)
        if keep is not None:
            keep(result)
        return result


def _parted(
    inner: Any, mechanism: Any, mean_only: bool
) -> tuple[Mechanism | Factory | UpdateCodec, FedAvg | None]:
    """Return what releases updates, and the strategy inside, which uses the mean of the clients alone."""
    if not isinstance(inner, Strategy):
        if mean_only:
            raise TypeError("mean_only: needs an inner strategy")
        if (inner is None) == (mechanism is None):
            raise TypeError("mechanism: give it once, by its name or first")
        return (mechanism if inner is None else inner), None
    kind: type[Strategy] = type(inner)
    reason = next((text for base, text in _NOT_MEAN.items() if isinstance(inner, base)), None)
    if isinstance(inner, DecodingStrategy):
        reason = "decodes reports itself"
    elif "DifferentialPrivacy" in "".join(base.__name__ for base in kind.__mro__):
        reason = "clips and adds noise to updates, which are private already; name the strategy inside it"
    elif kind.start is not Strategy.start:
        reason = "has a `start` of its own, which would be skipped"
    elif not isinstance(inner, FedAvg):
        reason = "is no FedAvg"
    elif reason is None and kind not in _MEAN_ALONE and not mean_only:
        reason = "may need each client's update by itself; if it uses their mean alone, say mean_only=True"
    if reason is not None or not isinstance(inner, FedAvg):
        raise TypeError(f"inner: {kind.__name__} {reason}")
    if mechanism is None:
        raise TypeError("mechanism: needed beside an inner strategy; it releases the clients' updates")
    return mechanism, inner
