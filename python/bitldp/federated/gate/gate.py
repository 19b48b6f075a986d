"""Gate that answers a SuperNode in the place of its app."""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import replace

import httpx
from flwr.app import Context, Error, Message, RecordDict

from bitldp.base import checks
from bitldp.federated.client.mod import PrivateUpdateMod
from bitldp.federated.client.summed import SummedMod
from bitldp.federated.gate.runtime import AppRuntime, NodeQuestion, NodeRuntime
from bitldp.federated.wire.sums import SUM

__all__ = ["Gate"]

log = logging.getLogger("bitldp.federated")

_REST = 0.1  # part of `every` that is left for the release itself
_POLL = 0.5


class Gate:
    """Process of a node's owner that answers the SuperNode, and asks the app for an update alone.

    No byte of the app's goes to the SuperNode. The arrays of its reply are clipped, randomized and charged by
    a `PrivateUpdateMod` of the owner's, or shared and masked for a secure sum by a `SummedMod`; the reply is
    built anew, and leaves at a time that is a multiple of `every` seconds after its question, whatever the
    app did. An app that fails, is silent or replies with what does not fit is answered for by the release of
    zeros, or by the share of a client without a record, charged as any other.

    Parameters
    ----------
    mod : PrivateUpdateMod or SummedMod
        What releases and charges. Of both kinds: with ``failing="zero"``, ``nonfinite="zero"`` and a ledger
        in a file; a `PrivateUpdateMod` with ``others="refuse"``, a `SummedMod` with ``secrets="file"``, so
        that a round goes on where the gate is started anew within it.
    node : NodeRuntime
        The SuperNode's side, which was started with ``--isolation process``.
    app : AppRuntime
        The app's side.
    every : float
        Seconds, above zero: a reply leaves one, two, ... times so long after its question.
    deadline : float, optional
        Seconds after which the app is no longer waited for, a multiple of `every`. Default: `every`, so that
        the time of a reply says nothing. Otherwise it can say which multiple: `time_bits` at most.
    sums : SummedMod, optional
        What answers the messages of a secure sum, where `mod` answers the others.
    short : float, optional
        Seconds in place of `every`, up to `every`, for a message that the app is not asked about: four of the
        five stages of a secure sum, and refusals. Default: `every`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, and for a mod by which more than reports could leave.

    Notes
    -----
    In the stage of a secure sum that asks the app, the app is sent the message without the protocol's part
    of it. It knows neither the node's key nor a mask, and its number leaves under both the noise and the
    masks of the gate.
    """

    def __init__(
        self,
        mod: PrivateUpdateMod | SummedMod,
        node: NodeRuntime,
        app: AppRuntime,
        *,
        every: float,
        deadline: float | None = None,
        sums: SummedMod | None = None,
        short: float | None = None,
    ) -> None:
        _check("mod", mod, PrivateUpdateMod, SummedMod)
        if sums is not None:
            _check("sums", sums, SummedMod)
        self._mod, self._node, self._app = mod, node, app
        self._sums = sums or mod
        self.every = checks.positive("every", every)
        self.short = self.every if short is None else checks.positive("short", short)
        if self.short > self.every:
            raise ValueError("short: must be every at most")
        self.deadline = self.every if deadline is None else checks.positive("deadline", deadline)
        self._steps = round(self.deadline / self.every)
        if self._steps < 1 or not math.isclose(self._steps * self.every, self.deadline):
            raise ValueError("deadline: must be a multiple of every")

    @property
    def time_bits(self) -> float:
        """Bits that the time of a reply can carry, at most: 0 where all leave equally late."""
        return math.log2(self._steps)

    def run(self, stop: threading.Event) -> None:
        """Answer the SuperNode until `stop` is set; a SuperNode that is gone is waited for."""
        lost = False
        while not stop.is_set():
            try:
                found = self.step()
                lost = False
            except Exception as error:  # of whatever the SuperNode sends; the app's are in the mod's hands
                if not lost:
                    kind = "does not answer" if isinstance(error, httpx.HTTPError) else "cannot be understood"
                    log.warning("bitldp: the SuperNode %s (%s); waiting", kind, type(error).__name__)
                lost, found = True, False
            if not found:
                stop.wait(_POLL)

    def step(self) -> bool:
        """Answer one message; return False if there is none.

        Raises
        ------
        httpx.HTTPError
            If the SuperNode is not there, or refuses.
        """
        with self._node.question() as question:
            if question is None:
                return False
            start = time.monotonic()
            content, asked = self._content(question, start)
            _sleep(start + self._left(time.monotonic() - start, asked=asked))
            question.answer(content)
            return True

    def _content(self, question: NodeQuestion, start: float) -> tuple[RecordDict | Error, bool]:
        """Return the content of the reply, and whether the app was asked.

        It is a report, a message of a secure sum, or an Error of a fixed sentence.
        """
        until = start + self.deadline - _REST * self.every
        asked = False

        def ask(message: Message, context: Context) -> Message:
            nonlocal asked
            asked = True
            return self._app.ask(replace(question, message=message), until)

        message = question.message
        mod = self._sums if message.has_content() and SUM in message.content else self._mod
        reply = mod(message, question.context, ask)
        return (reply.error if reply.has_error() else reply.content), asked

    def _left(self, past: float, *, asked: bool) -> float:
        """Return how long after its question a reply leaves: at the first time that is not past."""
        step, steps = (self.every, self._steps) if asked else (self.short, 1)
        turn = max(math.ceil(past / step), 1)
        if turn > steps:
            name = (
                "a release took longer than a tenth of every" if asked else "a reply took longer than short"
            )
            log.warning("bitldp: %s=%g; it is late", name, step)
        return step * turn


def _check(name: str, mod: object, *kinds: type[PrivateUpdateMod | SummedMod]) -> None:
    """Refuse a mod by which more than reports could leave."""
    if not isinstance(mod, kinds):
        wanted = " or ".join(f"a {kind.__name__}" for kind in kinds)
        raise TypeError(f"{name}: must be {wanted}, not {type(mod).__name__}")
    others = ("secrets", "file") if isinstance(mod, SummedMod) else ("others", "refuse")
    for parameter, value in (("failing", "zero"), ("nonfinite", "zero"), others):
        if getattr(mod, parameter) != value:
            raise ValueError(f"{name}: must have {parameter}={value!r}")
    if mod.account.path == "run":
        raise ValueError(f"{name}: must have its ledger in a file, which the app cannot reach")


def _sleep(until: float) -> None:
    left = until - time.monotonic()
    if left > 0:
        time.sleep(left)
