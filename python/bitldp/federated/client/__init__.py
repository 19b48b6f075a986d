"""Client's side of a Flower app: private reports and their cost."""

from __future__ import annotations

from bitldp.base.errors import require

require("bitldp.federated, on Python 3.11 or newer,", ["flwr"], "fl")
