"""Files that commands take, their formats, and the errors that end a command with one sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

__all__ = [
    "FORMATS",
    "FORMS",
    "PIPE",
    "CommandError",
    "FileFormat",
    "UsageError",
    "form_of",
    "is_pipe",
    "report_path",
]

#: Stands for standard input, or standard output.
PIPE = Path("-")


class CommandError(Exception):
    """The command failed while it ran. The message is one sentence without a private value.

    Parameters
    ----------
    sentence : str
    code : int, optional
        The exit code: 1, or 128 and the number of a signal.
    """

    code = 1

    def __init__(self, sentence: str, code: int | None = None) -> None:
        super().__init__(sentence)
        self.code = self.code if code is None else code


class UsageError(CommandError):
    """The command line asks for something that cannot be (exit code 2)."""

    code = 2


@dataclass(frozen=True)
class FileFormat:
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
    ".csv": FileFormat("csv"),
    ".tsv": FileFormat("csv", "\t"),
    ".csv.gz": FileFormat("csv", gzip=True),
    ".tsv.gz": FileFormat("csv", "\t", gzip=True),
    ".parquet": FileFormat("parquet"),
    ".pq": FileFormat("parquet"),
    ".arrow": FileFormat("arrow"),
    ".arrows": FileFormat("arrow", stream=True),
    ".feather": FileFormat("arrow"),
    ".npy": FileFormat("npy"),
}

#: Names of the forms.
FORMATS = tuple(suffix.removeprefix(".") for suffix in FORMS)


def is_pipe(path: Path) -> bool:
    """Return whether a path can be read only once: standard input, or a pipe that has a name."""
    return path == PIPE or path.is_fifo()


def form_of(path: Path, named: str | None, option: str, delimiter: str | None = None) -> FileFormat:
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
        result = FORMS.get(f".{named.lower().removeprefix('.')}")
        if result is None:
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
        result = FORMS[ends[-1]]
    if result.kind == "csv" and result.delimiter == "," and delimiter is not None:
        result = replace(result, delimiter=delimiter)
    return result


def report_path(output: Path) -> Path:
    """Return where the privacy report of `output` is written: its name with ``.privacy.json`` added."""
    return output.with_name(output.name + ".privacy.json")
