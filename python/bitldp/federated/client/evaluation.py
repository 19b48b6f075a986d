"""Metrics of an evaluation, each released by a mechanism of its own, and read again."""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from flwr.app import Message
from numpy.typing import NDArray

from bitldp.client.mechanisms import fingerprint_digest
from bitldp.federated.client.account import Charge
from bitldp.federated.wire.codec import letters_of
from bitldp.mechanism.base import Mechanism

__all__ = ["COUNT", "Evaluation"]

COUNT = "num-examples"
"""Metric that Flower weighs replies by; what is said of it is `examples`."""


class Evaluation:
    """Metrics of an evaluation that leave, and their mechanisms.

    Parameters
    ----------
    metrics : mapping of str to Mechanism
        Each releases one number, clipped to its interval, and has an unbiased decode.

    Raises
    ------
    ValueError, TypeError
        For a mechanism of several numbers, of none, or without an unbiased decode.
    """

    def __init__(self, metrics: Mapping[str, Mechanism]) -> None:
        if not isinstance(metrics, Mapping):
            raise TypeError(
                f"metrics: must be a mapping of names to mechanisms, not {type(metrics).__name__}"
            )
        result = hashlib.sha256(b"evaluation")
        for name, mechanism in metrics.items():
            if not isinstance(name, str) or name == COUNT:
                raise ValueError(f"metrics: its keys must be names of metrics; {COUNT!r} is set by examples=")
            if not isinstance(mechanism, Mechanism):
                raise TypeError(f"metrics: {name!r} must be a mechanism, not {type(mechanism).__name__}")
            if mechanism.columns != 1 or mechanism._span is None:
                raise ValueError(
                    f"metrics: {name!r} must be a mechanism of one number in an interval, which "
                    f"{type(mechanism).__name__} is not"
                )
            letters_of(mechanism, allow_biased=False)
            result.update(f"\n{name}\n".encode())
            result.update(fingerprint_digest(mechanism))
        self.metrics = dict(metrics)
        self.digest = result.digest()

    @property
    def charges(self) -> list[Charge]:
        """Charges of one evaluation."""
        return [Charge(each, 1, f"evaluation metric {name}") for name, each in self.metrics.items()]

    def clipped(self, metrics: Mapping[str, Any], *, refuse: bool) -> dict[str, float]:
        """Return the named metrics of a reply, clipped; before anything is paid for.

        Raises
        ------
        KeyError, TypeError, ValueError
            For a metric that is not there, is no number or, with `refuse`, not finite.
        """
        values = {}
        for name, mechanism in self.metrics.items():
            value, ends = metrics[name], mechanism._span
            assert ends is not None
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"metrics: {name!r} must be a number")
            if refuse and not math.isfinite(value):
                raise ValueError(f"metrics: {name!r} must be finite")
            low, high = ends
            # a server can send a model whose loss is no number on some records alone: it says nothing
            values[name] = self.middles[name] if math.isnan(value) else min(max(value, low), high)
        return values

    @cached_property
    def middles(self) -> dict[str, float]:
        """The middle of each metric's interval, for one that is not known."""
        ends = {name: mechanism._span for name, mechanism in self.metrics.items()}
        return {name: span[0] + (span[1] - span[0]) / 2.0 for name, span in ends.items() if span is not None}

    @cached_property
    def letters(self) -> dict[str, NDArray[np.float64]]:
        """The numbers that each metric's mechanism can release, ascending."""
        return {name: _all_letters(name, each) for name, each in self.metrics.items()}

    def read(self, reply: Message) -> dict[str, float] | None:
        """Return the released metrics of a client's reply; None for anything but what `release` makes.

        The number of examples may stand beside them, and is not looked at.
        """
        stated: dict[str, Any] = {}
        for record in reply.content.metric_records.values():
            if not stated.keys().isdisjoint(record):
                return None
            stated.update(record)
        stated.pop(COUNT, None)
        if stated.keys() != self.metrics.keys():
            return None
        values = {}
        for name, letters in self.letters.items():
            if type(stated[name]) is not float:
                return None
            nearest = float(letters[np.abs(letters - stated[name]).argmin()])  # NaN is near none
            if not abs(nearest - stated[name]) <= _SAME * float(np.abs(letters).max()):
                return None
            values[name] = nearest
        return values

    def release(self, values: Mapping[str, float], rng: np.random.SeedSequence | None) -> dict[str, float]:
        """Return decoded reports of clipped metrics; their means are unbiased."""
        seeds = [None] * len(self.metrics) if rng is None else rng.spawn(len(self.metrics))
        released = {}
        for (name, mechanism), seed in zip(self.metrics.items(), seeds, strict=True):
            reports = mechanism.randomize(np.array([[values[name]]]), rng=seed)
            value = letters_of(mechanism, allow_biased=False)(reports)
            released[name] = float(np.asarray(value, dtype=np.float64).reshape(()))
        return released


_MOST_BITS = 20
_SAME = 1e-9  # of the largest letter: two machines may compute another last digit


def _all_letters(name: str, mechanism: Mechanism) -> NDArray[np.float64]:
    """Return the numbers that a mechanism of one number can release, ascending."""
    bits = [part[1] for part in mechanism._report_parts]
    if len(bits) > 1 or bits[0] > _MOST_BITS:
        raise ValueError(
            f"metrics: {name!r} has reports of more than {_MOST_BITS} bits, too many to know them all"
        )
    decode = letters_of(mechanism, allow_biased=False)

    def beyond(code: int) -> bool:
        try:
            decode(np.array([[code]], dtype=np.uint32))
        except (IndexError, TypeError, ValueError):
            return True
        return False

    end = bisect_left(range(1 << bits[0]), True, key=beyond)
    return np.unique(np.asarray(decode(np.arange(end, dtype=np.uint32)[:, None]), dtype=np.float64))
