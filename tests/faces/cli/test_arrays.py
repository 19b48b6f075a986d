"""``bitldp perturb`` on NumPy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.cli.program import app
from support.tables import SPELLED
from typer.testing import CliRunner, Result


def perturb(source: Path, target: Path, *options: object) -> Result:
    """Run ``bitldp perturb`` in this process and expect success."""
    arguments = ("perturb", source, "-o", target, *options)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    return result


ARRAYS = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "big-endian": np.dtype(">f8"),
}


@pytest.mark.parametrize("dtype", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays(tmp_path: Path, dtype: Any, order: Any) -> None:
    x = np.random.default_rng(3).normal(0.0, 3.0, (8192 + 5, 3))
    np.save(tmp_path / "x.npy", np.asarray(x, dtype, order=order))
    target = tmp_path / "out.npy"
    result = perturb(tmp_path / "x.npy", target, "--mechanism", "frr", "--epsilon", 9, "--seed", 4, *SPELLED)
    assert "numbers are cut to -31.9375 .. 31.9375" in result.stderr
    narrow = np.float64 if np.dtype(dtype).itemsize == 8 else np.float32
    rounded = np.asarray(x, dtype).astype(narrow)
    seed = np.random.SeedSequence(4).spawn(1)[0]
    out = np.load(target)
    assert out.dtype == narrow
    assert np.array_equal(out, bitldp.FRR(3, epsilon=9.0).randomize(rounded, rng=seed, output="values"))


def test_array_columns_and_forms(tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(0.0, 3.0, (100, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    common = ("--mechanism", "frr", "--columns", "3,1", "--epsilon", 9, "--seed", 4, "--force")
    seed = np.random.SeedSequence(4).spawn(1)[0]
    for output in ("values", "codes", "bits"):
        form = SPELLED if output == "values" else ("--output", output)
        perturb(tmp_path / "x.npy", tmp_path / "out.npy", *common, *form)
        expected = bitldp.FRR(2, epsilon=9.0).randomize(x[:, [3, 1]], rng=seed, output=output)
        out = np.load(tmp_path / "out.npy")
        assert out.dtype == expected.dtype
        assert np.array_equal(out, expected)


def test_flat_arrays(tmp_path: Path) -> None:
    labels = np.random.default_rng(3).integers(5, 9, 10_000)
    np.save(tmp_path / "labels.npy", labels)
    np.save(tmp_path / "numbers.npy", labels / 2.0)
    perturb(
        *(tmp_path / "labels.npy", tmp_path / "grr.npy", "--mechanism", "grr"),
        *("--categories", "5..8", "--epsilon", 60),
    )
    out = np.load(tmp_path / "grr.npy")
    assert out.dtype == labels.dtype
    assert np.array_equal(out, labels)
    perturb(
        *(tmp_path / "labels.npy", tmp_path / "oue.npy", "--mechanism", "oue"),
        *("--categories", "5..8", "--epsilon", 60),
    )
    bits = np.load(tmp_path / "oue.npy")
    assert bits.shape == (10_000, 4)
    assert not bits[labels[:, None] != np.arange(5, 9)].any()
    perturb(
        *(tmp_path / "numbers.npy", tmp_path / "brr.npy", "--mechanism", "brr", "--m", 1),
        *("--low", 2, "--high", 5, "--points", 7, "--epsilon", 60),
    )
    assert np.array_equal(np.load(tmp_path / "brr.npy"), labels / 2.0)
    perturb(tmp_path / "numbers.npy", tmp_path / "frr.npy", "--mechanism", "frr", "--epsilon", 5)
    assert np.load(tmp_path / "frr.npy").shape == (10_000,)


def test_array_without_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.empty((0, 3), np.float32))
    common = ("--mechanism", "frr", "--epsilon", 1, "--output", "bits")
    perturb(tmp_path / "x.npy", tmp_path / "out.npy", *common)
    assert np.load(tmp_path / "out.npy").shape == (0, 30)
