"""What the mechanisms of numbers, of compression and of selection have in common with all others."""

from __future__ import annotations

import inspect
import json
import pickle
import warnings

import bitldp
import numpy as np
import pytest
from bitldp.accounting import account
from bitldp.audit import audit
from bitldp.compression import CLDP, SignSGD, VectorMVU
from bitldp.selection import Compressed
from support.cases import Case, reports_of

NOT_NUMBERS = (
    *("EXP", "PS", "PE", "TwoStage", "Compressed", "Exponential", "LSRR", "LabelLaplace"),
    *("CategoricalRecord", "CategoricalRecord-split", "RecordCap", "RecordCap-all"),
)


def pairs(reports):
    """Return the arrays of reports, which may be one."""
    return reports if isinstance(reports, tuple) else (reports,)


def part(reports, chosen):
    """Return some of the records."""
    if isinstance(reports, tuple):
        parts = (each[chosen] for each in reports)
        return tuple(parts) if type(reports) is tuple else type(reports)(*parts)
    return reports[chosen]


def test_one_value(family):
    """Equal, hashed, pickled and shown by its parameters, which cannot be changed."""
    mechanism, again = family.make(), family.make()
    assert mechanism == again
    assert hash(mechanism) == hash(again)
    assert mechanism != bitldp.GRR(3, epsilon=0.123)
    copy = pickle.loads(pickle.dumps(mechanism))
    assert copy == mechanism
    assert copy.guarantee == mechanism.guarantee
    assert json.loads(json.dumps(copy.fingerprint())) == mechanism.fingerprint()
    inputs = family.inputs(np.random.default_rng(0), 50)
    np.testing.assert_array_equal(reports_of(copy, inputs, rng=3), reports_of(mechanism, inputs, rng=3))
    assert repr(mechanism).startswith(type(mechanism).__name__ + "(")
    assert len(repr(mechanism)) < 250
    for name in (*mechanism.parameters, "guarantee", "anything"):
        with pytest.raises(AttributeError):
            setattr(mechanism, name, 1)


def test_face(family):
    mechanism = family.make()
    taken = inspect.signature(mechanism.randomize).parameters
    assert {"rng", "output", "threads", "first_chunk"} <= set(taken)
    for name in ("decode", "variance", "mean_variance", "worst_variance", "estimate_mean", "accumulator"):
        assert callable(getattr(mechanism, name))
    guarantee = mechanism.guarantee
    assert 0.0 < guarantee.bit <= guarantee.feature <= guarantee.record <= guarantee.claimed
    assert guarantee.holds


def test_packed_reports_take_their_bits(family):
    mechanism, inputs = family.make(), family.inputs(np.random.default_rng(0), 800)
    packed = pairs(mechanism.randomize(*inputs, rng=1, output="packed"))
    assert 8 * sum(each.size for each in packed) == 800 * mechanism.report_bits


def test_values_are_the_decoded_codes(family):
    if "values" not in family.outputs:
        return
    mechanism, inputs = family.make(), family.inputs(np.random.default_rng(0), 300)
    decoded = mechanism.decode(mechanism.randomize(*inputs, rng=1))
    values = mechanism.randomize(*inputs, rng=1, output="values")
    np.testing.assert_array_equal(values.reshape(decoded.shape), decoded.astype(values.dtype))


