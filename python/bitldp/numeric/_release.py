"""How records of numbers are released: all features, or some that are sampled."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp import _checks
from bitldp._core import Grid
from bitldp._rng import RandomSource, keys
from bitldp.numeric._sampled import place, sampled
from bitldp.numeric._scalar import Interval
from bitldp.numeric._unbiased import Unbiased

Output = Literal["codes", "values", "packed"]


class Released(Unbiased):
    """Base of the mechanisms that release numbers of an interval by one channel or a coin between some."""

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one number: P[i, y] = P(code y | points[i]), shape (points, alphabet).

        Raises
        ------
        ValueError
            If the alphabet has more than 8192 codes, so that the table would take over half a gigabyte.
        """
        return self._scalar.probabilities()

    def outside(self, x: ArrayLike) -> int:
        """Return how many values of `x` (float32 or float64) lie outside the interval and are clipped."""
        return Grid(2, low=self._ends[0], high=self._ends[1]).outside(x)

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> Any:
        """Randomize numbers.

        Parameters
        ----------
        x : array_like of float32 or float64
            Shape (n,) or (n, 1) for one feature, else (n, features) or (features,). Values outside the
            interval are clipped to it (`outside` counts them), or refused with ``clip=False``.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"codes", "values", "packed"}
            Codes (smallest unsigned dtype), letters (dtype of `x`; see `decode`), or bytes with as many bits
            a code as are needed.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`. Not with
            ``spend="sample"``.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks of the keys' streams to skip: of ``bitldp._core.CHUNK`` released values, or of
            ``channels[0].chunk`` records where whole records are released by a `Cube`.

        Returns
        -------
        ndarray or SampledReports
            The reports, safe to release at `guarantee`: of the shape of `x`, but that "packed" is flat. With
            ``spend="sample"``, codes and packed bytes come as a pair (indices, codes) of shape (n, k), or
            (k,) for a record by itself; indices are packed to ``(features - 1).bit_length()`` bits, at least
            1. Its "values" have the shape of `x`, the middle of the interval standing for what was not
            sampled.

        Raises
        ------
        ValueError
            NaN, a value outside with ``clip=False`` (an index is given, never the value), wrong shape, unfit
            `out`, or "values" where reports say nothing. Nothing is written then.
        TypeError
            Wrong dtype or kind of argument.
        """
        self._check_axis("x", _checks.shape("x", x))
        threads, first_chunk = _checks.stream(threads, first_chunk)
        _checks.choice("output", output, ("codes", "values", "packed"))
        if output == "values":
            self._check_speaks()
        if not self.clip:
            refuse_outside(_checks.plain("x", x), self._ends)
        scalar = self._scalar
        if self.k is None:
            return scalar.randomize(x, keys(rng, scalar.streams), output, out, threads, first_chunk)
        if out is not None:
            raise ValueError("out: not offered with spend='sample', where a report is a pair")
        values = _checks.plain("x", x)
        streams = keys(rng, scalar.streams + 1)
        if output == "values":
            pairs = sampled(scalar, values, (self.features, self.k), streams, "codes", threads, first_chunk)
            return self.decode(pairs).reshape(values.shape).astype(values.dtype, copy=False)
        return sampled(scalar, values, (self.features, self.k), streams, output, threads, first_chunk)


def refuse_outside(x: NDArray[Any], ends: Interval) -> None:
    """Refuse numbers outside an interval, NaN too; other dtypes are left to the channel."""
    if x.dtype not in (np.float32, np.float64) or not x.size:
        return  # the channel says what it takes
    # In the dtype of x: an end that float32 cannot hold is still inside.
    low, high = (x.dtype.type(end) for end in ends)
    if not (x.min() >= low and x.max() <= high):
        # Written so that NaN fails.
        where = place(~((x >= low) & (x <= high)))
        raise ValueError(f"x: {where} is NaN or outside {ends}, which clip=False refuses")
