"""The wire format: what is written is read, and nothing else is."""

from __future__ import annotations

import dataclasses
import pickle
import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.client.message import MAGIC, VERSION, Field, Header, parse, read, write
from bitldp.federated import Layout, UpdateCodec, WireError
from bitldp.federated.wire.codec import ReportForm
from hypothesis import given, settings
from hypothesis import strategies as st

ARRAYS = {"w": np.zeros((4, 2), np.float32), "b": np.zeros(4)}
LAYOUT = Layout.of(ARRAYS)
SIZE = LAYOUT.size

MECHANISMS = {
    "Duchi": lambda d: bitldp.Duchi(epsilon=6.0, features=d),
    "Duchi-sample": lambda d: bitldp.Duchi(epsilon=6.0, features=d, spend="sample", k=5),
    "Duchi-scalar": bitldp.Duchi(epsilon=1.0),
    "LDPFLDuchi": lambda d: bitldp.LDPFLDuchi(epsilon=6.0, features=d, center=0.2, radius=3.0),
    "Piecewise": lambda d: bitldp.Piecewise(epsilon=30.0, features=d),
    "PiecewiseSub": lambda d: bitldp.PiecewiseSub(epsilon=30.0, features=d),
    "Hybrid": bitldp.Hybrid(epsilon=9.0, features=3),
    "ThreeOutputs": bitldp.ThreeOutputs(epsilon=9.0, features=4, interval=(2.0, 3.0)),
    "FRR": bitldp.FRR(6, epsilon=40.0),
    "MOUE": bitldp.MOUE(6, epsilon=40.0),
    "BRR": bitldp.BRR(9, epsilon=4.0, m=1, interval=(0.0, 1.0), rounding="dither"),
}


def codec(name: str, **options) -> UpdateCodec:
    return UpdateCodec(MECHANISMS[name], **{"clip": 1.0, **options})


def report(name: str = "Duchi", seed: int = 1, **options) -> bytes:
    plan = codec(name, **options).plan(LAYOUT)
    return plan.perturb(np.linspace(-0.2, 0.2, SIZE), rng=seed).tobytes()


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_written_is_what_the_mechanism_released(name):
    plan = codec(name).plan(LAYOUT)
    update = np.linspace(-0.3, 0.3, SIZE)
    data = plan.perturb(update, rng=3)
    assert data.dtype == np.uint8
    assert len(data) == plan.header.size
    assert plan.header.size - plan.header.payload < 128
    low, high = plan.header.low, plan.header.high
    table = np.clip(low + (high - low) * (0.5 + 0.5 * update), low, high).reshape(plan.records, -1)
    reports = plan.mechanism.randomize(table, rng=3)
    for sent, made in zip(
        read(data, plan.header), reports if isinstance(reports, tuple) else (reports,), strict=True
    ):
        np.testing.assert_array_equal(sent, made)
    letters = plan.letters(reports).ravel()
    expected = (letters - (low + (high - low) / 2)) * 2 / (high - low)
    np.testing.assert_allclose(plan.decode(data), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(plan.decode(data), plan.decode(data.tobytes()))


@pytest.mark.statistical
@pytest.mark.parametrize("name", MECHANISMS)
def test_letters_are_right_on_average(name):
    """N = 3000 updates; each coordinate within 5 standard errors (alpha below 1e-4 in all, seeded)."""
    plan = codec(name).plan(LAYOUT)
    update = np.linspace(-0.25, 0.3, SIZE)
    found = np.stack([plan.decode(plan.perturb(update, rng=seed)) for seed in range(3000)])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    step = 2.0 / 1023 if name in ("FRR", "MOUE") else 0.0  # their codec truncates toward zero
    assert np.all(np.abs(found.mean(axis=0) - update) < 5.0 * error + 2 * step + 1e-12)


def test_one_bit_a_coordinate():
    size = 10**5
    layout = Layout.of({"w": np.zeros(size, np.float32)})
    plan = UpdateCodec(lambda d: bitldp.Duchi(epsilon=1.0, features=d), clip=1.0).plan(layout)
    data = plan.perturb(np.zeros(size), rng=0)
    assert 4 * size / len(data) >= 31.0
    assert plan.header.payload == size // 8


@pytest.mark.parametrize("name", ["Duchi", "Duchi-sample", "PiecewiseSub"])
def test_every_truncation_is_refused(name):
    data, plan = report(name), codec(name).plan(LAYOUT)
    for length in range(len(data)):
        with pytest.raises(WireError) as error:
            plan.decode(data[:length])
        assert error.value.reason in ("truncated", "garbage")
    with pytest.raises(WireError, match="1 bytes too many") as error:
        plan.decode(data + b"\0")
    assert error.value.reason == "trailing"


@pytest.mark.parametrize("name", ["Duchi", "Duchi-sample"])
def test_every_flipped_bit_is_refused(name):
    data, plan = report(name), codec(name).plan(LAYOUT)
    for place in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(WireError):
            plan.decode(bytes(damaged))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 40))
