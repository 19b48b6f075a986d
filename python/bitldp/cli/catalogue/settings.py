"""Options that several commands share, each written once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bitldp.cli.catalogue.entry import Settings

__all__ = [
    "Alpha",
    "AsJson",
    "Bits",
    "Calibration",
    "Classes",
    "Delta",
    "Features",
    "High",
    "InputBits",
    "IntegerBits",
    "K",
    "LabelEpsilon",
    "Low",
    "M",
    "OutputBits",
    "Points",
    "Spend",
    "Unit",
    "settings",
    "sizes",
]

Features = Annotated[
    int | None, typer.Option(help="Numbers in a record, or dimensions of a vector that one is selected of.")
]
Classes = Annotated[
    int | None, typer.Option("--classes", "--categories", help="Categories, or classes of a label.")
]
Points = Annotated[int | None, typer.Option(help="Points that the range of a number is cut to.")]
LabelEpsilon = Annotated[
    float | None, typer.Option(metavar="E", help="Budget of the label, added to --epsilon.")
]
Bits = Annotated[int | None, typer.Option(help="Bits of a number in bit-level mechanisms, 2 to 32.")]
IntegerBits = Annotated[
    int | None,
    typer.Option(help="Of these, bits before the point: 5 covers -32 to 32, 0 covers -1 to 1."),
]
Alpha = Annotated[float | None, typer.Option(help="moue, uer: how rare reported ones are.")]
Calibration = Annotated[
    str | None,
    typer.Option(
        metavar="exact|paper", help="exact: --epsilon holds exactly (default). paper: the paper's formula."
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(metavar="record|feature", help="Whether --epsilon covers the row or each column."),
]
Low = Annotated[float | None, typer.Option(help="Low end of the public range of a number.")]
High = Annotated[float | None, typer.Option(help="High end; values outside move to the ends.")]
M = Annotated[
    str | None, typer.Option("--m", metavar="paper|best|N", help="brr: how many points count as near.")
]
K = Annotated[int | None, typer.Option("--k", help="How many features are sampled, or are in the top set.")]
Spend = Annotated[
    str | None,
    typer.Option(metavar="split|sample", help="Numeric: the budget on all features, or on --k sampled ones."),
]
Delta = Annotated[float | None, typer.Option(metavar="D", help="gaussian: probability of failure.")]
InputBits = Annotated[int | None, typer.Option(help="mvu: bits of the grid that a number is placed on.")]
OutputBits = Annotated[int | None, typer.Option(help="mvu and other compression: bits of a report.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of tables.")]


def settings(epsilon: float, options: dict[str, Any]) -> Settings:
    """Return the settings of a command from its local variables by name."""
    names = Settings.__dataclass_fields__.keys() - {"epsilon"}
    return Settings(epsilon=epsilon, **{name: options[name] for name in names})


def sizes(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that say how large an input is, from a command's local variables by name."""
    names = ("features", "classes", "points", "low", "high", "label_epsilon")
    return {f"--{name.replace('_', '-')}": options[name] for name in names}
