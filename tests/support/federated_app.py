"""A small Flower app for the tests: each client pulls the model toward a private target of its own.

It runs in process, and, copied into a folder with a pyproject.toml, over the network. NumPy alone.
"""

from __future__ import annotations

import warnings

import bitldp
import numpy as np
from bitldp.federated import DecodingStrategy, PrivateUpdateMod, UpdateCodec, from_record, to_record
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

EPSILON = 12.0
CODEC = UpdateCodec(lambda size: bitldp.Duchi(epsilon=EPSILON, features=size), clip=0.5, norm="linf")


def initial() -> dict[str, np.ndarray]:
    return {"weight": np.zeros((5, 3), np.float32), "bias": np.zeros(3), "empty": np.zeros((0, 4))}


def target(client: int) -> dict[str, np.ndarray]:
    """Return what is private to a client, its numbers found nowhere else."""
    rng = np.random.default_rng([2026, client])
    return {
        name: rng.uniform(-0.4, 0.4, array.shape).astype(array.dtype) for name, array in initial().items()
    }


def make_client(mod: PrivateUpdateMod | None, before=None) -> ClientApp:
    """Return a client; `before(message, context)` may fail, or reply in its place."""
    app = ClientApp(mods=[mod] if mod else [])

    def work(message: Message, context: Context) -> Message:
        early = before(message, context) if before else None
        if early is not None:
            return early
        model, mine = from_record(message.content["arrays"]), target(context.node_config["partition-id"])
        model = {name: array + (mine[name] - array) / 2 for name, array in model.items()}
        metrics = MetricRecord({"num-examples": 37, "train-loss": float(np.abs(mine["weight"]).sum())})
        arrays = ArrayRecord(
            {k: Array(v.astype(initial()[k].dtype)) if k in initial() else Array(v) for k, v in model.items()}
        )
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    app.train()(work)
    app.evaluate()(work)
    app.query()(work)
    return app


def make_server(strategy, rounds: int = 1, arrays=None) -> ServerApp:
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy.start(grid, to_record(arrays or initial()), num_rounds=rounds, timeout=60)

    return app


with warnings.catch_warnings(action="ignore"):
    client_app = make_client(
        PrivateUpdateMod(CODEC, budget=1000.0, ledger="run", rng=lambda context: context.node_config["seed"])
    )
server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    strategy = DecodingStrategy(CODEC, fraction_evaluate=0.0)
    rounds = context.run_config["num-server-rounds"]
    result = strategy.start(grid, to_record(initial()), num_rounds=rounds, timeout=60)
    np.savez(context.run_config["save-to"], **from_record(result.arrays))
