"""The ledger: exact sums, refusals before a release, files that are whole or refused, threads."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import pickle
import threading
import warnings
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp.base import files as _files
from bitldp.ledger import BudgetExceededError, Entry, Ledger
from bitldp.privacy import Guarantee, added, share


def costing(epsilon: float, delta: float = 0.0) -> Guarantee:
    """Return a guarantee of one release."""
    return Guarantee(epsilon, epsilon, epsilon, epsilon, delta=delta)


def test_charges_add_up():
    ledger = Ledger(5.0, delta=1e-5)
    mechanism = bitldp.GRR(4, epsilon=1.0)
    entry = ledger.charge(mechanism, note="first wave")
    ledger.charge(costing(0.75, 1e-6), 2)
    assert entry == Entry("GRR", mechanism.guarantee, 1, "first wave")
    assert ledger.entries == (entry, Entry("Guarantee", costing(0.75, 1e-6), 2, ""))
    assert (ledger.budget, ledger.delta) == (5.0, 1e-5)
    assert ledger.spent == 2.5
    assert ledger.remaining == 2.5
    assert ledger.spent_delta == 2e-6
    assert ledger.remaining_delta == pytest.approx(8e-6, rel=1e-12)
    assert repr(ledger) == "Ledger(budget=5, spent=2.5, entries=2)"


def test_the_exact_epsilon_is_charged_not_the_claimed_one():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        mechanism = bitldp.FRR(5, epsilon=1.0, calibration="paper")
    ledger = Ledger(30.0)
    ledger.charge(mechanism)
    assert ledger.spent == mechanism.guarantee.record > 20.0
    with pytest.raises(BudgetExceededError):
        ledger.charge(mechanism)


def test_a_release_past_the_budget_is_refused_whole():
    ledger = Ledger(2.0)
    ledger.charge(costing(1.5))
    message = "Guarantee: 3 releases of epsilon 0.25 would exceed the budget: only 0.5 of 2 remains"
    with pytest.raises(BudgetExceededError, match=message):
        ledger.charge(costing(0.25), 3)
    assert issubclass(BudgetExceededError, ValueError)
    assert ledger.spent == 1.5
    ledger.charge(costing(0.25), 2)  # to the last drop
    assert ledger.remaining == 0.0
    ledger.charge(costing(0.0), 10**9)  # what costs nothing may always be released
    with pytest.raises(BudgetExceededError, match=r"1 release of epsilon 4\.94066e-324"):
        ledger.charge(costing(5e-324))


def test_delta_has_a_budget_of_its_own():
    ledger = Ledger(10.0, delta=1e-6)
    ledger.charge(costing(1.0, 6e-7))
    with pytest.raises(
        BudgetExceededError, match="1 release of delta 6e-07 would exceed the budget: only 4e-07 of 1e-06"
    ):
        ledger.charge(costing(1.0, 6e-7))
    assert ledger.spent == 1.0
    with pytest.raises(BudgetExceededError, match="delta"):
        Ledger(10.0).charge(costing(1.0, 1e-300))


def test_infinite_epsilon_is_always_refused():
    guarantee = Guarantee(1.0, math.inf, math.inf, math.inf, holds=False)
    ledger = Ledger(1e308)
    with pytest.raises(BudgetExceededError, match="epsilon inf"):
        ledger.charge(guarantee)
    assert ledger.entries == ()


def test_sums_are_rounded_against_the_spender():
    tenth = costing(0.1)
    ledger = Ledger(1.0)
    for _ in range(9):
        ledger.charge(tenth)
    with pytest.raises(BudgetExceededError):  # ten times the double 0.1 is above 1
        ledger.charge(tenth)
    even = Ledger(1.0)
    even.charge(costing(share(1.0, 10)), 10)
    rng = np.random.default_rng(1)
    costs = [float(each) for each in rng.exponential(size=200) * 10.0 ** rng.integers(-12, 3, 200)]
    ledger = Ledger(1e6)
    for cost in costs:
        ledger.charge(costing(cost))
    total = sum(map(Fraction, costs))
    assert ledger.spent == added(*costs)
    assert total <= Fraction(ledger.spent)
    assert Fraction(ledger.spent) + Fraction(ledger.remaining) <= Fraction(math.nextafter(1e6, 2e6))
    assert Fraction(ledger.remaining) <= Fraction(1e6) - total


def test_with_statement():
    mechanism = bitldp.OUE(4, epsilon=1.0)
    ledger = Ledger(2.0)
    with ledger.charging(mechanism, note="colours") as entry:
        assert entry == ledger.entries[0]
        assert ledger.spent == mechanism.guarantee.record
    with pytest.raises(KeyError), ledger.charging(mechanism):
        raise KeyError  # something may have left before
    assert len(ledger.entries) == 2
    ran = False
    with pytest.raises(BudgetExceededError), ledger.charging(mechanism, 2):
        ran = True
    assert not ran
    assert len(ledger.entries) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1.0,), ValueError, "budget: must be zero or more"),
        ((math.inf,), ValueError, "budget: must be finite"),
        ((math.nan,), ValueError, "budget: must be finite"),
        ((True,), TypeError, "budget: must be a real number"),
        ((1.0, 1.0), ValueError, "delta: must be below 1"),
        ((1.0, -0.1), ValueError, "delta: must be zero or more"),
        ((1.0, math.nan), ValueError, "delta: must be finite"),
    ],
)
def test_bad_budgets_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Ledger(arguments[0], **dict(zip(["delta"], arguments[1:], strict=False)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1.0,), TypeError, "release: must be a mechanism or a Guarantee, not float"),
        ((costing(0.1), 0), ValueError, "count: must be at least 1"),
        ((costing(0.1), -1), ValueError, "count: must be at least 1"),
        ((costing(0.1), 1.5), TypeError, "count: must be an integer"),
        ((costing(math.nan),), ValueError, "release: claimed of its guarantee must be zero or more"),
        ((Guarantee(1.0, 1.0, 1.0, -1.0),), ValueError, "release: record of its guarantee"),
        ((costing(0.1, -0.5),), ValueError, "release: delta of its guarantee must be zero or more"),
        ((costing(0.1, 1.5),), ValueError, "release: delta of its guarantee must be at most 1"),
    ],
)
def test_bad_charges_are_refused(arguments, error, message):
    ledger = Ledger(1.0)
    with pytest.raises(error, match=message) as caught:
        ledger.charge(*arguments)
    assert not isinstance(caught.value, BudgetExceededError)
    with pytest.raises(TypeError, match="note: must be a string"):
        ledger.charge(costing(0.1), note=3)
    assert ledger.entries == ()


def test_a_ledger_cannot_be_copied():
    ledger = Ledger(1.0)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="each copy would have the whole budget"):
            way(ledger)


# -- files


@pytest.fixture
def spent() -> Ledger:
    """Return a ledger with charges of every kind."""
    ledger = Ledger(100.0, delta=1e-3)
    ledger.charge(bitldp.GRR(4, epsilon=0.1), 3, note="naïve wave, “quoted”")
    ledger.charge(costing(1.0 / 3.0, 1e-7))
    ledger.charge(Guarantee(1.0, math.inf, math.inf, 2.0, holds=False, unit="feature", given="a region"))
    return ledger


def test_files_come_back(spent, tmp_path):
    path = tmp_path / "ledger.json"
    spent.save(path)
    again = Ledger.load(str(path))
    assert again.entries == spent.entries
    assert (again.spent, again.spent_delta) == (spent.spent, spent.spent_delta)
    assert (again.budget, again.delta) == (spent.budget, spent.delta)
    again.charge(costing(1.0))
    again.save(path)
    assert Ledger.load(path).spent == again.spent
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]
    assert json.loads(path.read_text())["version"] == 2


def test_a_failed_save_leaves_the_older_file(spent, tmp_path, monkeypatch):
    path = tmp_path / "ledger.json"
    spent.save(path)
    before = path.read_bytes()
    spent.charge(costing(1.0))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_files.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            spent.save(path)
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]
    with pytest.raises(FileNotFoundError):
        spent.save(tmp_path / "nowhere" / "ledger.json")


def rewritten(document, contents):
    """Return a document of version 1, with other contents under a checksum that fits."""
    digest = hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
    return json.dumps({**document, "version": 1, "ledger": contents, "sha256": digest})


def test_damaged_and_foreign_files_are_refused(spent, tmp_path):
    path = tmp_path / "ledger.json"
    spent.save(path)
    text = path.read_text()
    document = json.loads(text)
    contents = document["ledger"]
    for each in contents["entries"]:
        del each["chain"]
    entry = contents["entries"][0]
    damaged = {
        "": "is not JSON",
        text[: len(text) // 2]: "is not JSON",
        "[1, 2]": "its format must be 'bitldp.ledger'",
        '{"format": "bitldp.accumulator"}': "its format must be",
        json.dumps({**document, "version": 3}): "version must be 1 or 2, got 3",
        text.replace('"count": 3', '"count": 1'): "checksum; damaged or changed by hand",
        json.dumps({**document, "ledger": None}): "checksum",
        json.dumps({"format": "bitldp.ledger", "version": 1}): "checksum",
        rewritten(document, None): "ledger: must be an object of budget, delta, entries",
        rewritten(document, {}): "ledger: must be an object of budget, delta, entries",
        rewritten(document, {**contents, "budget": 1.0}): "exceed the budget",
        rewritten(document, {**contents, "budget": "1"}): "budget: must be a number",
        rewritten(document, {**contents, "entries": [3]}): "entry 0: entry: must be an object of mechanism",
        rewritten(document, {**contents, "entries": [{**entry, "count": -3}]}): "entry 0: count: must be at",
        rewritten(document, {**contents, "entries": [{**entry, "guarantee": {}}]}): "guarantee: must be an",
        rewritten(document, {**contents, "entries": [{**entry, "guarantee": 4}]}): "guarantee: must be an",
        rewritten(document, {**contents, "entries": [{**entry, "mechanism": 4}]}): "mechanism: must be a str",
    }
    for other, message in damaged.items():
        path.write_text(other)
        with pytest.raises(ValueError, match=message) as caught:
            Ledger.load(path)
        assert str(caught.value).startswith(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not JSON"):
        Ledger.load(path)
    with pytest.raises(FileNotFoundError):
        Ledger.load(tmp_path / "nothing.json")


# -- threads


def test_threads_cannot_overspend_together(tmp_path):
    """Eight threads ask for 1,600 releases; exactly 500 fit, whoever gets them."""
    ledger = Ledger(500.0)
    path = tmp_path / "ledger.json"
    granted, refused = [], []
    start = threading.Barrier(8)

    def spend() -> None:
        start.wait()
        for step in range(200):
            try:
                granted.append(ledger.charge(costing(1.0)))
            except BudgetExceededError:
                refused.append(step)
            assert ledger.spent <= 500.0
            if step == 100:
                ledger.save(path)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(granted), len(refused)) == (500, 1100)
    assert ledger.spent == 500.0
    assert len(ledger.entries) == 500
    saved = Ledger.load(path)
    assert saved.spent == len(saved.entries) <= 500.0


BEFORE = """{"format": "bitldp.ledger", "version": 1,
 "sha256": "%s", "ledger": {"budget": 4.0, "delta": 0.0, "entries": [{"mechanism": "GRR", "guarantee":
 {"claimed": 1.0, "bit": 1.0, "feature": 1.0, "record": 1.0, "delta": 0.0, "holds": true, "unit": "record",
 "given": ""}, "count": 2, "note": "waves"}]}}"""


def test_a_file_of_version_1_is_read_and_its_state_stays(tmp_path):
    path = tmp_path / "ledger.json"
    digest = hashlib.sha256(
        json.dumps(json.loads(BEFORE % "")["ledger"], sort_keys=True).encode()
    ).hexdigest()
    path.write_text(BEFORE % digest)
    with Ledger.open(path, at_least=(1, digest)) as ledger:  # the state that a report of then has
        assert ledger.spent == 2.0
        ledger.charge(costing(1.0), note="later")
    with Ledger.open(path, at_least=(1, digest)) as ledger:
        assert ledger.spent == 3.0
        first, second = ledger.entries
        assert (first.time, first.user) == ("", "")
        assert second.time.endswith("+00:00")
    assert json.loads(path.read_text())["version"] == 2


def test_reservations_keep_a_part_of_the_budget():
    ledger = Ledger(4.0, delta=1e-5)
    ledger.reserve("May", 3.0, delta=1e-6)
    assert (ledger.spent, ledger.remaining, ledger.reservations) == (3.0, 1.0, {"May": 3.0})
    with pytest.raises(BudgetExceededError, match=r"would exceed the budget: only 1 of 4 remains$"):
        ledger.charge(costing(2.0))
    ledger.charge(costing(2.0), reservation="May")
    assert (ledger.spent, ledger.reservations) == (3.0, {"May": 1.0})
    with pytest.raises(BudgetExceededError, match="beside its reservation"):
        ledger.charge(costing(2.5), reservation="May")
    ledger.charge(costing(1.5), reservation="May")  # half of it is beyond the reservation
    assert (ledger.spent, ledger.remaining, ledger.reservations) == (3.5, 0.5, {"May": 0.0})
    ledger.reserve("May", 0.0)  # nothing is given back that was used
    assert ledger.spent == 3.5
    ledger.reserve("June", 0.5)
    ledger.reserve("June", 0.0)
    assert (ledger.spent, ledger.reservations) == (3.5, {"May": 0.0, "June": 0.0})
    again = Ledger.from_json(ledger.to_json())
    assert (again.spent, again.reservations, again.state()) == (3.5, ledger.reservations, ledger.state())
    with pytest.raises(ValueError, match="reservation: the ledger has no reservation of that name"):
        ledger.charge(costing(0.1), reservation="July")
    with pytest.raises(ValueError, match="reservation: must have a name"):
        ledger.reserve("", 0.1)
    with pytest.raises(BudgetExceededError):
        ledger.reserve("July", 1.0)
