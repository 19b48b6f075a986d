"""Optimal local hashing: randomized response on a hash of the category, under a function of one's own."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window, count_hashes, function_values, pack, unpack
from bitldp.base import checks
from bitldp.base.arrays import fill, zeros_if_refused
from bitldp.base.keys import RandomSource
from bitldp.categorical.supported import Supported
from bitldp.client.program import ClientProgram, PublicDraw
from bitldp.client.record import ClientRecord, Type
from bitldp.design.difference import is_prime
from bitldp.mechanism.base import Output, Part
from bitldp.mechanism.law import Symbols
from bitldp.mechanism.parameters import RANDOMIZE, Budget, CategoryNames, categories, refuse_unknown
from bitldp.privacy import ONE, Guarantee
from bitldp.release.base import Call, called
from bitldp.release.draws import MOST_NUMBER, functions, functions_of_numbers, public_key
from bitldp.release.window import WindowRelease, window

__all__ = ["OLH"]

_MOST = 1 << 24  # categories: their hashes are computed one by one


@dataclass(frozen=True, eq=False, repr=False)
class OLH(Supported):
    """Optimal local hashing (OLH): randomized response on a random hash of the category.

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories k, 2 to 2**24: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget of a record, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    A report is (a, b, y). The hash function x -> floor(g ((a x + b) mod P)/P) is drawn without looking at the
    record, and y is the category's hash value after randomized response on g = round(e^eps) + 1 values (at
    most k): the true one with probability p = e^eps/(e^eps + g - 1). P is the smallest prime of at least k. A
    report counts for every category with that hash value. Two categories share a hash value under a fraction
    c of all functions; c is the sum of n (n - 1)/(P (P - 1)) over the hash values, n being the number of
    remainders that map to each. A report therefore counts for another category with probability q = p c + (1
    - p)(1 - c)/(g - 1), exactly, and p and q give unbiased estimates.

    With `first`, the hash function of a record follows from its public number, which both sides know. A
    report is then the value alone, in ceil(log2 g) bits, and no client can choose a function under which many
    categories share a value. Epsilon is that of the value, whoever chose the function.

    An estimate takes n k steps. `BlockDesign` has the same variance or less in fewer bits, and its estimates
    are faster. a and b are drawn from scaled 64-bit numbers, so the chances of the functions differ from
    uniform by less than a relative P/2**64.

    Neighbouring records hold any two categories. No probability is nearer to 1 than 1 - 2**-53, so that the
    exact epsilon is at most 36.74 + ln(g - 1), however large the budget. Source: Wang, Blocki, Li and Jha,
    "Locally differentially private protocols for frequency estimation", USENIX Security 2017; the functions
    are those of Carter and Wegman, "Universal classes of hash functions", JCSS 18 (1979).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.OLH(1000, epsilon=2.0)
    >>> mechanism.values, mechanism.prime
    (8, 1009)
    >>> reports = mechanism.randomize(np.full(10_000, 7), rng=1)
    >>> reports.shape
    (10000, 3)
    >>> bool(abs(mechanism.estimate_frequencies(reports).value[7] - 1.0) < 0.05)
    True
    """

    categories: Annotated[CategoryNames, categories(_MOST)]
    _: KW_ONLY
    epsilon: Budget

    _report_names: ClassVar[tuple[str, ...]] = ("a", "b", "value")

    _release: WindowRelease = field(init=False, repr=False, compare=False)
    _prime: int = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        epsilon, count = self.epsilon, self._hashing(self.categories)
        g = max(2, min(count, round(math.exp(min(epsilon, 60.0))) + 1))
        release = window(g, 1, epsilon)
        exact = release.epsilon
        self._set(
            _release=release,
            _law=self._chances(Fraction(release.channel.high, ONE), g),
            _guarantee=Guarantee.judge(epsilon, (exact, exact, exact)),
        )

    def _hashing(self, given: Any) -> int:
        """Keep the categories and the prime of their functions; return how many categories there are."""
        count = self._name(given)
        if count > _MOST:  # labels, of which there may be more
            raise ValueError(f"categories: must be at most {_MOST}, got {count}")
        prime = next(n for n in range(max(3, count | 1), 2 * count + 2, 2) if is_prime(n))
        self._set(_prime=prime)
        return count

    def _chances(self, p: Fraction, g: int) -> tuple[float, float, float]:
        """Return the chances that a report counts for the true category, for another, and for both.

        Parameters
        ----------
        p : Fraction
            Chance that the true hashed value is reported.
        g : int
            Values of a function.
        """
        bounds = [-(-y * self._prime // g) for y in range(g + 1)]
        pairs = sum((end - start) * (end - start - 1) for start, end in pairwise(bounds))
        alike = Fraction(pairs, self._prime * (self._prime - 1))
        q = p * alike + (1 - p) * (1 - alike) / (g - 1)
        return float(p), float(q), float(p * alike)

    @property
    def channel(self) -> Window:
        """The channel of the hashed values: its `high` is the law; uninformative at epsilon 0."""
        return self._release.channel

    @property
    def values(self) -> int:
        """Values of a hash function, g."""
        return self._release.alphabet

    @property
    def prime(self) -> int:
        """Prime P of the hash functions."""
        return self._prime

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: a, b and the value, all below the prime."""
        return ((3, (self._prime - 1).bit_length()),)

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of the hashed value; none at epsilon 0."""
        return (Symbols((self._release.channel,), 1),) if self._release.epsilon else ()

    @property
    def _streams(self) -> int:
        return 2

    def randomize(
        self,
        x: ArrayLike,
        *,
        first: int | None = None,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
        **unknown: Any,
    ) -> Any:
        """Randomize categories; see `Mechanism.randomize`.

        Parameters
        ----------
        x : array_like of int, or of labels, shape (n,) or ()
            Categories.
        first : int, optional
            The number of the first record, 0 or more, if client and server both know it: record i has the
            hash function of number ``first + i``, and its report is the value alone. No two records should
            have the same number. None: functions are drawn at random, and reported.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        output : str
            One of `outputs`. "codes" have the smallest unsigned dtype. "values" are decoded by `decode`, in
            the dtype of `x`. "bits" are bytes of 0 and 1. "packed" are bytes that hold only the bits that a
            code needs.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`. Not available where
            a report is a pair of arrays.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks of the keys' streams to skip: of ``bitldp._core.CHUNK`` released values, or of
            ``channels[0].chunk`` records where whole records are released.
            `out` is not available with `first`.

        Returns
        -------
        ndarray
            Triples (a, b, value); with `first` the values alone, shape of `x`. "packed" is flat.

        Raises
        ------
        ValueError
            For NaN, a value that is not allowed (the message gives its index, never the value), a wrong
            shape, an `out` that does not fit, or "values" where reports are uninformative. Nothing is
            returned in that case. Values are checked while they are randomized: if one is refused, `out` is
            filled with zeros. If the arguments do not fit each other, `out` is unchanged.
        TypeError
            For a wrong dtype or kind of argument.
        """
        if first is None:
            return super().randomize(
                x, rng=rng, output=output, out=out, threads=threads, first_chunk=first_chunk, **unknown
            )
        if unknown:
            refuse_unknown("randomize", unknown, RANDOMIZE)
        number = checks.integer("first", first, 0, MOST_NUMBER)
        call = called(rng, output, out, threads, first_chunk, self.outputs, self._streams)
        if out is not None:
            raise ValueError("out: not supported with first=, where a report is a value alone")
        values = self._admit(x)
        codes = self._checked(np.atleast_1d(values), call)
        drawn = self._answered(self._hashed(codes, self._functions(number, len(codes))), call)
        if output == "packed":
            return pack(drawn, (self.values - 1).bit_length())
        return drawn if values.ndim else drawn[0]

    def numbered(self, values: ArrayLike, first: int) -> NDArray[np.uint32]:
        """Add the hash functions to values that were randomized with `first`.

        Parameters
        ----------
        values : array_like of int, shape (n,)
            As `randomize` gives them with `first`.
        first : int
            The number of the first one.

        Returns
        -------
        ndarray of uint32, shape (n, 3)
            What `decode`, `estimate_frequencies` and accumulators take.

        Raises
        ------
        ValueError, TypeError
            For a value out of range, or another shape.
        """
        codes = np.atleast_1d(checks.codes("values", values, self.values))
        if codes.ndim > 1:
            raise ValueError(f"values: shape must be (n,), got {codes.shape}")
        own = self._functions(checks.integer("first", first, 0, MOST_NUMBER), len(codes))
        return np.column_stack([own, codes]).astype(np.uint32)

    def _functions(self, first: int, records: int) -> NDArray[np.uint32]:
        """Return the functions of public numbers, whoever asks."""
        return functions_of_numbers(public_key(0, "hash"), first, records, self._prime)

    def _checked(self, x: NDArray[Any], call: Call) -> NDArray[np.int64]:
        checks.records("x", x, 1)
        with zeros_if_refused(call.out):
            return checks.codes("x", x, self._size).reshape(-1).astype(np.int64)

    def _hashed(self, codes: NDArray[np.int64], own: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the hashed values of codes, each by its own function."""
        return function_values(own, codes.astype(np.uint32), self._prime, self.values)

    def _answered(self, hashed: NDArray[Any], call: Call) -> NDArray[Any]:
        """Return the answers to hashed values."""
        return self._release.randomize(hashed, call.codes(call.keys[:1]))

    def _program(self, numbers: Type) -> ClientProgram:
        record = ClientRecord.of_codes(self._size, labels=self.labels)
        draw = PublicDraw("affine", self._prime, self.values)
        return ClientProgram(record, self._report_parts, self.channel, draw=draw)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        codes = self._checked(x, call)
        own = functions(call.keys[-1], len(codes), self._prime, call.first_chunk)
        reports = np.column_stack([own, self._answered(self._hashed(codes, own), call)]).astype(np.uint32)
        given = pack(reports, self._report_parts[0][1]) if call.output == "packed" else reports
        return given if call.out is None else fill(call.out, given)

    @staticmethod
    def _single(reports: Any, call: Call) -> Any:
        """Return the report of a single value: the axis of the three numbers stays."""
        return reports if call.output == "packed" else reports[0]

    def _check_triples(self, reports: Any) -> NDArray[np.uint32]:
        table = checks.codes("reports", reports, self._prime)
        if table.ndim not in (1, 2) or table.shape[-1] != 3:
            raise ValueError(f"reports: shape must be (n, 3) or (3,), got {table.shape}")
        if (table[..., 0] < 1).any() or (table[..., 2] >= self.values).any():
            raise ValueError(
                f"reports: must be a from 1 to {self._prime - 1}, b from 0, and a value from 0 to "
                f"{self.values - 1}"
            )
        return np.ascontiguousarray(table, np.uint32)

    def _support(self, reports: Any, categories: NDArray[np.int64]) -> NDArray[np.bool_]:
        a, b, value = np.moveaxis(self._check_triples(reports).astype(np.int64), -1, 0)[..., None]
        return (a * categories + b) % self._prime * self.values // self._prime == value

    def _support_sizes(self) -> tuple[int, int]:
        """Return the sizes of the least and the largest set of categories that share a hashed value.

        x + b maps the categories to neighbouring remainders, of which a value has a run; the remainders of
        no category may all lie in it.
        """
        count, prime, g = self._size, self._prime, self.values
        runs = [-(-(y + 1) * prime // g) - -(-y * prime // g) for y in range(g)]
        return max(0, min(runs) - (prime - count)), min(count, max(runs))

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        if records is not None:
            bits = self._report_parts[0][1]
            reports = unpack(checks.plain("reports", reports), bits, 3 * records).reshape(-1, 3)
        triples = self._check_triples(reports).reshape(-1, 3)
        counts = count_hashes(triples, self._size, self._prime, self.values, threads=threads)
        return len(triples), counts.astype(np.int64)
