"""Audits: planted faults are found, correct mechanisms pass, and the bounds are what they say.

All audits are seeded. Unless a test says otherwise they hold at confidence 0.999, so a correct mechanism
fails one with probability at most 0.001, once and for all when its seed is chosen.
"""

from __future__ import annotations

import json
import math
import tracemalloc
import warnings

import bitldp
import faults
import numpy as np
import pytest
from bitldp import _extras
from bitldp._audit.events import clopper_pearson
from bitldp._audit.sample import Source
from bitldp._audit.search import learn
from bitldp._cli.app import app
from bitldp._core import Matrix
from bitldp.audit import AuditResult, audit
from bitldp.privacy import Guarantee
from scipy import stats
from typer.testing import CliRunner


def quiet(kind, *arguments, **parameters):
    """Build a mechanism whose claim may fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        return kind(*arguments, **parameters)


# -- correct mechanisms


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_correct_mechanisms_pass(case, seed):
    mechanism = case.make()
    result = audit(mechanism, n=10_000, rng=seed)
    assert result.passed, result
    assert 0.0 < result.lower <= result.exact <= mechanism.guarantee.record


@pytest.mark.parametrize(
    "mechanism",
    [
        bitldp.FRR(3, epsilon=0.0),
        bitldp.OUE(5, epsilon=0.0),
        bitldp.GRR(3, epsilon=0.0),
        bitldp.BRR(20, epsilon=0.0),
        bitldp.GRR(40, epsilon=12.0),
        bitldp.WarnerRR(30.0),
        bitldp.FRR(1, bits=2, integer_bits=1, epsilon=20.0),
        bitldp.SUE(100, epsilon=5.0),
    ],
    ids=repr,
)
def test_extreme_budgets_pass(mechanism):
    assert audit(mechanism, n=5_000, rng=1).passed


@pytest.mark.parametrize(
    ("mechanism", "share"),
    [
        (bitldp.WarnerRR(1.0), 0.97),
        (bitldp.GRR(10, epsilon=2.0), 0.95),
        (bitldp.BRR(400, epsilon=1.0, m="best"), 0.94),
        (bitldp.SUE(20, epsilon=2.0), 0.95),
        (bitldp.OUE(20, epsilon=2.0), 0.94),
        (bitldp.FRR(1, bits=3, integer_bits=1, epsilon=2.0), 0.9),
    ],
    ids=repr,
)
def test_bounds_are_near_the_exact_epsilon(mechanism, share):
    """The worst pair and event were found; n = 100,000."""
    result = audit(mechanism, rng=5)
    assert share * mechanism.guarantee.record <= result.lower <= mechanism.guarantee.record
    assert result.exact == pytest.approx(mechanism.guarantee.record, rel=1e-12)


def test_independent_bits_are_combined():
    """A record's bound is far above what any bit of it could show."""
    mechanism = bitldp.FRR(2, bits=5, integer_bits=2, epsilon=6.0)
    result = audit(mechanism, rng=2)
    assert result.lower > 2.5 * mechanism.guarantee.bit
    assert "likelihood" in result.event


def test_a_failing_claim_is_refuted():
    mechanism = quiet(bitldp.FRR, 5, epsilon=1.0, calibration="paper")
    result = audit(mechanism, n=20_000, rng=1)
    assert result.passed
    assert result.lower > 5.0 > result.claimed == 1.0
    assert "claimed 1: refuted" in str(result)


# -- planted faults

