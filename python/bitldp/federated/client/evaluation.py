"""Evaluation metrics, each released through a mechanism and charged."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bitldp.federated.client.account import Charge
from bitldp.federated.wire.forms import letters_of
from bitldp.federated.wire.wire import fingerprint_digest
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
        found = hashlib.sha256(b"evaluation")
        for name, mechanism in metrics.items():
            if not isinstance(name, str) or name == COUNT:
                raise ValueError(
                    f"metrics: its keys must be names of metrics; {COUNT!r} is said by examples="
                )
            if not isinstance(mechanism, Mechanism):
                raise TypeError(f"metrics: {name!r} must be a mechanism, not {type(mechanism).__name__}")
            if mechanism.columns != 1 or mechanism.ends is None:
                raise ValueError(
                    f"metrics: {name!r} must be a mechanism of one number in an interval, which "
                    f"{type(mechanism).__name__} is not"
                )
            letters_of(mechanism, allow_biased=False)
            found.update(f"\n{name}\n".encode())
            found.update(fingerprint_digest(mechanism))
        self.metrics = dict(metrics)
        self.digest = found.digest()

    @property
    def charges(self) -> list[Charge]:
        """Charges of one evaluation."""
        return [Charge(each, 1, f"evaluation metric {name}") for name, each in self.metrics.items()]

    def clipped(self, found: Mapping[str, Any], *, refuse: bool) -> dict[str, float]:
        """Return the named metrics of a reply, clipped; before anything is paid for.

        Raises
        ------
        KeyError, TypeError, ValueError
            For a metric that is not there, is no number or, with `refuse`, not finite.
        """
        values = {}
        for name, mechanism in self.metrics.items():
            value, ends = found[name], mechanism.ends
            assert ends is not None
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"metrics: {name!r} must be a number")
            if refuse and not math.isfinite(value):
                raise ValueError(f"metrics: {name!r} must be finite")
            low, high = ends
            # a server can send a model whose loss is no number on some records alone: it says nothing
            values[name] = low + (high - low) / 2.0 if math.isnan(value) else min(max(value, low), high)
        return values

    def release(self, values: Mapping[str, float], rng: np.random.SeedSequence | None) -> dict[str, float]:
        """Return decoded reports of clipped metrics; their means are unbiased."""
        seeds = [None] * len(self.metrics) if rng is None else rng.spawn(len(self.metrics))
        released = {}
        for (name, mechanism), seed in zip(self.metrics.items(), seeds, strict=True):
            reports = mechanism.randomize(np.array([[values[name]]]), rng=seed)
            worth = letters_of(mechanism, allow_biased=False)(reports)
            released[name] = float(np.asarray(worth, dtype=np.float64).reshape(()))
        return released
