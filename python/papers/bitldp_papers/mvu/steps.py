"""What the server of `mvu` makes of a mean of reports: of signs a majority, or a multiple of the mean."""

from __future__ import annotations

import math

import numpy as np
from bitldp.compression import SignSGD
from numpy.typing import NDArray

from bitldp_papers.mvu.settings import MAJORITIES, SIGNS, MVUSettings

__all__ = ["corrected"]


def corrected(settings: MVUSettings, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the estimate of the mean gradient, from the mean of what the reports are worth.

    A majority's step has the length of a clipped gradient. The mean of signs is (2/pi)^(1/2) x/sigma for
    coordinates x that are small beside sigma, and is divided by that. All else is right on average.
    """
    if settings.mechanism in MAJORITIES:
        step: NDArray[np.float64] = np.sign(mean) * (settings.clip / math.sqrt(mean.size))
        return step
    if settings.mechanism in SIGNS:
        mechanism = settings.release(mean.size)
        assert isinstance(mechanism, SignSGD)
        return mean * (mechanism.sigma * math.sqrt(math.pi / 2.0))
    return mean
