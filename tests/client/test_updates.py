"""Updates of models as data: a client's message is the plan's own."""

from __future__ import annotations

from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.client import NoDocumentError, open_document

pytest.importorskip("flwr", reason="Flower needs Python 3.11")

from bitldp.federated.wire.codec import UpdateCodec

MECHANISMS = [
    bitldp.Duchi(epsilon=1.0),
    bitldp.Piecewise(epsilon=2.0, features=20, spend="sample", k=3),
    bitldp.CrossPolytope(40, epsilon=3.0),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_client_sends_what_the_plan_sends(mechanism: Any, norm: Any) -> None:
    codec = UpdateCodec(mechanism, clip=2.0, norm=norm)
    plan = codec.plan(codec.layout({"w": np.zeros((4, 10), np.float32)})).at(3)
    document = open_document(plan.client_document(spends=("rounds", 10)))
    assert document.epsilon == pytest.approx(plan.records * mechanism.guarantee.record, rel=1e-12)
    for scale in (0.01, 3.0):
        vector = np.random.default_rng(1).normal(0.0, scale, 40)
        message = document.randomize_update(vector, rng=7)
        assert message == plan.perturb(vector, rng=7).tobytes()
        assert len(message) == document.report_bytes()
        assert plan.decode(message).shape == (40,)


def test_an_update_that_does_not_fit_is_refused() -> None:
    codec = UpdateCodec(bitldp.Duchi(epsilon=1.0), clip=1.0, norm="linf")
    layout = codec.layout({"w": np.zeros(4, np.float32)})
    document = open_document(codec.plan(layout).client_document())
    assert document.randomize_update([9.0, -9.0, 0.0, 1.0], rng=1)[-1:] is not None
    with pytest.raises(ValueError, match="4 coordinates are needed"):
        document.randomize_update(np.zeros(5))
    with pytest.raises(ValueError, match="not finite"):
        document.randomize_update([np.nan, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="describes records"):
        open_document(bitldp.Duchi(epsilon=1.0).client_document()).randomize_update([0.0])
    rows = UpdateCodec(bitldp.Duchi(epsilon=1.0), clip=1.0, rows=2)
    with pytest.raises(NoDocumentError, match="rows of several"):
        rows.plan(layout).client_document()
