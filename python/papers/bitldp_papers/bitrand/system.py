"""BitRand (Algorithm 1): records are randomized once, bit by bit, and train a network in all rounds.

Beside it are the baselines of the paper: other mechanisms on the features, or on the updates with and without
an anonymiser, and training without privacy; and the honest deployment (`once`), which releases a record once
at an epsilon that is true. Flower's own commands start the same two apps:
``bitldp_papers.bitrand:server_app`` and ``:client_app``.

Without messages (`learned`), clients that take one step on all of their records, and hold equally many, make
together one step on all records: a round is one gradient, and what the paper sweeps (ten budgets by five, by
mechanism, by seed) takes minutes in place of days.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from bitldp.base.keys import RandomSource
from bitldp.estimate import project_simplex
from bitldp.federated import Released, UpdateCodec
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import added, composed
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.bitrand import once
from bitldp_papers.bitrand.settings import (
    BITWISE,
    LABELS,
    MECHANISMS,
    PLACES,
    BitRandSettings,
    largest_value,
)
from bitldp_papers.bitrand.updates import Layers, Shuffled
from bitldp_papers.models import nets
from bitldp_papers.run.client import Client
from bitldp_papers.run.rounds import NO_PRIVACY, Descent, Mod, Privacy, Round, Rows, Turn
from bitldp_papers.run.share import Holding, holding, holdings, loaded
from bitldp_papers.run.system import System
from bitldp_papers.run.vectors import Model, flat, in_ball, shaped

__all__ = ["SYSTEM", "client_app", "learned", "rounds_of", "server_app", "trained"]

_RELEASE, _LABELS = 0x5EED, 0x1ABE  # of the seed, without messages
_TEST = 0x7E57  # of the seed of the randomized test records
_BLOCK = 1 << 24  # numbers of updates that are held at a time
_ASIDE = "that the client takes part, and how many records it holds"

Floats = NDArray[np.floating]


def plain(settings: BitRandSettings, x: Floats) -> NDArray[np.float32]:
    """Return features as a network without noise sees them: in [-1, 1], the range of the code."""
    share = settings.factor / 2.0**settings.integer_bits
    return np.clip(np.asarray(x) * share, -1.0, 1.0).astype(np.float32)


def sources(settings: BitRandSettings, x: Floats) -> NDArray[np.float32]:
    """Return features as their mechanism takes them: in the code's range, or in [-1, 1] for numbers."""
    inside = plain(settings, x)
    return inside * np.float32(2.0**settings.integer_bits) if settings.mechanism in BITWISE else inside


def ranged(settings: BitRandSettings, values: Floats, mechanism: Mechanism) -> NDArray[np.float32]:
    """Return released features divided by their public range, so that they lie in [-1, 1]."""
    return np.asarray(values / largest_value(mechanism, settings.integer_bits), np.float32)


def targets(mechanism: Mechanism, reports: NDArray[Any]) -> NDArray[Any]:
    """Return released labels as a network trains on them: classes, or soft labels of label-Laplace's vectors.

    The noisy vectors are projected to the simplex, which costs nothing: a cross-entropy of negative labels
    has no least value.
    """
    decoded: NDArray[Any] = np.asarray(mechanism.decode(reports))
    return project_simplex(decoded).astype(np.float32) if decoded.ndim == 2 else decoded


def randomized(settings: BitRandSettings, x: Floats, *, rng: RandomSource) -> NDArray[np.float32]:
    """Return features released as those of clients' records, for a test on randomized records."""
    if not settings.private or settings.place == "updates":
        return plain(settings, x)
    mechanism = settings.features_mechanism(x.shape[1])
    randomize: Callable[..., Any] = mechanism.randomize
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one key for an experiment's test records, said in the settings
        values = randomize(sources(settings, x), rng=rng, output="values")
    return ranged(settings, values, mechanism)


def seeded(settings: BitRandSettings, *key: int) -> np.random.SeedSequence:
    """Return a seed of a run without messages."""
    return np.random.SeedSequence(settings.seed, spawn_key=key)


def dealt(settings: BitRandSettings) -> list[Holding]:
    """Return the records of every client."""
    return holdings(settings.data, settings.clients, seed=settings.seed, most=settings.most)


def every_record(settings: BitRandSettings) -> Holding:
    """Return the records of all clients together."""
    if settings.most is None:
        data, train, _ = loaded(settings.data)
        return Holding(train, data.train_labels)
    return holding(settings.data, 0, 1, seed=settings.seed, most=settings.most)


