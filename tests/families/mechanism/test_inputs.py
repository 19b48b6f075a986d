"""Bad inputs are refused by name and place, and nothing is handed out; odd but good ones are answered."""

from __future__ import annotations

import bitldp
import numpy as np
import pytest
from bitldp._core import Bits
from support.cases import CASES, reports_of

FRR = bitldp.FRR(3, epsilon=5.0)
GRR = bitldp.GRR(5, epsilon=1.0)
BRR = bitldp.BRR(5, epsilon=1.0, interval=(0.0, 1.0))
ALL = [FRR, bitldp.MOUE(3, epsilon=5.0), bitldp.UER(3, epsilon=5.0, alpha=1.0)]
SECRET = 123.4375


def refused(error, match, mechanism, *inputs, **options):
    """Assert that a call is refused, without a private value in the message; return the message."""
    with pytest.raises(error, match=match) as caught:
        mechanism.randomize(*inputs, **options)
    assert "123.4" not in str(caught.value)
    assert "7777" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(mechanism, dtype, bad):
    x = np.full((4000, 3), SECRET, dtype)
    x[3999, 1] = bad
    out = np.full((4000, 3), 9, np.uint16)
    message = refused(ValueError, r"^x", mechanism, x, out=out)
    assert "11998" in message or "3999" in message
    assert not out.any()  # neither a report nor what stood there


def test_infinities_saturate_on_request():
    x = np.array([[np.inf, -np.inf, 1.0]])
    far = np.array([[1e9, -1e9, 1.0]])
    mechanism = bitldp.FRR(3, epsilon=5.0, infinities="saturate")
    np.testing.assert_array_equal(mechanism.randomize(x, rng=1), mechanism.randomize(far, rng=1))
    refused(ValueError, "x", mechanism, np.array([[np.nan, 0.0, 0.0]]))


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("shape", [(3, 4), (4,), (2, 3, 3), (), (5, 0), (0,)])
def test_wrong_shapes_of_records(mechanism, shape):
    out = np.full((3, 4), 9, np.uint16)
    refused(ValueError, "x", mechanism, np.zeros(shape), out=out)
    assert (out == 9).all()


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((2, 3), bool),
        np.zeros((2, 3), np.longdouble),
        np.zeros((2, 3), complex),
        [["a", "b", "c"]],
        None,
        "abc",
    ],
)
def test_wrong_types_of_records(bad):
    refused((TypeError, ValueError), "x", FRR, bad)


def test_lists():
    x = np.array([[1.5, -2.25, 0.5]])
    for same in (x.tolist(), x.astype(np.float32).tolist()):
        np.testing.assert_array_equal(FRR.randomize(same, rng=1), FRR.randomize(x, rng=1))


@pytest.mark.parametrize(
    "mechanism",
    [
        GRR,
        bitldp.LabelRR(5, epsilon=1.0),
        bitldp.SUE(5, epsilon=1.0),
        bitldp.OUE(5, epsilon=1.0),
        bitldp.BRR(5, epsilon=1.0),
        bitldp.GRR(5, epsilon=0.0),
    ],
)
@pytest.mark.parametrize("bad", [-1, 5, 7777])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.uint16, np.uint64])
def test_labels_outside(mechanism, bad, dtype):
    if not np.iinfo(dtype).min <= bad <= np.iinfo(dtype).max:
        bad = np.iinfo(dtype).max
    x = np.zeros(3000, dtype)
    x[2998] = bad
    message = refused(ValueError, r"^x", mechanism, x)
    assert "2998" in message
    shape = (3000, 5) if isinstance(mechanism, (bitldp.SUE, bitldp.OUE)) else (3000,)
    out = np.full(shape, 9, np.uint8)
    refused(ValueError, r"^x", mechanism, x, out=out)
    assert not out.any()  # neither a report nor what stood there


@pytest.mark.parametrize("mechanism", [GRR, bitldp.OUE(5, epsilon=1.0), bitldp.BRR(5, epsilon=1.0)])
@pytest.mark.parametrize("bad", [[0.0, 1.0], ["a"], [None], [1j]])
def test_wrong_types_of_labels(mechanism, bad):
    refused((TypeError, ValueError), "x", mechanism, np.array(bad))


