"""Keys of the keystream, which is the source of a call's randomness.

A call without `rng` passes no key at all: the extension then draws a fresh 256-bit key from the operating
system, so nothing can be reused after a fork, a pickle or a copy. Every other choice is reproducible and
meant for tests and experiments only, because a key that is used twice on two inputs reveals where they
differ.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

__all__ = ["RandomSource", "check_secret", "keys"]

RandomSource: TypeAlias = int | np.integer | np.random.SeedSequence | np.random.Generator | None
"""Types that every `rng` argument accepts."""

_KEY_WORDS = 8  # 256 bits as 32-bit words


def keys(rng: RandomSource, count: int) -> list[bytes | None]:
    """Derive the keys of one call.

    Parameters
    ----------
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        None asks for fresh keys of the operating system. An integer (or a seed sequence, which is not
        advanced) gives the same keys each time. A generator yields 32 bytes a key and advances.
    count : int
        How many independent keys the call needs.

    Returns
    -------
    list of bytes or None
        `count` keys of 32 bytes, or `count` times None.

    Raises
    ------
    TypeError
        For any other kind of `rng` (a bool, a float, a legacy ``RandomState``).
    ValueError
        For a negative integer.
    """
    if rng is None:
        return [None] * count
    if isinstance(rng, np.random.Generator):
        return [rng.bytes(4 * _KEY_WORDS) for _ in range(count)]
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        if rng < 0:
            raise ValueError("rng: an integer seed must not be negative")
        rng = np.random.SeedSequence(int(rng))
    if not isinstance(rng, np.random.SeedSequence):
        raise TypeError(
            "rng: must be None, an int, a numpy.random.SeedSequence or a numpy.random.Generator, "
            f"not {type(rng).__name__}"
        )
    words = rng.generate_state(_KEY_WORDS * count, np.uint32).astype(
        "<u4"
    )  # the same bytes on every platform
    return [row.tobytes() for row in words.reshape(count, _KEY_WORDS)]


def check_secret(key: bytes) -> None:
    """Refuse a secret key of zeros: memory or a file that nothing was written to, and no secret.

    Raises
    ------
    ValueError
        For a key whose bytes are all 0.
    """
    if isinstance(key, bytes) and key and not any(key):
        raise ValueError("key: must not be all zeros; secrets.token_bytes(32) makes one")
