"""Amplification: what a party in the middle adds, in the CENTRAL model; not a guarantee of a mechanism.

Everything else in this package is local: it holds against whoever sees a single report and knows whose it
is. What is here does not. It needs a party between the users and the server that is trusted to shuffle
reports, or to add them up, and each name says which.
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
