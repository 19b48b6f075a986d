"""Sums over two servers: what is counted, what is refused, what each side sees, and the noise."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("bitldp_prio", reason='needs pip install "bitldp[prio]": make test-prio')

from bitldp.channels.normal import continuous_sigma
from bitldp.sums import Count, Histogram, Number, Vector
from bitldp_prio import SumServer, TwoServerSum
from bitldp_prio._prio3 import Prio3
from bitldp_prio.two_servers import _joined, _parted

ROOT = Path(__file__).parents[2]
KEY = bytes(range(32))


def two(of: TwoServerSum) -> list[SumServer]:
    return [of.server(place, KEY) for place in (0, 1)]


def send(servers: list[SumServer], halves: Any) -> None:
    messages = [server.receive(half) for server, half in zip(servers, halves, strict=True)]
    for server, message in zip(servers, messages[::-1], strict=True):
        server.verify(message)


def collected(of: TwoServerSum, records: Any) -> Any:
    servers = two(of)
    for each in records:
        send(servers, of.report(each))
    return of.collect(*(server.total() for server in servers))


def survey(kind: Any = None, epsilon: float = 8.0, task: str = "test") -> TwoServerSum:
    """Return a sum whose counts are off by more than 12 with a chance below e^-40, unless asked for more."""
    return TwoServerSum(kind or Histogram(4), epsilon=epsilon, task=task)


def near(found: Any, expected: list[int]) -> None:
    assert np.abs(found.value - np.array(expected)).max() <= 12.0, found


def test_counts_are_those_of_the_records() -> None:
    near(collected(survey(), [0] * 30 + [1] * 60 + [3] * 90), [30, 60, 0, 90])
    labelled = collected(survey(Histogram(["yes", "no"])), ["no"] * 60 + ["yes"] * 30)
    assert labelled.n == 90
    near(labelled, [30, 60])
    near(collected(survey(Count()), [True, False, True, 1] * 20), [60])


def test_a_mean_is_that_of_the_records_within_its_interval() -> None:
    made = collected(survey(Number((0.0, 10.0), steps=1000)), np.linspace(0, 10, 50))
    assert abs(float(made.value) - 5.0) < 5.0 * float(made.stderr)
    assert float(made.stderr) < 0.1


@pytest.mark.slow
def test_a_mean_of_vectors_is_that_of_the_records_within_its_intervals() -> None:
    """Some are longer than the norm. Of 20 features none is off by seven standard errors: alpha 5e-11."""
    of = survey(Vector(20, 2.0))
    x = np.random.default_rng(1).normal(size=(60, 20))
    x *= np.linspace(0.5, 6.0, 60)[:, None] / np.linalg.norm(x, axis=1, keepdims=True)
    truth = x * np.minimum(1.0, 2.0 / np.linalg.norm(x, axis=1, keepdims=True))
    made = collected(of, x)
    assert (made.n, made.value.shape) == (60, (20,))
    assert np.abs(made.value - truth.mean(axis=0)).max() < 7.0 * made.stderr[0] < 0.7
    with pytest.raises(ValueError, match=r"^x: must be one record"):
        of.report(x[:2])


@pytest.mark.slow
def test_the_noise_of_vectors_is_that_of_two_servers() -> None:
    """Between vectors of a ball; one server's noise is enough, and near that of the central mechanism."""
    of = survey(Vector(50, 3.0), epsilon=1.0)
    assert 0.999 < of.guarantee.epsilon <= 1.0
    assert of.guarantee == of._noise.guarantee.central(2)
    kind = of.kind
    assert isinstance(kind, Vector)
    totals = [[_parted("total", each.total(), 2)[1] for each in two(of)] for _ in range(4)]
    noise = np.array([of._prio.unshard(each) for each in totals], dtype=float)
    alone = continuous_sigma(1.0, 1e-6) * 2.0 * 3.0 / kind.step
    assert noise.shape == (4, 64)
    # 256 numbers: their mean square is off by 0.09 on average, and here by less than ten times that
    assert 0.1 < np.mean(noise**2) / (2.0 * alone * alone) < 1.05 * 1.9


