"""Records of the deployment `honest`: their features, who holds them, and what a cohort releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from bitldp.federated import Layout, simulate
from bitldp.ledger import Ledger
from numpy.typing import NDArray

from bitldp_papers.honest.features import featured
from bitldp_papers.honest.settings import HonestSettings
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.share import loaded

__all__ = ["HonestRecords", "dealt", "released"]

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class HonestRecords:
    """Features of both parts of a data set, and their classes."""

    train: Array
    labels: NDArray[np.int64]
    test: Array
    test_labels: NDArray[np.int64]
    classes: int

    @classmethod
    @lru_cache(maxsize=2)
    def of(cls, name: str, kind: str) -> HonestRecords:
        """Return one of the kinds of features of a data set with classes; a process makes them once.

        Raises
        ------
        ValueError
            If its records have no classes, or are no images and their features are asked for.
        """
        data, train, test = loaded(name)
        if not data.classes:
            raise ValueError(f"data: {name} has no classes")
        labels = (np.asarray(each, np.int64) for each in (data.train_labels, data.test_labels))
        first, second = labels
        return cls(featured(train, kind, name), first, featured(test, kind, name), second, data.classes)


def dealt(records: int, settings: Settings) -> list[NDArray[np.intp]]:
    """Return the records of the clients of each round: each once, before any is dealt again."""
    rng = np.random.default_rng(np.random.SeedSequence([settings.seed, 0xDA7A]))
    deals = [rng.permutation(records) for _ in range(-(-settings.clients // records))]
    return np.array_split(np.concatenate(deals)[: settings.clients], settings.rounds)


def released(
    settings: HonestSettings,
    rows: Callable[[int, int], NDArray[Any]],
    size: int,
    clients: int,
    clip: float,
    rng: Any,
    threads: int,
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Return the mean of the clients' clipped vectors, as a server has it, and the metrics of the round."""
    codec = settings.codec(clip)
    if settings.private:
        ledger = Ledger(settings.epsilon)  # of this cohort, whose clients have taken no part before
        result = simulate(codec, rows, clients=clients, ledger=ledger, rng=rng, threads=threads)
        spread = float(np.sqrt(np.mean(np.square(result.stderr))))
        metrics = {"stderr": spread, "bytes-up": result.bytes_up, "spent": ledger.spent}
        return result.value, {"reports": clients, **metrics}
    plan = codec.plan(Layout(("update",), ((size,),), ("<f8",)))
    mean = plan.clipped_rows(np.asarray(rows(0, clients), np.float64)).mean(axis=0)
    return mean, {"reports": clients, "bytes-up": 8 * size * clients}
