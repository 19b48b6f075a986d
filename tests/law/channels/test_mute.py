"""Mute channels of the core: the input is checked, and zeros are randomized in its place."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from bitldp._core import Cube, Grid, Shift, Window

KEY = bytes(range(32))
ONE = 1 << 64
ORDER = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]], np.uint16)
NOISE = [ONE // 4, ONE // 2, ONE // 4]

CHANNELS = {
    "Window": (lambda mute: Window(7, 3, 0.8, mute=mute), 7),
    "ordered Window": (lambda mute: Window(3, 1, 0.5, ORDER, mute=mute), 3),
    "Shift": (lambda mute: Shift(5, 7, NOISE, 1, mute=mute), 5),
    "Cube": (lambda mute: Cube(4, 3, 2, ONE // 3, mute=mute), 2),
    "other Cube": (lambda mute: Cube(4, 3, 2, 1).with_high(ONE // 3, mute=mute), 2),
}


def run(channel, x, grid=None, output="codes"):
    return channel.randomize(x, grid, None, KEY, output, None, None, 0)


@pytest.mark.parametrize("name", CHANNELS)
def test_reports_are_those_of_zeros_whatever_the_input(name):
    make, inputs = CHANNELS[name]
    loud, mute = make(False), make(True)
    assert (loud.mute, mute.mute, mute.epsilon) == (False, True, 0.0)
    assert loud.epsilon > 0.0
    x = (np.arange(4000).reshape(1000, 4) * 7919 % inputs).astype(np.uint8)
    zeros = run(loud, np.zeros_like(x))
    assert not np.array_equal(run(loud, x), zeros)
    grid = Grid(inputs, low=0.0, high=1.0)
    for given in (run(mute, x), run(mute, x / inputs, grid), run(pickle.loads(pickle.dumps(mute)), x)):
        np.testing.assert_array_equal(given, zeros)
    np.testing.assert_array_equal(run(mute, x, output="packed"), run(loud, np.zeros_like(x), output="packed"))


@pytest.mark.parametrize("name", CHANNELS)
def test_the_input_is_checked_as_ever(name):
    make, inputs = CHANNELS[name]
    wrong = np.full((2, 4), inputs, np.uint8)
    for channel in (make(False), make(True)):
        with pytest.raises(ValueError, match=r"x: element 0 .*"):
            run(channel, wrong)
        with pytest.raises(ValueError, match=r"x: element 3 .*"):
            run(channel, np.array([[0.5, 0.5, 0.5, np.nan]]), Grid(inputs, low=0.0, high=1.0))


def test_all_rows_of_a_mute_law_are_that_of_zero():
    for name in ("Window", "ordered Window", "Shift"):
        make, _ = CHANNELS[name]
        law = make(True).probabilities()
        np.testing.assert_array_equal(law, np.broadcast_to(make(False).probabilities()[0], law.shape))
    assert CHANNELS["Shift"][0](True).delta(0.0) == 0.0
