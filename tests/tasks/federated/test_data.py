"""Released data sets: one release, one charge, whatever happens in between."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import weakref
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import PrivateData, Released
from bitldp.federated.client import data as data_module

BOTH = bitldp.BitRand(3, categories=4, epsilon_x=4.0, epsilon_y=1.0)
N = 40


def original():
    rng = np.random.default_rng(77)
    return rng.normal(size=(N, 3)), np.arange(N) % 4


def never():
    raise AssertionError("the original was asked for")


PAIRS = {
    "BitRand": ({"mechanism": BOTH}, 5.0),
    "BitRand-bits": ({"mechanism": BOTH, "output": "bits"}, 5.0),
    "FRR+LabelRR": (
        {"mechanism": bitldp.FRR(3, epsilon=4.0), "labels": bitldp.LabelRR(4, epsilon=1.0)},
        5.0,
    ),
    "Piecewise+GRR": (
        {"mechanism": bitldp.Piecewise(epsilon=3.0, features=3), "labels": bitldp.GRR(4, epsilon=0.5)},
        3.5,
    ),
    "MOUE": ({"mechanism": bitldp.MOUE(3, epsilon=2.0), "output": "codes"}, 2.0),
}


def source(options):
    features, labels = original()
    has_labels = "labels" in options or options["mechanism"] is BOTH
    return lambda: (features, labels if has_labels else None)


@pytest.mark.parametrize("name", PAIRS)
def test_one_release_is_served_every_round_and_charged_once(name, tmp_path):
    options, epsilon = PAIRS[name]
    ledger = bitldp.Ledger(5.0)
    data = PrivateData(tmp_path / "client.npz", **options, ledger=ledger)
    assert not data.released
    first = data.get(source(options))
    assert data.released
    assert ledger.spent == pytest.approx(epsilon, rel=1e-9)
    assert ledger.spent <= epsilon
    assert sum(each.record for each in data.guarantees) == pytest.approx(ledger.spent)
    for again in (data, PrivateData(tmp_path / "client.npz", **options, ledger=ledger)):
        found = again.get(never)
        np.testing.assert_array_equal(found.features, first.features)
        assert found.features.dtype == first.features.dtype
        assert not found.features.flags.writeable
        if first.labels is not None:
            np.testing.assert_array_equal(found.labels, first.labels)
            assert found.labels.dtype == first.labels.dtype
    assert len(ledger.entries) == len(data.guarantees)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["client.npz", "client.npz.lock"]


def test_the_release_is_the_mechanisms(tmp_path):
    features, labels = original()
    data = PrivateData(tmp_path / "both.npz", BOTH)
    x, y = data.get(lambda: (features, labels), rng=9)
    for mine, theirs in zip((x, y), BOTH.randomize(features, labels, rng=9, output="values"), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    frr, rr = bitldp.FRR(3, epsilon=4.0), bitldp.LabelRR(4, epsilon=1.0)
    seeds = np.random.SeedSequence(9).spawn(2)
    pair = PrivateData(tmp_path / "pair.npz", frr, labels=rr).get(lambda: (features, labels), rng=9)
    np.testing.assert_array_equal(pair.features, frr.randomize(features, rng=seeds[0], output="values"))
    np.testing.assert_array_equal(pair.labels, rr.randomize(labels, rng=seeds[1]))


def test_fresh_keys_by_default(tmp_path):
    found = [PrivateData(tmp_path / f"{i}.npz", BOTH).get(original).features for i in range(2)]
    assert np.any(found[0] != found[1])


@pytest.mark.slow
def test_nothing_keeps_the_original(tmp_path):
    features, labels = original()
    kept = weakref.ref(features)
    data = PrivateData(tmp_path / "client.npz", BOTH)

    def once():
        nonlocal features
        mine, features = features, None
        return mine, labels

    released = data.get(once)
    del once
    gc.collect()
    assert kept() is None
    raw = original()[0]
    for place in (tmp_path / "client.npz", tmp_path / "client.npz.lock"):
        assert all(value.tobytes() not in place.read_bytes() for value in raw.ravel())
    shown = repr(data) + repr(released)
    for value in (*raw.ravel(), *released.features.ravel()):
        assert f"{value:.4f}" not in shown
    assert repr(released) == "Released(features=<(40, 3) float64>, labels=<(40,) uint8>)"
    assert all(value.tobytes() not in pickle.dumps(data) for value in raw.ravel())


def test_a_ledger_file_is_charged_once_and_refuses_the_next(tmp_path):
    ledger = tmp_path / "ledger.json"
    first = PrivateData(tmp_path / "a.npz", BOTH, ledger=ledger, budget=6.0, create=True)
    first.get(original)
    PrivateData(tmp_path / "a.npz", BOTH, ledger=ledger).get(never)
    assert bitldp.Ledger.load(ledger).spent == first.guarantees[0].record
    second = PrivateData(tmp_path / "b.npz", BOTH, ledger=ledger)
    with pytest.raises(bitldp.BudgetExceededError):
        second.get(original)
    assert not second.released
    assert bitldp.Ledger.load(ledger).spent == first.guarantees[0].record


def test_features_and_labels_are_charged_together_or_not_at_all(tmp_path):
    ledger = bitldp.Ledger(4.5)
    options = {"mechanism": bitldp.FRR(3, epsilon=4.0), "labels": bitldp.LabelRR(4, epsilon=1.0)}
    with pytest.raises(bitldp.BudgetExceededError):
        PrivateData(tmp_path / "a.npz", **options, ledger=ledger).get(original)
    assert ledger.spent == 0.0


class CrashError(Exception):
    pass


@pytest.mark.parametrize("step", ["write", "charge", "rename"])
def test_a_crash_at_any_step_costs_one_charge(step, tmp_path, monkeypatch):
    ledger = tmp_path / "ledger.json"
    begun = {"ledger": ledger, "budget": 5.0, "create": True}

    def crash(*_):
        raise CrashError

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(data_module, "write", crash)
        elif step == "charge":
            patch.setattr(PrivateData, "_charge", crash)
        else:
            patch.setattr(Path, "replace", _unless_pending(crash))
        with pytest.raises(CrashError):
            PrivateData(tmp_path / "a.npz", BOTH, **begun).get(original, rng=1)
    data = PrivateData(tmp_path / "a.npz", BOTH, **begun)
    assert not data.released
    found = data.get(never if step == "rename" else original, rng=1)
    assert isinstance(found, Released)
    assert len(bitldp.Ledger.load(ledger).entries) == 1
    assert not (tmp_path / "a.npz.pending").exists()


def _unless_pending(crash):
    replace = Path.replace

    def guarded(self, target):
        return crash() if self.name.endswith(".pending") else replace(self, target)

    return guarded


def test_a_deleted_copy_is_a_new_release(tmp_path):
    ledger = bitldp.Ledger(5.0)
    data = PrivateData(tmp_path / "a.npz", BOTH, ledger=ledger)
    data.get(original)
    (tmp_path / "a.npz").unlink()
    with pytest.raises(bitldp.BudgetExceededError):
        data.get(original)


def _race(folder, queue):
    data = PrivateData(folder / "a.npz", BOTH, ledger=folder / "ledger.json", budget=5.0, create=True)
    queue.put(data.get(original).features.tobytes())


@pytest.mark.slow
def test_processes_that_race_release_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    workers = [context.Process(target=_race, args=(tmp_path, queue)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert len(set(found)) == 1
    assert len(bitldp.Ledger.load(tmp_path / "ledger.json").entries) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"mechanism": bitldp.BitRand(3, categories=4, epsilon_x=4.5, epsilon_y=0.5)},
        {"mechanism": bitldp.FRR(3, epsilon=4.0), "labels": bitldp.LabelRR(4, epsilon=1.0)},
        {"mechanism": BOTH, "output": "codes"},
    ],
)
def test_another_mechanism_is_refused(other, tmp_path):
    PrivateData(tmp_path / "a.npz", BOTH).get(original)
    with pytest.raises(ValueError, match="released by another mechanism"):
        PrivateData(tmp_path / "a.npz", **other).get(never)


def test_damage_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    PrivateData(path, BOTH).get(original)
    good = path.read_bytes()
    for bad in (b"", b"text", good[: len(good) // 2], good[:-30]):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="damaged"):
            PrivateData(path, BOTH).get(never)
    with np.load(tmp_path / "a.npz") if path.write_bytes(good) else None as file:
        arrays = dict(file)
    arrays["labels"] = np.zeros_like(arrays["labels"])
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="checksum"):
        PrivateData(path, BOTH).get(never)
    np.savez(path, features=np.array([{"a": 1}], dtype=object), about=arrays["about"])
    with pytest.raises(ValueError, match="damaged"):  # no pickle is ever loaded
        PrivateData(path, BOTH).get(never)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: np.zeros((2, 3)), TypeError, "pair"),
        (lambda: (np.zeros((2, 3)), None), ValueError, "features and labels"),
        (lambda: (None, np.zeros(2, int)), ValueError, "original"),
        (lambda: (np.zeros((2, 3)), np.zeros(3, int)), ValueError, "2 records of features, 3 labels"),
        (lambda: (np.full((2, 3), np.nan), np.zeros(2, int)), ValueError, "NaN"),
        (lambda: ("text", "more"), TypeError, "array"),
        (lambda: (np.float64(3.0), np.int64(1)), ValueError, "arrays of records"),
    ],
)
def test_bad_originals_are_neither_released_nor_charged(made, error, message, tmp_path):
    ledger = bitldp.Ledger(5.0)
    data = PrivateData(tmp_path / "a.npz", BOTH, ledger=ledger)
    with pytest.raises(error, match=message):
        data.get(made)
    assert ledger.spent == 0.0
    assert not data.released


def test_labels_that_nothing_releases_are_refused(tmp_path):
    data = PrivateData(tmp_path / "a.npz", bitldp.FRR(3, epsilon=4.0))
    with pytest.raises(ValueError, match="nothing releases the labels"):
        data.get(original)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "frr"}, "mechanism"),
        ({"labels": 3}, "labels"),
        ({"labels": bitldp.LabelRR(4, epsilon=1.0)}, "releases them already"),
        ({"output": "packed"}, "output"),
        ({"ledger": "/no/such/ledger.json", "create": True}, "budget"),
        ({"ledger": "/no/such/ledger.json", "create": True, "budget": -1.0}, "budget"),
        ({"budget": 1.0}, "budget: needs a ledger with a file"),
        ({"ledger": bitldp.Ledger(1.0), "delta": 0.5}, "delta: needs a ledger with a file"),
        ({"ledger": bitldp.Ledger(1.0), "create": True}, "create: needs a ledger with a file"),
        ({"ledger": "ledger.json", "create": 1}, "create"),
    ],
)
def test_bad_parameters(options, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        PrivateData(tmp_path / "a.npz", **{"mechanism": BOTH, **options})


def test_reports_of_two_parts_are_kept_side_by_side(tmp_path):
    mechanism = bitldp.Duchi(epsilon=3.0, features=3, spend="sample", k=1)
    kept, _ = PrivateData(tmp_path / "a.npz", mechanism, output="codes").get(
        lambda: (np.zeros((40, 3)), None)
    )
    assert kept.shape == (40, 2)  # which feature, and its report
    assert kept[:, 0].min() >= 0
    assert kept[:, 0].max() == 2
    assert set(np.unique(kept[:, 1])) <= {0, 1}
    again, _ = PrivateData(tmp_path / "a.npz", mechanism, output="codes").get(
        lambda: (np.ones((40, 3)), None)
    )
    np.testing.assert_array_equal(again, kept)
