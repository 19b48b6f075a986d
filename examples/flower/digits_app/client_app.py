"""The client: a plain Flower app, but for the line that makes it private."""

from __future__ import annotations

from bitldp.federated import PrivateUpdateMod, from_record, to_record
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from digits_app.privacy import CODEC
from digits_app.task import partition, train

app = ClientApp(
    mods=[
        PrivateUpdateMod(
            CODEC,
            budget=100.0,
            ledger="run",  # of a simulation; leave it out where the records are somebody's
            rng=lambda context: context.node_config.get("seed"),
        )
    ]
)


@app.train()
def fit(message: Message, context: Context) -> Message:
    """Train on what this client holds."""
    place, count = context.node_config["partition-id"], context.node_config["num-partitions"]
    features, labels = partition(place, count)
    model = train(from_record(message.content["arrays"]), features, labels)
    metrics = MetricRecord({"num-examples": len(labels)})
    return Message(RecordDict({"arrays": to_record(model), "metrics": metrics}), reply_to=message)
