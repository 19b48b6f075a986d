"""``bitldp explain``: what a setting guarantees, and all mechanisms at one budget, without any data."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import typer

from bitldp.cli.catalogue.command import AsJson, offering
from bitldp.cli.catalogue.entries import entries, entry
from bitldp.cli.catalogue.entry import MOST
from bitldp.cli.catalogue.fields import shown
from bitldp.cli.options import needed
from bitldp.cli.perturb.files import UsageError
from bitldp.cli.screen import sentences, wide_console
from bitldp.privacy import PrivacyClaimWarning

__all__ = ["explain"]


@offering()
def explain(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            metavar="[MECHANISM]",
            help=f"One of {', '.join(entries())}; without it they are listed. With --help: its options.",
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Privacy budget of a record.")] = None,
    users: Annotated[
        int | None,
        typer.Option(
            min=1, max=10**12, help="Number of records behind an estimate: adds its standard error."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every mechanism at --epsilon, side by side; sizes may be given.")
    ] = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="Published settings and statements, against what is exact.")
    ] = False,
    as_json: AsJson = False,
    *,
    options: dict[str, Any],
) -> None:
    """Show what a setting guarantees and how far off its reports are, without any data.

    Example: bitldp explain frr --features 100 --epsilon 8 --calibration paper --users 10000
    """
    with sentences():
        from bitldp.cli.explain import tables
        from bitldp.cli.explain.facts import facts
        from bitldp.cli.explain.overview import overview, print_overview

        console = wide_console()
        if every or claims or mechanism is None:
            if every and claims:
                raise UsageError("--all and --claims are tables of their own: give one of them")
            without = "with --claims" if claims else "with --all" if every else "without a mechanism"
            named = {"a mechanism": mechanism, "--epsilon": None if every else epsilon, "--users": users}
            named |= {shown(name): each for name, each in options.items() if not (every and name in MOST)}
            for option, value in named.items():
                if value is not None:
                    raise UsageError(f"{option} says nothing {without}")
            if every:
                print_overview(overview(needed("--epsilon", epsilon), options), console, as_json=as_json)
            elif claims:
                tables.print_claims(console, as_json=as_json)
            else:
                tables.print_mechanisms(console, as_json=as_json)
            return
        budget, chosen = needed("--epsilon", epsilon), entry(mechanism)
        chosen.check(options, entries())
        with warnings.catch_warnings():
            # The guarantee says it, as a row of its own.
            warnings.simplefilter("ignore", PrivacyClaimWarning)
            found = facts(chosen.name, chosen.build(budget, options), options, users)
        tables.print_facts(found, console, as_json=as_json)
