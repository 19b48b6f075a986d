"""Accuracy of an adapter on a frozen public layer, by private updates: without noise, by ours, by Flower's.

    BITLDP_DATA=... python benches/adapter.py             # MNIST, three seeds; exits with 1 below a goal
    BITLDP_DATA=... python benches/adapter.py --record    # and keep the figures
    BITLDP_DATA=... python benches/adapter.py --tune      # on Fashion-MNIST: what chose the steps

The public part is a layer of 128 patches of 6 x 6 pixels that k-means chose from Fashion-MNIST (Coates, Lee
and Ng, AISTATS 2011), pooled over four quarters of an image, and the 160 directions in which those vary most;
it is never trained again. The adapter is the linear layer after it, 1,610 numbers. Each client holds one
image and its label, and sends one gradient in its life, clipped to 1, at epsilon 8; ten cohorts follow each
other. Flower's `LocalDpMod` has delta 1e-5 and a sensitivity of 2, since two updates of length 1 may be 2
apart; ours has no delta. Its noise is drawn as that of the cohort's mean, which has the same law. FedAvg adds
the mean times a rate, FedAdam is Flower's own.
"""

from __future__ import annotations

import argparse
import logging
import math
import statistics
import sys
import time
import warnings
from collections import defaultdict

import bitldp
import numpy as np
from bitldp.federated import Layout, UpdateCodec, flower, forecast, from_record, simulate, to_record
from bitldp_papers.data import load
from flwr.app import Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAdam
from keep import cpu_name, keep

EPSILON, DELTA, CLIP, COHORTS = 8.0, 1e-5, 1.0, 10
PATCH, PATCHES, STRIDE, DIRECTIONS, CLASSES = 6, 128, 2, 160, 10
RATES = {"none": 256.0, "CrossPolytope": 4.0, "LocalDpMod": 1.0}
"""Of FedAvg, chosen on Fashion-MNIST with 60,000 clients."""
ETAS = {"none": 100.0, "CrossPolytope": 4.0, "LocalDpMod": 1.0}
"""Of FedAdam, likewise, with the two below: ten rounds are too few for a long memory."""
BETA = 0.5
TAU = 0.1  # far above a number of the mean update: noise is not blown up to the size of a step
GOALS = {60_000: 0.8, 6_000: 0.72}
"""Accuracy of CrossPolytope with FedAdam, by the number of clients."""

_SEEDS = 0.01  # of accuracy, that three seeds differ by alone

Floats = np.ndarray


class Frozen:
    """The public layer."""

    def __init__(self, images: Floats) -> None:
        rng = np.random.default_rng(2017)
        patches = self._patches(images[rng.choice(len(images), 4000, replace=False)])
        patches = patches.reshape(-1, PATCH * PATCH)[::11]
        self.mean = patches.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(patches.T))
        self.whiten = (vectors / np.sqrt(values + 0.1)).astype(np.float32)
        points = (patches - self.mean) @ self.whiten
        self.centres = points[rng.choice(len(points), PATCHES, replace=False)]
        for _ in range(10):
            near = np.argmin(self._distances(points), axis=1)
            for index in range(PATCHES):
                if (near == index).any():
                    self.centres[index] = points[near == index].mean(axis=0)
        public = self._pooled(images[:10_000])
        self.middle = public.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov((public - self.middle).T))
        kept = slice(-DIRECTIONS, None)  # the largest, on one scale
        self.turn = vectors[:, kept] / np.sqrt(values[kept] + 0.1 * values[-20])

    def _patches(self, images: Floats) -> Floats:
        cut = np.lib.stride_tricks.sliding_window_view(images, (PATCH, PATCH), axis=(1, 2))
        cut = cut[:, ::STRIDE, ::STRIDE].reshape(len(images), -1, PATCH * PATCH).astype(np.float32)
        cut = cut - cut.mean(axis=2, keepdims=True)
        return cut / (cut.std(axis=2, keepdims=True) + 0.1)

    def _distances(self, points: Floats) -> Floats:
        squares = np.square(points).sum(axis=1, keepdims=True) + np.square(self.centres).sum(axis=1)
        return np.sqrt(np.maximum(squares - 2.0 * points @ self.centres.T, 0.0))

    def _pooled(self, images: Floats) -> Floats:
        made = []
        for start in range(0, len(images), 500):
            patches = self._patches(images[start : start + 500])
            n, count, _ = patches.shape
            far = self._distances((patches.reshape(n * count, -1) - self.mean) @ self.whiten)
            near = np.maximum(far.mean(axis=1, keepdims=True) - far, 0.0)  # the "triangle" of the paper
            side = math.isqrt(count)
            half = side // 2
            near = near[:, :].reshape(n, side, side, PATCHES)
            parts = [
                near[:, a, b].sum(axis=(1, 2))
                for a in (slice(half), slice(half, None))
                for b in (slice(half), slice(half, None))
            ]
            made.append(np.concatenate(parts, axis=1))
        return np.concatenate(made)

    def features(self, images: Floats) -> Floats:
        """Return features of length 1, and a constant: a function of one image and of public numbers."""
        made = (self._pooled(images) - self.middle) @ self.turn
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return np.concatenate([made, np.full((len(made), 1), 0.1)], axis=1).astype(np.float64)


