"""``bitldp recommend``: the library's answer on the command line."""

from __future__ import annotations

import json

import bitldp
import pytest
from support.command import invoke


def test_the_answer_is_that_of_the_library() -> None:
    result = invoke("recommend", "frequency", "--epsilon", 2, "--categories", 1000)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.rstrip("\n") == str(bitldp.recommend("frequency", epsilon=2.0, categories=1000))
    first, second, *_ = result.stdout.splitlines()
    assert first.startswith("BlockDesign: mean 0.7248 in 13 bits, ")
    assert second.startswith("proven within 0.45 % of every unbiased epsilon-LDP mechanism")


def test_all_options() -> None:
    advice = bitldp.recommend(
        "record", epsilon=2.0, categories=[2, 9], features=1, interval=(0.0, 4.0), bits=99
    )
    given = ("--categories", "2,9", "--features", 1, "--low", 0, "--high", 4, "--bits", 99, "--json")
    told = json.loads(invoke("recommend", "record", "--epsilon", 2, *given).stdout)
    assert told == json.loads(json.dumps(advice.to_dict()))
    liars = ("--liars", 0.01, "--users", 1000, "--criterion", "worst", "--collections", 3)
    told = json.loads(
        invoke("recommend", "frequency", "--epsilon", 1, "--categories", 9, *liars, "--json").stdout
    )
    assert told["criterion"] == "worst"
    assert told["rows"][0]["kept"]
    assert told["rows"][0]["influence"] > 0.0
    near = invoke("recommend", "point", "--epsilon", 1, "--candidates", 9, "--metric", "squared")
    assert near.exit_code in (0, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("frequency", "--epsilon", 2), "--categories: are needed for task 'frequency'"),
        (("frequency", "--epsilon", 2, "--categories", "2,x"), "--categories: must be a number"),
        (("mean", "--epsilon", -1), "--epsilon: must be above zero"),
        (("mean", "--epsilon", 1, "--low", 0), "--low and --high: both are needed"),
        (("mean", "--epsilon", 1, "--low", 1, "--high", 0), "--low and --high: "),
        (("median", "--epsilon", 1), "task: must be one of"),
        (("vector", "--epsilon", 1, "--features", 3, "--norm", "l3"), "--norm: must be one of"),
    ],
)
def test_what_is_refused(arguments: tuple[object, ...], message: str) -> None:
    result = invoke("recommend", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
