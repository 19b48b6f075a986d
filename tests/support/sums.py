"""Secure sums without noise, in one process: what tests of the protocol sum, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from bitldp import Estimate
from bitldp.accounting.loss_table import Normal
from bitldp.sums import Central
from bitldp.sums.protocol import Agreement, SummingClient, SummingServer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True)
class PlainSum:
    """Sum of integers as they are: `bitldp.sums.SecureSum` without its noise."""

    clients: int
    floor: int
    bits: int = 16
    coordinates: int = 3
    colluding: int = 0

    @property
    def kind(self) -> PlainSum:
        return self

    @property
    def least_survivors(self) -> int:
        return self.floor + self.colluding

    @property
    def guarantee(self) -> PlainSum:
        return self

    def central(self, survivors: int | None = None) -> Central:
        return Central(1.0, 1e-6, False, "none")

    @property
    def local(self) -> Central:
        return self.central()

    def accounted(self, cost: float = 3.0) -> tuple[Normal, float]:
        return Normal(0.2), 0.0

    @property
    def epsilon(self) -> float:
        return 1.0

    @property
    def digest(self) -> str:
        return "d" * 64

    def terms(self) -> dict[str, Any]:
        return {**asdict(self), "kind": "plain"}

    def decode(self, total: np.ndarray, survivors: int) -> Estimate:
        return Estimate(total.astype(float), np.zeros(len(total)), survivors)

    def share(self, x: Any, *, rng: Any = None) -> np.ndarray:
        return np.atleast_1d(np.asarray(x)).astype(np.uint64) & np.uint64((1 << self.bits) - 1)

    def share_neutral(self, *, rng: Any = None) -> np.ndarray:
        return np.zeros(self.coordinates, np.uint64)


def signing_keys(count: int) -> list[Ed25519PrivateKey]:
    return [Ed25519PrivateKey.from_private_bytes(index.to_bytes(32, "big")) for index in range(1, count + 1)]


def public(keys: list[Ed25519PrivateKey]) -> list[bytes]:
    return [key.public_key().public_bytes_raw() for key in keys]


class Machines:
    """Clients of a sum, whose messages are kept, and a server for each round."""

    def __init__(self, clients: int = 6, floor: int = 4, *, total: Any = None, **options: Any) -> None:
        self.keys = signing_keys(total.clients if total else clients)
        self.agreement = Agreement(total or PlainSum(clients, floor), public(self.keys), **options)
        self.clients = {index: SummingClient(self.agreement, key) for index, key in enumerate(self.keys)}
        self.sent: list[tuple[int, int, bytes]] = []  # stage, index, reply
        self.carried = dict.fromkeys(self.clients, 0)  # bytes to and from each
        self.server = SummingServer(self.agreement, 0)

    def values(self, seed: int = 1) -> np.ndarray:
        """Return what each client sums: random words of the modulus."""
        total = self.agreement.sum
        rng = np.random.default_rng(seed)
        return rng.integers(0, 1 << total.bits, (total.clients, total.coordinates), dtype=np.uint64)

    def answers(
        self,
        stage: int,
        messages: Mapping[int, bytes],
        values: np.ndarray,
        *,
        drop: Callable[[int, int], bool],
    ) -> dict[int, bytes]:
        """Return the replies of the clients that do not drop out; each goes on from its saved state."""
        replies = {}
        for index, data in messages.items():
            if drop(stage, index):
                continue
            client = SummingClient(self.agreement, self.keys[index], state=self.clients[index].state)
            replies[index] = client.answer(data, lambda index=index: values[index])
            self.clients[index] = client
            self.sent.append((stage, index, replies[index]))
            self.carried[index] += len(data) + len(replies[index])
        return replies

    def run(
        self,
        number: int = 1,
        values: np.ndarray | None = None,
        *,
        until: int = 5,
        drop: Callable[[int, int], bool] = lambda stage, index: False,
    ) -> dict[int, bytes]:
        """Run a round up to a stage, whose messages are returned; after the last one the sum is open."""
        values = self.values() if values is None else values
        self.server = SummingServer(self.agreement, number)
        messages = self.server.invite(list(self.clients))
        for stage in range(until):
            messages = self.server.proceed(self.answers(stage, messages, values, drop=drop))
        return messages

    def assert_right(self, values: np.ndarray | None = None) -> None:
        """Hold the opened sum against that of its members."""
        opened = self.server.opened
        values = self.values() if values is None else values
        expected = values[list(opened.members)].sum(axis=0) & np.uint64((1 << self.agreement.sum.bits) - 1)
        np.testing.assert_array_equal(opened.total, expected)
        assert opened.survivors == len(opened.members)
