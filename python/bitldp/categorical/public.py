"""Designs whose steps may be public coins: reports of two parts, or of one where the other is implied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import pack
from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.categorical.coded import DesignCodes
from bitldp.categorical.stepped import SteppedReports, Steps
from bitldp.categorical.supported import Supported
from bitldp.estimate.accumulators import unpacked
from bitldp.estimate.estimates import Estimate
from bitldp.mechanism.base import Part
from bitldp.release.base import Call, Direct, called

__all__ = ["MOST_SEED", "PublicSteps"]

MOST_SEED = (1 << 63) - 1
"""The largest seed of public steps, and number of a record."""


class PublicSteps(DesignCodes, Supported):
    """Base of the designs whose steps may be public.

    Not a dataclass: a subclass has the parameter `public`, and sets the steps while it is built, None where
    a report is one code.
    """

    public: bool
    _steps: ClassVar[Steps | None]

    @property
    def report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one code, or a public step and a cell."""
        return super().report_parts if self._steps is None else self._steps.parts

    def join(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return reports, as `decode` takes them, of one array of shape (n, 1) for each part."""
        return (
            super().join(parts) if self._steps is None else SteppedReports(*(each.ravel() for each in parts))
        )

    @property
    def _streams(self) -> int:
        return 1 if self._steps is None else 2

    @property
    def _bound(self) -> bool:
        return self._steps is not None  # two draws: of a step and of a cell

    def _shortcut(self) -> Direct | None:
        return super()._shortcut() if self._steps is None else None

    def randomize(
        self,
        x: ArrayLike,
        *,
        first: int | None = None,
        rng: RandomSource = None,
        output: str = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> Any:
        """Randomize records; see `Mechanism.randomize`.

        Parameters
        ----------
        x : array_like of int, or of labels, shape (n,) or ()
            Categories.
        first : int, optional
            With `public`: the number of the first record, 0 or more, where client and server imply it, as by
            client and round. Record i has the step of number ``first + i``. No two records should have the
            same. None: steps are drawn at random, and reported.
        rng, output, out, threads, first_chunk
            As of every mechanism. `out` is not offered where steps are public.

        Returns
        -------
        ndarray or SteppedReports
            Codes; where steps are public, the pair (steps, cells), or the cells alone with `first`. "packed"
            is flat.

        Raises
        ------
        ValueError, TypeError
            As of `Mechanism.randomize`; and for `first` without `public`.
        """
        if first is not None:
            first = self._number(first)
        if first is None or self._steps is None:
            return super().randomize(
                x, rng=rng, output=output, out=out, threads=threads, first_chunk=first_chunk
            )
        call = called(rng, output, out, threads, first_chunk, self.outputs, self._streams)
        values = self._admit(x)
        found = self._stepped(np.atleast_1d(values), call, first).cells
        return found if values.ndim or output == "packed" else found[0]

    def _number(self, first: Any) -> int:
        """Return a checked number of a first record."""
        if not self.public:
            raise ValueError("first: is for public=True")
        return checks.integer("first", first, 0, MOST_SEED)

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        return super()._perturb(x, call) if self._steps is None else self._stepped(x, call, None)

    def _stepped(self, x: NDArray[Any], call: Call, first: int | None) -> SteppedReports:
        """Return reports with public steps, drawn or numbered."""
        if self._steps is None:
            raise TypeError("mechanism: its steps are not public")
        checks.records("x", x, 1)
        (key, coin, *_), output, out, threads, first_chunk = call
        if out is not None:
            raise ValueError("out: not offered where steps are public, since a report has two parts")
        codes = checks.codes("x", x, self._size)
        flat = codes.reshape(-1)
        steps = (
            self._steps.drawn(coin, flat.size, first_chunk)
            if first is None
            else self._steps.numbered(flat.size, first)
        )
        found = self._steps.release(flat, steps, key, threads, first_chunk)
        if output == "packed":
            both = zip(found, self._steps.parts, strict=True)
            return SteppedReports(*(pack(np.ascontiguousarray(part), bits) for part, (_, bits) in both))
        return SteppedReports(*(part.reshape(codes.shape) for part in found))

    def numbered(self, cells: ArrayLike, first: int) -> Any:
        """Return reports of cells that were randomized with `first`: the steps are put beside them.

        Parameters
        ----------
        cells : array_like of int, shape (n,)
            As `randomize` gives them with `first`.
        first : int
            The number of the first one.

        Returns
        -------
        SteppedReports
            Or the cells as they are, where the design has no steps.

        Raises
        ------
        ValueError, TypeError
            For a cell out of range, another shape, or without `public`.
        """
        number = self._number(first)
        return cells if self._steps is None else self._steps.beside(cells, number)

    def decode(self, reports: Any, *, first: int | None = None) -> NDArray[np.float64]:
        """Return unbiased letters of reports; see `OLH.decode`. With `first` reports are cells alone."""
        return super().decode(reports if first is None else self.numbered(reports, first))

    def estimate_frequencies(
        self, reports: Any, *, project: bool = False, first: int | None = None
    ) -> Estimate:
        """Estimate the frequency of every category among the records, without bias.

        Parameters
        ----------
        reports : array_like of int, or SteppedReports
            As `randomize` gives them; cells alone with `first`.
        project : bool
            Whether to project the frequencies to the simplex (which makes them biased).
        first : int, optional
            As of `randomize`.

        Returns
        -------
        Estimate
            Shape (categories,), with the labels, where the mechanism has any.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), for no reports, or for one out of range.
        """
        given = reports if first is None else self.numbered(reports, first)
        return super().estimate_frequencies(given, project=project)

    def _read(self, reports: Any, records: int | None) -> tuple[str, Any, int]:
        if self._steps is not None:
            codes = self._steps.codes(unpacked(self, reports, records))
            return "codes", codes.ravel(), codes.size
        return super()._read(reports, records)
