"""The smaller experiments of the demonstration: means of vectors, selection, federated learning."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import bitldp
from bitldp_papers.data import load

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["federated", "means", "selection"]

SEED = 2022
EPSILON = 4.0

Build = Callable[[int], Any]

#: Numeric, compressed and whole-record mechanisms for a record of r numbers of [-1, 1], at one budget.
_VECTORS: dict[str, Build] = {
    "Laplace, budget split": lambda r: bitldp.Laplace(EPSILON, features=r),
    "Piecewise, budget split": lambda r: bitldp.Piecewise(EPSILON, features=r),
    "Piecewise, sampled": lambda r: bitldp.Piecewise(EPSILON, features=r, spend="sample"),
    "MVU 3 bits, sampled": lambda r: bitldp.MVU(
        EPSILON, features=r, interval=(-1.0, 1.0), spend="sample", k=1
    ),
    "SampledSigns": lambda r: bitldp.SampledSigns(r, epsilon=EPSILON),
    "HypercubePrivUnit": lambda r: bitldp.HypercubePrivUnit(r, epsilon=EPSILON),
}


def means(console: Console) -> None:
    """Estimate the mean image of the digits from one release of each, and compare with what was foretold."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    x, _ = load("digits").scaled()
    truth = np.asarray(x, np.float64).mean(axis=0)
    table = Table(
        title=f"The mean of {x.shape[1]} pixels from {len(x)} images, each released once at ε = {EPSILON:g}",
        box=SIMPLE_HEAD,
        padding=(0, 1),
        show_edge=False,
    )
    for name in ("Mechanism", "bits a record", "error, foretold", "error, found"):
        table.add_column(name, justify="left" if name == "Mechanism" else "right", no_wrap=True)
    seeds = np.random.SeedSequence(SEED).spawn(len(_VECTORS))
    for (name, build), seed in zip(_VECTORS.items(), seeds, strict=True):
        mechanism = build(x.shape[1])
        estimate = mechanism.estimate_mean(mechanism.randomize(x, rng=seed))
        found = float(np.sqrt(np.mean(np.square(estimate.value - truth))))
        foretold = float(np.sqrt(mechanism.variance(x).mean() / len(x)))
        table.add_row(name, f"{mechanism.report_bits:,}", f"{foretold:.3f}", f"{found:.3f}")
    console.print(table)


def selection(console: Console) -> None:
    """Select an important pixel of each image, and see how often it is one of the ten largest."""
    x, _ = load("digits").scaled()
    scores = x - x.mean(axis=0)
    k, dimensions = 10, x.shape[1]
    largest = np.argsort(-np.abs(scores), axis=1)[:, :k]
    shares = []
    mechanisms = (
        bitldp.EXP(dimensions, epsilon=EPSILON),
        bitldp.PE(dimensions, k, epsilon=EPSILON),
        bitldp.PS(dimensions, k, epsilon=EPSILON),
    )
    for mechanism, seed in zip(mechanisms, np.random.SeedSequence(SEED + 1).spawn(3), strict=True):
        chosen = mechanism.randomize(scores, rng=seed)
        shares.append(f"{type(mechanism).__name__} {np.mean((largest == chosen[:, None]).any(axis=1)):.2f}")
    console.print(
        f"Selection at ε = {EPSILON:g}: share of images whose selected pixel is one of their {k} of "
        f"{dimensions} farthest from the mean: {', '.join(shares)} (by chance {k / dimensions:.2f})"
    )


def federated(console: Console) -> None:
    """Train a network with ten clients in Flower, in this process; their records are randomized once."""
    from bitldp_papers import get

    logging.getLogger("flwr").setLevel(logging.ERROR)  # Flower sets it when it is imported
    system = get("bitrand")
    scores = []
    for mechanism in ("bitrand", "pm", "noiseless"):
        with tempfile.TemporaryDirectory() as folder:
            settings = system.configure(preset="quick", mechanism=mechanism, out=folder)
            summary = system.run(settings, seeded=True)
        exact = "no privacy" if mechanism == "noiseless" else f"exact ε {summary.privacy.record:.0f} a record"
        scores.append(f"{mechanism} {summary.score:.2f} ({exact})")
    console.print(
        f"Federated, {settings.clients} clients, {settings.rounds} rounds of Flower in this process, "
        f"accuracy: {', '.join(scores)}. bitldp fl lists all five systems."
    )
