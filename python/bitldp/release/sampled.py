"""Reports about some coordinates of each record, and the estimate of the mean from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import pack
from bitldp.base.arrays import place
from bitldp.estimate.sampled import SampledReports
from bitldp.release.base import Scalar
from bitldp.release.draws import coordinates


def sampled(
    scalar: Scalar,
    x: NDArray[Any],
    size: tuple[int, int],
    streams: list[bytes | None],
    output: str,
    threads: int | None,
    first_chunk: int,
) -> SampledReports:
    """Release k of the d numbers of each record; which ones depends on the last key alone.

    `size` is (d, k), and `output` "codes" or "packed".
    """
    features, k = size
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x: dtype {x.dtype} is not allowed; float32 and float64 are")
    missing = np.isnan(x)
    if missing.any():  # in any coordinate: an error must not depend on the draw
        raise ValueError(f"x: {place(missing)} is NaN")
    table = x.reshape(-1, features)
    indices = coordinates(streams[-1], len(table), features, k, first_chunk)
    values = np.take_along_axis(table, indices.astype(np.intp), axis=1)
    codes = scalar.randomize(values, streams[:-1], "codes", None, threads, first_chunk)
    if output == "packed":
        width = max(1, (features - 1).bit_length())
        return SampledReports(pack(indices, width), pack(codes, (scalar.alphabet - 1).bit_length()))
    shape = (k,) if x.shape == (features,) != (1,) else codes.shape
    return SampledReports(indices.reshape(shape), codes.reshape(shape))
