"""LATENT and OME on the budget that BitRand corrects them to: Theorems 5 and 6 solved for epsilon."""

from __future__ import annotations

from typing import Any

import bitldp

__all__ = ["corrected_latent", "corrected_ome"]

_STEPS = 6  # each takes off more than nine tenths of what is left


def corrected_latent(
    features: int, bits: int, epsilon: float, *, alpha: float = 7.0, **more: Any
) -> bitldp.MOUE:
    """Return LATENT with the budget at which Theorem 5 reports `epsilon`; alpha 7 is the paper's."""
    budget = _budget(bitldp.MOUE, features, bits, epsilon, alpha)
    return bitldp.MOUE._quiet(
        features=features, bits=bits, epsilon=budget, alpha=alpha, calibration="paper", **more
    )


def corrected_ome(features: int, bits: int, epsilon: float, **more: Any) -> bitldp.UER:
    """Return OME at alpha 1, as the paper compares it, where Theorem 6 reports `epsilon`."""
    budget = _budget(bitldp.UER, features, bits, epsilon, 1.0)
    return bitldp.UER._quiet(
        features=features, bits=bits, epsilon=budget, alpha=1.0, calibration="paper", **more
    )


def _budget(kind: Any, features: int, bits: int, epsilon: float, alpha: float) -> float:
    """Return the budget whose reported epsilon is `epsilon`: the report is nearly in proportion to it."""
    budget = epsilon
    for _ in range(_STEPS):
        made = kind._quiet(
            features=features,
            bits=bits,
            integer_bits=0,
            epsilon=budget,
            alpha=alpha,
            calibration="paper",
        )
        budget *= epsilon / made.paper_reported_epsilon()
    return budget
