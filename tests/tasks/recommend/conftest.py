"""Recommendations of each module are made from the designs that come with the package, and its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _no_design_of_others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Begin with an empty cache: what another test has solved would be a candidate here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BITLDP_CACHE", str(tmp_path_factory.mktemp("designs")))
        yield
