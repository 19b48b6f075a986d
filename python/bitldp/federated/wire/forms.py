"""Forms of reports as arrays of codes, and their values as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.bits.words import FixedPointBits
from bitldp.categorical.window import CategoricalWindow
from bitldp.channels import Unary
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.sampled import SampledReports
from bitldp.federated.wire.wire import Part
from bitldp.mechanism.base import Mechanism
from bitldp.numeric.unbiased import Unbiased
from bitldp.points.bipartite import Bipartite

Assemble = Callable[[Sequence[NDArray[Any]]], Any]


def _single(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0]


def _sampled(arrays: Sequence[NDArray[Any]]) -> SampledReports:
    return SampledReports(*arrays)


@dataclass(frozen=True)
class Form:
    """Form of a mechanism's reports.

    Attributes
    ----------
    parts : tuple of Part
        The arrays of codes that make a report.
    output : str
        What `randomize` is asked for.
    assemble : callable
        Makes reports, as `decode` takes them, of one array of shape (records, columns) for each part.
    """

    parts: tuple[Part, ...]
    output: str = "codes"
    assemble: Assemble = _single

    def split(self, reports: Any, records: int) -> list[NDArray[Any]]:
        """Return reports as one array of codes for each part."""
        arrays = [np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,))]
        if [array.size for array in arrays] != [records * part.columns for part in self.parts]:
            raise ValueError("reports: not of the form that the mechanism was expected to make")
        return arrays


def form_of(mechanism: Mechanism) -> Form:
    """Return the form of a mechanism's reports.

    Parameters
    ----------
    mechanism : Mechanism
        Any whose reports are codes, bits, or pairs (indices, codes). One that this module does not know is
        asked for the report of one record of the middle of its interval, which is public. Codes share its
        `report_bits` evenly; of a pair, indices take those of a feature, codes the rest. Where that is not
        so, the mechanism says it by an attribute `report_parts`: ((columns, bits), (columns, bits)).

    Raises
    ------
    TypeError
        If the form cannot be told, as for a mechanism of features and a label.
    """
    if isinstance(mechanism, Unbiased):
        bits = (mechanism.alphabet - 1).bit_length()
        if mechanism.k is None:
            return Form((Part(mechanism.features, bits),))
        index = max(1, (mechanism.features - 1).bit_length())
        return Form((Part(mechanism.k, index), Part(mechanism.k, bits)), assemble=_sampled)
    if isinstance(mechanism, FixedPointBits):
        return Form((Part(mechanism.channel.features, mechanism.codec.bits),))
    if isinstance(mechanism, CategoricalWindow):
        cells = mechanism.channel.cells
        if isinstance(mechanism, Bipartite):  # its codes are of the candidates of all regions
            cells = len(mechanism._points)
        return Form((Part(mechanism._columns, (cells - 1).bit_length()),))
    channel = getattr(mechanism, "channel", None)
    if isinstance(channel, Unary):
        return Form((Part(channel.categories, 1),), output="bits")
    return _probed(mechanism)


def _probed(mechanism: Mechanism) -> Form:
    """Return the form of a mechanism by `report_bits` and the report of a public record."""
    name = type(mechanism).__name__
    total, features = getattr(mechanism, "report_bits", None), features_of(mechanism)
    if not isinstance(total, int):
        raise TypeError(f"mechanism: the form of the reports of {name} cannot be told; it has no report_bits")
    low, high = interval_of(mechanism) or (0.0, 0.0)
    middle = np.full((1, features), low + (high - low) / 2.0)
    try:
        reports = mechanism.randomize(middle, rng=0)  # type: ignore[attr-defined]
    except TypeError:  # of features and a label, say
        raise TypeError(f"mechanism: {name} does not release records of numbers alone") from None
    if isinstance(reports, tuple) and len(reports) == 2:
        made: Any = type(reports)
        k = np.size(reports[0])
        declared = getattr(mechanism, "report_parts", None)
        if declared is None:
            index = max(1, (features - 1).bit_length())
            bits, rest = divmod(total, k) if k == np.size(reports[1]) else (0, 1)
            if rest or bits <= index:
                raise TypeError(f"mechanism: the pairs of {name} are not of k indices and k codes")
            declared = ((k, index), (k, bits - index))
        parts = tuple(Part(*each) for each in declared)
        if np.ndim(reports[0]) == 1:  # one index and one code a record, without an axis of columns
            return Form(parts, assemble=lambda arrays: made(*(array.ravel() for array in arrays)))
        if made is tuple:
            return Form(parts, assemble=tuple)
        return Form(parts, assemble=lambda arrays: made(*arrays))
    columns = int(np.size(reports))
    if isinstance(reports, tuple) or columns == 0 or total % columns or not 1 <= total // columns <= 32:
        raise TypeError(f"mechanism: the reports of {name} are not codes of equally many bits")
    if np.ndim(reports) == 1:  # one code a record, and no axis for it
        return Form((Part(columns, total // columns),), assemble=lambda arrays: arrays[0].ravel())
    return Form((Part(columns, total // columns),))


def features_of(mechanism: Mechanism) -> int:
    """Return the number of numbers in a mechanism's record; 1 where the mechanism does not say."""
    for name in ("features", "dimensions"):
        value = getattr(mechanism, name, None)
        if isinstance(value, int):
            return value
    return 1


def interval_of(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return the interval of a mechanism's numbers; None where it has none."""
    if isinstance(mechanism, FixedPointBits):
        return -mechanism.codec.limit, mechanism.codec.limit
    interval = getattr(mechanism, "interval", None)
    if interval is None:
        interval = getattr(mechanism, "_ends", None)
    radius = getattr(mechanism, "radius", None)
    if interval is None and isinstance(radius, (int, float)):  # a ball, whose radius is the clip
        interval = (-radius, radius)
    return None if interval is None else (float(interval[0]), float(interval[1]))


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
    if isinstance(mechanism, Bipartite):
        p, q = mechanism._check_speaks()
        # the unbiased letter of code y: sum over v of v (1[y = v] - q)/(p - q)
        letters = (mechanism._points - q * mechanism._points.sum()) / (p - q)
        return lambda reports: letters[checks.codes("reports", reports, len(letters))]
    if isinstance(accumulator, CountAccumulator):
        raise TypeError(f"mechanism: {type(mechanism).__name__} releases categories, not numbers")
    if type(mechanism).estimate_mean is Mechanism.estimate_mean:  # it accumulates something else than records
        return _biased(mechanism, mechanism._no_mean, allow_biased)
    unbias = getattr(mechanism, "unbias", None)
    return mechanism.decode if unbias is None else unbias  # type: ignore[attr-defined,no-any-return]


def _biased(mechanism: Mechanism, reason: str, allow: bool) -> Callable[[Any], NDArray[np.float64]]:
    """Return what a mechanism decodes, or refuse, for it is not right on average."""
    if not allow:
        raise ValueError(
            f"mechanism: its reports cannot be averaged without bias ({reason}); allow_biased=True "
            "averages what it decodes"
        ) from None
    return mechanism.decode  # type: ignore[attr-defined,no-any-return]
