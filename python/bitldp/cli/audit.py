"""``bitldp audit``: a lower bound on the epsilon of a setting, from its reports, against the exact one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from bitldp.base.errors import require
from bitldp.cli.catalogue import CatalogueEntry, entries, entry
from bitldp.cli.commands import AsJson, given_options, offering
from bitldp.cli.errors import UsageError
from bitldp.cli.screen import sentences, wide_console
from bitldp.privacy import PrivacyClaimWarning, number

__all__ = ["audit"]


@offering()
def audit(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", help=f"One of {', '.join(entries())}.")],
    epsilon: Annotated[float, typer.Option(metavar="E", help="Privacy budget of a record.")],
    n: Annotated[
        int, typer.Option("--n", min=100, max=10**9, help="Number of reports drawn for each input.")
    ] = 100_000,
    confidence: Annotated[
        float, typer.Option(help="Confidence level of all bounds together, 0.5 to below 1.")
    ] = 0.999,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed that makes the reports reproducible.")] = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Draw reports, compute a lower bound on epsilon, and compare it with the exact value; needs no data.

    Exits with 1 if the bound exceeds what is exact.

    Example: bitldp audit grr --categories 10 --epsilon 1 --n 1000000
    """
    options = given_options(given)
    with sentences():
        require("the audit", ["scipy"], "design")
        from bitldp.audit.audit import audit as run

        if not 0.5 <= confidence < 1.0:
            raise UsageError("--confidence: must be 0.5 or more and below 1")
        chosen = entry(mechanism)
        chosen.check(options, entries())
        built = _built(chosen, epsilon, options)
        result = run(built, n=n, confidence=confidence, rng=seed)
        if as_json:
            print(json.dumps(result.to_dict(), indent=2))
        else:
            _print(result, options.get("unit", result.guarantee.unit))
        if not result.passed:
            raise typer.Exit(1)


def _built(chosen: CatalogueEntry, epsilon: float, options: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings():
        # The result shows both epsilons.
        warnings.simplefilter("ignore", PrivacyClaimWarning)
        return chosen.build(epsilon, options)


def _print(result: Any, unit: str) -> None:
    """Print the result as a table of two columns; the claim covers one `unit`."""
    guarantee = result.guarantee
    holds = "" if guarantee.holds else " (the claim does NOT hold)"
    if result.refuted:
        holds = " (the claim does NOT hold: these reports alone refute it)"
    table = Table(title=f"Audit of {result.mechanism}", show_header=False)
    rows = (
        ("lower bound on epsilon", number(result.lower, 6)),
        ("exact epsilon of this event", number(result.exact, 6)),
        ("exact epsilon per record", number(guarantee.record, 6)),
        ("claimed epsilon", f"{number(result.claimed, 6)} per {unit}{holds}"),
        ("event", result.event),
        ("inputs", " against ".join(result.between)),
        ("reports", f"{result.n} of each input, confidence {result.confidence:g}"),
        ("would have seen", f"an excess of {number(result.detectable, 3)} at such an event, or more"),
        ("verdict", "passes" if result.passed else "FAILS: the bound exceeds the exact epsilon"),
    )
    for name, value in rows:
        table.add_row(name, value)
    wide_console().print(table)
