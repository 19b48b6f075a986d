"""Secure aggregation: a server learns the sum of the clients' integers and nothing else of any of them.

The machines of client and server are free of any transport: bytes in, bytes out. `bitldp.federated` carries
them on Flower's messages (`SummedMod`, `SummingStrategy`).

The protocol is that of Bonawitz et al. ("Practical secure aggregation for privacy-preserving machine
learning", CCS 2017, Section 4 and Figure 4, with the round of signatures that makes it hold against a server
that lies), on the complete graph or on the random one of Bell et al. ("Secure single-server aggregation with
(poly)logarithmic overhead", CCS 2020). Other than there, each client holds all terms of the sum in its own
configuration (`Agreement`) and answers nothing that does not fit them.

Needs the extra ``sums``.
"""

from __future__ import annotations

from bitldp.base.errors import require

require("bitldp.sums.protocol", ["cryptography"], "sums")

from bitldp.sums.protocol.agreement import Agreement  # noqa: E402
from bitldp.sums.protocol.client import SummingClient  # noqa: E402
from bitldp.sums.protocol.messages import Stage, SumRefusedError  # noqa: E402
from bitldp.sums.protocol.server import SumFailedError, SummingServer  # noqa: E402

__all__ = [
    "Agreement",
    "Stage",
    "SumFailedError",
    "SumRefusedError",
    "SummingClient",
    "SummingServer",
]