@pytest.mark.slow
def test_threads_change_nothing_and_keys_everything(family):
    mechanism, inputs = family.make(), family.inputs(np.random.default_rng(0), 9_001)
    one = reports_of(mechanism, inputs, rng=5, threads=1)
    np.testing.assert_array_equal(reports_of(mechanism, inputs, rng=5, threads=3), one)
    fresh = [reports_of(mechanism, inputs) for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()
    later = reports_of(mechanism, inputs, rng=5, first_chunk=100)
    assert (later != one).any()


def test_out_is_filled_or_zeros_where_a_value_is_refused(family):
    mechanism = family.make()
    if "out" not in inspect.signature(mechanism.randomize).parameters:
        return
    inputs = family.inputs(np.random.default_rng(0), 64)
    if isinstance(mechanism.randomize(*inputs), tuple):
        with pytest.raises(ValueError, match="out: not supported"):
            mechanism.randomize(*inputs, out=np.zeros((64, 2), np.uint8))
        return
    expected = mechanism.randomize(*inputs, rng=5)
    out = np.full_like(expected, 7)
    assert mechanism.randomize(*inputs, rng=5, out=out) is out
    np.testing.assert_array_equal(out, expected)
    (x,) = inputs
    bad = x.copy()
    bad.flat[-1] = np.nan if x.dtype.kind == "f" else 99
    out[...] = 7
    with pytest.raises(ValueError, match=r"^x"):
        mechanism.randomize(bad, rng=5, out=out)
    assert (out == 0).all()
    out[...] = 7
    with pytest.raises((ValueError, TypeError)):
        mechanism.randomize(x.astype(complex), rng=5, out=out)
    for unfit in (np.zeros((5, 17), x.dtype), np.zeros((5, 1, 2), x.dtype)):
        with pytest.raises(ValueError, match=r"^x"):
            mechanism.randomize(unfit, rng=5, out=out)
    assert (out == 7).all()  # nothing was begun
    fixed = np.zeros_like(expected)
    fixed.flags.writeable = False
    for unfit in (np.zeros(expected.shape, np.float16), np.zeros(3, expected.dtype), [1], "s", fixed):
        with pytest.raises((ValueError, TypeError), match=r"^out"):
            mechanism.randomize(x, rng=5, out=unfit)


def wrong(x: np.ndarray):
    """Yield inputs that no mechanism takes."""
    yield np.full(x.shape, "secret")
    yield np.full(x.shape, None, object)
    yield x.astype(complex)
    yield np.ma.masked_array(x, np.zeros(x.shape, bool))
    yield [[0.5], [0.5, 0.25]]
    yield None
    yield "secret"
    yield [10**400] * 3
    yield np.zeros((5, 17), x.dtype)
    yield np.zeros((5, 1, 2), x.dtype)
    if x.dtype.kind == "f":
        yield np.full(x.shape, np.nan)
        yield np.ones(x.shape, bool)
        yield x.astype(np.longdouble)
    else:
        yield x.astype(float)
        yield x + 77
        yield x - 77


def test_bad_inputs_are_refused_by_name(family):
    mechanism, (x,) = family.make(), family.inputs(np.random.default_rng(0), 20)
    name = next(iter(inspect.signature(mechanism.randomize).parameters))
    for bad in wrong(x):
        with pytest.raises((ValueError, TypeError), match=f"^{name}") as caught:
            mechanism.randomize(bad, rng=1)
        assert "secret" not in str(caught.value)
    for option, values in {
        "rng": ("x", True, -1, 1.5),
        "output": ("nope", 3, None),
        "threads": (0, True, "a", 1.5),
        "first_chunk": (-1, 1.5, 2**64),
    }.items():
        for value in values:
            with pytest.raises((ValueError, TypeError), match=f"^{option}"):
                mechanism.randomize(x, **{option: value})


def test_no_records(family):
    mechanism, (x,) = family.make(), family.inputs(np.random.default_rng(0), 3)
    for form in family.outputs:
        assert all(each.size == 0 for each in pairs(mechanism.randomize(x[:0], output=form)))


def test_bad_reports_are_refused(family):
    mechanism = family.make()
    if family.name == "EXP":
        return
    for bad in (
        np.zeros(3),
        np.full((2, 3), 10**9),
        np.full((2, 3), -1),
        None,
        "abc",
        np.ma.zeros((2, 3), int),
    ):
        with pytest.raises((ValueError, TypeError), match=r"^reports"):
            mechanism.decode(bad)


def test_accumulators_merge_and_travel(family):
    mechanism, inputs = family.make(), family.inputs(np.random.default_rng(0), 500)
    if family.name in ("EXP", "Compressed"):  # Compressed has that of its numbers
        return
    reports = mechanism.randomize(*inputs, rng=1)
    whole, first, second = (mechanism.accumulator() for _ in range(3))
    whole.update(reports)
    first.update(part(reports, slice(0, 200)))
    second.update(part(reports, slice(200, None)))
    first.merge(type(second).from_json(second.to_json(), mechanism))
    assert first.n == whole.n == 500
    for found, expected in zip(pairs(first.estimate()), pairs(whole.estimate()), strict=True):
        assert found.n == expected.n
        # of one attribute: some of them
        assert found.n == 500 or family.name in ("CategoricalRecord", "RecordCap")
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-9, atol=1e-9)


