"""Reports that are a string of bits, one for each category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import count_ones
from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.frequencies import Labelled, TwoChances
from bitldp.release.base import Call, Direct

__all__ = ["BitStrings"]


@dataclass(frozen=True, eq=False, repr=False)
class BitStrings(Labelled, TwoChances):
    """Base of the mechanisms whose report is one bit for each category."""

    takes: ClassVar[Takes | None] = "categories"
    sized_by: ClassVar[str | None] = "categories"
    usual_size: ClassVar[int] = 10
    outputs: ClassVar[tuple[str, ...]] = ("bits", "packed")
    wire_output: ClassVar[str] = "bits"
    _exclusive: ClassVar[bool] = False
    _channel: ClassVar[Any]  # set on the instance, by _build; ClassVar keeps it out of the fields

    @property
    def _cells(self) -> int:
        return self._size

    @property
    def report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one bit a category."""
        return ((self._size, 1),)

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: str = "bits",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> NDArray[Any]:
        """Randomize categories, shape (n,) or (): 0/1 bytes of shape (n, categories), or packed bytes.

        The arguments are those of `Mechanism.randomize`; a chunk is ``channel.chunk`` records.
        """
        return super().randomize(x, rng=rng, output=output, out=out, threads=threads, first_chunk=first_chunk)

    @property
    def _bound(self) -> bool:
        return False  # one draw of a category, in which it is

    def _shortcut(self) -> Direct | None:
        if self.labels is not None:
            return None
        return Direct.of(self._channel.randomize, (None, "bits", None, None, 0), "bits", 1)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        (key, *_), output, out, threads, first_chunk = call
        reports: NDArray[Any] = self._channel.randomize(x, key, output, out, threads, first_chunk)
        return reports

    def _check_bits(self, reports: ArrayLike) -> NDArray[Any]:
        bits = checks.codes("reports", reports, 2)
        if bits.ndim not in (1, 2) or bits.shape[-1] != self._size:
            allowed = f"(n, {self._size}) or ({self._size},)"
            raise ValueError(f"reports: shape must be {allowed}, got {bits.shape}")
        return bits

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        form, array = "packed", reports
        if records is None:
            form, array = "bits", self._check_bits(reports).reshape(-1, self._size)
            array = array.astype(np.uint8, copy=False)
            records = len(array)
        ones = count_ones(array, self._size, form=form, records=records, threads=threads)  # type: ignore[arg-type]
        return records, ones.astype(np.int64)
