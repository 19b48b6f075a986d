"""The examples of the docstrings run as they are written."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = [
    "bitldp",
    "bitldp.accounting._compose",
    "bitldp.accounting._distribution",
    "bitldp.accounting._renyi",
    "bitldp.amplification",
    "bitldp.audit",
    "bitldp.bitrand",
    "bitldp.bits",
    "bitldp.brr",
    "bitldp.categorical",
    "bitldp.codecs",
    "bitldp.compression.metric",
    "bitldp.compression.mvu",
    "bitldp.compression.response",
    "bitldp.compression.cldp",
    "bitldp.compression.signsgd",
    "bitldp.compression.skellam",
    "bitldp.compression.vector_mvu",
    "bitldp.ledger",
    "bitldp.numeric.duchi",
    "bitldp.numeric.gaussian",
    "bitldp.numeric.hybrid",
    "bitldp.numeric.label_laplace",
    "bitldp.numeric.laplace",
    "bitldp.numeric.piecewise",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0
