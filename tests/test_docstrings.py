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
    "bitldp.compression.ball_gaussian",
    "bitldp.compression.cldp",
    "bitldp.compression.metric",
    "bitldp.compression.mvu",
    "bitldp.compression.response",
    "bitldp.compression.signsgd",
    "bitldp.compression.skellam",
    "bitldp.compression.vector_mvu",
    "bitldp.exponential",
    "bitldp.federated.composed",
    "bitldp.federated.data",
    "bitldp.federated.mod",
    "bitldp.federated.records",
    "bitldp.federated.strategy",
    "bitldp.ledger",
    "bitldp.lsrr",
    "bitldp.numeric.bit_budgets",
    "bitldp.numeric.duchi",
    "bitldp.numeric.gaussian",
    "bitldp.numeric.hybrid",
    "bitldp.numeric.label_laplace",
    "bitldp.numeric.laplace",
    "bitldp.numeric.minimax",
    "bitldp.numeric.piecewise",
    "bitldp.optimal",
    "bitldp.privunit",
    "bitldp.recommend",
    "bitldp.selection.fedsel",
    "bitldp.selection.mechanisms",
    "bitldp.selection.two_stage",
    "bitldp.signs",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0
