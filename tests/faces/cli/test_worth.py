"""What ``bitldp perturb`` writes is worth what it says: unbiased numbers, or how biased they are."""

from __future__ import annotations

import math
from pathlib import Path

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from support.command import invoke
from support.refusals import refused
from support.tables import perturb, read, report_of

ROWS = 20_000
TRUTH = 172.0
WORDS = ("--integer-bits", 8, "--epsilon", 20)


@pytest.fixture(scope="module")
def heights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("heights") / "people.parquet"
    pa.parquet.write_table(pa.table({"height": np.full(ROWS, TRUTH), "weight": np.full(ROWS, 70.0)}), path)
    return path


def mean_of(path: Path) -> tuple[float, float]:
    """Return the mean of the column, and its standard error."""
    values = read(path).column("height").to_numpy()
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


@pytest.mark.parametrize("mechanism", ["frr", "moue"])
def test_the_mean_of_words_as_numbers_is_right(heights: Path, tmp_path: Path, mechanism: str) -> None:
    target = tmp_path / "out.parquet"
    common = ("--mechanism", mechanism, "--columns", "height,weight", *WORDS, "--seed", 3)
    result = perturb(heights, target, *common, "--output", "values")
    mean, error = mean_of(target)
    # n = 20,000, seeded; five standard errors, alpha = 6e-7 were the key drawn.
    assert abs(mean - TRUTH) < 5 * error
    part = report_of(target)["mechanisms"][0]
    assert (part["decode"], part["to_estimate"]) == ("unbiased", "the mean of the column")
    assert part["bias_bound"] == part["step"]
    assert "biased" not in result.stderr
    assert "their mean is right" in result.stderr


def test_biased_numbers_say_by_how_much(heights: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    common = ("--mechanism", "frr", "--columns", "height,weight", *WORDS, "--seed", 3)
    result = perturb(heights, target, *common, "--output", "values", "--decode", "reported")
    mean, error = mean_of(target)
    part = report_of(target)["mechanisms"][0]
    mechanism = bitldp.FRR(2, epsilon=20.0, integer_bits=8)
    assert part["bias_bound"] == mechanism.decode_bias() + part["step"]
    assert TRUTH - part["bias_bound"] - 5 * error < mean < TRUTH - 10.0
    warning = next(line for line in result.stderr.splitlines() if line.startswith("warning: "))
    assert f"may be off by up to {part['bias_bound']:.4g}" in warning
    assert "--decode unbiased" in warning
    assert part["decode"] == "reported"
    assert "not from these numbers" in part["to_estimate"]


def test_words_are_codes_by_default(heights: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    common = ("--mechanism", "frr", "--columns", "height,weight", *WORDS, "--seed", 3)
    result = perturb(heights, target, *common)
    codes = np.stack([read(target).column(name).to_numpy() for name in ("height", "weight")], axis=1)
    assert codes.dtype == np.uint16
    estimate = bitldp.FRR(2, epsilon=20.0, integer_bits=8).estimate_mean(codes)
    assert np.all(np.abs(estimate.value - [TRUTH, 70.0]) < 5 * estimate.stderr)
    assert "the columns hold code words, and no numbers: bitldp.FRR(...).estimate_mean" in result.stderr
    part = report_of(target)["mechanisms"][0]
    assert part["to_estimate"].startswith("bitldp.FRR(...).estimate_mean")
    assert "decode" not in part


RANGE = ("--columns", "height", "--low", 100, "--high", 250, "--points", 16, "--epsilon", 1, "--seed", 3)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["grr", "exponential"])
def test_the_mean_of_points_is_right(heights: Path, tmp_path: Path, mechanism: str) -> None:
    target = tmp_path / "out.parquet"
    perturb(heights, target, "--mechanism", mechanism, *RANGE)
    mean, error = mean_of(target)
    part = report_of(target)["mechanisms"][0]
    assert part["bias_bound"] == 5.0  # half a step: the nearest point
    assert abs(mean - TRUTH) < 5 * error + part["bias_bound"]
    biased = tmp_path / "biased.parquet"
    result = perturb(heights, biased, "--mechanism", mechanism, *RANGE, "--decode", "reported")
    assert set(read(biased).column("height").to_pylist()) <= set(np.linspace(100, 250, 16))
    assert "biased toward the middle" in result.stderr
    assert report_of(biased)["mechanisms"][0]["bias_bound"] > 20.0


@pytest.mark.slow
def test_where_nothing_unbiased_exists_it_is_said(heights: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    result = perturb(heights, target, "--mechanism", "brr", *RANGE)
    part = report_of(target)["mechanisms"][0]
    mechanism = bitldp.BRR(16, epsilon=1.0, interval=(100.0, 250.0))
    law = mechanism.probabilities()
    assert part["bias_bound"] == pytest.approx(np.abs(law @ mechanism.points - mechanism.points).max() + 5.0)
    assert "no unbiased decode exists" in result.stderr
    assert "no unbiased decode exists" in part["to_estimate"]
    refusal = invoke(
        *("perturb", heights, "-o", tmp_path / "o.csv", "--mechanism", "brr", *RANGE, "--decode", "unbiased")
    )
    refused(refusal, 2, "--decode unbiased: BRR with m = ", "no unbiased decode exists")


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (("frr", *WORDS, "--decode", "unbiased"), "--decode is for --output values, not for codes"),
        (("frr", *WORDS, "--decode", "right"), "--decode right: must be one of unbiased, reported"),
        (("frr", "--epsilon", 0, "--output", "values", "--decode", "unbiased"), "no unbiased decode exists"),
        (
            ("hybrid", "--low", 0, "--high", 9, "--epsilon", 1, "--decode", "reported"),
            "the numbers of hybrid are unbiased as they are",
        ),
        (
            ("grr", "--categories", "a,b", "--epsilon", 1, "--decode", "unbiased"),
            "its columns are not numbers",
        ),
    ],
)
def test_a_decode_that_is_not_there(
    heights: Path, tmp_path: Path, options: tuple[object, ...], fragment: str
) -> None:
    target = tmp_path / "o.csv"
    result = invoke("perturb", heights, "-o", target, "--columns", "height", "--mechanism", *options)
    refused(result, 2, fragment)


