"""The code of the documentation runs as written, page by page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from support.documents import (
    blocks,
    check_command,
    check_python,
    check_steps,
    commands,
    imports,
    shows_output,
)

DOCS = Path(__file__).parents[2] / "docs"


WALKS = [page for page in sorted(DOCS.rglob("*.md")) if shows_output(page.read_text(encoding="utf-8"))]


def pages(language: str) -> list[Path]:
    """Return the pages whose blocks stand by themselves."""
    others = (page for page in sorted(DOCS.rglob("*.md")) if page not in WALKS)
    return [page for page in others if blocks(page.read_text(encoding="utf-8"), language)]


def test_there_are_pages() -> None:
    assert len(pages("python")) >= 8
    assert len(pages("console")) >= 2
    assert len(WALKS) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.stem)
def test_a_page_that_shows_what_commands_say_works_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("typer", "scipy", "sklearn", "matplotlib"):
        pytest.importorskip(module, reason='needs pip install "bitldp[cli,design,papers]"')
    if "statsmodels" in page.read_text(encoding="utf-8"):
        pytest.importorskip("statsmodels", reason="the guide's data come with it; pip install statsmodels")
    monkeypatch.chdir(tmp_path)
    check_steps(page.read_text(encoding="utf-8"), page.name)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages("python"), ids=lambda page: page.stem)
def test_python_blocks_run_and_print_what_they_say(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "import flwr" in text or "from flwr" in text:
        pytest.importorskip("flwr", reason="Flower needs Python 3.11")
    check_python(text, page.name, without="torch")


@pytest.mark.parametrize(
    "page",
    [page for page in pages("python") if imports(page.read_text(encoding="utf-8"), "torch")],
    ids=lambda page: page.stem,
)
def test_blocks_of_pytorch_run(page: Path) -> None:
    """The whole page again, where PyTorch is: no extra of the package installs it."""
    pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
    pytest.importorskip("flwr", reason="Flower needs Python 3.11")
    check_python(page.read_text(encoding="utf-8"), page.name)


@pytest.mark.parametrize("page", pages("console"), ids=lambda page: page.stem)
def test_console_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ``bitldp`` command of a page exits with 0; one with a pipe is there for shells."""
    pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
    if find_spec("flwr") is None:
        pytest.skip("the extra fl is not installed")
    monkeypatch.chdir(tmp_path)
    for command in commands(page.read_text(encoding="utf-8")):
        if "|" not in command:
            check_command(command)
