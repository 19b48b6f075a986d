"""One mechanism on the columns that it perturbs together, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp import _core
from bitldp.cli.perturb.columns import Codec, Labels, Numbers, Points, Reals
from bitldp.cli.perturb.worth import Worth

__all__ = ["Part"]


@dataclass(frozen=True)
class Part:
    """One mechanism on the columns that it perturbs together.

    Attributes
    ----------
    mechanism : Mechanism
    codec : Codec
    output : str
        Form of its columns in the file.
    worth : Worth
        What they are worth.
    rng : numpy.random.SeedSequence or None
        None: fresh keys of the operating system for every batch.
    """

    mechanism: Any
    codec: Codec
    output: str
    worth: Worth
    rng: np.random.SeedSequence | None
    threads: int | None

    @property
    def released(self) -> int:
        """How many columns of a row are released: all, or those that are sampled."""
        return self.codec.released if isinstance(self.codec, Reals) else len(self.codec.columns)

    @property
    def whole(self) -> bool:
        """Whether a record of real numbers is released as one."""
        return isinstance(self.codec, Reals) and self.mechanism.whole

    @property
    def split(self) -> bool:
        """Whether the report of one column is several codes."""
        return isinstance(self.codec, Labels) and self.mechanism.report_parts[0][0] > 1

    @property
    def per_row(self) -> int:
        """Values of a chunk of the keystream that one row takes."""
        if self.whole:
            return 1
        # The bits of a category are drawn a record at a time, and so is what stands for no category.
        if self.split and self.output != "bits" and self.mechanism.alike:
            return int(self.mechanism.report_parts[0][0])
        return self.released

    @property
    def width(self) -> int:
        """Bytes of a row's input and output, about."""
        columns = len(self.codec.columns)
        several = self.output == "bits" or self.split
        return 16 * columns + several * 4 * int(self.mechanism.report_bits)

    def randomize(self, x: NDArray[Any], first: int) -> NDArray[Any]:
        """Randomize the rows from number `first` (counted from 0) on."""
        options: dict[str, Any] = {"threads": self.threads}
        words = isinstance(self.codec, Numbers) and not isinstance(self.codec, Reals)
        letters = words and self.worth.decode == "unbiased"
        # Points and categories become values by the codec, which knows the columns.
        if isinstance(self.codec, Numbers) or self.output == "bits" or self.split:
            options["output"] = "codes" if letters else self.output
        if isinstance(self.codec, Points) and self.codec.indices:
            x = self.codec.place(x)
        reports = self._reports(x, first, options)
        if self.worth.numbers is not None:
            return self.worth.numbers[reports]
        return self.mechanism.unbias(reports) if letters else reports

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers are outside the range, so that they move to its ends."""
        if isinstance(self.codec, Numbers):
            return int(self.mechanism.outside(x))
        if isinstance(self.codec, Points):
            return int(np.count_nonzero((x < self.codec.low) | (x > self.codec.high)))
        return 0

    def _reports(self, x: NDArray[Any], first: int, options: dict[str, Any]) -> NDArray[Any]:
        if self.rng is None:
            return self.mechanism.randomize(x, **options)
        if not self.whole:
            # A seed makes one stream for the whole file: a batch takes the chunks after those of the rows
            # before it.
            chunk = first * self.per_row // _core.CHUNK
            return self.mechanism.randomize(x, rng=self.rng, first_chunk=chunk, **options)
        # Such streams do not go on where a batch ends: every so many rows have a seed of their own.
        starts = range(0, max(1, len(x)), _core.CHUNK)
        return np.concatenate(
            [
                self.mechanism.randomize(
                    x[start : start + _core.CHUNK],
                    rng=np.random.SeedSequence(
                        self.rng.entropy, spawn_key=(*self.rng.spawn_key, (first + start) // _core.CHUNK)
                    ),
                    **options,
                )
                for start in starts
            ]
        )
