"""EXP, PS and PE: exact laws, exact epsilon, streams, refusals."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings

import bitldp
import numpy as np
import pytest
from bitldp import EXP, PE, PS, PrivacyClaimWarning, Select, reference
from bitldp.audit import audit
from bitldp.selection.mechanisms import _exp, _fallen, exp_channel, pe_chances
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = {
    "EXP": lambda d, epsilon: EXP(d, epsilon=epsilon),
    "PS": lambda d, epsilon: PS(d, k=max(1, d // 3), epsilon=epsilon),
    "PE": lambda d, epsilon: PE(d, k=max(1, d // 3), epsilon=epsilon),
}


@pytest.fixture(params=KINDS)
def kind(request):
    """Return a maker of each kind of selection in turn."""
    return KINDS[request.param]


def chi_square_limit(degrees: float) -> float:
    """Return the quantile at 1 - 1e-6, by Wilson and Hilferty; 4.7534 is the normal one."""
    spread = 2.0 / (9.0 * degrees)
    return degrees * (1.0 - spread + 4.7534 * math.sqrt(spread)) ** 3


def assert_follows(reports, law):
    """Hold reports to a law by chi-square at alpha = 1e-6; the seeds are fixed."""
    counts = np.bincount(reports, minlength=len(law))
    assert counts[law == 0.0].sum() == 0
    law = law[law > 0.0]
    expected = law * len(reports)
    assert (expected > 5.0).all()
    statistic = (np.square(counts[counts >= 0][: len(law)] - expected) / expected).sum()
    assert statistic < chi_square_limit(len(law) - 1)


def quiet_pe(*args, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)
        return PE(*args, **parameters)


def test_vector_15_exp(vectors):
    case = vectors[15]
    mechanism = EXP(case["inputs"]["d"], epsilon=case["inputs"]["eps1"])
    np.testing.assert_allclose(mechanism.probabilities(), case["expected"], atol=case["tolerance"])
    assert 0.0 <= 2.0 - mechanism.guarantee.record < 1e-12


def test_weights_of_exp_take_sums_and_products_alone():
    """Exponentials of C libraries and of NumPy differ in the last bit, and the law would with them."""
    gaps = np.linspace(0.0, 44.0, 20_001)
    exact = np.array([math.exp(-each) for each in gaps])
    np.testing.assert_allclose(_exp(-gaps), exact, rtol=4e-16)
    few = gaps[gaps <= 0.5]
    np.testing.assert_allclose(_fallen(few), [-math.expm1(-each) for each in few], rtol=4e-16)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("exp", "expm1"):
            patch.delattr(np, name)
        exp_channel.__wrapped__(50, 3.0)


def test_vector_16_ps(vectors):
    case, expected = vectors[16], vectors[16]["expected"]
    mechanism = PS(case["inputs"]["d"], k=case["inputs"]["k"], epsilon=case["inputs"]["eps1"])
    law = mechanism.probabilities()
    assert law[-1] == pytest.approx(expected["each_top"], abs=case["tolerance"])
    assert law[0] == pytest.approx(expected["each_other"], abs=case["tolerance"])
    assert law[-10:].sum() == pytest.approx(expected["p_topset"], abs=case["tolerance"])
    assert mechanism.guarantee.record == pytest.approx(expected["exact_eps"], abs=case["tolerance"])


def test_vector_17_pe(vectors):
    expected, tolerance = vectors[17]["expected"], vectors[17]["tolerance"]
    with pytest.warns(PrivacyClaimWarning, match="claimed epsilon 4 per record, but the exact one is 4.08"):
        paper = PE(100, k=10, epsilon=4.0, calibration="paper")
    assert paper.guarantee.record == pytest.approx(expected["exact_100_10_4"], abs=tolerance)
    exact = PE(100, k=10, epsilon=4.0)
    assert exact.p == pytest.approx(expected["calibrated_p_100_10_4"], abs=tolerance)
    assert exact.guarantee.holds
    small = quiet_pe(2, k=1, epsilon=1.0, calibration="paper")
    assert small.guarantee.record == pytest.approx(expected["exact_2_1_1"], abs=tolerance)
    assert not small.guarantee.holds
    ten = quiet_pe(10, k=1, epsilon=1.0, calibration="paper")
    assert ten.guarantee.record == pytest.approx(1.173, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3, 5, 8])
@pytest.mark.parametrize("calibration", ["paper", "exact"])
def test_pe_is_the_output_law_of_the_papers_algorithm(d, calibration):
    """All 2^d perturbed status vectors, and a uniform draw among their ones."""
    for k in range(1, d):
        mechanism = quiet_pe(d, k=k, epsilon=1.3, calibration=calibration)
        law = np.zeros(d + 1)
        for bits in itertools.product([0, 1], repeat=d):
            ones = [j for j, bit in enumerate(bits) if bit]
            top = sum(bits[d - k :])
            kept = top + (d - k) - (len(ones) - top)
            chance = mechanism.p**kept * (1.0 - mechanism.p) ** (d - kept)
            for j in ones or [d]:
                law[j] += chance / max(1, len(ones))
        np.testing.assert_allclose(mechanism.probabilities(), law, rtol=1e-12)


@pytest.mark.parametrize(
    ("d", "k", "u"), [(2, 1, 1.0), (60, 59, 3.0), (60, 20, 0.1), (100, 10, 9.0), (40, 1, 30.0)]
)
def test_pe_chances_against_the_double_sum(d, k, u):
    p, q = 1.0 / (1.0 + math.exp(-u)), 1.0 / (1.0 + math.exp(u))

    def share(kept, flipped):
        return math.fsum(
            math.comb(kept, i)
            * p**i
            * q ** (kept - i)
            * math.comb(flipped, j)
            * q**j
            * p ** (flipped - j)
            / (1 + i + j)
            for i in range(kept + 1)
            for j in range(flipped + 1)
        )

    expected = (p * share(k - 1, d - k), q * share(k, d - k - 1), q**k * p ** (d - k))
    np.testing.assert_allclose(pe_chances(d, k, u), expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("d", "k", "u"), [(10**6, 10, 1.0), (10**6, 10**5, 4.0), (10**6, 999_999, 5.0), (10**6, 1, 0.01)]
)
def test_pe_chances_add_up_in_large_dimensions(d, k, u):
    top, other, nothing = pe_chances(d, k, u)
    assert k * top + (d - k) * other + nothing == pytest.approx(1.0, abs=1e-12)
    assert u <= math.log(top / other) < u + math.log(2.0)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(d=st.integers(2, 300), share=st.floats(0.0, 1.0), epsilon=st.floats(1e-6, 20.0))
def test_exact_epsilon_is_the_budget(d, share, epsilon):
    k = min(d - 1, max(1, int(share * d)))
    for mechanism in (EXP(d, epsilon=epsilon), PS(d, k=k, epsilon=epsilon), PE(d, k=k, epsilon=epsilon)):
        weights = mechanism.channel.weights().astype(object)
        exact = math.log(max(weights)) - math.log(min(weights))
        assert mechanism.guarantee.record == pytest.approx(exact, rel=1e-9, abs=1e-12)
        assert mechanism.guarantee.record <= epsilon
        assert mechanism.guarantee.record == pytest.approx(epsilon, rel=1e-6, abs=1e-8)
        assert sum(weights) + (mechanism.channel.nothing or 0) == mechanism.channel.total
        assert (np.diff(mechanism.channel.weights().astype(float)) >= 0).all()
        assert mechanism.probabilities().sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 50.0, 1e3, 1e300])
def test_extreme_budgets(kind, epsilon):
    mechanism = kind(100, epsilon=epsilon)
    assert 0.0 <= mechanism.guarantee.record <= min(epsilon, 45.0)
    if epsilon == 0.0:
        assert len(set(mechanism.channel.weights().tolist())) == 1
    if epsilon >= 50.0:
        assert mechanism.guarantee.record > 35.0


def test_reports_follow_the_law(kind):
    """With n = 60,000 copies of a vector with ties and zeros of both signs; alpha = 1e-6."""
    mechanism = kind(7, epsilon=1.5)
    vector = np.array([0.5, -0.0, 2.0, -0.5, 0.0, 9.0, -0.5])
    law = mechanism.law(vector[None])[0]
    assert law[0] == law[3] == law[6]
    assert law[1] == law[4] <= law[0] <= law[2] <= law[5]
    assert law[1] < law[5]
    assert_follows(mechanism.randomize(np.repeat(vector[None], 60_000, axis=0), rng=5), law)


def test_equal_magnitudes_are_drawn_uniformly(kind):
    """With n = 20,000; past one block of the search for equals; alpha = 1e-6."""
    mechanism = kind(1200, epsilon=3.0)
    codes = mechanism.randomize(np.full((20_000, 1200), -2.5, np.float32), rng=6)
    codes = codes[codes < 1200]
    assert_follows(codes // 100, np.full(12, 1 / 12))
    assert_follows(codes % 100, np.full(100, 0.01))


def test_selects_the_largest_where_the_budget_is_large():
    rng = np.random.default_rng(1)
    for d in (2, 50, 161, 1000, 20_000):
        for dtype in (np.float32, np.float64):
            x = rng.normal(size=(20, d)).astype(dtype)
            np.testing.assert_array_equal(
                PS(d, k=1, epsilon=100.0).randomize(x, rng=1), np.abs(x).argmax(axis=1)
            )


def test_every_rank_is_found():
    """A law that sits on one rank finds the coordinate of that rank."""
    rng = np.random.default_rng(2)
    for d in (2, 30, 700, 5000):
        x = rng.normal(size=(3, d))
        order = np.abs(x).argsort(axis=1)
        for rank in {0, 1, d // 3, d - 2, d - 1}:
            counts = np.array([rank, 1, d - 1 - rank], np.uint32)
            weights = np.array([0, 1, 0], np.uint64)
            channel = Select(counts[counts > 0], weights[counts > 0])
            assert channel.epsilon == math.inf
            np.testing.assert_array_equal(channel.randomize(x, None, "codes", None, None, 0), order[:, rank])


def test_bad_vectors_are_refused_and_leave_zeros(kind):
    mechanism = kind(4, epsilon=1.0)
    x = np.ones((3, 4))
    out = np.full(3, 77, np.uint8)
    for bad in (np.nan, np.inf, -np.inf):
        x[1, 2] = bad
        out[...] = 77
        for dtype in (np.float32, np.float64):
            with pytest.raises(
                ValueError, match=r"x: element 6 \(in C order\) is not allowed; a finite number"
            ) as info:
                mechanism.randomize(x.astype(dtype), out=out)
            assert str(bad) not in str(info.value).replace("infinite", "")
            assert (out == 0).all()
    for shape in ((4,), (3, 5), (2, 3, 4), (4, 3)):
        with pytest.raises(ValueError, match=r"x: shape .* is not allowed; \(n, 4\) is"):
            mechanism.randomize(np.ones(shape))
    for dtype in (np.longdouble, np.complex128, np.bool_, object):
        with pytest.raises(TypeError, match="x: dtype"):
            mechanism.randomize(np.ones((2, 4), dtype))
    with pytest.raises(TypeError, match="masked"):
        mechanism.randomize(np.ma.masked_array(np.ones((2, 4)), mask=True))
    with pytest.raises(ValueError, match="out: shape"):
        mechanism.randomize(np.ones((2, 4)), out=np.empty(3, np.uint8))
    with pytest.raises(TypeError, match="out: dtype"):
        mechanism.randomize(np.ones((2, 4)), out=np.empty(2, np.uint16))
    with pytest.raises(ValueError, match="output: "):
        mechanism.randomize(np.ones((2, 4)), output="values")
    with pytest.raises(ValueError, match="threads"):
        mechanism.randomize(np.ones((2, 4)), threads=0)
    with pytest.raises(ValueError, match="first_chunk"):
        mechanism.randomize(np.ones((2, 4)), first_chunk=1 << 56)
    assert mechanism.randomize(np.empty((0, 4))).shape == (0,)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: PS(5, k=5, epsilon=1.0), ValueError, "k: must be between 1 and 4"),
        (lambda: PS(5, k=6, epsilon=1.0), ValueError, "k: must be between 1 and 4"),
        (lambda: PE(5, k=0, epsilon=1.0), ValueError, "k: must be between 1 and 4"),
        (lambda: PE(5, k=1.0, epsilon=1.0), TypeError, "k: must be an integer"),
        (lambda: EXP(1, epsilon=1.0), ValueError, "features: must be at least 2"),
        (lambda: EXP(1 << 25, epsilon=1.0), ValueError, "features: must be at most"),
        (lambda: EXP(3, epsilon=-1.0), ValueError, "epsilon: must be zero or more"),
        (lambda: PS(3, k=1, epsilon=math.nan), ValueError, "epsilon: must be finite"),
        (lambda: PE(3, k=1, epsilon="1"), TypeError, "epsilon: must be a real number"),
        (lambda: PE(3, k=1, epsilon=1.0, calibration="lemma"), ValueError, "calibration: must be one of"),
    ],
)
def test_bad_parameters(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(
    ("counts", "weights", "nothing", "message"),
    [
        ([1], [1], None, "counts: 1 ranks"),
        ([2, 0], [1, 1], None, "counts: run 1 is empty"),
        ([2], [1, 1], None, "weights: 2 weights, where 1 are needed"),
        ([2], [1 << 63], None, "weights: must sum"),
        ([2], [0], 0, "weights: must sum"),
    ],
)
def test_bad_laws(counts, weights, nothing, message):
    with pytest.raises(ValueError, match=message):
        Select(np.array(counts, np.uint32), np.array(weights, np.uint64), nothing)


def test_frozen_equal_and_pickled_by_parameters(kind):
    mechanism = kind(9, epsilon=2.0)
    assert mechanism == kind(9, epsilon=2.0)
    assert hash(mechanism) == hash(kind(9, epsilon=2.0))
    assert mechanism != kind(9, epsilon=1.0)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert again.guarantee == mechanism.guarantee
    assert eval(repr(mechanism), {name: getattr(bitldp, name) for name in bitldp.__all__}) == mechanism
    channel = pickle.loads(pickle.dumps(mechanism.channel))
    np.testing.assert_array_equal(channel.weights(), mechanism.channel.weights())
    assert channel.nothing == mechanism.channel.nothing
    with pytest.raises(AttributeError):
        mechanism.epsilon = 3.0


def test_report_bits():
    assert EXP(2, epsilon=1.0).report_bits == 1
    assert PS(256, k=3, epsilon=1.0).report_bits == 8
    assert PE(256, k=3, epsilon=1.0).report_bits == 9
    assert PE(256, k=3, epsilon=1.0).randomize(np.ones((2, 256))).dtype == np.uint16


def test_letters_are_unbiased_for_the_top_k_and_have_the_stated_variance(kind):
    mechanism = kind(6, epsilon=1.0)
    x = np.array([[1.0, 2.0, 2.0, 0.0, -5.0, 0.1]])
    if isinstance(mechanism, EXP):
        for refused in (mechanism.decode, mechanism.estimate_frequencies, mechanism.variance):
            with pytest.raises(ValueError, match="ranks"):
                refused(np.array([0]))
        with pytest.raises(ValueError, match="nothing to accumulate"):
            mechanism.accumulator()
        return
    law = mechanism.law(x)[0]
    letters = mechanism.decode(np.arange(len(law)))
    np.testing.assert_allclose(
        law @ letters, [0, 0.5, 0.5, 0, 1, 0], atol=1e-12
    )  # k = 2; a tie for the second
    np.testing.assert_allclose(law @ letters**2 - (law @ letters) ** 2, mechanism.variance(x)[0], rtol=1e-9)
    reports = mechanism.randomize(np.repeat(x, 20_000, axis=0), rng=4)
    found = mechanism.estimate_frequencies(reports)
    assert (np.abs(found.value - [0, 0.5, 0.5, 0, 1, 0]) < 5.0 * found.stderr).all()  # alpha < 1e-5
    merged = mechanism.accumulator()
    merged.update(reports[:7])
    other = type(merged).from_json(merged.to_json(), mechanism)
    other.update(reports[7:])
    np.testing.assert_array_equal(other.estimate().value, found.value)
    with pytest.raises(ValueError, match="project: must be False"):
        mechanism.estimate_frequencies(reports, project=True)
    with pytest.raises(ValueError, match="no unbiased decode exists at epsilon 0"):
        type(mechanism)(6, k=2, epsilon=0.0).decode(reports)
    with pytest.raises(ValueError, match="no mean to estimate"):
        mechanism.estimate_mean(reports)
    with pytest.raises(ValueError, match="reports: the integer at index"):
        mechanism.decode(np.array([7]))


@pytest.mark.statistical
def test_references_follow_the_same_laws():
    """With n = 40,000 with ties; alpha = 1e-6."""
    rng = np.random.default_rng(8)
    x = np.repeat(np.array([[1.0, -2.0, 2.0, 0.0, 5.0]]), 40_000, axis=0)
    exp, ps, pe = EXP(5, epsilon=1.5), PS(5, k=2, epsilon=1.5), PE(5, k=2, epsilon=1.5)
    assert_follows(reference.select_by_rank(x, exp.probabilities(), rng), exp.law(x[:1])[0])
    inside = float(ps.probabilities()[3:].sum())
    assert_follows(reference.select_top(x, 2, inside, rng), ps.law(x[:1])[0])
    assert_follows(reference.perturbed_encoding(x, 2, pe.p, rng), pe.law(x[:1])[0])


def test_the_audit_knows_selections(kind):
    result = audit(kind(12, epsilon=2.0), n=4000, rng=1)
    assert result.passed
    assert result.lower > 0.8


class Always:
    """A planted fault: PS that hardly ever leaves the top k."""

    def __init__(self) -> None:
        self.honest = PS(12, k=4, epsilon=1.0)
        self.guarantee = self.honest.guarantee
        self.faulty = PS(12, k=4, epsilon=6.0)

    def randomize(self, scores, *, rng=None):
        return self.faulty.randomize(scores, rng=rng)


def test_the_audit_finds_too_large_a_chance():
    rising = 1.0 + np.arange(12.0)
    result = audit(Always(), n=4000, rng=1, pair=(rising, rising[::-1].copy()))
    assert not result.passed
