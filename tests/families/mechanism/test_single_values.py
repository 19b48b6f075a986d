"""One value, integers and half floats: what a mechanism takes as it comes, and what it counts as clipped."""

from __future__ import annotations

import decimal

import bitldp
import numpy as np
import pytest
from bitldp.base.keys import keys
from bitldp.compression import CLDP
from bitldp.selection import Compressed
from support.cases import CASES, FAMILIES

ALL = {case.name: case for case in [*CASES, *FAMILIES]}
NUMBERS = [bitldp.Duchi, bitldp.Piecewise, bitldp.Hybrid, bitldp.ThreeOutputs, bitldp.Laplace]
ONE_NUMBER = [
    *(kind(epsilon=2.0) for kind in NUMBERS),
    bitldp.Gaussian(epsilon=2.0, delta=1e-6),
    bitldp.BitBudgets(epsilon=4.0),
    bitldp.FRR(1, epsilon=9.0),
    bitldp.BRR(21, epsilon=1.0, interval=(-1.0, 1.0)),
    bitldp.Exponential(9, epsilon=1.0, interval=(-1.0, 1.0)),
    bitldp.HypercubePrivUnit(1, epsilon=1.0),
    bitldp.MVU(epsilon=2.0, interval=(-1.0, 1.0)),
    bitldp.Duchi(epsilon=2.0, spend="sample"),
    bitldp.SampledSigns(1, epsilon=1.0),
    CLDP(1, epsilon=1.0),
]
ONE_CATEGORY = [
    bitldp.GRR(5, epsilon=1.0),
    bitldp.GRR(5, epsilon=0.0),
    bitldp.LabelRR(5, epsilon=1.0),
    bitldp.OUE(5, epsilon=1.0),
    bitldp.SUE(5, epsilon=1.0),
    bitldp.WarnerRR(epsilon=1.0),
    bitldp.LabelLaplace(5, epsilon=1.0),
    bitldp.BRR(5, epsilon=1.0),
    bitldp.Exponential(5, epsilon=1.0),
    bitldp.BRR(4, epsilon=1.0, regions=[0, 0, 1, 1]),
]


def parts_of(reports):
    return reports if isinstance(reports, tuple) else (reports,)


def shown(value):
    return repr(value)[:24]


@pytest.mark.parametrize("mechanism", [*ONE_NUMBER, *ONE_CATEGORY], ids=shown)
def test_a_single_value(mechanism):
    """Its report is that of an array of one, without the axis of the records; whatever it comes as."""
    one = 1 if mechanism in ONE_CATEGORY else 0.25
    for output in mechanism.outputs:
        if output == "values" and mechanism.guarantee.record == 0.0:
            continue
        expected = parts_of(mechanism.randomize(np.array([one]), rng=3, output=output))
        for same in (one, np.array(one), np.asarray([one])[0]):
            found = parts_of(mechanism.randomize(same, rng=3, output=output))
            for each, whole in zip(found, expected, strict=True):
                np.testing.assert_array_equal(np.squeeze(each), np.squeeze(whole))
    reports = mechanism.randomize(one)
    if isinstance(reports, np.generic):
        assert mechanism.report_bits <= 8 * reports.itemsize
    else:
        assert isinstance(mechanism, (bitldp.OUE, bitldp.SUE, bitldp.LabelLaplace, bitldp.SampledSigns)) or (
            mechanism.k is not None
        )
    with pytest.raises(ValueError, match=r"^out: not supported"):
        mechanism.randomize(one, out=np.empty((), np.uint8))