def test_garbage_is_refused(noise, kept):
    plan = codec("Duchi").plan(LAYOUT)
    data = report()[:kept] + noise
    if data != report():
        with pytest.raises(WireError):
            plan.decode(data)


def forged(data: bytes, start: int, new: bytes) -> bytes:
    """Replace bytes of a report and give it a checksum that fits."""
    plan = codec("Duchi").plan(LAYOUT)
    head = len(plan.header.encoded())
    changed = data[:start] + new + data[start + len(new) :]
    return (
        changed[:head]
        + struct.pack("<I", zlib.crc32(changed[:head] + changed[head + 4 :]))
        + changed[head + 4 :]
    )


@pytest.mark.parametrize("place", range(0, 104, 3))
def test_no_length_is_trusted(place):
    plan = codec("Duchi").plan(LAYOUT)
    with pytest.raises(WireError):
        plan.decode(forged(report(), place, b"\xff\xff\xff\xff"))


@pytest.mark.parametrize(
    ("made", "reason", "sentence"),
    [
        (lambda: b"", "garbage", "not a report of bitldp"),
        (lambda: b"\x93NUMPY" + bytes(300), "garbage", "not a report of bitldp"),
        (lambda: forged(report(), 4, b"\x03"), "version", "wire version 3, this side reads 1 to 2"),
        (lambda: report("Piecewise"), "mechanism", "of mechanism Piecewise, expected Duchi"),
        (lambda: report("Duchi-sample"), "mechanism", "of a Duchi with other parameters"),
        (lambda: report(clip=2.0), "settings", "clip is 2.0, expected 1.0"),
        (lambda: report(norm="l1"), "settings", "norm is l1, expected l2"),
        (lambda: report(update="replace"), "settings", "update is replace, expected difference"),
        (lambda: report(interval=(-0.5, 0.5)), "settings", "low is -0.5, expected -1.0"),
    ],
)
def test_what_differs_is_said(made, reason, sentence):
    with pytest.raises(WireError, match=sentence) as error:
        codec("Duchi").plan(LAYOUT).decode(made())
    assert error.value.reason == reason
    again = pickle.loads(pickle.dumps(error.value))
    assert (again.reason, str(again)) == (reason, str(error.value))


def test_other_arrays_are_another_layout():
    other = Layout.of({"w": np.zeros((2, 4), np.float32), "b": np.zeros(4)})
    with pytest.raises(WireError, match="names, shapes or dtypes differ"):
        codec("Duchi").plan(other).decode(report())


@pytest.mark.parametrize("wrong", [None, "text", np.zeros(4), np.zeros((2, 2), np.uint8)])
def test_only_bytes_are_read(wrong):
    with pytest.raises(WireError, match="must be bytes"):
        codec("Duchi").plan(LAYOUT).decode(wrong)


@pytest.mark.parametrize("name", ["PiecewiseSub", "Duchi-sample", "ThreeOutputs"])
def test_a_code_outside_the_alphabet_is_refused(name):
    plan = codec(name).plan(LAYOUT)
    codes = [np.full((plan.records, part.columns), 2**part.bits - 1, np.uint8) for part in plan.header.fields]
    with pytest.raises(WireError) as error:
        plan.decode(write(plan.header, codes))
    assert error.value.reason == "range"


def test_unused_bits_are_zero():
    header = dataclasses.replace(codec("Duchi").plan(LAYOUT).header, fields=(Field(5, 1),), records=1)
    data = write(header, [np.zeros(5, np.uint8)]).tobytes()
    assert read(data, header)[0].shape == (1, 5)
    for bit in range(8):
        body = np.zeros(8, np.uint8)
        body[bit] = 1
        last = bitldp.pack(body, 1).tobytes()
        head = header.encoded()
        sent = head + struct.pack("<I", zlib.crc32(head + last)) + last
        if bit < 5:
            assert read(sent, header)[0].sum() == 1
        else:
            with pytest.raises(WireError, match="unused bits"):
                read(sent, header)


def test_the_header_is_as_it_is_documented():
    data = report()
    assert data[:4] == MAGIC
    assert data[4] == VERSION
    assert data[5:8] == bytes([0, 0, 1])
    assert struct.unpack_from("<dddQQIB", data, 40) == (1.0, -1.0, 1.0, SIZE, 1, SIZE, 1)
    assert data[85] == 5
    assert data[86:91] == b"Duchi"
    checksum = zlib.crc32(data[108:], zlib.crc32(data[:104]))
    assert struct.unpack_from("<QIBI", data, 91) == (2, 0, 0, checksum)
    assert len(data) == 108 + 2


