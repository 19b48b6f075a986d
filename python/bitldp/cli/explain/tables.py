"""Tables and JSON of ``bitldp explain``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from bitldp.base.documents import jsonable
from bitldp.cli.catalogue.entries import FAMILIES, entries
from bitldp.cli.screen import print_whole
from bitldp.report.claims import claims, claims_table
from bitldp.report.totals import number
from bitldp.report.verdicts import verdicts, verdicts_table

__all__ = ["print_claims", "print_facts", "print_mechanisms"]


def print_mechanisms(console: Console, *, as_json: bool = False) -> None:
    """Print the mechanisms with one line each, family by family."""
    if as_json:
        console.print_json(
            data={
                entry.name: {"family": entry.family, "takes": entry.takes, "summary": entry.summary}
                for entry in entries().values()
            }
        )
        return
    for family, releases in FAMILIES.items():
        members = [entry for entry in entries().values() if entry.family == family]
        if not members:
            continue
        table = Table(title=f"{family}: {releases}", title_justify="left", box=None)
        for name in ("Name", "Takes", "What it does"):
            table.add_column(name, no_wrap=name != "What it does")
        for entry in members:
            table.add_row(entry.name, " or ".join(entry.takes), entry.summary)
        print_whole(console, table)
    console.print(
        "bitldp explain NAME --epsilon E ... tells more about one of them; bitldp explain --all --epsilon E "
        "compares them"
    )


def print_claims(console: Console, *, as_json: bool = False) -> None:
    """Print the published settings, claimed against exact epsilon, and what else the papers state."""
    rows, judged = claims(), verdicts()
    if as_json:
        found: dict[str, list[Any]] = {"claims": rows, "verdicts": judged}
        console.print_json(
            data=jsonable({name: [asdict(row) for row in some] for name, some in found.items()})
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
        print_whole(console, table)
        for number_, law in enumerate(part.get("laws_of_the_bits", [])):
            _render_law(law, number_, len(part["laws_of_the_bits"]), console)
    if "total_per_record" in facts:
        whole = facts["total_per_record"]
        console.print(
            f"features and label together: claimed epsilon {_shown(whole['claimed'])}, exact "
            f"{_shown(whole['record'])} per record"
        )


def _render_law(law: list[dict[str, Any]], place: int, laws: int, console: Console) -> None:
    table = Table(title="Bits" + (f", law {place + 1} of {laws}" if laws > 1 else ""))
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
