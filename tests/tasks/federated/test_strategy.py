"""The server's strategy: unbiased means, and a stated outcome for every client that fails."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import (
    ClientAccount,
    DecodingStrategy,
    InProcessGrid,
    Layout,
    PrivateUpdateMod,
    RoundFailedError,
    UpdateCodec,
    flower,
    from_record,
    run_in_process,
    to_record,
)
from bitldp.federated.client.mod import REPORT, STYPE
from bitldp.federated.server.mean import ReportMean
from bitldp.federated.wire.codec import UpdatePlan
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from support.federated_app import CODEC, EPSILON, initial, make_client, make_server, target

pytestmark = pytest.mark.filterwarnings("ignore::bitldp.federated.RunBudgetWarning")

LAYOUT = Layout.of(initial())


def strategy(codec=CODEC, **options) -> DecodingStrategy:
    return DecodingStrategy(codec, **{"fraction_evaluate": 0.0, **options})


def mod(codec=CODEC, **options) -> PrivateUpdateMod:
    return PrivateUpdateMod(codec, **{"budget": 1000.0, "ledger": "run", "rng": 3, **options})


def run(client=None, clients=4, rounds=1, server=None, **options):
    return run_in_process(
        make_server(server or strategy(), rounds), client or make_client(mod()), clients, **options
    )


def report(data: bytes, examples=1):
    """Return a client that replies with bytes of its own, whatever a mod would do."""

    def before(message, context):
        array = Array("uint8", (len(data),), STYPE, data)
        metrics = MetricRecord({"num-examples": examples})
        content = RecordDict({"arrays": ArrayRecord({REPORT: array}), "metrics": metrics})
        return Message(content, reply_to=message)

    return before


def one_bad(bad):
    """Return an app whose client 0 runs `bad` without a mod, the others the private app."""
    good, other = make_client(mod()), make_client(None, bad)
    return lambda message, context: (other if context.node_id == 2 else good)(message, context)


def vector(result):
    return LAYOUT.flatten(from_record(result.arrays))


@pytest.fixture
def released(monkeypatch):
    """Collect what each client releases, decoded; the client is told by the update that is perturbed."""
    found, perturb = {}, UpdatePlan.perturb

    def spy(plan, vector, *, rng):
        (client,) = (
            client
            for client in range(10)
            if np.allclose(vector, LAYOUT.flatten({n: a / 2 for n, a in target(client).items()}))
        )
        data = perturb(plan, vector, rng=rng)
        found[client] = plan.decode(data)
        return data

    monkeypatch.setattr(UpdatePlan, "perturb", spy)
    return found


def test_the_mean_of_what_was_released_is_added(released):
    clients = 5
    found = run(clients=clients).result
    plan, grid = CODEC.plan(LAYOUT), InProcessGrid(make_client(mod()), clients)
    assert len(list(grid.get_node_ids())) == len(released) == clients
    released = list(released.values())
    np.testing.assert_allclose(vector(found), np.mean(released, axis=0), rtol=1e-6)
    metrics = found.train_metrics_clientapp[1]
    errors = np.std(released, axis=0, ddof=1) / np.sqrt(clients)
    assert metrics["stderr"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert metrics["bytes-up"] == clients * plan.header.size
    assert (metrics["clients"], metrics["reports"], metrics["failed"], metrics["missing"]) == (5, 5, 0, 0)
    arrays = from_record(found.arrays)
    assert [(name, each.shape, each.dtype) for name, each in arrays.items()] == [
        (name, each.shape, each.dtype) for name, each in initial().items()
    ]


@pytest.mark.statistical
@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_ten_thousand_clients_without_bias(norm):
    """N = 10^4; no coordinate beyond 4.9 standard errors: alpha below 1e-4 in all (seeded)."""
    n, size = 10_000, 20
    layout = Layout.of({"w": np.zeros(size)})
    plan = UpdateCodec(bitldp.Duchi(epsilon=2.0, features=size), clip=1.0, norm=norm).plan(layout)
    updates = np.random.default_rng(1).normal(0.05, 0.3, (n, size))
    clipped = np.stack([plan.clipped(each) for each in updates])
    order = {"l2": 2, "l1": 1, "linf": np.inf}[norm]
    assert np.all(np.linalg.norm(clipped, order, axis=1) <= 1.0)
    assert np.any(clipped != updates)
    mean = ReportMean(size)
    for client, update in enumerate(updates):
        mean.add(plan.decode(plan.perturb(update, rng=client)), 1.0)
    assert np.all(np.abs(mean.value - clipped.mean(axis=0)) < 4.9 * mean.errors())
    # and the standard error is the mechanism's, plus the clients' own spread
    exact = np.mean(plan.mechanism.variance(clipped), axis=0) + clipped.var(axis=0)
    np.testing.assert_allclose(mean.errors() ** 2, exact / n, rtol=0.05)


def test_the_ledgers_hold_rounds_times_epsilon():
    rounds = 4
    found = run(rounds=rounds)
    for context in found.grid.contexts.values():
        assert ClientAccount(1000.0, path="run").ledger(context).spent == rounds * EPSILON
    assert sorted(found.result.train_metrics_clientapp) == [1, 2, 3, 4]


def _dies(message, context):
    raise RuntimeError("the process died")


@pytest.mark.parametrize(
    ("bad", "counts"),
    [
        (_dies, {"failed": 1}),
        (report(b"garbage"), {"rejected": 1, "rejected-garbage": 1}),
        (report(b""), {"rejected": 1, "rejected-garbage": 1}),
        (None, {"rejected": 1, "rejected-garbage": 1}),  # a plain client, which sends its weights
    ],
    ids=["dies", "garbage", "empty", "plain"],
)
def test_one_client_fails_and_the_others_are_averaged(bad, counts):
    metrics = run(one_bad(bad), clients=4).result.train_metrics_clientapp[1]
    assert metrics["reports"] == 3
    assert metrics["clients"] == 4
    for name, count in {"failed": 0, "missing": 0, "rejected": 0, **counts}.items():
        assert metrics[name] == count


def other(mechanism, **options):
    codec = UpdateCodec(mechanism, **{"clip": 0.5, "norm": "linf", **options})
    return codec.plan(LAYOUT).at(1).perturb(np.zeros(LAYOUT.size), rng=1).tobytes()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (other(CODEC.mechanism)[:-1], "truncated"),
        (other(CODEC.mechanism) + b"\0", "trailing"),
        (other(lambda d: bitldp.Duchi(epsilon=1.0, features=d)), "mechanism"),
        (other(lambda d: bitldp.Piecewise(epsilon=60.0, features=d)), "mechanism"),
        (other(CODEC.mechanism, clip=1.0), "settings"),
        (other(CODEC.mechanism)[:-1] + b"\xff", "checksum"),
    ],
)
def test_a_foreign_report_is_counted_by_its_reason(data, reason):
    metrics = run(one_bad(report(data)), clients=3).result.train_metrics_clientapp[1]
    assert (metrics["reports"], metrics["rejected"], metrics[f"rejected-{reason}"]) == (2, 1, 1)


def test_what_was_rejected_does_not_count():
    alone = run(one_bad(_dies), clients=4).result
    foreign = run(one_bad(report(b"garbage")), clients=4).result
    np.testing.assert_array_equal(vector(alone), vector(foreign))


def test_all_clients_failing_ends_the_run():
    with pytest.raises(
        RoundFailedError, match=r"round 1: 0 of 4 .*4 failed, 0 missing, 0 rejected.*debug=True"
    ):
        run(make_client(mod(), _dies))
    with pytest.raises(RoundFailedError, match=r"4 rejected, 4 rejected-garbage.*PrivateUpdateMod"):
        run(make_client(None))


def test_too_few_reports_end_the_run():
    server = strategy(min_fraction=0.8)
    with pytest.raises(RoundFailedError, match="round 1: 3 of 4"):
        run(one_bad(_dies), server=server)
    assert run(one_bad(_dies), server=strategy(min_fraction=0.75)).result is not None


def test_one_client_spends_its_budget_and_the_others_go_on():
    poor, rich = make_client(mod(budget=EPSILON)), make_client(mod())

    def app(message, context):
        return (poor if context.node_id == 2 else rich)(message, context)

    metrics = run(app, clients=3, rounds=3).result.train_metrics_clientapp
    assert [metrics[turn]["reports"] for turn in (1, 2, 3)] == [3, 2, 2]
    assert [metrics[turn]["failed"] for turn in (1, 2, 3)] == [0, 1, 1]


class Losing(InProcessGrid):
    """A grid that loses the first reply, and delivers the second one twice."""

    def send_and_receive(self, messages, *, timeout=None):
        replies = list(super().send_and_receive(messages, timeout=timeout))
        return [*replies[1:], replies[1]] if replies else []


def test_lost_and_repeated_replies_are_counted():
    server, grid = strategy(), Losing(make_client(mod()), 4)
    with flower.identity(1):
        result = server.start(grid, to_record(initial()), num_rounds=1)
    metrics = result.train_metrics_clientapp[1]
    assert (metrics["reports"], metrics["missing"], metrics["rejected-unexpected"]) == (3, 1, 1)
    assert grid.result is result


def test_the_order_of_arrival_does_not_matter():
    found = []
    for shift in range(3):

        class Shuffling(InProcessGrid):
            def send_and_receive(self, messages, *, timeout=None, turn=shift):
                replies = list(super().send_and_receive(messages, timeout=timeout))
                order = np.random.default_rng(turn).permutation(len(replies))
                return [replies[place] for place in order]

        with flower.identity(1):
            result = strategy().start(Shuffling(make_client(mod()), 9), to_record(initial()), num_rounds=2)
        found.append(vector(result))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_weights_by_stated_examples(released, monkeypatch):
    heavy = {2: 100, 3: 1, 4: 1}
    parts = {node: make_client(mod(examples=count)) for node, count in heavy.items()}

    def app(message, context):
        return parts[context.node_id](message, context)

    server = strategy(weighting="examples", max_examples=50)
    found = run(app, clients=3, server=server).result
    monkeypatch.undo()
    released = np.stack([released[client] for client in range(3)])
    weights = np.array([50.0, 1.0, 1.0])  # 100 count as 50
    mean = np.average(released, axis=0, weights=weights)
    np.testing.assert_allclose(vector(found), mean, rtol=1e-6)
    errors = np.sqrt(1.5 * np.sum((weights[:, None] * (released - mean)) ** 2, axis=0)) / weights.sum()
    metrics = found.train_metrics_clientapp[1]
    assert metrics["stderr"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert metrics["largest-share"] == 50 / 52


def test_examples_that_nobody_states_are_not_weights():
    for options in ({"weighting": "examples"}, {"max_examples": 5}):
        with pytest.raises(TypeError, match="max_examples: the most that a client counts for"):
            strategy(**options)
    with pytest.raises(RoundFailedError, match="3 rejected-examples"):  # examples="fixed", the mod's default
        run(clients=3, server=strategy(weighting="examples", max_examples=50))


@pytest.mark.parametrize(
    ("update", "rate", "expected"), [("replace", 1.0, 0.0), ("gradient", -0.5, 1.0), ("difference", 2.0, 1.0)]
)
def test_what_the_mean_is_for(update, rate, expected):
    """The model begins at 1 and every client replies 0.25 higher: nearly noiseless at epsilon 600."""
    codec = UpdateCodec(
        lambda d: bitldp.Duchi(epsilon=600.0, features=d), clip=1.25, norm="linf", update=update
    )
    arrays = {name: np.ones_like(each) for name, each in initial().items()}

    def before(message, context):
        model = from_record(message.content["arrays"])
        made = ArrayRecord({name: Array(each + each.dtype.type(0.25)) for name, each in model.items()})
        metrics = MetricRecord({"num-examples": 1})
        return Message(RecordDict({"arrays": made, "metrics": metrics}), reply_to=message)

    server = strategy(codec, rate=rate)
    client = make_client(mod(codec), before)
    found = run_in_process(make_server(server, 1, arrays), client, 60).result
    step = 0.25 if update == "difference" else 1.25
    whole = expected + rate * step
    # a report is +-1.25, so a coordinate's standard deviation is at most 1.25/sqrt(60) = 0.17
    assert np.all(np.abs(vector(found) - whole) < 6 * 0.17 * abs(rate))
    assert abs(vector(found).mean() - whole) < 6 * 0.17 * abs(rate) / np.sqrt(18)


def test_integers_stay_the_servers_own():
    codec = UpdateCodec(
        lambda d: bitldp.Duchi(epsilon=EPSILON, features=d), clip=0.5, norm="linf", integers="keep"
    )
    arrays = {**initial(), "steps": np.array([7], np.int32), "mask": np.array([True, False])}
    found = run_in_process(make_server(strategy(codec), 2, arrays), make_client(mod(codec), _as_is), 3).result
    made = from_record(found.arrays)
    assert list(made) == list(arrays)
    np.testing.assert_array_equal(made["steps"], arrays["steps"])
    np.testing.assert_array_equal(made["mask"], arrays["mask"])
    assert made["steps"].dtype == np.int32
    with pytest.raises(TypeError, match="'steps' has dtype int32"):
        run_in_process(make_server(strategy(), 1, arrays), make_client(mod()), 3)


def _as_is(message, context):
    metrics = MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": message.content["arrays"], "metrics": metrics}), reply_to=message)


def test_a_run_goes_on_from_a_checkpoint():
    whole = run(clients=6, rounds=4, server=strategy(seed=8, fraction_train=0.5))
    first = run(clients=6, rounds=2, server=strategy(seed=8, fraction_train=0.5)).result
    rest = run_in_process(
        make_server(strategy(seed=8, fraction_train=0.5, first_round=3), 2, from_record(first.arrays)),
        make_client(mod()),
        6,
    ).result
    np.testing.assert_array_equal(vector(rest), vector(whole.result))
    assert sorted(rest.train_metrics_clientapp) == [3, 4]
    for turn in (3, 4):
        assert rest.train_metrics_clientapp[turn] == whole.result.train_metrics_clientapp[turn]


def test_the_choice_of_clients_is_seeded_and_leaves_the_global_generator_alone():
    def chosen(seed):
        found = run(clients=20, rounds=2, server=strategy(seed=seed, fraction_train=0.2)).grid.contexts
        return [node for node, context in found.items() if context.state]

    state = random.getstate()
    assert chosen(1) == chosen(1)
    assert Counter(map(tuple, (chosen(seed) for seed in range(6)))).most_common(1)[0][1] < 6
    assert random.getstate() == state


def test_no_training_is_no_failure():
    found = run(server=strategy(fraction_train=0.0)).result
    assert not found.train_metrics_clientapp


def test_one_report_has_no_standard_error():
    found = run(clients=1, server=strategy(min_train_nodes=1, min_available_nodes=1)).result
    assert "stderr" not in found.train_metrics_clientapp[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": np.inf}, "rate"),
        ({"weighting": "loss"}, "weighting"),
        ({"min_fraction": 1.5}, "min_fraction"),
        ({"min_fraction": np.nan}, "min_fraction"),
        ({"seed": -1}, "seed"),
        ({"first_round": 0}, "first_round"),
        ({"no_such": 1}, "no_such"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DecodingStrategy(CODEC, **options)


def test_a_rate_is_not_for_replacing():
    with pytest.raises(ValueError, match="rate"):
        DecodingStrategy(bitldp.Duchi(epsilon=1.0), clip=1.0, update="replace", rate=0.5)


def test_a_run_past_its_budget_ends_with_the_last_model():
    """Two rounds are paid for; the third fails for every client, and says why."""
    two = make_client(mod(budget=2 * CODEC.plan(LAYOUT).guarantee.record * CODEC.plan(LAYOUT).records))
    with pytest.raises(RoundFailedError, match=r"4 failed-budget") as failed:
        run(two, rounds=5)
    result = failed.value.result
    assert list(result.train_metrics_clientapp) == [1, 2]
    whole = run(two, rounds=2)
    for name, array in from_record(result.arrays).items():
        np.testing.assert_array_equal(array, from_record(whole.result.arrays)[name])


def test_a_first_round_that_fails_ends_with_the_first_model():
    with pytest.raises(RoundFailedError, match=r"4 failed-step") as failed:
        run(make_client(mod(), _dies))
    for name, array in from_record(failed.value.result.arrays).items():
        np.testing.assert_array_equal(array, initial()[name])