@pytest.mark.slow
@pytest.mark.parametrize("features", [3, 1000])
def test_a_vector_s_integers_are_bounded_and_so_is_a_liar(features: int) -> None:
    of = survey(Vector(features), epsilon=1.0)
    kind = of.kind
    assert isinstance(kind, Vector)
    low, high = of.entries
    assert low == -high
    spike, flat = np.eye(1, features)[0], np.full(features, features**-0.5)
    for seed in range(20):
        turned, _ = kind.encode(np.stack([spike, flat]), [bytes([seed]) * 32], None)
        assert np.abs(turned).max() <= high
    assert (
        high == kind.bounds[1] or 7.0 < high * math.sqrt(kind.coordinates) * kind.step < of.liar_factor * 1.01
    )
    assert of.liar_factor < 12.0
    assert survey(Count()).liar_factor == survey().liar_factor == 1.0


def test_a_liar_with_longer_vectors_is_dropped() -> None:
    """Integers four times as large as allowed, of a proof of that range, and a share that is raised later."""
    of = survey(Vector(5), epsilon=1.0)
    servers, nonce = two(of), os.urandom(16)
    assert isinstance(of.kind, Vector)
    length, (_, high) = of.kind.coordinates, of.entries
    send(servers, of.report(np.ones(5)))
    public, first, second = Prio3.vector(length, 8 * high).shard(of._context, nonce, [8 * high] * length)
    with pytest.raises(ValueError, match=r"is no message of this sum|proof of the report does not hold"):
        send(servers, [_joined(nonce, public, first), _joined(nonce, public, second)])
    nonce = os.urandom(16)
    public, first, second = of._prio.shard(of._context, nonce, [2 * high] * length)
    raised = bytes([first[0] ^ 4]) + first[1:]
    halves = [_joined(nonce, public, raised), _joined(nonce, public, second)]
    messages = [server.receive(half) for server, half in zip(servers, halves, strict=True)]
    for server, message in zip(servers, messages[::-1], strict=True):
        with pytest.raises(ValueError, match="the proof of the report does not hold"):
            server.verify(message)
    with pytest.raises(ValueError, match=r"^measurement: has another length, or a value that is"):
        of._prio.shard(of._context, nonce, [2 * high + 1] * length)
    assert [server.count for server in servers] == [1, 1]
    assert of.collect(*(server.total() for server in servers)).n == 1


@pytest.mark.statistical
def test_the_noise_has_the_variance_of_two_servers() -> None:
    """Of 800 sums of five counts each (n = 4,000): 7.5 standard errors of a variance, alpha below 1e-12."""
    of = survey(Histogram(5), epsilon=1.0)
    servers = [server.total for _ in range(800) for server in two(of)]
    law = of._noise.law
    rows = [
        of._prio.unshard([_parted("total", total(), 2)[1], _parted("total", other(), 2)[1]])
        for total, other in zip(servers[::2], servers[1::2], strict=True)
    ]
    values = np.array(rows, dtype=float).ravel()
    expected = 2.0 * law.variance
    fourth = 6.0  # kurtosis of two-sided geometric noise is about 6, of the sum of two less
    assert abs(np.mean(values**2) / expected - 1.0) < 7.5 * math.sqrt((fourth - 1.0) / len(values))
    assert of.guarantee.epsilon <= 1.0


def test_one_server_s_noise_keeps_the_whole_epsilon() -> None:
    """The ratio of neighbouring chances of one server's two-sided geometric noise, for two moved counts."""
    of = survey(Histogram(5), epsilon=1.0)
    chances = [float(each) for each in of._noise.law.ideal(1, 20)]
    assert all(2.0 * math.log(one / other) <= 1.0 + 1e-9 for one, other in pairwise(chances))
    assert survey(Histogram(5), epsilon=1.0)._noise.law.honest == 1


@pytest.mark.parametrize("place", [0, 1])
def test_a_changed_half_is_dropped_on_both_sides(place: int) -> None:
    of = survey()
    servers = two(of)
    send(servers, of.report(2))
    for at in (-1, (60, 30)[place]):  # its share, and what it knows of the other half
        halves = list(of.report(1))
        halves[place] = halves[place][:at] + bytes([halves[place][at] ^ 1]) + halves[place][at:][1:]
        messages = [server.receive(half) for server, half in zip(servers, halves, strict=True)]
        for server, message in zip(servers, messages[::-1], strict=True):
            with pytest.raises(ValueError, match=r"^(message|messages): (the proof|is no|about no)"):
                server.verify(message)
    assert [server.count for server in servers] == [1, 1]
    assert of.collect(*(server.total() for server in servers)).n == 1


