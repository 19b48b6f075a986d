"""LOLOHA: a category that changes over time, hashed to few values, each of which is answered for ever."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window, log_ratio, pack
from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.categorical.hashing import OLH
from bitldp.client.program import ClientProgram
from bitldp.client.record import Type
from bitldp.mechanism.parameters import optional, whole
from bitldp.privacy import ONE, Guarantee, calibrated, composed
from bitldp.release.base import Call, called
from bitldp.release.draws import functions
from bitldp.release.keyed import Ids, fitting, keyed_randomness
from bitldp.release.window import WindowRelease, high_share, window

__all__ = ["LOLOHA"]

_MOST = 1 << 16  # values of a hash function
GIVEN = (
    "all reports while the hashed value stays: each other hashed value costs the same once more, and the "
    "reports show when it changes"
)
_FOR_EVER = "all reports of two histories whose hashed values change at the same times, whatever they are"


def _kept(channel: Window) -> Fraction:
    """Return the chance that randomized response keeps a value; by chance alone where it is mute."""
    return Fraction(channel.high, ONE) if channel.epsilon else Fraction(1, channel.cells)


def _through(first: Window, second: Window) -> Fraction:
    """Return the chance that a report is the true hashed value, after both steps."""
    p, again = _kept(first), _kept(second)
    return p * again + (1 - p) * (1 - again) / (first.cells - 1)


def _exact(first: Window, second: Window) -> float:
    """Return the exact epsilon of one report by itself, rounded up."""
    kept = _through(first, second)
    ratio = kept * (first.cells - 1) / (1 - kept)
    return log_ratio(ratio.numerator, ratio.denominator)


@lru_cache(maxsize=64)
def _second(permanent: Window, epsilon: float) -> WindowRelease:
    """Return the second step: both together have the exact epsilon `epsilon`, or just less.

    Both are randomized response on g values: with p of the first and r of the second the true one is
    reported with p r + (1 - p)(1 - r)/(g - 1), which is to be the share of `epsilon`.
    """
    g, p = permanent.cells, float(_kept(permanent))
    other = (1.0 - p) / (g - 1)

    def build(target: float) -> WindowRelease:
        share = (high_share(g, 1, target) - other) / (p - other) if p > other and target else 0.0
        kept = min(max(share, 1.0 / g), 1.0 - 2.0**-53)
        channel = Window(g, 1, kept, mute=target == 0.0)
        return WindowRelease(channel, channel.epsilon, g)

    return calibrated(build, epsilon, lambda release: _exact(permanent, release.channel))


@dataclass(frozen=True, eq=False, repr=False)
class LOLOHA(OLH):
    """LOLOHA: reports a category that changes over time, through one permanent hash and two steps.

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories k, 2 to 2**24: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget of all reports of one hashed value together, however many; finite, zero or more.
    first : float, optional
        Privacy budget of a single report, at most `epsilon`. None: half of `epsilon`.
    cells : int, optional
        Values g of a hash function, 2 to 65,536. With 2 (BiLOLOHA), values that change cost the least
        possible, 2 `epsilon`. None: round(e^first) + 1, which gives the least variance of an estimate
        (OLOHA). The attribute then holds the chosen number.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    A client draws one hash function (a, b) and keeps it, as in `OLH`. `permanent` answers the hashed value by
    randomized response at `epsilon`, with keyed randomness: the same hashed value always gets the same
    answer. `report` randomizes that answer again by randomized response, with fresh random bits each time.

    There are three exact epsilons, each computed from the integers of both steps. `first_guarantee` covers
    one report alone, between any two categories. `guarantee` covers any number of reports, between two
    categories that a record holds all the time. `longitudinal_guarantee` covers any number of reports,
    whatever the record's category does. It is at most g times `guarantee`, since a function has g values;
    `over` returns the cost of fewer values. It compares two histories whose hashed values change at the same
    times. No bound holds for other pairs of histories: reports reveal that an answer changed, the more surely
    the more reports there are. With `RAPPOR` each category that a record takes costs another `epsilon`; here
    categories with the same hashed value share one answer.

    The paper sets the second step by a formula that is exact for g = 2 only (Section 3.2); for a larger g, a
    report would have an epsilon below `first`. Here a report has `first` for every g. The best g is therefore
    that of `OLH` at `first`, and the variance of an estimate is below the paper's. `randomize` performs all
    steps with fresh random bits.

    Source: Arcolezi, Pinzon, Palamidessi and Gambs, "Frequency estimation of evolving data under local
    differential privacy", EDBT 2023.

    Examples
    --------
    >>> import os, numpy as np, bitldp
    >>> loloha = bitldp.LOLOHA(100, epsilon=2.0, first=1.0)
    >>> users, key = np.arange(20_000, dtype=np.uint64), os.urandom(32)
    >>> for day in range(3):  # categories that change
    ...     answer = loloha.permanent((np.arange(20_000) + day) % 100, key=key, ids=users)
    ...     estimate = loloha.estimate_frequencies(loloha.report(answer))
    >>> loloha.cells, round(loloha.over(1), 6), round(loloha.longitudinal_guarantee.record, 6)
    (4, 2.0, 8.0)
    """

    _: KW_ONLY
    first: Annotated[float | None, optional(checks.budget)] = None
    cells: Annotated[int | None, optional(whole(2, _MOST))] = None

    # Derived of the parameters while the mechanism is built.
    _again: WindowRelease = field(init=False, repr=False, compare=False)
    _once: Guarantee = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        first = self.epsilon / 2.0 if self.first is None else self.first
        if first > self.epsilon:
            raise ValueError(f"first: must be at most epsilon={self.epsilon}, got {first}")
        size = self._hashing(self.categories)
        cells = min(_MOST, size, 1 + round(math.exp(min(first, 60.0)))) if self.cells is None else self.cells
        release = window(max(2, cells), 1, self.epsilon)
        again = _second(release.channel, first)
        exact, once = release.epsilon, _exact(release.channel, again.channel)
        self._set(
            first=first,
            cells=release.alphabet,
            _release=release,
            _again=again,
            _law=self._chances(_through(release.channel, again.channel), release.alphabet),
            _once=Guarantee.judge(first, (once, once, once), given="no other report"),
            _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact), given=GIVEN),
        )

    @property
    def second(self) -> Window:
        """The channel of the second step: its `high` is the law."""
        return self._again.channel

    @property
    def first_guarantee(self) -> Guarantee:
        """Claimed and exact epsilon of one report by itself; `guarantee` covers all while the value stays."""
        return self._once

    @property
    def longitudinal_guarantee(self) -> Guarantee:
        """Claimed and exact epsilon of all reports for ever; `given` says between which histories."""
        total = self.over(self.values)
        return Guarantee.judge(composed(self.epsilon, self.values), (total, total, total), given=_FOR_EVER)

    def over(self, values: int) -> float:
        """Return the exact epsilon of all reports of a record that takes `values` different categories.

        Parameters
        ----------
        values : int
            How many different categories a record takes over all rounds, 1 or more.

        Returns
        -------
        float
            The epsilon of that many hashed values, at most `cells`, between two histories whose hashed values
            change at the same times.

        Raises
        ------
        ValueError, TypeError
            If it is below 1.
        """
        return composed(self.guarantee.record, min(self.values, checks.integer("values", values, 1)))

    def _check_informative(self) -> tuple[float, float]:
        p, q, _ = self._law
        if not self._once.record:
            raise ValueError(
                "LOLOHA: no unbiased decode exists at epsilon 0 or first=0, where reports ignore the value"
            )
        return p, q

    @property
    def _streams(self) -> int:
        return 3

    def _program(self, numbers: Type) -> ClientProgram:
        return replace(super()._program(numbers), second=self.second)

    def _answered(self, hashed: NDArray[Any], call: Call) -> NDArray[Any]:
        return self._again.randomize(super()._answered(hashed, call), call.codes(call.keys[1:2]))

    def permanent(
        self,
        x: ArrayLike,
        *,
        key: bytes,
        ids: Ids,
        context: bytes = b"",
        threads: int | None = None,
    ) -> NDArray[np.uint32]:
        """Answer categories for ever: the same function for the same user, the same answer to a hashed value.

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
        ndarray of uint32, shape (n, 3)
            (a, b, answer), the input of `report`. Keep it where the key is.

        Raises
        ------
        ValueError, TypeError
            As `randomize_keyed`.
        """
        randomness = keyed_randomness(key, ids, context, 0, False)
        call = called(None, "codes", None, threads, 0, self.outputs, 0)
        codes = self._checked(np.atleast_1d(self._admit(x)), call)
        fitting(randomness, codes)
        # Of the id alone, so that it stays; as with all keyed draws, the answer is of the hashed value, too.
        own = functions(randomness.stage(2), len(codes), self.prime, 0)
        hashed = self._hashed(codes, own)
        answer = super()._answered(hashed, call._replace(keys=[randomness.stage(0)]))
        return np.column_stack([own, answer]).astype(np.uint32)

    def report(
        self,
        permanent: ArrayLike,
        *,
        rng: RandomSource = None,
        output: str = "codes",
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Report on permanent answers, with fresh random bits each time.

        Parameters
        ----------
        permanent : array_like of int, shape (n, 3)
            As `permanent` gives them.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        output : str
            One of `outputs`. "codes" have the smallest unsigned dtype. "values" are decoded by `decode`, in
            the dtype of `x`. "bits" are bytes of 0 and 1. "packed" are bytes that hold only the bits that a
            code needs.
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
        reports = np.atleast_2d(self._check_triples(permanent)).copy()
        reports[:, 2] = self._again.randomize(reports[:, 2].astype(np.int64), call.codes(call.keys))
        return pack(reports, self._report_parts[0][1]) if call.output == "packed" else reports