def scoring_records(settings: BitRandSettings) -> Holding:
    """Return the test records that score."""
    data, _, test = loaded(settings.data)
    count = settings.tested or len(test)
    return Holding(test[:count], data.test_labels[:count])


class Dense(Round[BitRandSettings]):
    """Training of the paper's dense network, whichever way records or updates are released."""

    def initial(self) -> Model:
        settings = self.settings
        data, train, _ = loaded(settings.data)
        sizes = (train.shape[1], settings.hidden, settings.hidden, data.classes)
        return list(nets.initial(sizes, settings.seed))

    @cached_property
    def _tests(self) -> dict[str, NDArray[np.float32]]:
        """Features of the test records, clean and (where records are) randomized, by a prefix of scores."""
        settings = self.settings
        test = scoring_records(settings).x
        tests = {"": plain(settings, test)}
        if settings.private and settings.place == "features":
            seed = np.random.SeedSequence([settings.seed, _TEST])
            tests["randomized-"] = randomized(settings, test, rng=seed)
        return tests

    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        labels = scoring_records(self.settings).y
        scores: dict[str, float] = {}
        for prefix, x in self._tests.items():
            for name, score in nets.judged(nets.logits(list(model), x), labels).items():
                scores[prefix + name] = score
        return {**scores, "loss": nets.loss(list(model), self._tests[""], labels)}

    def fitted(self, turn: Turn, x: Floats, y: NDArray[Any]) -> Model:
        """Return the received network after training on a client's records."""
        settings = self.settings
        model = nets.train(
            turn.arrays(),
            x,
            y,
            epochs=settings.epochs,
            batch=settings.batch or len(x),
            rate=settings.rate,
            seed=turn.client.training_seed(settings, turn.number),
        )
        return list(model)


class RecordRounds(Dense):
    """Records released once train the network in every round; or records as they are; or none."""

    def exposed(self) -> str:
        settings = self.settings
        if settings.mechanism == "random":
            return ""
        if not settings.private:
            return "a model trained on the records as they are"
        return "" if settings.labelled else "a model trained on the labels as they are"

    def privacy(self) -> Privacy:
        settings = self.settings
        if settings.mechanism == "random":
            return Privacy(claimed=0.0, record=0.0, covers="all records: nothing of them is looked at")
        if not settings.private:
            return NO_PRIVACY
        data, train, _ = loaded(settings.data)
        features = settings.features_mechanism(train.shape[1]).guarantee.record
        if not settings.labelled:
            return Privacy(
                claimed=settings.epsilon,
                record=features,
                covers="the features of one record of a client against any others",
                not_covered=f"the labels, which train the network as they are (label_epsilon=inf); {_ASIDE}",
            )
        return Privacy(
            claimed=added(settings.epsilon, settings.label_epsilon),
            record=added(features, settings.label_mechanism(data.classes).guarantee.record),
            covers="one record (features and label) of a client against any other",
            not_covered=_ASIDE,
        )

    def caveat(self) -> str:
        settings = self.settings
        if not settings.private or settings.place == "updates":
            return ""
        said = (
            "accuracy is on clean test records, randomized-accuracy on test records that were released alike"
        )
        return said if math.isfinite(settings.label_epsilon) else f"labels leave as they are; {said}"

    def _records(self, client: Client) -> tuple[Floats, NDArray[Any]]:
        """Return the records that a client trains on: as they were released, or as they are."""
        settings = self.settings
        if not settings.private:
            held = client.holding(settings, settings.most)
            return plain(settings, held.x), held.y
        data, train, _ = loaded(settings.data)
        features = settings.features_mechanism(train.shape[1])
        labels = settings.label_mechanism(data.classes) if settings.labelled else None

        def original() -> tuple[NDArray[Any], NDArray[Any] | None]:
            held = client.holding(settings, settings.most)
            return sources(settings, held.x), held.y if labels is not None else None

        released = released_once(settings, client, features, labels, "values", original)
        x = ranged(settings, np.asarray(released.features), features)
        if labels is None:
            return x, client.holding(settings, settings.most).y
        assert released.labels is not None
        return x, targets(labels, released.labels)

    def train(self, turn: Turn) -> Model:
        """Train the received model on the client's records."""
        if self.settings.mechanism == "random":
            return turn.arrays()
        return self.fitted(turn, *self._records(turn.client))

    def trained(self) -> Model:
        """Return the model after all rounds, without messages: each is one step on all records."""
        settings = self.settings
        if settings.mechanism == "random":
            return self.initial()
        data, _, _ = loaded(settings.data)
        held = every_record(settings)
        x, y = randomized(settings, held.x, rng=seeded(settings, _RELEASE)), held.y
        if settings.private and settings.labelled:
            labels: Any = settings.label_mechanism(data.classes)
            y = targets(labels, labels.randomize(y, rng=seeded(settings, _LABELS)))
        words: Any = {"batch": len(x), "rate": settings.rate, "seed": settings.seed}
        return list(nets.train(self.initial(), x, y, epochs=settings.rounds, **words))


