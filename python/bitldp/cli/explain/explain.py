"""``bitldp explain``: what a setting guarantees, and all mechanisms at one budget, without any data."""

from __future__ import annotations

from typing import Annotated

import typer

from bitldp.cli.catalogue.entries import ENTRIES, entry
from bitldp.cli.catalogue.settings import (
    Alpha,
    AsJson,
    Bits,
    Calibration,
    Classes,
    Delta,
    Features,
    High,
    InputBits,
    IntegerBits,
    K,
    LabelEpsilon,
    Low,
    M,
    OutputBits,
    Points,
    Spend,
    Unit,
    settings,
    sizes,
)
from bitldp.cli.options import needed
from bitldp.cli.perturb.files import UsageError
from bitldp.cli.screen import sentences, wide_console

__all__ = ["explain"]


def explain(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            metavar="[MECHANISM]", help=f"One of {', '.join(ENTRIES)}; without it they are listed."
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Privacy budget of a record.")] = None,
    features: Features = None,
    classes: Classes = None,
    points: Points = None,
    label_epsilon: LabelEpsilon = None,
    bits: Bits = None,
    integer_bits: IntegerBits = None,
    alpha: Alpha = None,
    calibration: Calibration = None,
    unit: Unit = None,
    low: Low = None,
    high: High = None,
    m: M = None,
    k: K = None,
    spend: Spend = None,
    delta: Delta = None,
    input_bits: InputBits = None,
    output_bits: OutputBits = None,
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
        bool, typer.Option("--claims", help="Published settings: claimed against exact epsilon.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a setting guarantees and how far off its reports are, without any data.

    Example: bitldp explain frr --features 100 --epsilon 8 --calibration paper --users 10000
    """
    options = locals()
    with sentences():
        from bitldp.cli.explain import tables
        from bitldp.cli.explain.facts import facts
        from bitldp.cli.explain.overview import overview, print_overview

        console = wide_console()
        if every or claims or mechanism is None:
            if every and claims:
                raise UsageError("--all and --claims are tables of their own: give one of them")
            taken = {"epsilon", "features", "classes", "points"} if every else set()
            without = "with --claims" if claims else "with --all" if every else "without a mechanism"
            for name, value in options.items():
                if value is None or name in taken | {"every", "claims", "as_json"}:
                    continue
                option = "a mechanism" if name == "mechanism" else f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} says nothing {without}")
            if every:
                rows = overview(
                    needed("--epsilon", epsilon), features=features, classes=classes, points=points
                )
                print_overview(rows, console, as_json=as_json)
            elif claims:
                tables.print_claims(console, as_json=as_json)
            else:
                tables.print_mechanisms(console, as_json=as_json)
            return
        given = settings(needed("--epsilon", epsilon), options)
        chosen = entry(mechanism)
        size = chosen.size(sizes(options))
        found = facts(chosen, given, size=size, classes=classes, users=users)
        tables.print_facts(found, console, as_json=as_json)
