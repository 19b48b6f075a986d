"""``bitldp perturb``: options in, one sentence out when something is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bitldp.cli.catalogue import MOST_THREADS, entries
from bitldp.cli.commands import (
    FOLDER_REPORT,
    FORMATS,
    FORMS,
    PIPE,
    Delimiter,
    given_options,
    mechanisms,
    names,
    offering,
    one_of,
    report_path,
    separator,
    source_format,
)
from bitldp.cli.commands import categories as read_categories
from bitldp.cli.errors import UsageError
from bitldp.cli.screen import Screen, sentences
from bitldp.privacy import number

__all__ = ["perturb"]

_MECHANISMS = ", ".join(each.name for each in entries().values() if each.perturbs)


@offering(lambda entry: entry.perturbs, without=("features", "categories", "label_epsilon"))
def perturb(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="IN...",
            help="Table (.csv, .tsv, either with .gz, .bz2 or .zst, .parquet, .arrow, .feather), array "
            "(.npy), or - for standard input. Several form one table: files, folders, globs, and URIs such "
            "as s3://bucket/people.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT",
            help="File to write, or - for standard output; a table may change its format. Of many files also "
            "a folder: a name with / at its end, or without a suffix.",
        ),
    ],
    mechanism: Annotated[
        str | None,
        typer.Option("--mechanism", metavar="NAME", help=f"One of {_MECHANISMS}.", autocompletion=mechanisms),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", metavar="E", help="Privacy budget of one row, over all --columns together."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML plan of the mechanisms of columns, instead of --mechanism, --epsilon and --columns.",
        ),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="A", help="With --plan: column of record ids; the same data then give the same output."
        ),
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --record: environment variable with the release key, 64 hex digits."
        ),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --record: file with the release key.")
    ] = None,
    snapshot: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With --record: name of this state of the data; a new state needs a new name.",
        ),
    ] = "",
    memoize: Annotated[
        bool,
        typer.Option(
            "--memoize",
            help="With --record: repeat the same report in all snapshots while a value stays the same.",
        ),
    ] = False,
    most: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="With --memoize: the most values of a record with a report of their own.",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --most: private file of counts, kept with the key; created if missing."
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Ledger to charge before anything is written, once for each release."
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="E", help="Create the ledger with this budget; it must not exist.")
    ] = None,
    after: Annotated[
        Path | None,
        typer.Option(
            metavar="REPORT",
            help="Privacy report of an earlier run. The ledger is refused if it lacks charges of then.",
        ),
    ] = None,
    reserve: Annotated[
        str,
        typer.Option(metavar="NAME", help="Reservation in the ledger to spend first."),
    ] = "",
    sign_with: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Private key to sign the report with; bitldp keypair makes one."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,...",
            help="Columns to randomize; others are dropped. Put a name with a comma into double quotes. "
            "An array has columns 0,1,...; all by default. Repeatable.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,...", help="Columns to copy unchanged, WITHOUT privacy. Repeatable."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="A", help="Column of class labels, randomized by label-rr.")
    ] = None,
    label_epsilon: Annotated[
        float | None, typer.Option(metavar="E", help="Budget of the label, added to --epsilon.")
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[COLUMN=]A,B,...",
            help="Public list of a column's categories, or of every column's; 0..9 for a range; "
            "65,536 at most. Repeatable.",
        ),
    ] = None,
    categories_file: Annotated[
        list[str] | None,
        typer.Option(
            "--categories-file",
            "--labels-file",
            metavar="[COLUMN=]FILE",
            help="The same, from a text file with one category a line. Repeatable.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="values|codes|bits",
            autocompletion=one_of("values", "codes", "bits"),
            help="Numbers or labels (default), code words (of mechanisms of bits the default), or one column "
            "a bit.",
        ),
    ] = None,
    decode: Annotated[
        str | None,
        typer.Option(
            metavar="unbiased|reported",
            autocompletion=one_of("unbiased", "reported"),
            help="Values to write: unbiased numbers (default, if the mechanism has them), or the number "
            "of each report by itself, which is biased.",
        ),
    ] = None,
    delimiter: Delimiter = None,
    skip_blanks: Annotated[
        bool, typer.Option("--skip-blanks", help="Ignore blanks after a delimiter of IN.")
    ] = False,
    decimal: Annotated[
        str | None,
        typer.Option(metavar="C", help="Decimal mark of numbers in text; a comma needs another --delimiter."),
    ] = None,
    source_form: Annotated[str | None, source_format("IN")] = None,
    target_form: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            autocompletion=one_of(*FORMATS),
            help="Format of OUT where no suffix says it; for a pipe that of IN by default.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With -o -: file for the privacy report."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads; the result does not depend on them.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Reproducible output, for tests ONLY: whoever knows the seed can undo the privacy."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing output and its report.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no progress bar and no summary.")
    ] = False,
    **given: Any,
) -> None:
    """Randomize columns of a file, or of many, under local differential privacy.

    Each row is one record. Memory does not grow with the file. OUT appears only when it is complete, with a
    report OUT.privacy.json beside it that states the exact epsilon; standard output gets nothing before.

    Many files are one table. As a folder OUT has a file for each, and its report in it, _privacy.json; with a
    key (--record), a run that was killed goes on when it is started again.

    Example: bitldp perturb people.csv -o out.csv --mechanism frr --columns height,weight --epsilon 4
    --integer-bits 8
    """
    options = given_options(given)
    with sentences() as left:
        left.behind = "; no output was written"
        from bitldp.cli.perturb.folder import perturb_folder
        from bitldp.cli.perturb.perturb import perturb as perturb_file
        from bitldp.cli.perturb.request import OUTPUTS, Keyed, Request
        from bitldp.tables.codec import DECODES

        if plan is None:
            if mechanism is None or epsilon is None:
                raise UsageError("--mechanism and --epsilon are needed, or --plan FILE")
            keyed = {
                "--record": record, "--key-env": key_env, "--key-file": key_file,
                "--memoize": memoize or None, "--most": most, "--store": store,
            }  # fmt: skip
            for option, value in keyed.items():
                if value is not None:
                    raise UsageError(f"{option} needs --plan")
        else:
            described = {
                "--mechanism": mechanism, "--epsilon": epsilon, "--columns": columns, "--keep": keep,
                "--label": label, "--categories": categories, "--categories-file": categories_file,
                "--output": output,
            }  # fmt: skip
            beside = [option for option, value in described.items() if value]
            beside += ["--" + name.replace("_", "-") for name in options]
            if beside:
                raise UsageError(f"--plan: names mechanisms and columns; leave out {', '.join(beside)}")
        chosen = tuple(name for text in columns or [] for name in names(text))
        kept = tuple(name for text in keep or [] for name in names(text, "--keep"))
        if output not in (None, *OUTPUTS):
            raise UsageError(f"--output {output}: must be one of {', '.join(OUTPUTS)}")
        if decode not in (None, *DECODES):
            raise UsageError(f"--decode {decode}: must be one of {', '.join(DECODES)}")
        separator(delimiter)
        if decimal not in (None, ".", ","):
            raise UsageError(f"--decimal {decimal}: must be a point or a comma")
        target, many, folder = Path(out), _are_many(sources), _is_folder(sources, out)
        if folder and record is not None:
            left.behind = "; run the same command again to continue"
        request = Request(
            source=Path(sources[0]),
            target=target,
            sources=tuple(sources) if many or folder else (),
            mechanism=mechanism or "",
            epsilon=epsilon or 0.0,
            plan=plan,
            release=Keyed(key_env, key_file, record, snapshot, memoize, most, store),
            ledger=ledger,
            budget=budget,
            after=after,
            reservation=reserve,
            options=options,
            columns=chosen,
            keep=kept,
            label=label,
            label_epsilon=label_epsilon,
            categories=read_categories(
                categories or [], categories_file or [], (*chosen, *([label] if label else []))
            ),
            output=output,
            decode=decode,
            delimiter=delimiter,
            skip_blanks=skip_blanks,
            decimal="," if decimal == "," else None,
            source_form=source_form,
            target_form=target_form,
            report=report,
            threads=threads,
            seed=seed,
            force=force,
            sign=sign_with,
        )
        with Screen(quiet) as screen:
            made = (perturb_folder if folder else perturb_file)(request, screen)
        shown = "standard output" if target == PIPE else str(target)
        left.behind = f"; {shown} was written"
        if not quiet:
            total = made["total_per_record"]
            exact, claimed = (number(float(total[name]), 6) for name in ("epsilon_exact", "epsilon_claimed"))
            where = f"{target.name}/{FOLDER_REPORT}" if folder else (report or report_path(target)).name
            assumed = [each for each in total["given"].split("; ") if each not in ("", _MADE_HERE)]
            condition = "".join(f", {each}" for each in assumed)
            if days := made.get("memoized"):
                condition += _over_days(days)
            print(
                f"{shown}: {made['rows']} rows, exact epsilon {exact} a row{condition} "
                f"(claimed {claimed}); report in {where}",
                file=sys.stderr if target == PIPE else sys.stdout,
            )


#: What some laws ask of their input, and every column of categories is.
_MADE_HERE = "one-hot input"


def _are_many(sources: Sequence[str]) -> bool:
    """Return whether the input is many files, or a remote one."""
    from bitldp.tables.dataset import is_many

    if len(sources) > 1 and "-" in sources:
        raise UsageError("-: standard input is one table and cannot be combined with others")
    return len(sources) > 1 or (not (Path(sources[0]).is_file() or sources[0] == "-") and is_many(sources[0]))


def _is_folder(sources: Sequence[str], out: str) -> bool:
    """Return whether the output is a folder."""
    if out.endswith(("/", os.sep)):
        return True
    if out == "-" or not _are_many(sources):
        return False
    return Path(out).is_dir() or not out.lower().endswith(tuple(FORMS))


def _over_days(days: Mapping[str, Any]) -> str:
    """Return what all snapshots cost together, in few words."""
    if days["most"] is None:
        return ", again for each value that a column takes; the reports show when"
    every = number(float(days["epsilon_exact"]), 6)
    return f", {every} over all snapshots; the reports show when a column changes"
