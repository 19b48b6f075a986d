"""``bitldp recommend``: the mechanism of the least variance for a task, without any data."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from bitldp.cli.commands import AsJson, one_of
from bitldp.cli.errors import UsageError
from bitldp.cli.screen import sentences
from bitldp.recommend.question import CRITERIA, NORMS, TASKS

__all__ = ["recommend"]


def _sizes(text: str) -> int | list[int]:
    """Return what ``--categories`` says: how many, or how many of each attribute."""
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        raise UsageError("--categories: must be a number, or numbers with commas") from None
    return sizes if "," in text else sizes[0]


def recommend(
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help=f"One of {', '.join(TASKS)}.", autocompletion=one_of(*TASKS)),
    ],
    epsilon: Annotated[float, typer.Option(metavar="E", help="Privacy budget of a record.")],
    features: Annotated[
        int | None, typer.Option(metavar="N", help="Numbers, coordinates or values in a record.")
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(
            metavar="N|N,N,...", help="frequency, record, label: number of categories, of each attribute."
        ),
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(metavar="N", help="point: number of equidistant candidates.")
    ] = None,
    low: Annotated[float | None, typer.Option(help="Lower end of the public range, with --high.")] = None,
    high: Annotated[float | None, typer.Option(help="Upper end of the public range, with --low.")] = None,
    norm: Annotated[
        str | None,
        typer.Option(metavar="|".join(NORMS), help="vector: norm of the ball that holds the vectors."),
    ] = None,
    bits: Annotated[
        int | None, typer.Option(metavar="N", help="Most bits in a report; 32,768 by default.")
    ] = None,
    metric: Annotated[str | None, typer.Option(metavar="NAME", help="point: name of the loss.")] = None,
    criterion: Annotated[
        str,
        typer.Option(
            metavar="|".join(CRITERIA), help="Error to minimize: on average, or for the worst input."
        ),
    ] = "mean",
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="Also compare mechanisms that take longer than a second or two."),
    ] = False,
    size: Annotated[
        int | None,
        typer.Option(metavar="N", help="range: number of ordered values; top: number of possible words."),
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of records, for distribution and with --liars; of clients, for a secure sum.",
        ),
    ] = None,
    liars: Annotated[float | None, typer.Option(metavar="SHARE", help="Share of clients that lie.")] = None,
    collections: Annotated[
        int | None,
        typer.Option(metavar="N", help="How often the same records are collected within --epsilon."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the mechanisms for a task at the same exact epsilon, best first.

    The first line says what is best, by how much, and what was left out that would be better; the second, how
    far that is at most above every mechanism that there could be, where it is known.

    Example: bitldp recommend frequency --epsilon 2 --categories 1000
    """
    with sentences():
        if (low is None) != (high is None):
            raise UsageError("--low and --high: both are needed")
        asked: dict[str, Any] = {
            "features": features,
            "categories": None if categories is None else _sizes(categories),
            "candidates": candidates,
            "interval": None if low is None else (low, high),
            "norm": norm,
            "bits": bits,
            "metric": metric,
            "size": size,
            "users": users,
            "liars": liars,
            "collections": collections,
        }
        from bitldp.recommend.recommend import recommend as compare

        try:
            advice = compare(task, epsilon=epsilon, criterion=criterion, thorough=thorough, **asked)  # type: ignore[arg-type]
        except (ValueError, TypeError) as error:
            name, _, rest = str(error).partition(":")
            known = name in asked or name in ("epsilon", "criterion", "thorough")
            option = {"interval": "--low and --high"}.get(name, f"--{name}") if known else name
            raise UsageError(f"{option}:{rest}") from None
        print(json.dumps(advice.to_dict(), indent=2) if as_json else advice)
