"""RAPPOR: a category as bits that are answered once for ever, and once more in every report."""

from __future__ import annotations

import math
import os
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Bits, KeyedRandomness, Unary, keystream, log_ratio
from bitldp.base import checks
from bitldp.base.arrays import fill, zeros_if_refused
from bitldp.base.keys import RandomSource
from bitldp.categorical.unary import UnaryEncoding, _sue_channel
from bitldp.client.program import ClientProgram
from bitldp.client.record import Type
from bitldp.mechanism.parameters import optional
from bitldp.privacy import ONE, Guarantee, added, calibrated
from bitldp.release.base import Call, Source, called
from bitldp.release.keyed import Ids, fitting, keyed_randomness

__all__ = ["RAPPOR"]

_GIVEN = "one-hot input, and all reports of one value together: a value that changes counts once more"


def _once(channel: Unary, again: Bits) -> tuple[int, int]:
    """Return 2**128 P(report 1 | bit 1) and 2**128 P(report 1 | bit 0), through both steps."""
    (p, q), (one, zero) = channel.thresholds(), again.thresholds()[0][0]
    return p * one + (ONE - p) * zero, q * one + (ONE - q) * zero


def _exact_once(channel: Unary, again: Bits) -> float:
    """Return the exact epsilon of one report: two bits differ, each at its worst."""
    p, q = _once(channel, again)
    return added(log_ratio(p, q), log_ratio(ONE * ONE - q, ONE * ONE - p))


@lru_cache(maxsize=64)
def _again(channel: Unary, epsilon: float) -> Bits:
    """Return the second step: with p = (1 + s)/2 and a = (1 + t)/2 both steps together have (1 + s t)/2."""
    kept = 2.0 * channel.thresholds()[0] / ONE - 1.0

    def build(target: float) -> Bits:
        share = min(math.tanh(target / 4.0) / kept, 1.0 - 2.0**-52) if kept > 0.0 else 0.0
        one = 0.5 + 0.5 * share
        return Bits([[one]], [[1.0 - one]], channel.categories)

    return calibrated(build, epsilon, lambda bits: _exact_once(channel, bits))


