"""What `import bitldp` alone gives: the names, and the rooms when they are asked for."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import types
from pathlib import Path

import bitldp
import pytest

HERE = Path(bitldp.__file__).parents[1]


def run(program: str, *flags: str) -> str:
    """Run a program of its own, in which nothing was imported before."""
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    found = subprocess.run(
        [sys.executable, *flags, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return found.stdout


@pytest.mark.slow
@pytest.mark.parametrize("room", bitldp._MODULES)
def test_every_room_is_there(room: str) -> None:
    if room == "federated":
        pytest.importorskip("flwr", reason="the extra fl is not installed")
    shown = run(f"import bitldp; print(type(bitldp.{room}).__name__, bitldp.{room}.__name__)")
    assert shown.split() == ["module", f"bitldp.{room}"]
    assert room in dir(bitldp)


@pytest.mark.slow
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


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    """The import of the package costs next to nothing; that of one mechanism loads its family alone."""
    listing = "print(*(name for name in sys.modules if name.partition('.')[0] in ('bitldp', 'numpy')))"
    assert set(run(f"import sys, bitldp; {listing}").split()) == {
        *("bitldp", "bitldp._core", "bitldp.base", "bitldp.base.early"),
    }
    in_family = {
        name.split(".")[1]
        for name in run(f"import sys, bitldp; bitldp.GRR; {listing}").split()
        if "." in name
    }
    elsewhere = {"compression", "points", "recommend", "federated", "reference", "report", "audit", "cli"}
    assert not in_family & elsewhere


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("grr", "GRR"),
        ("Picewise", "Piecewise"),
        ("audits", "audit"),
        ("recomend", "recommend"),
        ("base64", None),
    ],
)
def test_a_name_that_is_not_there_names_the_nearest(name: str, nearest: str | None) -> None:
    with pytest.raises(AttributeError) as refused:
        getattr(bitldp, name)
    asked = f"; did you mean {nearest!r}?" if nearest else ""
    assert str(refused.value) == f"module 'bitldp' has no attribute {name!r}{asked}"
    assert refused.value.name == name


def test_what_is_listed_is_public() -> None:
    """The folders and names are listed, no plumbing; type checkers and users are told of the same names."""
    assert set(bitldp.__all__) <= set(dir(bitldp))
    assert {name for name in dir(bitldp) if name.startswith("_")} == {"__version__"}
    folders = {path.stem for path in Path(bitldp.__file__).parent.iterdir() if path.suffix in ("", ".py")}
    hidden = {"__init__", "__main__", "__pycache__", "base"}
    assert {name for name in folders - hidden if name not in dir(bitldp)} == set()
    told = {
        alias.name: node.module
        for node in ast.parse(Path(bitldp.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bitldp.")
        for alias in node.names
        if alias.asname == alias.name  # `X as X` is public to a type checker
    }
    imported = {name: f"bitldp.{module}" for module, names in bitldp._NAMES.items() for name in names}
    core = dict.fromkeys(("__version__", "pack", "unpack"), "bitldp._core")
    assert told == imported | core
    assert sorted(bitldp.__all__) == sorted(told)


@pytest.mark.parametrize("first", ["", ".candidates", ".recommend"])
@pytest.mark.slow
def test_a_folder_does_not_hide_a_function_of_its_name(first: str) -> None:
    program = (
        f"import bitldp.recommend{first}\nfrom bitldp import recommend\nprint(recommend is bitldp.recommend)"
    )
    assert run(f"{program}\nprint(type(recommend).__name__)").split() == ["True", "function"]


def test_an_extra_that_is_missing_is_named() -> None:
    program = (
        "import bitldp, bitldp.base.errors as extras\n"
        "extras.importlib.util.find_spec = lambda name: None\n"
        "try:\n    bitldp.federated\n"
        "except ImportError as error:\n    print(error)"
    )
    assert 'pip install "bitldp[fl]"' in run(program)


USER = """
import bitldp
import numpy as np
from numpy.typing import NDArray

advice = bitldp.recommend("frequency", epsilon=1.0, categories=16)
mechanism = advice.mechanism
reports = mechanism.randomize(np.arange(16))
estimate = mechanism.estimate_frequencies(np.asarray(reports))
low, high = estimate.confidence_interval(level=0.9)
share: float = float(estimate.value[0] - low[0] + high[0])
print(estimate, share, mechanism.outside([1, 2]))

cities = bitldp.GRR(["Paris", "Rome"], epsilon=1.0)
codes: NDArray[np.generic] = cities.randomize(["Paris", "Rome"])
print(codes.dtype, codes.shape, cities.decode(codes), cities.randomize("Rome"))

bits = bitldp.OUE(4, epsilon=1.0).randomize(np.array([1, 2]))
print(bits.sum(axis=0))

number = bitldp.Duchi(epsilon=1.0, interval=(0, 10))
values: NDArray[np.float64] = number.randomize(np.array([3, 4]), output="values")
print(values.mean(), number.randomize(3), number.estimate_mean(number.randomize([1.5, 2.5])))

words = bitldp.FRR(3, epsilon=9.0).randomize(np.zeros((2, 3)))
print(len(estimate), estimate[0].value, estimate.to_dict(), np.asarray(estimate), cities.guarantee.epsilon)
print(words.shape, bitldp.audit.audit(number, n=100).passed, bitldp.numeric.Duchi)
"""


@pytest.mark.slow
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
    mistakes = [
        "bitldp.GRR(4.5, epsilon=1.0)",
        "bitldp.Piecewise(1.0)",
        "text: str = cities.randomize(['Rome'])",
        "estimate.confidence_interval('95%')",
        "reports.sum()",
        "cities.randomize(['Rome'], output='value')",
        "number.randomize([3.0], output='value')",
        "words_again = bitldp.FRR(3, epsilon=9.0).randomize(np.zeros((2, 3)), output='bit')",
    ]
    wrong = check(USER + "\n".join(mistakes) + "\n")
    assert wrong.returncode == 1
    first = USER.count("\n") + 1
    for line in range(first, first + len(mistakes)):
        assert f"program.py:{line}: error:" in wrong.stdout, wrong.stdout
