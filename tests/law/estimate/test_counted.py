"""Accumulators count what `randomize` gives in every form: codes, bits and packed bytes, in any order."""

from __future__ import annotations

import json
import warnings

import bitldp
import numpy as np
import pytest
from bitldp.estimate.accumulators import Accumulator
from support.cases import CASES

N = 61


def accumulators():
    for case in CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
            mechanism = case.make()
        if case.name == "BitRand":
            continue  # takes two arrays of reports; below
        try:
            mechanism.accumulator()
        except ValueError:
            continue  # nothing can be estimated: it says why
        yield pytest.param(case, id=case.name)


def contents(accumulator: Accumulator):
    document = json.loads(accumulator.to_json())
    return document["state"]


@pytest.fixture(params=list(accumulators()))
def counted(request):
    case = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        mechanism = case.make()
    return mechanism, case.inputs(np.random.default_rng(5), N), case


def usual(mechanism) -> str:
    return "bits" if mechanism.outputs[0] == "bits" else "codes"


def test_packed_reports_count_as_the_others_do(counted):
    mechanism, inputs, case = counted
    form = usual(mechanism)
    plain, packed = mechanism.accumulator(), mechanism.accumulator()
    plain.update(mechanism.randomize(*inputs, rng=3, output=form), output=form)
    if "packed" not in case.outputs:
        pytest.skip("its reports are not packed")
    packed.update(mechanism.randomize(*inputs, rng=3, output="packed"), output="packed", records=N)
    assert packed.n == plain.n == N
    assert contents(packed) == contents(plain)
    with pytest.raises((ValueError, TypeError), match="records"):
        packed.update(mechanism.randomize(*inputs, rng=3, output="packed"), output="packed")
    with pytest.raises(ValueError, match="records"):
        packed.update(mechanism.randomize(*inputs, rng=3, output=form), output=form, records=N)
    assert packed.n == N


def test_bits_of_words_count_as_the_words_do():
    mechanism = bitldp.FRR(features=5, bits=9, integer_bits=2, epsilon=40.0)
    x = np.random.default_rng(2).normal(size=(N, 5))
    words, bits = mechanism.accumulator(), mechanism.accumulator()
    words.update(mechanism.randomize(x, rng=1))
    bits.update(mechanism.randomize(x, rng=1, output="bits"), output="bits")
    assert contents(words) == contents(bits)
    letters = mechanism.unbias(mechanism.randomize(x, rng=1))
    estimate = words.estimate()
    np.testing.assert_allclose(estimate.value, letters.mean(axis=0), rtol=1e-12, atol=1e-12)
    stderr = letters.std(axis=0, ddof=1) / np.sqrt(N)
    least = np.sqrt(mechanism._letter_law.mixed.bounds(estimate.value)[0] / N)
    np.testing.assert_allclose(estimate.stderr, np.maximum(stderr, least), rtol=1e-10)


def test_counts_are_the_same_in_any_order_and_on_any_number_of_threads(counted):
    mechanism, inputs, _ = counted
    form = usual(mechanism)
    batches = [
        mechanism.randomize(*(each[part] for each in inputs), rng=number, output=form)
        for number, part in enumerate((slice(0, 20), slice(20, 21), slice(21, N)))
    ]
    one = mechanism.accumulator()
    for batch in batches:
        one.update(batch, output=form, threads=1)
    parts = [mechanism.accumulator() for _ in batches]
    for part, batch in zip(parts, batches, strict=True):
        part.update(batch, output=form, threads=2)
    other = mechanism.accumulator()
    for part in (parts[2], parts[0], parts[1]):
        other.merge(part)
    state, turned = contents(one), contents(other)
    if "counted" in state or "counts" in state:
        assert state == turned
    assert one.n == other.n == N
    back = Accumulator.from_json(one.to_json(), mechanism)
    assert contents(back) == state


def test_the_json_of_before_still_loads():
    mechanism = bitldp.Duchi(epsilon=1.0, features=2)
    document = json.loads(mechanism.accumulator().to_json())
    document["state"] = {"n": 3, "mean": [0.5, -0.5], "m2": [2.0, 1.0]}
    accumulator = Accumulator.from_json(json.dumps(document), mechanism)
    assert (accumulator.n, accumulator.mean.tolist(), accumulator.m2.tolist()) == (3, [0.5, -0.5], [2.0, 1.0])
    accumulator.update(mechanism.randomize(np.zeros((5, 2)), rng=1))
    assert accumulator.n == 8
    assert contents(Accumulator.from_json(accumulator.to_json(), mechanism)) == contents(accumulator)


@pytest.mark.parametrize(
    "damage", [{"counted": 9}, {"counts": [[1]]}, {"counted": -1}, {"counts": [[-1, 0], [0, 0]]}]
)
def test_damaged_counts_are_refused(damage):
    mechanism = bitldp.Duchi(epsilon=1.0, features=2)
    accumulator = mechanism.accumulator()
    accumulator.update(mechanism.randomize(np.zeros((5, 2)), rng=1))
    document = json.loads(accumulator.to_json())
    document["state"] |= damage
    with pytest.raises(ValueError, match="text"):
        Accumulator.from_json(json.dumps(document), mechanism)
