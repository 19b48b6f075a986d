"""Forms of reports as arrays of codes, and their values as numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate.accumulators import CountAccumulator
from bitldp.federated.wire.wire import Field
from bitldp.mechanism.base import Mechanism


@dataclass(frozen=True)
class Form:
    """Form of a mechanism's reports, as the mechanism states it: `report_parts`, `wire_output`, `join`.

    Attributes
    ----------
    mechanism : Mechanism
        Whose reports they are.
    """

    mechanism: Mechanism

    @property
    def fields(self) -> tuple[Field, ...]:
        """The arrays of codes that make a report."""
        return tuple(Field(*part) for part in self.mechanism.report_parts)

    @property
    def output(self) -> str:
        """What `randomize` is asked for."""
        return self.mechanism.wire_output

    def assemble(self, arrays: Any) -> Any:
        """Return reports, as `decode` takes them, of one array of shape (records, columns) for each field."""
        return self.mechanism.join(arrays)

    def split(self, reports: Any, records: int) -> list[NDArray[Any]]:
        """Return reports as one array of codes for each field."""
        arrays = [np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,))]
        if [array.size for array in arrays] != [records * field.columns for field in self.fields]:
            raise ValueError("reports: not of the form that the mechanism states")
        return arrays


def letters_of(mechanism: Mechanism, *, allow_biased: bool) -> Callable[[Any], NDArray[np.float64]]:
    """Return the function from reports to numbers: unbiased, or the mechanism's own decoding.

    Raises
    ------
    ValueError
        If no unbiased decode exists and `allow_biased` is false; the message gives the mechanism's reason.
    TypeError
        If its reports are categories.
    """
    try:
        accumulator = mechanism.accumulator()
    except ValueError as error:
        return _biased(mechanism, str(error), allow_biased)
    if type(mechanism).unbias is not Mechanism.unbias:
        return mechanism.unbias
    if isinstance(accumulator, CountAccumulator):
        raise TypeError(f"mechanism: {type(mechanism).__name__} releases categories, not numbers")
    return _biased(mechanism, mechanism._no_mean, allow_biased)


def _biased(mechanism: Mechanism, reason: str, allow: bool) -> Callable[[Any], NDArray[np.float64]]:
    """Return what a mechanism decodes, or refuse, for it is not right on average."""
    if not allow:
        raise ValueError(
            f"mechanism: its reports cannot be averaged without bias ({reason}); allow_biased=True "
            "averages what it decodes"
        ) from None
    return mechanism.decode
