"""The code of the documentation runs as written, page by page."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def pages(language: str) -> list[Path]:
    return [page for page in sorted(DOCS.rglob("*.md")) if blocks(page, language)]


def test_there_are_pages() -> None:
    assert len(pages("python")) >= 8
    assert len(pages("console")) >= 3


@pytest.mark.parametrize("page", pages("python"), ids=lambda page: page.stem)
def test_python_blocks_run_and_print_what_they_say(page: Path) -> None:
    """The blocks of a page run in one namespace; the lines ``# -> text`` are what they print."""
    text = page.read_text(encoding="utf-8")
    if "import flwr" in text or "from flwr" in text:
        pytest.importorskip("flwr", reason="Flower needs Python 3.11")
    namespace: dict[str, object] = {}
    for source in blocks(page, "python"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("default")  # as in an interpreter, not as in this suite
            exec(compile(source, page.name, "exec"), namespace)  # the page is ours
        assert printed.getvalue().splitlines() == re.findall(r"# -> (.*)", source)


@pytest.mark.parametrize("page", pages("console"), ids=lambda page: page.stem)
def test_console_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ``bitldp`` command of a page exits with 0; one with a pipe is there for shells."""
    pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
    if find_spec("flwr") is None:
        pytest.skip("the extra fl is not installed")
    from bitldp.cli import main

    monkeypatch.chdir(tmp_path)
    lines = [
        line[2:] for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")
    ]
    for line in (line for line in lines if "|" not in line):
        with pytest.raises(SystemExit) as exit_of:
            main(shlex.split(line)[1:])
        assert not exit_of.value.code, line
