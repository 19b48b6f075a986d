"""Rounds of a secure sum in one process: CPU seconds and bytes, with dropouts in every stage.

    python benches/sums_protocol.py             # 100 clients of 10^5 numbers; fails above 60 s or 2.2 times
    python benches/sums_protocol.py --shamir    # secret sharing beside that of pycryptodome

Every result is compared with the sum of the survivors' numbers before a figure is printed.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import warnings
from typing import Any

import numpy as np
from bitldp.federated import SummedMod, SummingStrategy, run_in_process, to_record
from bitldp.federated.wire.sums import sum_bytes
from bitldp.sums import Histogram, SecureSum
from bitldp.sums.protocol import Agreement, shamir
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

MOST_SECONDS, MOST_RATIO = 60.0, 2.2
DROPPED = 0.1


def measured(clients: int, count: int, degree: int | None, seed: int) -> tuple[float, float, int, int]:
    """Return CPU seconds, bytes of a client over its packed numbers, bits, and survivors of one round."""
    keys = [Ed25519PrivateKey.generate() for _ in range(clients)]
    total = SecureSum(Histogram(count), epsilon=1.0, delta=1e-6, clients=clients, floor=clients // 2)
    agreement = Agreement(total, [key.public_key().public_bytes_raw() for key in keys], degree=degree)
    rng, gone = np.random.default_rng(seed), set()
    left = list(range(clients))
    for stage in range(5):
        for index in rng.choice(left, round(DROPPED * len(left)), replace=False):
            gone.add((stage, int(index)))
            left.remove(int(index))

    sent = dict.fromkeys(range(clients), 0)

    def drop(message: Message, context: Any, call_next: Any) -> Message:
        """Stand for a client that is gone from its stage on; count the bytes of the others."""
        own, data = context.node_config["partition-id"], sum_bytes(message)
        if any((stage, own) in gone for stage in range(data[5] + 1)):
            raise RuntimeError("gone")
        reply = call_next(message, context)
        sent[own] += len(data) + len(sum_bytes(reply))
        return reply

    with warnings.catch_warnings(action="ignore"):
        mod = SummedMod(
            agreement,
            lambda context: keys[context.node_config["partition-id"]],
            value="arrays",
            ledger="run",
            rng=seed,
        )
    app, server = ClientApp(mods=[drop, mod]), ServerApp()

    @app.train()
    def work(message: Message, context: Any) -> Message:
        mine = np.array(context.node_config["partition-id"] * 997 % count)
        return Message(RecordDict({"arrays": ArrayRecord({"x": Array(mine)})}), reply_to=message)

    strategy = SummingStrategy(agreement, update="keep", first_number=0)

    @server.main()
    def main(grid: Any, context: Any) -> None:
        strategy.start(grid, to_record({"x": np.zeros(1)}), num_rounds=1, timeout=600)

    begun = time.process_time()
    run_in_process(server, app, clients)
    seconds = time.process_time() - begun
    shares = [  # the seeded ones that the clients gave
        total.share(client * 997 % count, rng=np.random.SeedSequence(seed, spawn_key=(client, 1)))
        for client in strategy.survivors[1]
    ]
    expected = total.decode(total.add(*shares), len(shares))
    if not np.array_equal(strategy.estimates[1].value, expected.value):
        sys.exit("the sum is wrong")
    packed = (count * total.bits + 7) // 8
    return seconds, max(sent.values()) / packed, total.bits, len(shares)


def compare_shamir() -> None:
    """Print CPU milliseconds of one secret of 32 bytes, threshold 51 of 99, beside pycryptodome's."""
    from Crypto.Protocol.SecretSharing import Shamir

    secret, points = os.urandom(32), list(range(1, 100))
    begun = time.process_time()
    shares = dict(zip(points, shamir.split(secret, points, 51, os.urandom), strict=True))
    cut = time.process_time()
    if shamir.join({point: shares[point] for point in points[20:71]}) != secret:
        sys.exit("the secret is wrong")
    ours = cut - begun, time.process_time() - cut
    begun = time.process_time()
    halves = [Shamir.split(51, 99, secret[start : start + 16], ssss=False) for start in (0, 16)]
    cut = time.process_time()
    if b"".join(Shamir.combine(half[20:71], ssss=False) for half in halves) != secret:
        sys.exit("the other library's secret is wrong")
    theirs = cut - begun, time.process_time() - cut
    for name, (split, join) in {"ours": ours, "pycryptodome": theirs}.items():
        print(f"{name:14} split {1e3 * split:8.2f} ms   join {1e3 * join:8.2f} ms")


def main() -> int:
    """Run and print; return 1 where a bound is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--numbers", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shamir", action="store_true")
    options = parser.parse_args()
    if options.shamir:
        compare_shamir()
        return 0
    logging.disable()  # each dropout is a line
    worst = False
    for seed in range(options.rounds):
        seconds, ratio, bits, survivors = measured(options.clients, options.numbers, options.degree, seed)
        print(
            f"seed {seed}: {options.clients} clients of {options.numbers:,} numbers of {bits} bits, "
            f"{survivors} in the sum: {seconds:.1f} CPU seconds, {ratio:.3f} times the packed bytes"
        )
        worst |= seconds > MOST_SECONDS or ratio > MOST_RATIO
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