FAULTS = [
    # a mechanism with a fault, the same without, reports of each input, whether epsilon itself is exceeded
    (faults.LastBitUnprotected, bitldp.FRR, (4,), {"epsilon": 4.0}, 10_000, True),
    (faults.LastCategoryUnprotected, bitldp.OUE, (12,), {"epsilon": 2.0}, 10_000, True),
    (faults.SwappedOUE, bitldp.OUE, (8,), {"epsilon": 1.0}, 10_000, False),
    (faults.SwappedMOUE, bitldp.MOUE, (2,), {"bits": 6, "integer_bits": 2, "epsilon": 6.0}, 100_000, False),
    (faults.SwappedGRR, bitldp.GRR, (10,), {"epsilon": 1.0}, 10_000, True),
    (faults.WindowTooWide, bitldp.BRR, (30,), {"epsilon": 1.5}, 20_000, False),
    (faults.WindowTooHeavy, bitldp.BRR, (12,), {"epsilon": 2.0}, 50_000, True),
    (faults.ByteThresholds, bitldp.WarnerRR, (6.0,), {}, 20_000, True),
    (faults.CoarseThresholds, bitldp.OUE, (6,), {"epsilon": 3.0}, 50_000, False),
    (faults.SilentAtNoRange, bitldp.BRR, (21,), {"epsilon": 1.0, "interval": (-1.0, 1.0)}, 2_000, True),
    (faults.SilentAtZero, bitldp.FRR, (3,), {"epsilon": 5.0}, 2_000, True),
    (faults.OncePerCall, bitldp.GRR, (3,), {"epsilon": 1.0}, 2_000, True),
]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("faulty", "right", "place", "named", "n", "above"), FAULTS, ids=[f[0].__name__ for f in FAULTS]
)
def test_faults_are_caught(faulty, right, place, named, n, above, seed):
    result = audit(faulty(*place, **named), n=n, rng=seed)
    assert not result.passed, result
    assert result.lower > result.exact
    assert "FAILS" in str(result)
    if above:
        assert result.lower > result.guarantee.record
    assert audit(right(*place, **named), n=n, rng=seed).passed


