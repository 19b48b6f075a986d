"""The ``bitldp`` command: checks what it needs, then hands over."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bitldp.base.extras import MissingExtraError, require

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments without the program's name; those of the process by default.

    Raises
    ------
    SystemExit
        Always: 0 success, 1 the run failed, 2 the command line is wrong.
    """
    try:
        require("the command line", ["typer", "rich", "pyarrow"], "cli")
    except MissingExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    from bitldp.cli.app import app

    app(args=None if arguments is None else list(arguments), prog_name="bitldp")
