"""What client and server must agree on: the mechanism, and how updates are clipped and scaled to it."""

from __future__ import annotations

import bitldp
from bitldp.federated import UpdateCodec

EPSILON = 10.0
"""Exact epsilon of a client's whole update in one round: 4 of its 650 numbers are sent, at 2.5 each."""

CODEC = UpdateCodec(
    lambda size: bitldp.Duchi(epsilon=EPSILON, features=size, spend="sample"), clip=0.05, norm="linf"
)
