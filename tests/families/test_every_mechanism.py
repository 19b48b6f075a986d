"""Every mechanism that a family exports can be used for everything, and is listed nowhere else."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import math
import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.law import arguments

pytest.importorskip("scipy", reason="the extra design is not installed")
pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

from bitldp.cli.catalogue import FAMILIES, CatalogueEntry, entries
from support.command import invoke

PACKAGE = Path(bitldp.__file__).parent
RECORDS = 7

EXPORTED: dict[str, type[Mechanism]] = {
    name: kind
    for family in FAMILIES
    for package in [importlib.import_module(f"bitldp.{family}")]
    for name in package.__all__
    if inspect.isclass(kind := getattr(package, name)) and issubclass(kind, Mechanism)
}
EVERY = pytest.mark.parametrize("name", EXPORTED)


@cache
def example(name: str) -> Any:
    """Return a mechanism with its usual parameters."""
    kind = EXPORTED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        return kind._for_record(**kind._usual(2.0))


def records_of(mechanism: Any, rows: int) -> tuple[np.ndarray, ...]:
    """Return records that the mechanism takes: copies of one of its far inputs."""
    return arguments(mechanism.extremes().inputs[0], rows)


def of_command(name: str) -> list[CatalogueEntry]:
    """Return the entries of a mechanism on the command line."""
    return [entry for entry in entries().values() if entry.kind is EXPORTED[name]]


def test_the_families_export_every_mechanism_of_the_package() -> None:
    top = {
        name
        for name in bitldp.__all__
        if inspect.isclass(kind := getattr(bitldp, name)) and issubclass(kind, Mechanism)
    }
    assert top <= set(EXPORTED)
    assert len(top) > 35
    assert not any(inspect.isabstract(kind) for kind in EXPORTED.values())


@EVERY
@pytest.mark.slow
def test_it_is_accounted(name: str) -> None:
    mechanism = example(name)
    guarantee = mechanism.guarantee
    assert mechanism._symbols()
    account = bitldp.account([(mechanism, 3)], delta=1e-5)
    assert 0.0 < account.epsilon <= 3.0 * guarantee.record * (1.0 + 1e-12)


@pytest.mark.statistical
@EVERY
def test_it_is_audited(name: str) -> None:
    experiment = example(name).extremes()
    assert experiment is not None
    assert len(experiment.inputs) >= 2
    # n = 400 a seeded audit; a right mechanism fails with a chance of 1e-3 were the seed drawn.
    assert bitldp_audit()(example(name), n=400, rng=1).passed


def bitldp_audit() -> Any:
    """Return the function: the package has a module of the same name."""
    from bitldp.audit import audit

    return audit


@EVERY
def test_it_is_put_on_the_wire(name: str) -> None:
    pytest.importorskip("flwr", reason="the extra fl is not installed")
    from bitldp.federated.wire.codec import ReportForm

    mechanism = example(name)
    form = ReportForm(mechanism)
    reports = mechanism.randomize(*records_of(mechanism, RECORDS), output=form.output, rng=5)
    arrays = form.split(reports, RECORDS)
    shaped = []
    for array, field in zip(arrays, form.fields, strict=True):
        assert int(array.max()) < 1 << field.bits
        packed = bitldp.pack(np.ascontiguousarray(array).ravel(), field.bits)
        size = RECORDS * field.columns
        shaped.append(bitldp.unpack(packed, field.bits, size).reshape(RECORDS, field.columns))
    joined = form.assemble(shaped)
    both = zip(
        *(each if isinstance(each, tuple) else (each,) for each in (joined, reports)),
        strict=True,
    )
    for one, other in both:
        np.testing.assert_array_equal(np.asarray(one).ravel(), np.asarray(other).ravel())


@pytest.mark.slow
@EVERY
def test_it_is_explained(name: str) -> None:
    facts = example(name)._facts(100)
    assert facts["errors"]
    json.dumps(facts)
    assert inspect.getdoc(EXPORTED[name]).split("\n")[0].endswith(".")
    if EXPORTED[name]._takes is None:  # a composite of others, whose parameters no command line can give
        assert not of_command(name)
        return
    assert of_command(name)
    for entry in of_command(name):
        given = {"--epsilon": 2.0, **options_of(entry)}
        result = invoke("explain", entry.name, *(word for pair in given.items() for word in pair), "--json")
        assert result.exit_code == 0, result.stderr
        parts = json.loads(result.stdout)["mechanisms"]
        record = sum(part["guarantee"]["record"] for part in parts)
        assert record <= 2.0 * (1.0 + 1e-9) or name == "UER"
        shown = invoke("explain", entry.name, "--help").stdout
        assert entry.summary.split()[0] in shown
        for option in entry.options:
            assert re.search(rf"--{option.replace('_', '-')}[ ,]", shown), option


def options_of(entry: CatalogueEntry) -> dict[str, object]:
    """Return the options that give an example of a mechanism, but for those that are its own defaults."""
    parameters = entry.kind._usual(2.0, entry.usual_size)
    given = {}
    for option, known in entry.options.items():
        if known.field in parameters:
            given[f"--{option.replace('_', '-')}"] = parameters[known.field]
    if "epsilon_y" in {known.field for known in entry.options.values()}:
        given["--epsilon"] = parameters["epsilon"]
    return given


COLUMNS = {"numbers": "x", "reals": "x", "points": "x", "categories": "c"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in entries() if entries()[name].perturbs])
def test_it_perturbs_columns(name: str, tmp_path: Path) -> None:
    entry = entries()[name]
    rows = 40
    size = entry.usual_size
    labels = ",".join(map(str, range(size)))
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    lines = [f"{-1.0 + 2.0 * row / rows},{row % size},{row % 3}" for row in range(rows)]
    source.write_text("x,c,y\n" + "\n".join(lines) + "\n")
    options: dict[str, object] = {
        **{option: value for option, value in options_of(entry).items() if option not in SIZES},
        "--columns": COLUMNS[entry.takes[0]],
    }
    options |= {"--epsilon": options.get("--epsilon", 2.0)}
    if entry.takes[0] in ("reals", "points"):
        options |= {"--low": -1, "--high": 1}
    if entry.takes[0] == "points":
        options["--points"] = size
    if entry.takes[0] == "categories":
        options["--categories"] = labels
    if "label_epsilon" in entry.options:
        options |= {"--label": "y", "--categories": "y=0..2"}
    words = [word for pair in options.items() for word in pair]
    written = []
    for seed in ("--seed", 3), ("--seed", 3), ():
        result = invoke("perturb", source, "-o", target, "--mechanism", name, *words, *seed, "--force")
        assert result.exit_code == 0, (words, result.stderr)
        assert len(target.read_text().splitlines()) == rows + 1
        written.append(target.read_text())
    assert written[0] == written[1]
    report = json.loads(target.with_name("out.csv.privacy.json").read_text())
    exact = report["total_per_record"]["epsilon_exact"]
    assert exact <= 2.0 * (1.0 + 1e-9) or name == "uer"
    assert math.isfinite(exact)


SIZES = ("--features", "--categories", "--points")

# Rooms that ask a mechanism, and know none by its name. A label of `perturb` is randomized by label-RR.
ASKING = (
    "accounting",
    "audit",
    "federated/wire",
    "cli/catalogue.py",
    "cli/explain.py",
    "cli/perturb",
    "cli/audit.py",
)
KNOWN = {("cli/perturb/options_plan.py", "LabelRR")}


def named(path: Path) -> set[str]:
    """Return the mechanisms that a file names in its code."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = {getattr(node, "id", getattr(node, "attr", getattr(node, "name", ""))) for node in tree}
    return names & set(EXPORTED)


