"""What every mechanism is: frozen, equal by its parameters, picklable without state, with a short repr."""

from __future__ import annotations

import functools
import pickle
import warnings

import bitldp
import numpy as np
import pytest
from bitldp.mechanism.base import Mechanism
from support.cases import reports_of


def test_equal_by_parameters(case):
    first, second = case.make(), case.make()
    assert first == second
    assert hash(first) == hash(second)
    assert first != bitldp.GRR(3, epsilon=0.123)
    assert first != "a mechanism"
    if isinstance(first, bitldp.BRR) and first.regions is None and first.interval is None:
        assert first != bitldp.BRR(first.candidates, epsilon=first.epsilon / 2)


def test_frozen(case):
    mechanism = case.make()
    for name in (*mechanism.parameters, "guarantee", "anything"):
        with pytest.raises(AttributeError):
            setattr(mechanism, name, 1)
    for value in mechanism.parameters.values():
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable


def test_pickles_by_parameters(case):
    mechanism = case.make()
    inputs = case.inputs(np.random.default_rng(0), 50)
    mechanism.randomize(*inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a failing claim was warned about when the mechanism was built
        again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert again.guarantee == mechanism.guarantee
    np.testing.assert_array_equal(reports_of(again, inputs, rng=3), reports_of(mechanism, inputs, rng=3))


def test_repr_is_short_and_names_the_parameters(case):
    mechanism = case.make()
    text = repr(mechanism)
    assert text.startswith(type(mechanism).__name__ + "(")
    assert all(f"{name}=" in text for name in mechanism.parameters)
    assert "\n" not in text
    assert len(text) < 250


def test_repr_builds_it_again():
    mechanism = bitldp.FRR(3, epsilon=2.0, sign="ldpfl")
    assert eval(repr(mechanism), {name: getattr(bitldp, name) for name in bitldp.__all__}) == mechanism


def test_guarantee_is_consistent(case):
    guarantee = case.make().guarantee
    assert 0.0 < guarantee.bit <= guarantee.feature <= guarantee.record
    assert guarantee.delta == 0.0
    assert guarantee.holds == (guarantee.record <= guarantee.claimed)
    assert guarantee.holds != ("paper" in case.name or "UER" in case.name)


def test_outputs_agree(case):
    """Every form of the reports spells the same reports."""
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), 64)
    forms = {form: mechanism.randomize(*inputs, rng=5, output=form) for form in case.outputs}
    if "codes" not in forms:
        np.testing.assert_array_equal(forms["packed"], np.packbits(forms["bits"]))
        return
    codes = forms["codes"][0] if case.name == "BitRand" else forms["codes"]
    decoded = mechanism.decode(forms["codes"])
    for form, reports in forms.items():
        values = reports[0] if case.name == "BitRand" else reports
        if form == "values":
            plain = decoded[0] if case.name == "BitRand" else decoded
            np.testing.assert_array_equal(values.astype(plain.dtype), plain)
        elif form == "packed":
            bits = mechanism._report_parts[0][1]
            np.testing.assert_array_equal(bitldp.unpack(values, bits, codes.size), codes.ravel())
        elif form == "bits":
            np.testing.assert_array_equal(
                np.packbits(values), forms["packed"][0] if case.name == "BitRand" else forms["packed"]
            )


def test_out_is_filled(case):
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), 64)
    if getattr(mechanism, "regions", None) is not None:
        with pytest.raises(ValueError, match="out: not supported with regions"):
            mechanism.randomize(*inputs, out=np.empty(64, np.uint8))
        return
    for form in case.outputs:
        if form == "values" and case.name == "BRR-plane":
            continue
        expected = mechanism.randomize(*inputs, rng=5, output=form)
        expected = expected[0] if case.name == "BitRand" else expected
        out = np.empty_like(expected)
        found = mechanism.randomize(*inputs, rng=5, output=form, out=out)
        assert (found[0] if case.name == "BitRand" else found) is out
        np.testing.assert_array_equal(out, expected)


def test_the_base_is_no_mechanism():
    with pytest.raises(TypeError, match="abstract"):
        Mechanism()


