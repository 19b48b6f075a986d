"""Forecast of a run's noise, from the mechanism's law alone: before a client is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitldp.base import checks
from bitldp.federated.wire.codec import UpdatePlan

__all__ = ["NoiseForecast", "forecast"]


@dataclass(frozen=True)
class NoiseForecast:
    """Noise of a run's mean updates against the longest that they can be.

    Attributes
    ----------
    coordinates : int
        Numbers of an update.
    clients : int
        Reports a round.
    rounds : int
    variance : float
        Of one client's report, summed over the coordinates, in squares of the longest update: of the clip,
        or, where the clip is one of each number, of the clip times the root of the coordinates.
    """

    coordinates: int
    clients: int
    rounds: int
    variance: float

    @property
    def ratio(self) -> float:
        """Length of the noise of a round's mean update over that of the longest update (root mean square)."""
        return math.sqrt(self.variance / self.clients)

    @property
    def ratio_of_all(self) -> float:
        """The same of the sum of all rounds, if all of them pointed the same way."""
        return self.ratio / math.sqrt(self.rounds)

    @property
    def needed(self) -> int:
        """Clients per round for which the noise of all rounds is as long as their largest possible sum."""
        return math.ceil(self.variance / self.rounds)

    @property
    def hopeless(self) -> bool:
        """True where the noise of all rounds together is longer than the longest sum of their updates."""
        return self.ratio_of_all > 1.0

    def __str__(self) -> str:
        """Return two sentences."""
        return (
            f"{self.coordinates:,} numbers from {self.clients:,} clients a round: the noise of a mean is "
            f"{self.ratio:.3g} times as long as the longest update (variance {self.variance:.3g} of its "
            f"squares a client). Over {self.rounds} rounds that all point one way it is "
            f"{self.ratio_of_all:.3g} times as long as their sum."
        )


def forecast(plan: UpdatePlan, clients: int, rounds: int = 1) -> NoiseForecast | None:
    """Return the noise of a run, from the law of its mechanism.

    Parameters
    ----------
    plan : UpdatePlan
        Of the model: ``codec.plan(codec.layout(arrays))``.
    clients : int
        Reports a round, 1 or more.
    rounds : int
        1 or more.

    Returns
    -------
    NoiseForecast or None
        Of an update of zeros, near which small numbers are; None where the mechanism knows no variance.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.federated import Layout, UpdateCodec, forecast
    >>> codec = UpdateCodec(lambda d: bitldp.CrossPolytope(d, epsilon=8.0), clip=1.0)
    >>> plan = codec.plan(Layout(("weights",), ((1_000_000,),), ("<f4",)))
    >>> forecast(plan, clients=10_000).ratio.__round__(1), forecast(plan, clients=30).hopeless
    (3.6, True)
    """
    clients, rounds = checks.integer("clients", clients, 1), checks.integer("rounds", rounds, 1)
    header, mechanism = plan.header, plan.mechanism
    law: Any = mechanism  # not every mechanism has a variance
    middle = header.low + (header.high - header.low) / 2.0
    try:
        variances = np.asarray(law.variance(np.full(mechanism.columns, middle)), dtype=np.float64)
    except (AttributeError, TypeError, ValueError):
        return None
    if not variances.size or not np.isfinite(variances).all():
        return None
    # one number for each coordinate, or the same for all of a record
    record = float(np.mean(variances)) * header.coordinates
    scale = 2.0 / (header.high - header.low)
    longest = header.coordinates if header.norm == "linf" else 1
    return NoiseForecast(header.coordinates, clients, rounds, record * scale * scale / longest / plan.rows)
