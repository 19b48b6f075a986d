"""Which updates of a round are averaged where some are not like the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.federated import flower, to_record
from bitldp_papers.ldpfl.system import DropOne
from bitldp_papers.run.drive import alike
from flwr.app import Message, MetricRecord, RecordDict


def reply(arrays: dict[str, Any] | None) -> Message:
    with flower.identity(1):
        question = Message(RecordDict(), 2, "train")
        if arrays is None:
            return flower.refusal(question, flower.FAILED, "gone")
        metrics = MetricRecord({"num-examples": 1})
        return Message(RecordDict({"arrays": to_record(arrays), "metrics": metrics}), reply_to=question)


def test_of_two_kinds_what_was_sent_wins() -> None:
    good, bad = {"a": np.zeros(2)}, {"z": np.zeros(9)}
    kept, counts = alike([reply(bad), reply(good)], to_record(good))
    assert list(kept[0].content["arrays"]) == ["a"]
    assert counts == {"reports": 1, "failed": 0, "rejected": 1}
    assert alike([reply(None)], to_record(good)) == ([], {"reports": 0, "failed": 1, "rejected": 0})


def test_the_dropped_client_is_one_that_answered() -> None:
    """One good update of three is not the one to drop, whatever is drawn."""
    good = {"a": np.ones(2)}
    for seed in range(10):
        arrays, _ = DropOne(seed).aggregate_train(1, [reply(None), reply(None), reply(good)])
        assert arrays is not None
        assert np.array_equal(arrays["a"].numpy(), np.ones(2))
