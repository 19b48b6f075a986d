"""One mechanism on the columns that it perturbs together, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp import _core
from bitldp.base.errors import PlanError
from bitldp.tables.attributes import Attributes
from bitldp.tables.cells import Codec, Labels, Numbers, Points, Reals
from bitldp.tables.worth import Worth

__all__ = ["Part", "form"]


def form(name: str, mechanism: Any, output: str | None) -> str:
    """Return the form of a mechanism's columns, or refuse one that it does not have.

    Parameters
    ----------
    name : str
        What the mechanism is called in an error.
    mechanism : Mechanism
    output : {"values", "codes", "bits"} or None
        The form that is asked for; None: values, but code words of mechanisms of bits.

    Raises
    ------
    PlanError
        For a form that it does not have.
    """
    if mechanism.takes == "record":
        if output not in (None, "codes"):
            raise PlanError(f"output {output}: a report of {name} is about some of its columns; use codes")
        return "codes"
    if "codes" not in mechanism.outputs:
        if output not in (None, "bits"):
            raise PlanError(f"output {output}: a report of {name} is one bit for each category; use bits")
        return "bits"
    if not mechanism.alike:
        if len(mechanism.report_parts) > 1:
            raise PlanError(f"{name}: a report has two parts; with public=False it is one code")
        if output not in (None, "codes"):
            raise PlanError(
                f"output {output}: a report of {name} is a code, and none of a category; use codes"
            )
        return "codes"
    if output == "codes" and len(mechanism.report_parts) > 1:
        raise PlanError("output codes: with spend sample a report is indices and codes; use values")
    if output == "bits" and "bits" not in mechanism.outputs:
        raise PlanError(f"output bits: {name} reports one symbol; use values or codes")
    if output is None:  # words of bits are no unbiased numbers by themselves
        return "codes" if "bits" in mechanism.outputs else "values"
    return output


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
    rng: np.random.SeedSequence | None = None
    threads: int | None = None

    @property
    def plain(self) -> str:
        """What an estimate of its columns is of: "share" of categories, or "mean" of numbers."""
        return "share" if isinstance(self.codec, Labels) else "mean"

    @property
    def caveat(self) -> str | None:
        """What numbers are before they are randomized, where a mean is of that."""
        if isinstance(self.codec, Points):
            dithered = getattr(self.mechanism, "rounding", "nearest") == "dither"
            return None if dithered else f"of the nearest of {self.codec.points} points"
        if isinstance(self.codec, Numbers) and not isinstance(self.codec, Reals):
            return f"of multiples of {self.mechanism.codec.step:g}"
        return None

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
        several = several or isinstance(self.codec, Attributes)
        return 16 * columns + several * 4 * int(self.mechanism.report_bits)

    def randomize(self, x: NDArray[Any], first: int) -> NDArray[Any]:
        """Randomize the rows from number `first` (counted from 0) on."""
        return self._shown(x, lambda values, options: self._reports(values, first, options))

    def randomize_keyed(self, x: NDArray[Any], key: bytes, ids: NDArray[Any], column: int) -> NDArray[Any]:
        """Randomize rows with coins of a key and their ids, each of which comes up once.

        The reports depend on the records alone.

        `column` is the number of the part's first column among all that are released under the key.
        """
        return self._shown(
            x,
            lambda values, options: self.mechanism.randomize_keyed(
                *self._arguments(values), key=key, ids=ids, column=column, duplicates=True, **options
            ),
        )

    def _shown(
        self, x: NDArray[Any], release: Callable[[NDArray[Any], dict[str, Any]], NDArray[Any]]
    ) -> NDArray[Any]:
        """Return what the columns hold of the reports that `release` makes of values, given options."""
        options: dict[str, Any] = {"threads": self.threads}
        words = isinstance(self.codec, Numbers) and not isinstance(self.codec, Reals)
        letters = words and self.worth.decode == "unbiased"
        # Points and categories become values by the codec, which knows the columns.
        if isinstance(self.codec, Numbers) or self.output == "bits" or self.split:
            options["output"] = "codes" if letters else self.output
        if isinstance(self.codec, Points) and self.codec.indices:
            x = self.codec.place(x)
        reports = release(x, options)
        if self.worth.numbers is not None:
            return self.worth.numbers[reports]
        return self.mechanism.unbias(reports) if letters else reports

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers are outside the range, so that they move to its ends."""
        if isinstance(self.codec, Numbers):
            return int(self.mechanism.outside(x))
        if isinstance(self.codec, Attributes):
            return 0 if self.codec.numbers is None else int(self.mechanism.outside(self._arguments(x)[0]))
        if isinstance(self.codec, Points):
            return int(np.count_nonzero((x < self.codec.low) | (x > self.codec.high)))
        return 0

    def _arguments(self, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return an encoded batch as the mechanism's arguments."""
        return self.codec.arguments(x) if isinstance(self.codec, Attributes) else (x,)

    def _reports(self, x: NDArray[Any], first: int, options: dict[str, Any]) -> NDArray[Any]:
        if self.rng is None:
            return self.mechanism.randomize(*self._arguments(x), **options)
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