def test_parameters_are_normalised():
    assert bitldp.GRR(np.int64(3), epsilon=1) == bitldp.GRR(3, epsilon=1.0)
    assert type(bitldp.GRR(np.int64(3), epsilon=1).categories) is int
    assert bitldp.BRR(10, epsilon=1.0) == bitldp.BRR(10, epsilon=1.0, m=bitldp.BRR(10, epsilon=1.0).m)


@pytest.mark.parametrize("kind", [bitldp.FRR, bitldp.MOUE, bitldp.UER])
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"features": 0}, ValueError, "features: must be at least 1"),
        ({"features": 1.5}, TypeError, "features: must be an integer"),
        ({"features": True}, TypeError, "features: must be an integer"),
        ({"bits": 1}, ValueError, "bits: must be between 2 and 32"),
        ({"bits": 33}, ValueError, "bits: must be between 2 and 32"),
        ({"integer_bits": -1}, ValueError, "integer_bits: must be between 0 and 9"),
        ({"integer_bits": 10}, ValueError, "integer_bits: must be between 0 and 9"),
        ({"epsilon": -1e-9}, ValueError, "epsilon: must be zero or more"),
        ({"epsilon": np.nan}, ValueError, "epsilon: must be finite"),
        ({"epsilon": np.inf}, ValueError, "epsilon: must be finite"),
        ({"epsilon": "1"}, TypeError, "epsilon: must be a real number"),
        ({"epsilon": None}, TypeError, "epsilon: must be a real number"),
        ({"calibration": "exactly"}, ValueError, "calibration: must be one of"),
        ({"unit": "user"}, ValueError, "unit: must be one of"),
        ({"sign": "both"}, ValueError, "sign: must be one of"),
        ({"infinities": "ignore"}, ValueError, "infinities: must be one of"),
        ({"calibration": "paper", "unit": "feature"}, ValueError, "unit: must be 'record'"),
    ],
)
def test_parameters_are_checked(kind, parameters, error, message):
    with pytest.raises(error, match=message):
        kind(**{"features": 3, "epsilon": 1.0, **parameters})


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf, 1e9, None])
def test_alpha_is_checked(alpha):
    with pytest.raises((ValueError, TypeError), match="alpha"):
        bitldp.MOUE(3, epsilon=1.0, alpha=alpha)


@pytest.mark.parametrize("kind", [bitldp.GRR, bitldp.SUE, bitldp.OUE])
def test_categories_are_checked(kind):
    for bad in (1, 0, -5):
        with pytest.raises(ValueError, match="categories: must be at least 2"):
            kind(bad, epsilon=1.0)
    with pytest.raises(TypeError, match="categories: must be an integer"):
        kind(2.0, epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        kind(3, epsilon=-1.0)


def test_labels_are_checked():
    with pytest.raises(ValueError, match="categories: must be at least 2"):
        bitldp.LabelRR(1, epsilon=1.0)
    with pytest.raises(ValueError, match="beta: must be finite"):
        bitldp.LabelRR(3, epsilon=1.0, beta=np.nan)
    with pytest.raises(ValueError, match="epsilon_x"):
        bitldp.BitRand(3, categories=2, epsilon_x=-1.0, epsilon_y=1.0)
    with pytest.raises(ValueError, match="epsilon_y"):
        bitldp.BitRand(3, categories=2, epsilon_x=1.0, epsilon_y=np.inf)
    with pytest.raises(ValueError, match="categories"):
        bitldp.BitRand(3, categories=0, epsilon_x=1.0, epsilon_y=1.0)


def test_functions_are_shown_by_name():
    def euclid(a, b):
        return np.linalg.norm(a[:, None] - b, axis=-1)

    mechanism = bitldp.BRR([[0.0, 1.0], [2.0, 2.0], [3.0, 0.0]], epsilon=1.0, metric=euclid)
    assert "test_functions_are_shown_by_name.<locals>.euclid>" in repr(mechanism)
    partial = bitldp.BRR([[0.0, 1.0], [2.0, 2.0]], epsilon=1.0, m=1, metric=functools.partial(euclid))
    assert "<functools.partial>" in repr(partial)
    assert partial.fingerprint()["parameters"]["metric"] == "functools.partial"