@pytest.mark.parametrize(
    "mechanism",
    [
        faults.StaleFRR(4, epsilon=2.0),
        faults.StaleOUE(5, epsilon=1.0),
        faults.StaleBRR(30, epsilon=2.0),
        faults.StaleBitRand(2, classes=3, epsilon_x=3.0, epsilon_y=1.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_stale_key_is_caught(mechanism):
    for options in ({}, {"rng": 4}, {"event": lambda reports: np.zeros(len(reports[0]), bool)}):
        result = audit(mechanism, n=1_000, **options)
        assert not result.passed
        assert result.lower == math.inf
        assert result.event == "two calls gave the same 64 reports"
        assert result.to_dict()["lower"] == "infinity"


def test_a_stale_key_is_caught_where_epsilon_is_infinite():
    class StaleWarner(faults.Stale, Hidden):
        pass

    assert not audit(StaleWarner(bitldp.WarnerRR(1.0), record=math.inf), n=1_000, pair=(0, 1)).passed


def test_rare_changes_are_no_stale_key():
    """At epsilon 30 two calls agree, and nothing is concluded from it."""
    result = audit(bitldp.WarnerRR(30.0), n=2_000, rng=1)
    assert result.passed
    assert result.lower > 4.0


# -- unknown laws


class Hidden:
    """A mechanism of which only guarantee and reports are known."""

    def __init__(self, mechanism, *, record=None, **attributes):
        exact = mechanism.guarantee.record if record is None else record
        self.guarantee = Guarantee.judge(exact, (exact, exact, exact))
        self._mechanism = mechanism
        vars(self).update(attributes)

    def randomize(self, x, *, rng=None):
        return self._mechanism.randomize(x, rng=rng)


class Laplace:
    """Noise in plain NumPy on `features` values of [0, 1], epsilon split evenly; no exactness is claimed."""

    interval = (0.0, 1.0)

    def __init__(self, epsilon, features=1, *, factor=1.0, delta=0.0, unprotected=False):
        self.guarantee = Guarantee(epsilon, epsilon, epsilon, epsilon, delta=delta)
        self.features = features
        self.scale = factor * features / epsilon
        self.unprotected = unprotected

    def randomize(self, x, *, rng=None):
        reports = x + (np.random.default_rng() if rng is None else rng).laplace(0.0, self.scale, np.shape(x))
        if self.unprotected:
            reports[:, -1] = x[:, -1]
        return reports


def test_unknown_laws_are_searched():
    """Of n = 40,000 reports, half are for the search."""
    for mechanism, pair in (
        (Hidden(bitldp.GRR(10, epsilon=1.0)), (2, 7)),
        (Hidden(bitldp.OUE(6, epsilon=1.0)), (0, 5)),
        (Hidden(bitldp.BRR(30, epsilon=1.0)), (0, 29)),
        (Laplace(1.0), None),
    ):
        result = audit(mechanism, n=40_000, rng=6, pair=pair)
        assert result.passed
        assert 0.8 < result.lower <= 1.0
        assert "other half" in result.event


def test_faults_of_unknown_laws_are_caught():
    """Of n = 20,000 reports, half are for the search."""
    for mechanism, pair in (
        (Laplace(1.0, factor=0.5), None),
        (Laplace(2.0, 4, unprotected=True), None),
        (Hidden(faults.LastCategoryUnprotected(6, epsilon=1.0)), (0, 5)),
        (Hidden(bitldp.GRR(10, epsilon=1.0), record=0.7), (3, 4)),
    ):
        result = audit(mechanism, n=20_000, rng=1, pair=pair)
        assert not result.passed, result
        assert result.exact == mechanism.guarantee.record


def test_a_search_does_not_count_what_it_learned_from():
    """60 audits at confidence 0.9 of a law with many rare values: P(more than 14 fail) < 1e-3 at most.

    In the reports that it was learned from, the very same score shows far more than there is.
    """
    mechanism = Hidden(bitldp.GRR(400, epsilon=0.01))
    failed = sum(not audit(mechanism, n=1_000, confidence=0.9, rng=s, pair=(0, 1)).passed for s in range(60))
    assert failed <= int(stats.binom.isf(1e-3, 60, 0.1)) == 14

    class Recorded(Source):
        def blocks(self, record, count):
            for reports in super().blocks(record, count):
                drawn[record].append(reports)
                yield reports

    drawn = [[], []]
    score, _ = learn(Recorded(mechanism, {}, 1), (0, 1), 500, 0.01)
    learned_from = [np.concatenate(reports)[:250] for reports in drawn]
    for_a, for_b = (np.count_nonzero(score(reports) > 0.0) for reports in learned_from)
    low, high = clopper_pearson(np.array([for_a, for_b]), 250, 0.01)
    assert np.log(low[0] / high[1]) > 0.1  # ten times what there is


def test_delta_is_granted():
    """Noise of too small a scale keeps (1, 0.1), but not 1; of a quarter of the scale, neither."""
    assert audit(Laplace(1.0, factor=0.9, delta=0.1), n=40_000, rng=1).passed
    assert not audit(Laplace(1.0, factor=0.9), n=400_000, rng=1).passed
    assert not audit(Laplace(1.0, factor=0.25, delta=0.1), n=40_000, rng=1).passed


def test_a_mechanism_of_a_matrix_is_known_by_its_channel():
    class Table(Hidden):
        def randomize(self, x, *, rng=None, output="codes"):
            return self.sampled.randomize(x, None, None, faults.key(rng), output, None, None, 0)

    law = np.array([[0.5, 0.3, 0.2, 0.0], [0.25, 0.25, 0.5, 0.0], [0.4, 0.3, 0.3, 0.0]])
    channel = Matrix(law)
    honest = Table(bitldp.WarnerRR(1.0), record=channel.epsilon, channel=channel, sampled=channel)
    result = audit(honest, n=50_000, rng=1)
    assert result.passed
    assert 0.9 * channel.epsilon < result.lower <= result.exact == channel.epsilon
    leaky = law.copy()
    leaky[1] = [0.25, 0.25, 0.499, 0.001]  # a report that the law excludes
    faulty = Table(bitldp.WarnerRR(1.0), record=channel.epsilon, channel=channel, sampled=Matrix(leaky))
    result = audit(faulty, n=50_000, rng=1)
    assert not result.passed
    assert result.exact == -math.inf
    assert result.event == "3 is reported"


# -- given pairs and events


def test_a_given_pair_is_compared():
    for mechanism, pair in (
        (bitldp.GRR(10, epsilon=1.0), (3, 8)),
        (bitldp.GRR(4, epsilon=2.0, features=2), (np.array([1, 1]), np.array([2, 2]))),
        (bitldp.GRR(4, epsilon=2.0, features=2), (np.array([1, 0]), np.array([2, 3]))),
        (bitldp.SUE(5, epsilon=1.0), (2, 4)),
        (bitldp.FRR(2, epsilon=3.0), (np.array([1.0, -2.0]), np.array([-1.5, 2.0]))),
        (bitldp.BRR(21, epsilon=1.0, interval=(0.0, 1.0)), (0.0, 1.0)),
        (bitldp.BRR(21, epsilon=1.0, interval=(0.0, 1.0)), (0.013, 0.99)),  # between the points: searched
        (
            bitldp.BitRand(1, classes=3, epsilon_x=2.0, epsilon_y=1.0),
            ((np.array([1.0]), 2), (np.array([-3.0]), 0)),
        ),
    ):
        result = audit(mechanism, n=20_000, rng=1, pair=pair)
        assert result.passed, result
        assert result.lower > 0.15 * mechanism.guarantee.record
        assert any(result.pair[0] is each or np.all(result.pair[0] == each) for each in pair) or isinstance(
            mechanism, bitldp.BitRand
        )


def test_a_given_event_is_bounded():
    mechanism = bitldp.GRR(10, epsilon=1.0)
    p, q = mechanism.probabilities()[3, [3, 4]]
    result = audit(mechanism, n=200_000, rng=1, pair=(3, 8), event=lambda reports: reports == 3)
    assert result.passed
    assert math.log(p / q) - 0.06 < result.lower <= 1.0
    assert result.event == "the given event"
    assert result.between == ("pair[0]", "pair[1]")
    assert audit(mechanism, n=1_000, rng=1, event=lambda reports: reports > 4).passed


# -- statistics


@pytest.mark.parametrize("n", [1, 7, 1000])
@pytest.mark.parametrize("tail", [0.2, 1e-3, 1e-9])
def test_clopper_pearson(n, tail):
    counts = np.unique(np.linspace(0, n, 12).astype(int))
    low, high = clopper_pearson(counts, n, tail)
    for k, lower, upper in zip(counts, low, high, strict=True):
        interval = stats.binomtest(int(k), n).proportion_ci(1.0 - 2.0 * tail, method="exact")
        assert lower == pytest.approx(interval.low, rel=1e-6, abs=1e-300)
        assert upper == pytest.approx(interval.high, rel=1e-6)
    # the defining tails, which the interval above cannot resolve when `tail` is small
    np.testing.assert_allclose(stats.binom.sf(counts[1:] - 1, n, low[1:]), tail, rtol=1e-6)
    np.testing.assert_allclose(stats.binom.cdf(counts[:-1], n, high[:-1]), tail, rtol=1e-6)
    assert low[0] == 0.0
    assert high[-1] == 1.0


def test_all_bounds_hold_together():
    """200 audits at confidence 0.5, each of 240 bounds: P(more than 122 fail) < 1e-3 at most."""
    mechanism = bitldp.GRR(10, epsilon=1.0)
    failed = sum(not audit(mechanism, n=300, confidence=0.5, rng=seed).passed for seed in range(200))
    assert failed <= int(stats.binom.isf(1e-3, 200, 0.5)) == 122


def test_reproducible():
    mechanism = bitldp.FRR(2, epsilon=3.0)
    first, second = (audit(mechanism, n=2_000, rng=9) for _ in range(2))
    assert first.to_dict() == second.to_dict()
    sequence = np.random.SeedSequence(9)
    assert audit(mechanism, n=2_000, rng=sequence).lower == first.lower
    assert audit(mechanism, n=2_000, rng=np.random.default_rng(10)).lower != first.lower
    assert audit(mechanism, n=2_000).passed  # with keys of the operating system


def test_memory_is_bounded():
    """50,000 reports of 2,000 bits are 100 MB for each of four inputs; a few blocks are held."""
    mechanism = bitldp.FRR(200, epsilon=10.0)
    audit(mechanism, n=100, rng=1)  # imports
    tracemalloc.start()
    try:
        assert audit(mechanism, n=50_000, rng=1).passed
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


# -- the face


def test_the_result_is_one_line_and_json():
    result = audit(bitldp.GRR(4, epsilon=1.0), n=5_000, rng=1)
    assert isinstance(result, AuditResult)
    text = str(result)
    assert "\n" not in text
    for part in ("GRR: epsilon >= 0.", "exact for this event 1", "claimed 1", "n = 5000", "passes"):
        assert part in text
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["passed"] is True
    assert plain["lower"] == result.lower
    assert plain["guarantee"]["record"] == 1.0
    with pytest.raises(AttributeError):
        result.lower = 0.0


def test_a_given_pair_is_not_shown():
    result = audit(bitldp.FRR(1, epsilon=1.0), n=500, rng=1, pair=(np.array([13.25]), np.array([-7.5])))
    for text in (repr(result), str(result), json.dumps(result.to_dict())):
        assert "13.25" not in text
        assert "pair[0]" in text


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 99}, ValueError, "n: must be at least 100, got 99"),
        ({"n": 1e4}, TypeError, "n: must be an integer"),
        ({"confidence": 1.0}, ValueError, r"confidence: must be in \[0.5, 1\), got 1.0"),
        ({"confidence": math.nan}, ValueError, "confidence: must be finite"),
        ({"confidence": 0.4}, ValueError, "confidence: must be in"),
        ({"rng": 1.5}, TypeError, "rng: must be None, an int"),
        ({"pair": [0, 1]}, TypeError, "pair: must be a tuple of two inputs"),
        ({"pair": (0, 1, 2)}, TypeError, "pair: must be a tuple of two inputs"),
        ({"pair": (0, 9)}, ValueError, r"pair: the integer at index \(0,\) is outside \[0, 4\)"),
        ({"event": "first"}, TypeError, "event: must be callable"),
        ({"event": lambda reports: 3}, ValueError, r"event: must return bool of shape \(16,\)"),
        ({"event": lambda reports: reports}, ValueError, "event: must return bool .* got uint8"),
    ],
)
def test_bad_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        audit(bitldp.GRR(4, epsilon=1.0), **{"n": 1_000, "rng": 1, **options})


