"""Local differential privacy in Flower apps: drop-in parts for clients, servers and tests.

A client's mod perturbs what leaves it; the server's strategy averages what arrives:

    app = ClientApp(mods=[PrivateUpdateMod(mechanism, clip=1.0, budget=10.0)])
    strategy = DecodingStrategy(mechanism, clip=1.0)

Needs the extra ``fl``. Flower's commands report usage statistics to its makers unless
``FLWR_TELEMETRY_ENABLED=0`` is set in their environment. This package neither sets it nor sends anything.
"""

from __future__ import annotations

from bitldp.federated import _flower as _flower  # says what to install, before anything else is imported
from bitldp.federated._arrays import Layout, to_numpy
from bitldp.federated.account import Account
from bitldp.federated.codec import Plan, UpdateCodec
from bitldp.federated.composed import ComposedAccount
from bitldp.federated.data import PrivateData, Released
from bitldp.federated.examples import Bucketed, Randomized
from bitldp.federated.grid import InProcessGrid, InProcessRun, run_in_process
from bitldp.federated.mod import PrivateUpdateMod
from bitldp.federated.records import from_record, to_record
from bitldp.federated.strategy import DecodingStrategy, RoundFailedError
from bitldp.federated.wire import WireError

__all__ = [
    "Account",
    "Bucketed",
    "ComposedAccount",
    "DecodingStrategy",
    "InProcessGrid",
    "InProcessRun",
    "Layout",
    "Plan",
    "PrivateData",
    "PrivateUpdateMod",
    "Randomized",
    "Released",
    "RoundFailedError",
    "UpdateCodec",
    "WireError",
    "from_record",
    "run_in_process",
    "to_numpy",
    "to_record",
]
