"""Deployment `sum`: a linear classifier of public features, from one secure sum of all clients' moments."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from bitldp.base import checks
from bitldp.sums import SecureSum, Vector
from numpy.typing import NDArray

from bitldp_papers.data import Dataset
from bitldp_papers.honest.features import FEATURES
from bitldp_papers.honest.records import HonestRecords, dealt
from bitldp_papers.run.drive import Summary, Watcher, finished, folder_of
from bitldp_papers.run.folder import RunFolder
from bitldp_papers.run.rounds import NO_PRIVACY, Privacy
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.system import Runnable, dealing

__all__ = ["MECHANISMS", "NAME", "SYSTEM", "Classifier", "SumSettings", "moments"]

NAME = "sum"
WITHOUT = "noiseless"
MECHANISMS = ("auto", "moments", "means", WITHOUT)

_BATCH = 1 << 20  # coordinates of shares that are drawn at once: memory does not grow with the clients
_HIDDEN = 0.14  # of the trace: where the spectrum's noise reaches beyond, products are not worth theirs
_EDGE = 0.7  # of the spectrum's noise, below which an eigenvalue counts as noise
_RIDGE = 4.0  # of the mean of what is left of the spectrum
_LEAST = 0.02  # of the mean of the whole spectrum, that this is at least

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SumSettings(Settings):
    """Settings of the deployment `sum`.

    Attributes
    ----------
    clients : int
        Clients, each with one record and one share. Where they are more than the records, these are dealt
        again.
    rounds : int
        1: all is learned from one total.
    epsilon, delta : float
        Central: of the total, between data sets in which one client's record is replaced.
    mechanism : {"auto", "moments", "means", "noiseless"}
        What a client adds: its features under its class, and `weight` times their products ("moments"); the
        former alone ("means"); both without noise; or, of the first two, the one that public facts say
        ("auto"): means where the products' noise reaches beyond .14 of their trace, which is 1. That was
        chosen on Fashion-MNIST, in settings of 1,000 to 60,000 clients and epsilon .25 to 2.
    features : {"edges", "pixels", "given"}
        Public features of an image: directions of edges, or pooled pixels; or numbers as they are given.
    weight : float
        Of the products beside the features, above 0. It was chosen on Fashion-MNIST, as the two constants of
        `Classifier` were.
    floor : float
        Least share of the clients that must survive, above 0 and up to 1. Noise is that of so many.
    dropped : float
        Share of the clients that drop out before they add anything, at most 1 - floor.
    """

    data: str = "mnist"
    clients: int = 60_000
    rounds: int = 1
    epsilon: float = 1.0
    delta: float = 1e-6
    mechanism: str = "auto"
    features: str = "edges"
    weight: float = 0.6
    floor: float = 1.0
    dropped: float = 0.0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"data": "digits", "clients": 5_000, "epsilon": 2.0},
        "dropouts": {"floor": 0.9, "dropped": 0.05},
    }

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("mechanism", self.mechanism, MECHANISMS)
        checks.choice("features", self.features, FEATURES)
        checks.integer("rounds", self.rounds, 1, 1)
        for name in ("epsilon", "weight"):
            checks.positive(name, getattr(self, name))
        checks.chance("delta", self.delta)
        if not 0.0 < checks.real("floor", self.floor) <= 1.0:
            raise ValueError("floor: must be above 0, and at most 1")
        if not 0.0 <= checks.real("dropped", self.dropped) <= 1.0 - self.floor:
            raise ValueError("dropped: must be at least 0, and at most 1 - floor")

    @property
    def private(self) -> bool:
        """True where shares have noise."""
        return self.mechanism != WITHOUT

    @property
    def products(self) -> float:
        """Weight of the products, 0 where there are none."""
        return 0.0 if self.mechanism == "means" else self.weight

    def chosen(self, features: int, classes: int) -> SumSettings:
        """Return the settings with "moments" or "means" in place of "auto", by the noise that is known.

        The noise of the products is a symmetric matrix of independent normal entries of a standard deviation
        s on the diagonal, whose eigenvalues reach up to sqrt(2 features) s.
        """
        if self.mechanism != "auto":
            return self
        moments = replace(self, mechanism="moments")
        secure = moments.total(features, classes)
        assert isinstance(secure.kind, Vector)
        noise = secure.stderr() * secure.kind.step / secure.least_survivors
        edge = noise / self.weight * math.sqrt(2.0 * features)
        return replace(self, mechanism="means") if edge > _HIDDEN else moments

    def total(self, features: int, classes: int) -> SecureSum:
        """Return the secure sum of the clients' vectors: two records are 2 sqrt(1 + weight^2) apart."""
        size = features * classes + (features * (features + 1) // 2 if self.products else 0)
        clip = math.sqrt(1.0 + self.products**2)
        floor = math.ceil(self.floor * self.clients)
        return SecureSum(
            Vector(size, clip), epsilon=self.epsilon, delta=self.delta, clients=self.clients, floor=floor
        )


def moments(
    x: NDArray[np.floating], y: NDArray[np.int64], classes: int, weight: float
) -> NDArray[np.float32]:
    """Return what clients add: x e_y and, times a weight, x x^T, whose norms are those of x and its square.

    Parameters
    ----------
    x : ndarray of float, shape (n, features)
        Records of length 1 at most.
    y : ndarray of int, shape (n,)
        Their classes.
    classes : int
    weight : float
        0: no products.

    Returns
    -------
    ndarray of float32, shape (n, features * classes + features (features + 1)/2)
        Products are the upper triangle row by row, those off the diagonal times sqrt(2).
    """
    n, p = x.shape
    placed = np.zeros((n, p, classes), np.float32)
    placed[np.arange(n), :, y] = x
    if not weight:
        return placed.reshape(n, -1)
    rows, columns = np.triu_indices(p)
    scale = np.where(rows == columns, weight, weight * math.sqrt(2.0)).astype(np.float32)
    return np.concatenate([placed.reshape(n, -1), x[:, rows] * x[:, columns] * scale], axis=1)


@dataclass(frozen=True)
class Classifier:
    """Linear scores of classes.

    Attributes
    ----------
    weights : ndarray of float64, shape (features, classes)
    offsets : ndarray of float64, shape (classes,)
    """

    weights: Array
    offsets: Array

    @classmethod
    def of(cls, means: Array, products: Array | None, noise: float, weight: float) -> Classifier:
        """Learn from noisy moments.

        Parameters
        ----------
        means : ndarray of float64, shape (features, classes)
            Mean over the clients of x e_y.
        products : ndarray of float64, shape (features, features), or None
            Mean of x x^T; None takes classes as balls.
        noise : float
            Standard deviation of an entry of `means`, which is public.
        weight : float
            That of `products` has standard deviation noise/weight on the diagonal.

        Notes
        -----
        Linear discriminants: classes are taken as equally frequent and normal, with one covariance. Its
        noise is a symmetric matrix of independent normal entries, whose eigenvalues reach up to r = sqrt(2 p)
        noise/weight. An eigenvalue l becomes sqrt(l^2 - (.7 r)^2), or 0 below; r itself in place of .7 r is
        what Frobenius' norm asks for (Gavish and Donoho, "Optimal shrinkage of singular values", 2017). The
        trace is known, since records have length 1: four times the mean of what is left of it is added to
        all. So where noise hides the covariance, this becomes the nearest class mean.
        """
        p, classes = means.shape
        centres = means * classes
        middle = centres.mean(axis=1, keepdims=True)
        apart = centres - middle
        if products is None:
            inverse = np.eye(p)
        else:
            within = products - centres @ centres.T / classes
            # of the centres' squares, what noise adds is known
            between = float(np.square(centres).sum()) / classes - p * (noise * classes) ** 2
            values, vectors = np.linalg.eigh(within)
            edge = _EDGE * noise / weight * math.sqrt(2.0 * p)
            kept = np.sqrt(np.maximum(values * np.abs(values) - edge * edge, 0.0))
            trace = max(1.0 - between, _LEAST)
            left = (trace - float(kept.sum())) / max(p - int(np.count_nonzero(kept)), 1)
            ridge = _RIDGE * max(left, _LEAST * trace / p)
            inverse = (vectors / (kept + ridge)) @ vectors.T
        weights = inverse @ apart
        offsets = -((middle + apart / 2.0) * weights).sum(axis=0)
        return cls(weights, offsets)

    def accuracy(self, x: NDArray[np.floating], y: NDArray[np.int64]) -> float:
        """Return the share of records whose class has the largest score."""
        scores = x @ self.weights + self.offsets
        return float(np.mean(scores.argmax(axis=1) == y))


@dataclass(frozen=True)
class OneSum(Runnable):
    """Simulation of the deployment: every client draws its share, and the server sees their total."""

    def run(
        self,
        settings: Settings,
        *,
        data: Dataset | None = None,
        threads: int = 1,
        seeded: bool = False,
        watcher: Watcher | None = None,
        stop: Callable[[], None] | None = None,
        durable: bool = False,
    ) -> Summary:
        """Run the round; see `System.run`. Shares are added as they are: what masks them is left out."""
        with dealing(settings, data) as chosen:
            assert isinstance(chosen, SumSettings)
            return self._run(chosen, threads, seeded, watcher, stop)

    def _run(
        self,
        settings: SumSettings,
        threads: int,
        seeded: bool,
        watcher: Watcher | None,
        stop: Callable[[], None] | None,
    ) -> Summary:
        start = time.perf_counter()
        records = HonestRecords.of(settings.data, settings.features)
        folder = RunFolder(folder_of(settings, self.name), settings.lasting(), resume=settings.resume)
        members = dealt(len(records.train), settings)[0]
        members = members[: len(members) - math.floor(settings.dropped * settings.clients)]
        if folder.checkpoint is None:
            row, model = _learned(settings, records, members, seeded, threads, stop)
            folder.record({"round": 1, **row}, vars(model))
            if watcher is not None:
                watcher(folder.rows[-1])
        caveat = ""
        if settings.clients > len(records.train):
            caveat = f"{settings.clients} clients hold {len(records.train)} records, which are dealt again"
        return finished(
            folder,
            settings,
            system=self.name,
            privacy=_privacy(settings, folder.rows[-1].get("spent", math.inf)),
            seconds=time.perf_counter() - start,
            caveat=caveat,
        )


def _learned(
    settings: SumSettings,
    records: HonestRecords,
    members: NDArray[np.intp],
    seeded: bool,
    threads: int,
    stop: Callable[[], None] | None,
) -> tuple[dict[str, Any], Classifier]:
    """Return the metrics of the round, and the classifier."""
    features, classes = records.train.shape[1], records.classes
    settings = settings.chosen(features, classes)
    weight = settings.products
    secure = settings.total(features, classes) if settings.private else None
    wide = 1 << (features * classes + features * features // 2).bit_length()
    batch = max(1, _BATCH // wide)
    total: Any = 0
    for start in range(0, len(members), batch):
        if stop is not None:
            stop()
        part = members[start : start + batch]
        added = moments(records.train[part], records.labels[part], classes, weight)
        if secure is None:
            total = total + added.sum(axis=0, dtype=np.float64)
            continue
        rng = np.random.SeedSequence(settings.seed, spawn_key=(0x5EED, start)) if seeded else None
        shares = secure.share(added, rng=rng, threads=threads)
        total = secure.add(shares) if start == 0 else secure.add(total, shares)
    row: dict[str, Any] = {"reports": len(members), "products": weight}
    if secure is None:
        value, noise = total / len(members), 0.0
    else:
        estimate = secure.decode(total, survivors=len(members))
        value, noise = np.asarray(estimate.value), float(estimate.stderr[0])
        row["stderr"], row["bits"] = noise, secure.bits
        row["bytes-up"] = len(members) * math.ceil(secure.kind.coordinates * secure.bits / 8)
        row["spent"] = secure.guarantee.central(len(members)).epsilon
    means = value[: features * classes].reshape(features, classes)
    products = None
    if weight:
        rows, columns = np.triu_indices(features)
        scale = np.where(rows == columns, weight, weight * math.sqrt(2.0))
        products = np.zeros((features, features))
        products[rows, columns] = products[columns, rows] = value[features * classes :] / scale
    model = Classifier.of(means, products, noise, weight)
    return {"accuracy": model.accuracy(records.test, records.test_labels), **row}, model


def _privacy(settings: SumSettings, spent: float) -> Privacy:
    if not settings.private:
        return NO_PRIVACY
    return Privacy(
        settings.epsilon,
        spent,
        settings.delta,
        covers="a client's record and label, replaced: CENTRAL, of the total, if nothing else is shown",
        not_covered="that the client takes part; a share alone, which a protocol must hide",
    )


SYSTEM = OneSum(
    name=NAME,
    summary="one round of learning from a secure sum, at a central epsilon (none of the papers')",
    settings=SumSettings,
    choices={"mechanism": MECHANISMS, "features": FEATURES},
)