class Updates(Dense, Descent[BitRandSettings]):
    """The network's updates, or LDP-FL's weights, are released in every round."""

    @property
    def rate(self) -> float:
        return -1.0

    @cached_property
    def size(self) -> int:
        """Number of weights."""
        return sum(array.size for array in self.initial())

    @cached_property
    def layers(self) -> Layers | None:
        """Ranges of LDP-FL's weights."""
        settings = self.settings
        return Layers(self.initial(), settings.spread) if settings.mechanism == "ldp-fl" else None

    def codec(self) -> UpdateCodec:
        return UpdateCodec(self.settings.update_mechanism, **self.settings.update_options())

    def privacy(self) -> Privacy:
        one = self.settings.update_mechanism(self.size).guarantee
        return Privacy(
            claimed=self.settings.epsilon,
            record=composed(one.record, self.settings.rounds),
            covers="all records of a client together, against any others",
            not_covered="that the client takes part",
        )

    def mod(self, turn: Turn) -> Mod:
        one = self.settings.update_mechanism(self.size).guarantee
        return turn.client.update_mod(self.settings, self.codec(), composed(one.record, self.settings.rounds))

    def train(self, turn: Turn) -> Model:
        """Train the received model on the client's records."""
        held = turn.client.holding(self.settings, self.settings.most)
        model = self.fitted(turn, plain(self.settings, held.x), held.y)
        return model if self.layers is None else self.layers.standardized(model)

    def strategy(self, first_round: int, rows: Rows) -> FedAvg:
        settings = self.settings
        return Shuffled(
            self.codec(),
            anonymiser=settings.anonymiser,
            layers=self.layers,
            first_round=first_round,
            **settings.federation(),
        )

    @cached_property
    def _held(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Every client's records, (clients, n, features) and (clients, n): as many of each."""
        held = dealt(self.settings)
        least = min(len(each.x) for each in held)
        return (
            np.stack([plain(self.settings, each.x[:least]) for each in held]),
            np.stack([each.y[:least] for each in held]),
        )

    def mean(self, model: Model, turn: int) -> tuple[NDArray[np.float64], float]:
        """Release the updates of all clients after one step each, block by block.

        An anonymiser shuffles each coordinate over the clients, which leaves the mean, all that the server
        takes: it is left out here, and not in the apps.
        """
        settings, (x, y) = self.settings, self._held
        mechanism: Any = settings.update_mechanism(self.size)
        clip, total = settings.update_options()["clip"], np.zeros(self.size)
        block = max(1, _BLOCK // self.size)
        for first in range(0, len(x), block):
            slopes = nets.group_gradients(model, x[first : first + block], y[first : first + block])
            if self.layers is None:
                rows = in_ball(-settings.rate * flat(slopes, len(slopes[0])), clip) / np.float32(clip)
            else:
                weights = [w - settings.rate * g for w, g in zip(model, slopes, strict=True)]
                rows = flat(self.layers.standardized(weights), len(weights[0]))
            seed = seeded(settings, _RELEASE, turn - 1, first)
            total += mechanism.randomize(rows, rng=seed, output="values").sum(axis=0, dtype=np.float64)
        return clip * (total / len(x)), 0.0

    def played(self, model: Model, turn: int) -> Model:
        """Return the model after a round; LDP-FL's mean takes its place."""
        if self.layers is None:
            return super().played(model, turn)
        mean, _ = self.mean(model, turn)
        return self.layers.restored(shaped(mean.astype(np.float32), model))

    def trained(self) -> Model:
        """Return the model after all rounds, without messages."""
        model = self.initial()
        for turn in range(1, self.settings.rounds + 1):
            model = self.played(model, turn)
        return model


class OnceRound(Round[BitRandSettings]):
    """Records released once at a true epsilon: each client sends its estimate of the classifier's matrix."""

    @cached_property
    def release(self) -> once.RecordRelease:
        """Release of a record."""
        data, train, _ = loaded(self.settings.data)
        return self.settings.record_release(train.shape[1], data.classes)

    @property
    def _classes(self) -> int:
        return loaded(self.settings.data)[0].classes

    def initial(self) -> Model:
        features = loaded(self.settings.data)[1].shape[1]
        return list(once.replied(np.zeros((features, self._classes), np.float32)))

    def privacy(self) -> Privacy:
        return Privacy(
            claimed=self.settings.epsilon,
            record=self.release.epsilon,
            covers="one record (features and label) of a client against any other",
            not_covered=_ASIDE,
        )

    def caveat(self) -> str:
        return f"released as: {self.release}"

    def _inside(self, x: Floats) -> NDArray[np.float64]:
        return in_ball(x, self.settings.radius).astype(np.float64)

    @cached_property
    def _test(self) -> NDArray[np.float64]:
        return self._inside(scoring_records(self.settings).x)

    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        table = once.scores_of(model, self._test, self.settings.clients)
        return nets.judged(table, scoring_records(self.settings).y)

    def _original(self, held: Holding) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
        """Return a client's records as they are released: the label apart, or packed with the features."""
        x = self._inside(held.x)
        if self.release.labels is not None:
            return x, held.y
        return once.packed(x, held.y, self._classes), None

    def _answer(self, features: NDArray[Any], labels: NDArray[Any] | None) -> Model:
        return list(once.replied(once.cross(self.release, features, labels, self._classes)))

    def train(self, turn: Turn) -> Model:
        """Return the client's estimate, from its released records."""
        client, release = turn.client, self.release
        released = released_once(
            self.settings,
            client,
            release.features,
            release.labels,
            "codes",
            lambda: self._original(client.holding(self.settings, self.settings.most)),
        )
        return self._answer(released.features, released.labels)

    def trained(self) -> Model:
        """Return the mean of all clients' estimates, without messages."""
        features: Any = self.release.features
        labels: Any = self.release.labels
        answers = []
        for index, held in enumerate(dealt(self.settings)):
            x, y = self._original(held)
            if y is not None:
                y = labels.randomize(y, rng=seeded(self.settings, _LABELS, index))
            reports = features.randomize(x, rng=seeded(self.settings, _RELEASE, index))
            columns = np.hstack([part.reshape(len(x), -1) for part in reports])
            answers.append(self._answer(columns, y))
        return [np.mean(each, axis=0) for each in zip(*answers, strict=True)]


def released_once(
    settings: BitRandSettings,
    client: Client,
    features: Mechanism,
    labels: Mechanism | None,
    output: str,
    original: Callable[[], tuple[NDArray[Any], NDArray[Any] | None]],
) -> Released:
    """Return the client's records as they were released, the first time that they are asked for."""
    client.same(settings, settings.most)
    needed = added(features.guarantee.record, 0.0 if labels is None else labels.guarantee.record)
    kept = client.private_data(features, needed, labels=labels, output=output)
    return kept.get(original, rng=client.release_seed(settings))


def rounds_of(settings: BitRandSettings) -> RecordRounds | Updates | OnceRound:
    """Return the rounds that the settings name."""
    if settings.once:
        return OnceRound(settings)
    return Updates(settings) if settings.private and settings.place == "updates" else RecordRounds(settings)


def learned(settings: BitRandSettings) -> dict[str, float]:
    """Return the scores of a whole run without messages, with its claimed and its exact epsilon.

    Parameters
    ----------
    settings : BitRandSettings
        With ``batch=0`` and ``epochs=1``: one step a client and round. Releases take their randomness from
        the seed: for experiments only.

    Returns
    -------
    dict
        "accuracy" and "auc" on clean test records, "randomized-accuracy" and "randomized-auc" on test records
        that were released alike, where features are; "loss"; "claimed" and "exact", epsilons.

    Raises
    ------
    ValueError
        For settings whose rounds are not one step of each client.
    """
    rounds = rounds_of(settings)
    about = rounds.privacy()
    return {**rounds.scores(trained(settings)), "claimed": about.claimed, "exact": about.record}


def trained(settings: BitRandSettings) -> Model:
    """Return the model after all rounds; see `learned`."""
    if not settings.once and (settings.batch, settings.epochs) != (0, 1):
        raise ValueError("batch, epochs: must be 0 and 1, so that a round is one step on all records")
    return rounds_of(settings).trained()


SYSTEM = System(
    name="bitrand",
    summary="records randomized once, bit by bit, and a dense network trained on them (BitRand, Algorithm 1)",
    settings=BitRandSettings,
    rounds=rounds_of,
    choices={"mechanism": MECHANISMS, "place": PLACES, "label": LABELS},
)
client_app, server_app = SYSTEM.client_app, SYSTEM.server_app
