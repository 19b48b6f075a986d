"""What lying clients move: every report that a server takes, against the stated bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.letters.reach import Reach
from bitldp.mechanism.base import Mechanism
from bitldp.release.rotated import RotatedReports
from numpy.typing import NDArray
from support.cases import CASES, FAMILIES, MIXED, ORDERED, Case

EVERY = {case.name: case for case in [*CASES, *FAMILIES, *ORDERED, *MIXED]}

REFUSED = {  # no linear estimate
    **dict.fromkeys(
        ["BRR", "BRR-interval", "BRR-plane", "BRR-jaccard"],
        "no unbiased decode exists|identical rows of the law",
    ),
    "BRR-regions": "across regions",
    "HDG": "no bound is known",
    "EXP": "its law is about ranks",
    "Compressed": "cannot be undone",
}
OF_GROUPS = [
    "CategoricalRecord",
    "CategoricalRecord-split",
    "MixedCap",
    "MixedRecord",
    "RecordCap",
    "RecordCap-all",
    "Hierarchy",
    "HeavyHitters",
]
BOUNDED = ["CrossPolytope", "CrossPolytope-haar", "RandomCodebook"]  # by the norm of a vector
ONE_BY_ONE = [name for name in EVERY if name not in {*REFUSED, *OF_GROUPS, "KeyValue"}]


def _of_rotations(mechanism: Any) -> Iterator[Any]:
    rng, count = np.random.default_rng(1), mechanism._count  # reports of a record
    for _ in range(100):
        codes = np.full(count, rng.integers(0, 2 * mechanism._release.rotation.dimensions))
        rotations = np.full(count, rng.integers(0, 1 << 20), np.uint32)
        yield RotatedReports(rotations[None], codes[None]) if count > 1 else RotatedReports(rotations, codes)


def _of_pairs(mechanism: Any) -> Iterator[Any]:
    k, count = mechanism.k, mechanism.features
    shape = 1 if isinstance(mechanism, bitldp.SampledSigns) else (1, k)  # a symbol for all signs
    for code, start in itertools.product(range(mechanism.alphabet), range(count)):
        indices = np.sort((start + np.arange(k)) % count)[None]
        yield bitldp.SampledReports(indices, np.full(shape, code))


def _of_bits(mechanism: Any) -> Iterator[Any]:
    size = mechanism._report_parts[0][0]
    for bits in (np.zeros(size), np.ones(size), *np.eye(size), *(1 - np.eye(size))):
        yield bits[None].astype(np.uint8)


def _of_words(mechanism: Any) -> Iterator[Any]:
    bits = mechanism.codec.bits
    few = [0, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1]
    for word in range(1 << bits) if bits <= 10 else few:
        yield np.full((1, mechanism.features), word)


def _of_hashes(mechanism: Any) -> Iterator[Any]:
    for a, b, y in itertools.product((1, 2, 5), range(mechanism.prime), range(mechanism.values)):
        yield np.array([[a, b, y]])


def _of_steps(mechanism: Any) -> Iterator[Any]:
    steps, cells = (1 << bits for _, bits in mechanism._report_parts)
    for step, cell in itertools.product(range(1, steps), range(cells)):
        yield bitldp.SteppedReports(np.array([step]), np.array([cell]))


def _of_stages(mechanism: Any) -> Iterator[Any]:
    for index, code in itertools.product(range(mechanism.features), range(mechanism.release.alphabet)):
        yield np.array([index]), np.array([code])


def _of_codes(mechanism: Any) -> Iterator[Any]:
    columns, bits = mechanism._report_parts[0]
    codes = mechanism.alphabet if hasattr(mechanism, "alphabet") else 1 << bits
    for code in range(codes) if codes <= 1024 else [0, 1, codes // 2, codes - 2, codes - 1]:
        yield np.full((1, columns) if columns > 1 else 1, code)


def lies(mechanism: Any) -> Iterator[Any]:
    """Return single reports of every kind that the server takes: all of them, or the extreme ones."""
    ways: list[tuple[type | tuple[type, ...], Any]] = [
        (bitldp.OLH, _of_hashes),
        ((bitldp.OUE, bitldp.SUE, bitldp.RAPPOR, bitldp.SubsetSelection), _of_bits),
        ((bitldp.CrossPolytope, bitldp.RandomCodebook), _of_rotations),
        ((bitldp.FRR, bitldp.MOUE, bitldp.UER), _of_words),
        (bitldp.TwoStage, _of_stages),
    ]
    for kinds, way in ways:
        if isinstance(mechanism, kinds):
            return iter(way(mechanism))
    if isinstance(mechanism, bitldp.BlockDesign) and mechanism.public:
        return _of_steps(mechanism)
    sampled = getattr(mechanism, "k", None) is not None and len(mechanism._report_parts) == 2
    return _of_pairs(mechanism) if sampled else _of_codes(mechanism)


def decoded(mechanism: Any) -> NDArray[np.float64]:
    """Return what the server makes of single reports, shape (reports, entries)."""
    rows = []
    for report in lies(mechanism):
        accumulator = mechanism.accumulator()
        try:
            accumulator.update(report)
        except ValueError:  # a code beyond the alphabet
            continue
        value = accumulator.estimate().value
        rows.append(value[0] if value.ndim == 2 else value)  # of several features: alike
    return np.stack(rows)


def sets(apart: NDArray[np.float64]) -> float:
    """Return the largest sum of a set of entries, of any row, in either direction."""
    return max(np.maximum(apart, 0.0).sum(axis=1).max(), np.maximum(-apart, 0.0).sum(axis=1).max())


@pytest.mark.parametrize("name", [name for name in ONE_BY_ONE if name not in {"BitRand", *BOUNDED}])
@pytest.mark.slow
def test_no_report_moves_an_entry_further_and_one_moves_it_as_far(name: str) -> None:
    mechanism = EVERY[name].make()
    (reach,) = mechanism._reach()
    low, high = reach.ends
    values = decoded(mechanism)
    furthest = max((values - low).max(), (high - values).max())
    assert mechanism.influence(1.0) == pytest.approx(furthest, rel=1e-9)
    assert mechanism.influence(0.01) == pytest.approx(0.01 * furthest, rel=1e-9)
    middle = (low + high) / 2.0
    assert mechanism.influence(1.0, mean=middle) == pytest.approx(np.abs(values - middle).max(), rel=1e-9)
    bound = mechanism.influence(1.0, mean=middle, total=True)
    assert sets(values - middle) <= bound * (1.0 + 1e-9)
    if name != "UER-odd":  # whose features have two laws, each with a worst word of its own
        assert sets(values - middle) == pytest.approx(bound, rel=1e-9)
    assert mechanism.influence(0.0) == 0.0


@pytest.mark.parametrize("name", BOUNDED)
def test_no_vector_is_longer_than_the_bound(name: str) -> None:
    mechanism = EVERY[name].make()
    values = np.concatenate([mechanism.decode(each) for each in lies(mechanism)])
    radius = mechanism.radius
    assert np.abs(values).max() + radius <= mechanism.influence(1.0) * (1.0 + 1e-6)
    assert mechanism.influence(1.0, mean=0.0) == pytest.approx(mechanism.letters[1])
    assert sets(values) <= mechanism.influence(1.0, mean=0.0, total=True) * (1.0 + 1e-6)
    lengths = np.linalg.norm(values, axis=1)
    assert 0.5 * mechanism.letters[1] < lengths.max() <= mechanism.letters[1] * (1.0 + 1e-6)


FEW = [
    ("GRR", bitldp.GRR(5, epsilon=1.0)),
    ("OUE", bitldp.OUE(5, epsilon=1.0)),
    ("SubsetSelection", bitldp.SubsetSelection(6, epsilon=1.0)),
    ("OLH", bitldp.OLH(7, epsilon=2.0)),
    ("OLH", bitldp.OLH(8, epsilon=0.5)),
    ("BlockDesign", bitldp.BlockDesign(6, epsilon=1.0)),
    ("BlockDesign", bitldp.BlockDesign(13, epsilon=0.5)),
    ("HadamardResponse", bitldp.HadamardResponse(7, epsilon=0.5)),
    ("HadamardResponse", bitldp.HadamardResponse(11, epsilon=2.0)),
    ("PS", bitldp.PS(6, k=2, epsilon=1.0)),
    ("PE", bitldp.PE(6, k=2, epsilon=1.0)),
    ("LabelLaplace", bitldp.LabelLaplace(4, epsilon=4.0)),
    ("LSRR", bitldp.LSRR(8, epsilon=2.0)),
]


@pytest.mark.parametrize(("name", "mechanism"), FEW, ids=[f"{name}-{i}" for i, (name, _) in enumerate(FEW)])
def test_the_worst_sum_by_enumeration(name: str, mechanism: Any) -> None:
    """Over all sets of entries and all honest populations of one category each (k of them for a top k)."""
    values = decoded(mechanism)
    entries = values.shape[1]
    own = 1 if not isinstance(mechanism, (bitldp.PS, bitldp.PE)) else mechanism.k
    best = 0.0
    for chosen in itertools.combinations(range(entries), own):
        mean = np.zeros(entries)
        mean[list(chosen)] = 1.0
        apart = values - mean
        best = max(best, sets(apart))
        assert mechanism.influence(1.0, mean=mean) <= np.abs(apart).max() + 1.0
        assert sets(apart) <= mechanism.influence(1.0, mean=mean, total=True) * (1.0 + 1e-9)
    assert mechanism.influence(1.0, total=True) == pytest.approx(best, rel=1e-9)


def test_a_report_of_all_ones_moves_every_share() -> None:
    """Of 64 categories at epsilon 1: .0316 each, 2.01 together; of GRR .38, and no more together."""
    oue, grr = bitldp.OUE(64, epsilon=1.0), bitldp.GRR(64, epsilon=1.0)
    estimate = oue.estimate_frequencies(np.concatenate([np.zeros((99, 64)), np.ones((1, 64))]).astype(int))
    nothing = oue.estimate_frequencies(np.zeros((99, 64), int)).value
    moved = estimate.value - 0.99 * nothing
    assert moved == pytest.approx(np.full(64, oue.influence(0.01)))
    assert oue.influence(0.01, mean=1.0 / 64, total=True) == pytest.approx(
        64 * 0.01 * (moved[0] * 100 - 1 / 64)
    )
    assert grr.influence(0.01, total=True) == pytest.approx(grr.influence(0.01), rel=1e-12)


@pytest.mark.parametrize("name", ["CategoricalRecord", "CategoricalRecord-split", "RecordCap", "MixedRecord"])
def test_of_several_attributes_liars_choose_which(name: str) -> None:
    """One attribute's estimate moves by the liars' share of its own reports, whatever was drawn."""
    mechanism = EVERY[name].make()
    assert isinstance(mechanism, Mechanism)
    parts: Any = mechanism.mechanisms
    reaches = mechanism._reach()
    assert mechanism.influence(0.01) == pytest.approx(max(each.moved(0.01) for each in reaches))
    chance = (mechanism.k or len(parts)) / len(parts)
    for part, reach in zip(parts, reaches, strict=True):
        liars = 0.01 / (0.01 + 0.99 * chance)
        assert reach.moved(0.01) == pytest.approx(part.influence(liars), rel=1e-9)
    honest, lying, decode = 990, 10, 3.0
    about = honest * chance  # honest reports of an attribute; those of liars are all about it
    moved = (about * 0.0 + lying * decode) / (about + lying)
    assert Reach(np.array([[decode]]), chance=chance).moved(0.01, np.zeros(1)) == pytest.approx(moved)


def test_an_attribute_that_all_liars_report() -> None:
    mechanism = bitldp.CategoricalRecord((7, 4), epsilon=2.0, oracle="GRR")
    honest: Any = mechanism.randomize(np.zeros((990, 2), int), rng=1)
    lie = bitldp.SampledReports(np.full((10, 1), 1), np.full((10, 1), 3))
    both = bitldp.SampledReports(*(np.concatenate(each) for each in zip(honest, lie, strict=True)))
    before, after = mechanism.estimate_frequencies(honest)[1], mechanism.estimate_frequencies(both)[1]
    share = 10.0 / after.n
    moved = after.value[3] - (1.0 - share) * before.value[3]
    assert moved == pytest.approx(mechanism.mechanisms[1].influence(share), rel=1e-9)
    assert after.influence == pytest.approx(mechanism._reach()[1].moved(0.01))


def test_heavy_hitters_liars_choose_the_group() -> None:
    mechanism = bitldp.HeavyHitters(epsilon=1.0, bits=16)
    groups = len(mechanism.lengths)
    p, q = mechanism._hashed.chances()
    liars = 0.01 / (0.01 + 0.99 / groups)
    assert mechanism.influence(0.01) == pytest.approx(liars * (1.0 - q) / (p - q))
    with pytest.raises(ValueError, match="the words have no public list"):
        mechanism.influence(0.01, total=True)


@pytest.mark.parametrize(("size", "epsilon"), [(8, 1.0), (23, 0.5), (40, 2.0)])
def test_no_report_moves_a_range_further(size: int, epsilon: float) -> None:
    """All honest records at any leaf, all liars at any report of one level, or spread evenly over levels."""
    mechanism = bitldp.Hierarchy(size, epsilon=epsilon)
    accumulator: Any = mechanism.accumulator()
    levels, ends = len(mechanism.levels), [0, size // 3, size]
    starts, stops = (np.array(each) for each in zip(*itertools.combinations(ends, 2), strict=True))
    share, per_level = 0.01, 99_000 // levels
    bound = mechanism.range_influence(share, starts, stops)
    oracles = [part for part in mechanism.mechanisms if isinstance(part, bitldp.BlockDesign)]
    lie = [part.decode(np.arange(part.blocks.outputs)) for part in oracles]
    for leaf in (0, size // 2, size - 1):
        true = mechanism._tree.levels(np.eye(size)[leaf])
        honest = accumulator._consistency.leaves(true)
        liars = 0.01 * levels * per_level / (0.99 * 1.0)
        for level in range(levels):
            weight = liars / (per_level + liars)
            for row in lie[level]:
                mixed = [each.copy() for each in true]
                mixed[level] = (1.0 - weight) * mixed[level] + weight * row
                moved = accumulator._consistency.leaves(mixed) - honest
                sums = np.concatenate([[0.0], np.cumsum(moved)])
                assert (np.abs(sums[stops] - sums[starts]) <= bound * (1.0 + 1e-9) + 1e-12).all()
    assert mechanism.influence(share) > 0.0
    with pytest.raises(ValueError, match=r"^mean: "):
        mechanism.influence(share, mean=0.0)
    with pytest.raises(ValueError, match="sums are ranges"):
        mechanism.influence(share, total=True)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_linear_estimate_says_so(name: str) -> None:
    with pytest.raises(ValueError, match=REFUSED[name]):
        EVERY[name].make().influence(0.01)


@pytest.mark.parametrize("kind", [bitldp.Duchi, bitldp.Piecewise, bitldp.Laplace])
def test_nothing_to_move_at_epsilon_zero(kind: Any) -> None:
    if kind is not bitldp.Laplace:
        with pytest.raises(ValueError, match="epsilon 0"):
            kind(epsilon=0.0).influence(0.01)


@pytest.mark.parametrize(
    ("share", "named", "message"),
    [
        (-0.1, {}, "^share: must be from 0 to 1"),
        (math.nan, {}, "^share: "),
        (1.1, {}, "^share: must be from 0 to 1"),
        (0.1, {"mean": 1.2}, "^mean: must be from -1 to 1"),
        (0.1, {"mean": math.nan}, "^mean: must be from -1 to 1"),
        (0.1, {"mean": [0.0, 0.0]}, "^mean: must be one number, or 1 of them, got 2"),
    ],
)
def test_what_is_refused(share: float, named: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bitldp.Duchi(epsilon=1.0).influence(share, **named)
    with pytest.raises(TypeError, match=r"^total: "):
        bitldp.Duchi(epsilon=1.0).influence(0.1, total="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in EVERY if name not in REFUSED])
def test_every_estimate_says_it(name: str) -> None:
    case: Case = EVERY[name]
    mechanism = case.make()
    reports = mechanism.randomize(*case.inputs(np.random.default_rng(0), 400), rng=1)
    accumulator = mechanism.accumulator()
    accumulator.update(*(reports if name == "BitRand" else (reports,)))
    estimates: Any = accumulator.estimate()
    flat = [each for one in estimates for each in (one if isinstance(one, tuple) else (one,))] if isinstance(
        estimates, tuple) else [estimates]  # fmt: skip
    if name == "KeyValue":  # whose means are ratios, which no bound holds
        flat = flat[:1]
    if name != "Hierarchy":  # whose single values move less than its ranges
        assert max(each.influence for each in flat) >= mechanism.influence(0.01) * (1 - 1e-9)
    for each in flat:
        assert "1 % of liars could move " in str(each)
        assert "1 % of liars could move " in each._repr_html_()


def test_the_line_is_rounded_up() -> None:
    one = bitldp.Estimate(np.array([0.5]), np.array([0.1]), 10, influence=0.012341)
    assert str(one).splitlines()[-1] == "1 % of liars could move this by at most 0.0124"
    assert "at most 0.0123" in str(replace(one, influence=0.0123))
    assert "at most 4.1e-05" in str(replace(one, influence=0.000041))
    assert "liars" not in str(replace(one, influence=None))


_HADAMARD = bitldp.HadamardResponse(16, epsilon=1.0)
_AGAINST = np.argmin(_HADAMARD.decode(np.arange(_HADAMARD.channel.outputs))[:, 5])
TIGHT = [  # what all honest records hold, the entry and its honest mean, and the worst report
    (bitldp.GRR(16, epsilon=1.0), 3, (5, 0.0), np.array([5])),
    (bitldp.OUE(16, epsilon=1.0), 3, (5, 0.0), np.ones((1, 16), np.uint8)),
    (_HADAMARD, 5, (5, 1.0), np.array([_AGAINST])),
    (bitldp.Duchi(epsilon=1.0), -1.0, (0, -1.0), np.array([1])),
    (bitldp.Piecewise(epsilon=1.0), -1.0, (0, -1.0), np.array([bitldp.Piecewise(epsilon=1.0).alphabet - 1])),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("mechanism", "truth", "entry", "lie"), TIGHT)
def test_simulated_liars_reach_the_bound(mechanism: Any, truth: Any, entry: Any, lie: Any) -> None:
    """198,000 honest records of the worst mean and 2,000 worst reports: n = 200,000, alpha 6e-7."""
    honest, lying = 198_000, 2_000
    reports = mechanism.randomize(np.repeat(np.array([truth]), honest), rng=11)
    lies = np.repeat(lie, lying, axis=0).astype(reports.dtype)
    accumulator = mechanism.accumulator()
    accumulator.update(np.concatenate([reports, lies]))
    estimate, (index, honest_mean) = accumulator.estimate(), entry
    assert estimate.influence == mechanism.influence(0.01)
    moved, noise = abs(estimate.value[index] - honest_mean), 5.0 * estimate.stderr[index]
    assert abs(moved - mechanism.influence(0.01)) < noise
    assert abs(moved - mechanism.influence(0.02)) > noise  # it can tell


@pytest.mark.parametrize("size", [3, 7, 8, 14])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_for_how_many_categories_a_report_counts(size: int, epsilon: float) -> None:
    olh = bitldp.OLH(size, epsilon=epsilon)
    functions = itertools.product(range(1, olh.prime), range(olh.prime), range(olh.values))
    sizes = (olh.decode(np.array(list(functions))) > 0.0).sum(axis=1)
    assert olh._support_sizes() == (sizes.min(), sizes.max())
    design = bitldp.BlockDesign(size, epsilon=epsilon)
    sizes = (design.decode(np.arange(design.channel.outputs)) > 0.0).sum(axis=1)
    assert design._support_sizes() == (sizes.min(), sizes.max())
