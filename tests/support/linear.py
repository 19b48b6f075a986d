"""Linear complexity of bits: how short a shift register makes them."""

from __future__ import annotations

import numpy as np


def linear_complexity(bits: np.ndarray) -> int:
    """Return the length of the shortest linear-feedback register of bits (Berlekamp and Massey over GF(2)).

    Of n fair bits it is about n/2; of the low bits of a Mersenne Twister's words it is at most 19,937.
    """
    connection, before, length, last, window = 1, 1, 0, -1, 0
    for index, bit in enumerate(bits.tolist()):
        window = window << 1 | bit  # bit k of it is that of k steps ago
        if (connection & window).bit_count() & 1:
            kept = connection
            connection ^= before << (index - last)
            if 2 * length <= index:
                length, before, last = index + 1 - length, kept, index
    return length
