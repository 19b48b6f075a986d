"""Learning from a public pool: every client reports once where its record lies, times its class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from bitldp.compression import CrossPolytope
from numpy.typing import NDArray

from bitldp_papers.data import vectors
from bitldp_papers.honest.features import Array, Graph, diffused, featured
from bitldp_papers.honest.records import HonestRecords, released
from bitldp_papers.honest.settings import HonestSettings
from bitldp_papers.run.share import loaded

__all__ = ["PoolServer", "PooledRecords", "steps_of"]


@dataclass(frozen=True, eq=False)
class PooledRecords(HonestRecords):
    """Coordinates of both parts of a data set on the graph of a public pool, and their classes.

    Attributes
    ----------
    decay : ndarray of float64, shape (coordinates,)
        As of `Graph`.
    pool : int
        Records of the pool.
    caveat : str
        Where the pool comes from, and how many records are scored.
    """

    decay: NDArray[np.float64]
    pool: int
    caveat: str

    @classmethod
    def on(cls, settings: HonestSettings) -> PooledRecords:
        """Return the coordinates under some settings; a process makes them once.

        Raises
        ------
        ValueError
            If the pool cannot be had, or has too few records.
        """
        return _pooled(settings.data, settings.features, settings.pool, settings.seed, settings.coordinates)


@lru_cache(maxsize=2)
def _pooled(name: str, kind: str, pool: str, seed: int, coordinates: int) -> PooledRecords:
    own = HonestRecords.of(name, kind)
    kept = np.ones(len(own.test), bool)
    kind_of, _, count = pool.partition(":")
    if kind_of == "test":
        if int(count) >= len(own.test):
            raise ValueError(f"pool: {count} are not fewer than the {len(own.test)} test records of {name}")
        rng = np.random.default_rng(np.random.SeedSequence([seed, 0x9001]))
        taken = rng.permutation(len(own.test))[: int(count)]
        kept[taken] = False
        public, source = own.test[taken], "taken from the test records as a stand-in for public ones"
    else:
        data, _, _ = loaded(name)
        public = featured(data.scale(vectors(pool, data.columns)), kind, name)
        source = f"of {pool}"
    if len(public) < _LEAST:
        raise ValueError(f"pool: {len(public)} records are too few; {_LEAST} or more are needed")
    graph = Graph(public, coordinates=min(coordinates, len(public) // 2))
    return PooledRecords(
        graph(own.train),
        own.labels,
        graph(own.test[kept]),
        own.test_labels[kept],
        own.classes,
        graph.decay,
        len(public),
        f"a public pool of {len(public)} records of the same kind without labels, {source}: everybody holds "
        f"them, nothing protects them, and none is scored; {np.count_nonzero(kept)} test records are",
    )


_POOL = 2000  # records that `diffusion` is said for
_LEAST = 20  # records of a pool: each has ten neighbours


class PoolServer:
    """Server of a linear model that is read off the clients' reports, which are all of one round.

    A client sends z (e_y - 1/C), of length 1: its coordinates z, of length 1, times its class y of C, less
    what all classes have in common. The mean of the reports, a table, is the model: the class of a record is
    the column that its coordinates have the largest product with. Nothing goes back to clients.

    Parameters
    ----------
    settings : HonestSettings
    records : PooledRecords

    Attributes
    ----------
    state : dict of str to ndarray
        What a run goes on from: the sum of the reports so far, and how many there were.
    steps : float
        Steps of the walk on the graph: `diffusion` times the standard deviation of the noise that all reports
        together leave in a score, sqrt(v/n) of a variance v of one coordinate and n clients, over
        1/(C sqrt(1 - 1/C)), which is the gap between the own class and another of records that are alike
        within a class and orthogonal between. All of that is public before the first report. Noise in a score
        is the same in any number of coordinates, so what counts is how much closer a record is to its own
        class than to others; each step of the walk brings neighbours closer, and leaves less to tell. In a
        pool of n below 2,000 a step leads further, and n/2,000 as many are taken.

    Notes
    -----
    Public data of the same kind beside private ones, in the central model: F. Pinto, Y. Hu, F. Yang and A.
    Sanyal, "PILLAR: How to make semi-private learning more effective", SaTML 2024, arXiv:2306.03962, which
    projects on the principal components of public features.
    """

    def __init__(self, settings: HonestSettings, records: PooledRecords) -> None:
        self.settings, self.records = settings, records
        size, classes = records.train.shape[1], records.classes
        self.state: dict[str, NDArray[Any]] = {"summed": np.zeros((size, classes)), "reports": np.zeros(1)}
        self.steps = steps_of(settings, records.pool, size, classes)
        self._train = diffused(records.train, records.decay, self.steps)
        self._test = diffused(records.test, records.decay, self.steps)
        self._classes = _codes(classes)

    def reported(self, turn: int, cohort: NDArray[np.intp], rng: Any, threads: int) -> dict[str, Any]:
        """Let a part of the clients report, add what they say, and return the metrics of the part."""
        x, y = self._train[cohort], self._classes[self.records.labels[cohort]]

        def rows(start: int, stop: int) -> NDArray[np.float32]:
            return (x[start:stop, :, None] * y[start:stop, None, :]).reshape(stop - start, -1)

        shape = self.state["summed"].shape
        mean, metrics = released(self.settings, rows, math.prod(shape), len(x), 1.0, rng, threads)
        self.state["summed"] = self.state["summed"] + len(x) * mean.reshape(shape)
        self.state["reports"] = self.state["reports"] + len(x)
        return metrics

    def accuracy(self, turn: int) -> float:
        """Return the accuracy on the test records that are scored."""
        scores = self._test @ self.state["summed"].astype(np.float32)
        return float(np.mean(scores.argmax(axis=1) == self.records.test_labels))


def _codes(classes: int) -> Array:
    """Return e_y - 1/C of each class, of length 1: no class is what all have in common."""
    return np.asarray((np.eye(classes) - 1.0 / classes) / math.sqrt(1.0 - 1.0 / classes), np.float32)


def steps_of(settings: HonestSettings, pool: int, size: int, classes: int) -> float:
    """Return the steps of the walk on the graph of a pool of so many records; see `PoolServer`."""
    return settings.diffusion * min(1.0, pool / _POOL) * _noise(settings, size, classes)


def _noise(settings: HonestSettings, size: int, classes: int) -> float:
    """Return the noise in a score, in units of the gap between classes; see `PoolServer`."""
    if not settings.private:
        return 0.0
    mechanism = CrossPolytope(size * classes, epsilon=settings.epsilon)
    each = mechanism.total_variance() / (size * classes)
    return math.sqrt(each / settings.clients) * classes * math.sqrt(1.0 - 1.0 / classes)
