"""The examples of the docstrings run as they are written."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import bitldp
import pytest
from bitldp.base.errors import MissingExtraError

ROOT = Path(bitldp.__file__).parent


def with_examples():
    """Return the modules whose source has an example."""
    for path in sorted(ROOT.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(ROOT.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", list(with_examples()))
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0
