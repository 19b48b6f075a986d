"""The numbers of the documents are those that were measured, and the script that fills them sees a change."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def numbers() -> ModuleType:
    pytest.importorskip("scipy", reason='needs pip install "bitldp[design]"')
    spec = importlib.util.spec_from_file_location("fill_the_documents", ROOT / "docs" / "fill.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_documents_say_what_was_measured(numbers: ModuleType) -> None:
    assert numbers.main(["--check"]) == 0


def test_a_changed_number_is_seen(
    numbers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in numbers.FILLED:
        text = (ROOT / place).read_text(encoding="utf-8")
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(re.sub(r"\| yes \|", "| NO |", text, count=1), encoding="utf-8")
    monkeypatch.setattr(numbers, "ROOT", tmp_path)
    assert numbers.main(["--check"]) == 1
    assert numbers.main([]) == 0
    assert numbers.main(["--check"]) == 0


def test_a_document_without_the_place_is_refused(numbers: ModuleType) -> None:
    with pytest.raises(ValueError, match="headlines: the document has 0 places"):
        numbers.filled("nothing", "headlines", "")
