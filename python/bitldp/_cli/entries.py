"""The mechanisms that the command line knows, one entry each."""

from __future__ import annotations

from typing import Any

import bitldp
from bitldp._cli.catalogue import Entry, Settings
from bitldp._cli.files import UsageError

__all__ = ["ENTRIES", "check", "entry"]

_WORDS = ("bits", "integer_bits", "calibration")


def _frr(s: Settings, size: int) -> Any:
    return bitldp.FRR(size, epsilon=s.epsilon, **s.given("unit", *_WORDS))


def _moue(s: Settings, size: int) -> Any:
    return bitldp.MOUE(size, epsilon=s.epsilon, **s.given("alpha", "unit", *_WORDS))


def _uer(s: Settings, size: int) -> Any:
    return bitldp.UER(size, epsilon=s.epsilon, **s.given("alpha", "unit", *_WORDS))


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


def _on_interval(kind: Any) -> Any:
    """Return the builder of a numeric mechanism that takes its interval as a pair."""

    def build(s: Settings, size: int) -> Any:
        return kind(s.epsilon, features=size, interval=s.interval, **s.given("unit", *_SPENDING))

    return build


def _ldpfl_duchi(s: Settings, size: int) -> Any:
    low, high = s.interval
    center, radius = low + (high - low) / 2.0, (high - low) / 2.0
    return bitldp.LDPFLDuchi(
        s.epsilon, features=size, center=center, radius=radius, **s.given("unit", *_SPENDING)
    )


_SPENDING = ("spend", "k")

_ENTRIES = (
    Entry(
        "frr",
        "bits",
        ("numbers",),
        frozenset(_WORDS),
        "f-RR of BitRand: flips bits of fixed-point numbers, the significant ones less often",
        _frr,
    ),
    Entry(
        "bitrand",
        "bits",
        ("numbers",),
        frozenset({*_WORDS, "label_epsilon"}),
        "BitRand: frr on the features and label-rr on the label (needs --label)",
        _frr,
    ),
    Entry(
        "moue",
        "bits",
        ("numbers",),
        frozenset({"alpha", *_WORDS}),
        "MOUE of LATENT: asymmetric flips, the same law for every bit",
        _moue,
    ),
    Entry(
        "uer",
        "bits",
        ("numbers",),
        frozenset({"alpha", *_WORDS}),
        "UER of OME: MOUE with different laws at even and odd bits; its claim does not hold",
        _uer,
        usual={"calibration": "paper"},
    ),
    Entry(
        "sue",
        "categorical",
        ("categories",),
        frozenset(),
        "basic RAPPOR: a category as k bits, each flipped with the same probability",
        _sue,
    ),
    Entry(
        "oue",
        "categorical",
        ("categories",),
        frozenset(),
        "optimised unary encoding: a category as k bits; best for frequencies of many categories",
        _oue,
    ),
    Entry(
        "grr",
        "categorical",
        ("categories", "points"),
        frozenset(),
        "k-ary randomized response: the true category, or any other with equal probability",
        _grr,
    ),
    Entry(
        "label-rr",
        "categorical",
        ("categories",),
        frozenset(),
        "label-RR of BitRand: k-ary randomized response for class labels",
        _label_rr,
    ),
    Entry(
        "warner-rr",
        "categorical",
        ("categories",),
        frozenset(),
        "Warner's randomized response: the truth about yes or no, or the opposite",
        _warner,
    ),
    Entry(
        "brr",
        "categorical",
        ("points",),
        frozenset({"m"}),
        "BRR: a number as one of N points; the m points nearest to it are reported more often",
        _brr,
    ),
    Entry(
        "duchi",
        "numeric",
        ("reals",),
        frozenset(_SPENDING),
        "Duchi: a number as one of two letters; least variance at small epsilon",
        _on_interval(bitldp.Duchi),
    ),
    Entry(
        "piecewise",
        "numeric",
        ("reals",),
        frozenset(_SPENDING),
        "PM: a report near the number is likelier than one far from it; good at large epsilon",
        _on_interval(bitldp.Piecewise),
    ),
    Entry(
        "piecewise-sub",
        "numeric",
        ("reals",),
        frozenset(_SPENDING),
        "PM-SUB: PM with a wider window",
        _on_interval(bitldp.PiecewiseSub),
    ),
    Entry(
        "hybrid",
        "numeric",
        ("reals",),
        frozenset(_SPENDING),
        "HM: PM or Duchi by a coin; the same variance for every number",
        _on_interval(bitldp.Hybrid),
    ),
    Entry(
        "three-outputs",
        "numeric",
        ("reals",),
        frozenset(_SPENDING),
        "three outputs: low, middle or high, with the least worst-case variance",
        _on_interval(bitldp.ThreeOutputs),
    ),
    Entry(
        "ldpfl-duchi",
        "numeric",
        ("reals",),
        frozenset(_SPENDING),
        "LDP-FL of Sun et al.: Duchi around a centre, for the weights of a model",
        _ldpfl_duchi,
    ),
)

ENTRIES: dict[str, Entry] = {each.name: each for each in _ENTRIES}


def entry(name: str) -> Entry:
    """Return the entry of a mechanism by the name used on the command line."""
    try:
        return ENTRIES[name.lower().replace("_", "-")]
    except KeyError:
        raise UsageError(f"no mechanism {name!r}; there are {', '.join(ENTRIES)}") from None


def check(chosen: Entry, settings: Settings) -> None:
    """Refuse options that say nothing to the chosen mechanism."""
    chosen.check(settings, ENTRIES)
