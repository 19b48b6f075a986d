"""Written values of released columns, and the codes that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import DataError

__all__ = ["Decoding", "codes_of_values"]


@dataclass(frozen=True)
class Decoding:
    """Decoded values of columns: which are written, how biased they are, and how to estimate from them.

    Attributes
    ----------
    decode : str
        One of `DECODES`; empty where no numbers are written.
    bias : float
        Largest distance of the mean of what is written for a number from the number, once it is inside the
        range.
    estimate : str
        How to estimate from the columns.
    sentence : str
        Sentence that a person should read before the run.
    alarming : bool
        Whether that is a warning.
    numbers : ndarray of float64 or None
        The number of each code, where the codec does not know it.
    """

    decode: str = ""
    bias: float = 0.0
    estimate: str = ""
    sentence: str = ""
    alarming: bool = False
    numbers: NDArray[np.float64] | None = None


def codes_of_values(
    values: NDArray[np.float64], decoded: NDArray[Any], names: Sequence[str], first_row: int
) -> NDArray[np.uint32]:
    """Return the code of each written value of a table.

    Parameters
    ----------
    values : ndarray
        Shape (n, columns).
    decoded : ndarray
        Decoded value of each code, in the precision in which it was written.
    names : sequence of str
        Of the columns, for errors.
    first_row : int

    Raises
    ------
    DataError
        For a value that no code is decoded to.
    """
    order = np.argsort(decoded, kind="stable")
    ascending = decoded[order].astype(np.float64)
    # A table has few decoded values: each is looked for once.
    encoded = pa.array(values.ravel()).dictionary_encode()
    numbers, which = encoded.dictionary.to_numpy(), encoded.indices.to_numpy()
    slots = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    wrong = ascending[slots] != numbers  # NaN, a missing value, too
    if wrong.any():  # perhaps in single precision, in a text file
        short, rounded = ascending.astype(np.float32), numbers.astype(np.float32)
        slots = np.minimum(np.searchsorted(short, rounded), len(ascending) - 1)
        wrong = short[slots] != rounded
    if wrong.any():
        row, column = divmod(int(np.argmax(wrong[which])), values.shape[1])
        raise DataError(
            f"row {first_row + row}, column {names[column]!r}: is not a report of the plan's mechanism"
        )
    codes: NDArray[np.uint32] = order[slots].astype(np.uint32)[which].reshape(values.shape)
    return codes
