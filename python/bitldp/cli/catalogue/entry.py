"""What the command line knows of a mechanism: an entry, from options to a constructed mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from bitldp.base.extras import MissingExtraError
from bitldp.cli.options import MOST_CATEGORIES, MOST_FEATURES, bounded, needed
from bitldp.cli.perturb.files import UsageError

__all__ = ["FAMILIES", "INTERVAL", "SIZE_OPTIONS", "Entry", "Settings", "shown"]

Input = Literal["numbers", "reals", "categories", "points", "ball", "scores"]
Family = Literal["bits", "categorical", "numeric", "compression", "record", "selection"]

#: The families in the order of the documentation, and what their mechanisms release.
FAMILIES: dict[Family, str] = {
    "bits": "fixed-point numbers, bit by bit",
    "categorical": "categories and points",
    "numeric": "numbers of an interval",
    "compression": "numbers of an interval in few bits",
    "record": "whole records of numbers",
    "selection": "the index of an important dimension",
}

#: The option that says how large an input of each kind is, and the most that it may be.
SIZE_OPTIONS: dict[Input, tuple[str, int]] = {
    "numbers": ("--features", MOST_FEATURES),
    "reals": ("--features", MOST_FEATURES),
    "categories": ("--classes", MOST_CATEGORIES),
    "points": ("--points", MOST_CATEGORIES),
    "ball": ("--features", MOST_FEATURES),
    "scores": ("--features", MOST_FEATURES),
}
#: The interval of numbers, where none is given.
INTERVAL = (-1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options of a mechanism; None where the user gave none, so that the mechanism's own default holds."""

    epsilon: float
    bits: int | None = None
    integer_bits: int | None = None
    alpha: float | None = None
    calibration: str | None = None
    unit: str | None = None
    m: str | None = None
    k: int | None = None
    spend: str | None = None
    delta: float | None = None
    input_bits: int | None = None
    output_bits: int | None = None
    low: float | None = None
    high: float | None = None
    label_epsilon: float | None = None

    def given(self, *names: str) -> dict[str, Any]:
        """Return those of the named options that were given."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of numbers: what was given, or [-1, 1]."""
        return INTERVAL if self.low is None or self.high is None else (self.low, self.high)


#: Options that every mechanism takes, or whose use is checked elsewhere.
_GENERAL = frozenset({"epsilon", "unit", "low", "high", "label_epsilon"})


def shown(name: str) -> str:
    """Return the option of a name of `Settings`."""
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True)
class Entry:
    """One mechanism of the command line.

    Attributes
    ----------
    name : str
        What ``--mechanism`` takes.
    family : str
        One of `FAMILIES`.
    inputs : tuple of {"numbers", "reals", "categories", "points", "ball", "scores"}
        What it takes: all columns together as fixed-point numbers, or as numbers of an interval; each column
        by itself as a category; each column by itself as one of N points of an interval; a vector of a ball
        of radius 1; a vector of which one dimension is chosen.
    options : frozenset of str
        Names of `Settings` that apply, besides those that all take.
    summary : str
        One line.
    build : callable
        ``build(settings, size)``, size being the number of features, of categories or of points.
    usual : mapping
        Settings that its example in a table of all mechanisms needs.
    perturbs : bool
        Whether ``bitldp perturb`` offers it.
    """

    name: str
    family: Family
    inputs: tuple[Input, ...]
    options: frozenset[str]
    summary: str
    build: Callable[[Settings, int], Any]
    usual: Mapping[str, Any] = field(default_factory=dict)
    perturbs: bool = True

    @property
    def unary(self) -> bool:
        """Whether a report is one bit for every category."""
        return self.name in ("sue", "oue")

    def check(self, settings: Settings, others: Mapping[str, Entry]) -> None:
        """Refuse options that say nothing to this mechanism, rather than ignore them."""
        for option in fields(Settings):
            name = option.name
            if name in _GENERAL or name in self.options or getattr(settings, name) is None:
                continue
            takers = ", ".join(other.name for other in others.values() if name in other.options)
            raise UsageError(f"{shown(name)} does not apply to {self.name} (it does to {takers})")

    def size(self, given: Mapping[str, float | None]) -> int:
        """Return the features, categories or points of a setting; refuse options that say nothing to it.

        Parameters
        ----------
        given : mapping of str to number or None
            Value of each option of a size, None where it was not given.
        """
        kind = self.inputs[0]
        option = SIZE_OPTIONS[kind][0]
        applies = {option}
        if kind in ("points", "reals"):
            applies |= {"--low", "--high"}
        if "label_epsilon" in self.options:
            applies |= {"--classes", "--label-epsilon"}
        for name, value in given.items():
            if value is not None and name not in applies:
                raise UsageError(f"{name} does not apply to {self.name}")
        if (given["--low"] is None) != (given["--high"] is None):
            raise UsageError("--low and --high go together: they are the ends of the range")
        for name, bound in SIZE_OPTIONS.values():
            value = given[name]
            bounded(name, None if value is None else int(value), bound)
        if self.name == "warner-rr":
            return 2
        return int(needed(option, 1 if kind == "reals" and given[option] is None else given[option]))

    def construct(self, settings: Settings, size: int) -> Any:
        """Build the mechanism; what its constructor refuses is a usage problem."""
        try:
            return self.build(settings, size)
        except MissingExtraError:
            raise
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.name}: {error}") from None
        except (OverflowError, MemoryError):
            raise UsageError(f"{self.name}: a number given is too large") from None
