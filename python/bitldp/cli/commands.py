"""Parts that commands share: options of mechanisms, lists, dictionaries, forms of files, completions."""

from __future__ import annotations

import copy
import inspect
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from bitldp.cli.catalogue import MOST_CATEGORIES, CatalogueEntry, entries, shown
from bitldp.cli.errors import UsageError

__all__ = [
    "FOLDER_REPORT",
    "FORMATS",
    "FORMS",
    "PIPE",
    "AsJson",
    "Delimiter",
    "FileFormat",
    "MechanismCommand",
    "Once",
    "categories",
    "delimiter_hint",
    "form_of",
    "given_options",
    "is_pipe",
    "mechanisms",
    "names",
    "offering",
    "one_of",
    "report_path",
    "separator",
    "source_format",
]

_DIGITS = 19  # characters of an end of a range; more than any 64-bit integer of a column needs is refused
# An item of a list: in double quotes (doubled within) as it stands, else without the spaces around it.
_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|((?!")[^,]*?))\s*(,|\Z)')


def separator(delimiter: str | None) -> None:
    """Refuse what separates no fields of a text."""
    if delimiter is None:
        return
    if len(delimiter) != 1:
        raise UsageError("--delimiter: must be one character")
    if delimiter in '"\r\n' or not delimiter.isascii():
        raise UsageError("--delimiter: must be an ASCII character, not a quote or line end")
    if delimiter.isalnum() or delimiter in "+-.":
        raise UsageError(
            "--delimiter: must not be a letter, digit, sign or point, since numbers contain them"
        )


def names(text: str | None, option: str = "--columns") -> tuple[str, ...]:
    """Split a list as a row of CSV: a name with a comma, or with spaces at its ends, stands in quotes."""
    text = text or ""
    result: list[str] = []
    start = 0
    while True:
        item = _ITEM.match(text, start)
        if item is None:
            raise UsageError(f"{option}: not a comma-separated list; a quoted name must end with a quote")
        if item[1] is not None:
            result.append(item[1].replace('""', '"'))
        elif item[2]:
            result.append(item[2])
        if not item[3]:
            return tuple(result)
        start = item.end()


def categories(
    lists: list[str], files: list[str], columns: tuple[str, ...]
) -> dict[str | None, tuple[str, ...]]:
    """Read public dictionaries: ``A,B,C`` for every column, ``COLUMN=A,B,C`` for one, ``0..9`` a range."""
    result: dict[str | None, tuple[str, ...]] = {}

    def add(option: str, text: str, read: Callable[[str], list[str]]) -> None:
        # A name may hold "=" itself: the longest column that fits is meant.
        known = max((name for name in columns if text.startswith(f"{name}=")), key=len, default=None)
        if known is None and "=" in text:
            column = text.partition("=")[0]
            raise UsageError(f"{option} {column}=...: no column {column!r} among --columns and --label")
        key, items = (None, text) if known is None else (known, text[len(known) + 1 :])
        labels = read(items)
        span = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", labels[0]) if len(labels) == 1 else None
        if span:
            bounds = range(int(span[1][:_DIGITS]), int(span[2][:_DIGITS]) + 1)
            if max(map(len, span.groups())) > _DIGITS or bounds.stop - bounds.start > MOST_CATEGORIES:
                raise UsageError(f"{option}: a range has at most {MOST_CATEGORIES:,} categories")
            labels = [str(number) for number in bounds]
        if len(labels) > MOST_CATEGORIES:
            raise UsageError(f"{option}: at most {MOST_CATEGORIES:,} categories, got {len(labels):,}")
        if len(labels) < 2 or len(set(labels)) != len(labels):
            raise UsageError(f"{option}: at least 2 distinct categories are needed")
        if key in result:
            raise UsageError(
                f"{option}: two lists for {'every column' if key is None else f'column {key!r}'}"
            )
        result[key] = tuple(labels)

    for text in lists:
        add("--categories", text, lambda items: list(names(items, "--categories")))
    for text in files:
        add("--categories-file", text, _lines)
    return result


def _lines(path: str) -> list[str]:
    """Return the lines of a file of categories, without the empty ones."""
    try:
        return [line for line in Path(path).read_text(encoding="utf-8-sig").splitlines() if line]
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"--categories-file {path}: not a readable text file in UTF-8") from None


# -- files and their forms

#: Stands for standard input, or standard output.
PIPE = Path("-")


@dataclass(frozen=True)
class FileFormat:
    """How a file is written.

    Attributes
    ----------
    kind : {"csv", "parquet", "arrow", "npy"}
    delimiter : str
        Between the fields of a text.
    compression : {"gzip", "bz2", "zstd"} or None
        Of a text.
    skip_blanks : bool
        Whether blanks after the delimiter of a text are none of its fields.
    stream : bool
        Whether Arrow is written as a stream, without a footer; either is read.
    """

    kind: Literal["csv", "parquet", "arrow", "npy"]
    delimiter: str = ","
    compression: Literal["gzip", "bz2", "zstd"] | None = None
    stream: bool = False
    skip_blanks: bool = False


#: Each form by the end of a file's name.
FORMS = {
    ".csv": FileFormat("csv"),
    ".tsv": FileFormat("csv", "\t"),
    ".csv.gz": FileFormat("csv", compression="gzip"),
    ".csv.bz2": FileFormat("csv", compression="bz2"),
    ".csv.zst": FileFormat("csv", compression="zstd"),
    ".tsv.gz": FileFormat("csv", "\t", compression="gzip"),
    ".tsv.bz2": FileFormat("csv", "\t", compression="bz2"),
    ".tsv.zst": FileFormat("csv", "\t", compression="zstd"),
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
        raise UsageError(f"{option}: {where} has no suffix; name its format, one of {words}")
    else:
        name = path.name.lower()
        ends = sorted((suffix for suffix in FORMS if name.endswith(suffix)), key=len)
        if not ends:
            shown = ", ".join(FORMS)
            raise UsageError(f"{path}: the suffix names no known format; use one of {shown}, or {option}")
        result = FORMS[ends[-1]]
    if result.kind == "csv" and result.delimiter == "," and delimiter is not None:
        result = replace(result, delimiter=delimiter)
    return result


#: Name of the privacy report in a released folder; readers of tables pass over such names.
FOLDER_REPORT = "_privacy.json"


def delimiter_hint(names: Sequence[str]) -> str:
    """Return what may be wrong with a text whose first line is one column, to be said behind an error."""
    if len(names) != 1:
        return ""
    if "\t" in names[0]:
        return "; the first line has tabs, which --from tsv takes for delimiters"
    return "; the first line has semicolons: --delimiter ';'" if ";" in names[0] else ""


def report_path(output: Path) -> Path:
    """Return where the privacy report of `output` is: its name with ``.privacy.json`` added; in a folder."""
    return output / FOLDER_REPORT if output.is_dir() else output.with_name(output.name + ".privacy.json")


# -- commands, and their options


class Once(TyperCommand):
    """A command whose options are given once, but for those that are lists."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; refuse options that are given twice."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param, times in Counter(order).items():
            # Flags without a "no" may be repeated: nothing is lost.
            single = param.param_type_name == "option" and not param.multiple
            if ctx.resilient_parsing:  # a shell that completes a line that is not yet finished
                break
            if times > 1 and single and (param.secondary_opts or not getattr(param, "is_flag", False)):
                typer.echo(f"error: {param.opts[-1]}: given {times} times, and would count once", err=True)
                raise typer.Exit(2)
        return super().parse_args(ctx, args)


def mechanisms(incomplete: str) -> list[tuple[str, str]]:
    """Return the mechanisms that take columns and begin so, each with what it is."""
    return [
        (each.name, each.summary)
        for each in entries().values()
        if each.perturbs and each.name.startswith(incomplete.lower().replace("_", "-"))
    ]


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Return what offers those of some words that begin as the one that is typed."""

    def offered(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return offered


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Delimiter = Annotated[
    str | None, typer.Option(metavar="C", help="Delimiter of CSV files; a comma by default.")
]


def source_format(argument: str) -> Any:
    """Return the option that names the format of the table that an argument of the command is."""
    return typer.Option(
        "--from",
        metavar="FORMAT",
        autocompletion=one_of(*FORMATS),
        help=f"Format of {argument} where no suffix says it, as from a pipe: {', '.join(FORMATS)}.",
    )


_CHOSEN, _HELPING = "bitldp.chosen", "bitldp.helping"
_BY_NAME = inspect.Parameter.KEYWORD_ONLY
_FEW = 6  # mechanisms that are named beside an option
_ALIASES = {"categories": ("--classes",)}


def offering(
    of: Callable[[CatalogueEntry], bool] = lambda _: True, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of mechanisms.

    Parameters
    ----------
    of : callable
        Whether a mechanism is one of the command's.
    without : collection of str
        Options that the command does not have, or has as its own.

    Returns
    -------
    callable
        The command takes them as ``**options``, by name with underscores; None where one is not given.
    """
    takers: dict[str, list[CatalogueEntry]] = {}
    for each in filter(of, entries().values()):
        for name in each.options:
            if name not in without:
                takers.setdefault(name, []).append(each)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters = [each for each in signature.parameters.values() if each.kind != each.VAR_KEYWORD]
        for name, those in takers.items():
            stated = _stated(name, those)
            parameters.append(inspect.Parameter(name, _BY_NAME, default=None, annotation=stated))
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.offered = frozenset(takers)  # type: ignore[attr-defined]
        command.command_class = MechanismCommand  # type: ignore[attr-defined]
        return command

    return decorate


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of mechanisms that were given."""
    return {name: each for name, each in options.items() if each is not None}


def _stated(name: str, takers: Sequence[CatalogueEntry]) -> Any:
    """Return the annotation of an option that some mechanisms take."""
    given = next((each.options[name] for each in takers if each.options[name].about), takers[0].options[name])
    names = ", ".join(each.name for each in takers) if len(takers) <= _FEW else ""
    flags = [f"{shown(name)}/{shown('no_' + name)}" if given.kind is bool else shown(name)]
    words = {word: None for each in takers for word in each.options[name].words}
    option = typer.Option(
        *(*flags, *_ALIASES.get(name, ())),
        help=f"{names}: {given.sentence}" if names else given.sentence,
        metavar=None if given.kind is bool else "|".join(words) or given.form,
    )
    return Annotated[given.kind | None, option]


class MechanismCommand(Once):
    """A command whose help shows the options of the mechanism that is named beside ``--help``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember the mechanism that is named, and read the arguments."""
        ctx.meta[_CHOSEN] = None
        if "--help" in args:
            ctx.meta[_CHOSEN] = _named(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; in the help of a mechanism those that apply to it, in its own words."""
        params, chosen = super().get_params(ctx), ctx.meta.get(_CHOSEN)
        if chosen is None or not ctx.meta.get(_HELPING):
            return params
        own = {*chosen.options, *(("low", "high", "points") if chosen.kind._on_points else ())}
        of_others = set(getattr(self.callback, "offered", ())) - own
        result = [copy.copy(param) for param in params if param.name not in of_others]
        for param in result:
            if given := chosen.options.get(param.name):
                param.help, param.metavar = given.help, None if given.kind is bool else given.form
        return result

    def get_help(self, ctx: Any) -> str:
        """Return the help, of one mechanism where it is named."""
        ctx.meta[_HELPING] = True
        try:
            return super().get_help(ctx)
        finally:
            ctx.meta[_HELPING] = False

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does, and what the mechanism is."""
        chosen = ctx.meta.get(_CHOSEN)
        if chosen is not None:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"{chosen.name}: {chosen.summary}; takes {' or '.join(chosen.takes)}.")
        super().format_help_text(ctx, formatter)


def _named(args: Sequence[str]) -> CatalogueEntry | None:
    """Return the mechanism that is named among arguments."""
    words = [arg.removeprefix("--mechanism=").lower().replace("_", "-") for arg in args]
    if "--mechanism" in args[:-1]:
        words = [words[args.index("--mechanism") + 1]]
    return next((entries()[word] for word in words if word in entries()), None)
