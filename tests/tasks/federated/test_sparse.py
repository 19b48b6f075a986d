"""Reports that name few coordinates: added to the mean by these alone, with the digits of whole vectors."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.client.message import read
from bitldp.federated import Layout, ReportMean, UpdateCodec, UpdatePlan, WireError
from bitldp.federated.wire.codec import Named

CODECS = {
    "piecewise": UpdateCodec(lambda d: bitldp.Piecewise(epsilon=8.0, features=d, spend="sample"), clip=0.7),
    "hybrid": UpdateCodec(
        lambda d: bitldp.Hybrid(epsilon=3.0, features=d, spend="sample", interval=(0.0, 2.0)), clip=0.7
    ),
    "signs": UpdateCodec(lambda d: bitldp.SampledSigns(d, epsilon=6.0), clip=0.3, norm="linf"),
    "window": UpdateCodec(lambda d: bitldp.JointWindow(d, epsilon=5.0), clip=1.0),
    "records": UpdateCodec(bitldp.Duchi(epsilon=1.0, features=50, spend="sample", k=2), clip=1.0),
    "square wave": UpdateCodec(
        lambda d: bitldp.SquareWave(epsilon=4.0, features=d, spend="sample"), clip=1.0
    ),
}
SIZE, CLIENTS = 200, 30


def planned(codec: UpdateCodec, size: int = SIZE) -> UpdatePlan:
    return codec.plan(Layout(("w",), ((size,),), ("<f8",)))


def reports(plan: UpdatePlan, clients: int = CLIENTS) -> list[Any]:
    x = np.random.default_rng(2).normal(0.01, 0.1, (clients, plan.header.coordinates))
    return [read(plan.perturb(row, rng=index), plan.header) for index, row in enumerate(x)]


@pytest.mark.parametrize("name", CODECS)
def test_the_mean_is_that_of_whole_vectors_to_the_bit(name: str) -> None:
    plan = planned(CODECS[name])
    assert plan.sampled is not None
    few, whole = ReportMean(SIZE), ReportMean(SIZE)
    for index, codes in enumerate(reports(plan)):
        named = plan.decoded(codes)
        assert isinstance(named, Named)
        vector = plan.letters(plan.form.assemble(codes)).reshape(-1, SIZE)
        low, high = plan.header.low, plan.header.high
        vector = (vector - (low + (high - low) / 2.0)) * (2.0 * plan.header.clip / (high - low))
        assert plan.values(codes).tobytes() == vector.tobytes()
        weight = 1.0 + index % 3
        few.add_all(named, weight)
        whole.add_all(vector, weight)
    assert few.value.tobytes() == whole.value.tobytes()
    assert np.count_nonzero(few.value) < SIZE
    np.testing.assert_allclose(few.errors(), whole.errors(), rtol=1e-12, atol=1e-15)
    assert (few.reports, few.largest_share) == (whole.reports, whole.largest_share)


def test_clients_at_once_and_after_a_whole_vector() -> None:
    """Clients of a block name the same coordinates; deviations from a first vector are everywhere."""
    plan = planned(CODECS["piecewise"], 24)
    all_codes = [np.concatenate(parts) for parts in zip(*reports(plan, 400), strict=True)]
    named, vectors = plan.decoded(all_codes), plan.values(all_codes)
    assert isinstance(named, Named)
    mean, other, whole = ReportMean(24), ReportMean(24), ReportMean(24)
    mean.add_all(named)
    other.add_all(vectors[:1])
    other.add_all(Named(named.indices[1:], named.values[1:]))
    whole.add_all(vectors)
    assert mean.value.tobytes() == other.value.tobytes() == whole.value.tobytes()
    np.testing.assert_allclose(mean.errors(), whole.errors(), rtol=1e-12)
    np.testing.assert_allclose(other.errors(), whole.errors(), rtol=1e-12)


def test_vectors_are_whole_where_that_is_shorter_or_the_middle_is_not_zero() -> None:
    make = CODECS["piecewise"].mechanism
    assert planned(UpdateCodec(make, clip=1.0), 23).sampled is None
    assert planned(UpdateCodec(make, clip=1.0), 24).sampled is not None
    moved = planned(UpdateCodec(make, clip=1.0, interval=(0.0, 1.0)))
    assert moved.sampled is None
    (codes,) = reports(moved, 1)
    assert np.count_nonzero(moved.values(codes)) == SIZE
    assert planned(UpdateCodec(make, clip=1.0, rows=2)).sampled is None
    assert planned(UpdateCodec(lambda d: bitldp.CrossPolytope(d, epsilon=1.0), clip=1.0)).sampled is None


@pytest.mark.parametrize("part", [0, 1])
def test_a_code_that_does_not_exist_is_refused(part: int) -> None:
    plan = planned(CODECS["piecewise"])
    (codes,) = reports(plan, 1)
    codes[part] = np.full_like(codes[part], 2 ** plan.header.fields[part].bits - 1)
    with pytest.raises(WireError, match="outside the alphabet"):
        plan.decoded(codes)


def test_a_client_costs_its_own_coordinates_and_no_vector() -> None:
    """Of 200,000 numbers, a dense vector would be 1.6 MB; a client may take a hundredth of it."""
    size = 200_000
    plan = planned(CODECS["window"], size)
    few = reports(plan, 4)
    mean = ReportMean(size)
    for codes in few:  # every coordinate's sums exist now
        mean.add_all(plan.decoded(codes))
    tracemalloc.start()
    try:
        mean.add_all(plan.decoded(few[0]))
        assert tracemalloc.get_traced_memory()[1] < size * 8 / 100
    finally:
        tracemalloc.stop()
