"""The privacy report of ``bitldp perturb``: what it says of the mechanism and of the guarantee."""

from __future__ import annotations

import json
from pathlib import Path

import bitldp
import pytest
from support.tables import COLOURS, ROWS, perturb, report_of

#: Long enough that no hash of the report has its digits by chance.
SEED = 918_273_645_546_372_819


def test_report(parquet: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    common = ("--columns", "height,weight", "--epsilon", 2, "--calibration", "paper")
    result = perturb(parquet, target, "--mechanism", "frr", *common, "--seed", SEED, "--keep", "level")
    assert "claimed epsilon 2 per record, but the exact one is" in result.stderr
    assert "--seed is for tests" in result.stderr
    text = target.with_name("out.csv.privacy.json").read_text()
    assert str(SEED) not in text
    report = json.loads(text)
    with pytest.warns(bitldp.PrivacyClaimWarning):
        mechanism = bitldp.FRR(2, epsilon=2.0, calibration="paper")
    part = report["mechanisms"][0]
    assert (report["rows"], report["seeded"], report["kept_unperturbed"]) == (ROWS, True, ["level"])
    assert (report["version"], report["isa"]) == (bitldp.__version__, bitldp._core.isa())
    assert part["epsilon_exact"] == {
        "bit": mechanism.guarantee.bit,
        "feature": mechanism.guarantee.feature,
        "record": mechanism.guarantee.record,
    }
    assert (part["epsilon_claimed"], part["holds"], part["columns"]) == (2.0, False, ["height", "weight"])
    assert report["total_per_record"]["holds"] is False
    assert part["step"] == 0.0625


def test_the_report_has_the_condition_of_the_guarantee(parquet: Path, tmp_path: Path) -> None:
    options = ("--columns", "colour", "--categories", ",".join(COLOURS), "--epsilon", 2)
    for mechanism, given in (("oue", bitldp.OUE(3, epsilon=2.0).guarantee.given), ("grr", "")):
        target = tmp_path / f"{mechanism}.csv"
        result = perturb(parquet, target, "--mechanism", mechanism, *options)
        report = report_of(target)
        assert report["mechanisms"][0]["given"] == given
        assert report["total_per_record"]["given"] == given
        assert result.exit_code == 0
        assert "exact epsilon 2 a row (claimed 2)" in result.stdout  # the command makes one-hot input itself
    assert report_of(tmp_path / "oue.csv")["total_per_record"]["given"]


def test_a_claim_of_each_column_adds_up(parquet: Path, tmp_path: Path) -> None:
    options = ("--epsilon", 8, "--unit", "feature")
    perturb(parquet, tmp_path / "frr.csv", "--mechanism", "frr", "--columns", "height,weight", *options)
    assert report_of(tmp_path / "frr.csv")["total_per_record"]["epsilon_claimed"] == 16.0
    columns = ("--columns", "colour", "--categories", ",".join(COLOURS))
    perturb(parquet, tmp_path / "grr.csv", "--mechanism", "grr", *columns, *options)
    assert report_of(tmp_path / "grr.csv")["mechanisms"][0]["claim_covers"] == "feature"
