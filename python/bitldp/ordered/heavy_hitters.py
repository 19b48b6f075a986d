"""Heavy hitters: the most frequent words of a domain that nobody could list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import hash_cells, pack
from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.estimate import saved
from bitldp.estimate.accumulators import Accumulated, BatchAccumulator, unpacked
from bitldp.estimate.estimates import Estimate, frequencies, indicator_spread
from bitldp.letters.reach import Reach, checked_part
from bitldp.mechanism.base import Mechanism, Output, Part, Takes
from bitldp.mechanism.described import spreads
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.mechanism.parameters import RANDOMIZE, Budget, Option, optional, refuse_unknown, whole
from bitldp.ordered.vocabulary import Words, letters_of, planned
from bitldp.privacy import Guarantee
from bitldp.release.base import Call, called
from bitldp.release.draws import MOST_NUMBER, coordinates, public_key, scaled, seeds, words_of_numbers
from bitldp.release.hashed import Hashed, hashed
from bitldp.release.sampled import index_bits

__all__ = ["SEED_BITS", "HeavyHitters", "PrefixAccumulator", "WordReports", "checked", "joined"]

_MOST_LENGTH = 256  # letters


@dataclass(frozen=True, eq=False, repr=False)
class HeavyHitters(Mechanism):
    """Prefix extending method (PEM): finds the most frequent words and their shares, without a list of words.

    A public random number assigns each record to a group. Each group reports a prefix of the word, and the
    prefixes grow from group to group. The server extends only the frequent prefixes, so it never lists all
    words.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of a record, finite, zero or more: each record answers once, with all of it.
    bits : int, optional
        Words are integers of this many bits, 1 to 64 (or byte strings of an eighth as many bytes). Default:
        64, unless you give an alphabet.
    alphabet : str, optional
        Words are strings of these letters: 2 to 1024 public, distinct letters.
    length : int, optional
        Letters of the longest word, 1 to 256. Longer words are refused.
    step : int, optional
        Bits or letters by which the prefixes grow from group to group. None: as many as fit into 6 bits. A
        larger step means fewer and larger groups, and more work for the server.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, both `bits` and `alphabet`, or one of `alphabet` and `length`
        without the other; the message names it.

    Notes
    -----
    Neighbouring records differ in any way; group and hash function do not depend on the word. A report is the
    cell of a prefix under the record's own hash function (local hashing, about e^epsilon + 1 cells), released
    by randomized response. Let f be the share of a prefix among the n/G records of its group. It is found if
    f is well above the standard error sqrt(q (1 - q) G/n)/(p - q), about 2 e^(epsilon/2)/(e^epsilon - 1)
    sqrt(G/n). The time to look up letters of an alphabet depends on the letters. Sources: Wang, Li and Jha,
    "Locally differentially private heavy hitter identification", IEEE TDSC 18 (2021); Wang, Blocki, Li and
    Jha, USENIX Security 2017 (local hashing).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.HeavyHitters(epsilon=4.0, alphabet="abcdefghijklmnopqrstuvwxyz", length=6)
    >>> words = ["apple", "banana", "cherry"] * 10_000
    >>> top = mechanism.estimate_top(mechanism.randomize(words, rng=1), 3)
    >>> sorted(top.labels.tolist())
    ['apple', 'banana', 'cherry']
    >>> bool(abs(top.value - 1 / 3).max() < 0.05)
    True
    """

    _: KW_ONLY
    epsilon: Budget
    bits: Annotated[int | None, optional(whole(1, 64))] = None
    alphabet: Annotated[str | None, optional(letters_of), Option(form="LETTERS", read=str)] = None
    length: Annotated[int | None, optional(whole(1, _MOST_LENGTH))] = None
    step: Annotated[int | None, optional(whole(1, 20))] = None

    _takes: ClassVar[Takes | None] = "words"
    _sized_by: ClassVar[str | None] = None
    _no_document: ClassVar[str] = "its record is a word, of which version 1 of the schema hashes no beginning"
    _no_mean: ClassVar[str] = "its reports are of words; use estimate_top"
    _no_frequencies: ClassVar[str] = "its words have no public list; use estimate_top"
    _words: Words = field(init=False, repr=False, compare=False)
    _hashed: Hashed = field(init=False, repr=False, compare=False)
    _lengths: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        if self.alphabet is None and self.bits is None:
            self._set(bits=64)
        words, step, lengths = planned(self.bits, self.alphabet, self.length, self.step)
        local = hashed(self.epsilon)
        exact = local.release.epsilon
        self._set(
            step=step,
            _words=words,
            _hashed=local,
            _lengths=lengths,
            _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)),
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """Bits or letters of the prefixes that each group reports, ascending; the last one is the word."""
        return self._lengths

    @property
    def cells(self) -> int:
        """Cells of a hash function: values of a reported code."""
        return self._hashed.cells

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of group, hash function and code."""
        return ((1, index_bits(len(self._lengths))), (1, SEED_BITS), (1, self._hashed.release.bits))

    def _join(self, parts: Sequence[NDArray[Any]]) -> WordReports:
        """Return reports, as `estimate_top` takes them, of the arrays of their parts."""
        return joined(parts)

    @property
    def _streams(self) -> int:
        return 3

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of the code; group and function are public random numbers."""
        laws = self._hashed.release.laws
        return (Symbols(laws, 1),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return two words, and the law of the word whose cell is reported; see `Mechanism.extremes`.

        The symbol of a report is 1 if its code is the first word's cell and not the second's, 2 in the
        opposite case, and 0 otherwise. Under a uniform function, the cells of two words differ with
        probability 1 - 1/cells.
        """
        inputs = self._words.ends() if pair is None else pair
        both = [self._admit(each) for each in inputs]
        p = self._hashed.chances()[0]
        apart = 1.0 - 1.0 / self.cells
        one, other = apart * p, apart * (1.0 - p) / (self.cells - 1)
        table = np.array([[1.0 - one - other, one, other], [1.0 - one - other, other, one]])

        def read(reports: Any) -> NDArray[np.int64]:
            groups, functions, codes = self._join(reports)
            mine, theirs = (
                hash_cells(
                    functions, self._keys(np.repeat(each[None], len(groups), axis=0), groups), self.cells
                )
                for each in both
            )
            apart = mine != theirs
            return np.where(apart & (codes == mine), 1, np.where(apart & (codes == theirs), 2, 0))

        said = ("neither word's cell alone is", "the first word's cell is", "the second word's cell is")
        block = Block(table[:, None, :], lambda _, value: f"{said[value]} reported")
        names = ("one word", "another")
        return Experiment(inputs, names, [block], [(0, 1)], read=read)

    def _admit(self, x: Any) -> NDArray[Any]:
        return self._words.admit("x", x)

    def _keys(self, words: NDArray[Any], groups: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the key of the beginning of each word that its group is about."""
        keys = np.empty(len(words), np.uint64)
        for group, length in enumerate(self._lengths):
            those = groups == group
            keys[those] = self._words.beginnings(words[those], length)
        return keys

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
        """Randomize words, shape (n,) or (): groups, hash functions and codes of the same shape.

        The arguments are those of `Mechanism.randomize`. Words are integers or bytes, or strings of the
        alphabet; "packed" packs each of the three arrays. With `first`, a whole number, record i has the
        group and the hash function of the public number ``first + i``, which client and server both know. A
        report is then the code alone, and no client can choose its group or function. No two records should
        have the same number.
        """
        if first is not None:
            if unknown:
                refuse_unknown("randomize", unknown, RANDOMIZE)
            return self._of_numbers(x, first, called(rng, output, out, threads, first_chunk, self.outputs, 1))
        alone = isinstance(x, str)  # one word, which has as many axes as its letters as numbers
        words: Any = [x] if alone else x
        result: Any = super().randomize(
            words, rng=rng, output=output, out=out, threads=threads, first_chunk=first_chunk, **unknown
        )
        return WordReports(*(part[0] for part in result)) if alone and output != "packed" else result

    def _of_numbers(self, x: ArrayLike, first: int, call: Call) -> Any:
        """Return the codes of words whose groups and functions follow from their numbers."""
        number = checks.integer("first", first, 0, MOST_NUMBER)
        words = self._admit([x] if isinstance(x, str) else x)
        alone = isinstance(x, str) or words.ndim < self._axes
        table = words[None] if words.ndim < self._axes else words
        self._check_words(table, call)
        groups, functions = self._public(number, len(table))
        codes = self._hashed.randomize(functions, self._keys(table, groups), call.codes(call.keys))
        if call.output == "packed":
            return pack(codes, self._hashed.release.bits)
        return codes[0] if alone else codes

    def _perturb(self, x: NDArray[Any], call: Call) -> WordReports:
        self._check_words(x, call)
        *keys, group_key, function_key = call.keys
        groups = coordinates(group_key, len(x), len(self._lengths), 1, call.first_chunk)[:, 0]
        functions = seeds(function_key, len(x), call.first_chunk)
        codes = self._hashed.randomize(functions, self._keys(x, groups), call.codes(keys))
        reports = WordReports(groups, functions, codes)
        if call.output != "packed":
            return reports
        sizes = (bits for _, bits in self._report_parts)
        packed: list[Any] = [pack(part, size) for part, size in zip(reports, sizes, strict=True)]
        return WordReports(*packed)

    def _check_words(self, x: NDArray[Any], call: Call) -> None:
        if x.ndim != self._axes:
            raise ValueError(f"x: shape must be (n,), got {x.shape if self.bits else x.shape[:-1]}")
        if call.out is not None:
            raise ValueError("out: not supported where a report is several arrays")

    def _public(self, first: int, records: int) -> tuple[NDArray[Any], NDArray[np.uint32]]:
        """Return groups and hash functions of public numbers, whoever asks."""
        words = words_of_numbers(public_key(0, "words"), first, records, 2)
        groups = scaled(words[:, 0], len(self._lengths)).astype(np.min_scalar_type(len(self._lengths) - 1))
        return groups, (words[:, 1] >> np.uint64(32)).astype(np.uint32)

    def numbered(self, codes: ArrayLike, first: int) -> WordReports:
        """Add the groups and hash functions to codes that were randomized with `first`.

        Parameters
        ----------
        codes : array_like of int, shape (n,)
            As `randomize` gives them with `first`.
        first : int
            The number of the first one.

        Returns
        -------
        WordReports
            What `estimate_top` and accumulators take.

        Raises
        ------
        ValueError, TypeError
            For a code out of range, or another shape.
        """
        given = np.atleast_1d(checks.codes("codes", codes, self.cells))
        if given.ndim > 1:
            raise ValueError(f"codes: shape must be (n,), got {given.shape}")
        return WordReports(*self._public(checks.integer("first", first, 0, MOST_NUMBER), len(given)), given)

    @property
    def _axes(self) -> int:
        """Axes of words as they are worked on."""
        return 1 if self.alphabet is None else 2

    def _check(self, reports: Any) -> WordReports:
        return checked(reports, len(self._lengths), self.cells)

    def decode(self, reports: Any) -> WordReports:
        """Return reports, checked to be in range; a single report does not stand for a word."""
        return self._check(reports)

    def accumulator(self) -> PrefixAccumulator:
        """Return an empty accumulator of reports; see `Mechanism.accumulator`."""
        self._check_informative()
        return PrefixAccumulator(self, self._words, self._hashed, self._lengths, self._read)

    def _read(self, reports: Any, records: int | None) -> WordReports:
        return self._check(reports if records is None else unpacked(self, reports, records))

    def influence(
        self, share: float, *, mean: ArrayLike | None = None, total: bool = False, numbered: bool = False
    ) -> float:
        """Return how far liars may move the share of a word that is named beforehand; see `GRR.influence`.

        If reports are `numbered`, the numbers determine the liars' groups. Otherwise all liars may claim the
        last group, from which shares are estimated. The bound does not cover which words are found.
        """
        if not checks.flag("numbered", numbered):
            return super().influence(share, mean=mean, total=total)
        (reach,) = self._reach(checks.flag("total", total))
        return replace(reach, chance=1.0).moved(checked_part("share", share), reach.checked_mean(mean))

    def estimate_top(self, reports: Any, t: int = 10, *, threads: int | None = None) -> Estimate:
        """Find the t most frequent words, and estimate their shares.

        Parameters
        ----------
        reports : WordReports
            Reports of n >= 1 words, as `randomize` gives them.
        t : int
            How many words, 1 to 4096.
        threads : int, optional
            Number of threads; the result does not depend on it.

        Returns
        -------
        Estimate
            Shape (t,), or fewer if there are fewer words, in descending order of share; `labels` are the
            words. The shares come from the last group. They are unbiased for a word that you name beforehand;
            the largest of many are too large by chance. A word whose share is not several times its `stderr`
            may be a false find.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), for fewer than one report of a group, or for a
            report out of range.
        """
        return self.accumulator()._filled(reports).estimate(t, threads=threads)

    def _check_informative(self) -> tuple[float, float]:
        if self._hashed.release.epsilon == 0.0:
            raise self._uninformative("words")
        return self._hashed.chances()

    def worst_variance(self) -> float:
        """Return the variance of one report's indicator for the word that the record has.

        One report in G is of the last group, so this is the variance within the group, times G; see
        `Mechanism.worst_variance`.
        """
        return len(self._lengths) * indicator_spread(2, *self._check_informative())[0]

    def mean_variance(self) -> float:
        """Return the variance of one report's indicator for another word; see `Mechanism.mean_variance`."""
        p, q = self._check_informative()
        return len(self._lengths) * q * (1.0 - q) / (p - q) ** 2

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return that of a word that is given beforehand: a liar chooses the group that shares are from."""
        if total:
            raise ValueError(
                f"{type(self).__name__}: sums of shares have no bound, since the words have no public list"
            )
        reach = Reach.of_counts(*self._check_informative(), 2, (0, 2))
        return (replace(reach, chance=1.0 / len(self._lengths)),)

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of a word's share; see `Mechanism._facts`."""
        try:
            p, q = self._check_informative()
        except ValueError as error:
            return {"errors": {"unbiased": str(error)}}
        deviations = {
            "of_a_word_one_has_not": math.sqrt(self.mean_variance()),
            "of_the_word_one_has": math.sqrt(len(self._lengths) * p * (1.0 - p)) / (p - q),
        }
        result = spreads("a_share", deviations, users)
        return {"errors": {**result, "groups": len(self._lengths), "cells": self.cells}}


