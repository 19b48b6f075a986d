"""The command line, run in this process."""

from __future__ import annotations

from bitldp.cli.program import app
from typer.testing import CliRunner, Result


def invoke(*arguments: object) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
