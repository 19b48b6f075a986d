"""The baselines of FedSel that select without looking: random coordinates, and a random projection."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import keystream
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.base.keys import RandomSource, keys
from bitldp.mechanism.base import Mechanism
from bitldp.numeric import Piecewise, SampledReports
from bitldp.numeric.spend import OnInterval
from bitldp.selection.two_stage import _floats

__all__ = ["Compressed", "flat"]

_ENTRIES = 1 << 27  # of a projection: a gigabyte


def flat(dimensions: int, *, epsilon: float, c: int = 1, values: type[OnInterval] = Piecewise) -> OnInterval:
    """Return the flat baseline: c coordinates drawn without looking, at epsilon/c each, scaled by d/c.

    It is the numeric mechanism itself, ``values(epsilon, features=dimensions, spend="sample", k=c)``, and it
    is unbiased.

    Parameters
    ----------
    dimensions : int
        Coordinates d of a vector.
    epsilon : float
        Privacy budget of a vector.
    c : int
        Coordinates that are released, 1 to d.
    values : type
        `Piecewise`, `Duchi`, `Hybrid`, ...

    Returns
    -------
    Mechanism

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    """
    dimensions = checks.count("dimensions", dimensions, 1)
    c = checks.integer("c", c, 1, dimensions)
    if not (isinstance(values, type) and issubclass(values, OnInterval)):
        raise TypeError("values: must be a class of numeric mechanisms, such as Piecewise")
    return values(epsilon, features=dimensions, spend="sample", k=c)


@lru_cache(maxsize=8)
def _projection(dimensions: int, compressed: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the public projection, entries N(0, 1/q), and its pseudo-inverse; read-only.

    The entries are Box and Muller's of ChaCha20's words, which do not change with NumPy's version.
    """
    count = dimensions * compressed
    pairs = (count + 1) // 2
    key = keys(seed, 1)[0]
    words = np.frombuffer(keystream(key or b"", 0, 16 * pairs), "<u8")
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2.0 * np.log(uniform[:pairs])), 2.0 * math.pi * uniform[pairs:]
    normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
    matrix = normal.reshape(dimensions, compressed) / math.sqrt(compressed)
    return readonly(matrix), readonly(np.linalg.pinv(matrix))


