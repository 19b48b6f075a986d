"""Gate that answers a SuperNode in the place of its app."""

from __future__ import annotations

import logging
import math
import threading
import time

import httpx
from flwr.app import Context, Error, Message, RecordDict

from bitldp.base import checks
from bitldp.federated.client.mod import PrivateUpdateMod
from bitldp.federated.gate.runtime import AppRuntime, NodeQuestion, NodeRuntime

__all__ = ["Gate"]

log = logging.getLogger("bitldp.federated")

_REST = 0.1  # part of `every` that is left for the release itself
_POLL = 0.5


class Gate:
    """Process of a node's owner that answers the SuperNode, and asks the app for an update alone.

    No byte of the app's goes to the SuperNode. The arrays of its reply are clipped, randomized and charged by
    a `PrivateUpdateMod` of the owner's; the reply is built anew around the report, and leaves at a time that
    is a multiple of `every` seconds after its question, whatever the app did. An app that fails, is silent
    or replies with what does not fit is answered for by the release of zeros, charged as any other.

    Parameters
    ----------
    mod : PrivateUpdateMod
        What releases and charges; with ``failing="zero"``, ``nonfinite="zero"`` and ``others="refuse"``, and
        a ledger in a file.
    node : NodeRuntime
        The SuperNode's side, which was started with ``--isolation process``.
    app : AppRuntime
        The app's side.
    every : float
        Seconds, above zero: a reply leaves one, two, ... times so long after its question.
    deadline : float, optional
        Seconds after which the app is no longer waited for, a multiple of `every`. Default: `every`, so that
        the time of a reply says nothing. Otherwise it can say which multiple: `time_bits` at most.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, and for a mod by which more than reports could leave.
    """

    def __init__(
        self,
        mod: PrivateUpdateMod,
        node: NodeRuntime,
        app: AppRuntime,
        *,
        every: float,
        deadline: float | None = None,
    ) -> None:
        if not isinstance(mod, PrivateUpdateMod):
            raise TypeError(f"mod: must be a PrivateUpdateMod, not {type(mod).__name__}")
        for name, wanted in (("failing", "zero"), ("nonfinite", "zero"), ("others", "refuse")):
            if getattr(mod, name) != wanted:
                raise ValueError(f"mod: must have {name}={wanted!r}")
        if mod.account.path == "run":
            raise ValueError("mod: must have its ledger in a file, which the app cannot reach")
        self._mod, self._node, self._app = mod, node, app
        self.every = checks.positive("every", every)
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
            content = self._content(question, start)
            _sleep(start + self.every * self._turn(time.monotonic() - start))
            question.answer(content)
            return True

    def _content(self, question: NodeQuestion, start: float) -> RecordDict | Error:
        """Return the content of the reply: a report, or an Error of a fixed sentence."""
        until = start + self.deadline - _REST * self.every

        def ask(message: Message, context: Context) -> Message:
            return self._app.ask(question, until)

        reply = self._mod(question.message, question.context, ask)
        return reply.error if reply.has_error() else reply.content

    def _turn(self, past: float) -> int:
        """Return the number of the first time of a reply that is not past."""
        turn = max(math.ceil(past / self.every), 1)
        if turn > self._steps:
            log.warning(
                "bitldp: a release took longer than a tenth of every=%g; its reply is late", self.every
            )
        return turn


def _sleep(until: float) -> None:
    left = until - time.monotonic()
    if left > 0:
        time.sleep(left)
