"""``bitldp explain``: what a setting guarantees, and all mechanisms at one budget, without any data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bitldp.base.documents import jsonable
from bitldp.base.errors import MissingExtraError
from bitldp.cli.catalogue import FAMILIES, MOST, CatalogueEntry, bounded, entries, entry, needed, shown
from bitldp.cli.commands import AsJson, given_options, offering
from bitldp.cli.errors import UsageError
from bitldp.cli.screen import print_whole, sentences, wide_console
from bitldp.cli.sums import SUM, print_sum, sum_facts
from bitldp.estimate.estimates import LIARS
from bitldp.mechanism.parameters import plain_parameters
from bitldp.privacy import PrivacyClaimWarning, number, total

__all__ = [
    "explain",
    "facts",
    "overview",
    "print_claims",
    "print_overview",
]


def facts(name: str, mechanism: Any, options: Mapping[str, Any], users: int | None) -> dict[str, Any]:
    """Compute the facts of a setting.

    Parameters
    ----------
    name : str
        Of the mechanism, on the command line.
    mechanism : Mechanism
    options : mapping of str
        What it was built from.
    users : int or None
        Number of records behind an estimate; None leaves the standard errors out.

    Returns
    -------
    dict
        JSON values: guarantee, probabilities, errors.
    """
    result: dict[str, Any] = {"mechanisms": [_facts(part, users) for part in mechanism._members]}
    if users is not None:
        for part in result["mechanisms"]:
            if "unbiased" in part["errors"]:
                raise UsageError(f"--users does not apply to {name} here: {part['errors']['unbiased']}")
    if "unit" in options:
        # A mechanism of one column has no unit of its own: its record is one feature.
        result["mechanisms"][0]["guarantee"]["unit"] = options["unit"]
    if len(mechanism._members) > 1:
        guarantees = [part.guarantee for part in mechanism._members]
        result["total_per_record"] = asdict(total(guarantees, [part.columns for part in mechanism._members]))
    plain: dict[str, Any] = jsonable(result)
    return plain


def _facts(mechanism: Any, users: int | None) -> dict[str, Any]:
    described = mechanism.fingerprint()
    return {
        "mechanism": described["name"],
        "parameters": plain_parameters(mechanism.parameters),
        "guarantee": asdict(mechanism.guarantee),
        "bits_on_the_wire": mechanism.report_bits,
        **mechanism._facts(users),
        "liars": _liars(mechanism),
    }


def _liars(mechanism: Any) -> dict[str, Any]:
    """Return how far one in a hundred clients may move an estimate, or why that is not bounded."""
    result: dict[str, Any] = {"share": LIARS}
    try:
        result["influence"] = mechanism.influence(LIARS)
    except ValueError as error:
        result["unbounded"] = str(error)
    return result


def overview(epsilon: float, sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Compute one row a mechanism.

    Parameters
    ----------
    epsilon : float
        Budget of a record, for all of them.
    sizes : mapping of str to int
        Of "features", "categories" and "points", those that are given; else the usual ones of each mechanism.

    Returns
    -------
    list of dict
        JSON values: name, family, parameters, exact epsilon by bit, feature and record, delta, bits on the
        wire, worst and mean variance, or the reason why there are none, and how far 1 % of liars move an
        estimate, where that is bounded.
    """
    for name, size in sizes.items():
        bounded(shown(name), size, MOST[name])
        if size < 1:
            raise UsageError(f"{shown(name)}: must be at least 1, got {size}")
    return [_row(each, epsilon, sizes) for each in entries().values()]


