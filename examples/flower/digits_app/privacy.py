"""What client and server must agree on: the mechanism, and how updates are clipped and scaled to it."""

from __future__ import annotations

import bitldp
from bitldp.federated import UpdateCodec

EPSILON = 100.0
"""Exact epsilon of a client's whole update in one round: 650 numbers share it. Far too much for a promise; it
is what learning from so few clients takes."""

CODEC = UpdateCodec(lambda size: bitldp.Duchi(EPSILON, features=size), clip=0.3, norm="linf")
