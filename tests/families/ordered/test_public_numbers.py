"""Hash functions and groups that follow from a client's public number, and what liars gain without."""

from __future__ import annotations

from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp._core import CHUNK, hash_cells
from numpy.typing import NDArray


def test_functions_of_numbers_are_those_of_any_batch() -> None:
    olh, words = bitldp.OLH(1000, epsilon=2.0), bitldp.HeavyHitters(epsilon=2.0, bits=16)
    for mechanism in (olh, words):
        whole = mechanism.numbered(np.zeros(9000, int), 5)
        parts = [mechanism.numbered(np.zeros(n, int), first) for n, first in ((4095, 5), (4905, 4100))]
        for one, *others in zip(*(each if isinstance(each, tuple) else (each,) for each in (whole, *parts)),
                                strict=True):  # fmt: skip
            assert (one == np.concatenate(others)).all()
    assert (olh.numbered([3], 1 << 61)[0, 2], words.numbered([1], 1 << 61).codes[0]) == (3, 1)


def test_numbers_go_on_beyond_a_chunk() -> None:
    olh = bitldp.OLH(1000, epsilon=2.0)
    whole = olh.numbered(np.zeros(CHUNK + 3, int), 0)  # two words a number: more than two chunks
    assert (olh.numbered([0, 0, 0], CHUNK) == whole[-3:]).all()
    assert len(np.unique(whole[:, :2], axis=0)) > 0.99 * len(whole)


def test_functions_of_numbers_are_pinned() -> None:
    """A change of them is a breaking change: clients and servers of two versions would not understand."""
    olh, words = bitldp.OLH(1000, epsilon=2.0), bitldp.HeavyHitters(epsilon=2.0, bits=16)
    assert olh.numbered([0, 0], 7).tolist() == OLH_AT_7
    groups, seeds, _ = words.numbered([0, 0, 0], 7)
    assert (groups.tolist(), seeds.tolist()) == WORDS_AT_7


OLH_AT_7 = [[207, 660, 0], [392, 826, 0]]
WORDS_AT_7 = ([0, 1, 1], [2836394397, 643841915, 3462051029])


def test_single_values_and_packed_ones() -> None:
    olh, words = bitldp.OLH(1000, epsilon=2.0), bitldp.HeavyHitters(epsilon=2.0, bits=16)
    for mechanism, bits in ((olh, 3), (words, 3)):
        many = mechanism.randomize(np.full(5, 7), first=3, rng=1)
        assert many.shape == (5,)
        packed = mechanism.randomize(np.full(5, 7), first=3, rng=1, output="packed")
        assert (bitldp.unpack(packed, bits, 5) == many).all()
        assert np.ndim(mechanism.randomize(7, first=3, rng=1)) == 0
        for first in (-1, 1 << 62):
            with pytest.raises(ValueError, match=r"^first: "):
                mechanism.randomize(np.full(5, 7), first=first)
            with pytest.raises(ValueError, match=r"^first: "):
                mechanism.numbered([0], first)
        with pytest.raises(ValueError, match=r"^out: "):
            mechanism.randomize(np.full(5, 7), first=3, out=np.zeros(5, np.uint8))
        with pytest.raises(ValueError, match="shape must be"):
            mechanism.numbered([[0, 1]], 0)
    spelled = bitldp.HeavyHitters(epsilon=2.0, alphabet="ab", length=3)
    assert np.ndim(spelled.randomize("aba", first=0)) == 0
    assert spelled.randomize(["aba", "b"], first=0).shape == (2,)


@pytest.mark.statistical
def test_estimates_of_numbered_reports_are_right() -> None:
    """N = 40,000, seeded; five standard errors, alpha 6e-7."""
    olh, x = bitldp.OLH(100, epsilon=2.0), np.repeat([3, 99], [30_000, 10_000])
    estimate = olh.estimate_frequencies(olh.numbered(olh.randomize(x, first=10, rng=2), 10))
    for category, share in ((3, 0.75), (99, 0.25), (50, 0.0)):
        assert abs(estimate.value[category] - share) < 5.0 * estimate.stderr[category]
    words = bitldp.HeavyHitters(epsilon=4.0, bits=16)
    top = words.estimate_top(words.numbered(words.randomize(x, first=10, rng=2), 10), 2)
    assert top.labels.tolist() == [3, 99]
    groups = words.numbered(np.zeros(len(x), int), 10).groups
    assert abs(groups.mean() - 0.5) < 5.0 * 0.5 / np.sqrt(len(x))


def attacked(mechanism: Any, words: NDArray[Any], fakes: NDArray[Any], numbered: bool) -> int:
    """Return how many fakes 1 % of liars put into the top ten.

    They spread over the groups and take the functions, of 4,000, under which most fakes share a cell; with
    numbers they have the group and function of theirs. Either way they report the cell of most fakes.
    """
    liars, cells = len(words) // 99, mechanism.cells
    if numbered:
        honest = mechanism.numbered(mechanism.randomize(words, first=0, rng=1), 0)
        groups, functions, _ = mechanism.numbered(np.zeros(liars, int), len(words))
    else:
        honest = mechanism.randomize(words, rng=1)
        groups = (np.arange(liars) % len(mechanism.lengths)).astype(np.uint8)
        tried = np.random.default_rng(2).integers(0, 1 << 32, 4000).astype(np.uint32)
        functions = np.empty(liars, np.uint32)
        for group in np.unique(groups):
            shared = most(tried, mechanism._keys(fakes, np.full(len(fakes), group)), cells)[1]
            best = tried[np.argsort(-shared)[:50]]
            functions[groups == group] = best[np.arange(np.count_nonzero(groups == group)) % 50]
    codes = np.empty(liars, np.uint8)
    for group in np.unique(groups):
        keys = mechanism._keys(fakes, np.full(len(fakes), group))
        codes[groups == group] = most(functions[groups == group], keys, cells)[0]
    lies = (groups, functions, codes)
    both = [np.concatenate([mine, theirs]) for mine, theirs in zip(honest, lies, strict=True)]
    top = mechanism.estimate_top(tuple(both), 10)
    return len(set(top.labels.tolist()) & set(fakes.tolist()))


def most(functions: NDArray[Any], keys: NDArray[Any], cells: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the cell of the most keys under each function, and of how many."""
    hashed = np.stack([hash_cells(functions, np.full(len(functions), key), cells) for key in keys])
    counts = np.stack([(hashed == cell).sum(axis=0) for cell in range(cells)])
    return counts.argmax(axis=0), counts.max(axis=0)


@pytest.mark.slow
@pytest.mark.statistical
def test_liars_who_choose_functions_fill_the_top_ten() -> None:
    """N = 200,000 at epsilon 1, of which 1 % lie: both of two fakes, and none of two with public numbers."""
    mechanism, rng = bitldp.HeavyHitters(epsilon=1.0, bits=16), np.random.default_rng(5)
    shares = 1.0 / np.arange(1, 201)
    known = rng.integers(0, 1 << 16, 200)
    words = rng.choice(known, 198_000, p=shares / shares.sum()).astype(np.uint64)
    fakes = rng.integers(0, 1 << 16, 2).astype(np.uint64)
    assert attacked(mechanism, words, fakes, numbered=False) == 2
    assert attacked(mechanism, words, fakes, numbered=True) <= 1
    assert mechanism.influence(0.01, numbered=True) < 0.6 * mechanism.influence(0.01)
