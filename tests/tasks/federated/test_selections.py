"""Selections and projections on the wire: biased, so only where that is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import Layout, UpdateCodec, WireError
from bitldp.selection import PE, Compressed, TwoStage


@pytest.mark.parametrize("dimensions", [31, 32, 33])
def test_no_selection_fits_the_wire(dimensions: int) -> None:
    stages = TwoStage(PE(dimensions, k=3, epsilon=0.1), bitldp.Piecewise(epsilon=1.0))
    layout = Layout.of({"w": np.zeros(dimensions)})
    options: dict[str, Any] = {"clip": 1.0, "norm": "linf", "interval": (-1.0, 1.0)}
    with pytest.raises(ValueError, match="averaged without bias"):
        UpdateCodec(stages, **options)
    plan = UpdateCodec(stages, **options, allow_biased=True).plan(layout)
    assert sum(part.columns * part.bits for part in plan.header.fields) == stages.report_bits
    from bitldp.client.message import write

    def wire(index: int) -> np.ndarray:
        return plan.decode(write(plan.header, [np.array([index], np.uint8), np.array([0], np.uint8)]))

    assert not wire(dimensions).any()  # none
    assert np.flatnonzero(wire(dimensions - 1)).tolist() == [dimensions - 1]
    if dimensions + 1 < 1 << stages.selection.report_bits:
        with pytest.raises(WireError, match="outside the alphabet"):
            wire(dimensions + 1)


def test_a_projection_fits_the_wire() -> None:
    compressed = Compressed(40, compressed=5, epsilon=4.0, public_seed=1, c=2)
    options: dict[str, Any] = {"clip": 1.0, "norm": "linf", "interval": (-1.0, 1.0)}
    with pytest.raises(ValueError, match="averaged without bias"):
        UpdateCodec(compressed, **options)
    plan = UpdateCodec(compressed, **options, allow_biased=True).plan(Layout.of({"w": np.zeros(40)}))
    vector = np.linspace(-0.5, 0.5, 40)
    sent = plan.decode(plan.perturb(vector, rng=3))
    assert np.allclose(sent, compressed.recover(compressed.randomize(vector[None], rng=3)))
    assert plan.header.payload == 3  # 6 bits of indices, 16 of codes
