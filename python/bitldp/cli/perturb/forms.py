"""Formats of the command line: by the suffix of a file, or by their names where a pipe has none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bitldp.cli.perturb.files import UsageError

__all__ = ["FORMATS", "FORMS", "PIPE", "Form", "form_of", "is_pipe"]

#: Stands for standard input, or standard output.
PIPE = Path("-")


@dataclass(frozen=True)
class Form:
    """How a file is written.

    Attributes
    ----------
    kind : {"csv", "parquet", "arrow", "npy"}
    delimiter : str
        Between the fields of a text.
    gzip : bool
        Whether the text is compressed.
    stream : bool
        Whether Arrow is written as a stream, without a footer; either is read.
    """

    kind: Literal["csv", "parquet", "arrow", "npy"]
    delimiter: str = ","
    gzip: bool = False
    stream: bool = False


#: Each form by the end of a file's name.
FORMS = {
    ".csv": Form("csv"),
    ".tsv": Form("csv", "\t"),
    ".csv.gz": Form("csv", gzip=True),
    ".tsv.gz": Form("csv", "\t", gzip=True),
    ".parquet": Form("parquet"),
    ".pq": Form("parquet"),
    ".arrow": Form("arrow"),
    ".arrows": Form("arrow", stream=True),
    ".feather": Form("arrow"),
    ".npy": Form("npy"),
}

#: Names of the forms.
FORMATS = tuple(suffix.removeprefix(".") for suffix in FORMS)


def is_pipe(path: Path) -> bool:
    """Whether a path can be read only once: standard input, or a pipe that has a name."""
    return path == PIPE or path.is_fifo()


def form_of(path: Path, named: str | None, option: str, delimiter: str | None = None) -> Form:
    """Return the form of a file: the one that is named, or that of its suffix.

    Parameters
    ----------
    path : pathlib.Path
    named : str or None
        A suffix without its dot.
    option : str
        The option that names it, for errors.
    delimiter : str or None
        Of text whose fields are separated by commas otherwise.

    Raises
    ------
    UsageError
        For a name or a suffix that is none of `FORMS`.
    """
    words = ", ".join(FORMATS)
    if named is not None:
        found = FORMS.get(f".{named.lower().removeprefix('.')}")
        if found is None:
            raise UsageError(f"{option} {named}: must be one of {words}")
    elif path == PIPE:
        where = "standard input" if option == "--from" else "standard output"
        raise UsageError(f"{option}: {where} has no suffix to tell its format; name one of {words}")
    else:
        name = path.name.lower()
        ends = sorted((suffix for suffix in FORMS if name.endswith(suffix)), key=len)
        if not ends:
            shown = ", ".join(FORMS)
            raise UsageError(
                f"{path}: cannot tell the format from the suffix; use one of {shown}, or {option}"
            )
        found = FORMS[ends[-1]]
    if found.kind == "csv" and found.delimiter == "," and delimiter is not None:
        found = replace(found, delimiter=delimiter)
    return found