@dataclass(frozen=True, eq=False, repr=False)
class RAPPOR(UnaryEncoding):
    """RAPPOR (basic): flips the k one-hot bits of a category once and keeps them, then again in every report.

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories k, 2 or more: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget of all reports of one value together, however many; finite, zero or more.
    first : float, optional
        Privacy budget of a single report, at most `epsilon`. None: half of `epsilon`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    `permanent` randomizes the bits of a category like `SUE` at `epsilon`, with keyed randomness, so that a
    value always gets the same answer. The answer stays with the user. `report` randomizes the bits of that
    answer again, with fresh random bits each time. One report alone has the exact epsilon of
    `first_guarantee`. Any number of them reveal no more than the permanent answer does, at `guarantee`.
    `randomize` performs both steps with fresh random bits.

    Each value gets its own permanent answer: v values cost v times `epsilon`. Many reports before and after a
    change reveal that there are two answers. Neighbouring records hold any two categories. Source:
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014, the basic form, without a Bloom filter: its f is 2(1 -
    p) of `SUE` at `epsilon`.

    Examples
    --------
    >>> import os, numpy as np, bitldp
    >>> rappor = bitldp.RAPPOR(10, epsilon=4.0, first=1.0)
    >>> users, values = np.arange(5000, dtype=np.uint64), np.arange(5000) % 10
    >>> answer = rappor.permanent(values, key=os.urandom(32), ids=users)
    >>> reports = rappor.report(answer)
    >>> reports.shape, rappor.estimate_frequencies(reports).value.shape
    ((5000, 10), (10,))
    """

    _: KW_ONLY
    first: Annotated[float | None, optional(checks.budget)] = None

    # Derived of the parameters while the mechanism is built.
    _second: Bits = field(init=False, repr=False, compare=False)
    _first: Guarantee = field(init=False, repr=False, compare=False)

    def _unary(self) -> Unary:
        return _sue_channel(self._size, self.epsilon)

    def _build(self) -> None:
        super()._build()
        first = self.epsilon / 2.0 if self.first is None else self.first
        if first > self.epsilon:
            raise ValueError(f"first: must be at most epsilon={self.epsilon}, got {first}")
        exact, channel = self._guarantee, self._channel
        second = _again(channel, first)
        once = _exact_once(channel, second)
        p, q = _once(channel, second)
        bit = max(log_ratio(p, q), log_ratio(ONE * ONE - q, ONE * ONE - p))
        self._set(
            first=first,
            _second=second,
            _first=Guarantee.judge(first, (bit, once, once), given="one-hot input, and no other report"),
            _guarantee=Guarantee.judge(exact.claimed, (exact.bit, exact.feature, exact.record), given=_GIVEN),
        )

    @property
    def first_guarantee(self) -> Guarantee:
        """Claimed and exact epsilon of one report by itself; `guarantee` covers all reports of a value."""
        return self._first

    @property
    def second(self) -> Bits:
        """The channel of the second step: its `thresholds()` are the law."""
        return self._second

    def _law(self) -> tuple[float, float]:
        p, q = _once(self._channel, self._second)
        return p / (ONE * ONE), q / (ONE * ONE)

    def _check_informative(self) -> tuple[float, float]:
        p, q = _once(self._channel, self._second)
        if p == q:
            raise ValueError(
                "RAPPOR: no unbiased decode exists at epsilon 0 or first=0, where reports ignore the value"
            )
        return self._law()

    def _doubt(self, n: int, counts: NDArray[np.int64]) -> str:
        """Return nothing: reports of one permanent answer are not independent."""
        return ""

    @property
    def _streams(self) -> int:
        return 2

    @property
    def _bound(self) -> bool:
        return True  # two draws

    def _shortcut(self) -> None:
        """Return none: there are two steps."""

    def _program(self, numbers: Type) -> ClientProgram:
        return replace(super()._program(numbers), second=self._second)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        with zeros_if_refused(out):
            bits = self._channel.randomize(x, keys[0], "bits", None, threads, first_chunk)
        reports = self._answered(bits, keys[1], output, threads, first_chunk)
        return reports if out is None else fill(out, reports)

    def _answered(
        self, bits: NDArray[Any], source: Source, output: str, threads: int | None, first_chunk: int
    ) -> NDArray[Any]:
        """Return the bits answered once more."""
        form = "codes" if output == "bits" else "packed"
        if isinstance(source, KeyedRandomness):
            return self._second.randomize(bits, None, source, form, None, threads, 0)
        # Each chunk of records has a key of its own: the second channel counts its chunks in bits.
        chunk, secret = self._channel.chunk, os.urandom(32) if source is None else source
        result = []
        for position, start in enumerate(range(0, max(1, len(bits)), chunk)):
            key = keystream(secret, first_chunk + position, 32)
            part = bits[start : start + chunk]
            result.append(self._second.randomize(part, None, key, form, None, threads, 0))
        return result[0] if len(result) == 1 else np.concatenate(result)

    def permanent(
        self,
        x: ArrayLike,
        *,
        key: bytes,
        ids: Ids,
        context: bytes = b"",
        threads: int | None = None,
    ) -> NDArray[np.uint8]:
        """Answer categories for ever: the same answer for the same user and category.

        Parameters
        ----------
        x : array_like, shape (n,)
            Categories, as `randomize` takes them.
        key : bytes
            32 secret bytes, which never appear in a repr, pickle, log or error. Use the same key for as long
            as you collect reports.
        ids : ndarray of int, zero or more, shape (n,); of uint8, shape (n, 32); or sequence of n bytes
            Ids of the records: numbers, digests of 32 bytes, or names, which are hashed with SHA-256.
        context : bytes
            Purpose of the randomness: the plan and the snapshot.
        threads : int, optional
            Number of threads; the result does not depend on it.

        Returns
        -------
        ndarray of uint8, shape (n, categories)
            Bits, the input of `report`. Keep them where the key is.

        Raises
        ------
        ValueError, TypeError
            As `randomize_keyed`.
        """
        randomness, values = keyed_randomness(key, ids, context, 0, False), self._admit(x)
        fitting(randomness, values)
        return self._channel.randomize(values, randomness, "bits", None, threads, 0)

    def report(
        self,
        permanent: ArrayLike,
        *,
        rng: RandomSource = None,
        output: str = "bits",
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Report on permanent answers, with fresh random bits each time.

        Parameters
        ----------
        permanent : array_like of 0 and 1, shape (n, categories)
            As `permanent` gives them.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        output : str
            One of `outputs`. "codes" and "bits" are bytes of 0 and 1, "packed" eight of them a byte.
        threads : int, optional
            Number of threads; the result does not depend on it.

        Returns
        -------
        ndarray
            Reports, as in `randomize`: safe to release.

        Raises
        ------
        ValueError, TypeError
            For anything but such answers, or an argument out of its range.
        """
        call = called(rng, output, None, threads, 0, self.outputs, 1)
        bits = np.ascontiguousarray(np.atleast_2d(self._check_bits(permanent)), np.uint8)
        return self._answered(bits, call.keys[0], call.output, call.threads, 0)