@pytest.mark.statistical
def test_letters_are_right_on_average_and_spread_as_said(family):
    """100,000 reports of one record; means within 5.5 standard errors (1e-7 over all), variances within 6."""
    if family.name in NOT_NUMBERS:
        return
    mechanism, (x,) = family.make(), family.inputs(np.random.default_rng(2), 1)
    letters = mechanism.decode(mechanism.randomize(np.repeat(x, 100_000, axis=0), rng=9))
    letters = letters.reshape(100_000, -1)
    low, high = getattr(mechanism, "_ends", (-1.0, 1.0))
    truth = np.clip(x.reshape(-1).astype(np.float64), low, high)
    deviations = letters - letters.mean(axis=0)
    variance, fourth = np.square(deviations).mean(axis=0), (deviations**4).mean(axis=0)
    said = np.asarray(mechanism.variance(truth))
    assert (np.abs(letters.mean(axis=0) - truth) < 5.5 * np.sqrt(said / 100_000) + 1e-12).all()
    assert (np.abs(variance - said) < 6.0 * np.sqrt((fourth - variance**2) / 100_000) + 1e-6).all()
    assert mechanism.mean_variance() <= mechanism.worst_variance() * (1.0 + 1e-12)


def test_law_and_letters_give_the_number_back(family):
    """P times the letters is the grid, and the exact epsilon is the largest log-ratio in a column."""
    mechanism = family.make()
    if family.name in (*NOT_NUMBERS, "CLDP", "SampledSigns") or mechanism.probabilities().ndim != 2:
        return
    law = mechanism.probabilities()
    np.testing.assert_allclose(law.sum(axis=1), 1.0, atol=1e-12)
    scale = np.abs(mechanism.letters).max()
    np.testing.assert_allclose(law @ mechanism.letters, mechanism.points, atol=2e-9 * scale)
    records = (
        "Duchi-cube",
        "HypercubePrivUnit",
        "JointWindow",
        "BallWindow",
    )  # of which a number tells less than epsilon
    if mechanism.guarantee.delta or family.name.startswith(records):
        return
    logs = np.log(law)
    worst = float((logs.max(axis=0) - logs.min(axis=0)).max())
    assert worst == pytest.approx(mechanism.guarantee.feature, rel=1e-12, abs=1e-12)


def test_every_release_has_an_account(family):
    mechanism = family.make()
    for method in ("basic", "renyi", "pld"):
        if method != "basic":
            pytest.importorskip("dp_accounting")
        found = account([(mechanism, 3)], delta=1e-3, method=method)
        plain = account([(mechanism.guarantee, 3)], delta=1e-3, method=method)
        assert 0.0 < found.epsilon <= plain.epsilon * (1.0 + 1e-9)


