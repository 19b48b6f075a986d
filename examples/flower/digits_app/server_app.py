"""The server: decodes and averages what the clients release."""

from __future__ import annotations

import numpy as np
from bitldp.federated import DecodingStrategy, from_record, to_record
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

from digits_app.privacy import CODEC
from digits_app.task import accuracy, initial

app = ServerApp()


def score(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    """Score the global model on digits that no client holds."""
    return MetricRecord({"accuracy": accuracy(from_record(arrays))})


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the rounds, and keep the last model if a file is named."""
    strategy = DecodingStrategy(CODEC, fraction_evaluate=0.0, min_available_nodes=2)
    result = strategy.start(
        grid,
        initial_arrays=to_record(initial()),
        num_rounds=context.run_config["num-server-rounds"],
        evaluate_fn=score,
    )
    last = max(result.evaluate_metrics_serverapp)
    made = result.train_metrics_clientapp[last]
    print(
        f"accuracy {result.evaluate_metrics_serverapp[last]['accuracy']:.3f} after {last} rounds of "
        f"{made['reports']} clients: each number of their mean update is clipped to {CODEC.clip}, and has a "
        f"standard error of {made.get('stderr', float('nan')):.3f}"
    )
    if context.run_config["save-to"]:
        np.savez(context.run_config["save-to"], **from_record(result.arrays))
