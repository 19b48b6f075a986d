"""Local differential privacy in Flower apps: drop-in parts for clients, servers and tests.

A client's mod perturbs what leaves it; the server's strategy averages what arrives:

    app = ClientApp(mods=[PrivateUpdateMod(mechanism, clip=1.0, budget=10.0)])
    strategy = DecodingStrategy(mechanism, clip=1.0)

Needs the extra ``fl``. Flower's commands report usage statistics to its makers unless
``FLWR_TELEMETRY_ENABLED=0`` is set in their environment. This package neither sets it nor sends anything.
"""

from __future__ import annotations

from bitldp.federated.client.account import ClientAccount
from bitldp.federated.client.composed import ComposedAccount
from bitldp.federated.client.data import PrivateData, Released
from bitldp.federated.client.examples import Bucketed, Randomized
from bitldp.federated.client.mod import PrivateUpdateMod, UnprotectedMessageWarning
from bitldp.federated.grid import InProcessGrid, InProcessRun, run_in_process
from bitldp.federated.server.strategy import DecodingStrategy, RoundFailedError
from bitldp.federated.simulation import Simulated, messages, simulate
from bitldp.federated.wire.arrays import Layout, from_record, to_numpy, to_record
from bitldp.federated.wire.codec import UpdateCodec, UpdatePlan
from bitldp.federated.wire.wire import WireError

__all__ = [
    "Bucketed",
    "ClientAccount",
    "ComposedAccount",
    "DecodingStrategy",
    "InProcessGrid",
    "InProcessRun",
    "Layout",
    "PrivateData",
    "PrivateUpdateMod",
    "Randomized",
    "Released",
    "RoundFailedError",
    "Simulated",
    "UnprotectedMessageWarning",
    "UpdateCodec",
    "UpdatePlan",
    "WireError",
    "from_record",
    "messages",
    "run_in_process",
    "simulate",
    "to_numpy",
    "to_record",
]
