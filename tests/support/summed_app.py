"""A small Flower app for the tests: each client gives a category to a histogram that only a sum shows.

It runs in process, and, from a module of a few lines, over the network. The keys are ``node-N.key`` in one
folder: a node's own app has no other's key.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bitldp.federated import SummedMod, SummingStrategy, to_record
from bitldp.sums import Histogram, SecureSum
from bitldp.sums.protocol import Agreement
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

CLIENTS, FLOOR, CATEGORIES = 3, 2, 4


def category(client: int) -> int:
    return (3 * client + 1) % CATEGORIES


def agreement(folder: Path) -> Agreement:
    total = SecureSum(Histogram(CATEGORIES), epsilon=8.0, delta=1e-5, clients=CLIENTS, floor=FLOOR)
    return Agreement(total, [folder / f"node-{index}.key.pub" for index in range(CLIENTS)])


def key_pair(path: Path) -> None:
    """Write a key that its owner alone may read, and the public one beside it, as ``bitldp keypair`` does."""
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.with_name(f"{path.name}.pub").write_bytes(public)


def make_client(folder: Path) -> ClientApp:
    mod = SummedMod(
        agreement(folder),
        lambda context: folder / f"node-{context.node_config['partition-id']}.key",
        value="arrays",
        rng=lambda context: context.node_config.get("seed"),
    )
    app = ClientApp(mods=[mod])

    @app.train()
    def work(message: Message, context: Context) -> Message:
        mine = category(context.node_config["partition-id"])
        return Message(RecordDict({"arrays": to_record({"category": np.array(mine)})}), reply_to=message)

    return app


def make_server(folder: Path) -> ServerApp:
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = SummingStrategy(agreement(folder), update="keep", first_number=1)
        strategy.start(grid, to_record({"category": np.zeros(1)}), num_rounds=1, timeout=60)
        np.savez(
            context.run_config["save-to"],
            value=strategy.estimates[1].value,
            survivors=strategy.survivors[1],
        )

    return app
