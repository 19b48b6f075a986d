"""Both sides of Flower's Runtime API: that of a SuperNode, and one for the app that leads nowhere.

Like `bitldp.federated.flower`, a use of Flower beyond its documented interface; the versions are checked
there.
"""

from __future__ import annotations

import copy
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import httpx
import uvicorn
from flwr.app import Context, Error, Message, RecordDict
from flwr.common.constant import SubStatus
from flwr.common.serde import context_from_proto, context_to_proto, message_from_proto, message_to_proto
from flwr.proto.message_pb2 import ObjectTree
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.fab import Fab
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectUnavailableError,
    pull_and_inflate_object_from_tree,
)
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.run import Run
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.main import create_app
from flwr.supernode.nodestate import NodeState, NodeStateFactory
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output
from flwr.supernode.start_client_internal import _insert_message

__all__ = ["AppRuntime", "AppSilentError", "NodeQuestion", "NodeRuntime"]

log = logging.getLogger("bitldp.federated")

_COMPONENT = "flwr-clientapp"
_ACQUIRE = "/flwr.proto.Runtime/AcquireTask"
_LOOK = 0.05  # seconds between two looks for the app's reply
_MOST_SERIES = 16


class AppSilentError(RuntimeError):
    """Error for an app that has not replied in time."""


@dataclass
class NodeQuestion:
    """Message for the app, with all that the app is started with.

    Attributes
    ----------
    message, context, run, fab
        Of Flower.
    """

    message: Message
    context: Context
    run: Run
    fab: Fab
    _client: RuntimeHttpClient = field(repr=False)

    def answer(self, content: RecordDict | Error) -> None:
        """Send a reply that holds this content, and nothing else that was not in the question."""
        reply = Message(content, reply_to=self.message)
        push_message(self._client, reply, self.context)
        push_task_output(self._client, None, SubStatus.COMPLETED, "")


class NodeRuntime:
    """Runtime API of a SuperNode, as the process of an app sees it.

    Parameters
    ----------
    address : str
        Host and port.
    certificate : bytes, optional
        PEM certificate of the authority that signed the SuperNode's; without it nothing is encrypted.
    secret : bytes, optional
        What the SuperNode was given as ``--superexec-auth-secret-file``.
    """

    def __init__(
        self, address: str, *, certificate: bytes | None = None, secret: bytes | None = None
    ) -> None:
        self._address, self._certificate = address, certificate
        version = RuntimeVersionHttpInterceptor(component_name="flower-superexec")
        signed = (
            [SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods=[_ACQUIRE])]
            if secret
            else []
        )
        self._client = self._connected([version, *signed])

    def __enter__(self) -> NodeRuntime:
        """Return this runtime; its connection ends with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._client.close()

    def _connected(self, interceptors: list[ProtobufClientInterceptor]) -> RuntimeHttpClient:
        return RuntimeHttpClient.from_server_address(
            self._address,
            insecure=self._certificate is None,
            root_certificates=self._certificate,
            interceptors=interceptors,
        )

    @contextmanager
    def question(self) -> Iterator[NodeQuestion | None]:
        """Yield the next message for the app, or None; a heartbeat holds it while the block runs.

        Raises
        ------
        httpx.HTTPError
            If the SuperNode is not there, or refuses.
        """
        found = self._client.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
        if not (found.HasField("task") and found.token):
            yield None
            return
        client = self._connected(
            [
                RuntimeVersionHttpInterceptor(component_name=_COMPONENT),
                RuntimeTokenHttpInterceptor(found.token),
            ]
        )
        beating = HeartbeatSender(lambda: _beat(client))
        beating.start()
        try:
            yield NodeQuestion(*pull_task_input(client), client)
        finally:
            beating.stop()
            client.close()


def _beat(client: RuntimeHttpClient) -> bool:
    with suppress(httpx.HTTPError):  # a SuperNode that is gone is noticed when the reply is sent
        client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
    return True


class AppRuntime:
    """Runtime API for the app: that of a SuperNode whose state is thrown away after each question.

    Whatever the app writes there stays there: `ask` takes the arrays and metrics of its reply out, and the
    next question begins with a new state. What the app keeps in `Context.state` comes back to it in the next
    question of the same series of runs, from here and not from the SuperNode.
    """

    def __init__(self) -> None:
        self._node = _empty()
        self._kept: dict[int, RecordDict] = {}
        self.api = create_app(cast(NodeStateFactory, self))  # which is asked for its state alone

    def state(self) -> NodeState:
        """Return the state of the present question; Flower's handlers call this."""
        return self._node

    @contextmanager
    def served(self, listening: socket.socket) -> Iterator[None]:
        """Serve the app at a socket that listens, while the block runs."""
        server = uvicorn.Server(uvicorn.Config(self.api, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, args=([listening],), name="gate-app", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(5.0)

    def ask(self, question: NodeQuestion, until: float) -> Message:
        """Return what the app replies.

        Parameters
        ----------
        question : NodeQuestion
        until : float
            Of `time.monotonic`, when the reply must be there.

        Raises
        ------
        AppSilentError
            If it is not.
        Exception
            Of many kinds, for a reply that is none.
        """
        run, node = question.run, _empty()
        context = context_from_proto(context_to_proto(question.context))
        context.state = copy.deepcopy(self._kept.get(run.series_id, RecordDict()))
        node.set_node_id(context.node_id)
        node.set_run_series_context(run.series_id, context)
        node.store_run(run)
        node.store_fab(question.fab)
        _insert_message(message_from_proto(message_to_proto(question.message)), node, node.object_store)
        task = node.create_task(task_type=TaskType.CLIENT_APP, run_id=run.run_id, fab_hash=run.fab_hash)
        self._node = node
        try:
            reply = _pulled(node, until)
            while time.monotonic() < until and not _finished(node, task):
                time.sleep(_LOOK)
            self._keep(run.series_id, node)
            return reply
        finally:
            self._node = _empty()

    def _keep(self, series: int, node: NodeState) -> None:
        """Keep what the app wrote into its state for the next question."""
        context = node.get_run_series_context(series)
        self._kept.pop(series, None)
        if context is not None:
            self._kept[series] = context.state
        while len(self._kept) > _MOST_SERIES:
            self._kept.pop(next(iter(self._kept)))


def _empty() -> NodeState:
    return NodeStateFactory(objectstore_factory=ObjectStoreFactory()).state()


def _finished(node: NodeState, task: int | None) -> bool:
    return bool(task is not None and all(each.finished_at for each in node.get_tasks(task_ids=[task])))


def _pulled(node: NodeState, until: float) -> Message:
    """Return the first reply that the app has written into a state, once all of it is there."""
    while not (found := node.get_messages_legacy(is_reply=True)):
        if time.monotonic() >= until:
            raise AppSilentError("the app has not replied in time")
        time.sleep(_LOOK)
    store = node.object_store
    tree: ObjectTree = store.get_object_tree(found[0].metadata.message_id)

    def pull(name: str) -> bytes:
        content = store.get(name)
        if not content:
            raise ObjectUnavailableError(name)
        return content

    left = max(until - time.monotonic(), _LOOK)
    return pull_and_inflate_object_from_tree(
        tree,
        pull,
        lambda _: None,
        return_type=Message,
        max_time=left,
        max_tries_per_object=None,
        initial_backoff=_LOOK,
        backoff_cap=_LOOK,
    )
