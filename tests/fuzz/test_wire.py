"""Reports of Flower clients that were changed on their way: read, or refused by a WireError."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import Layout, UpdateCodec, WireError
from hypothesis import strategies as st
from support.fuzz import fuzz

pytestmark = pytest.mark.slow

LAYOUT = Layout.of({"w": np.zeros((4, 2), np.float32), "b": np.zeros(4)})
PLANS = [
    UpdateCodec(mechanism, clip=1.0).plan(LAYOUT)
    for mechanism in (
        lambda d: bitldp.Duchi(epsilon=6.0, features=d),
        lambda d: bitldp.Duchi(epsilon=6.0, features=d, spend="sample", k=5),
        lambda d: bitldp.Piecewise(epsilon=30.0, features=d),
        bitldp.FRR(6, epsilon=40.0),
        bitldp.BRR(9, epsilon=4.0, m=1, interval=(0.0, 1.0), rounding="dither"),
    )
]
REPORTS = [plan.perturb(np.linspace(-0.2, 0.2, LAYOUT.size), rng=1).tobytes() for plan in PLANS]


@st.composite
def changed(draw: st.DrawFn) -> tuple[int, Any]:
    """Draw a plan and a report that was changed, cut or made longer; its checksum often fits."""
    which = draw(st.integers(0, len(PLANS) - 1))
    other = draw(st.integers(0, len(PLANS) - 1)) if draw(st.integers(0, 7)) == 7 else which
    data = bytearray(REPORTS[other])
    head = len(data) - PLANS[other].header.payload
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0 if draw(st.booleans()) else head, len(data) - 1))
        data[place] = draw(st.integers(0, 255))
    kind = draw(st.integers(0, 7))
    if kind == 5:
        data = data[: draw(st.integers(0, len(data)))]
    elif kind == 6:
        data += draw(st.binary(max_size=9))
    elif kind == 7:
        data[draw(st.integers(0, len(data))) :] = struct.pack("<Q", draw(st.integers(0, 2**64 - 1)))
    if draw(st.booleans()) and len(data) >= head:
        data[head - 4 : head] = struct.pack("<I", zlib.crc32(data[head:], zlib.crc32(data[: head - 4])))
    forms: list[Any] = [bytes(data), bytearray(data), memoryview(data), np.frombuffer(bytes(data), np.uint8)]
    forms += [list(data), None, np.frombuffer(bytes(data), np.uint8)[None]]
    return which, forms[draw(st.integers(0, 3)) if draw(st.integers(0, 15)) < 15 else draw(st.integers(4, 6))]


def test_changed_reports_are_read_or_refused() -> None:
    def call(drawn: tuple[int, Any]) -> bool:
        which, data = drawn
        plan = PLANS[which]
        refused, update = None, np.zeros(0)
        try:
            update = plan.decode(data)
        except WireError as error:
            refused = error
        if refused is not None:
            assert refused.reason
            assert str(refused).startswith("report: ")
            return False
        assert update.shape == (LAYOUT.size,)
        assert np.isfinite(update).all()
        return True

    fuzz("reports", changed(), call)