def _row(chosen: CatalogueEntry, epsilon: float, sizes: Mapping[str, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": chosen.name, "family": chosen.family}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyClaimWarning)
            mechanism = chosen.example(epsilon, sizes)
    except (UsageError, MissingExtraError) as error:
        return row | {"refused": str(error)}
    described = mechanism.fingerprint()
    row |= {
        "mechanism": described["name"],
        "parameters": plain_parameters(mechanism.parameters),
        "guarantee": asdict(mechanism.guarantee),
        "bits_on_the_wire": mechanism.report_bits,
    }
    try:
        row |= {"worst_variance": mechanism.worst_variance(), "mean_variance": mechanism.mean_variance()}
    except ValueError as error:
        row["no_variance"] = str(error)
    row |= {"influence": moved} if (moved := _liars(mechanism).get("influence")) is not None else {}
    plain: dict[str, Any] = jsonable(row)
    return plain


#: Parameters that say nothing new in a table of all mechanisms.
_HIDDEN = {"epsilon", "clip", "unit", "rounding", "infinities", "sign", "spend", "calibration"}


def _short(row: dict[str, Any]) -> str:
    """Return the parameters that tell mechanisms apart, as one line."""
    shown = []
    for name, value in row["parameters"].items():
        if name in _HIDDEN and (name, value) != ("calibration", "paper"):
            continue
        if value is None or isinstance(value, dict) or (name == "features" and value == 1):
            continue
        text = (
            number(value) if isinstance(value, float) else str(value).replace("1.0", "1").replace("0.0", "0")
        )
        shown.append(f"{name} {text}")
    return ", ".join(shown)


def _figure(value: Any) -> str:
    return value if isinstance(value, str) else number(float(value), 4)


_HEADINGS = (
    "exact ε,\nbit",
    "exact ε,\nfeature",
    "exact ε,\nrecord",
    "δ",
    "bits on\nthe wire",
    "worst\nvariance",
    "mean\nvariance",
    "1 % of\nliars",
)


def print_overview(rows: list[dict[str, Any]], console: Console, *, as_json: bool = False) -> None:
    """Print what `overview` returned as one table, or as JSON."""
    if as_json:
        console.print_json(data=rows)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="Every mechanism at one budget")
    table.add_column("mechanism", no_wrap=True)
    table.add_column("parameters")
    for name in _HEADINGS:
        table.add_column(name, justify="right", no_wrap=True)
    family = None
    notes: list[str] = []
    for row in rows:
        if row["family"] != family:
            if family is not None:
                table.add_section()
            family = row["family"]
        if "refused" in row:
            table.add_row(row["name"], row["refused"])
            continue
        guarantee = row["guarantee"]
        variances = [_figure(row[name]) for name in ("worst_variance", "mean_variance") if name in row]
        if not variances:
            reason = row["no_variance"]
            if reason not in notes:
                notes.append(reason)
            variances = [f"none [{notes.index(reason) + 1}]", ""]
        mark = "" if guarantee["holds"] else " !"
        delta = guarantee["delta"]
        table.add_row(
            row["name"],
            _short(row),
            _figure(guarantee["bit"]),
            _figure(guarantee["feature"]),
            _figure(guarantee["record"]) + mark,
            _figure(delta) if delta else "",
            f"{row['bits_on_the_wire']:,}",
            *variances,
            _figure(row["influence"]) if "influence" in row else "",
        )
    print_whole(console, table)
    console.print(
        "Variance of one report's unbiased letter: of a number of [-1, 1] (numbers), or of a category's "
        "indicator (categories). How far 1 % of lying clients move an estimate, at most. "
        "! the claimed ε does not hold."
    )
    for footnote, reason in enumerate(notes, 1):
        console.print(f"[{footnote}] {reason}", markup=False)


def print_mechanisms(console: Console, *, as_json: bool = False) -> None:
    """Print the mechanisms with one line each, family by family."""
    if as_json:
        console.print_json(
            data={
                each.name: {"family": each.family, "takes": each.takes, "summary": each.summary}
                for each in entries().values()
            }
        )
        return
    for family, releases in FAMILIES.items():
        members = [each for each in entries().values() if each.family == family]
        if not members:
            continue
        table = Table(title=f"{family}: {releases}", title_justify="left", box=None)
        for name in ("Name", "Takes", "What it does"):
            table.add_column(name, no_wrap=name != "What it does")
        for each in members:
            table.add_row(each.name, " or ".join(each.takes), each.summary)
        print_whole(console, table)
    console.print(
        "bitldp explain NAME --epsilon E ... shows more about one of them; bitldp explain --all --epsilon E "
        "compares them"
    )


def print_claims(console: Console, *, as_json: bool = False) -> None:
    """Print the published settings, claimed against exact epsilon, and what else the papers state."""
    from bitldp.report.claims import claims, claims_table
    from bitldp.report.verdicts import verdicts, verdicts_table

    rows, judged = claims(), verdicts()
    if as_json:
        result: dict[str, list[Any]] = {"claims": rows, "verdicts": judged}
        console.print_json(
            data=jsonable({name: [asdict(row) for row in some] for name, some in result.items()})
        )
        return
    print_whole(console, claims_table(rows))
    print_whole(console, verdicts_table(judged))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return number(value, 6)
    return str(value)


def _words(name: str) -> str:
    return name.replace("_", " ")


def print_facts(facts: dict[str, Any], console: Console, *, as_json: bool = False) -> None:
    """Print what `explain` returned."""
    if as_json:
        console.print_json(data=facts)
        return
    for part in facts["mechanisms"]:
        table = Table(title=part["mechanism"], show_header=False)
        table.add_column(no_wrap=True)
        table.add_column()
        parameters = ", ".join(f"{name} {_shown(value)}" for name, value in part["parameters"].items())
        table.add_row("parameters", parameters)
        guarantee = part["guarantee"]
        table.add_row(f"claimed epsilon, per {guarantee['unit']}", _shown(guarantee["claimed"]))
        for name in ("record", "feature", "bit"):
            condition = f" ({guarantee['given']})" if guarantee["given"] else ""
            table.add_row(f"exact epsilon, per {name}", _shown(guarantee[name]) + condition)
        if guarantee["delta"]:
            table.add_row("delta", _shown(guarantee["delta"]))
        table.add_row("the claim holds", _shown(guarantee["holds"]))
        for group in ("probabilities", "errors"):
            for name, value in part.get(group, {}).items():
                if isinstance(value, dict):
                    users = value.get("users")
                    suffix = "" if users is None else f", {users} user{'s' if users > 1 else ''}"
                    inner = (f"{_shown(v)} {_words(k)}" for k, v in value.items() if k != "users")
                    table.add_row(_words(name) + suffix, "; ".join(inner))
                else:
                    table.add_row(_words(name), _shown(value))
        table.add_row("bits on the wire, per record", _shown(part["bits_on_the_wire"]))
        liars = part["liars"]
        moved = _shown(liars["influence"]) if "influence" in liars else f"not bounded: {liars['unbounded']}"
        table.add_row(f"{100 * liars['share']:g} % of liars move an estimate by at most", moved)
        print_whole(console, table)
        for number_, law in enumerate(part.get("laws_of_the_bits", [])):
            _render_law(law, number_, len(part["laws_of_the_bits"]), console)
    if "total_per_record" in facts:
        whole = facts["total_per_record"]
        console.print(
            f"features and label together: claimed epsilon {_shown(whole['claimed'])}, exact "
            f"{_shown(whole['record'])} per record"
        )


def _render_law(law: list[dict[str, Any]], index: int, laws: int, console: Console) -> None:
    table = Table(title="Bits" + (f", law {index + 1} of {laws}" if laws > 1 else ""))
    for name in ("bit", "weight", "P(report 1 | bit 1)", "P(report 1 | bit 0)"):
        table.add_column(name, justify="right")
    for row in law:
        table.add_row(
            str(row["position"]),
            "sign" if row["weight"] is None else f"{row['weight']:g}",
            f"{row['one_stays_one']:.6f}",
            f"{row['zero_becomes_one']:.6f}",
        )
    console.print(table)


@offering()
def explain(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            metavar="[MECHANISM]",
            help=f"One of {', '.join(entries())}, or {SUM}; without it they are listed. With --help: its "
            "options.",
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Privacy budget of a record.")] = None,
    users: Annotated[
        int | None,
        typer.Option(min=1, max=10**12, help="Number of records in an estimate; adds its standard error."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Compare every mechanism at --epsilon; sizes may be given.")
    ] = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="Compare published claims with the exact values.")
    ] = False,
    clients: Annotated[
        int | None, typer.Option(metavar="N", help=f"{SUM}: number of clients, at most 2**24.")
    ] = None,
    floor: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=f"{SUM}: least number of clients that follow the protocol and stay; by default all.",
        ),
    ] = None,
    colluding: Annotated[
        int | None, typer.Option(metavar="N", help=f"{SUM}: clients that may reveal their noise.")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="auto|polya|skellam|signs", help=f"{SUM}: distribution of a client's noise share."
        ),
    ] = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Show the guarantee and the expected error of a setting, without any data.

    sum explains a secure sum, of which only the total is shown: a count, with --categories a histogram, with
    --low and --high the mean of numbers, with --features that of vectors of a length up to --radius.

    Example: bitldp explain frr --features 100 --epsilon 8 --calibration paper --users 10000
    """
    options = given_options(given)
    of_sum: dict[str, Any] = {
        "--clients": clients,
        "--floor": floor,
        "--colluding": colluding,
        "--noise": noise,
    }
    with sentences():
        console = wide_console()
        if mechanism == SUM and not every and not claims:
            if users is not None:
                raise UsageError("--users does not apply to a sum; use --clients")
            budget = needed("--epsilon", epsilon)
            facts_of_it = sum_facts(budget, options, clients, floor, colluding, noise)
            print_sum(facts_of_it, console, as_json=as_json)
            return
        for option, its in of_sum.items():
            if its is not None:
                raise UsageError(f"{option} does not apply to {mechanism or 'a list'} (it does to {SUM})")
        if every or claims or mechanism is None:
            if every and claims:
                raise UsageError("--all and --claims are tables of their own: give one of them")
            without = "with --claims" if claims else "with --all" if every else "without a mechanism"
            named = {"a mechanism": mechanism, "--epsilon": None if every else epsilon, "--users": users}
            named |= {shown(name): each for name, each in options.items() if not (every and name in MOST)}
            for option, value in named.items():
                if value is not None:
                    raise UsageError(f"{option} has no effect {without}")
            if every:
                print_overview(overview(needed("--epsilon", epsilon), options), console, as_json=as_json)
            elif claims:
                print_claims(console, as_json=as_json)
            else:
                print_mechanisms(console, as_json=as_json)
            return
        budget, chosen = needed("--epsilon", epsilon), entry(mechanism)
        chosen.check(options, entries())
        with warnings.catch_warnings():
            # The guarantee says it, as a row of its own.
            warnings.simplefilter("ignore", PrivacyClaimWarning)
            described = facts(chosen.name, chosen.build(budget, options), options, users)
        print_facts(described, console, as_json=as_json)
