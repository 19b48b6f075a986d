"""Where randomness comes from: seeds behave, keys are never shown, calls without a seed never repeat."""

from __future__ import annotations

import os
import pickle
import warnings

import bitldp
import numpy as np
import pytest
from bitldp._core import CHUNK
from bitldp.base.keys import keys
from support.cases import reports_of

N = 300


def test_keys_are_32_bytes_and_independent():
    first, second = keys(5, 2)
    assert len(first) == len(second) == 32
    assert first != second
    assert keys(5, 1) == [first]
    assert keys(np.int64(5), 2) == [first, second] == keys(np.random.SeedSequence(5), 2)
    assert keys(None, 3) == [None] * 3
    # pinned: the same on every platform, whatever its byte order
    assert first.hex() == "67b400019d064caf60bd7e88b99ff53d525ab549c6bdb757a6118896bd058127"


def test_a_large_seed_is_whole():
    assert keys(2**200, 1) != keys(2**200 + 1, 1)


def test_a_generator_advances():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    first = keys(rng, 2)
    assert first == [twin.bytes(32), twin.bytes(32)]
    assert keys(rng, 2) != first


@pytest.mark.parametrize("bad", [True, 1.0, "1", b"0" * 32, np.random.RandomState(1), [1]])
def test_other_sources_are_refused(bad):
    with pytest.raises(TypeError, match="rng: must be None"):
        keys(bad, 1)
    with pytest.raises(TypeError, match="rng: must be None"):
        bitldp.GRR(3, epsilon=1.0).randomize([0], rng=bad)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="rng: an integer seed must not be negative"):
        bitldp.GRR(3, epsilon=1.0).randomize([0], rng=-1)


def test_seeds_behave(case):
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), N)
    again = case.make()
    same = reports_of(mechanism, inputs, rng=11)
    np.testing.assert_array_equal(same, reports_of(again, inputs, rng=11))
    np.testing.assert_array_equal(same, reports_of(mechanism, inputs, rng=np.random.SeedSequence(11)))
    assert not np.array_equal(same, reports_of(mechanism, inputs, rng=12))
    sequence = np.random.SeedSequence(11)
    for _ in range(2):
        np.testing.assert_array_equal(same, reports_of(mechanism, inputs, rng=sequence))
    rng = np.random.default_rng(1)
    first = reports_of(mechanism, inputs, rng=rng)
    assert not np.array_equal(first, reports_of(mechanism, inputs, rng=rng))
    np.testing.assert_array_equal(first, reports_of(mechanism, inputs, rng=np.random.default_rng(1)))


def test_without_a_seed_nothing_repeats(case):
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), N)
    assert not np.array_equal(reports_of(mechanism, inputs), reports_of(mechanism, inputs))
    copy = pickle.loads(pickle.dumps(mechanism)) if "regions" not in case.name else mechanism
    assert not np.array_equal(reports_of(mechanism, inputs), reports_of(copy, inputs))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_fork_draws_its_own():
    mechanism, x = bitldp.FRR(4, epsilon=4.0), np.zeros((64, 4))
    mechanism.randomize(x)  # whatever state there may be, it exists before the fork
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of threads
        warnings.simplefilter("ignore", RuntimeWarning)  # so does jax, where another test has imported it
        child = os.fork()
    if child == 0:
        try:
            os.write(write, mechanism.randomize(x).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    mine = mechanism.randomize(x).tobytes()
    with os.fdopen(read, "rb") as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)
    assert len(theirs) == len(mine)
    assert theirs != mine


def test_the_key_is_never_shown(case):
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), 4)
    shown = keys(77, 2)
    mechanism.randomize(*inputs, rng=77)
    pickled = pickle.dumps(mechanism)
    for key in shown:
        assert key not in pickled
        assert key.hex() not in repr(mechanism)
        assert repr(key)[2:-1] not in repr(mechanism)
        assert repr(key)[2:-1] not in str(mechanism.__dict__)
    with pytest.raises((ValueError, TypeError)) as caught:
        mechanism.randomize(*(np.full(np.shape(each), np.nan) for each in inputs), rng=77)
    for key in shown:
        assert key.hex() not in str(caught.value)
        assert repr(key)[2:-1] not in str(caught.value)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_the_number_of_threads_changes_nothing(case, threads):
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), 3 * CHUNK + 5)
    one = reports_of(mechanism, inputs, rng=1, threads=None)
    np.testing.assert_array_equal(one, reports_of(mechanism, inputs, rng=1, threads=threads))


def test_chunks_concatenate_to_the_whole(case):
    mechanism, inputs = case.make(), case.inputs(np.random.default_rng(0), 2 * CHUNK + 100)
    form = "codes" if "codes" in mechanism.outputs else mechanism.outputs[0]
    if getattr(mechanism, "regions", None) is not None:
        with pytest.raises(ValueError, match="first_chunk"):
            mechanism.randomize(*inputs, rng=1, first_chunk=1)
        return
    whole = mechanism.randomize(*inputs, rng=1, output=form)
    features = getattr(mechanism, "features", 1)
    parts = []
    for start in range(0, 2 * CHUNK + 100, CHUNK):  # CHUNK records are `features` chunks of values
        step = start // CHUNK if case.name == "BitRand" else start // CHUNK * features
        if form == "bits":  # strings of bits come in chunks of their channel's
            step = start // (mechanism.channel.chunk if hasattr(mechanism, "channel") else CHUNK)
        part = tuple(each[start : start + CHUNK] for each in inputs)
        parts.append(mechanism.randomize(*part, rng=1, output=form, first_chunk=step))
    if case.name == "BitRand":
        for place in range(2):
            np.testing.assert_array_equal(whole[place], np.concatenate([part[place] for part in parts]))
    else:
        np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("first_chunk", [-1, 1.5, "0"])
def test_first_chunk_is_checked(first_chunk):
    with pytest.raises((ValueError, TypeError)):
        bitldp.FRR(2, epsilon=1.0).randomize(np.zeros((1, 2)), first_chunk=first_chunk)
    with pytest.raises((ValueError, TypeError), match="first_chunk"):
        bitldp.BitRand(2, categories=2, epsilon_x=1.0, epsilon_y=1.0).randomize(
            np.zeros((1, 2)), [0], first_chunk=first_chunk
        )
