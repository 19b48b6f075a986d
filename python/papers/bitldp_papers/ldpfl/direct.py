"""LDPFL without messages: the same networks, releases and rounds as the apps, with the course of each.

What a sweep shares (a client's network does not depend on epsilon or alpha) is computed once a process.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp_papers.ldpfl import extractor, features
from bitldp_papers.ldpfl.settings import WITHOUT, LDPFLSettings
from bitldp_papers.ldpfl.system import FEWEST, initial, privacy
from bitldp_papers.models import nets
from bitldp_papers.run.share import holding

__all__ = ["Client", "clients", "learned"]

_RELEASE, _TRAIN = 0x5EED, 0x02DE


@dataclass(frozen=True, eq=False)
class Client:
    """One client's network and what it makes of its records.

    Attributes
    ----------
    features, tests : ndarray of float32, shape (n, flat)
        Of its records and of the test records.
    labels : ndarray of int, shape (n,)
    course : tuple of (float, float)
        Accuracy of its own network on its records and on the test records, after each epoch.
    """

    features: NDArray[np.float32]
    tests: NDArray[np.float32]
    labels: NDArray[Any]
    course: tuple[tuple[float, float], ...]


def clients(settings: LDPFLSettings) -> tuple[Client, ...]:
    """Return all clients of a run; those whose networks are the same are trained once."""
    return _clients(
        replace(
            settings,
            **{
                name: getattr(LDPFLSettings(), name)
                for name in (
                    *("mechanism", "epsilon", "alpha", "bits", "integer_bits", "hidden", "rounds", "epochs"),
                    *("batch", "rate", "optimizer", "out", "resume"),
                )
            },
        )
    )


@lru_cache(maxsize=4)
def _clients(settings: LDPFLSettings) -> tuple[Client, ...]:
    network = settings.network()
    tests, labels = features.tested(settings)
    found = []
    for place in range(settings.clients):
        held = holding(settings.data, place, settings.clients, seed=settings.seed, most=settings.most)
        seed = np.random.SeedSequence(settings.seed, spawn_key=(_TRAIN, place, 0))
        course: list[tuple[float, float]] = []

        def watch(current: Any, held: Any = held, course: list[tuple[float, float]] = course) -> None:
            some = slice(len(labels))
            course.append(
                (
                    extractor.accuracy(network, current, held.x[some], held.y[some]),
                    extractor.accuracy(network, current, tests, labels),
                )
            )

        trained = features.own_network(settings, held.x, held.y, seed, watch)
        own, looked = (extractor.extract(network, trained, each) for each in (held.x, tests))
        found.append(Client(own, looked, held.y, tuple(course)))
    return tuple(found)


def learned(settings: LDPFLSettings) -> dict[str, Any]:
    """Return the course of a run: scores after each round, and the epsilons.

    Parameters
    ----------
    settings : LDPFLSettings
        Releases take their randomness from its seed: for experiments only.

    Returns
    -------
    dict
        "accuracy" and "loss", lists by round, on clean test records seen through each client's own network,
        averaged over the clients; "claimed" and "exact" epsilon of a record's features.
    """
    labels = features.tested(settings)[1]
    group = clients(settings)
    sent = [_released(settings, each.features, place) for place, each in enumerate(group)]
    looked = [features.plain_bits(settings, each.tests) for each in group]
    model = initial(settings)
    course: dict[str, Any] = {"accuracy": [], "loss": []}
    for turn in range(1, settings.rounds + 1):
        models = [
            nets.train(
                model,
                bits,
                each.labels,
                epochs=settings.epochs,
                batch=settings.batch,
                rate=settings.rate,
                optimizer=settings.optimizer,
                seed=np.random.SeedSequence(settings.seed, spawn_key=(_TRAIN, place, turn)),
            )
            for place, (each, bits) in enumerate(zip(group, sent, strict=True))
        ]
        if len(models) >= FEWEST:  # one client's update is dropped, another one in each round
            models.pop(random.Random(f"bitldp {settings.seed} {turn}").randrange(len(models)))
        model = [np.mean(layers, axis=0) for layers in zip(*models, strict=True)]
        scores = [nets.scores(model, bits, labels) for bits in looked]
        for name in ("accuracy", "loss"):
            course[name].append(float(np.mean([each[name] for each in scores])))
    about = privacy(settings)
    return {**course, "claimed": about.claimed, "exact": about.record}


def _released(settings: LDPFLSettings, values: NDArray[np.float32], place: int) -> NDArray[np.uint8]:
    if settings.mechanism == WITHOUT:
        return features.plain_bits(settings, values)
    mechanism: Any = settings.build(settings.flat())
    seed = np.random.SeedSequence(settings.seed, spawn_key=(_RELEASE, place))
    bits: NDArray[np.uint8] = mechanism.randomize(values, rng=seed, output="bits")
    return bits
