"""How likely each candidate is as the source of each report, as a score: the larger, the likelier."""

from __future__ import annotations

from typing import Any

import numpy as np
from bitldp.mechanism.base import Mechanism
from numpy.typing import NDArray

__all__ = ["released", "scores"]

_TINY = 1e-300


def released(mechanism: Mechanism, x: NDArray[np.float32], seed: np.random.SeedSequence) -> Any:
    """Return reports about records, as `scores` takes them."""
    return mechanism.randomize(x, rng=seed, output="bits" if _of_bits(mechanism) else "codes")


def scores(mechanism: Mechanism, reports: Any, candidates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores of candidates, shape (reports, candidates).

    Of mechanisms of bits it is the log-likelihood, up to what is the same for all candidates: with chances p
    and q that a bit of 1 and of 0 is reported as 1, a candidate's bit of 1 adds ln(p/q) where 1 came, and
    ln((1 - p)/(1 - q)) where 0 did. Of others it is the product of the candidate and of what the report is
    worth, which orders candidates of the same length as their distance does.
    """
    if not _of_bits(mechanism):
        worth = np.asarray(mechanism.decode(reports), np.float32)
        return np.asarray(worth @ candidates.T, np.float32)
    words: Any = mechanism
    law = np.maximum(words.probabilities(), _TINY)
    p, q = (np.broadcast_to(law[..., side], (words.features, words.bits)).ravel() for side in (0, 1))
    one, none = np.log(p / q), np.log(np.maximum(1.0 - p, _TINY) / np.maximum(1.0 - q, _TINY))
    shifts = np.arange(words.bits - 1, -1, -1, dtype=np.uint16)  # the sign is the highest bit
    codes = words.codec.encode(np.ascontiguousarray(candidates))
    own = ((codes[:, :, None] >> shifts) & 1).reshape(len(candidates), -1).astype(np.float32)
    evidence = np.where(reports.reshape(len(reports), -1) == 1, one, none).astype(np.float32)
    return np.asarray(evidence @ own.T, np.float32)


def _of_bits(mechanism: Mechanism) -> bool:
    return "bits" in mechanism.outputs