@pytest.mark.parametrize("mechanism", [*ONE_NUMBER, *ONE_CATEGORY], ids=shown)
def test_the_report_of_a_single_value_is_one_record(mechanism):
    """It decodes, and is estimated and accumulated from."""
    one = 1 if mechanism in ONE_CATEGORY else 0.25
    report = mechanism.randomize(one, rng=1)
    whole = mechanism.randomize(np.array([one]), rng=1)
    if mechanism.guarantee.record > 0.0:
        np.testing.assert_array_equal(
            np.squeeze(mechanism.decode(whole)), np.squeeze(mechanism.decode(report))
        )
    try:
        accumulator, other = mechanism.accumulator(), mechanism.accumulator()
    except ValueError:
        return
    accumulator.update(report)
    other.update(whole)
    assert accumulator.n == other.n == 1
    np.testing.assert_array_equal(accumulator.estimate().value, other.estimate().value)


def test_a_scalar_is_hashable_and_an_index():
    report = bitldp.GRR(4, epsilon=1.0).randomize(3)
    assert ["a", "b", "c", "d"][report] in {"a", "b", "c", "d"}
    assert {report: 1}[report] == 1


def test_a_record_of_several_is_no_single_value():
    for mechanism in (
        bitldp.Duchi(epsilon=1.0, features=3),
        bitldp.FRR(3, epsilon=9.0),
        bitldp.GRR(4, epsilon=1.0, features=3),
    ):
        with pytest.raises(ValueError, match=r"^x: "):
            mechanism.randomize(1)


@pytest.mark.parametrize(
    "name",
    [name for name, case in ALL.items() if case.inputs(np.random.default_rng(0), 1)[0].dtype.kind == "f"],
)
def test_integers_and_half_floats(name):
    """They are the floats that hold them: same key, same reports; in arrays and in lists."""
    mechanism, inputs = ALL[name].make(), ALL[name].inputs(np.random.default_rng(0), 50)
    rest = inputs[1:]
    for dtype in (np.int8, np.int64, np.uint16, np.float16):
        x = np.abs(np.round(4.0 * inputs[0])).astype(dtype)
        floats = x.astype(np.float32 if dtype is np.float16 else np.float64)
        expected = mechanism.randomize(floats, *rest, rng=5)
        for same in (x, x[::1].copy(order="F"), *([x.tolist()] if x.dtype.kind in "iu" else [])):
            found = mechanism.randomize(same, *rest, rng=5)
            for each, whole in zip(parts_of(found), parts_of(expected), strict=True):
                np.testing.assert_array_equal(each, whole)


@pytest.mark.parametrize("mechanism", ONE_NUMBER, ids=shown)
def test_what_is_no_number_is_refused(mechanism):
    for bad in (
        [decimal.Decimal("0.734375")],
        decimal.Decimal("0.734375"),
        [True, False],
        True,
        "0.734375",
        ["0.734375"],
        None,
        {0.734375},
        np.array(["2026-01-01"], "M8[D]"),
        [10**400],
        1j,
    ):
        for options in ({}, {"rng": 1}):
            with pytest.raises((TypeError, ValueError), match=r"^x: ") as caught:
                mechanism.randomize(bad, **options)
            assert "734375" not in str(caught.value)


@pytest.mark.parametrize("mechanism", ONE_CATEGORY, ids=shown)
def test_what_is_no_category_is_refused(mechanism):
    for bad in (0.0, [0.0, 1.0], [None], "Oslo", [decimal.Decimal(1)], -1, 7, [7], {1}):
        for options in ({}, {"rng": 1}):
            with pytest.raises((TypeError, ValueError), match=r"^x: ") as caught:
                mechanism.randomize(bad, **options)
            assert "Oslo" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in ALL if name != "Compressed"])  # which is below
