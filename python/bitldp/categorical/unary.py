"""Unary encodings of a category: SUE (basic RAPPOR) and OUE, independent bits on one-hot input."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Subset, Unary, count_ones
from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.mechanism.base import Output, Part, Takes
from bitldp.mechanism.frequencies import Labelled, TwoChances
from bitldp.mechanism.law import INPUTS, TABLE, Block, Experiment, Pair, Symbols, spread
from bitldp.mechanism.parameters import Budget, CategoryNames, categories
from bitldp.privacy import ONE, Guarantee, calibrated
from bitldp.release.base import Call, Direct

__all__ = ["OUE", "SUE", "BitStrings"]


class BitStrings(Labelled, TwoChances):
    """Base of the mechanisms whose report is one bit for each category."""

    _takes: ClassVar[Takes | None] = "categories"
    _sized_by: ClassVar[str | None] = "categories"
    _usual_size: ClassVar[int] = 10
    outputs: ClassVar[tuple[str, ...]] = ("bits", "packed")
    _wire_output: ClassVar[Output] = "bits"
    _exclusive: ClassVar[bool] = False
    _reported: ClassVar[Literal["codes", "bits"] | None] = "bits"
    _channel: Unary | Subset

    @property
    def _cells(self) -> int:
        return self._size

    @property
    def _report_parts(self) -> tuple[Part, ...]:
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
        **unknown: Any,
    ) -> NDArray[Any]:
        """Randomize categories, shape (n,) or (): 0/1 bytes of shape (n, categories), or packed bytes.

        The arguments are those of `Mechanism.randomize`; a chunk is ``channel.chunk`` records.
        """
        return super().randomize(  # type: ignore[call-overload]
            x, rng=rng, output=output, out=out, threads=threads, first_chunk=first_chunk, **unknown
        )

    @property
    def _bound(self) -> bool:
        return False  # one draw of a category, in which it is

    def _shortcut(self) -> Direct | None:
        if self.labels is not None:
            return None
        return Direct.of(self._channel.randomize, (None, "bits", None, None, 0), "bits", 1)

    def _program(self, numbers: Type) -> ClientProgram:
        record = ClientRecord.of_codes(self._size, labels=self.labels)
        return ClientProgram(record, self._report_parts, self._channel)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        (key, *_), output, out, threads, first_chunk = call
        return self._channel.randomize(x, key, output, out, threads, first_chunk)

    def _support_sizes(self) -> tuple[int, int]:
        """Return that a report may be any bits: none of 1, or all."""
        return 0, self._size

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


ALPHA = 1e-6  # chance that honest, independent reports are doubted
_SMALLEST = 2.0**-53
_MOST = 1 << 31  # categories: a report is as many bits


@lru_cache(maxsize=64)
def _sue_channel(categories: int, epsilon: float) -> Unary:
    def build(target: float) -> Unary:
        # p = e^(eps/2)/(1 + e^(eps/2)); q = 1 - p is exact, since p >= 1/2
        p = min(0.5 + 0.5 * math.tanh(target / 4.0), 1.0 - _SMALLEST)
        return Unary(categories, p, 1.0 - p)

    return calibrated(build, epsilon, lambda channel: channel.epsilon[2])


@lru_cache(maxsize=64)
def _oue_channel(categories: int, epsilon: float) -> Unary:
    def build(target: float) -> Unary:
        q = max(0.5 - 0.5 * math.tanh(target / 2.0), _SMALLEST)  # 1/(1 + e^eps), without loss near 1/2
        if target > 1.0:
            q = max(math.exp(-target) / (1.0 + math.exp(-target)), 2.0**-60)  # nor in the tail
        return Unary(categories, 0.5, q)

    return calibrated(build, epsilon, lambda channel: channel.epsilon[2])


@dataclass(frozen=True, eq=False, repr=False)
class UnaryEncoding(BitStrings):
    """Base of the mechanisms that answer the k bits of a one-hot vector independently."""

    categories: Annotated[CategoryNames, categories(_MOST)]
    _: KW_ONLY
    epsilon: Budget

    _channel: Unary = field(init=False, repr=False, compare=False)

    @abstractmethod
    def _unary(self) -> Unary:
        """Return the channel of `_size` categories and of exact epsilon `epsilon`."""

    def _build(self) -> None:
        self._name(self.categories)
        channel = self._unary()
        self._set(
            _channel=channel,
            _guarantee=Guarantee.judge(self.epsilon, channel.epsilon, given="one-hot input"),
        )

    @property
    def channel(self) -> Unary:
        """The channel: its `thresholds()` are the law."""
        return self._channel

    @property
    def epsilon_arbitrary(self) -> float:
        """Exact epsilon if the same bits were answered on arbitrary strings: the sum over all bits.

        One-hot inputs differ in two bits, whatever k is; that is what `guarantee` counts.
        """
        return self._channel.epsilon_arbitrary

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel behind a report, whose bits are independent."""
        return (Symbols((self._channel,), 1),)

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return categories to compare and the law of their bits; see `Mechanism.extremes`."""
        count = self._size
        chosen = spread(count, min(INPUTS, max(2, TABLE // count)))
        if pair is not None:
            chosen = [int(each) for each in checks.codes("pair", list(pair), count)]
        p, q = self._law()
        own = np.array(chosen)[:, None] == np.arange(count)
        table = np.where(own[..., None], [1.0 - p, p], [1.0 - q, q])
        block = Block(table, lambda position, value: f"the bit of category {position} is reported {value}")
        names = [f"category {each}" for each in chosen]
        return Experiment(chosen, names, [block], [(0, 1)], {"output": "bits"})

    def _law(self) -> tuple[float, float]:
        p, q = self._channel.thresholds()
        return p / ONE, q / ONE

    def _doubt(self, n: int, counts: NDArray[np.int64]) -> str:
        """Test the sum of all ones: an honest report has one of p and k - 1 of q, whatever its category is.

        Notes
        -----
        The chance of a sum as far from its mean m N, of N = n k independent bits, is at most twice
        e^(-N KL(sum/N, m)), however unlike the bits are: Hoeffding, JASA 58 (1963), Theorem 1.
        """
        p, q = self._law()
        bits, ones = n * self._size, int(counts.sum())
        mean, share = (p + (self._size - 1) * q) / self._size, ones / bits
        if not 0.0 < mean < 1.0:
            return ""
        apart = sum(a * math.log(a / b) for a, b in ((share, mean), (1.0 - share, 1.0 - mean)) if a > 0.0)
        if 2.0 * math.exp(-bits * apart) >= ALPHA:
            return ""
        return (
            f"The reports hold {ones / n:.4g} ones each, where honest ones hold {mean * self._size:.4g} on "
            f"average, whatever their categories: so far off at most once in {1 / ALPHA:,.0f} times by chance"
        )

    def _check_informative(self) -> tuple[float, float]:
        p, q = self._channel.thresholds()
        if p == q:
            raise ValueError(
                f"{type(self).__name__}: no unbiased decode exists at epsilon 0: reports ignore the value"
            )
        return self._law()

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of bits, (bit - q)/(p - q), in their shape; see `OLH.decode`."""
        p, q = self._check_informative()
        return np.array([-q / (p - q), (1.0 - q) / (p - q)])[self._check_bits(reports)]

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the two probabilities and the errors of a frequency; see `Mechanism._facts`."""
        p, q = self._law()
        result = super()._facts(users)
        errors = {"epsilon_on_arbitrary_bit_strings": self.epsilon_arbitrary, **result["errors"]}
        return {"probabilities": {"own_bit_is_1": p, "another_bit_is_1": q}, "errors": errors}

    def probabilities(self) -> NDArray[np.float64]:
        """Return P(report 1 | bit 1) and P(report 1 | bit 0), shape (2,)."""
        return np.array(self._law())


@dataclass(frozen=True, eq=False, repr=False)
class SUE(UnaryEncoding):
    """Symmetric unary encoding (SUE, basic RAPPOR): flips the k one-hot bits of a category, all alike.

    p = e^(eps/2)/(1 + e^(eps/2)), q = 1 - p.

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories k, 2 or more: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget of a record, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records hold any two categories, so their one-hot vectors differ in two bits: exact epsilon
    is ln(p(1 - q)/((1 - p)q)). No probability is nearer to 1 than 1 - 2**-53, so it is at most 73.5, however
    large the budget. Source: Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014.
    """

    def _unary(self) -> Unary:
        return _sue_channel(self._size, self.epsilon)


@dataclass(frozen=True, eq=False, repr=False)
class OUE(UnaryEncoding):
    """Optimized unary encoding (OUE): flips the k one-hot bits of a category, zeros and ones differently.

    p = 1/2, q = 1/(1 + e^eps).

    Parameters
    ----------
    categories, epsilon
        As of `SUE`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records hold any two categories, so their one-hot vectors differ in two bits: exact epsilon
    is ln(p(1 - q)/((1 - p)q)) = ln((1 - q)/q). q is at least 2**-60, so it is at most 41.6, however large the
    budget. Source: Wang, Blocki, Li and Jha, "Locally differentially
    private protocols for frequency estimation", USENIX Security 2017.
    """

    def _unary(self) -> Unary:
        return _oue_channel(self._size, self.epsilon)
