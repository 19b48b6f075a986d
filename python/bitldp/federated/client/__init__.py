"""The client's side of a Flower app: what leaves a client, and what it has cost."""

from __future__ import annotations

from bitldp.base.extras import require

require("bitldp.federated, on Python 3.11 or newer,", ["flwr"], "fl")