def test_a_liar_cannot_count_twice_or_below_zero() -> None:
    """A client that proves another range, in place of 0 and 1, is refused: the proof is of the servers'."""
    of = survey(Count())
    servers = two(of)
    liar, nonce = Prio3.vector(1, 1000), os.urandom(16)
    public, first, second = liar.shard(of._context, nonce, [1000])
    halves = [_joined(nonce, public, first), _joined(nonce, public, second)]
    with pytest.raises(ValueError, match=r"is no message of this sum|proof of the report does not hold"):
        send(servers, halves)
    assert all(server.count == 0 for server in servers)


def test_a_half_says_nothing_of_its_record() -> None:
    """The same categories give halves of the same length, and the second one is a seed and no data."""
    of = survey(Histogram(16))
    sizes = {tuple(map(len, of.report(each))) for each in range(16)}
    assert len(sizes) == 1
    assert next(iter(sizes))[1] < next(iter(sizes))[0]


def test_replays_and_late_reports_are_refused() -> None:
    of = survey()
    servers = two(of)
    halves = of.report(1)
    send(servers, halves)
    with pytest.raises(ValueError, match=r"^report: was received before"):
        servers[0].receive(halves[0])
    with pytest.raises(ValueError, match=r"^message: about no report"):
        servers[0].verify(_joined(os.urandom(16), b""))
    first = servers[0].total()
    assert servers[0].total() == first  # the noise is added once
    with pytest.raises(ValueError, match=r"^report: the total was handed out"):
        servers[0].receive(of.report(1)[0])


def test_a_report_counts_in_its_own_sum_alone() -> None:
    of, other = survey(), survey(task="another")
    with pytest.raises(ValueError, match="the proof of the report does not hold"):
        send(two(other), of.report(1))


def test_totals_of_different_reports_are_refused() -> None:
    of = survey()
    servers, others = two(of), two(of)
    send(servers, of.report(1))
    send(others, of.report(1))
    with pytest.raises(ValueError, match=r"^total: the two servers have counted different reports"):
        of.collect(servers[0].total(), others[1].total())
    with pytest.raises(ValueError, match=r"^total: of another sum, or of the other server"):
        of.collect(servers[1].total(), servers[0].total())
    with pytest.raises(ValueError, match=r"^total: of no report"):
        of.collect(*(server.total() for server in two(of)))


@pytest.mark.parametrize(
    "garbage", [b"", b"\0", b"\xff" * 40, _joined(b"", b"", b""), _joined(bytes(16), b"", b"x")]
)
def test_garbage_is_no_message(garbage: bytes) -> None:
    of = survey()
    server = of.server(0, KEY)
    with pytest.raises(ValueError, match=r"(report|public|share): is no message of this sum"):
        server.receive(garbage)
    with pytest.raises(ValueError, match=r"^total"):
        of.collect(garbage, garbage)


def test_a_server_is_written_nowhere() -> None:
    with pytest.raises(TypeError, match=r"^SumServer: holds a total without noise"):
        pickle.dumps(survey().server(0, KEY))
    assert KEY.hex() not in repr(survey().server(0, KEY))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TwoServerSum("count", epsilon=1.0, task="t"), "^kind: must be"),
        (lambda: survey(epsilon=0.0), "^epsilon"),
        (lambda: survey(task=""), "^task: must be"),
        (lambda: survey().server(2, KEY), "^place"),
        (lambda: survey().server(0, b"short"), "^key: must be 32 bytes"),
        (lambda: survey().report(4), "^x"),
        (lambda: survey().report([1, 2]), "^x: must be one record"),
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.slow
def test_two_processes_on_this_machine() -> None:
    """The example as a user runs it: 300 clients, of whom one lies and is dropped."""
    command = [sys.executable, str(ROOT / "examples" / "two_servers" / "collect.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "3 values of 299 reports" in run.stdout
    assert run.stderr.count("the proof of the report does not hold") == 2
