"""Flower in one process: the same ClientApp and ServerApp, without a SuperLink, a network or ray."""

from __future__ import annotations

import copy
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Result
from flwr.supercore.run import Run

from bitldp.base import checks
from bitldp.base.files import fleeting
from bitldp.federated import flower
from bitldp.federated.client.mod import DEBUGGING, PrintedOnce

__all__ = ["CLIENT_SENTENCE", "InProcessGrid", "InProcessRun", "run_in_process"]

CLIENT_SENTENCE = "bitldp: the client app raised an exception"

Recorder = Callable[[int, bytes], None]

log = logging.getLogger("bitldp.federated")

_WAITS = 10  # questions for the clients without a message in between: nobody joins a run in one process


class InProcessGrid(Grid):
    """Grid whose clients live in this process.

    Parameters
    ----------
    client_app : ClientApp
        The clients' app, as it runs elsewhere.
    clients : int
        How many. They are the nodes 2, 3, ...; `node_config` holds "partition-id" (from 0) and
        "num-partitions", as in Flower's simulation engine.
    run_config : mapping, optional
        What the apps find as `Context.run_config`.
    node_config : mapping, optional
        What every client finds as `Context.node_config`, beside its place.
    threads : int
        How many clients work at a time. Replies come in the order of the messages, and a client never works
        on two messages at once, so the model does not depend on it.
    recorder : callable of (node, bytes), optional
        Is given every reply as the bytes that would leave the client on the network.
    raise_errors : bool
        Whether an exception of the client app is raised here, for debugging. Otherwise the reply is an Error
        with a fixed sentence: the exception's text may hold private values.
    debug : bool
        Whether tracebacks of clients that fail are printed to standard error, each once, those of a step
        before its release included, which its mod keeps to itself otherwise. They may hold private values.

    Notes
    -----
    Every message is copied on its way, so that no client sees what another writes into it. Contexts are kept:
    `contexts[node].state` is what that client remembers. Timeouts are not looked at: a client answers before
    the round goes on.
    """

    def __init__(
        self,
        client_app: ClientApp,
        clients: int,
        *,
        run_config: Mapping[str, Any] | None = None,
        node_config: Mapping[str, Any] | None = None,
        threads: int = 1,
        recorder: Recorder | None = None,
        raise_errors: bool = False,
        debug: bool = False,
    ) -> None:
        if not callable(client_app):
            raise TypeError(f"client_app: must be a ClientApp, not {type(client_app).__name__}")
        clients = checks.integer("clients", clients, 1)
        self._app = client_app
        self._threads = checks.integer("threads", threads, 1, 1 << 10)
        self._recorder = recorder
        self._raise_errors = raise_errors
        self._shown = PrintedOnce() if checks.flag("debug", debug) else None
        self._in_vain = 0
        self._run = flower.empty_run(1)
        self._sent = 0
        self._waiting: dict[str, Message] = {}
        self.result: Result | None = None
        self.contexts = {
            flower.SERVER + 1 + index: Context(
                run_id=1,
                node_id=flower.SERVER + 1 + index,
                node_config={**(node_config or {}), "partition-id": index, "num-partitions": clients},
                state=RecordDict(),
                run_config=dict(run_config or {}),
            )
            for index in range(clients)
        }

    def set_run(self, run: Run) -> None:
        """Set the description of the run."""
        self._run = run

    @property
    def run(self) -> Run:
        """The description of the run."""
        return self._run

    def keep_result(self, result: Result) -> None:
        """Keep the result of a strategy, which a ServerApp's function does not return."""
        self.result = result

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Return a new message to a client."""
        return Message(content, dst_node_id, message_type, group_id=group_id, ttl=ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Return the numbers of the clients' nodes, ascending; refuse to be waited for in vain."""
        self._in_vain += 1
        if self._in_vain > _WAITS:
            raise RuntimeError(
                f"clients: the strategy waits for more than the {len(self.contexts)} of this run; give more, "
                "or give the strategy min_available_nodes= and min_train_nodes="
            )
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Take messages for the clients, who answer when the replies are pulled."""
        names, self._in_vain = [], 0
        for message in messages:
            node = message.metadata.dst_node_id
            if node not in self.contexts:
                raise ValueError(f"messages: no client has node id {node}")
            self._sent += 1
            name = f"in-process-{self._sent}"
            flower.number(message, name)
            self._waiting[name] = message
            names.append(name)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies to messages in their order; unknown and answered ones have none."""
        messages = [self._waiting.pop(name) for name in list(message_ids) if name in self._waiting]
        queues: dict[int, list[int]] = {}
        for index, message in enumerate(messages):
            queues.setdefault(message.metadata.dst_node_id, []).append(index)
        replies: list[Message | None] = [None] * len(messages)

        def work(places: list[int]) -> None:
            for index in places:
                replies[index] = self._answer(messages[index])

        if self._threads == 1 or len(queues) < 2:
            for places in queues.values():
                work(places)
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                done = [pool.submit(copy_context().run, work, places) for places in queues.values()]
                for each in done:
                    each.result()
        answered = [reply for reply in replies if reply is not None]
        if self._recorder is not None:
            for reply in answered:
                self._recorder(reply.metadata.src_node_id, flower.to_bytes(reply))
        return answered

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and return their replies."""
        return self.pull_messages(self.push_messages(messages))

    def _answer(self, message: Message) -> Message:
        node = message.metadata.dst_node_id
        own = copy.copy(message)  # the same metadata; contents of its own
        own.__dict__ = dict(message.__dict__)
        if message.has_content():
            own.content = _copied(message.content)
        before = DEBUGGING.set(self._shown)
        try:
            reply = self._app(own, self.contexts[node])
            if not isinstance(reply, Message):
                raise TypeError("the client app returned no Message")
        except Exception as error:
            if self._raise_errors:
                raise
            log.warning("client %d: %s (%s)", node, CLIENT_SENTENCE, type(error).__name__)
            if self._shown is not None:
                self._shown.show(error)
            return flower.refusal(message, flower.FAILED, CLIENT_SENTENCE)
        finally:
            DEBUGGING.reset(before)
        flower.number(reply, f"reply-to-{message.metadata.message_id}")
        return reply


def _copied(content: RecordDict) -> RecordDict:
    """Return a copy whose records can be changed; the bytes of arrays, which cannot, are shared."""
    return RecordDict(
        {
            name: ArrayRecord(dict(record)) if isinstance(record, ArrayRecord) else copy.deepcopy(record)
            for name, record in content.items()
        }
    )


@dataclass(frozen=True)
class InProcessRun:
    """Results of a run in one process.

    Attributes
    ----------
    result : flwr.serverapp.strategy.Result, or None
        Final arrays and metrics of each round, of the last `DecodingStrategy` that ran; other strategies
        return theirs to the ServerApp's function alone, which may put it in `context.state`.
    context : flwr.app.Context
        The server's.
    grid : InProcessGrid
        With the clients' contexts.
    """

    result: Result | None
    context: Context
    grid: InProcessGrid


def run_in_process(
    server_app: ServerApp,
    client_app: ClientApp,
    clients: int,
    *,
    run_config: Mapping[str, Any] | None = None,
    node_config: Mapping[str, Any] | None = None,
    seed: int | None = None,
    threads: int = 1,
    recorder: Recorder | None = None,
    raise_errors: bool = False,
    debug: bool = False,
    durable: bool = False,
) -> InProcessRun:
    """Run a Flower app in this process.

    Parameters
    ----------
    server_app, client_app : ServerApp, ClientApp
        The two halves, as they run under ``flwr run``.
    clients : int
        How many. They are the nodes 2, 3, ...; `node_config` holds "partition-id" (from 0) and
        "num-partitions", as in Flower's simulation engine.
    run_config : mapping, optional
        What the apps find as `Context.run_config`.
    node_config : mapping, optional
        What every client finds as `Context.node_config`, beside its place.
    threads : int
        How many clients work at a time. Replies come in the order of the messages, and a client never works
        on two messages at once, so the model does not depend on it.
    recorder : callable of (node, bytes), optional
        Is given every reply as the bytes that would leave the client on the network.
    raise_errors : bool
        Whether an exception of the client app is raised here, for debugging. Otherwise the reply is an Error
        with a fixed sentence: the exception's text may hold private values.
    debug : bool
        Whether tracebacks of clients that fail are printed to standard error, each once, those of a step
        before its release included, which its mod keeps to itself otherwise. They may hold private values.
    seed : int, optional
        Seeds Python's global `random` during the run, from which Flower's strategies choose clients. Privacy
        does not depend on it; mods have a seed of their own.
    durable : bool
        Whether ledgers and other files wait until they are on disk (fsync). Clients of a simulation do not
        live on after a power cut, and most of a run's time would go there; say so where their budgets do.

    Returns
    -------
    InProcessRun

    Raises
    ------
    Exception
        What the ServerApp raises; `RoundFailedError`, for one, if no client sent a report.

    Notes
    -----
    Nothing is sent to anyone: Flower's telemetry is called by its command line, not here. (To switch it off
    there, set ``FLWR_TELEMETRY_ENABLED=0`` before Flower is imported; this package changes no environment.)
    Two runs at once need two processes.
    """
    if isinstance(server_app, ClientApp) or isinstance(client_app, ServerApp):
        raise TypeError("server_app, client_app: are in the wrong order; give the ServerApp first")
    grid = InProcessGrid(
        client_app,
        clients,
        run_config=run_config,
        node_config=node_config,
        threads=threads,
        recorder=recorder,
        raise_errors=raise_errors,
        debug=debug,
    )
    context = Context(
        run_id=1,
        node_id=flower.SERVER,
        node_config={},
        state=RecordDict(),
        run_config=dict(run_config or {}),
    )
    state = random.getstate()
    if seed is not None:
        random.seed(checks.integer("seed", seed, 0))
    try:
        with flower.identity(1), nullcontext() if checks.flag("durable", durable) else fleeting():
            server_app(grid, context)
    finally:
        random.setstate(state)
    return InProcessRun(grid.result, context, grid)
