"""Clients of the systems that have a budget of their own begin no ledger unless their node says so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.federated import InProcessGrid, flower, to_record
from bitldp.federated.client.mod import FAILURE_SENTENCE
from bitldp_papers import get
from flwr.app import ConfigRecord, Message, RecordDict
from support.small_runs import SMALL

GIVEN: dict[str, dict[str, Any]] = {
    "bitrand": {"place": "updates", "mechanism": "hm"},
    "brr": {},
    "mvu": {},
    "fedsel": {},
}


def asked(name: str, home: Path, turn: int, **node: Any) -> Any:
    """Ask the only client for a round."""
    system: Any = get(name)
    chosen: Any = system.configure(
        preset="quick", **{**SMALL[name], "out": str(home.parent / "run"), **GIVEN[name]}
    )
    grid = InProcessGrid(
        system.client_app, chosen.clients, run_config=chosen.config(), node_config={"home": str(home), **node}
    )
    with flower.identity(1):
        sent = to_record(system.rounds(chosen).initial())
        content = RecordDict({"arrays": sent, "config": ConfigRecord({"server-round": turn, "clip": 0.1})})
        (reply,) = grid.send_and_receive([Message(content, 2, "train")])
    return reply


@pytest.mark.parametrize("name", GIVEN)
def test_a_client_with_a_budget_begins_no_ledger_by_itself(name: str, tmp_path: Path) -> None:
    home = tmp_path / "clients"
    assert asked(name, home, 1, budget=1e6).error.reason == FAILURE_SENTENCE
    assert not list(home.rglob("ledger.json"))
    assert not asked(name, home, 1, budget=1e6, create=True).has_error()
    assert not asked(name, home, 2, budget=1e6).has_error()
    for folder in home.iterdir():  # a disk that is not mounted
        shutil.rmtree(folder)
    assert asked(name, home, 3, budget=1e6).error.reason == FAILURE_SENTENCE
    assert not list(home.rglob("ledger.json"))
    assert not asked(name, home, 3).has_error()  # one without a budget has none that could be granted twice
