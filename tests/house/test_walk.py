"""How far a reader walks: what a mechanism, and a command, pass through."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import bitldp
import numpy as np
import pytest
from support.arrows import python_arrows, reached

ROOT = Path(bitldp.__file__).parent


class Step(NamedTuple):
    """A call of a function of the package: its room, module and name, and the module that calls it.

    The caller is empty outside the package, and where an object calls a method of its own: that is no way to
    another place, wherever among its bases the method stands.
    """

    room: str
    module: str
    name: str
    caller: str


def module_of(file: str) -> str:
    """Return the dotted name of a file of the package; nothing of another."""
    path = Path(file)
    if not path.is_relative_to(ROOT):
        return ""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if path.stem == "__init__" else parts)


def own(frame: Any) -> Any:
    """Return the object or the class that a frame's function is a method of."""
    named = frame.f_code.co_varnames[:1]
    return frame.f_locals.get(named[0]) if named in (("self",), ("cls",)) else None


def walk(work: Callable[[], Any]) -> tuple[Any, list[Step]]:
    """Return what some work returns, and the calls of functions of the package."""
    steps: list[Step] = []

    def note(frame: Any, event: str, _: Any) -> None:
        module = module_of(frame.f_code.co_filename) if event == "call" else ""
        if module:
            before = frame.f_back
            same = own(frame) is not None and before is not None and own(before) is own(frame)
            caller = "" if same or before is None else module_of(before.f_code.co_filename)
            steps.append(Step(module.split(".")[1], module, frame.f_code.co_name, caller))

    sys.setprofile(note)
    try:
        made = work()
    finally:
        sys.setprofile(None)
    return made, steps


def climbs(steps: list[Step]) -> set[tuple[str, str, str]]:
    """Return the calls from a file up into one that stands on it: caller, module and name."""
    arrows = python_arrows(ROOT)
    above = {module: reached(arrows, module) for module in arrows}
    return {
        (step.caller, step.module, step.name)
        for step in steps
        if step.caller and step.caller != step.module and step.caller in above[step.module]
    }


def test_a_numeric_mechanism_is_built_and_called_in_few_steps() -> None:
    bitldp.Piecewise(epsilon=0.123456)  # reads the declared parameters, once a class
    mechanism, built = walk(lambda: bitldp.Piecewise(epsilon=0.654321))
    assert len(built) <= 35, built
    assert len({step.room for step in built}) <= 6, built
    assert len({step.module for step in built}) <= 10, built
    x = np.linspace(-1.0, 1.0, 8)
    _, called = walk(lambda: mechanism.randomize(x))
    assert len(called) <= 6, called
    assert len({step.room for step in called}) <= 4, called
    assert len({step.module for step in called}) <= 4, called


def test_a_record_of_words_is_released_in_one_call() -> None:
    mechanism = bitldp.FRR(features=3, epsilon=1.0)
    _, called = walk(lambda: mechanism.randomize(np.zeros((2, 3))))
    assert len(called) <= 4, called
    assert len({step.module for step in called}) <= 3, called


@pytest.mark.slow
def test_a_released_file_is_a_straight_way_down(tmp_path: Path) -> None:
    """A plan of a number and of categories, from the command line to the report: few files, no climb."""
    pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
    from bitldp.tables import Column, TablePlan
    from support.command import invoke

    (tmp_path / "people.csv").write_text("height,city\n" + "170,Rome\n182,Oslo\n" * 20)
    TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=4.0, interval=(40.0, 220.0)), "height"),
            Column(bitldp.GRR(2, epsilon=1.0), "city", categories=["Rome", "Oslo"]),
        ]
    ).write(tmp_path / "plan.toml")
    command = ("perturb", tmp_path / "people.csv", "--plan", tmp_path / "plan.toml", "-o")
    assert invoke(*command, tmp_path / "first.csv").exit_code == 0  # imports, and reads declared parameters
    result, steps = walk(lambda: invoke(*command, tmp_path / "second.csv"))
    assert result.exit_code == 0, result.output
    files = {step.module for step in steps}
    assert len(files) <= 25, sorted(files)  # each of one concept, and of at most 600 lines
    assert climbs(steps) == set()


def test_reading_a_numeric_mechanism_opens_few_files() -> None:
    release = bitldp.Piecewise(epsilon=1.0)._release
    files = {
        inspect.getsourcefile(kind)
        for kind in (*bitldp.Piecewise.__mro__, *type(release).__mro__)
        if kind.__module__.startswith("bitldp.")
    }
    # Seven on the way to the law, and what keyed randomness asks of any mechanism.
    assert len(files) <= 8, files


@pytest.mark.parametrize("kind", [bitldp.GRR, bitldp.BRR, bitldp.OUE, bitldp.BlockDesign])
def test_reading_a_mechanism_opens_four_files(kind: type) -> None:
    files = {inspect.getsourcefile(each) for each in kind.__mro__ if each.__module__.startswith("bitldp.")}
    assert len(files) <= 4, files