@pytest.mark.parametrize("shape", [(2, 2), (1, 1, 1), (2, 0)])
def test_wrong_shapes_of_labels(shape):
    for mechanism in (GRR, bitldp.OUE(5, epsilon=1.0), bitldp.BRR(5, epsilon=1.0)):
        refused(ValueError, "x", mechanism, np.zeros(shape, np.int64))
    refused(
        ValueError,
        r"x: shape must be \(n, 3\) or \(3,\)",
        bitldp.GRR(5, epsilon=1.0, features=3),
        np.zeros(4, int),
    )


def test_real_values_of_an_interval():
    refused(ValueError, "x", BRR, np.array([0.5, np.nan]))
    refused((ValueError, TypeError), "x", bitldp.BRR(5, epsilon=1.0), np.array([0.5]))
    assert BRR.randomize(np.array([-1e9, 1e9])).shape == (2,)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_no_records(case):
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), 0)
    for form in case.outputs:
        reports = mechanism.randomize(*inputs, output=form)
        parts = reports if isinstance(reports, tuple) else (reports,)
        assert all(part.size == 0 for part in parts)
    if "codes" in case.outputs:
        reports = mechanism.randomize(*inputs)
        codes = reports[0] if isinstance(reports, tuple) else reports
        assert codes.shape[: np.ndim(inputs[0])] == np.shape(inputs[0])


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_arrays_of_any_layout(case):
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), 400)
    expected = reports_of(mechanism, inputs, rng=1)
    strided = tuple(np.repeat(each, 2, axis=0)[::2] for each in inputs)
    reverse = tuple(np.ascontiguousarray(each[::-1])[::-1] for each in inputs)
    fortran = tuple(np.asfortranarray(each) for each in inputs)
    readonly = tuple(each.copy() for each in inputs)
    for each in readonly:
        each.flags.writeable = False
    for same in (strided, reverse, fortran, readonly, tuple(each.tolist() for each in inputs)):
        np.testing.assert_array_equal(reports_of(mechanism, same, rng=1), expected)


def test_foreign_byte_order_is_refused():
    x = np.zeros((2, 3))
    refused(TypeError, "^x: dtype", FRR, x.astype(x.dtype.newbyteorder()))
    labels = np.zeros(2, np.int64)
    refused(TypeError, "^x: dtype", GRR, labels.astype(labels.dtype.newbyteorder()))


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
)
def test_labels_of_any_integer_type(dtype):
    x = np.arange(50) % 5
    np.testing.assert_array_equal(GRR.randomize(x.astype(dtype), rng=1), GRR.randomize(x, rng=1))
    oue = bitldp.OUE(5, epsilon=1.0)
    np.testing.assert_array_equal(oue.randomize(x.astype(dtype), rng=1), oue.randomize(x, rng=1))


def test_answers_as_booleans():
    answers = np.array([True, False, True, True])
    mechanism = bitldp.WarnerRR(epsilon=1.0)
    np.testing.assert_array_equal(
        mechanism.randomize(answers, rng=1), mechanism.randomize(answers.astype(int), rng=1)
    )


def test_inputs_are_not_changed():
    x = np.random.default_rng(0).normal(size=(100, 3))
    before = x.copy()
    FRR.randomize(x, rng=1)
    FRR.randomize(x, rng=1, output="values")
    np.testing.assert_array_equal(x, before)


def readonly_out():
    out = np.zeros((4, 3), np.uint16)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    "out",
    [
        readonly_out(),
        np.zeros((3, 3), np.uint16),
        np.zeros((4, 4), np.uint16),
        np.zeros(12, np.uint16),
        np.zeros((4, 3), np.uint8),
        np.zeros((4, 3), np.int16),
        np.zeros((4, 3), np.float32),
        np.zeros((4, 6), np.uint16)[:, ::2],
        np.zeros((3, 4), np.uint16).T,
        [[0, 0, 0]] * 4,
        "out",
    ],
    ids=[
        "readonly",
        "short",
        "wide",
        "flat",
        "uint8",
        "int16",
        "float32",
        "strided",
        "fortran",
        "list",
        "str",
    ],
)
def test_unfit_out(out):
    before = np.array(out)
    refused((ValueError, TypeError), "out", FRR, np.full((4, 3), SECRET), out=out)
    np.testing.assert_array_equal(np.array(out), before)


