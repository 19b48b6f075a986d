"""The same app over the network: SuperLink and two SuperNodes on 127.0.0.1, each a process."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import run_in_process
from support import federated_app, summed_app
from support.network import (
    Processes,
    assert_all_gone,
    certificates,
    environment,
    needs_programs,
    run_on_network,
)

pytestmark = needs_programs


@pytest.fixture
def processes(tmp_path):
    found = Processes(tmp_path, environment(tmp_path))
    try:
        yield found
    finally:
        found.stop()


@pytest.mark.slow
def test_the_model_is_the_one_of_the_run_in_process(tmp_path, processes):
    rounds = 2
    network, alone = tmp_path / "network.npz", tmp_path / "alone.npz"
    run_on_network(
        processes,
        Path(federated_app.__file__),
        network,
        config=f"num-server-rounds={rounds} save-to='{network}'",
        nodes=[f"partition-id={client} num-partitions=2 seed=7" for client in range(2)],
    )

    run_in_process(
        federated_app.server_app,
        federated_app.client_app,
        2,
        run_config={"num-server-rounds": rounds, "save-to": str(alone)},
        node_config={"seed": 7},
    )
    with np.load(network) as theirs, np.load(alone) as ours:
        assert list(theirs) == list(ours) == list(federated_app.initial())
        assert any(np.any(ours[name] != 0.0) for name in ours)
        for name in ours:
            assert theirs[name].dtype == ours[name].dtype
            np.testing.assert_array_equal(theirs[name], ours[name])
    assert_all_gone(processes)


@pytest.mark.slow
def test_a_secure_sum_over_tls_is_the_one_of_the_run_in_process(tmp_path, processes, monkeypatch):
    for client in range(summed_app.CLIENTS):
        summed_app.key_pair(tmp_path / f"node-{client}.key")
    network, alone = tmp_path / "network.npz", tmp_path / "alone.npz"
    state = tmp_path / "state"
    source = tmp_path / "summed.py"
    lines = [
        "from pathlib import Path",
        "from support.summed_app import make_client, make_server",
        f"folder = Path({str(tmp_path)!r})",
        "client_app = make_client(folder)",
        "server_app = make_server(folder)",
    ]
    source.write_text("\n".join(lines))
    paths = [processes.environment["PYTHONPATH"], str(Path(__file__).parents[2])]
    processes.environment |= {"PYTHONPATH": os.pathsep.join(paths), "BITLDP_STATE": str(state)}
    run_on_network(
        processes,
        source,
        network,
        config=f"num-server-rounds=1 save-to='{network}'",
        nodes=[f"partition-id={client} num-partitions=3 seed=7" for client in range(summed_app.CLIENTS)],
        tls=certificates(tmp_path),
    )
    monkeypatch.setenv("BITLDP_STATE", str(tmp_path / "another"))
    run_in_process(
        summed_app.make_server(tmp_path),
        summed_app.make_client(tmp_path),
        summed_app.CLIENTS,
        run_config={"save-to": str(alone)},
        node_config={"seed": 7},
    )
    with np.load(network) as theirs, np.load(alone) as ours:
        np.testing.assert_array_equal(theirs["value"], ours["value"])
        assert theirs["survivors"].tolist() == ours["survivors"].tolist() == [0, 1, 2]
    ledgers = sorted((state / "ledgers").glob("*.sums.json"))
    cost = summed_app.agreement(tmp_path).sum.guarantee.central().epsilon
    assert [bitldp.Ledger.load(path).sums.spent for path in ledgers] == [cost] * 3
    assert_all_gone(processes)


@pytest.mark.slow
def test_a_run_goes_on_without_a_late_and_a_dead_client_and_ends_where_nobody_is_left(tmp_path, processes):
    """Three SuperNodes: all answer; one does, while another is late and a third one dies; all die."""
    source, result = tmp_path / "troubled.py", tmp_path / "model.npz"
    lines = ["from support import troubled_app", "client_app = troubled_app.client_app"]
    source.write_text("\n".join([*lines, "server_app = troubled_app.server_app"]))
    paths = [processes.environment["PYTHONPATH"], str(Path(__file__).parents[2])]
    processes.environment |= {"PYTHONPATH": os.pathsep.join(paths)}
    run_on_network(
        processes,
        source,
        result,
        config=f"num-server-rounds=3 save-to='{result}'",
        nodes=[f"partition-id={client} num-partitions=3 seed=7" for client in range(3)],
    )
    told = json.loads(result.with_suffix(".json").read_text())
    first, second = told["rounds"]["1"], told["rounds"]["2"]
    assert set(told["rounds"]) == {"1", "2"}
    assert (first["clients"], first["reports"], first["failed"], first["missing"]) == (3, 3, 0, 0)
    assert (second["clients"], second["reports"], second["failed"] + second["missing"]) == (3, 1, 2)
    assert second["missing"] >= 1
    assert "round 3: 0 of 3 clients sent a report that could be read" in told["sentence"]
    assert "asked in 3 rounds, of 1 reports or more each" in told["costs"]
    with np.load(result) as model:  # of the second round
        assert any(np.any(model[name] != 0.0) for name in model)
    assert_all_gone(processes)
