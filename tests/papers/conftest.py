"""The papers' systems train models: all their tests are slow, and `make papers-test` runs them alone."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, whichever others are collected."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("slow")