@pytest.mark.parametrize(
    ("options", "outside"),
    [
        (("hybrid", "--low", 0, "--high", 2, "--epsilon", 1), 3),
        (("brr", "--low", 0, "--high", 2, "--points", 5, "--epsilon", 1), 3),
        (("frr", "--integer-bits", 1, "--epsilon", 1), 3),
        (("hybrid", "--low", -9, "--high", 9, "--epsilon", 1), 0),
    ],
)
@pytest.mark.parametrize("form", ["csv", "npy"])
def test_clipped_numbers_are_counted_on_the_screen(
    tmp_path: Path, options: tuple[object, ...], outside: int, form: str
) -> None:
    values = [0.0, 0.5, 2.5, -3.0, 7.0, 1.0]
    source, target = tmp_path / f"x.{form}", tmp_path / f"o.{form}"
    if form == "npy":
        np.save(source, np.array(values))
    else:
        source.write_text("x\n" + "".join(f"{value}\n" for value in values))
    columns = () if form == "npy" else ("--columns", "x")
    result = perturb(source, target, "--mechanism", *options, *columns)
    name = "0" if form == "npy" else "x"
    said = f"note: {outside} numbers of {name} were outside the range, and moved to its ends"
    assert (said in result.stderr.splitlines()) is (outside > 0)
    assert "outside" not in target.with_name(target.name + ".privacy.json").read_text()


def test_numbers_outside_are_refused_where_they_do_not_move(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("x,y\n0.5,7731.0625\n7731.0625,1\n")
    options = ("--columns", "x", "--low", 0, "--high", 1, "--epsilon", 1, "--no-clip")
    result = invoke("perturb", source, "-o", tmp_path / "o.csv", "--mechanism", "duchi", *options)
    refused(result, 1, "row 2, column 'x': outside the range")
