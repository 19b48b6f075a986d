"""Numbers of the interactive page: variances by epsilon, and exact epsilons of papers' settings.

Everything is a closed form of a mechanism that is built here, at a few dozen budgets; the page interpolates
between them, in logarithms, and simulates nothing.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import bitldp
import numpy as np

EPSILONS = np.geomspace(1e-4, 20.0, 65)  # a thousand numbers share the least budget of the slider

#: Mechanisms of one number of [-1, 1].
NUMBERS: dict[str, Callable[..., Any]] = {
    "Duchi": bitldp.Duchi,
    "Piecewise (PM)": bitldp.Piecewise,
    "Hybrid (HM)": bitldp.Hybrid,
    "three outputs": bitldp.ThreeOutputs,
    "Laplace": bitldp.Laplace,
}

#: Words of l bits, where the slider of bits says how many.
WORDS = {"f-RR": lambda e, bits: bitldp.FRR(features=1, bits=bits, integer_bits=0, epsilon=e)}
BITS = (2, 4, 8, 10, 16)


#: Claims of papers for records of r features of l bits, claimed by what the slider of epsilon says.
CLAIMS: dict[str, Callable[[int, int, float], Any]] = {
    "BitRand's f-RR": lambda r, bits, e: bitldp.FRR(
        features=r, bits=bits, integer_bits=bits // 2, epsilon=e, calibration="paper"
    ),
    "LDPFL's UER, alpha 10": lambda r, bits, e: bitldp.UER(
        features=r, bits=bits, integer_bits=bits // 2, epsilon=e, alpha=10.0, calibration="paper"
    ),
    "LDPFL's MOUE, alpha 10": lambda r, bits, e: bitldp.MOUE(
        features=r, bits=bits, integer_bits=bits // 2, epsilon=e, alpha=10.0, calibration="paper"
    ),
}
CLAIMED = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
FEATURES = (1, 10, 100, 768, 1000)


def numbers() -> dict[str, Any]:
    """Return the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)  # the claim stands beside the truth
        return {
            "epsilons": list(map(_short, EPSILONS)),
            "numbers": {
                name: [_short(make(epsilon=e).mean_variance()) for e in EPSILONS]
                for name, make in NUMBERS.items()
            },
            "words": {
                name: {bits: [_short(make(e, bits).mean_variance()) for e in EPSILONS] for bits in BITS}
                for name, make in WORDS.items()
            },
            "claimed": CLAIMED,
            "features": FEATURES,
            "claims": {
                name: {
                    bits: {r: [_short(make(r, bits, e).guarantee.record) for e in CLAIMED] for r in FEATURES}
                    for bits in BITS[1:]
                }
                for name, make in CLAIMS.items()
            },
        }


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def script() -> str:
    """Return the table as a script, which a page that was opened from a folder can read, too."""
    return f"window.BITLDP = {json.dumps(numbers())};\n"
