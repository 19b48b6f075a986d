"""The commands of the papers join the program, which knows their names and lines and imports none of them."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

from bitldp.cli import program
from support.command import invoke


def test_every_command_of_the_papers_is_an_entry_point_with_the_line_that_the_program_shows() -> None:
    added = {each.name: each for each in entry_points(group=program.GROUP)}
    assert set(program.BESIDE) <= set(added), "make .venv/dev installs both distributions"
    for name, (extra, line) in program.BESIDE.items():
        first = " ".join((added[name].load().__doc__ or "").split("\n\n")[0].split())
        assert (extra, line) == ("papers", first)


@pytest.mark.parametrize("name", program.BESIDE)
def test_the_help_of_a_command_needs_no_flower(name: str) -> None:
    done = invoke(name, "--help")
    assert done.exit_code == 0
    assert f"bitldp {name}" in done.stdout
