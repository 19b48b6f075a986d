"""Secure sums in a ledger: charges of their own kind, apart from those of local releases."""

from __future__ import annotations

import json
from pathlib import Path

import bitldp
import pytest

pytest.importorskip("typer", reason="the extra cli is not installed")

from bitldp.ledger import BudgetExceededError, Ledger
from bitldp.ledger.entry import Entry
from bitldp.sums import Count, SecureSum
from support.command import invoke

SUM = SecureSum(Count(), epsilon=0.5, delta=1e-6, clients=200, floor=150)


def test_a_sum_is_never_added_to_local_releases() -> None:
    ledger = Ledger(2.0)
    ledger.charge(bitldp.GRR(4, epsilon=1.0))
    ledger.allow_sums(1.0, delta=1e-5)
    entry = ledger.charge_sum(SUM, note="count of May")
    assert (ledger.spent, ledger.spent_delta) == (1.0, 0.0)
    assert (entry.model, entry.release) == ("central", SUM.digest)
    assert entry.guarantee.epsilon == SUM.guarantee.central().epsilon == ledger.sums.spent
    assert entry.guarantee.given == "only the total of 150 survivors or more is seen"
    assert 0.5 <= ledger.sums.remaining < 0.5 + 1e-5
    assert ledger.account(1e-6, method="basic").epsilon == pytest.approx(1.0)


def test_sums_are_refused_beyond_what_was_set_aside() -> None:
    ledger = Ledger(5.0, delta=1e-3)
    with pytest.raises(
        BudgetExceededError, match=r"SecureSum: 1 release of central epsilon 0\.499998 would exceed"
    ):
        ledger.charge_sum(SUM)
    ledger.allow_sums(5.0, delta=1.5e-6)
    ledger.charge_sum(SUM)
    with pytest.raises(
        BudgetExceededError, match="central delta 1e-06 would exceed the budget: only 5e-07 of"
    ):
        ledger.charge_sum(SUM)
    with pytest.raises(BudgetExceededError, match="budget for sums"):
        ledger.allow_sums(0.25, delta=1e-3)
    ledger.allow_sums(1.0, delta=1e-3)
    ledger.charge_sum(SUM)
    assert len(ledger.entries) == 4
    assert ledger.spent == 0.0


def test_a_sum_is_no_mechanism() -> None:
    with pytest.raises(TypeError, match="release: must be a mechanism"):
        Ledger(5.0).charge(SUM)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="secure: must be a secure sum, not GRR"):
        Ledger(5.0).charge_sum(bitldp.GRR(4, epsilon=1.0))
    with pytest.raises(ValueError, match="model: must be 'central'"):
        Ledger(5.0)._charge(Entry("GRR", bitldp.GRR(4, epsilon=1.0).guarantee, 1, model="other"))


def test_files_keep_sums_and_older_ones_stay_as_they_were(tmp_path: Path) -> None:
    local = Ledger(2.0)
    local.charge(bitldp.GRR(4, epsilon=1.0))
    assert '"model"' not in local.to_json()
    file = tmp_path / "people.json"
    with Ledger.open(file, budget=2.0, create=True) as ledger:
        ledger.allow_sums(1.0, delta=1e-5)
        ledger.charge_sum(SUM)
    with Ledger.open(file) as again:
        assert again.sums == ledger.sums
        assert again.entries[1].model == "central"
    shown = json.loads(invoke("ledger", "show", file, "--json").stdout)
    assert shown["spent"] == 0.0
    assert shown["sums"]["spent"] == ledger.sums.spent
    assert shown["by_plan"] == {}
    assert "secure sums" in invoke("ledger", "show", file).stdout
    assert "central" in invoke("ledger", "history", file).stdout
