"""Amplification: CENTRAL guarantees that rely on a trusted party in the middle, not on a mechanism.

Everything else in this package is local: it holds against anyone who sees a single report and knows whose it
is. The bounds in this module are not. They need a party between the users and the server that is trusted to
shuffle reports, or to add them up. The name of each function says which.
"""

from __future__ import annotations

from bitldp.amplification.aggregates import (
    shuffled_histogram_central_delta,
    shuffled_histogram_central_epsilon,
    summed_central_delta,
    summed_central_epsilon,
)
from bitldp.amplification.shuffling import shuffled_central_epsilon

__all__ = [
    "shuffled_central_epsilon",
    "shuffled_histogram_central_delta",
    "shuffled_histogram_central_epsilon",
    "summed_central_delta",
    "summed_central_epsilon",
]
