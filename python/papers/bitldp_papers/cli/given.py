"""``--data`` of the commands: a data set by its name, or a file of records with public ranges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from bitldp.cli.plugin import UsageError

if TYPE_CHECKING:
    from bitldp_papers.data import Dataset

__all__ = ["Held", "Label", "Public", "opened"]

Label: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of labels or targets of a file.")
]
Public: TypeAlias = Annotated[
    Path | None,
    typer.Option("--ranges", metavar="TOML", help="Public ranges of a file. Default: ranges.toml beside it."),
]
Held: TypeAlias = Annotated[
    Path | None,
    typer.Option("--test", metavar="FILE", help="Test records of a file. Default: a fifth of its records."),
]


def opened(data: str | None, label: str | None, ranges: Path | None, test: Path | None) -> Dataset | None:
    """Return the data set of a file, or None where `data` is a name.

    Raises
    ------
    UsageError
        For options of a file without one, or a file without its label.
    ValueError, DatasetError
        As of `bitldp_papers.data.read`.
    """
    from bitldp_papers.data import SUFFIXES, read

    if data is None or not data.endswith(SUFFIXES):
        for option, value in (("--label", label), ("--ranges", ranges), ("--test", test)):
            if value is not None:
                raise UsageError(f"{option}: needs --data FILE, one of {', '.join(SUFFIXES)}")
        return None
    if label is None:
        raise UsageError(f"--label: required with --data {Path(data).name}: the column of labels or targets")
    return read(data, label=label, ranges=ranges, test=test)
