"""The baselines of FedSel that select without looking: random coordinates, and a random projection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import keystream
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.base.keys import keys
from bitldp.estimate.means import MeanAccumulator
from bitldp.mechanism.base import Mechanism, Part
from bitldp.mechanism.law import Experiment, Pair, Symbols
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import Budget, FieldId, at_least
from bitldp.numeric import Piecewise, SampledReports
from bitldp.release.base import Call
from bitldp.selection.two_stage import floats

__all__ = ["Compressed", "flat"]

_FAR = 4.0  # bounds that a projected number is moved by, so that it is clipped
_ENTRIES = 1 << 27  # of a projection: a gigabyte


def flat(features: int, *, epsilon: float, c: int = 1, release: type[Numeric] = Piecewise) -> Numeric:
    """Return the flat baseline: c coordinates drawn without looking, at epsilon/c each, scaled by d/c.

    It is the numeric mechanism itself,
    ``release(epsilon=epsilon, features=features, spend="sample", k=c)``, and it is unbiased.

    Parameters
    ----------
    features : int
        Coordinates d of a vector.
    epsilon : float
        Privacy budget of a vector.
    c : int
        Coordinates that are released, 1 to d.
    release : type
        `Piecewise`, `Duchi`, `Hybrid`, ...

    Returns
    -------
    Mechanism

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    """
    features = checks.count("features", features, 1)
    c = checks.integer("c", c, 1, features)
    if not (isinstance(release, type) and issubclass(release, Numeric)):
        raise TypeError("release: must be a class of numeric mechanisms, such as Piecewise")
    return release(epsilon=epsilon, features=features, spend="sample", k=c)


@lru_cache(maxsize=8)
def _projection(dimensions: int, compressed: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the public projection, entries N(0, 1/q), and its pseudo-inverse; read-only.

    The entries are Box and Muller's of ChaCha's words, which do not change with NumPy's version.
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
    features : int
        Coordinates d of a vector, 2 or more.
    compressed : int
        Numbers q after the projection, 2 to d.
    epsilon : float
        Privacy budget of a vector; each sampled number is released at epsilon/c.
    public_seed : int
        Public seed of the projection: the same for all clients and the server.
    c : int
        Numbers that are sampled, 1 to q.
    bound : float
        Projected numbers are clipped to [-bound, bound].
    release : type
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
    pseudo-inverse. Recovery cannot restore what the projection drops: the result estimates the orthogonal
    projection of the mean on a random subspace of q of the d dimensions.

    Source: Shin, Kim, Shin and Xiao, "Privacy enhanced matrix factorization for recommendation with local
    differential privacy", IEEE TKDE 30 (2018), as FedSel (DASFAA 2020, Section 3.1) states it.
    """

    features: Annotated[int, at_least(2), FieldId("dimensions")]
    _: KW_ONLY
    compressed: int
    epsilon: Budget
    public_seed: Annotated[int, at_least(0, 1 << 256), FieldId("seed")]
    c: int = 1
    bound: Annotated[float, checks.positive] = 1.0
    release: Annotated[type[Numeric], FieldId("values")] = Piecewise

    _usual_size: ClassVar[int] = 100
    _numbers: Numeric = field(init=False, repr=False, compare=False)
    _no_document: ClassVar[str] = (
        "it compresses a vector by a public matrix of NumPy, whose sums differ between machines"
    )
    _no_mean: ClassVar[str] = (
        "a projection to fewer dimensions cannot be undone, so that no unbiased estimate exists; "
        "recover(reports) is the estimate by the pseudo-inverse"
    )

    _no_letters: ClassVar[str] = "a projection to fewer dimensions cannot be undone"

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: a projection to 10 numbers, or to all."""
        dimensions = cls._usual_size if size is None else size
        return {
            "features": dimensions,
            "compressed": min(10, dimensions),
            "epsilon": epsilon,
            "public_seed": 0,
        }

    def _build(self) -> None:
        dimensions = self.features
        compressed = checks.integer("compressed", self.compressed, 2, dimensions)
        if dimensions * compressed > _ENTRIES:
            raise ValueError(f"compressed: the projection must have at most {_ENTRIES} entries")
        c = checks.integer("c", self.c, 1, compressed)
        if not (isinstance(self.release, type) and issubclass(self.release, Numeric)):
            raise TypeError("release: must be a class of numeric mechanisms, such as Piecewise")
        options: dict[str, Any] = {"features": compressed, "spend": "sample", "k": c}
        numbers = self.release(epsilon=self.epsilon, interval=(-self.bound, self.bound), **options)
        self._set(compressed=compressed, c=c, _numbers=numbers, _guarantee=numbers.guarantee)

    @property
    def numbers(self) -> Numeric:
        """The mechanism of the projected numbers."""
        return self._numbers

    @property
    def projection(self) -> NDArray[np.float64]:
        """The public matrix, shape (features, compressed); read-only."""
        return _projection(self.features, self.compressed, self.public_seed)[0]

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a record's indices, which are below `compressed`, and of its codes."""
        return self._numbers._report_parts

    def _join(self, parts: Sequence[NDArray[Any]]) -> SampledReports:
        """Return reports, as `decode` takes them, of the arrays of their parts."""
        return SampledReports(*parts)

    @property
    def columns(self) -> int:
        """Coordinates of a vector."""
        return self.features

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channels of the projected numbers."""
        return self._numbers._symbols()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return vectors whose projections are clipped at opposite ends; see `Mechanism.extremes`."""
        if pair is not None:
            return None
        ones = np.full(self.compressed, _FAR * self.bound)
        whole = ones @ np.linalg.pinv(self.projection)
        return Experiment((whole, -whole), ("every projected number high", "every projected number low"))

    @property
    def _streams(self) -> int:
        return self._numbers._streams

    def _perturb(self, x: NDArray[Any], call: Call) -> SampledReports:
        if call.out is not None:
            raise ValueError("out: not supported, since a report is a pair")
        projected = np.clip(self._project(x), -self.bound, self.bound)
        return self._numbers._perturb(projected, call)

    def _project(self, x: ArrayLike) -> NDArray[np.float64]:
        return floats("x", x, self.features).astype(np.float64) @ self.projection

    def outside(self, x: ArrayLike) -> int:
        """Return how many projected numbers lie beyond `bound` and are clipped; see `Mechanism.outside`."""
        return self._numbers.outside(self._project(x))

    def decode(self, reports: Any) -> NDArray[np.float64]:
        """Return the letters of reports, recovered: shape (n, features)."""
        back = _projection(self.features, self.compressed, self.public_seed)[1]
        return self._numbers.decode(reports) @ back

    def recover(self, reports: Any) -> NDArray[np.float64]:
        """Return the mean of the vectors by the pseudo-inverse, biased (see Notes): shape (features,)."""
        mean = self._numbers.estimate_mean(reports).value
        return mean @ _projection(self.features, self.compressed, self.public_seed)[1]

    def variance(self, x: ArrayLike) -> NoReturn:
        """Raise an error, because the variance of a biased estimate does not describe its error."""
        raise ValueError(
            "Compressed: its estimate is biased, so that a variance would mislead; numbers.variance is "
            "that of the projected numbers"
        )

    def accumulator(self) -> MeanAccumulator:
        """Return an empty accumulator of the mean of the projected numbers, ``numbers.accumulator()``."""
        return self._numbers.accumulator()
