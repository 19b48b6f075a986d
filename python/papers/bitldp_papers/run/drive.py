"""Course of a run, from its first round or its checkpoint to its summary."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from bitldp.base.documents import jsonable
from bitldp.base.files import replacing
from bitldp.federated import DecodingStrategy, RoundFailedError
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.run.folder import RunFolder
from bitldp_papers.run.rounds import Privacy, Round
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.share import loaded

__all__ = [
    "SUMMARY",
    "Summary",
    "alike",
    "drive",
    "finished",
    "finishing",
    "folder_of",
    "watching",
]

log = logging.getLogger("bitldp.federated")

SUMMARY = "summary.json"
Watcher = Callable[[Mapping[str, Any]], None]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_finisher: ContextVar[Callable[[Summary], None] | None] = ContextVar("finisher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` with the metrics of every round that ends while the block runs."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def folder_of(settings: Settings, system: str) -> str:
    """Return the folder of a run."""
    return settings.out or f"fl-output/{system}"


@contextmanager
def finishing(finisher: Callable[[Summary], None]) -> Iterator[None]:
    """Call `finisher` with the summary of every run that ends while the block runs."""
    token = _finisher.set(finisher)
    try:
        yield
    finally:
        _finisher.reset(token)


@dataclass(frozen=True)
class Summary:
    """Results at the end of a run.

    Attributes
    ----------
    system : str
    metric : str
        Name of the score: "accuracy", or an error.
    score : float
        On clean test records, after the last round.
    rounds : int
    bytes_up : int
        All that clients sent as updates, headers included.
    privacy : Privacy
    seconds : float
        Of this process, resumed rounds only.
    caveat : str
        Caveat of the score; empty where there is none.
    mechanism : str
        The setting of that name; empty where a system has none.
    seed : int
        Of the settings.
    scores : mapping of str to float
        Metrics of the last round by name, `score` among them, but for counts; None where one is not finite.
    majority : float, optional
        Accuracy of a classifier that looks at no feature: the share of test records of the most frequent
        class. None where the metric is no accuracy.
    constant : float, optional
        Error, in the same units, of the constant that is the mean of the training part's targets. None where
        the metric is no error.
    """

    system: str
    metric: str
    score: float
    rounds: int
    bytes_up: int
    privacy: Privacy
    seconds: float
    caveat: str = ""
    mechanism: str = ""
    seed: int = 0
    scores: Mapping[str, float | None] = field(default_factory=dict)
    majority: float | None = None
    constant: float | None = None


def drive(grid: Grid, rounds: Round[Any], system: str, *, timeout: float = 600.0) -> Summary:
    """Run the rounds that are left, keep each, and write the summary.

    Parameters
    ----------
    grid : Grid
        As a ServerApp is given it.
    rounds : Round
        Of the system, under the settings of the run.
    system : str
        Name of the system.
    timeout : float
        Seconds to wait for the clients of a round.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError
        For a folder of another run.
    RoundFailedError
        If a round had no reports. The rounds before it are kept.
    """
    settings, start = rounds.settings, time.perf_counter()
    data, train, _ = loaded(settings.data)
    if rounds.metric == "accuracy" and not data.classes:
        raise ValueError(
            f"data: {settings.data} has no classes, which are needed; brr with task=trees learns a regression"
        )
    initial, privacy = rounds.initial(), rounds.privacy()
    records = len(train)
    if settings.clients > records:
        raise ValueError(
            f"clients: {settings.clients} are more than the {records} records of {settings.data}"
        )
    folder = RunFolder(folder_of(settings, system), settings.lasting(), resume=settings.resume)
    kept = folder.checkpoint
    done = 0 if kept is None else kept.round
    model = initial if kept is None else [kept.arrays[f"{index:03}"] for index in range(len(initial))]
    seen: dict[str, Any] = {}

    def scored(server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
        current = arrays.to_numpy_ndarrays()
        scored_here = {} if rounds.clients_score else rounds.scores(current)
        scores: dict[str, Any] = {name: float(value) for name, value in scored_here.items()}
        if server_round > 0 or done == 0:
            row = {"round": done + server_round, **scores, **seen}
            seen.clear()
            folder.record(row, {f"{index:03}": array for index, array in enumerate(current)})
            watcher = _watcher.get()
            if watcher is not None:
                watcher(folder.rows[-1])
        return MetricRecord(dict(scores))

    if done < settings.rounds:
        chosen = _observed(rounds.strategy(done + 1, tuple(folder.rows)), seen, done)
        chosen.start(
            grid=grid,
            initial_arrays=ArrayRecord({f"{index:03}": Array(array) for index, array in enumerate(model)}),
            num_rounds=settings.rounds - done,
            timeout=timeout,
            train_config=ConfigRecord(),
            evaluate_fn=scored,
        )
    return finished(
        folder,
        settings,
        system=system,
        privacy=privacy if data.public_ranges else _with_ranges(privacy),
        seconds=time.perf_counter() - start,
        metric=rounds.metric,
        caveat=rounds.caveat(),
        constant=rounds.constant(),
    )


def finished(
    folder: RunFolder,
    settings: Settings,
    *,
    system: str,
    privacy: Privacy,
    seconds: float,
    metric: str = "accuracy",
    caveat: str = "",
    truth: NDArray[Any] | None = None,
    constant: float | None = None,
) -> Summary:
    """Return the summary of a run whose rounds are in its folder, and write it there.

    `truth` are the labels that are scored, where these are not those of all test records; `constant` is that
    of `Summary`.
    """
    last, data = folder.rows[-1], loaded(settings.data)[0]
    truth = data.test_labels if truth is None else truth
    summary = Summary(
        system=system,
        metric=metric,
        score=float("nan") if last.get(metric) is None else float(last[metric]),
        rounds=last["round"],
        bytes_up=sum(row.get("bytes-up", 0) for row in folder.rows),
        privacy=privacy,
        seconds=seconds,
        caveat=caveat,
        mechanism=getattr(settings, "mechanism", ""),
        seed=settings.seed,
        scores={name: value for name, value in last.items() if isinstance(value, float) or value is None},
        majority=data.majority_of(truth) if metric == "accuracy" else None,
        constant=constant,
    )
    _write(folder.path, summary)
    finisher = _finisher.get()
    if finisher is not None:
        finisher(summary)
    return summary


def _with_ranges(privacy: Privacy) -> Privacy:
    """Say that features were scaled by ranges which were learned from the records of all clients."""
    if not 0.0 < privacy.record < np.inf:
        return privacy
    more = "the ranges that features are scaled by, which were learned from all records"
    return replace(privacy, not_covered="; ".join(filter(None, (privacy.not_covered, more))))


def _observed(strategy: FedAvg, seen: dict[str, Any], done: int) -> FedAvg:
    """Let a strategy count rounds from the beginning, and leave the metrics of each in `seen`."""
    configure, aggregate, judge = (
        strategy.configure_train,
        strategy.aggregate_train,
        strategy.aggregate_evaluate,
    )
    # A DecodingStrategy does that by itself.
    offset = 0 if isinstance(strategy, DecodingStrategy) else done
    sent: list[ArrayRecord] = []

    def configure_train(
        server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        sent[:] = [arrays]
        messages = list(configure(server_round + offset, arrays, config, grid))
        for name in ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes"):
            setattr(strategy, name, 1)  # the run goes on without a client that has left
        return messages

    def aggregate_train(
        server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        # In an order that depends on what was sent alone, not on who sent it or when: sums of floats do.
        came = sorted(replies, key=_digest)
        size = sum(map(_size, came))
        counts: dict[str, int] = {}
        if not isinstance(strategy, DecodingStrategy):  # which looks at every report by itself
            came, counts = alike(came, sent[0])
        arrays, metrics = aggregate(server_round + offset, came)
        if arrays is None:
            seen_of = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "reports")
            raise RoundFailedError(
                f"round {done + server_round}: no client sent an update that could be read ({seen_of})"
            )
        seen.update(metrics or {})
        for name, count in {**counts, "bytes-up": size}.items():
            seen.setdefault(name, count)
        return arrays, metrics

    def aggregate_evaluate(server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        metrics = judge(server_round, replies)
        seen.update(metrics or {})
        return metrics

    strategy.aggregate_evaluate = aggregate_evaluate  # type: ignore[method-assign]
    strategy.configure_train = configure_train  # type: ignore[method-assign]
    strategy.aggregate_train = aggregate_train  # type: ignore[method-assign]
    return strategy


def alike(replies: Iterable[Message], sent: ArrayRecord) -> tuple[list[Message], dict[str, int]]:
    """Return the replies of the most frequent form, in order, and the counts of kept and dropped ones.

    Dropped are replies whose arrays or metrics are not those (names, shapes, dtypes) of most, or not finite.
    Where two kinds are equally many, arrays like those that were sent to the clients win. Error replies are
    counted, and dropped too: Flower would log their text.
    """
    failed = 0
    forms: list[tuple[Message, Any]] = []
    for reply in replies:
        if reply.has_error():
            failed += 1
            log.info("client %d sent no update: error %d", reply.metadata.src_node_id, reply.error.code)
            continue
        forms.append((reply, _form(reply)))
    votes = Counter(form for _, form in forms if form is not None)
    like = _layout(sent)
    common = max(votes, key=lambda form: (votes[form], form[0] == like, form), default=None)
    kept = [reply for reply, form in forms if form is not None and form == common]
    rejected = len(forms) - len(kept)
    if rejected:
        log.warning("%d updates are not like the others, or not finite, and were left out", rejected)
    return kept, {"reports": len(kept), "failed": failed, "rejected": rejected}


def _form(reply: Message) -> Any:
    """Return names, shapes and dtypes of a reply's arrays; None if it cannot be averaged."""
    arrays, metrics = list(reply.content.array_records.values()), list(reply.content.metric_records.values())
    if len(arrays) != 1 or len(metrics) != 1:
        return None
    weight: Any = metrics[0].get("num-examples")
    if isinstance(weight, (list, bool)) or weight is None or not 0.0 < weight < math.inf:
        return None
    layout = _layout(arrays[0])
    return None if layout is None else (layout, tuple(sorted(metrics[0])))


def _layout(record: ArrayRecord) -> Any:
    """Return names, shapes and dtypes; None for arrays that cannot be read, or are not finite."""
    layout = []
    for name, array in record.items():
        try:
            plain = array.numpy()
        except Exception:  # of any kind: these bytes are a stranger's
            return None
        if plain.dtype.kind not in "fiub" or not np.isfinite(plain).all():
            return None
        layout.append((name, plain.shape, plain.dtype.str))
    return tuple(layout)


def _digest(reply: Message) -> bytes:
    if reply.has_error():
        return b""
    digest = hashlib.sha256()
    for record in reply.content.array_records.values():
        for array in record.values():
            digest.update(array.data)
    return digest.digest()


def _size(reply: Message) -> int:
    if reply.has_error():
        return 0
    records = reply.content.array_records.values()
    return sum(len(array.data) for record in records for array in record.values())


def _write(path: Path, summary: Summary) -> None:
    with replacing(path / SUMMARY) as file:
        file.write((json.dumps(jsonable(asdict(summary)), indent=2, allow_nan=False) + "\n").encode())
