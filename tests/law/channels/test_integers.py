"""Channels of integers over 2**64: what a channel says of its law makes it again, pickled and copied, too."""

from __future__ import annotations

import base64
import copy
import pickle
from typing import Any

import numpy as np
import pytest
from bitldp import Matrix, Unary, Window
from bitldp._core import Bits, Design, Mixture, Subset

KEY = bytes(range(32))
UNIT = 1 << 64
NO_FLOAT = (0xC000_0000_0000_0001, 0x4000_0000_0000_0001)  # neither is a float's
ORDER = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]], np.uint16)
FANO = np.array([0, 1, 3, 2, 4, 5, 6], np.uint32)


def reports(channel: Any) -> bytes:
    """Return the packed reports of a few inputs."""
    if isinstance(channel, Bits):
        x = np.arange(30, dtype=np.uint8).reshape(-1, channel.features) % (1 << channel.bits)
        arguments: tuple[Any, ...] = (x, None, KEY)
    else:
        arguments = (np.arange(70) % 2, KEY)
        if isinstance(channel, (Window, Matrix)):
            arguments = (arguments[0], None, None, KEY)
    return channel.randomize(*arguments, "packed", None, None, 0).tobytes()


CHANNELS: dict[str, Any] = {
    "window": Window.from_integers(17, 5, NO_FLOAT[0]),
    "ordered window": Window.from_integers(3, 1, NO_FLOAT[0], ORDER),
    "mute window": Window.from_integers(3, 1, NO_FLOAT[0], mute=True),
    "subset": Subset.from_integers(40, 11, NO_FLOAT[0]),
    "mute subset": Subset.from_integers(40, 11, NO_FLOAT[0], mute=True),
    "unary": Unary.from_integers(23, *NO_FLOAT),
    "bits": Bits.from_integers([[NO_FLOAT, (UNIT, 0)], [NO_FLOAT[::-1], (1, 2)]], 3, [1, 0, 1]),
    "translates": Design.from_integers("translates", 5, 7, 3, NO_FLOAT[0], FANO),
    "progressions": Design.from_integers("progressions", 10, 11, 3, NO_FLOAT[0]),
    "halves": Design.from_integers("halves", 20, 32, 4, NO_FLOAT[0], mute=True),
    "halves of a wide design": Design.halves(100_000, 17, 0, 0.7),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_a_pickle_has_the_integers(name: str) -> None:
    channel = CHANNELS[name]
    made = [pickle.loads(pickle.dumps(channel, protocol)) for protocol in range(2, 6)]
    for again in (*made, copy.copy(channel), copy.deepcopy(channel)):
        assert again.__reduce__()[0] == channel.__reduce__()[0]
        for one, other in zip(again.__reduce__()[1], channel.__reduce__()[1], strict=True):
            np.testing.assert_array_equal(one, other)
        assert again.epsilon == channel.epsilon
        assert reports(again) == reports(channel)


def test_the_integers_are_those_that_were_given() -> None:
    assert CHANNELS["window"].high == CHANNELS["subset"].high == CHANNELS["halves"].high == NO_FLOAT[0]
    assert int(float(NO_FLOAT[0])) != NO_FLOAT[0]
    assert CHANNELS["unary"].thresholds() == NO_FLOAT
    assert CHANNELS["bits"].thresholds() == [[NO_FLOAT, (UNIT, 0)], [NO_FLOAT[::-1], (1, 2)]]
    assert (CHANNELS["translates"].family, CHANNELS["halves"].family) == ("translates", "halves")
    matrix = Matrix.from_weights([[NO_FLOAT[0], UNIT - NO_FLOAT[0]]] * 2)
    mixture = pickle.loads(pickle.dumps(Mixture(CHANNELS["window"], matrix)))
    assert (mixture.window.high, mixture.matrix.weights()) == (NO_FLOAT[0], matrix.weights())


def test_a_float_and_an_integer_are_not_mixed_up() -> None:
    """A constructor takes chances as floats, `from_integers` takes no float, and a chance above 1 is none."""
    for build in (
        lambda high: Window(17, 5, high),
        lambda high: Subset(40, 11, high),
        lambda high: Unary(23, high, 0.5),
        lambda high: Bits([[high]], [[0.5]], 1),
        lambda high: Design.halves(20, 3, 2, high),
    ):
        with pytest.raises(ValueError, match=r"high|probability"):
            build(NO_FLOAT[0])
    for make in (
        lambda high: Window.from_integers(17, 5, high),
        lambda high: Subset.from_integers(40, 11, high),
        lambda high: Unary.from_integers(23, 1, high),
        lambda high: Bits.from_integers([[(high, 0)]], 1),
        lambda high: Design.from_integers("halves", 20, 32, 4, high),
    ):
        with pytest.raises(TypeError):
            make(0.5)
        for outside in (-1, UNIT + 1, 1 << 200):
            with pytest.raises(ValueError, match=r"(high|q|thresholds): an integer from 0 to 2\*\*64"):
                make(outside)


def test_designs_of_integers_name_what_does_not_fit() -> None:
    for arguments, match in (
        (("thirds", 9, 16, 8, 1), "family: "),
        (("halves", 9, 16, 8, 1, FANO), "order: "),
        (("translates", 5, 7, 3, 1), "order: "),
        (("translates", 5, 8, 3, 1, FANO), "order: "),
        (("halves", 9, 24, 8, 1), "width: "),
        (("progressions", 4, 15, 4, 1), "modulus: "),
    ):
        with pytest.raises(ValueError, match=match):
            Design.from_integers(*arguments)


# Pickles that earlier versions wrote, of floats.
BEFORE: dict[str, Any] = {
    "gASVUwAAAAAAAACMDGJpdGxkcC5fY29yZZSMBEJpdHOUk5QoXZRdlChHP+gAAAAAAABHP+MzMzMz"
    "MzNlYV2UXZQoRz/QAAAAAAAARz/TMzMzMzMzZWFLA050lIGULg==": Bits([[0.75, 0.6]], [[0.25, 0.3]], 3),
    "gASVMgAAAAAAAACMDGJpdGxkcC5fY29yZZSMBVVuYXJ5lJOUSwVHP+AAAAAAAABHP8mZmZmZmZqHlIGULg==": Unary(
        5, 0.5, 0.2
    ),
    "gASVLwAAAAAAAACMDGJpdGxkcC5fY29yZZSMBldpbmRvd5STlChLB0sDRz/pmZmZmZmaTol0lIGULg==": Window(7, 3, 0.8),
    "gASVLgAAAAAAAACMDGJpdGxkcC5fY29yZZSMBlN1YnNldJSTlChLCUsCRz/mZmZmZmZmiHSUgZQu": Subset(
        9, 2, 0.7, mute=True
    ),
}


@pytest.mark.parametrize("text", BEFORE)
def test_pickles_of_floats_are_read(text: str) -> None:
    again, expected = pickle.loads(base64.b64decode(text)), BEFORE[text]
    assert again.__reduce__()[1] == expected.__reduce__()[1]
    assert reports(again) == reports(expected)
