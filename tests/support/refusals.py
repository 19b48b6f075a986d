"""A file with one secret value, and what a refusal of the command line may say of it."""

from __future__ import annotations

from typer.testing import Result

SECRET = "7731.0625"
PEOPLE = f"name,age,city\nAda,{SECRET},Paris\nBob,41,Rome\nCyd,29,Paris\n"
FRR = ("--mechanism", "frr", "--epsilon", 1)
GRR = ("--mechanism", "grr", "--epsilon", 1)


def refused(result: Result, code: int, *fragments: str) -> None:
    """Check the one sentence of a refusal."""
    assert result.exit_code == code, (result.stdout, result.stderr)
    lines = [line for line in result.stderr.splitlines() if not line.startswith(("warning:", "note:"))]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    for fragment in fragments:
        assert fragment in lines[0]
    assert SECRET not in result.output
    assert "Traceback" not in result.output
