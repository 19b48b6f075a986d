"""A small Flower app for the tests: each client gives a category to a histogram that only a sum shows.

It runs in process, and, copied into a folder with a pyproject.toml, over the network. Keys are of
``node-N.key`` in the folder that the environment's SUMS names; nothing but a test may have keys there.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from bitldp.federated import SummedMod, SummingStrategy, to_record
from bitldp.sums import Histogram, SecureSum
from bitldp.sums.protocol import Agreement
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

CLIENTS, FLOOR, CATEGORIES = 3, 2, 4
FOLDER = Path(os.environ.get("SUMS", "."))


def category(client: int) -> int:
    return (3 * client + 1) % CATEGORIES


def agreement() -> Agreement:
    total = SecureSum(Histogram(CATEGORIES), epsilon=8.0, delta=1e-5, clients=CLIENTS, floor=FLOOR)
    return Agreement(total, [FOLDER / f"node-{index}.key.pub" for index in range(CLIENTS)])


def make_client(agreed: Agreement | None = None, **options) -> ClientApp:
    mod = SummedMod(
        agreed or agreement(),
        lambda context: FOLDER / f"node-{context.node_config['partition-id']}.key",
        **{"value": "arrays", "rng": lambda context: context.node_config.get("seed"), **options},
    )
    app = ClientApp(mods=[mod])

    @app.train()
    def work(message: Message, context: Context) -> Message:
        mine = category(context.node_config["partition-id"])
        return Message(RecordDict({"arrays": to_record({"category": np.array(mine)})}), reply_to=message)

    return app


def make_server(agreed: Agreement | None = None, **options) -> ServerApp:
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = SummingStrategy(agreed or agreement(), update="keep", **options)
        strategy.start(grid, to_record({"category": np.zeros(1)}), num_rounds=1, timeout=60)
        estimate = strategy.estimates[1]
        path = context.run_config.get("save-to")
        if path:
            np.savez(path, value=estimate.value, survivors=strategy.survivors[1])

    return app


if "SUMS" in os.environ:
    client_app, server_app = make_client(), make_server()
