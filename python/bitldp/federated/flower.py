"""Use of Flower beyond its documented interface, in one place.

Flower has no public way to send a message within a process: a `Message` takes its sender from a class that
the worker process of an app fills, and its number from the SuperLink.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

LOWEST, BELOW = (1, 41), (1, 43)


class UnsupportedFlowerError(ImportError):
    """Error for an installed Flower for which this package was not written."""


def check_version(installed: str) -> None:
    """Raise unless the internals of the installed flwr are known.

    Raises
    ------
    UnsupportedFlowerError
        With the versions that are.
    """
    numbers = tuple(int(part) if part.isdigit() else -1 for part in installed.split(".")[:2])
    if not LOWEST <= numbers < BELOW:
        raise UnsupportedFlowerError(
            f"bitldp.federated needs flwr >=1.41,<1.43, found {installed}: "
            'pip install "bitldp[fl]" brings one that fits'
        )


check_version(version("flwr"))

from flwr.app import Error, Message, RecordDict  # noqa: E402
from flwr.common.constant import ErrorCode  # noqa: E402
from flwr.common.serde import message_to_proto  # noqa: E402
from flwr.supercore.run import Run  # noqa: E402
from flwr.supercore.task_identity import TaskIdentity  # noqa: E402

SERVER = 1
"""Number of the server's node in process, as of the SuperLink on the network."""

console = logging.getLogger("flwr")
"""Where Flower's strategies say how a run goes."""

FAILED = ErrorCode.CLIENT_APP_RAISED_EXCEPTION
REFUSED = ErrorCode.MOD_FAILED_PRECONDITION


def refusal(message: Message, code: int, sentence: str) -> Message:
    """Return an Error reply with a code and a fixed sentence, and nothing of the client's."""
    return Message(Error(code, sentence), reply_to=message)


def without(message: Message, name: str) -> Message:
    """Return a message without one of its records; the message itself stays as it is."""
    result = copy.copy(message)
    result.content = RecordDict({key: record for key, record in message.content.items() if key != name})
    return result


def empty_run(number: int) -> Run:
    """Return the description of a run that no SuperLink knows."""
    return Run.create_empty(number)


def to_bytes(message: Message) -> bytes:
    """Return a message as the bytes of its protocol buffer, all that would leave the client."""
    return bytes(message_to_proto(message).SerializeToString())


def number(message: Message, name: str) -> None:
    """Give a message the identity that a SuperLink would give it."""
    message.metadata.__dict__["_message_id"] = name


@contextmanager
def identity(run: int) -> Iterator[None]:
    """Take the identity of the server's task while the block runs, to make messages."""
    names = ("_task_id", "_run_id", "_node_id")
    before: list[Any] = [getattr(TaskIdentity, name) for name in names]
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, run, SERVER
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(TaskIdentity, name, value)