def test_nobody_else_lists_it() -> None:
    files = [
        path
        for room in ASKING
        for path in ((PACKAGE / room).rglob("*.py") if (PACKAGE / room).is_dir() else [PACKAGE / room])
    ]
    assert len(files) > 20
    found = {(path.relative_to(PACKAGE).as_posix(), name) for path in files for name in named(path)}
    assert found == KNOWN


PLANTED = '''
"""A mechanism that nobody knows."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import bitldp.numeric
from bitldp.mechanism.parameters import whole
from bitldp.numeric import Duchi


@dataclass(frozen=True, eq=False, repr=False)
class WigglyToy(Duchi):
    """Toy mechanism: planted by a test.

    Parameters
    ----------
    epsilon, features, interval, spend, k, clip, unit, calibration
        As of `Duchi`.
    wiggle : int
        How much it wiggles, 1 to 9: not at all.
    """

    _: KW_ONLY
    wiggle: Annotated[int, whole(1, 9)] = 4


bitldp.numeric.WigglyToy = WigglyToy
bitldp.numeric.__all__ = [*bitldp.numeric.__all__, "WigglyToy"]

from bitldp.cli import main

main()
'''


def planted(folder: Path, *arguments: object) -> str:
    """Run the command line where one more mechanism is exported."""
    program = folder / "planted.py"
    program.write_text(PLANTED)
    command = [sys.executable, str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_new_mechanism_is_on_the_command_line(tmp_path: Path) -> None:
    assert "Toy mechanism: planted by a test" in planted(tmp_path, "explain")
    shown = " ".join(planted(tmp_path, "explain", "wiggly-toy", "--help").split())
    assert "--wiggle N How much it wiggles, 1 to 9: not at all. [1 to 9; default: 4]" in shown
    assert "--unit record|feature What epsilon covers" in shown
    arguments = ("wiggly-toy", "--features", 2, "--epsilon", 1, "--wiggle", 7, "--json")
    (part,) = json.loads(planted(tmp_path, "explain", *arguments))["mechanisms"]
    assert part["parameters"]["wiggle"] == 7
    rows = json.loads(planted(tmp_path, "explain", "--all", "--epsilon", 1, "--json"))
    assert {row["name"]: row for row in rows}["wiggly-toy"]["family"] == "numeric"
    assert "passes" in planted(tmp_path, "audit", "wiggly-toy", "--epsilon", 1, "--n", 500, "--seed", 1)
    source, target = tmp_path / "x.csv", tmp_path / "o.csv"
    source.write_text("x\n0.5\n-0.5\n")
    options = ("--columns", "x", "--low", -1, "--high", 1, "--epsilon", 1, "--wiggle", 2)
    planted(tmp_path, "perturb", source, "-o", target, "--mechanism", "wiggly-toy", *options)
    assert len(target.read_text().splitlines()) == 3
