"""Deployment `honest`: a linear model of public features of images, from one report of each client."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from bitldp.base import checks
from bitldp.base.files import fleeting
from bitldp.compression import CrossPolytope
from bitldp.federated import Layout, UpdateCodec, simulate
from bitldp.ledger import Ledger
from numpy.typing import NDArray

from bitldp_papers.run.drive import Summary, Watcher, finished, folder_of
from bitldp_papers.run.folder import RunFolder
from bitldp_papers.run.rounds import NO_PRIVACY, Privacy
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.share import loaded
from bitldp_papers.run.system import Runnable

__all__ = ["FEATURES", "MECHANISMS", "NAME", "SYSTEM", "Honest", "HonestSettings", "edges", "pixels", "unit"]

NAME = "honest"
WITHOUT = "noiseless"
MECHANISMS = ("polytope", WITHOUT)


@dataclass(frozen=True, kw_only=True)
class HonestSettings(Settings):
    """Settings of the deployment `honest`.

    Attributes
    ----------
    clients, rounds : int
        Clients, each with one record, and cohorts of (nearly) equal size in which they take part:
        each client once. Where they are more than the records, these are dealt again.
    epsilon : float
        Of a client, for the whole run: all that it ever sends is one report.
    mechanism : {"polytope", "noiseless"}
        `CrossPolytope`, each client with a public rotation of its own; or updates that are only clipped.
    features : {"edges", "pixels"}
        Public features of an image: directions of edges, or pixels pooled to 8 x 8.
    centring : int
        Rounds before the training, whose clients report their features themselves, for the common mean that
        the others take off. 0: none is taken off.
    noise : float
        Standard deviation of the noise in a score that all rounds together leave: the step size follows from
        it and from the variance of the mechanism, so that nothing is tuned on private data.
    rate : float
        The largest step size: what is used without noise.
    momentum : float
        Share of a step that is kept in the next, from 0 to below 1.
    clip : float
        Norm that a gradient is clipped to: l2.
    average : float
        Share of the training's last rounds whose models are averaged, from 0 (the last one alone) to 1.
    """

    data: str = "mnist"
    clients: int = 60_000
    rounds: int = 60
    epsilon: float = 4.0
    mechanism: str = "polytope"
    features: str = "edges"
    centring: int = 3
    noise: float = 1.0
    rate: float = 3.0
    momentum: float = 0.9
    clip: float = 0.5
    average: float = 0.0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"data": "digits", "clients": 20_000, "rounds": 20, "centring": 2},
        "pixels": {"features": "pixels"},
    }

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("mechanism", self.mechanism, MECHANISMS)
        checks.choice("features", self.features, FEATURES)
        checks.integer("rounds", self.rounds, 1, self.clients)
        checks.integer("centring", self.centring, 0, self.rounds - 1)
        for name in ("epsilon", "noise", "rate", "clip"):
            checks.positive(name, getattr(self, name))
        if not 0.0 <= checks.real("momentum", self.momentum) < 1.0:
            raise ValueError("momentum: must be in [0, 1)")
        if not 0.0 <= checks.real("average", self.average) <= 1.0:
            raise ValueError("average: must be in [0, 1]")

    @property
    def private(self) -> bool:
        """True where updates are released through a mechanism."""
        return self.mechanism != WITHOUT

    @property
    def training(self) -> int:
        """Rounds that train."""
        return self.rounds - self.centring

    @property
    def averaged(self) -> int:
        """Rounds whose models are averaged."""
        return max(1, math.ceil(self.average * self.training))

    def codec(self, clip: float) -> UpdateCodec:
        """Return the codec of client and server for vectors of at most a norm."""
        return UpdateCodec(
            lambda size: CrossPolytope(size, epsilon=self.epsilon, radius=clip), clip=clip, update="gradient"
        )

    def step(self, size: int) -> float:
        """Return the step size for gradients of `size` coordinates.

        Each of T rounds of n clients leaves noise of variance v/n in a coordinate of the mean gradient; by
        momentum a round's part ends up in the weights 1/(1 - momentum) times. A score is the product of the
        weights with features of length 1, so its noise is that of one coordinate of the weights:
        rate/(1 - momentum) sqrt(T v/n).
        """
        if not self.private:
            return self.rate
        mechanism = CrossPolytope(size, epsilon=self.epsilon, radius=self.clip)
        each = mechanism.total_variance() / size
        spread = math.sqrt(self.training * each / (self.clients // self.rounds))
        return min(self.rate, self.noise * (1.0 - self.momentum) / spread)


FEATURES = ("edges", "pixels")

_SIDE = 8  # of pooled pixels
_DIRECTIONS = 4
_BLOCK = 1 << 12  # images at once
_TINY = 1e-9

Array = NDArray[np.float32]


def unit(x: Array) -> Array:
    """Return rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.maximum(lengths, _TINY), np.float32)


