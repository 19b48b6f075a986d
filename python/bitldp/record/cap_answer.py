"""Answers about single attributes of a record that one channel released together."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.categorical.supported import Supported
from bitldp.estimate.statistics import counts_of
from bitldp.mechanism.base import Part
from bitldp.privacy import Guarantee

__all__ = ["CapAnswer"]


@dataclass(frozen=True, eq=False, repr=False)
class CapAnswer(Supported):
    """Answer about one attribute of a `RecordCap`: a subset of its categories, or one of them.

    Parameters
    ----------
    categories, size : int
        Categories of the attribute, and of its subset.
    epsilon : float
        Exact epsilon of the whole report.
    chances : (float, float)
        That the subset holds the true category, and another one, where the attribute is drawn.
    """

    categories: int
    _: KW_ONLY
    size: int
    epsilon: float
    chances: tuple[float, float]

    def _build(self) -> None:
        p, q = self.chances
        self._set(
            _size=self.categories,
            _law=(p, q, p * (self.size - 1) / (self.categories - 1)),
            _guarantee=Guarantee.judge(self.epsilon, (self.epsilon,) * 3),
        )

    @property
    def _exclusive(self) -> bool:  # type: ignore[override]
        return self.size == 1

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: a code, or one bit a category."""
        return ((1, (self._size - 1).bit_length()),) if self.size == 1 else ((self._size, 1),)

    def _support_sizes(self) -> tuple[int, int]:
        return (1, 1) if self.size == 1 else (0, self._size)

    def _support(self, reports: Any, categories: NDArray[np.int64]) -> NDArray[np.bool_]:
        if self.size == 1:
            return checks.codes("reports", reports, self._size)[..., None] == categories
        bits = checks.codes("reports", reports, 2)
        if bits.shape[-1:] != (self._size,):
            raise ValueError(f"reports: shape must be (n, {self._size}), got {bits.shape}")
        return bits[..., categories] != 0

    def _indicators(self, reports: Any) -> NDArray[np.float64]:
        p, q = self.chances
        inside = self._support(reports, np.arange(self._size)).astype(np.float64)
        result: NDArray[np.float64] = (inside - q) / (p - q)
        return result

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        if self.size == 1:
            codes = checks.codes("reports", reports, self._size)
            narrow = codes.astype(np.uint16 if self._size <= 1 << 16 else np.uint32)
            return len(codes), counts_of(narrow, 1, self._size, "codes", None, threads)[0]
        bits = self._support(reports, np.arange(self._size))
        return len(bits), bits.sum(axis=0, dtype=np.int64)

    def _doubt(self, n: int, counts: NDArray[np.int64]) -> str:
        """Count the ones: an honest report has as many as its subset."""
        ones = int(counts.sum())
        if ones == n * self.size:
            return ""
        return f"The reports hold {ones / n:.6g} ones each, but each should hold exactly {self.size}"

    def decode(self, reports: ArrayLike) -> NDArray[Any]:
        """Return the category of a report that is one, checked; unbiased letters of one that is a subset."""
        return checks.codes("reports", reports, self._size) if self.size == 1 else super().decode(reports)
