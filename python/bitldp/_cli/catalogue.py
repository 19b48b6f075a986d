"""The mechanisms that the command line knows: one entry each, from options to a constructed mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import bitldp
from bitldp._cli.files import UsageError

__all__ = ["ENTRIES", "Entry", "Settings", "entry"]

Input = Literal["numbers", "categories", "points"]


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
    low: float | None = None
    high: float | None = None
    label_epsilon: float | None = None

    def given(self, *names: str) -> dict[str, Any]:
        """Return those of the named options that were given."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True)
class Entry:
    """One mechanism of the command line.

    Attributes
    ----------
    name : str
        What ``--mechanism`` takes.
    inputs : tuple of {"numbers", "categories", "points"}
        What it takes: all columns together as fixed-point numbers; each column by itself as a category; each
        column by itself as one of N points of an interval.
    options : frozenset of str
        Names of `Settings` that apply, besides `epsilon`.
    summary : str
        One line.
    build : callable
        ``build(settings, size)``, size being the number of features, of categories or of points.
    """

    name: str
    inputs: tuple[Input, ...]
    options: frozenset[str]
    summary: str
    build: Callable[[Settings, int], Any]

    @property
    def unary(self) -> bool:
        """Whether a report is one bit for every category."""
        return self.name in ("sue", "oue")

    def check(self, settings: Settings) -> None:
        """Refuse options that say nothing to this mechanism, rather than ignore them."""
        for option in ("bits", "integer_bits", "alpha", "calibration", "m"):
            if getattr(settings, option) is not None and option not in self.options:
                takers = ", ".join(other.name for other in ENTRIES.values() if option in other.options)
                raise UsageError(
                    f"--{option.replace('_', '-')} does not apply to {self.name} (it does to {takers})"
                )

    def construct(self, settings: Settings, size: int) -> Any:
        """Build the mechanism; what its constructor refuses is a usage problem."""
        try:
            return self.build(settings, size)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.name}: {error}") from None
        except (OverflowError, MemoryError):
            raise UsageError(f"{self.name}: a number given is too large") from None


_WORDS = ("bits", "integer_bits", "calibration", "unit")


def _frr(s: Settings, size: int) -> Any:
    return bitldp.FRR(size, epsilon=s.epsilon, **s.given(*_WORDS))


def _moue(s: Settings, size: int) -> Any:
    return bitldp.MOUE(size, epsilon=s.epsilon, **s.given("alpha", *_WORDS))


def _uer(s: Settings, size: int) -> Any:
    return bitldp.UER(size, epsilon=s.epsilon, **s.given("alpha", *_WORDS))


def _sue(s: Settings, size: int) -> Any:
    return bitldp.SUE(size, epsilon=s.epsilon)


def _oue(s: Settings, size: int) -> Any:
    return bitldp.OUE(size, epsilon=s.epsilon)


def _grr(s: Settings, size: int) -> Any:
    return bitldp.GRR(size, epsilon=s.epsilon, **s.given("unit"))


def _label_rr(s: Settings, size: int) -> Any:
    return bitldp.LabelRR(size, epsilon=s.epsilon)


def _warner(s: Settings, size: int) -> Any:
    if size != 2:
        raise ValueError(f"takes a column of 2 categories, got {size}; use grr for more")
    return bitldp.WarnerRR(s.epsilon)


def _brr(s: Settings, size: int) -> Any:
    options = s.given("unit")
    if s.m is not None:
        options["m"] = int(s.m) if s.m.isdecimal() else s.m
    if s.low is not None and s.high is not None:
        options["interval"] = (s.low, s.high)
    return bitldp.BRR(size, epsilon=s.epsilon, **options)


ENTRIES: dict[str, Entry] = {
    e.name: e
    for e in (
        Entry(
            "frr",
            ("numbers",),
            frozenset(_WORDS),
            "f-RR of BitRand: flips bits of fixed-point numbers, the significant ones less often",
            _frr,
        ),
        Entry(
            "bitrand",
            ("numbers",),
            frozenset({*_WORDS, "label_epsilon"}),
            "BitRand: frr on the features and label-rr on the label (needs --label)",
            _frr,
        ),
        Entry(
            "moue",
            ("numbers",),
            frozenset({"alpha", *_WORDS}),
            "MOUE of LATENT: asymmetric flips, the same law for every bit",
            _moue,
        ),
        Entry(
            "uer",
            ("numbers",),
            frozenset({"alpha", *_WORDS}),
            "UER of OME: MOUE with different laws at even and odd bits; its claim does not hold",
            _uer,
        ),
        Entry(
            "sue",
            ("categories",),
            frozenset({"unit"}),
            "basic RAPPOR: a category as k bits, each flipped with the same probability",
            _sue,
        ),
        Entry(
            "oue",
            ("categories",),
            frozenset({"unit"}),
            "optimised unary encoding: a category as k bits; best for frequencies of many categories",
            _oue,
        ),
        Entry(
            "grr",
            ("categories", "points"),
            frozenset({"unit"}),
            "k-ary randomized response: the true category, or any other with equal probability",
            _grr,
        ),
        Entry(
            "label-rr",
            ("categories",),
            frozenset({"unit"}),
            "label-RR of BitRand: k-ary randomized response for class labels",
            _label_rr,
        ),
        Entry(
            "warner-rr",
            ("categories",),
            frozenset({"unit"}),
            "Warner's randomized response: the truth about yes or no, or the opposite",
            _warner,
        ),
        Entry(
            "brr",
            ("points",),
            frozenset({"unit", "m"}),
            "BRR: a number as one of N points; the m points nearest to it are reported more often",
            _brr,
        ),
    )
}


def entry(name: str) -> Entry:
    """Return the entry of a mechanism by the name used on the command line."""
    try:
        return ENTRIES[name.lower().replace("_", "-")]
    except KeyError:
        raise UsageError(f"no mechanism {name!r}; there are {', '.join(ENTRIES)}") from None
