"""What BRR-SGD does with a mean of reports: undo the shrinkage about 0, and let the threshold follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitldp.base.keys import RandomSource
from bitldp.mechanism.base import Mechanism
from bitldp_papers.brr.settings import BRRSettings
from bitldp.points import BRR

__all__ = ["clipped", "gain", "next_clip", "scaled", "sign_split", "worth"]


def gain(mechanism: Mechanism) -> float:
    """Return how much of a small number the mean of its reports is worth: public, from the law alone.

    Parameters
    ----------
    mechanism : Mechanism
        On [-1, 1].

    Returns
    -------
    float
        1 for a mechanism whose letters are right on average. Of BRR with m >= 2 the slope about 0 of the mean
        report, in (0, 1): a window of m candidates that moves by one candidate moves the mean by
        m (p - q) of one.

    Raises
    ------
    ValueError
        At epsilon 0, where the reports are worth nothing.
    """
    if not isinstance(mechanism, BRR) or mechanism.m == 1:
        return 1.0
    law = mechanism.channel.probabilities()
    points = np.linspace(-1.0, 1.0, len(law))
    slopes = np.diff(law @ points) / np.diff(points)
    middle = len(points) // 2
    found = float(slopes[(len(points) - 2) // 2 : middle + len(points) % 2].mean())
    if not found > 0.0:
        raise ValueError("epsilon: at 0 the reports are worth nothing")
    return found


def scaled(settings: BRRSettings, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return features of [-1, 1] moved to [lowest, 1]."""
    moved: NDArray[np.float32] = 1.0 - (1.0 - x) * np.float32((1.0 - settings.lowest) / 2.0)
    return moved


def worth(settings: BRRSettings, mechanism: Mechanism) -> float:
    """Return what the mean of the decoded reports is divided by: `gain`, where the settings correct."""
    return gain(mechanism) if settings.corrected else 1.0


def next_clip(settings: BRRSettings, clip: float, mean: NDArray[np.float64], stderr: float) -> float:
    """Return the next threshold, max(rho C + (1 - rho) norm, C_min), from the mean of released gradients.

    Parameters
    ----------
    settings : BRRSettings
    clip : float
        The threshold C of the round.
    mean : ndarray, shape (size,)
        Mean of the reports, corrected.
    stderr : float
        Its standard error, root mean square over the coordinates: noise adds its variance to the square of
        the norm, and C would chase its own noise.
    """
    square = max(float(mean @ mean) - len(mean) * stderr**2, 0.0)
    norm = float(np.sqrt(square / (len(mean) if settings.norm == "linf" else 1)))
    return max(settings.decay * clip + (1.0 - settings.decay) * norm, settings.clip_least)


def clipped(rows: NDArray[np.float64], clip: float, norm: str) -> NDArray[np.float64]:
    """Return gradients clipped to a norm of `clip`, in units of it: each coordinate, or a row's length."""
    if norm == "linf":
        return np.clip(rows / clip, -1.0, 1.0)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), clip)


def sign_split(
    settings: BRRSettings, rows: NDArray[np.float64], clip: float, *, rng: RandomSource
) -> NDArray[np.float64]:
    """Return gradients as the paper's BRR-SGD perturbs them, shape (n, size): the sign is no secret.

    A coordinate clipped to [-C, C] (or to the gradient's norm C, as the settings say) goes to a point of
    [0, C] or of [-C, 0], whichever it is in (Section 5.5): two inputs of different signs share no report, so
    that the exact epsilon is infinite.
    """
    shares = clipped(rows, clip, settings.norm)
    mechanism = settings.build(rows.shape[1], 1)
    sizes = mechanism.decode(mechanism.randomize(np.abs(shares), rng=rng))
    return np.where(shares < 0.0, -clip, clip) * sizes
