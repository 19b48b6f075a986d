"""SuperNode and app on both sides of a gate, in this process, over Flower's own HTTP interface."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import uvicorn
from bitldp.federated import flower, to_record
from bitldp.federated.gate import AppRuntime, NodeRuntime
from bitldp.federated.gate.runtime import _empty, _pulled
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, RuntimeVersionHttpInterceptor
from flwr.supercore.run import Run
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.main import create_app
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output
from flwr.supernode.start_client_internal import _insert_message

RUN, NODE = 1, 7
CODE = b"what the server's side delivers"


def run_of(content: bytes = CODE) -> Run:
    run = Run.create_empty(RUN)
    run.fab_hash = hashlib.sha256(content).hexdigest()
    return run


class Node:
    """A SuperNode with `--isolation process`, but for its own link to a server."""

    def __init__(self, address: str, secret: bytes | None = None) -> None:
        self.address, self.inner = address, _empty()
        self.inner.set_node_id(NODE)
        self.calls: list[tuple[str, bytearray]] = []
        self.app = create_app(self, superexec_auth_secret=secret)

    def state(self):
        return self.inner

    async def __call__(self, scope, receive, send):
        """Serve; all that is sent to the SuperNode is recorded."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body = bytearray()
        self.calls.append((scope["path"], body))

        async def recorded():
            event = await receive()
            body.extend(event.get("body", b""))
            return event

        return await self.app(scope, recorded, send)

    @property
    def bytes(self) -> bytes:
        """All that was sent to the SuperNode."""
        return b"\n".join(part for path, body in self.calls for part in (path.encode(), body))

    def put(self, arrays, kind="train", turn=1, records=None, **config) -> None:
        """Put a message of the server into the node, with more records if there are any."""
        run = run_of()
        self.inner.store_run(run)
        self.inner.store_fab(Fab(hash_str=run.fab_hash, content=CODE, verifications={}))
        node_config = {"partition-id": 0, "num-partitions": 1}
        if self.inner.get_run_series_context(run.series_id) is None:
            state = RecordDict()
            context = Context(run_id=RUN, node_id=NODE, node_config=node_config, state=state, run_config={})
            self.inner.set_run_series_context(run.series_id, context)
        content = {"arrays": to_record(arrays), "config": ConfigRecord({"server-round": turn, **config})}
        content |= records or {}
        with flower.identity(RUN):
            message = Message(RecordDict(content), NODE, kind, ttl=1000.0)
        _insert_message(message, self.inner, self.inner.object_store)
        self.inner.create_task(task_type=TaskType.CLIENT_APP, run_id=RUN, fab_hash=run.fab_hash)

    def reply(self) -> Message:
        """Return the reply that would go to the server."""
        return _pulled(self.inner, 0.0)

    @property
    def context(self) -> Context:
        return self.inner.get_run_series_context(run_of().series_id)


@contextmanager
def serving(app) -> Iterator[str]:
    """Serve an ASGI app at a port of this machine; yield its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(5.0)
        listening.close()


def client_of(address: str, *interceptors) -> RuntimeHttpClient:
    version = RuntimeVersionHttpInterceptor(component_name="flwr-clientapp")
    return RuntimeHttpClient.from_server_address(address, True, None, [version, *interceptors])


def play(address: str, work: Callable, until: threading.Event) -> None:
    """Do what flower-superexec and flwr-clientapp do; `work(message, context, client)` returns the reply."""
    with ExitStack() as stack:
        asking = stack.enter_context(client_of(address))
        while not until.is_set():
            try:
                found = asking.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
                if not found.token:
                    until.wait(0.03)
                    continue
                client = stack.enter_context(client_of(address, RuntimeTokenHttpInterceptor(found.token)))
                message, context, _, _ = pull_task_input(client)
                reply = work(message, context, client)
                if reply is not None:
                    push_message(client, reply, context)
                    push_task_output(client, context, "completed", "")
            except Exception as error:  # of a program that crashes
                LAST.append(error)


LAST: list[Exception] = []
"""What went wrong in the app, for whoever looks for the cause of a failed test."""


@contextmanager
def gated(work: Callable, secret: bytes | None = None) -> Iterator[tuple[Node, NodeRuntime, AppRuntime]]:
    """Yield a SuperNode, and both runtimes of a gate between it and an app that does `work`."""
    node, app, until = Node("", secret), AppRuntime(), threading.Event()
    with ExitStack() as stack:
        address = stack.enter_context(serving(node))
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listening.getsockname()[1]
        stack.enter_context(app.served(listening))
        thread = threading.Thread(target=play, args=(f"127.0.0.1:{port}", work, until), daemon=True)
        thread.start()
        stack.callback(thread.join, 5.0)
        stack.callback(until.set)
        yield node, stack.enter_context(NodeRuntime(address, secret=secret)), app


def holds(data: bytes, values) -> bool:
    """Return whether private numbers can be recognised in bytes: in any precision, order or as text.

    An integer's digits inside a longer word do not count. Every reply has hashes and random names of hex
    digits, in which five given digits stand in a row now and then.
    """
    for value in np.asarray(values).ravel():
        if any(np.array(value, kind).tobytes() in data for kind in ("<f4", ">f4", "<f8", ">f8")):
            return True
        text = repr(value.item())[:8].encode()
        if re.search(
            rb"(?<![0-9A-Za-z])%s(?![0-9A-Za-z])" % text if text.isdigit() else re.escape(text), data
        ):
            return True
    return False
