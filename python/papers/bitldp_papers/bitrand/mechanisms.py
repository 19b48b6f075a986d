"""What releases the features, the labels and the updates of BitRand and of its baselines, by name."""

from __future__ import annotations

import warnings
from typing import Any

import bitldp
import numpy as np
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import PrivacyClaimWarning
from numpy.typing import NDArray

__all__ = ["ALPHAS", "BITWISE", "FEATURES", "UPDATES", "feature_mechanism", "largest_value"]

#: Bit mechanisms on the features of a record, each with the calibration it runs under.
BITWISE: dict[str, tuple[Any, str]] = {
    "bitrand": (bitldp.FRR, "exact"),
    "bitrand-paper": (bitldp.FRR, "paper"),
    "latent": (bitldp.MOUE, "paper"),
    "ome": (bitldp.UER, "paper"),
}
#: The alpha that the paper of BitRand gives its baselines (Appendices I and J).
ALPHAS = {"latent": 7.0, "ome": 1.0}
#: Mechanisms on numbers, for features.
NUMERIC: dict[str, Any] = {
    "duchi": bitldp.Duchi,
    "pm": bitldp.Piecewise,
    "pm-sub": bitldp.PiecewiseSub,
    "hm": bitldp.Hybrid,
    "three-outputs": bitldp.ThreeOutputs,
}
FEATURES = (*BITWISE, *NUMERIC)
#: What releases an update, coordinate by coordinate.
UPDATES: dict[str, Any] = {**NUMERIC, "ldp-fl": bitldp.LDPFLDuchi}


def feature_mechanism(
    name: str,
    features: int,
    epsilon: float,
    *,
    bits: int,
    integer_bits: int,
    alpha: float,
    correct: bool,
) -> Mechanism:
    """Return the mechanism of one of `FEATURES` for a record.

    Parameters
    ----------
    name : str
    features : int
    epsilon : float
        What is claimed for the record: the exact one for all but the paper's own calibrations.
    bits, integer_bits : int
        Of the fixed-point code, where the mechanism is one of `BITWISE`.
    alpha : float
        Of LATENT and OME; 0 for the paper's.
    correct : bool
        Whether LATENT and OME get the budget whose corrected epsilon (Theorems 5 and 6) is `epsilon`, as in
        the paper, or `epsilon` itself.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)  # the summary shows both epsilons
        if name in NUMERIC:
            numeric: Mechanism = NUMERIC[name](epsilon, features=features)
            return numeric
        kind, calibration = BITWISE[name]
        words: dict[str, Any] = {"bits": bits, "integer_bits": integer_bits, "calibration": calibration}
        if name in ALPHAS:
            words |= {"alpha": alpha or ALPHAS[name], "calibration": "corrected" if correct else "paper"}
        made: Mechanism = kind(features, epsilon=epsilon, **words)
        return made


def largest_value(mechanism: Mechanism, integer_bits: int) -> float:
    """Return the largest number that a released feature can be: public, and what training divides by.

    2**m for a code word of m integer bits; the largest letter of a mechanism on numbers, which at a small
    epsilon for many features is far beyond the interval of the features (2 r/epsilon for Duchi's).
    """
    if type(mechanism) in {kind for kind, _ in BITWISE.values()}:
        return 2.0**integer_bits
    letters: NDArray[np.float64] = np.asarray(mechanism.letters)  # type: ignore[attr-defined]
    return max(1.0, float(np.abs(letters).max()))