def test_overlapping_out():
    x = np.full((4, 3), SECRET, np.float32)
    refused(ValueError, "out", FRR, x, output="values", out=x)
    assert (x == SECRET).all()
    shared = np.zeros(15, np.float64)
    refused(ValueError, "out", FRR, shared[:12].reshape(4, 3), output="values", out=shared[3:].reshape(4, 3))
    codes = np.zeros(8, np.uint8)
    refused(ValueError, "out", GRR, codes, out=codes)


@pytest.mark.parametrize("output", ["code", "", None, 1])
def test_output_is_checked(output):
    for mechanism, x in (
        (FRR, np.zeros((1, 3))),
        (GRR, [0]),
        (bitldp.OUE(3, epsilon=1.0), [0]),
        (BRR, [0.5]),
    ):
        refused((ValueError, TypeError), "output", mechanism, x, output=output)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", 2**80])
def test_threads_are_checked(threads):
    for mechanism, x in ((FRR, np.zeros((1, 3))), (GRR, [0]), (bitldp.OUE(3, epsilon=1.0), [0])):
        refused((ValueError, TypeError), "threads", mechanism, x, threads=threads)


def test_reports_are_checked():
    for call in (FRR.unbias, FRR.estimate_mean):
        with pytest.raises(
            ValueError, match=r"reports: the integer at index \(1, 2\) is outside \[0, 1024\)"
        ):
            call([[0, 1, 2], [3, 4, 1024]])
        with pytest.raises(ValueError, match=r"reports: shape must be \(n, 3\) or \(3,\)"):
            call([[0, 1]])
        with pytest.raises(TypeError, match="reports: must be an array of integers"):
            call([[0.0, 1.0, 2.0]])
    with pytest.raises((ValueError, TypeError), match=r"codes|reports|x"):
        FRR.decode(np.array([[0, 1, 1024]], np.uint16))
    for call in (GRR.decode, GRR.estimate_frequencies, bitldp.BRR(5, epsilon=1.0).decode):
        with pytest.raises(ValueError, match=r"reports: the integer at index \(1,\) is outside \[0, 5\)"):
            call([0, 5])
        with pytest.raises(TypeError, match="reports: must be an array of integers"):
            call([0.5])
    with pytest.raises(ValueError, match=r"reports: shape must be \(n, 5\)"):
        bitldp.OUE(5, epsilon=1.0).estimate_frequencies([0, 1])
    with pytest.raises(ValueError, match="outside"):
        bitldp.OUE(3, epsilon=1.0).estimate_frequencies([[0, 1, 2]])


def test_bitrand_matches_records_and_labels():
    both = bitldp.BitRand(3, categories=5, epsilon_x=1.0, epsilon_y=1.0)
    x = np.full((4, 3), SECRET)
    refused(ValueError, r"y: shape must be \(4,\)", both, x, [0, 1, 2])
    refused(ValueError, "y: shape", both, x, [[0], [1], [2], [3]])
    refused(ValueError, r"2", both, x, [0, 1, 7777, 3])
    out = np.full((4, 3), 9, np.uint16)
    refused(ValueError, "x", both, np.full((4, 3), np.nan), [0, 1, 2, 3], out=out)
    assert not out.any()  # neither a report nor what stood there


def test_plain_code_words_through_the_bare_channel():
    channel = Bits([[0.75] * 4], [[0.25] * 4], 2)
    codes = np.array([[0, 15], [7, 8]], np.uint8)
    reports = channel.randomize(codes, None, None, "codes", None, None, 0)
    assert reports.shape == codes.shape
    assert reports.max() < 16
    with pytest.raises(ValueError, match="x"):
        channel.randomize(np.array([[0, 16]], np.uint8), None, None, "codes", None, None, 0)