@dataclass(frozen=True, eq=False, repr=False)
class Compressed(Mechanism):
    """The compressed baseline: a public random projection to q numbers, of which c are sampled and perturbed.

    Parameters
    ----------
    dimensions : int
        Coordinates d of a vector, 2 or more.
    compressed : int
        Numbers q after the projection, 2 to d.
    epsilon : float
        Privacy budget of a vector; each sampled number is released at epsilon/c.
    seed : int
        Public seed of the projection: the same for all clients and the server.
    c : int
        Numbers that are sampled, 1 to q.
    bound : float
        Projected numbers are clipped to [-bound, bound].
    values : type
        `Piecewise`, `Duchi`, `Hybrid`, ...

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbours are any two vectors. The projection has entries N(0, 1/q) and does not depend on the data, so
    the exact epsilon is that of the numbers released.

    The mean of the projected vectors is estimated without bias (but for the clipping), and recovered by the
    pseudo-inverse. Recovery loses what the projection does: the result estimates the orthogonal projection of
    the mean on a random subspace of q of the d dimensions.

    Source: Shin, Kim, Shin and Xiao, "Privacy enhanced matrix factorization for recommendation with local
    differential privacy", IEEE TKDE 30 (2018), as FedSel (DASFAA 2020, Section 3.1) states it.
    """

    dimensions: int
    compressed: int
    _: KW_ONLY
    epsilon: float
    seed: int
    c: int = 1
    bound: float = 1.0
    values: type[OnInterval] = Piecewise

    _numbers: ClassVar[OnInterval]
    _no_mean: ClassVar[str] = (
        "a projection to fewer dimensions cannot be undone, so that no unbiased estimate exists; "
        "recover(reports) is the estimate by the pseudo-inverse"
    )

    _no_letters: ClassVar[str] = "a projection to fewer dimensions cannot be undone"

    def _build(self) -> None:
        dimensions = checks.count("dimensions", self.dimensions, 2)
        compressed = checks.integer("compressed", self.compressed, 2, dimensions)
        if dimensions * compressed > _ENTRIES:
            raise ValueError(f"compressed: the projection must have at most {_ENTRIES} entries")
        seed = checks.integer("seed", self.seed, 0)
        c = checks.integer("c", self.c, 1, compressed)
        bound = checks.positive("bound", self.bound)
        epsilon = checks.budget("epsilon", self.epsilon)
        if not (isinstance(self.values, type) and issubclass(self.values, OnInterval)):
            raise TypeError("values: must be a class of numeric mechanisms, such as Piecewise")
        options: dict[str, Any] = {"features": compressed, "spend": "sample", "k": c}
        numbers = self.values(epsilon, interval=(-bound, bound), **options)
        self._set(
            dimensions=dimensions,
            compressed=compressed,
            epsilon=epsilon,
            seed=seed,
            c=c,
            bound=bound,
            _numbers=numbers,
            _guarantee=numbers.guarantee,
        )

    @property
    def numbers(self) -> OnInterval:
        """The mechanism of the projected numbers."""
        return self._numbers

    @property
    def projection(self) -> NDArray[np.float64]:
        """The public matrix, shape (dimensions, compressed); read-only."""
        return _projection(self.dimensions, self.compressed, self.seed)[0]

    @property
    def report_bits(self) -> int:
        """Bits of one packed report: c indices and as many codes."""
        return sum(columns * bits for columns, bits in self.report_parts)

    @property
    def report_parts(self) -> tuple[tuple[int, int], ...]:
        """Columns and bits of a record's indices, which are below `compressed`, and of its codes."""
        index = max(1, (self.compressed - 1).bit_length())
        return (self.c, index), (self.c, max(1, (self._numbers.alphabet - 1).bit_length()))

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Literal["codes", "packed"] = "codes",
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> SampledReports:
        """Project vectors, clip, sample and perturb.

        Parameters
        ----------
        x : array_like of float32 or float64, shape (n, dimensions)
            One vector a client, finite.
        rng, threads, first_chunk
            As of the numeric mechanisms.
        output : {"codes", "packed"}
            Arrays of numbers, or packed bytes.

        Returns
        -------
        SampledReports
            Indices below `compressed`, and codes.

        Raises
        ------
        ValueError, TypeError
            A number that is not finite (an index is given, never the value), wrong shape or dtype.
        """
        checks.choice("output", output, ("codes", "packed"))
        projected = _floats("x", x, self.dimensions).astype(np.float64) @ self.projection
        reports: SampledReports = self._numbers.randomize(
            np.clip(projected, -self.bound, self.bound),
            rng=rng,
            output=output,
            threads=threads,
            first_chunk=first_chunk,
        )
        return reports

    def decode(self, reports: Any) -> NDArray[np.float64]:
        """Return the letters of reports, recovered: shape (n, dimensions)."""
        back = _projection(self.dimensions, self.compressed, self.seed)[1]
        recovered: NDArray[np.float64] = self._numbers.decode(reports) @ back
        return recovered

    def recover(self, reports: Any) -> NDArray[np.float64]:
        """Return the mean of the vectors by the pseudo-inverse, biased (see Notes): shape (dimensions,)."""
        mean = self._numbers.estimate_mean(reports).value
        recovered: NDArray[np.float64] = mean @ _projection(self.dimensions, self.compressed, self.seed)[1]
        return recovered

    def variance(self, x: ArrayLike) -> NoReturn:
        """Refuse: a biased estimate is not described by its variance."""
        raise ValueError(
            "Compressed: its estimate is biased, so that a variance would mislead; numbers.variance is "
            "that of the projected numbers"
        )

    def accumulator(self) -> Any:
        """Return an empty accumulator of the mean of the projected numbers, ``numbers.accumulator()``."""
        return self._numbers.accumulator()
