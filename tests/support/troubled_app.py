"""A Flower app whose clients fail as they do in the field: one is late, one dies, and then all of them do."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
from bitldp.federated import DecodingStrategy, PrivateUpdateMod, RoundFailedError, from_record, to_record
from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from support.federated_app import CODEC, initial, make_client

LATE, DEAD = 1, 2
PATIENCE = 50.0
"""Seconds of a round; a client that is late takes this much, and some more."""


def trouble(message: Message, context: Context) -> None:
    """Be late, or die: in the second round two of three clients, in the third one all that answer in time."""
    turn, client = message.content["config"]["server-round"], context.node_config["partition-id"]
    if turn == 2 and client == LATE:
        time.sleep(PATIENCE + 3.0)
    elif (turn == 2 and client == DEAD) or turn == 3:
        os._exit(1)


client_app = make_client(
    PrivateUpdateMod(CODEC, budget=1000.0, ledger="run", rng=lambda context: context.node_config["seed"]),
    before=trouble,
)
server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    strategy = DecodingStrategy(CODEC, fraction_evaluate=0.0, min_train_nodes=3, min_available_nodes=3)
    try:
        strategy.start(grid, to_record(initial()), num_rounds=3, timeout=PATIENCE)
    except RoundFailedError as error:
        rounds = {turn: dict(found) for turn, found in error.result.train_metrics_clientapp.items()}
        told = {"rounds": rounds, "sentence": str(error), "costs": str(error.result.costs)}
        target = Path(context.run_config["save-to"])
        target.with_suffix(".json").write_text(json.dumps(told))
        np.savez(target, **from_record(error.result.arrays))
