"""The federated systems: what a run keeps, goes on from and promises, in small runs of a few rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.federated import RoundFailedError
from bitldp.ledger import Ledger
from bitldp_papers import NAMES, Settings, get
from bitldp_papers.run.folder import RunFolder
from support.small_runs import SMALL, model, run, same


@pytest.mark.parametrize("name", SMALL)
def test_a_run_says_what_it_did_and_goes_on_where_it_stopped(name: str, tmp_path: Path) -> None:
    rounds = SMALL[name]["rounds"]
    whole, rows = run(name, tmp_path / "whole")
    assert [row["round"] for row in rows] == list(range(rounds + 1))
    assert whole.rounds == rounds
    assert whole.bytes_up == sum(row.get("bytes-up", 0) for row in rows) > 0
    assert whole.score == rows[-1][whole.metric]
    assert whole.privacy.record > 0.0
    assert json.loads((tmp_path / "whole" / "summary.json").read_text())["rounds"] == rounds
    # Cut after the first round, then gone on with: a restart of the server between rounds.
    cut = tmp_path / "cut"
    system = get(name)
    settings = system.configure(preset="quick", **{**SMALL[name], "out": str(cut)})

    def stop(row: Any) -> None:
        if row["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        system.run(settings, seeded=True, watcher=stop)
    assert int(model(cut)["round"]) == 1
    resumed, again = run(name, cut, resume=True)
    assert same(model(cut), model(tmp_path / "whole"))
    assert [row["round"] for row in again] == list(range(rounds + 1))
    assert resumed.score == whole.score
    assert resumed.bytes_up == whole.bytes_up
    # Nothing is left to do: the summary is the same.
    assert run(name, cut, resume=True)[0].score == whole.score


@pytest.mark.parametrize("name", SMALL)
def test_threads_change_nothing(name: str, tmp_path: Path) -> None:
    run(name, tmp_path / "one", rounds=2)
    run(name, tmp_path / "three", rounds=2, threads=3)
    assert same(model(tmp_path / "one"), model(tmp_path / "three"))


def test_releases_are_charged_once_and_served_every_round(tmp_path: Path) -> None:
    summary, _ = run("bitrand", tmp_path)
    folders = sorted((tmp_path / "clients").iterdir())
    assert len(folders) == 3
    for folder in folders:
        ledger = Ledger.load(folder / "ledger.json")
        assert ledger.spent == pytest.approx(summary.privacy.record, rel=1e-12)
        assert len(ledger.entries) == 2  # features and labels, whatever the rounds


def test_updates_are_charged_every_round_and_leave_as_reports_alone(tmp_path: Path) -> None:
    sent: list[bytes] = []
    summary, rows = run(
        "bitrand",
        tmp_path,
        place="updates",
        mechanism="hm",
        epsilon=6.0,
        recorder=lambda node, data: sent.append(data),
    )
    assert summary.privacy.record == pytest.approx(6.0)
    assert len(sent) == 9  # 3 clients, 3 rounds
    assert all(row["reports"] == 3 for row in rows[1:])
    for folder in (tmp_path / "clients").iterdir():
        assert Ledger.load(folder / "ledger.json").spent == pytest.approx(6.0)
    # Far fewer bytes than the model: no array but the packed report is in a reply.
    assert max(map(len, sent)) < 1000 < sum(array.nbytes for array in model(tmp_path).values())


def test_an_anonymiser_claims_what_the_coordinates_do_not_have(tmp_path: Path) -> None:
    given = {"place": "updates", "mechanism": "ldp-fl", "epsilon": 1.0, "anonymiser": True, "rounds": 1}
    summary, _ = run("bitrand", tmp_path, **given)
    size = sum(array.size for name, array in model(tmp_path).items() if name != "round")
    assert summary.privacy.claimed == 1.0
    assert summary.privacy.record == pytest.approx(size)


@pytest.mark.parametrize(
    ("task", "metric"), [("sgd", "accuracy"), ("vectors", "accuracy"), ("trees", "rmse")]
)
def test_the_tasks_of_brr(task: str, metric: str, tmp_path: Path) -> None:
    given = {"task": task, "data": "breast_cancer", "rounds": 2, "mechanism": "brr-best", "depth": 2}
    summary, rows = run("brr", tmp_path, **given)
    assert summary.metric == metric
    # One release of 30 features, or two of a network's weights or of four leaves, at epsilon 4 a number.
    numbers = {"sgd": 2 * (30 * 4 + 4 + 4 * 2 + 2), "vectors": 30, "trees": 2 * 4}[task]
    assert summary.privacy.record == pytest.approx(4.0 * numbers)
    assert summary.privacy.claimed == 4.0
    spent = [Ledger.load(folder / "ledger.json").spent for folder in (tmp_path / "clients").iterdir()]
    assert spent == pytest.approx([summary.privacy.record] * 3)
    assert all(row[metric] >= 0.0 for row in rows)
    record, _ = run("brr", tmp_path / "record", **given, unit="record")
    assert record.privacy.record == pytest.approx(4.0)


def test_trees_fit_what_is_there(tmp_path: Path) -> None:
    given = {"task": "trees", "data": "breast_cancer", "mechanism": "noiseless", "rounds": 30, "depth": 3}
    summary, rows = run("brr", tmp_path, **given, shrink=0.0)
    assert summary.score < 0.75 * rows[0]["rmse"]


def test_ldpfl_says_what_its_epsilon_does_not_cover(tmp_path: Path) -> None:
    summary, _ = run("ldpfl", tmp_path, rounds=1)
    assert summary.privacy.claimed == 0.5
    assert summary.privacy.record > 100.0
    assert "labels" in summary.privacy.not_covered
    assert "extractor" in summary.privacy.not_covered


def test_a_client_keeps_its_own_budget(tmp_path: Path) -> None:
    system = get("bitrand")
    settings = system.configure(preset="quick", **{**SMALL["bitrand"], "out": str(tmp_path)})
    from bitldp.federated import run_in_process

    # Each of the clients allows less than the release costs: nobody sends anything.
    with pytest.raises(RoundFailedError, match="no client sent an update"):
        run_in_process(
            system.server_app,
            system.client_app,
            3,
            run_config=settings.config(),
            node_config={"home": str(tmp_path / "clients"), "budget": 1.0, "create": True},
        )
    assert not list((tmp_path / "clients").glob("*/released.npz"))


@pytest.mark.parametrize(
    ("given", "fragment"),
    [
        ({"mechanism": "none"}, "mechanism: must be one of"),
        ({"place": "everywhere"}, "place: must be one of"),
        ({"anonymiser": True}, "anonymiser: needs place='updates'"),
        ({"rounds": 0}, "rounds: must be between 1"),
        ({"epsilon": -1.0}, "epsilon: must be zero or more"),
        ({"flavour": 1}, "flavour: bitrand has no such setting"),
        ({"rounds": 1.5}, "rounds: must be int, not float"),
    ],
)
def test_settings_are_checked(given: dict[str, Any], fragment: str) -> None:
    with pytest.raises((ValueError, TypeError), match=fragment):
        get("bitrand").configure(**given)
    with pytest.raises(ValueError, match="no system 'sixth'"):
        get("sixth")


def test_settings_travel_as_flowers_configuration() -> None:
    settings = get("bitrand").configure(preset="quick", label_epsilon=3)
    config = settings.config()
    assert config["label-epsilon"] == 3.0
    assert all(type(value) in (str, int, float, bool) for value in config.values())
    assert type(settings).of({**config, "num-server-rounds": 4}) == settings


def test_a_folder_belongs_to_one_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", {"epsilon": 1.0}, resume=False)
    folder.record({"round": 0, "accuracy": 0.5, "loss": float("nan")}, {"w": np.arange(3)})
    with pytest.raises(ValueError, match="holds a run already"):
        RunFolder(tmp_path / "run", {"epsilon": 1.0}, resume=False)
    with pytest.raises(ValueError, match="a run with another epsilon"):
        RunFolder(tmp_path / "run", {"epsilon": 2.0}, resume=True)
    again = RunFolder(tmp_path / "run", {"epsilon": 1.0}, resume=True)
    assert again.rows == [{"round": 0, "accuracy": 0.5, "loss": None}]
    assert again.checkpoint is not None
    assert np.array_equal(again.checkpoint.arrays["w"], np.arange(3))
    # A line without its checkpoint is a round that was cut short.
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"round": 1}\n')
    assert len(RunFolder(tmp_path / "run", {"epsilon": 1.0}, resume=True).rows) == 1
    for name, text in (("metrics.jsonl", "{"), ("checkpoint.npz", "PK"), ("settings.json", "{")):
        (tmp_path / "run" / name).write_text(text)
        with pytest.raises(ValueError, match=f"{name} is damaged"):
            RunFolder(tmp_path / "run", {"epsilon": 1.0}, resume=True)


def test_the_systems_have_settings_and_choices() -> None:
    for name in SMALL:
        system = get(name)
        assert system.name == name in NAMES
        assert issubclass(system.settings, Settings)
        for field, words in system.choices.items():
            assert getattr(system.settings(), field) in words
