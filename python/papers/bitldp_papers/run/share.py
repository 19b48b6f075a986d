"""Division of a data set's training part among clients."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from bitldp.base import checks
from numpy.typing import NDArray

from bitldp_papers.data import Dataset, load

__all__ = ["Holding", "holding", "holdings", "loaded", "shuffled"]


class Holding:
    """Records of one client.

    Attributes
    ----------
    x : ndarray of float32, shape (n, features)
        Features, scaled to [-1, 1].
    y : ndarray, shape (n,)
        Labels or targets.
    """

    def __init__(self, x: NDArray[np.float32], y: NDArray[np.generic]) -> None:
        self.x, self.y = x, y

    def __repr__(self) -> str:
        """Return the sizes; the records stay out of logs."""
        return f"Holding({len(self.x)} records, {self.x.shape[1]} features)"


@lru_cache(maxsize=4)
def loaded(name: str) -> tuple[Dataset, NDArray[np.float32], NDArray[np.float32]]:
    """Return a data set with its features scaled to [-1, 1]; a process loads it once."""
    data = load(name)
    return (data, *data.scaled())


@lru_cache(maxsize=4)
def shuffled(count: int, seed: int) -> NDArray[np.intp]:
    """Return the order in which `count` records are dealt."""
    return np.random.default_rng(np.random.SeedSequence([seed, 0xDA7A])).permutation(count)


def holding(name: str, client: int, clients: int, *, seed: int, most: int | None = None) -> Holding:
    """Return the records of client number `client` of `clients`, in an order that `seed` shuffles.

    Parameters
    ----------
    name : str
        A data set of `bitldp_papers.data`.
    client, clients : int
        Number of the client, counted from 0, and of all clients.
    seed : int
        Seed of the order.
    most : int, optional
        The most records that all clients hold together; None: all.

    Raises
    ------
    ValueError
        If there are more clients than records.
    """
    client = checks.integer("client", client, 0, clients - 1)
    data, train, _ = loaded(name)
    order = shuffled(len(train), seed)[:most]
    if clients > len(order):
        raise ValueError(f"clients: {clients} are more than the {len(order)} records of {name}")
    mine = np.sort(order[client::clients])
    return Holding(train[mine], data.train_labels[mine])


def holdings(name: str, clients: int, *, seed: int, most: int | None = None) -> list[Holding]:
    """Return the records of every client; see `holding`."""
    return [holding(name, client, clients, seed=seed, most=most) for client in range(clients)]
