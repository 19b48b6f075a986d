"""Local differential privacy in Flower apps: drop-in parts for clients, servers and tests.

A client's mod randomizes the update that it sends. The server's strategy averages the reports:

    app = ClientApp(mods=[PrivateUpdateMod(mechanism, clip=1.0, budget=10.0)])
    strategy = DecodingStrategy(mechanism, clip=1.0)

Needs the extra ``fl``. Flower's commands report usage statistics to its makers unless
``FLWR_TELEMETRY_ENABLED=0`` is set in their environment. This package neither sets it nor sends anything.
"""

from __future__ import annotations

from bitldp.client.message import WireError, write
from bitldp.federated.client.account import ClientAccount, RunBudgetWarning, SumsAccount
from bitldp.federated.client.composed import Composed, ComposedAccount, composed
from bitldp.federated.client.data import PrivateData, Released
from bitldp.federated.client.examples import Bucketed, Randomized
from bitldp.federated.client.mod import (
    BUDGET_SENTENCE,
    FAILURE_SENTENCE,
    REPORT,
    STYPE,
    PrivateUpdateMod,
    UnprotectedMessageWarning,
)
from bitldp.federated.client.summed import SUM_SENTENCE, SummedMod
from bitldp.federated.grid import InProcessGrid, InProcessRun, Recorder, run_in_process
from bitldp.federated.server.costs import Cost, RunCosts, RunResult, central_costs, run_costs
from bitldp.federated.server.forecast import NoiseForecast, forecast
from bitldp.federated.server.mean import ReportMean
from bitldp.federated.server.strategy import DecodingStrategy, RoundFailedError
from bitldp.federated.server.summing import SummingStrategy
from bitldp.federated.simulation import Simulated, messages, simulate
from bitldp.federated.wire.arrays import Layout, from_record, to_numpy, to_record
from bitldp.federated.wire.codec import ReportForm, UpdateCodec, UpdatePlan, letters_of

__all__ = [
    "BUDGET_SENTENCE",
    "FAILURE_SENTENCE",
    "REPORT",
    "STYPE",
    "SUM_SENTENCE",
    "Bucketed",
    "ClientAccount",
    "Composed",
    "ComposedAccount",
    "Cost",
    "DecodingStrategy",
    "InProcessGrid",
    "InProcessRun",
    "Layout",
    "NoiseForecast",
    "PrivateData",
    "PrivateUpdateMod",
    "Randomized",
    "Recorder",
    "Released",
    "ReportForm",
    "ReportMean",
    "RoundFailedError",
    "RunBudgetWarning",
    "RunCosts",
    "RunResult",
    "Simulated",
    "SummedMod",
    "SummingStrategy",
    "SumsAccount",
    "UnprotectedMessageWarning",
    "UpdateCodec",
    "UpdatePlan",
    "WireError",
    "central_costs",
    "composed",
    "forecast",
    "from_record",
    "letters_of",
    "messages",
    "run_costs",
    "run_in_process",
    "simulate",
    "to_numpy",
    "to_record",
    "write",
]
