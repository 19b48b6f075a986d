"""Facts of mechanisms that answer the bits of a fixed-point number: laws of the bits, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from bitldp.mechanism.described import spreads

__all__ = ["facts"]


def facts(mechanism: Any, bounds: dict[str, float], users: int | None) -> dict[str, Any]:
    """Return the laws of the bits, and the errors of a decoded value, of its letter and of a mean.

    Parameters
    ----------
    mechanism : FixedPointBits
    bounds : dict
        What a paper bounds its errors by.
    users : int or None
        As of `Mechanism.facts`.
    """
    codec = mechanism.codec
    laws = [
        [
            {
                "position": place,
                "weight": None if place == 0 else 2.0 ** (codec.integer_bits - place),
                "one_stays_one": float(p),
                "zero_becomes_one": float(q),
            }
            for place, (p, q) in enumerate(law)
        ]
        for law in mechanism.probabilities()
    ]
    errors: dict[str, Any] = {
        "values": f"multiples of {codec.step:g} from {-codec.limit:g} to {codec.limit:g}",
        "expected_absolute_error": mechanism.expected_error(),
        **bounds,
    }
    try:
        ends = np.array([[0.0], [codec.limit]]) * np.ones(mechanism.features)
        at_zero, at_limit = np.sqrt(mechanism.variance(ends)).max(axis=1).tolist()
    except ValueError as error:
        errors["unbiased"] = str(error)
    else:
        errors |= spreads("a_mean", {"at_zero": at_zero, "at_the_limit": at_limit}, users)
    return {"laws_of_the_bits": laws, "errors": errors}
