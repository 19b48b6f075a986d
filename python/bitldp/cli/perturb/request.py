"""The command line of one run of ``bitldp perturb``, as it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["OUTPUTS", "Keyed", "Request"]

#: Forms of the output.
OUTPUTS = ("values", "codes", "bits")


@dataclass(frozen=True)
class Keyed:
    """Where the key of a repeatable release is, the column of the records' ids, and the data's state.

    Memoized, its reports are the same over all states, up to `most` values that `store` counts.
    """

    variable: str | None = None
    file: Path | None = None
    record: str | None = None
    snapshot: str = ""
    memoize: bool = False
    most: int | None = None
    store: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """The command line of one run.

    Attributes
    ----------
    source, target : pathlib.Path
        ``-`` is standard input or output.
    sources : tuple of str
        In place of `source`: files, folders, globs and URIs, whose files are one table.
    source_form, target_form : str or None
        Suffixes that say the formats; None: that of the file, or the format of the input.
    report : pathlib.Path or None
        Where the privacy report goes of what is written to standard output.
    mechanism : str
        A name of the catalogue; empty with a plan.
    epsilon : float
        Budget of a record over the columns.
    plan : pathlib.Path or None
        File of a plan, which takes the place of mechanism, columns and all that belongs to them.
    release : Keyed
        What makes a plan's release repeatable.
    ledger : pathlib.Path or None
        File of the ledger that is charged, once a release.
    budget : float or None
        With which the ledger begins; None: it is there.
    after : pathlib.Path or None
        Privacy report of an earlier run, whose charges the ledger must still have.
    reservation : str
        Name of the reservation of the ledger that the run draws on; empty: of none.
    options : mapping of str
        Options of the mechanism, by name with underscores.
    columns, keep : tuple of str
        Columns to perturb (empty: all, for an array) and to pass through unperturbed.
    label : str or None
        Column perturbed by label-RR.
    label_epsilon : float or None
        Its budget.
    categories : mapping of str or None to tuple of str
        Public dictionary by column; that of None serves every column without one of its own.
    output : str or None
        One of `OUTPUTS`; None is the mechanism's own form.
    decode : str or None
        One of `DECODES`; None is the unbiased one, where there is any.
    delimiter : str or None
        Of CSV files; None: commas.
    skip_blanks : bool
        Whether blanks after a delimiter of the input are no part of a field.
    decimal : str or None
        ``,`` where the input's numbers have decimal commas.
    """

    source: Path
    target: Path
    sources: tuple[str, ...] = ()
    mechanism: str = ""
    epsilon: float = 0.0
    plan: Path | None = None
    release: Keyed = field(default_factory=Keyed)
    ledger: Path | None = None
    budget: float | None = None
    after: Path | None = None
    reservation: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    label: str | None = None
    label_epsilon: float | None = None
    categories: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)
    output: str | None = None
    decode: str | None = None
    delimiter: str | None = None
    skip_blanks: bool = False
    decimal: str | None = None
    source_form: str | None = None
    target_form: str | None = None
    report: Path | None = None
    threads: int | None = None
    seed: int | None = None
    force: bool = False
    sign: Path | None = None
