"""The examples of the docstrings run as they are written."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = [
    "bitldp",
    "bitldp.amplification",
    "bitldp.audit",
    "bitldp.bitrand",
    "bitldp.bits",
    "bitldp.brr",
    "bitldp.categorical",
    "bitldp.codecs",
    "bitldp.ledger",
    "bitldp.numeric.duchi",
    "bitldp.numeric.hybrid",
    "bitldp.numeric.piecewise",
    "bitldp.privunit",
    "bitldp.signs",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0
