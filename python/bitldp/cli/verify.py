"""``bitldp verify``: rebuild the laws of a privacy report, and recompute its epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bitldp.cli.commands import report_path
from bitldp.verify.__main__ import main

__all__ = ["verify"]


def verify(
    report: Annotated[
        Path,
        typer.Argument(
            metavar="REPORT",
            help="OUTPUT.privacy.json that perturb wrote, or the released file or folder itself.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Argument(metavar="[OUTPUT]", help="The released file or folder.")
    ] = None,
    signed_by: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Public key (PEM) of whoever must have signed the report."),
    ] = None,
) -> None:
    """Check a privacy report: recompute epsilon from its parameters, compare plan, file and signature.

    Exits with 0 for proven, 1 for false, 3 for what cannot be proven from the report. The check is a folder
    of its own, for auditors to read: bitldp/verify.
    """
    if report.is_dir() or (report.suffix != ".json" and report_path(report).exists()):
        report, output = report_path(report), output or report
    signed = [] if signed_by is None else ["--signed-by", str(signed_by)]
    raise typer.Exit(main([*(str(path) for path in (report, output) if path is not None), *signed]))
