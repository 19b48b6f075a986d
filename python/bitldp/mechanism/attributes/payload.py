"""One form for the reports of different mechanisms, so that a report does not depend on which one answered.

A mechanism that reports one code keeps it; reports of other forms become their bits. Where attributes are
sampled, the report of any of them fits the common form: codes of the widest, or bits with zeros behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.mechanism.base import Mechanism, Part

__all__ = ["common", "form_of", "payload", "reports_of"]


def form_of(mechanism: Mechanism) -> Part:
    """Return (columns, bits) of one report: a code, or as many single bits as its parts have."""
    parts = mechanism.report_parts
    return parts[0] if len(parts) == 1 and 1 in parts[0] else (mechanism.report_bits, 1)


def common(mechanisms: Sequence[Mechanism]) -> Part:
    """Return the form that a report of any of the mechanisms fits."""
    forms = [form_of(each) for each in mechanisms]
    if all(columns == 1 for columns, _ in forms):
        return 1, max(bits for _, bits in forms)
    return max(columns * bits for columns, bits in forms), 1


def payload(mechanism: Mechanism, reports: Any, records: int, form: Part) -> NDArray[np.unsignedinteger]:
    """Return reports of `records` records in a form that they fit, shape (records, columns)."""
    arrays = [np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,))]
    columns, bits = form
    if columns == 1:
        return arrays[0].reshape(records, 1).astype(np.min_scalar_type((1 << bits) - 1))
    found = np.zeros((records, columns), np.uint8)
    begin = 0
    for array, (width, size) in zip(arrays, mechanism.report_parts, strict=True):
        if size == 1:
            found[:, begin : begin + width] = array.reshape(records, width)
            begin += width
            continue
        places = np.arange(size - 1, -1, -1, dtype=np.uint64)
        spelled = array.reshape(records, width, 1).astype(np.uint64) >> places & np.uint64(1)
        found[:, begin : begin + width * size] = spelled.reshape(records, width * size)
        begin += width * size
    return found


def reports_of(mechanism: Mechanism, found: NDArray[Any], form: Part) -> Any:
    """Return what `payload` was given, as the mechanism's estimators take it.

    Raises
    ------
    ValueError
        For bits where the form has none for this mechanism. A code out of its range is for the mechanism to
        refuse.
    """
    parts = mechanism.report_parts
    if form[0] == 1:
        return found.reshape(-1)
    arrays, begin = [], 0
    for width, size in parts:
        if size == 1:
            arrays.append(found[:, begin : begin + width])
            begin += width
            continue
        spelled = found[:, begin : begin + width * size].reshape(len(found), width, size).astype(np.uint64)
        places = np.arange(size - 1, -1, -1, dtype=np.uint64)
        codes = (spelled << places).sum(axis=2, dtype=np.uint64)
        arrays.append(codes.astype(np.min_scalar_type((1 << size) - 1)))
        begin += width * size
    if found[:, begin:].any():
        raise ValueError("reports: there are bits beyond those of the attribute that was sampled")
    arrays = [array[:, 0] if width == 1 else array for array, (width, _) in zip(arrays, parts, strict=True)]
    return mechanism.join(arrays)