class Task:
    """Images of clients as features, dealt by a seed."""

    def __init__(self, name: str, frozen: Frozen) -> None:
        data = load(name)
        self.x, self.y = frozen.features(images_of(data.train)), data.train_labels
        self.test_x, self.test_y = frozen.features(images_of(data.test)), data.test_labels

    def accuracy(self, weights: Floats) -> float:
        """Return the share of test images that a model is right on."""
        return float(np.mean(np.argmax(self.test_x @ weights, axis=1) == self.test_y))

    def gradients(self, weights: Floats, rows: np.ndarray) -> Floats:
        """Return each client's step: the negative gradient of its log loss, shape (n, numbers)."""
        x = self.x[rows]
        scores = x @ weights
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(rows)), self.y[rows]] -= 1.0
        return -(x[:, :, None] * chances[:, None, :]).reshape(len(rows), -1)


def images_of(pixels: Floats) -> Floats:
    """Return images of 28 x 28 numbers in [0, 1]."""
    return (pixels.reshape(-1, 28, 28) / 255.0).astype(np.float32)


CODEC = UpdateCodec(lambda size: bitldp.CrossPolytope(size, epsilon=EPSILON), clip=CLIP)


def mean_update(task: Task, weights: Floats, rows: np.ndarray, noise: str, seed: int) -> Floats:
    """Return the mean of a cohort's updates, as the server has it."""
    size = weights.size
    if noise == "CrossPolytope":
        made = simulate(
            CODEC, lambda a, b: task.gradients(weights, rows[a:b]), clients=len(rows), rng=seed
        ).value
        return made.reshape(weights.shape)
    total = np.zeros(size)
    for start in range(0, len(rows), 500):
        each = task.gradients(weights, rows[start : start + 500])
        each /= np.maximum(np.linalg.norm(each, axis=1, keepdims=True) / CLIP, 1.0)
        total += each.sum(axis=0)
    if noise == "LocalDpMod":  # as flwr.supercore.differential_privacy has it
        deviation = 2.0 * CLIP * math.sqrt(2.0 * math.log(1.25 / DELTA)) / EPSILON
        total += np.random.default_rng(seed).normal(0.0, deviation * math.sqrt(len(rows)), size)
    return (total / len(rows)).reshape(weights.shape)


