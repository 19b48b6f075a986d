"""An app that a server delivers and that tries every way out; its client's side is NumPy and Flower alone.

It is played by nodes with a gate and by one without; the server writes all that it was sent. At the end of
its rounds it may ask for a secure sum of the nodes behind gates, and plays a client of it that has no node.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import message_to_proto
from flwr.serverapp import Grid, ServerApp

MODEL = {"w": np.zeros(4)}
SETTINGS = {"turns": [], "nodes": 3, "collector": 0, "folder": "", "sum": False}
"""Rounds, nodes to wait for, port that data is sent to, folder of the owner's files, and whether there is a
secure sum; a test adds a line with its own."""
SUM_TURN = 9
client_app = ClientApp()
server_app = ServerApp()


def secret(client: int) -> np.ndarray:
    return np.random.default_rng([7, client]).normal(size=4)


def text(client: int) -> str:
    return f"the record of patient {4700 + client}"


def by_sockets(data: bytes, port: int) -> list[str]:
    """Send by whatever leads out of this process, and return what was answered."""
    led = []
    for kind, family, address in (
        (socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", port)),
        (socket.SOCK_DGRAM, socket.AF_INET, ("127.0.0.1", port)),
        (socket.SOCK_STREAM, socket.AF_UNIX, f"\0evil-{port}"),
    ):
        with suppress(OSError), socket.socket(family, kind) as way:
            way.settimeout(2.0)
            way.connect(address)
            way.sendall(data)
            if kind == socket.SOCK_STREAM:  # a datagram is sent, wherever it goes
                led.append(f"{family.name} {kind.name}")
    return led


@client_app.train()
def train(message: Message, context: Context) -> Message:
    client, asked = context.node_config["partition-id"], message.content["config"]
    mine, turn = secret(client), asked["server-round"]
    led = by_sockets(f"client {client}: ".encode() + mine.tobytes(), SETTINGS["collector"])
    files = (f"ledger-{client}.json", f"ledger-{client}.json.secrets", "secret.key", f"node-{client}.key")
    for path in (f"{SETTINGS['folder']}/{name}" for name in files):
        with suppress(OSError):
            Path(path).read_bytes()
            led.append(f"read {path}")
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY))
            led.append(f"write {path}")
    note = Path(os.environ["FLWR_HOME"]) / f"tried-{client}-{turn}.json"
    with suppress(OSError):
        note.write_text(json.dumps({"led": led, "user": os.getuid()}))
    if turn == 1:
        report = asked["header"] + mine.tobytes()  # covert bytes in what looks like a report
        covert = ArrayRecord({"report": Array("uint8", (len(report),), "bitldp.report", report)})
        if client == 2:
            content = {"arrays": covert, "metrics": MetricRecord({"num-examples": 1})}
            return Message(RecordDict(content), reply_to=message)
        time.sleep(float(abs(mine[0])))  # raw records as the update, as metrics and as times
        metrics = MetricRecord({"num-examples": int(1e6 * abs(mine[1])), "loss": [float(x) for x in mine]})
        arrays = ArrayRecord({"w": Array(mine)})
        note = ConfigRecord({"text": text(client)})
        content = {"arrays": arrays, "metrics": metrics, "note": note, "more": covert}
        return Message(RecordDict(content), reply_to=message, ttl=float(1000 * abs(mine[2])))
    if turn == SUM_TURN:  # its category, and whatever else fits in
        arrays = ArrayRecord({"w": Array(np.array(client))})
        seen = sorted(message.content)
        note = ConfigRecord({"text": text(client), "bytes": mine.tobytes(), "seen": seen})
        with suppress(OSError):
            (Path(os.environ["FLWR_HOME"]) / "seen.json").write_text(json.dumps(seen))
        return Message(RecordDict({"arrays": arrays, "note": note}), reply_to=message)
    raise ValueError(f"{text(client)}: {mine.tobytes().hex()}")


def sent(reply: Message, turn: int) -> dict[str, object]:
    """Return what a reply brought: the node, the records and every byte."""
    return {
        "turn": turn,
        "node": str(reply.metadata.src_node_id),
        "reason": reply.error.reason if reply.has_error() else "",
        "data": message_to_proto(reply).SerializeToString().hex(),
        "kinds": [] if reply.has_error() else sorted(reply.content),
    }


def content(turn: int, **records: ArrayRecord) -> RecordDict:
    """Return what a message of the server holds."""
    settings = ConfigRecord({"server-round": turn, "header": b"bLDP\x02" + bytes(60)})
    arrays = ArrayRecord({name: Array(array) for name, array in MODEL.items()})
    return RecordDict({"arrays": arrays, "config": settings, **records})


def summed(grid: Grid, nodes: list[int], seen: list[dict[str, object]]) -> list[float]:
    """Return the noisy histogram of a secure sum; between two of its stages, wait for the test."""
    from bitldp.federated.wire.sums import SUM, sum_bytes, sum_record
    from bitldp.sums import Histogram, SecureSum
    from bitldp.sums.protocol import Agreement, Stage, SummingClient, SummingServer

    folder = Path(SETTINGS["folder"])
    total = SecureSum(Histogram(4), epsilon=14.0, delta=1e-5, clients=3, floor=2)
    agreed = Agreement(total, [folder / f"node-{index}.key.pub" for index in range(3)])
    alone = SummingClient(agreed, folder / "node-0.key")
    server = SummingServer(agreed, 1)
    messages, again = server.invite(["alone", *nodes]), {}

    def asked(messages: dict[int, bytes]) -> list[Message]:
        made = [
            Message(content(SUM_TURN, **{SUM: sum_record(data)}), node, "train")
            for node, data in messages.items()
        ]
        replies = list(grid.send_and_receive(made, timeout=150))
        seen.extend(sent(reply, SUM_TURN) for reply in replies)
        return replies

    while messages:
        if server.stage is Stage.MASK:
            (folder / "within").touch()
            while not (folder / "go-on").exists():
                time.sleep(0.1)
            again = {node: messages[node] for node in nodes}
        own = alone.answer(messages.pop("alone"), lambda: total.share(0))
        replies = {each.metadata.src_node_id: sum_bytes(each) for each in asked(messages)}
        messages = server.proceed({"alone": own, **replies})
    asked(again)
    return [float(each) for each in total.decode(server.opened.total, server.opened.survivors).value]


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    while len(nodes := list(grid.get_node_ids())) < SETTINGS["nodes"]:
        time.sleep(0.5)
    seen, total = [], []
    for turn in SETTINGS["turns"]:
        asked = [Message(content(turn), node, "train") for node in nodes]
        seen += [sent(reply, turn) for reply in grid.send_and_receive(asked, timeout=150)]
    if SETTINGS["sum"]:
        gated = [int(each["node"]) for each in seen if each["turn"] == 1 and "note" not in each["kinds"]]
        total = summed(grid, gated, seen)
    Path(str(context.run_config["save-to"])).write_text(json.dumps({"seen": seen, "sum": total}))
