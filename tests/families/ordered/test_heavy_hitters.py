"""Heavy hitters: what is reported, the law of it, and which words are found."""

from __future__ import annotations

import json
import math
import pickle
import string

import bitldp
import numpy as np
import pytest
from bitldp._core import hash_cells, hash_supports
from bitldp.audit import audit
from bitldp.ordered.vocabulary import BitWords, LetterWords
from bitldp.release.hashed import hashed, spread

LETTERS = string.ascii_lowercase


def test_the_beginnings_grow_to_whole_words() -> None:
    assert bitldp.HeavyHitters(epsilon=1.0).lengths == (10, 16, 22, 28, 34, 40, 46, 52, 58, 64)
    assert bitldp.HeavyHitters(epsilon=1.0, bits=12).lengths == (12,)
    assert bitldp.HeavyHitters(epsilon=1.0, bits=13, step=5).lengths == (8, 13)
    assert bitldp.HeavyHitters(epsilon=1.0, alphabet=LETTERS, length=5).lengths == (2, 3, 4, 5)
    assert bitldp.HeavyHitters(epsilon=1.0, alphabet="ACGT", length=30, step=5).lengths == (
        5,
        10,
        15,
        20,
        25,
        30,
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_law_of_a_report_by_enumeration(epsilon: float) -> None:
    """For every function and any two words, cells are e^epsilon-close; over functions, q is 1/cells."""
    mechanism = bitldp.HeavyHitters(epsilon=epsilon, bits=16)
    law = mechanism._hashed.release.probabilities()
    assert math.log((law.max(axis=0) / law.min(axis=0)).max()) <= mechanism.guarantee.record + 1e-12
    assert mechanism.guarantee.record <= epsilon
    p, q = mechanism._hashed.chances()
    assert law.diagonal() == pytest.approx(p)
    assert q == 1.0 / len(law)
    # Optimized local hashing: about e^epsilon + 1 cells, of least variance among all
    assert mechanism.cells == min(range(2, 4 * len(law)), key=lambda cells: spread(epsilon, cells))
    closed = 4.0 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert len(mechanism.lengths) * closed <= mechanism.mean_variance() * (1.0 + 1e-9)
    assert mechanism.mean_variance() <= len(mechanism.lengths) * closed * 1.05


def test_reports_are_the_cells_of_beginnings() -> None:
    """At a large epsilon the code is the cell of the beginning under the seed's function: n = 20,000."""
    mechanism = bitldp.HeavyHitters(epsilon=20.0)
    x = np.random.default_rng(1).integers(0, 1 << 64, 20_000, dtype=np.uint64)
    groups, seeds, codes = mechanism.randomize(x, rng=1)
    assert (np.bincount(groups, minlength=10) > 1700).all()  # 2000 each, standard deviation 42
    lengths = np.array(mechanism.lengths, np.uint64)[groups]
    cells = hash_cells(seeds, x >> (np.uint64(64) - lengths), mechanism.cells)
    assert np.mean(cells == codes) > 0.99
    assert len(np.unique(seeds)) > 19_900


def test_coins_do_not_depend_on_the_words() -> None:
    mechanism = bitldp.HeavyHitters(epsilon=1.0, bits=20)
    one, other = (mechanism.randomize(np.full(500, word), rng=3) for word in (0, 999_999))
    assert (one.groups == other.groups).all()
    assert (one.seeds == other.seeds).all()
    assert (one.codes != other.codes).any()


def test_chunks_and_threads_make_no_difference() -> None:
    mechanism = bitldp.HeavyHitters(epsilon=2.0)
    x = np.arange(20_000, dtype=np.uint64) << np.uint64(50)
    whole = mechanism.randomize(x, rng=5)
    for threads in (1, 3):
        for mine, theirs in zip(whole, mechanism.randomize(x, rng=5, threads=threads), strict=True):
            assert (mine == theirs).all()
    parts = [mechanism.randomize(x[:8192], rng=5), mechanism.randomize(x[8192:], rng=5, first_chunk=1)]
    for mine, theirs in zip(whole, zip(*parts, strict=True), strict=True):
        assert (mine == np.concatenate(theirs)).all()


def test_estimates_are_unbiased() -> None:
    """One group: 4096 words, each estimated over 200 sets of reports of 3,000 records.

    The mean of 200 has a standard error of stderr/sqrt(200); five of them for 40 words: alpha 2e-5.
    """
    mechanism = bitldp.HeavyHitters(epsilon=1.0, bits=12)
    x = np.repeat(np.arange(40) * 101, 75)
    words, p, q = np.arange(40, dtype=np.uint64) * 101, *mechanism._hashed.chances()
    shares = []
    for seed in range(200):
        _, seeds, codes = mechanism.randomize(x, rng=seed)
        supports = hash_supports(seeds, codes.astype(np.uint32), words, mechanism.cells)
        shares.append((supports / len(x) - q) / (p - q))
    error = np.mean(shares, axis=0) - 1.0 / 40.0
    stderr = math.sqrt(mechanism.worst_variance() / 3000 / 200)
    assert np.abs(error).max() < 5.0 * stderr
    # and the spread is that of the closed form: 200 sets have a relative deviation of 5 %, 40 words of 1 %
    inside = (39 * mechanism.mean_variance() + mechanism.worst_variance()) / 40
    assert np.var(shares, axis=0).mean() == pytest.approx(inside / 3000, rel=0.06)


def planted(rng: np.random.Generator, n: int, shares: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return words of 64 bits: heavy ones of the given shares, all others met about once."""
    heavy = rng.integers(0, 1 << 64, len(shares), dtype=np.uint64)
    place = np.searchsorted(np.cumsum(shares), rng.random(n), side="right")
    rest = rng.integers(0, 1 << 64, n, dtype=np.uint64)
    return heavy, np.where(place < len(shares), heavy[np.minimum(place, len(shares) - 1)], rest)


@pytest.mark.statistical
def test_eight_byte_words_are_found() -> None:
    """Precision and recall among 2^64 words over 20 seeds: n = 100,000, epsilon 4, shares of 3 to 6 %.

    A group has 10,000 reports, so the standard error of a share is .0028: 3 % is eleven of them. The same
    with 10^6 users and shares of 1 % is `benches/heavy_hitters.py`.
    """
    mechanism = bitldp.HeavyHitters(epsilon=4.0)
    shares = [0.06, 0.05, 0.045, 0.04, 0.035, 0.03]
    found, errors = [], []
    for seed in range(20):
        heavy, x = planted(np.random.default_rng(seed), 100_000, shares)
        top = mechanism.estimate_top(mechanism.randomize(x, rng=seed), 6)
        found.append(len(set(top.labels.tolist()) & set(heavy.tolist())))
        assert (np.diff(top.value) <= 0.0).all()
        truth = dict(zip(heavy.tolist(), shares, strict=True))
        errors += [
            (value - truth[word]) / stderr
            for word, value, stderr in zip(top.labels.tolist(), top.value, top.stderr, strict=True)
            if word in truth
        ]
    assert sum(each == 6 for each in found) >= 19, found
    assert np.mean(found) / 6 > 0.99
    assert abs(np.mean(errors)) < 0.5  # of about 120, whose mean has a standard error of .09
    assert 0.8 < np.std(errors) < 1.2


def test_words_of_an_alphabet_are_found() -> None:
    mechanism = bitldp.HeavyHitters(epsilon=4.0, alphabet=LETTERS + " ", length=20)
    words = ["a", "to be or not", "supercalifragilistic"[:20], "toad", "to"]
    x = np.array(words)[np.arange(60_000) % 5]
    top = mechanism.estimate_top(mechanism.randomize(x, rng=1), 5)
    assert set(top.labels.tolist()) == set(words)
    assert top.value == pytest.approx(np.full(5, 0.2), abs=0.08)
    low, high = top.confidence_interval(0.999)
    assert ((low < 0.2) & (high > 0.2)).all()


def test_a_small_domain_is_listed() -> None:
    mechanism = bitldp.HeavyHitters(epsilon=3.0, alphabet="ab", length=2)
    top = mechanism.estimate_top(mechanism.randomize(["", "a", "ab", "ab"] * 5000, rng=1), 10)
    assert sorted(top.labels.tolist()) == ["", "a", "aa", "ab", "b", "ba", "bb"]
    assert top.labels[0] == "ab"
    assert top.value[0] == pytest.approx(0.5, abs=0.05)


def test_candidates_and_keys() -> None:
    words = LetterWords("xyz", 3)
    every = words.all(3)
    assert len(every) == 1 + 3 + 9 + 27
    assert len(np.unique(words.keys(every))) == 40
    assert sorted(words.labels(every).tolist())[:4] == ["", "x", "xx", "xxx"]
    back = words.admit("x", words.labels(every))
    assert (back == every).all()
    assert (words.keys(back) == words.keys(every)).all()
    grown = words.longer(words.all(1), 2)
    assert sorted(map(tuple, grown.tolist())) == sorted(map(tuple, every.tolist()))
    bits = BitWords(5)
    assert (bits.longer(bits.all(2), 3) == bits.all(5)).all()
    assert bits.beginnings(np.array([0b10110], np.uint64), 2).tolist() == [0b10]


def test_bytes_are_their_integers() -> None:
    mechanism = bitldp.HeavyHitters(epsilon=2.0, bits=24)
    x = [b"abc", b"xyz"]
    numbers = [int.from_bytes(each, "big") for each in x]
    for mine, theirs in zip(mechanism.randomize(x, rng=1), mechanism.randomize(numbers, rng=1), strict=True):
        assert (mine == theirs).all()


def test_one_word_alone() -> None:
    for mechanism, word in (
        (bitldp.HeavyHitters(epsilon=2.0), 17),
        (bitldp.HeavyHitters(epsilon=2.0, alphabet=LETTERS, length=4), "word"),
    ):
        report = mechanism.randomize(word, rng=1)
        several = mechanism.randomize([word], rng=1)
        assert [int(part) for part in report] == [int(part[0]) for part in several]


def test_accumulators_merge_and_are_saved() -> None:
    mechanism = bitldp.HeavyHitters(epsilon=4.0, bits=16)
    x = np.arange(8000) % 5
    whole = mechanism.accumulator()
    whole.update(mechanism.randomize(x, rng=1))
    whole.update(mechanism.randomize(x, rng=2, output="packed"), output="packed", records=8000)
    left, right = mechanism.accumulator(), mechanism.accumulator()
    left.update(mechanism.randomize(x, rng=1))
    right.update(mechanism.randomize(x, rng=2))
    left.merge(bitldp.Accumulator.from_json(right.to_json(), mechanism))
    one, other = whole.estimate(5), left.estimate(5)
    assert (one.labels == other.labels).all()
    assert (one.value == other.value).all()
    assert one.n == 16_000
    assert sorted(one.labels.tolist()) == [0, 1, 2, 3, 4]
    assert mechanism == pickle.loads(pickle.dumps(mechanism))
    empty = bitldp.Accumulator.from_json(mechanism.accumulator().to_json(), mechanism)
    assert empty.n == 0
    for damage in ({"n": 3}, {"reports": [[1], [2]]}, {"reports": [[99] * 8000, [1] * 8000, [1] * 8000]}):
        document = json.loads(right.to_json())
        document["state"] |= damage
        with pytest.raises(ValueError, match=r"^text: "):
            bitldp.Accumulator.from_json(json.dumps(document), mechanism)


@pytest.mark.parametrize("words", [{"bits": 40}, {"alphabet": LETTERS, "length": 7}])
def test_an_audit_comes_near_to_epsilon(words: dict[str, object]) -> None:
    result = audit(bitldp.HeavyHitters(epsilon=1.0, **words), n=20_000, rng=1)
    assert result.passed
    assert 0.8 < result.lower <= 1.0


def test_what_is_refused() -> None:
    for parameters, said in (
        ({"bits": 65}, "bits: must be between 1 and 64"),
        ({"bits": 8, "alphabet": "ab", "length": 2}, "bits: is for integers"),
        ({"alphabet": "ab"}, "length: is needed"),
        ({"length": 3}, "length: is for words of an alphabet"),
        ({"alphabet": "aab", "length": 3}, "alphabet: must be 2 to 1024 letters, each once"),
        ({"alphabet": "a", "length": 3}, "alphabet: must be 2 to 1024 letters"),
        ({"alphabet": LETTERS, "length": 9, "step": 5}, "step: must be at most 4"),
    ):
        with pytest.raises(ValueError, match=f"^{said}"):
            bitldp.HeavyHitters(epsilon=1.0, **parameters)
    numbers = bitldp.HeavyHitters(epsilon=1.0, bits=8)
    for x, said in (([1, 300], r"the integer at index \(1,\) is"), ([-1], r"at index \(0,\) is")):
        with pytest.raises(ValueError, match=said):
            numbers.randomize(x)
    with pytest.raises(TypeError, match="must be integers, or bytes"):
        numbers.randomize([0.5])
    with pytest.raises(ValueError, match=r"^x: shape must be \(n,\)"):
        numbers.randomize([[1, 2]])
    words = bitldp.HeavyHitters(epsilon=1.0, alphabet=LETTERS, length=4)
    for x in (["fine", "Bad"], ["fine", "longer"], ["fine", "a\0b"]):
        with pytest.raises(ValueError, match=r"^x: the word at index \(1,\) has other") as caught:
            words.randomize(x)
        assert x[1] not in str(caught.value)
    with pytest.raises(TypeError, match="must be words"):
        words.randomize([1, 2])
    with pytest.raises(ValueError, match="none of the 1 is of group"):
        words.estimate_top(words.randomize(["fine"], rng=1))
    with pytest.raises(ValueError, match="at least one is needed"):
        words.accumulator().estimate()
    with pytest.raises(ValueError, match="no unbiased decode exists at epsilon 0"):
        bitldp.HeavyHitters(epsilon=0.0).estimate_top(([], [], []))
    with pytest.raises(TypeError, match="must be \\(groups, seeds, codes\\)"):
        words.estimate_top(np.zeros(4, np.uint8))
    with pytest.raises(ValueError, match=r"^t: must be between 1 and 4096"):
        words.estimate_top(words.randomize(["fine"] * 99, rng=1), 0)


def test_local_hashing_at_any_budget() -> None:
    assert hashed(0.0).release.epsilon == 0.0
    for epsilon in (0.01, 0.3, 3.0, 11.0, 100.0):
        assert hashed(epsilon).release.epsilon <= epsilon
        assert 2 <= hashed(epsilon).cells <= 1 << 16
