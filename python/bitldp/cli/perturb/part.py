"""One mechanism on the columns that it perturbs together, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp import _core
from bitldp.cli.perturb.columns import Codec, Labels, Numbers, Reals

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
    rng : numpy.random.SeedSequence or None
        None: fresh keys of the operating system for every batch.
    """

    mechanism: Any
    codec: Codec
    output: str
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
        if self.split and self.output != "bits":  # the bits of a category are drawn a record at a time
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
        # Points and categories become values by the codec, which knows the columns.
        if isinstance(self.codec, Numbers) or self.output == "bits" or self.split:
            options["output"] = self.output
        reports: NDArray[Any]
        if self.rng is None:
            reports = self.mechanism.randomize(x, **options)
        elif not self.whole:
            # A seed makes one stream for the whole file: a batch takes the chunks after those of the rows
            # before it.
            chunk = first * self.per_row // _core.CHUNK
            reports = self.mechanism.randomize(x, rng=self.rng, first_chunk=chunk, **options)
        else:  # such streams do not go on where a batch ends: every so many rows have a seed of their own
            blocks = [x[start : start + _core.CHUNK] for start in range(0, max(1, len(x)), _core.CHUNK)]
            seeds = (
                np.random.SeedSequence(self.rng.entropy, spawn_key=(*self.rng.spawn_key, place))
                for place in range(first // _core.CHUNK, first // _core.CHUNK + len(blocks))
            )
            reports = np.concatenate(
                [
                    self.mechanism.randomize(block, rng=seed, **options)
                    for block, seed in zip(blocks, seeds, strict=True)
                ]
            )
        return reports