def test_a_report_names_its_round_and_another_round_refuses_it():
    plan = codec("Duchi").plan(LAYOUT)
    x = np.linspace(-0.2, 0.2, SIZE)
    sent = plan.at(3, examples=True).perturb(x, rng=1).tobytes()
    assert (parse(sent).round, parse(sent).examples) == (3, True)
    np.testing.assert_array_equal(plan.at(3).decode(sent), plan.decode(plan.perturb(x, rng=1)))
    for number, sentence in (
        (4, "answers round 3, where round 4 was"),
        (0, "answers round 3, where none was"),
    ):
        with pytest.raises(WireError, match=sentence) as error:
            plan.at(number).decode(sent)
        assert error.value.reason == "round"
    with pytest.raises(WireError, match="answers no round, where round 3 was"):
        plan.at(3).decode(plan.perturb(x, rng=1))
    for number in (-1, 1 << 32):
        with pytest.raises(ValueError, match="round: must be"):
            plan.at(number)
    assert plan.at(3).header.digest == plan.header.digest


def test_reports_of_the_first_version_are_read_where_no_round_is_asked_for():
    plan = codec("Duchi").plan(LAYOUT)
    codes = plan.codes(np.zeros((1, SIZE)), 1)
    old = write(dataclasses.replace(plan.header, version=1), codes).tobytes()
    assert (old[4], len(old)) == (1, 105)
    np.testing.assert_array_equal(plan.decode(old), plan.decode(write(plan.header, codes)))
    with pytest.raises(WireError, match="answers no round"):
        plan.at(1).decode(old)


def test_write_refuses_what_does_not_fit():
    header = codec("Duchi").plan(LAYOUT).header
    with pytest.raises(ValueError, match="1 arrays are needed"):
        write(header, [])
    with pytest.raises(ValueError, match=f"{SIZE} are needed"):
        write(header, [np.zeros(SIZE + 1, np.uint8)])
    with pytest.raises(ValueError, match="bits"):
        write(header, [np.full(SIZE, 2, np.uint8)])
    assert isinstance(header, Header)


def test_every_mechanism_states_the_form_of_its_reports(case):
    mechanism = case.make()
    inputs = case.inputs(np.random.default_rng(0), 3)
    form = ReportForm(mechanism)
    reports = mechanism.randomize(*inputs, rng=1, output=form.output)
    arrays = form.split(reports, 3)
    for array, field in zip(arrays, form.fields, strict=True):
        assert array.max() < 1 << field.bits
    if "packed" in case.outputs and not isinstance(mechanism, bitldp.BitRand):
        packed = mechanism.randomize(*inputs, rng=1, output="packed")
        sizes = [len(packed)] if isinstance(packed, np.ndarray) else [len(each) for each in packed]
        assert sum(sizes) == sum(field.size(3) for field in form.fields)
    assert mechanism.report_bits == sum(field.columns * field.bits for field in form.fields)
    joined = form.assemble([array.reshape(3, -1) for array in arrays])
    assert type(joined) is type(reports)
    for one, other in zip(
        joined if isinstance(joined, tuple) else [joined],
        reports if isinstance(reports, tuple) else [reports],
        strict=True,
    ):
        np.testing.assert_array_equal(np.reshape(one, np.shape(other)), other)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Ball(bitldp.Duchi):
    """A mechanism of records in an l2 ball; its wire form is told by `report_bits`."""

    norm = "l2"
    interval: tuple[float, float] = (-2.0, 2.0)


@pytest.mark.parametrize(("norm", "fits"), [("l2", True), ("l1", True), ("linf", False)])
def test_a_ball_needs_its_norm(norm, fits):
    mechanism = Ball(epsilon=1.0, features=SIZE)
    if fits:
        plan = UpdateCodec(mechanism, clip=1.0, norm=norm).plan(LAYOUT)
        assert (plan.header.low, plan.header.high) == (-2.0, 2.0)
    else:
        with pytest.raises(ValueError, match="norm: must be 'l2'"):
            UpdateCodec(mechanism, clip=1.0, norm=norm)


@pytest.mark.parametrize("allow_biased", [False, True])
def test_categories_are_no_numbers(allow_biased):
    for mechanism in (bitldp.GRR(4, epsilon=1.0), bitldp.OUE(4, epsilon=1.0)):
        with pytest.raises(TypeError, match="releases categories"):
            UpdateCodec(mechanism, clip=1.0, interval=(0.0, 3.0), allow_biased=allow_biased)


def test_records_divide_the_update():
    with pytest.raises(ValueError, match="5 numbers do not divide an update of 12 coordinates"):
        UpdateCodec(bitldp.Duchi(epsilon=1.0, features=5), clip=1.0).plan(LAYOUT)
    with pytest.raises(TypeError, match="returned int, no mechanism"):
        UpdateCodec(lambda d: d, clip=1.0).plan(LAYOUT)


def test_plans_are_kept_but_not_without_end():
    one = codec("Duchi")
    assert one.plan(LAYOUT) is one.plan(Layout.of(ARRAYS))
    for size in range(1, 60):
        one.plan(Layout.of({"w": np.zeros(size)}))
    assert len(one._plans) <= 16