SEED_BITS = 32
"""Bits of the number of a hash function."""


class WordReports(NamedTuple):
    """Reports of n words.

    Attributes
    ----------
    groups : ndarray of unsigned int, shape (n,)
        The prefix that each report is about, drawn without looking at the word.
    seeds : ndarray of uint32, shape (n,)
        The public hash function of each, drawn likewise.
    codes : ndarray of unsigned int, shape (n,)
        The randomized cell of the prefix under that function.
    """

    groups: NDArray[Any]
    seeds: NDArray[np.uint32]
    codes: NDArray[Any]


def joined(parts: Sequence[Any]) -> WordReports:
    """Return reports of their three arrays, of any shapes of so many entries."""
    groups, functions, codes = (np.asarray(part).reshape(-1) for part in parts)
    return WordReports(groups, functions.astype(np.uint32), codes)


def checked(reports: Any, groups: int, cells: int) -> WordReports:
    """Return reports as arrays of shape (n,), after checking them against the mechanism's form."""
    if not isinstance(reports, (tuple, list)) or len(reports) != 3:
        raise TypeError("reports: must be (groups, seeds, codes), as randomize gives them")
    result = [
        np.atleast_1d(checks.codes(f"reports.{name}", part, most))
        for name, part, most in zip(
            WordReports._fields, reports, (groups, 1 << SEED_BITS, cells), strict=True
        )
    ]
    for name, part in zip(WordReports._fields, result, strict=True):
        if part.shape != (len(result[0]),):
            raise ValueError(f"reports.{name}: shape must be (n,), the same for all, got {part.shape}")
    return joined(result)


