"""What `import bitldp` alone gives: the names, and the rooms when they are asked for."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import bitldp
import pytest

ROOMS = [
    *(
        "numeric",
        "ordered",
        "compression",
        "selection",
        "design",
        "accounting",
        "federated",
        "reference",
        "data",
    ),
    *("report", "audit", "demo", "papers", "channels", "codecs", "privacy", "amplification"),
]
HERE = Path(bitldp.__file__).parents[1]


def run(program: str, *flags: str) -> str:
    """Run a program of its own, in which nothing was imported before."""
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    found = subprocess.run(
        [sys.executable, *flags, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return found.stdout


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_there(room: str) -> None:
    if room in ("federated", "papers", "demo"):
        pytest.importorskip("flwr", reason="the extra fl is not installed")
    shown = run(f"import bitldp; print(type(bitldp.{room}).__name__, bitldp.{room}.__name__)")
    assert shown.split() == ["module", f"bitldp.{room}"]
    assert room in dir(bitldp)


def test_functions_stay_functions() -> None:
    program = (
        "import bitldp, bitldp.recommend.recommend, bitldp.accounting.compose\n"
        "assert callable(bitldp.recommend) and callable(bitldp.account)\n"
        "assert callable(bitldp.audit.audit)\n"
        "import bitldp.audit\n"
        "print(type(bitldp.recommend).__name__, type(bitldp.account).__name__, type(bitldp.audit).__name__)"
    )
    assert run(program).split() == ["function", "function", "module"]
    assert isinstance(bitldp.audit, types.ModuleType)


def test_what_is_heavy_is_not_imported_before() -> None:
    shown = run("import sys, bitldp; print(*(name for name in sys.modules if name.startswith('bitldp.')))")
    imported = {name.split(".")[1] for name in shown.split()}
    assert not imported & {"federated", "reference", "data", "report", "audit", "demo", "papers", "cli"}


def test_what_is_not_there_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'bitldp' has no attribute 'nothing'"):
        _ = bitldp.nothing
    assert not hasattr(bitldp, "base64")
    assert set(bitldp.__all__) <= set(dir(bitldp))


def test_an_extra_that_is_missing_is_named() -> None:
    program = (
        "import bitldp, bitldp.base.errors as extras\n"
        "extras.importlib.util.find_spec = lambda name: None\n"
        "try:\n    bitldp_papers\n"
        "except ImportError as error:\n    print(error)"
    )
    assert 'pip install "bitldp[fl]"' in run(program)


USER = """
import bitldp
import numpy as np
from numpy.typing import NDArray

advice = bitldp.recommend("frequency", 1.0, categories=16)
mechanism = advice.mechanism
reports = mechanism.randomize(np.arange(16))
estimate = mechanism.estimate_frequencies(np.asarray(reports))
low, high = estimate.confidence_interval(level=0.9)
share: float = float(estimate.value[0] - low[0] + high[0])
print(estimate, share, mechanism.outside([1, 2]))

cities = bitldp.GRR(["Paris", "Rome"], 1.0)
codes: NDArray[np.generic] = cities.randomize(["Paris", "Rome"])
print(codes.dtype, codes.shape, cities.decode(codes), cities.randomize("Rome"))

bits = bitldp.OUE(4, 1.0).randomize(np.array([1, 2]))
print(bits.sum(axis=0))

number = bitldp.Duchi(1.0, interval=(0, 10))
values: NDArray[np.float64] = number.randomize(np.array([3, 4]), output="values")
print(values.mean(), number.randomize(3), number.estimate_mean(number.randomize([1.5, 2.5])))

words = bitldp.FRR(3, epsilon=9.0).randomize(np.zeros((2, 3)))
print(words.shape, bitldp.audit.audit(number, n=100).passed, bitldp.numeric.Duchi)
"""


def test_a_typed_program(tmp_path: Path) -> None:
    """A user's program passes `mypy --strict`, and a wrong one does not."""
    pytest.importorskip("mypy")

    def check(text: str) -> subprocess.CompletedProcess[str]:
        program = tmp_path / "program.py"
        program.write_text(text, encoding="utf-8")
        cache = Path(__file__).parents[2] / ".mypy_cache" / "user"
        command = [
            "--strict",
            "--follow-imports=silent",
            f"--cache-dir={cache}",
            "--config-file=",
            str(program),
        ]
        return subprocess.run(
            [sys.executable, "-m", "mypy", *command],
            env={**os.environ, "MYPYPATH": str(HERE)},
            capture_output=True,
            text=True,
            check=False,
        )

    good = check(USER)
    assert good.returncode == 0, good.stdout
    wrong = check(
        USER
        + "bitldp.GRR(4.5, 1.0)\n"
        + "text: str = cities.randomize(['Rome'])\n"
        + "estimate.confidence_interval('95%')\n"
        + "reports.sum()\n"
    )
    assert wrong.returncode == 1
    assert len([line for line in wrong.stdout.splitlines() if ": error:" in line]) >= 4, wrong.stdout
