"""Parts of a model: what is named is released, and nothing else of a client reaches the server."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import (
    DecodingStrategy,
    Layout,
    PrivateUpdateMod,
    UpdateCodec,
    from_record,
    run_in_process,
    to_record,
)
from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAdam
from support.federated_app import make_server

pytestmark = pytest.mark.filterwarnings("ignore::bitldp.federated.RunBudgetWarning")

MODEL = {
    "body.weight": np.zeros((3, 2), np.float32),
    "norm.running_mean": np.zeros(2),
    "norm.num_batches": np.array([7]),
    "lora.down": np.zeros((2, 1), np.float32),
    "lora.up": np.zeros((1, 3)),
}


def codec(**parts: Any) -> UpdateCodec:
    return UpdateCodec(lambda d: bitldp.Duchi(epsilon=16.0, features=d), clip=1.0, norm="linf", **parts)


def run(made: UpdateCodec, reply: Any = dict, server: Any = None, recorder: Any = None) -> dict[str, Any]:
    def train(message: Message, context: Any) -> Message:
        arrays = {name: array + 1 for name, array in from_record(message.content["arrays"]).items()}
        content = {"arrays": to_record(reply(arrays)), "metrics": MetricRecord({"num-examples": 1})}
        return Message(RecordDict(content), reply_to=message)

    client = ClientApp(mods=[PrivateUpdateMod(made, budget=1e4, ledger="run", rng=5)])
    client.train()(train)
    app = make_server(server or DecodingStrategy(made, fraction_evaluate=0.0), 1, MODEL)
    return from_record(run_in_process(app, client, 4, recorder=recorder).result.arrays)


@pytest.mark.parametrize(
    ("parts", "sent"),
    [
        ({"only": "*lora*"}, ["lora.down", "lora.up"]),
        ({"only": ["lora.up"]}, ["lora.up"]),
        ({"keep_local": ["norm.*"]}, ["body.weight", "lora.down", "lora.up"]),
        ({"only": ["body.*", "lora.*"], "keep_local": "lora.down"}, ["body.weight", "lora.up"]),
        ({"only": "*", "integers": "keep"}, ["body.weight", "norm.running_mean", "lora.down", "lora.up"]),
    ],
)
def test_what_is_named_moves_and_the_rest_stays(parts: Any, sent: list[str]) -> None:
    made = run(codec(**parts))
    assert list(made) == list(MODEL)
    for name, array in made.items():
        assert array.dtype == MODEL[name].dtype
        assert np.any(array != MODEL[name]) == (name in sent), name


def test_a_report_has_as_many_numbers_as_are_sent() -> None:
    assert codec(only="*lora*").layout(MODEL).size == 5
    assert codec(only="*lora*").plan(codec(only="*lora*").layout(MODEL)).header.coordinates == 5


def test_a_reply_may_hold_just_what_is_sent() -> None:
    made = codec(only="*lora*")
    whole = run(made)
    part = run(made, lambda arrays: {name: arrays[name] for name in ("lora.down", "lora.up")})
    np.testing.assert_array_equal(whole["lora.up"], part["lora.up"])


def test_nothing_of_what_is_kept_is_in_the_report() -> None:
    """What the server makes of it is the same, whatever the client's kept arrays hold."""
    seen: list[bytes] = []
    made = [
        run(codec(only="*lora*"), partial(grown, value=value), recorder=lambda _, data: seen.append(data))
        for value in (0.0, 123.25)
    ]
    for name, array in made[0].items():
        np.testing.assert_array_equal(array, made[1][name])
    assert len(seen) == 8
    assert not any(np.float32(123.25 + 1).tobytes() in each for each in seen)


def grown(arrays: dict[str, Any], value: float) -> dict[str, Any]:
    return {**arrays, "body.weight": arrays["body.weight"] + np.float32(value)}


def test_adam_on_the_server_leaves_what_is_kept() -> None:
    made = codec(only="*lora*")
    server = DecodingStrategy(FedAdam(fraction_evaluate=0.0), mechanism=made)
    found = run(made, server=server)
    np.testing.assert_array_equal(found["body.weight"], MODEL["body.weight"])
    assert found["norm.num_batches"].dtype == MODEL["norm.num_batches"].dtype
    assert np.any(found["lora.up"] != 0.0)


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^only: no array of the model has a name like 'lara\.\*'"):
        codec(only="lara.*").layout(MODEL)
    with pytest.raises(ValueError, match=r"^keep_local: no array"):
        codec(keep_local=["norm.*", "bn.*"]).layout(MODEL)
    with pytest.raises(ValueError, match=r"^arrays: no floating-point coordinate"):
        codec(only="norm.num*", integers="keep").layout(MODEL)
    with pytest.raises(TypeError, match=r"^only: must be patterns"):
        codec(only=[""])


def test_both_sides_must_keep_the_same() -> None:
    one, other = (
        codec(only=each, integers="keep").layout(MODEL) for each in ("*lora*", ("lora.*", "body.*"))
    )
    assert one.digest != other.digest
    floats = {name: array for name, array in MODEL.items() if array.dtype.kind == "f"}
    assert Layout.of(floats).digest == Layout.of(floats, only=["*"]).digest
    with pytest.raises(ValueError, match=r"^arrays: the names"):
        one.flatten({"lora.down": MODEL["lora.down"]})


def test_a_codec_of_parts_is_pickled() -> None:
    made = UpdateCodec(bitldp.Duchi(epsilon=1.0), clip=1.0, only="a*", keep_local=["ab"])
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert (again.only, again.keep_local) == (("a*",), ("ab",))
