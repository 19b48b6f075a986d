"""Reports that are one code of a design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Design
from bitldp.base import checks
from bitldp.estimate.means import countable
from bitldp.estimate.statistics import counts_of
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.frequencies import Frequencies, Labelled
from bitldp.mechanism.law import Symbols
from bitldp.release.base import Call, Direct

__all__ = ["DesignCodes"]


@dataclass(frozen=True, eq=False, repr=False)
class DesignCodes(Labelled, Frequencies):
    """Base of the mechanisms whose report is a code of a `bitldp._core.Design`."""

    takes: ClassVar[Takes | None] = "categories"
    sized_by: ClassVar[str | None] = "categories"
    usual_size: ClassVar[int] = 10
    alike: ClassVar[bool] = False
    _channel: ClassVar[Design]  # set on the instance, by _build; ClassVar keeps it out of the fields

    @property
    def channel(self) -> Design:
        """The channel: its `high` is the law; mute at epsilon 0."""
        return self._channel

    @property
    def report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one code."""
        return ((1, (self._channel.outputs - 1).bit_length()),)

    def symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of a report; none at epsilon 0."""
        return (Symbols((self._channel,), 1),) if self._channel.epsilon else ()

    @property
    def _bound(self) -> bool:
        return False  # one draw of a category, in which it is

    def _shortcut(self) -> Direct | None:
        if self.labels is not None:
            return None
        return Direct.of(self._channel.randomize, (None, "codes", None, None, 0), "codes", 1)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        checks.records("x", x, 1)
        (key, *_), output, out, threads, first_chunk = call
        return self._channel.randomize(x, key, output, out, threads, first_chunk)

    def _read(self, reports: Any, records: int | None) -> tuple[str, Any, int]:
        """Return the form of reports, the reports, and how many there are; `records` if packed."""
        if records is not None:
            return "packed", reports, records
        array = countable("reports", reports)
        checks.records("reports", array, 1)
        return "codes", array, array.size

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        form, array, records = self._read(reports, records)
        return records, counts_of(array, 1, self._channel.outputs, form, records, threads)[0]
