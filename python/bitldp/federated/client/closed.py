"""Flower mod that fails closed: it replies as intended, or by one of three fixed sentences."""

from __future__ import annotations

import logging
from collections.abc import Callable

from flwr.app import Context, Message
from flwr.clientapp.typing import ClientAppCallable

from bitldp.federated.flower import FAILED, REFUSED, refusal
from bitldp.ledger.budget import BudgetExceededError

__all__ = ["BUDGET_SENTENCE", "FAILURE_SENTENCE", "OTHERS_SENTENCE", "Answer", "ClosedMod"]

FAILURE_SENTENCE = "bitldp: this client sent no report, a step before its release failed"
BUDGET_SENTENCE = "bitldp: this client sent no report, its privacy budget is exhausted"
OTHERS_SENTENCE = "bitldp: this client answers no messages of this kind"

Answer = Callable[[Message, Context, ClientAppCallable], Message]

log = logging.getLogger("bitldp.federated")


class ClosedMod:
    """Mod whose subclasses choose the answer to each kind of message.

    Parameters
    ----------
    on_failure : callable of an exception, optional
        Called on the client with what went wrong, which may hold private values, before the Error is sent.
    """

    def __init__(self, on_failure: Callable[[Exception], None] | None = None) -> None:
        self._on_failure = on_failure

    def _answer(self, kind: str) -> Answer | None:
        """Return the answer to messages of a kind ("train", "evaluate", ...), or None to refuse them."""
        raise NotImplementedError

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
        log.warning("%s (%s)", sentence, type(error).__name__)  # its text may hold private values
        if self._on_failure is not None:
            try:
                self._on_failure(error)
            except Exception as another:
                log.warning("on_failure failed (%s)", type(another).__name__)
        return refusal(message, code, sentence)
