"""``bitldp verify``: recompute the epsilon of a privacy report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bitldp.verify import main

__all__ = ["verify"]


def verify(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="OUTPUT.privacy.json, of perturb.")],
    output: Annotated[Path | None, typer.Argument(metavar="[OUTPUT]", help="The released file.")] = None,
) -> None:
    """Recompute the exact epsilon of a report from its integers, and check its digests.

    Exits with 1 if anything is not as the report says. The check is a file of its own, for auditors to read:
    bitldp/verify.py.
    """
    raise typer.Exit(main([str(path) for path in (report, output) if path is not None]))
