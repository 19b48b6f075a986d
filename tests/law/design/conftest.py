"""An empty folder of designs: what is tested here is the solver, which has to solve."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_solved_yet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BITLDP_CACHE", str(tmp_path_factory.mktemp("designs")))
        yield