def pixels(images: Array) -> Array:
    """Return square roots of pixels pooled to 8 x 8, less their mean, of length 1.

    Parameters
    ----------
    images : ndarray of float32, shape (n, side, side)
        Pixels in [0, 1].

    Returns
    -------
    ndarray of float32, shape (n, 64) or (n, side * side) where that is less
    """
    side = images.shape[1]
    pool = _areas(min(_SIDE, side), side)
    pooled = np.sqrt(np.maximum(pool @ images @ pool.T, 0.0)).reshape(len(images), -1)
    return unit(pooled - pooled.mean(axis=1, keepdims=True))


def edges(images: Array) -> Array:
    """Return square roots of how much of an edge runs in each of four directions, by cell, of length 1.

    Slopes of neighbouring pixels are dealt to the two nearest directions, and summed over windows that
    overlap by half; each direction has its mean taken off. Source: histograms of oriented gradients (Dalal
    and Triggs, CVPR 2005), in place of the scattering features of Tramer and Boneh, "Differentially private
    learning needs better features", ICLR 2021.

    Parameters
    ----------
    images : ndarray of float32, shape (n, side, side)
        Pixels in [0, 1].

    Returns
    -------
    ndarray of float32, shape (n, 4 * cells**2)
        Cells are a fourth of the side, at least 4.
    """
    side = images.shape[1]
    cells = max(4, side // 4)
    window = _windows(cells, side)
    sums = np.empty((len(images), _DIRECTIONS, cells, cells), np.float32)
    for start in range(0, len(images), _BLOCK):
        part = images[start : start + _BLOCK]
        across, down = np.zeros_like(part), np.zeros_like(part)
        across[:, :, 1:-1] = part[:, :, 2:] - part[:, :, :-2]
        down[:, 1:-1] = part[:, 2:] - part[:, :-2]
        turn = np.mod(np.arctan2(down, across) / np.float32(np.pi) * _DIRECTIONS, _DIRECTIONS)
        steep = np.hypot(across, down)
        for direction in range(_DIRECTIONS):
            apart = np.abs(turn - direction)
            weights = np.maximum(0.0, 1.0 - np.minimum(apart, _DIRECTIONS - apart))
            sums[start : start + _BLOCK, direction] = window @ (steep * weights) @ window.T
    rooted = np.sqrt(np.maximum(sums, 0.0)).reshape(len(images), _DIRECTIONS, -1)
    return unit((rooted - rooted.mean(axis=2, keepdims=True)).reshape(len(images), -1))


def _areas(count: int, side: int) -> Array:
    """Return the shares of pixels in `count` parts of equal length, shape (count, side)."""
    ends = np.linspace(0.0, side, count + 1)
    columns = np.arange(side)
    shares = np.minimum(columns + 1, ends[1:, None]) - np.maximum(columns, ends[:-1, None])
    return np.asarray(np.maximum(shares, 0.0) * count / side, np.float32)


def _windows(count: int, side: int) -> Array:
    """Return triangular windows, each as wide as two parts, shape (count, side)."""
    centres = (np.arange(count) + 0.5) * side / count
    apart = np.abs(np.arange(side) + 0.5 - centres[:, None]) * count / side
    return np.asarray(np.maximum(0.0, 1.0 - apart), np.float32)


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
        """Return one of the kinds of features of a data set of square images; a process makes them once.

        Raises
        ------
        ValueError
            If its records are no square images with classes.
        """
        data, train, test = loaded(name)
        side = round(train.shape[1] ** 0.5)
        if side * side != train.shape[1] or not data.classes:
            raise ValueError(f"data: {name} has no square images with classes")
        of = edges if kind == "edges" else pixels

        def features(x: Array) -> Array:
            return of(((x + 1.0) / 2.0).reshape(-1, side, side))

        labels = (np.asarray(each, np.int64) for each in (data.train_labels, data.test_labels))
        first, second = labels
        return cls(features(train), first, features(test), second, data.classes)


@dataclass
class State:
    """State of a server between rounds: the mean of the features, the weights, the last step, a sum."""

    mean: Array
    weights: NDArray[np.float64]
    moved: NDArray[np.float64]
    summed: NDArray[np.float64]

    @classmethod
    def new(cls, features: int, classes: int) -> State:
        """Return the state before the first round."""
        zeros = np.zeros((features, classes))
        return cls(np.zeros(features, np.float32), zeros, zeros, zeros)


@dataclass(frozen=True)
class Honest(Runnable):
    """Simulation of the deployment: cohorts of clients, each of which takes part in one round."""

    def run(
        self,
        settings: Settings,
        *,
        threads: int = 1,
        seeded: bool = False,
        watcher: Watcher | None = None,
        stop: Callable[[], None] | None = None,
        durable: bool = False,
    ) -> Summary:
        """Run the rounds; see `System.run`. Nothing but the server's files is kept: no client has any."""
        assert isinstance(settings, HonestSettings)
        if durable:
            return self._run(settings, threads, seeded, watcher, stop)
        with fleeting():
            return self._run(settings, threads, seeded, watcher, stop)

    def _run(
        self,
        settings: HonestSettings,
        threads: int,
        seeded: bool,
        watcher: Watcher | None,
        stop: Callable[[], None] | None,
    ) -> Summary:
        start = time.perf_counter()
        records = HonestRecords.of(settings.data, settings.features)
        folder = RunFolder(folder_of(settings, self.name), settings.lasting(), resume=settings.resume)
        state, done = State.new(records.train.shape[1], records.classes), 0
        if folder.checkpoint is not None:
            state, done = State(**folder.checkpoint.arrays), folder.checkpoint.round
        members = dealt(len(records.train), settings)
        rate = settings.step(state.weights.size)
        for turn in range(done + 1, settings.rounds + 1):
            if stop is not None:
                stop()
            rng = np.random.SeedSequence(settings.seed, spawn_key=(0x5EED, turn)) if seeded else None
            cohort = members[turn - 1]
            x, y = records.train[cohort], records.labels[cohort]
            if turn <= settings.centring:
                row = _centred(settings, state, x, turn, rng, threads)
            else:
                row = _stepped(settings, state, x, y, turn, rate, rng, threads)
            folder.record({"round": turn, **_scores(settings, state, records, turn), **row}, vars(state))
            if watcher is not None:
                watcher(folder.rows[-1])
        exact = max(row.get("spent", 0.0) for row in folder.rows)
        caveat = ""
        if settings.clients > len(records.train):
            caveat = f"{settings.clients} clients hold {len(records.train)} records, which are dealt again"
        return finished(
            folder,
            settings,
            system=self.name,
            privacy=_privacy(settings, exact),
            seconds=time.perf_counter() - start,
            caveat=caveat,
        )


def dealt(records: int, settings: Settings) -> list[NDArray[np.intp]]:
    """Return the records of the clients of each round: each once, before any is dealt again."""
    rng = np.random.default_rng(np.random.SeedSequence([settings.seed, 0xDA7A]))
    deals = [rng.permutation(records) for _ in range(-(-settings.clients // records))]
    return np.array_split(np.concatenate(deals)[: settings.clients], settings.rounds)


def prepared(x: Array, mean: Array) -> Array:
    """Return features less the mean, of length 1, as each client computes them for itself."""
    return unit(x - mean) if mean.any() else x


def softmax(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the probabilities of classes, shape (n, classes)."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: NDArray[np.floating] = powers / powers.sum(axis=1, keepdims=True)
    return shares


def gradients(x: Array, y: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the gradient of each record's log loss, shape (n, features * classes)."""
    errors = softmax(x @ weights.astype(np.float32))
    errors[np.arange(len(y)), y] -= 1.0
    rows: NDArray[np.float32] = (x[:, :, None] * errors[:, None, :]).reshape(len(x), -1)
    return rows


def _released(
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


def _centred(
    settings: HonestSettings, state: State, x: Array, turn: int, rng: Any, threads: int
) -> dict[str, Any]:
    """Let a cohort report its features, and add them to the mean of those that did before.

    The mean is shrunk by what the noise is known to add to its square (James and Stein), so that little is
    taken off where little is known.
    """
    size = x.shape[1]
    reported, metrics = _released(settings, lambda a, b: x[a:b], size, len(x), 1.0, rng, threads)
    state.summed = state.summed + np.pad(reported[:, None], ((0, 0), (0, state.weights.shape[1] - 1)))
    mean = state.summed[:, 0] / turn
    noise = size * metrics.get("stderr", 0.0) ** 2 / turn
    state.mean = (mean * max(0.0, 1.0 - noise / max(float(mean @ mean), 1e-300))).astype(np.float32)
    if turn == settings.centring:
        state.summed = np.zeros_like(state.weights)
    return metrics


def _stepped(
    settings: HonestSettings,
    state: State,
    x: Array,
    y: NDArray[np.int64],
    turn: int,
    rate: float,
    rng: Any,
    threads: int,
) -> dict[str, Any]:
    """Let a cohort report its gradients, and take a step."""
    features = prepared(x, state.mean)

    def rows(start: int, stop: int) -> NDArray[np.float32]:
        return gradients(features[start:stop], y[start:stop], state.weights)

    step, metrics = _released(settings, rows, state.weights.size, len(x), settings.clip, rng, threads)
    state.moved = settings.momentum * state.moved + step.reshape(state.weights.shape)
    state.weights = state.weights - rate * state.moved
    if turn > settings.rounds - settings.averaged:
        state.summed = state.summed + state.weights
    return metrics


def _scores(settings: HonestSettings, state: State, records: HonestRecords, turn: int) -> Mapping[str, float]:
    """Return the accuracy on clean test records of the model that would be handed out now."""
    count = turn - (settings.rounds - settings.averaged)
    weights = state.summed / count if count > 0 else state.weights
    scores = prepared(records.test, state.mean) @ weights.astype(np.float32)
    return {"accuracy": float(np.mean(scores.argmax(axis=1) == records.test_labels))}


def _privacy(settings: HonestSettings, exact: float) -> Privacy:
    if not settings.private:
        return NO_PRIVACY
    return Privacy(
        settings.epsilon,
        exact,
        covers="a client (its record, its label): all that it sends in the whole run, against any other",
        not_covered="that the client takes part, and in which round",
    )


SYSTEM = Honest(
    name=NAME,
    summary="one report of each client in its life, at a client's true epsilon (none of the papers')",
    settings=HonestSettings,
    choices={"mechanism": MECHANISMS, "features": FEATURES},
)