def test_what_is_clipped_is_counted(name):
    """`outside` is there for every mechanism, and counts what the release moves."""
    mechanism, (x, *_) = ALL[name].make(), ALL[name].inputs(np.random.default_rng(0), 200)
    if isinstance(mechanism, (bitldp.EXP, bitldp.PS, bitldp.PE)) or x.dtype.kind != "f":
        assert mechanism.outside(x) == 0  # scores are ranked, categories refused
        return
    if mechanism._takes == "ball":
        far = 10.0 * x
        norms = np.linalg.norm(far.astype(np.float64), getattr(mechanism, "_power", 1), axis=1)
        expected = np.count_nonzero(norms > mechanism.radius)
    else:
        low, high = mechanism._span if mechanism._span is not None else mechanism.features_mechanism._span
        far = np.clip(x, low, high) + np.where(np.arange(len(x)) % 4, 0.0, 8.0 * (high - low)).reshape(
            -1, *[1] * (x.ndim - 1)
        )
        expected = np.count_nonzero((far < low) | (far > high))
    assert mechanism.outside(far) == expected > 0
    assert mechanism.outside(far.tolist()) == expected
    assert mechanism.outside(np.zeros_like(x)) == 0
    with pytest.raises(ValueError, match=r"^x"):
        mechanism.outside(np.full_like(x, np.nan))
    with pytest.raises(TypeError, match=r"^x"):
        mechanism.outside(np.full(x.shape, "a"))


def test_projected_numbers_are_counted():
    mechanism = Compressed(6, compressed=3, epsilon=2.0, public_seed=1)
    x = np.random.default_rng(0).normal(0.0, 2.0, (100, 6))
    expected = np.count_nonzero(np.abs(x @ mechanism.projection) > 1.0)
    assert mechanism.outside(x) == expected > 0


def test_integers_and_single_values_are_counted_too():
    mechanism = bitldp.Duchi(epsilon=1.0, interval=(0.0, 10.0))
    assert mechanism.outside([3, 11, -2, 10]) == 2
    assert mechanism.outside(11) == 1
    assert mechanism.outside(np.float16(5)) == 0


@pytest.mark.parametrize("name", [name for name, case in ALL.items() if case.make()._direct is not None])
def test_the_short_way_is_the_long_one(name):
    """With a key in place of the fresh one, the short way's call gives the reports of `rng`."""
    mechanism, (x, *_) = ALL[name].make(), ALL[name].inputs(np.random.default_rng(0), 300)
    core, rest, form, flat, last = mechanism._direct
    place = rest.index(form) - 1  # the key is before the form
    assert rest[place] in (None, (None, None))
    given = keys(11, mechanism._streams)
    keyed = (*rest[:place], given[0] if rest[place] is None else tuple(given), *rest[place + 1 :])
    np.testing.assert_array_equal(core(x, *keyed), mechanism.randomize(x, rng=11, output=form))
    assert (flat, last) == (int(mechanism.columns == 1), (mechanism.columns,))
    one = x[:1].reshape(-1) if mechanism.columns == 1 else x[0]
    assert mechanism.randomize(one).shape[:1] == one.shape
    for bad in (np.zeros((2, 2, 2)), np.zeros((2, mechanism.columns + 1)), np.zeros(())):
        taken = bad.astype(x.dtype)
        if mechanism.columns == 1 and not bad.ndim:
            assert np.ndim(mechanism.randomize(taken)) <= 1
            continue
        with pytest.raises(ValueError, match=r"^x: "):
            mechanism.randomize(taken)


def test_who_takes_the_short_way():
    """Those that a client calls for one value do, but where something is checked or converted first."""
    for mechanism in (
        bitldp.GRR(4, epsilon=1.0),
        bitldp.Duchi(epsilon=1.0),
        bitldp.Piecewise(epsilon=1.0),
        bitldp.BRR(9, epsilon=1.0),
    ):
        assert mechanism._direct is not None
    for mechanism in (
        bitldp.GRR(["a", "b"], epsilon=1.0),  # labels are looked up
        bitldp.GRR(4, epsilon=0.0),  # nothing is said of the input
        bitldp.Duchi(epsilon=1.0, clip=False),  # what is outside is refused
        bitldp.Duchi(epsilon=1.0, features=3, spend="sample"),
        bitldp.Duchi(epsilon=1.0, features=3, spend="cube"),
        bitldp.BRR(4, epsilon=1.0, regions=[0, 0, 1, 1]),
        bitldp.LabelLaplace(4, epsilon=1.0),
    ):
        assert mechanism._direct is None
