"""An app that a server delivers and that tries every way out; NumPy and Flower alone.

It is played by nodes with a gate and by one without; the server writes all that it was sent.
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
SETTINGS = {"first": 1, "collector": 0, "folder": ""}
"""First round, port that data is sent to, folder of the owner's files; a test adds a line with its own."""
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
    for path in (f"{SETTINGS['folder']}/ledger-{client}.json", f"{SETTINGS['folder']}/secret.key"):
        with suppress(OSError):
            Path(path).read_bytes()
            led.append(f"read {path}")
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY))
            led.append(f"write {path}")
    note = Path(os.environ["FLWR_HOME"]) / f"tried-{client}-{turn}.json"
    with suppress(OSError):
        note.write_text(json.dumps({"led": led, "user": os.getuid()}))
    if turn == 1:  # raw records as the update, as metrics and as times
        time.sleep(float(abs(mine[0])))
        metrics = MetricRecord({"num-examples": int(1e6 * abs(mine[1])), "loss": [float(x) for x in mine]})
        arrays = ArrayRecord({"w": Array(mine)})
        content = {"arrays": arrays, "metrics": metrics, "note": ConfigRecord({"text": text(client)})}
        return Message(RecordDict(content), reply_to=message, ttl=float(1000 * abs(mine[2])))
    if turn == 2:  # covert bytes in what looks like a report
        report = asked["header"] + mine.tobytes()
        arrays = ArrayRecord({"report": Array("uint8", (len(report),), "bitldp.report", report)})
        metrics = MetricRecord({"num-examples": 1})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
    raise ValueError(f"{text(client)}: {mine.tobytes().hex()}")


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    while len(nodes := list(grid.get_node_ids())) < 3:
        time.sleep(0.5)
    seen = []
    for turn in range(SETTINGS["first"], SETTINGS["first"] + 2):
        settings = {"server-round": turn, "header": b"bLDP\x02" + bytes(60)}
        content = {
            "arrays": ArrayRecord({name: Array(array) for name, array in MODEL.items()}),
            "config": ConfigRecord(settings),
        }
        asked = [Message(RecordDict(content), node, "train") for node in nodes]
        for reply in grid.send_and_receive(asked, timeout=120):
            reason = reply.error.reason if reply.has_error() else ""
            data = message_to_proto(reply).SerializeToString().hex()
            kinds = [] if reply.has_error() else sorted(reply.content)
            seen.append({"turn": turn, "reason": reason, "data": data, "kinds": kinds})
    Path(str(context.run_config["save-to"])).write_text(json.dumps(seen))
