"""The system `mvu`: what is sent, what it costs, and that no record is released too often."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp
from bitldp.accounting import account
from bitldp.compression import CLDP, BallGaussian, VectorMVU
from bitldp.federated import (
    ComposedAccount,
    DecodingStrategy,
    Layout,
    PrivateUpdateMod,
    RoundFailedError,
    UpdateCodec,
    run_in_process,
)
from bitldp.federated.client.account import UPDATE, Charge
from bitldp.federated.client.composed import composed
from bitldp.ledger import BudgetExceededError, Ledger
from bitldp_papers import get
from bitldp_papers.mvu.system import records_of
from bitldp_papers.run.client import Client

SMALL = {"clients": 3, "rounds": 2, "batch": 3, "data": "wine"}


def run(out: Path, **given: Any) -> tuple[Any, list[dict[str, Any]]]:
    system = get("mvu")
    settings = system.configure(preset="quick", **{**SMALL, "epsilon": 8.0, "out": str(out), **given})
    summary = system.run(settings, seeded=True)
    return summary, [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("mechanism", "level"),
    [
        ("mvu", "example"),
        ("mvu", "client"),
        ("signsgd", "example"),
        ("signsgd-mean", "client"),
        ("gaussian", "example"),
        ("skellam", "client"),
        ("cldp", "example"),
        ("polytope", "example"),
        ("polytope", "client"),
    ],
)
def test_every_mechanism_keeps_the_budget(mechanism: str, level: str, tmp_path: Path) -> None:
    given = {"rounds": 3, "batch": 40} if level == "example" else {"rounds": 3}
    summary, rows = run(tmp_path, mechanism=mechanism, level=level, noise_bits=9, **given)
    assert "in at most 3 releases" in summary.privacy.covers  # 3 x 40 of 47 records, or 3 rounds
    assert 0.85 * 8.0 < summary.privacy.record <= summary.privacy.claimed == 8.0
    assert summary.privacy.delta in (0.0, 1e-5)
    assert all(row["reports"] == 3 for row in rows[1:])
    for folder in (tmp_path / "clients").iterdir():
        (entry,) = Ledger.load(folder / "ledger.json").entries
        assert entry.guarantee.record <= summary.privacy.record
        assert entry.guarantee.delta <= 1e-5


def test_rounds_are_composed_and_not_added(tmp_path: Path) -> None:
    summary, _ = run(tmp_path, level="client", rounds=6)
    settings = get("mvu").configure(preset="quick", **{**SMALL, "epsilon": 8.0, "rounds": 6}, level="client")
    size = 14 * 3
    mechanism = settings.release(size)
    assert summary.privacy.record == account([(mechanism, 6)], delta=1e-5, method="renyi").epsilon
    assert summary.privacy.record < 0.8 * 6 * mechanism.guarantee.record
    assert "composed by renyi" in summary.privacy.covers
    spent = [Ledger.load(each / "ledger.json").spent for each in (tmp_path / "clients").iterdir()]
    assert spent == [summary.privacy.record] * 3


def test_a_report_takes_a_bit_a_coordinate() -> None:
    size = 100_000
    model = {"w": np.zeros(size, np.float32)}
    codec = UpdateCodec(
        VectorMVU(size, epsilon=4.0, delta=1e-5, input_bits=1, output_bits=1), clip=1.0, update="gradient"
    )
    report = codec.plan(Layout.of(model)).perturb(np.ones(size), rng=1)
    assert model["w"].nbytes / len(report) > 31.0


def test_bytes_up_are_a_bit_a_coordinate_and_a_header(tmp_path: Path) -> None:
    summary, rows = run(tmp_path, batch=40, rounds=1)
    bits = 3 * 40 * (13 + 1) * 3  # clients, records, coordinates of 13 features and 3 classes
    assert bits / 8 < summary.bytes_up == rows[1]["bytes-up"] < bits / 8 + 3 * 160
    assert run(tmp_path / "b", batch=40, rounds=1, input_bits=2, output_bits=2)[0].bytes_up > bits / 4


def test_records_take_turns(tmp_path: Path) -> None:
    settings = get("mvu").configure(preset="quick", batch=7)
    client = Client(1, 3, tmp_path, seeded=True, budget=math.inf)
    uses = np.zeros(10, int)
    for turn in range(20):
        uses += np.bincount(records_of(settings, client, 7 * turn, 10), minlength=10)
        assert uses.max() <= math.ceil(7 * (turn + 1) / 10)
        assert uses.max() - uses.min() <= 1


def test_the_count_of_an_account_is_of_the_record_that_was_released_most() -> None:
    from flwr.app import Context, RecordDict

    context = Context(1, 1, {}, RecordDict(), {})
    mechanism = bitldp.WarnerRR(epsilon=1.0)
    held = ComposedAccount(budget=3.0, delta=1e-6, turns=10)
    for done in range(1, 31):
        held.check(context, [Charge(mechanism, 1, UPDATE)])
        held.charge(context, [Charge(mechanism, 1, UPDATE)])
        assert held.reported(context, mechanism) == done
        releases = math.ceil(done / 10)
        assert held.ledger(context).spent == composed(mechanism, releases, 1e-6).epsilon
    before = held.ledger(context).to_json()
    for refuse in (held.check, held.charge):
        with pytest.raises(BudgetExceededError):
            refuse(context, [Charge(mechanism, 1, UPDATE)])
    assert held.ledger(context).to_json() == before
    # Another mechanism begins anew, and adds to it.
    with pytest.raises(BudgetExceededError):
        held.charge(context, [Charge(bitldp.WarnerRR(epsilon=0.5), 1, UPDATE)])


def test_the_best_accountant_is_taken() -> None:
    pure = bitldp.WarnerRR(epsilon=0.1)
    assert composed(pure, 1, 0.0) == (pure.guarantee.record, 0.0, "basic")
    many = composed(pure, 400, 1e-6)
    assert many.method == "pld"
    for method in ("basic", "renyi", "pld"):
        assert many.epsilon <= account([(pure, 400)], delta=1e-6, method=method).epsilon
    noisy = BallGaussian(4, epsilon=1.0, delta=1e-6, output_bits=9)
    assert composed(noisy, 1, 1e-6).epsilon <= 1.0
    assert composed(noisy, 20, 1e-6).method == "pld"  # exactly, by its normal laws
    assert math.isinf(composed(noisy, 20, 0.0).epsilon)


def test_a_budget_of_the_client_ends_its_reports(tmp_path: Path) -> None:
    system = get("mvu")
    given = {**SMALL, "level": "client", "rounds": 3, "epsilon": 8.0, "out": str(tmp_path)}
    settings = system.configure(preset="quick", **given)
    one = composed(settings.release(42), 1, 1e-5).epsilon
    with pytest.raises(RoundFailedError, match="round 2"):
        run_in_process(
            system.server_app,
            system.client_app,
            3,
            run_config=settings.config(),
            node_config={"home": str(tmp_path / "clients"), "budget": 1.01 * one, "create": True},
        )
    spent = [Ledger.load(each / "ledger.json").spent for each in (tmp_path / "clients").iterdir()]
    assert spent == [one] * 3
    # A server cannot set the delta that a client allows: at a smaller one the same rounds cost more.
    with pytest.raises(RoundFailedError, match="round 2"):
        run_in_process(
            system.server_app,
            system.client_app,
            3,
            run_config={**settings.config(), "out": str(tmp_path / "more")},
            node_config={"home": str(tmp_path / "others"), "delta": 1e-9},
        )
    for each in (tmp_path / "others").iterdir():
        assert Ledger.load(each / "ledger.json").spent_delta == 1e-9


def test_several_rows_are_clipped_each_and_averaged() -> None:
    size, rows = 6, 4000
    model = {"a": np.zeros((2, 2), np.float32), "b": np.zeros(2, np.float32)}
    codec = UpdateCodec(
        CLDP(size, epsilon=6.0, radius=2.0), clip=2.0, norm="l1", update="gradient", rows=rows
    )
    plan = codec.plan(Layout.of(model))
    assert plan.records == rows
    vector = np.array([3.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    arrays = {
        "a": np.tile(vector[:4].reshape(2, 2), (rows, 1, 1)).astype(np.float32),
        "b": np.zeros((rows, 2), np.float32),
    }
    stacked = plan.flatten(arrays)
    assert stacked.shape == (rows, size)
    # n = 4000 letters of about +-2.01: 7 standard errors, six coordinates, alpha below 1e-10.
    worth = plan.decode(plan.perturb(stacked, rng=5))
    np.testing.assert_allclose(worth, vector / 2.0, atol=7.0 * 2.01 / math.sqrt(rows))
    with pytest.raises(ValueError, match="4000 rows in front"):
        plan.flatten({"a": arrays["a"][1:], "b": arrays["b"]})
    with pytest.raises(ValueError, match="rows of coordinates are needed"):
        plan.perturb(vector)
    other = UpdateCodec(codec.mechanism, clip=2.0, norm="l1", update="gradient", rows=5)
    with pytest.raises(ValueError, match="records differ"):
        other.plan(Layout.of(model)).decode(plan.perturb(stacked))


def test_bad_settings_and_arguments() -> None:
    for given, fragment in (
        ({"mechanism": "none"}, "mechanism: must be one of"),
        ({"level": "user"}, "level: must be one of"),
        ({"delta": 0.0}, "delta: must be above 0"),
        ({"output_bits": 9}, "output_bits: must be between 0"),
        ({"noise_bits": 3}, "noise_bits: must be between 4"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"batch": 0}, "batch"),
    ):
        with pytest.raises(ValueError, match=fragment):
            get("mvu").configure(**given)
    with pytest.raises(TypeError, match="the account has delta"):
        PrivateUpdateMod(bitldp.Duchi(epsilon=1.0), clip=1.0, budget=ComposedAccount(1.0), delta=1e-5)
    with pytest.raises(ValueError, match="turns"):
        ComposedAccount(1.0, turns=0)
    with pytest.raises(TypeError, match="identity"):
        ComposedAccount(1.0, identity=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rows"):
        DecodingStrategy(bitldp.Duchi(epsilon=1.0), clip=1.0, rows=0)