def test_what_is_no_mechanism_is_refused():
    with pytest.raises(TypeError, match="mechanism: must have a guarantee"):
        audit(3)
    with pytest.raises(ValueError, match="pair: is needed"):
        audit(Hidden(bitldp.WarnerRR(1.0)), n=1_000)

    class Short(Hidden):
        def randomize(self, x, *, rng=None):
            return super().randomize(x, rng=rng)[1:]

    with pytest.raises(ValueError, match="one report for each record"):
        audit(Short(bitldp.WarnerRR(1.0)), n=1_000, pair=(0, 1))


def test_without_scipy_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(_extras, "missing", list)
    with pytest.raises(
        _extras.MissingExtraError, match=r'the audit needs scipy: pip install "bitldp\[design\]"'
    ):
        audit(bitldp.WarnerRR(1.0))


# -- the command


def invoke(*arguments):
    return CliRunner().invoke(app, ["audit", *(str(each) for each in arguments)])


@pytest.mark.parametrize(
    "arguments",
    [
        ("grr", "--classes", 5),
        ("warner-rr",),
        ("oue", "--classes", 5),
        ("brr", "--points", 20, "--m", "best", "--low", 0, "--high", 9),
        ("frr", "--features", 3, "--bits", 6, "--integer-bits", 2),
        ("uer", "--features", 2, "--calibration", "paper"),
        ("bitrand", "--features", 2, "--classes", 3, "--label-epsilon", 1),
    ],
)
def test_command(arguments):
    result = invoke(*arguments, "--epsilon", 1, "--n", 3000, "--seed", 1)
    assert result.exit_code == 0, result.stderr
    for part in ("lower bound on epsilon", "exact epsilon per record", "claimed epsilon", "passes"):
        assert part in result.stdout
    plain = json.loads(invoke(*arguments, "--epsilon", 1, "--n", 3000, "--seed", 1, "--json").stdout)
    assert plain["passed"] is True
    assert plain["n"] == 3000


def test_command_fails_with_the_audit(monkeypatch):
    faulty = faults.StaleOUE(5, epsilon=1.0)
    monkeypatch.setattr("bitldp._cli.audit._built", lambda *_: faulty)
    result = invoke("oue", "--classes", 5, "--epsilon", 1)
    assert result.exit_code == 1
    assert "FAILS" in result.stdout
    assert "infinite" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("grr", "--epsilon", 1), "--classes is needed"),
        (("none", "--epsilon", 1), "no mechanism 'none'"),
        (("grr", "--epsilon", 1, "--classes", 1), "grr: categories: must be at least 2"),
        (("grr", "--epsilon", 1, "--classes", 4, "--bits", 3), "--bits does not apply to grr"),
        (("grr", "--epsilon", 1, "--classes", 4, "--confidence", 1), "--confidence: must be 0.5 or more"),
        (("bitrand", "--epsilon", 1, "--features", 4), "give --classes and --label-epsilon"),
    ],
)
def test_command_refuses(arguments, sentence):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