def learned(task: Task, clients: int, noise: str, server: str, step: float, seed: int) -> float:
    """Run the cohorts and return the accuracy."""
    dealt = np.random.default_rng(seed).permutation(len(task.y))[:clients]
    weights = np.zeros((task.x.shape[1], CLASSES))
    adam = FedAdam(eta=step, tau=TAU, beta_1=BETA, fraction_evaluate=0.0)
    with flower.identity(1):
        for number, rows in enumerate(np.array_split(dealt, COHORTS), 1):
            mean = mean_update(task, weights, rows, noise, 1000 * seed + number)
            if server == "FedAvg":
                weights = weights + step * mean
                continue
            adam.current_arrays = {"w": weights}
            content = {
                "arrays": to_record({"w": weights + mean}),
                "metrics": MetricRecord({"num-examples": 1}),
            }
            reply = Message(RecordDict(content), dst_node_id=0, message_type="train")
            made, _ = adam.aggregate_train(number, [reply])
            weights = from_record(made)["w"].astype(np.float64)
    return task.accuracy(weights)


def tuned(task: Task, clients: int) -> None:
    """Print the accuracy of each step on Fashion-MNIST."""
    for noise in reversed(RATES):
        for server, steps in (("FedAvg", (1, 2, 4, 8, 16, 64, 256)), ("FedAdam", (0.3, 1, 3, 10, 30, 100))):
            for step in steps:
                score = learned(task, clients, noise, server, step, 9)
                print(f"{noise:13} {server} {step:g}: {score:.3f}", flush=True)


def main() -> int:
    """Run all settings with the same seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=list(GOALS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    fashion = load("fashion_mnist")
    frozen = Frozen(images_of(fashion.train))
    if given.tune:
        tuned(Task("fashion_mnist", frozen), given.clients[0])
        return 0
    task = Task("mnist", frozen)
    size = task.x.shape[1] * CLASSES
    plan = CODEC.plan(Layout(("w",), ((size,),), ("<f8",)))
    scores: dict[tuple[int, str, str], list[float]] = defaultdict(list)
    for clients in given.clients:
        print(forecast(plan, clients // COHORTS, COHORTS))
        for seed in range(1, given.seeds + 1):
            for noise in RATES:
                for server, steps in (("FedAvg", RATES), ("FedAdam", ETAS)):
                    start = time.perf_counter()
                    score = learned(task, clients, noise, server, steps[noise], seed)
                    scores[clients, noise, server].append(score)
                    print(
                        f"{clients:6,} {noise:13} {server:7} seed {seed}: {score:.4f}, "
                        f"{time.perf_counter() - start:.0f} s",
                        flush=True,
                    )
    rows, missed = [], []
    for (clients, noise, server), found in scores.items():
        mean = statistics.fmean(found)
        spread = statistics.stdev(found) if len(found) > 1 else math.nan
        print(f"{clients:6,} clients, {noise:13} {server:7}: {mean:.4f} ± {spread:.4f}, {len(found)} seeds")
        rows.append([clients, noise, server, round(mean, 4), round(spread, 4), len(found)])
    for clients in given.clients:
        ours, theirs = (
            statistics.fmean(scores[clients, name, "FedAdam"]) for name in ("CrossPolytope", "LocalDpMod")
        )
        if ours < GOALS.get(clients, 0.0):
            missed.append(f"{clients:,} clients: {ours:.4f} below {GOALS[clients]}")
        if ours <= theirs:
            missed.append(f"{clients:,} clients: {ours:.4f} not above LocalDpMod's {theirs:.4f}")
        if ours < statistics.fmean(scores[clients, "CrossPolytope", "FedAvg"]) - _SEEDS:
            missed.append(f"{clients:,} clients: FedAdam below FedAvg")
    if given.record:
        keep(
            "adapter.jsonl",
            {
                "cpu": cpu_name(),
                "numbers": size,
                "epsilon": EPSILON,
                "delta": DELTA,
                "cohorts": COHORTS,
                "rows": rows,
            },
        )
    for each in missed:
        print(f"missed: {each}", file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    warnings.simplefilter("error")
    sys.exit(main())
