"""How far a reader walks: what constructing and calling one numeric mechanism passes through."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import bitldp
import numpy as np
import pytest

ROOT = Path(bitldp.__file__).parent


def walk(work):
    """Return the functions of the package that `work` calls, as (room, name)."""
    calls = []

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            calls.append((path.relative_to(ROOT).parts[0], frame.f_code.co_name))

    sys.setprofile(note)
    try:
        made = work()
    finally:
        sys.setprofile(None)
    return made, calls


def test_a_numeric_mechanism_is_built_and_called_in_few_steps() -> None:
    bitldp.Piecewise(0.123456)  # reads the declared parameters, once a class
    mechanism, built = walk(lambda: bitldp.Piecewise(0.654321))
    assert len(built) <= 35, built
    assert len({room for room, _ in built}) <= 6, built
    x = np.linspace(-1.0, 1.0, 8)
    _, called = walk(lambda: mechanism.randomize(x))
    assert len(called) <= 6, called
    assert len({room for room, _ in called}) <= 4, called


def test_a_record_of_words_is_released_in_one_call() -> None:
    mechanism = bitldp.FRR(features=3, epsilon=1.0)
    _, called = walk(lambda: mechanism.randomize(np.zeros((2, 3))))
    assert len(called) <= 4, called


def test_reading_a_numeric_mechanism_opens_few_files() -> None:
    release = bitldp.Piecewise(1.0)._release
    files = {
        inspect.getsourcefile(kind)
        for kind in (*bitldp.Piecewise.__mro__, *type(release).__mro__)
        if kind.__module__.startswith("bitldp.")
    }
    # Seven on the way to the law, and what keyed coins ask of any mechanism.
    assert len(files) <= 8, files


@pytest.mark.parametrize("kind", [bitldp.GRR, bitldp.BRR, bitldp.OUE, bitldp.BlockDesign])
def test_reading_a_mechanism_opens_four_files(kind: type) -> None:
    files = {inspect.getsourcefile(each) for each in kind.__mro__ if each.__module__.startswith("bitldp.")}
    assert len(files) <= 4, files
