"""The comparison with other libraries: what cannot be imported is named with its reason."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp_papers.peers import figures


def test_a_reason_names_no_folder_of_this_machine(tmp_path, monkeypatch) -> None:
    (tmp_path / "half_a_library.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def load():
        from half_a_library import missing

        return missing

    found, absent = figures._peers({"half": load})
    assert found == []
    (reason,) = absent
    assert reason.startswith("half (cannot import name 'missing' from 'half_a_library'")
    assert str(tmp_path) not in reason