_MOST_WORDS = 4096
_KEPT = 64  # beginnings that are lengthened, at least
_MOST_CANDIDATES = 1 << 22  # of one search step: a few hundred megabytes

Parts = tuple[NDArray[Any], NDArray[np.uint32], NDArray[Any]]


class PrefixAccumulator(BatchAccumulator):
    """Reports of hashed beginnings, kept as they are: a word that nobody thought of yet cannot be counted.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are kept.
    words : Words
        What the words are.
    hashed : Hashed
        How their beginnings were released.
    lengths : tuple of int
        Units of the beginnings of each group.
    read : callable
        Checks reports, given the number of records of packed ones (else None); returns three arrays.
    """

    kind = "prefixes"

    def __init__(
        self,
        mechanism: Accumulated,
        words: Words,
        hashed: Hashed,
        lengths: tuple[int, ...],
        read: Callable[[Any, int | None], Parts],
    ) -> None:
        super().__init__(mechanism)
        self._words, self._hashed, self._lengths, self._read = words, hashed, lengths, read
        self._batches: list[Parts] = []

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        result = self._read(reports, records)
        self.n = saved.together("reports", self.n, len(result[0]))
        self._batches.append(result)

    def merge(self, other: PrefixAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind, or if there would be 2**63 reports or more.
        """
        self._same(other)
        self.n = saved.together("other", self.n, other.n)
        self._batches += other._batches

    def _reports(self) -> Parts:
        """Return all reports as three arrays."""
        if not self._batches:
            raise ValueError("reports: at least one is needed for an estimate")
        groups, functions, codes = (np.concatenate(part) for part in zip(*self._batches, strict=True))
        self._batches = [(groups, functions, codes)]
        return self._batches[0]

    def estimate(self, t: int = 10, *, threads: int | None = None, apart: bool = False) -> Estimate:
        """Find the t most frequent words; see `HeavyHitters.estimate_top`.

        Parameters
        ----------
        t, threads
            As of `HeavyHitters.estimate_top`.
        apart : bool
            Whether half of the last group's reports choose the words and the others tell their shares, which
            are then not too large by chance. A report's half is the last bit of its hash function: so it is
            the same in any order of the reports.

        Raises
        ------
        ValueError
            If a group has no reports yet, or one of the two halves.
        """
        t = checks.integer("t", t, 1, _MOST_WORDS)
        threads, apart = checks.stream(threads, 0)[0], checks.flag("apart", apart)
        groups, functions, codes = self._reports()
        candidates: NDArray[Any] = self._words.all(self._lengths[0])
        for group, length in enumerate(self._lengths):
            those = groups == group
            last = length == self._lengths[-1]
            if apart and last:
                those &= (functions & 1) == 0
            n = int(np.count_nonzero(those))
            if n == 0:
                raise ValueError(f"reports: none of the {self.n} is of group {group} of {len(self._lengths)}")
            supports = self._hashed.supports(
                functions[those], codes[those].astype(np.uint32), self._words.keys(candidates), threads
            )
            if last:
                break
            # Those whose support is the largest are lengthened; among equals, the first.
            best = np.argsort(-supports, kind="stable")[: max(_KEPT, 2 * t)]
            step = self._lengths[group + 1] - length
            most = max(1, _MOST_CANDIDATES // self._words.symbols**step)
            candidates = self._words.longer(candidates[best[:most]], step)
        best = np.argsort(-supports, kind="stable")[:t]
        found, supports = candidates[best], supports[best]
        if apart:
            those = (groups == len(self._lengths) - 1) & ((functions & 1) == 1)
            n = int(np.count_nonzero(those))
            if n == 0:
                raise ValueError(
                    "reports: too few of the last group to choose words and to estimate their shares"
                )
            supports = self._hashed.supports(
                functions[those], codes[those].astype(np.uint32), self._words.keys(found), threads
            )
            order = np.argsort(-supports, kind="stable")
            found, supports = found[order], supports[order]
        result = frequencies(supports, n, *self._hashed.chances())
        named = replace(result, n=self.n, labels=self._words.labels(found))
        return self._judged(named)

    def _state(self) -> dict[str, Any]:
        if not self.n:
            return {"n": 0, "reports": []}
        groups, functions, codes = self._reports()
        order = np.lexsort((codes, functions, groups))  # the same in whatever order they came
        return {"n": self.n, "reports": [part[order].tolist() for part in (groups, functions, codes)]}

    def _restore(self, state: dict[str, Any]) -> None:
        n, reports = saved.whole(state.get("n")), state.get("reports")
        if not isinstance(reports, list) or len(reports) != (3 if n else 0):
            raise ValueError("text: the reports are damaged")
        if not n:
            return
        parts = [saved.integers(part, (n,)) for part in reports]
        try:
            result = self._read([part.astype(np.int64) for part in parts], None)
        except (ValueError, TypeError, OverflowError):
            raise ValueError("text: the reports are damaged") from None
        self._batches, self.n = [result], n
