"""The examples of the docstrings run as they are written."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import bitldp
import pytest
from bitldp.base.errors import MissingExtraError

ROOT = Path(bitldp.__file__).parent
SITE = Path(__file__).parents[2] / "docs" / "site"


def with_examples():
    """Return the modules whose source has an example."""
    for path in sorted(ROOT.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(ROOT.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(with_examples()))
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0


# -- what stands once


@pytest.fixture(scope="module")
def reference():
    """Return what lists the public names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(SITE), *sys.path])
        yield importlib.import_module("reference")


@pytest.fixture(scope="module")
def classes(reference):
    """Return every class that the reference lists, by its dotted name."""
    names = [name for room in reference.ROOMS for name in _of_room(reference, room)]
    each = {name: reference.object_of(name) for name in names}
    return {name: kind for name, kind in each.items() if inspect.isclass(kind)}


def _of_room(reference, room):
    try:
        return reference.names(room)
    except MissingExtraError:
        return []


def test_help_leads_to_no_other_class(classes):
    assert len(classes) > 100
    assert [name for name, kind in classes.items() if "As of `" in (kind.__doc__ or "")] == []


def test_help_of_a_function_or_method_leads_to_no_other(reference):
    """Whoever asks for help reads every parameter and error there; the compiled core is not looked at."""
    names = [name for room in reference.ROOMS for name in _of_room(reference, room)]
    values = [reference.object_of(name) for name in names]
    for kind in [value for value in values if inspect.isclass(value)]:
        values += [getattr(kind, name) for name in dir(kind) if not name.startswith("_")]
    found = {
        f"{each.__module__}.{each.__qualname__}"
        for each in values
        if inspect.isfunction(each) or inspect.ismethod(each)
        if re.search(r"^ +As of ", each.__doc__ or "", re.MULTILINE)
    }
    assert len(values) > 1000
    assert found == set()


def test_a_docstring_is_completed():
    """By a base, by a public class, through several, and beside words of its own."""
    for kind, paragraph in (
        (bitldp.Piecewise, 'spend : {"split", "sample"}\n    How a record\'s budget is spent: evenly on all'),
        (
            bitldp.MixedRecord,
            "clip : bool\n    Whether values outside the interval are clipped to it, or refused.\n\n",
        ),
        (bitldp.UER, "bits : int\n    Bits l of a code word, 2 to 32"),
        (bitldp.Duchi, 'features that are released.\n    With ``spend="cube"`` the two are the same'),
    ):
        assert paragraph in inspect.getdoc(kind)