VECTORS = [
    Case("CLDP", lambda: CLDP(6, epsilon=2.0), lambda *_: (), ()),
    Case("SignSGD", lambda: SignSGD(4, epsilon=4.0), lambda *_: (), ()),
    Case("signs", lambda: bitldp.SampledSigns(6, epsilon=3.0, k=3), lambda *_: (), ()),
    Case("one sign", lambda: bitldp.SampledSigns(1, epsilon=3.0), lambda *_: (), ()),
    Case("weights", lambda: bitldp.LDPFLDuchi(epsilon=2.0, center=1.0), lambda *_: (), ()),
    Case(
        "none",
        lambda: bitldp.TwoStage(bitldp.PE(6, k=2, epsilon=2.0), bitldp.Duchi(epsilon=2.0)),
        lambda *_: (),
        (),
    ),
    Case("projected", lambda: Compressed(6, compressed=3, epsilon=2.0, public_seed=1), lambda *_: (), ()),
]


@pytest.mark.parametrize("case", VECTORS, ids=[case.name for case in VECTORS])
def test_an_audit_needs_no_pair(case):
    pytest.importorskip("scipy")
    result = audit(case.make(), n=4_000, rng=1)
    assert result.passed


@pytest.mark.slow
def test_conditional_dither_is_audited_and_bounded_by_record():
    """There, one coordinate also decides what is accepted of the others."""
    pytest.importorskip("scipy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism = VectorMVU(4, epsilon=3.0, input_bits=2, output_bits=1, dither="conditional")
    assert audit(mechanism, n=4_000, rng=1).passed
    assert mechanism.guarantee.feature == mechanism.guarantee.record
    assert mechanism.guarantee.feature > mechanism.channel.epsilon


def test_huge_records_are_scaled_and_not_zeroed():
    """Their norm is beyond the doubles; nothing warns, and the record keeps its direction."""
    mechanism = CLDP(2, epsilon=3.0)
    huge = np.full((1, 2), 1.5e308)
    np.testing.assert_allclose(mechanism._inside(huge), [[0.5, 0.5]])
    np.testing.assert_array_equal(mechanism._inside(np.zeros((1, 2))), [[0.0, 0.0]])
    mechanism.randomize(huge, rng=1)


def test_variances_of_indicators():
    """Where letters are indicators, the mean and the worst are those of `variance` over all inputs."""
    for mechanism in (bitldp.Exponential(8, epsilon=2.0), bitldp.LSRR(8, epsilon=2.0)):
        table = mechanism.variance(np.arange(8))
        assert mechanism.mean_variance() == pytest.approx(table.mean())
        assert mechanism.worst_variance() == table.max()
    mechanism = bitldp.PS(6, k=2, epsilon=2.0)
    table = mechanism.variance(np.array([[0.1, -0.2, 0.3, 0.4, 0.5, 0.6]]))
    assert mechanism.mean_variance() == pytest.approx(table.mean())
    assert mechanism.worst_variance() == pytest.approx(table.max())
    label = bitldp.LabelLaplace(4, epsilon=2.0)
    assert label.mean_variance() == label.worst_variance() == label.variance([0])[0, 0]
    with pytest.raises(ValueError, match="LabelLaplace: no unbiased decode exists at epsilon 0"):
        bitldp.LabelLaplace(4, epsilon=0.0).worst_variance()


def test_the_coordinates_tell_nothing_of_the_codes():
    """The draw of coordinates and the noise take different keys: codes are as likely wherever they are.

    200,000 reports of one number that is -1 everywhere; 20 coordinates, each within 5 standard errors.
    """
    mechanism = bitldp.Duchi(epsilon=1.0, features=20, spend="sample", k=1)
    reports = mechanism.randomize(np.full((200_000, 20), -1.0), rng=11)
    chance = mechanism.probabilities()[0, 1]
    for place in range(20):
        here = reports.codes[reports.indices == place]
        assert abs(here.mean() - chance) < 5.0 * np.sqrt(chance * (1.0 - chance) / len(here))
    order = reports.indices[:, 0]
    assert abs(np.corrcoef(order[:-1], reports.codes[1:, 0])[0, 1]) < 5.0 / np.sqrt(200_000)
