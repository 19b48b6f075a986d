"""Numbers as a paper states them: printed in its text, read off its drawing, or given as a formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Formula", "Printed", "ReadOff", "Stated", "printed_row"]


@dataclass(frozen=True)
class Printed:
    """A number that stands in the paper's text.

    Parameters
    ----------
    text : str
        The number as it is printed, without its unit: "46.03", "4,311", "-0.157". A minus must stand there.
    passage : str
        Of the five words before the number and the number itself: the first twelve digits of their SHA-256,
        as ``python -m bitldp_papers.figures.numbers FILE NUMBER`` prints it. Arguments are literals, since a
        test finds them in the source, and looks each up in the paper's text.
    scale : float
        That turns the printed number into the unit of ours: .01 for a percentage.
    """

    text: str
    passage: str
    scale: float = 1.0

    @property
    def value(self) -> float:
        """The number in the unit of ours."""
        return float(self.text.replace(",", "")) * self.scale

    @property
    def half_unit(self) -> float:
        """Half a unit of the last digit, in the unit of ours: what rounding hides."""
        digits = len(self.text.rpartition(".")[2]) if "." in self.text else 0
        return float(0.5 * 10.0**-digits * abs(self.scale))


def printed_row(texts: str, passage: str, scale: float = 1.0) -> tuple[Printed, ...]:
    """Return numbers that stand one after another in a table of the paper.

    Parameters
    ----------
    texts : str
        The numbers as they are printed, with blanks between: "78.73 82.21 83.25".
    passage : str
        The first 12 hexadecimal digits of SHA-256 of the five words before the first number and all of the
        numbers.
    scale : float
        Factor of each number, as .01 of a percentage.
    """
    return tuple(Printed(text, passage, scale) for text in texts.split())


@dataclass(frozen=True)
class ReadOff:
    """A number read off the paper's drawing.

    Attributes
    ----------
    value : float
    within : float
        How far off the reading may be, more than zero.
    """

    value: float
    within: float

    def __post_init__(self) -> None:
        if not self.within > 0.0:
            raise ValueError("within: must be above zero for a number that is read off a drawing")


@dataclass(frozen=True)
class Formula:
    """A formula of the paper, evaluated by us: what it gives is not a number of the paper.

    Attributes
    ----------
    value : float
    """

    value: float


#: What stands beside a number of ours.
Stated: TypeAlias = Printed | ReadOff | Formula | None


def stated(paper: Stated) -> dict[str, Any]:
    """Return the kind of a paper's number and what is shown of it, as JSON values.

    Returns
    -------
    dict
        "kind" is "printed", "drawn", "formula" or None; "paper" the number of the first two,
        "within" its uncertainty, "text" as it is printed; "formula" that of the third.
    """
    result: dict[str, Any] = {"kind": None, "paper": None, "within": None, "text": None, "formula": None}
    if isinstance(paper, Printed):
        text = paper.text if paper.scale == 1.0 else None
        return result | {"kind": "printed", "paper": paper.value, "text": text}
    if isinstance(paper, ReadOff):
        return result | {"kind": "drawn", "paper": paper.value, "within": paper.within}
    if isinstance(paper, Formula):
        return result | {"kind": "formula", "formula": paper.value}
    return result
