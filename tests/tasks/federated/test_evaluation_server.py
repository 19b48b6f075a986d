"""A server that reads records off evaluations, and whatever else may leave a client without a mechanism."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import (
    Bucketed,
    ClientAccount,
    DecodingStrategy,
    InProcessGrid,
    PrivateUpdateMod,
    Randomized,
    UnprotectedMessageWarning,
    flower,
    run_in_process,
    to_record,
)
from bitldp.federated.client.mod import BUDGET_SENTENCE, FAILURE_SENTENCE, OTHERS_SENTENCE, REPORT
from bitldp.ledger import Ledger, NoLedgerError
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

pytestmark = pytest.mark.filterwarnings("ignore::bitldp.federated.RunBudgetWarning")

SECRET = np.array([0.8284271247, -0.1415926536, 0.5772156649])
"""The one record of the client."""

TRAIN = {"mechanism": lambda d: bitldp.Duchi(epsilon=2.0, features=d), "clip": 1.0}
ACCURACY = bitldp.Duchi(epsilon=0.5, interval=(-1.0, 1.0))
LETTERS = {float(each) for each in ACCURACY.decode(np.array([[0], [1]])).ravel()}


def private(**options):
    return PrivateUpdateMod(**TRAIN, **{"budget": 10.0, "ledger": "run", **options})


def loss(model: np.ndarray) -> float:
    return float(SECRET @ model)


class Server:
    """Asks a client whatever it likes, and keeps every byte that comes back."""

    def __init__(self, mod, evaluate=None, **node):
        self.called, self.bytes = [], b""
        app = ClientApp(mods=[] if mod is None else [mod])

        def reply(message, context):
            self.called.append(message.metadata.message_type)
            if evaluate is not None:
                return evaluate(message, context)
            (model,) = message.content["arrays"].to_numpy_ndarrays()
            return Message(
                RecordDict(
                    {
                        "arrays": ArrayRecord({"w": Array(SECRET)}),
                        "metrics": MetricRecord({"loss": loss(model), "num-examples": 1, "accuracy": 0.25}),
                        "more": MetricRecord({"gradient": SECRET.tolist()}),
                        "config": ConfigRecord({"text": str(SECRET[0])}),
                    }
                ),
                reply_to=message,
            )

        for register in (app.train, app.evaluate, app.query):
            register()(reply)
        app.evaluate("again")(reply)
        self.grid = InProcessGrid(app, 1, recorder=self._record, node_config=node)
        self.context = self.grid.contexts[2]

    def _record(self, node, data):
        self.bytes += data

    def ask(self, model, kind="evaluate", turn=1):
        content = {"config": ConfigRecord({"server-round": turn})}
        content["arrays"] = to_record({"w": np.array(model, dtype=float)})
        with flower.identity(1):
            (reply,) = self.grid.send_and_receive([Message(RecordDict(content), 2, kind)])
        return reply

    def attack(self):
        """Send unit vectors, and read the record off the losses; NaN for what is not said."""
        found = []
        for unit in np.eye(3):
            reply = self.ask(unit)
            metrics = {} if reply.has_error() else dict(reply.content["metrics"])
            found.append(metrics.get("loss", math.nan))
        return np.array(found)

    def spent(self):
        return ClientAccount(10.0, path="run").ledger(self.context).spent

    def assert_nothing_private(self):
        assert self.bytes
        for value in (*SECRET, 0.25):
            for kind in ("<f4", "<f8"):
                assert np.array(value, kind).tobytes() not in self.bytes
            assert str(value)[:6].encode() not in self.bytes


def test_an_ordinary_app_gives_its_record_away():
    server = Server(None)
    np.testing.assert_array_equal(server.attack(), SECRET)
    with pytest.raises(AssertionError):
        server.assert_nothing_private()


def test_by_default_the_same_server_learns_nothing():
    server = Server(private())
    assert np.isnan(server.attack()).all()
    for kind in ("evaluate", "evaluate.again", "query"):
        assert server.ask(SECRET, kind).error.reason == OTHERS_SENTENCE
    assert server.called == []
    assert server.spent() == 0.0
    server.assert_nothing_private()
    reply = server.ask([0.0, 0.0, 0.0], "train")  # what trains is answered, and nothing beside its report
    assert {name: list(record) for name, record in reply.content.items()} == {
        "arrays": [REPORT],
        "metrics": ["num-examples"],
    }
    assert reply.content["metrics"]["num-examples"] == 1
    server.assert_nothing_private()
    assert server.spent() == pytest.approx(2.0)


def test_only_a_spelled_word_and_a_warning_let_replies_pass():
    with pytest.warns(UnprotectedMessageWarning, match="can read records off it"):
        mod = private(others="pass")
    server = Server(mod)
    np.testing.assert_array_equal(server.attack(), SECRET)
    assert server.spent() == 0.0


def test_not_even_there_does_the_text_of_an_exception_pass():
    def fail(message, context):
        raise ValueError(f"record 0 is {SECRET[0]}")

    with pytest.warns(UnprotectedMessageWarning):
        server = Server(private(others="pass"), fail)
    for kind in ("evaluate", "query"):
        assert server.ask(SECRET, kind).error.reason == FAILURE_SENTENCE
    server.assert_nothing_private()


def test_a_client_of_the_older_interface_tells_no_properties():
    built = []

    def client_fn(context):
        built.append(context)
        raise AssertionError("asked")

    app = ClientApp(client_fn, mods=[private()])
    context = Server(None).context
    with flower.identity(1):
        for kind in ("get_properties", "get_parameters", "reconnect", "evaluate", "query"):
            reply = app(Message(RecordDict(), 2, kind), context)
            assert reply.error.reason == OTHERS_SENTENCE
        assert app(Message(RecordDict(), 2, "train"), context).error.reason == FAILURE_SENTENCE
    assert built == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"others": "pass"}, r"evaluations and queries \(others='pass'\)"),
        ({"others": "pass", "metrics": {"accuracy": ACCURACY}}, r"replies to queries \(others='pass'\)"),
        ({"keep": ("loss",)}, r"the metrics 'loss' of every training message \(keep\)"),
        ({"examples": "exact"}, r"the number of examples \(examples='exact'\)"),
        ({"examples": Bucketed()}, r"the bucket of the number of examples"),
    ],
)
def test_whatever_leaves_as_it_is_is_said_once(options, message):
    with pytest.warns(UnprotectedMessageWarning, match=message) as caught:
        private(ledger=None, **options)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_what_is_covered_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({}, {"examples": 5}, {"examples": Randomized()}, {"metrics": {"accuracy": ACCURACY}}):
            private(ledger=None, **options)


# -- metrics


def test_a_metric_leaves_through_its_mechanism_and_is_charged():
    server = Server(private(metrics={"loss": ACCURACY, "accuracy": ACCURACY}, rng=7))
    for turn in (1, 2, 3):
        reply = server.ask([1.0, 0.0, 0.0], turn=turn)
        metrics = dict(reply.content["metrics"])
        assert list(reply.content) == ["metrics"]
        assert metrics.pop("num-examples") == 1
        assert set(metrics) == {"loss", "accuracy"}
        assert set(metrics.values()) <= LETTERS
        assert server.spent() == pytest.approx(turn * 1.0)
    notes = [entry.note for entry in ClientAccount(10.0, path="run").ledger(server.context).entries]
    assert notes == ["evaluation metric loss", "evaluation metric accuracy"]
    server.assert_nothing_private()


def test_the_attack_through_a_mechanism_ends_with_the_budget():
    server = Server(private(metrics={"loss": ACCURACY}, budget=2.0))
    found = [server.attack() for _ in range(4)]
    said = np.concatenate(found)
    assert set(said[:4]) <= LETTERS
    assert np.isnan(said[4:]).all()
    assert len(server.called) == 4  # nothing is evaluated in vain
    assert ClientAccount(2.0, path="run").ledger(server.context).spent == pytest.approx(2.0)
    assert server.ask(SECRET).error.reason == BUDGET_SENTENCE
    assert server.ask(SECRET, "train").error.reason == BUDGET_SENTENCE
    server.assert_nothing_private()


UNBIASED = {
    "Duchi": bitldp.Duchi(epsilon=1.0, interval=(0.0, 1.0)),
    "Piecewise": bitldp.Piecewise(epsilon=1.0, interval=(0.0, 1.0)),
    "Hybrid": bitldp.Hybrid(epsilon=2.0, interval=(0.0, 1.0)),
    "Laplace": bitldp.Laplace(epsilon=2.0, interval=(0.0, 1.0)),
    "MVU": bitldp.MVU(epsilon=2.0, interval=(0.0, 1.0)),
    "BRR": bitldp.BRR(5, epsilon=2.0, m=1, interval=(0.0, 1.0), rounding="dither"),
    "FRR": bitldp.FRR(1, bits=6, integer_bits=1, epsilon=6.0),
}


@pytest.mark.parametrize("name", UNBIASED)
@pytest.mark.slow
def test_the_mean_of_what_leaves_is_the_metric(name):
    """Of n = 3,000 reports, five standard errors about the mean: alpha below 1e-6 for each mechanism."""
    mechanism, n = UNBIASED[name], 3000
    evaluation = private(metrics={"accuracy": mechanism}).evaluation
    values = evaluation.clipped({"accuracy": 0.25, "loss": 3.0}, refuse=False)
    seeds = np.random.SeedSequence(11).spawn(n)
    said = np.array([evaluation.release(values, seed)["accuracy"] for seed in seeds])
    assert abs(said.mean() - 0.25) < 5.0 * said.std(ddof=1) / math.sqrt(n) + 1e-12
    assert said.std() > 0.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, -1e300, 3])
def test_no_value_is_too_strange_to_be_released(value):
    """Whether a loss is finite may depend on the records: it is clipped, and charged all the same."""

    def evaluate(message, context):
        return Message(RecordDict({"m": MetricRecord({"loss": value})}), reply_to=message)

    server = Server(private(metrics={"loss": ACCURACY}), evaluate)
    assert server.ask(SECRET).content["metrics"]["loss"] in LETTERS
    assert server.spent() == pytest.approx(0.5)
    strict = Server(private(metrics={"loss": ACCURACY}, nonfinite="refuse"), evaluate)
    assert strict.ask(SECRET).has_error() is not math.isfinite(value)
    assert strict.spent() == pytest.approx(0.5 if math.isfinite(value) else 0.0)


@pytest.mark.parametrize(
    "reply",
    [
        RecordDict(),
        RecordDict({"m": MetricRecord({"accuracy": 0.5})}),
        RecordDict({"m": MetricRecord({"loss": [0.25, 0.5]})}),
        RecordDict({"loss": ConfigRecord({"loss": 0.25})}),
    ],
)
def test_a_metric_that_is_not_there_is_one_sentence_and_free(reply):
    found = []
    mod = private(metrics={"loss": ACCURACY}, on_failure=found.append)
    server = Server(mod, lambda message, context: Message(reply, reply_to=message))
    assert server.ask(SECRET).error.reason == FAILURE_SENTENCE
    assert server.spent() == 0.0
    assert len(found) == 1
    assert "0.25" not in str(found[0])
    server.assert_nothing_private()


def test_a_failing_evaluation_is_one_sentence():
    def fail(message, context):
        raise ValueError(f"record 0 is {SECRET[0]}")

    def error(message, context):
        return flower.refusal(message, 0, f"record 0 is {SECRET[0]}")

    for evaluate in (fail, error):
        server = Server(private(metrics={"loss": ACCURACY}), evaluate)
        assert server.ask(SECRET).error.reason == FAILURE_SENTENCE
        assert server.spent() == 0.0
        server.assert_nothing_private()


def test_numbers_of_examples_are_covered_in_evaluations():
    metrics = {"loss": ACCURACY}
    assert Server(private(metrics=metrics)).ask(SECRET).content["metrics"]["num-examples"] == 1
    server = Server(private(metrics=metrics, examples=Randomized((1, 10, 100), epsilon=1.0)))
    assert server.ask(SECRET).content["metrics"]["num-examples"] in (1, 10, 100)
    assert server.spent() == pytest.approx(1.5)


def test_the_same_question_has_the_same_answer_at_no_charge(tmp_path):
    mod = private(metrics={"loss": bitldp.Laplace(epsilon=0.5)}, repeat=tmp_path / "last.npz")
    server = Server(mod)

    def said(model, kind="evaluate", turn=1):
        return server.ask(model, kind, turn).content["metrics"]["loss"]

    first = said([1.0, 0.0, 0.0])
    assert said([1.0, 0.0, 0.0]) == first
    assert server.spent() == pytest.approx(0.5)
    report = server.ask([1.0, 0.0, 0.0], "train").content["arrays"][REPORT].data
    assert said([1.0, 0.0, 0.0]) == first  # training between does not make it forget
    assert server.ask([1.0, 0.0, 0.0], "train").content["arrays"][REPORT].data == report
    assert server.spent() == pytest.approx(2.5)
    for other in ({"model": [0.0, 1.0, 0.0]}, {"turn": 2}, {"kind": "evaluate.again"}):
        said([1.0, 0.0, 0.0])
        before = server.spent()
        said(**{"model": [1.0, 0.0, 0.0], **other})
        assert server.spent() == pytest.approx(before + 0.5)


def test_seeded_metrics_differ_between_rounds_questions_and_names():
    def said(turn=1, model=(1.0, 0.0, 0.0), seed=5):
        laplace = bitldp.Laplace(epsilon=0.001)
        server = Server(private(metrics={"loss": laplace, "accuracy": laplace}, rng=seed))
        metrics = server.ask(model, turn=turn).content["metrics"]
        return metrics["loss"], metrics["accuracy"]

    assert said() == said()
    every = [said(), said(turn=2), said(model=(1.0, 1e-9, 0.0)), said(seed=6)]
    assert len({each for pair in every for each in pair}) == 8


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([("loss", ACCURACY)], "metrics: must be a mapping"),
        ({"loss": 0.5}, "metrics: 'loss' must be a mechanism"),
        ({3: ACCURACY}, "metrics: its keys must be names"),
        ({"num-examples": ACCURACY}, "metrics: its keys must be names"),
        ({"loss": bitldp.GRR(4, epsilon=1.0)}, "metrics: 'loss' must be a mechanism of one number"),
        (
            {"loss": bitldp.Duchi(epsilon=1.0, features=2)},
            "metrics: 'loss' must be a mechanism of one number",
        ),
        ({"loss": bitldp.BRR(9, epsilon=1.0, m=3, interval=(0.0, 1.0))}, "allow_biased"),
    ],
)
def test_bad_metrics(metrics, message):
    with pytest.raises((TypeError, ValueError), match=message):
        private(metrics=metrics)


# -- whole runs


def run(mod, clients=40, **options):
    client, server = ClientApp(mods=[mod]), ServerApp()

    def work(message, context):
        metrics = MetricRecord({"accuracy": 0.75, "num-examples": 30})
        return Message(RecordDict({"arrays": message.content["arrays"], "m": metrics}), reply_to=message)

    client.train()(work)
    client.evaluate()(work)

    @server.main()
    def main(grid, context):
        strategy = DecodingStrategy(**TRAIN, **options)
        strategy.start(grid, to_record({"w": np.zeros(3)}), num_rounds=2, timeout=60)

    return run_in_process(server, client, clients)


@pytest.mark.parametrize("asked", [True, False])
def test_flowers_strategies_go_on_where_evaluations_are_refused(asked):
    made = run(private(), **({"metrics": {"accuracy": ACCURACY}} if asked else {}))
    assert made.result.train_metrics_clientapp[2]["reports"] == 40
    judged = made.result.evaluate_metrics_clientapp
    assert (dict(judged[2]) if asked else judged) == (
        {"clients": 40, "reports": 0, "failed": 40, "missing": 0, "rejected": 0, "failed-other": 40}
        if asked
        else {}
    )
    assert all(
        ClientAccount(10.0, path="run").ledger(each).spent == pytest.approx(4.0)
        for each in made.grid.contexts.values()
    )


@pytest.mark.statistical
def test_flowers_strategies_average_released_metrics():
    """The mean of 400 reports of 0.75 at epsilon 4, seeded; five standard errors: alpha below 1e-6."""
    metrics = {"accuracy": bitldp.Duchi(epsilon=2.0, interval=(0.0, 1.0))}
    made = run(private(metrics=metrics, rng=1), clients=400, metrics=metrics)
    for turn in (1, 2):
        (metrics,) = [dict(made.result.evaluate_metrics_clientapp[turn])]
        assert (metrics["clients"], metrics["reports"], metrics["rejected"]) == (400, 400, 0)
        assert metrics["stderr-accuracy"] == pytest.approx(
            math.sqrt(bitldp.Duchi(epsilon=2.0).mean_variance() / 4 / 400), rel=0.2
        )
        assert abs(metrics["accuracy"] - 0.75) < 5.0 * math.sqrt(
            bitldp.Duchi(epsilon=2.0).mean_variance() / 4 / 400
        )
    assert all(
        ClientAccount(10.0, path="run").ledger(each).spent == pytest.approx(8.0)
        for each in made.grid.contexts.values()
    )


# -- ledgers that are files


def test_a_client_without_its_ledger_sends_nothing(tmp_path, caplog):
    def place(context):
        return tmp_path / "mounted" / "ledger.json"

    server = Server(private(ledger=place, metrics={"loss": ACCURACY}))
    for _ in range(2):
        for kind in ("train", "evaluate"):
            assert server.ask([0.0, 0.0, 0.0], kind).error.reason == FAILURE_SENTENCE
        (tmp_path / "mounted").mkdir(exist_ok=True)  # an empty folder is no budget either
    assert "NoLedgerError" in caplog.text
    assert server.called == []
    server.assert_nothing_private()
    with Ledger.open(place(None), budget=10.0, create=True):
        pass
    assert not server.ask([0.0, 0.0, 0.0], "train").has_error()
    assert not server.ask([0.0, 0.0, 0.0]).has_error()
    assert Ledger.load(place(None)).spent == pytest.approx(2.5)
    place(None).unlink()
    assert server.ask([0.0, 0.0, 0.0], "train").error.reason == FAILURE_SENTENCE
    assert not place(None).exists()


def test_a_ledger_that_vanishes_during_a_round_is_not_begun_anew(tmp_path):
    path = tmp_path / "ledger.json"
    with Ledger.open(path, budget=10.0, create=True):
        pass

    def unmounted(message, context):
        path.unlink()
        metrics = MetricRecord({"loss": 0.25})
        return Message(RecordDict({"arrays": message.content["arrays"], "m": metrics}), reply_to=message)

    server = Server(private(ledger=path, metrics={"loss": ACCURACY}), unmounted)
    assert server.ask([0.0, 0.0, 0.0], "train").error.reason == FAILURE_SENTENCE
    assert len(server.called) == 1
    assert not path.exists()


def test_a_mod_says_at_once_that_its_ledger_is_missing(tmp_path):
    path = tmp_path / "ledger.json"
    with pytest.raises(NoLedgerError, match="there is no ledger"):
        private(ledger=path)
    with pytest.raises(ValueError, match="folder"):
        private(ledger=tmp_path / "no" / "ledger.json", create=True)
    with pytest.raises(TypeError, match="create already"):
        private(budget=ClientAccount(1.0), ledger=None, create=True)
    server = Server(private(ledger=path, create=True))
    assert not server.ask([0.0, 0.0, 0.0], "train").has_error()
    private(ledger=path)


def test_released_data_is_charged_to_a_ledger_that_was_begun(tmp_path):
    from bitldp.federated import PrivateData

    path, link = tmp_path / "ledger.json", tmp_path / "link.json"
    mechanism = bitldp.Duchi(epsilon=1.0, features=3)

    def data(name="a.npz", **options):
        return PrivateData(tmp_path / name, mechanism, ledger=path, **options)

    with pytest.raises(NoLedgerError):
        data(budget=5.0)
    with Ledger.open(path, budget=1.5, create=True):
        pass
    with pytest.raises(ValueError, match=r"was created with budget 1\.5"):
        data(budget=5.0).get(lambda: (SECRET[None], None))
    link.symlink_to(path)
    made = PrivateData(tmp_path / "a.npz", mechanism, ledger=link)
    first = made.get(lambda: (SECRET[None], None))
    assert Ledger.load(path).spent == mechanism.guarantee.record
    (tmp_path / "b.npz").symlink_to(tmp_path / "a.npz")  # two names of one copy
    again = data("b.npz").get(lambda: pytest.fail("the original was asked for"))
    (tmp_path / "c.npz").symlink_to(tmp_path / "disk.npz")  # where nothing is yet
    PrivateData(tmp_path / "c.npz", mechanism).get(lambda: (SECRET[None], None))
    assert (tmp_path / "c.npz").is_symlink()
    assert (tmp_path / "disk.npz").is_file()
    np.testing.assert_array_equal(first.features, again.features)
    path.unlink()
    with pytest.raises(NoLedgerError):
        made._charge("more")
