"""Entries of the command line for bits, categories and points."""

from __future__ import annotations

from typing import Any

import bitldp
from bitldp._cli.catalogue import Entry, Settings

__all__ = ["BASIC"]

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


def _utility(kind: Any) -> Any:
    """Return the builder of a mechanism that releases one of N points."""

    def build(s: Settings, size: int) -> Any:
        options = s.given("unit", "calibration")
        if s.low is not None and s.high is not None:
            options["interval"] = (s.low, s.high)
        return kind(size, epsilon=s.epsilon, **options)

    return build


def _label_laplace(s: Settings, size: int) -> Any:
    return bitldp.LabelLaplace(size, epsilon=s.epsilon)


BASIC = (
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
        "exponential",
        "categorical",
        ("points",),
        frozenset({"calibration"}),
        "exponential mechanism: a point is the likelier the nearer it is",
        _utility(bitldp.Exponential),
    ),
    Entry(
        "lsrr",
        "categorical",
        ("points",),
        frozenset({"calibration"}),
        "L-SRR: a staircase over groups of points that share a public prefix",
        _utility(bitldp.LSRR),
    ),
    Entry(
        "optimal-utility",
        "categorical",
        ("points",),
        frozenset(),
        "the least expected error of a released point, by a linear program (needs SciPy)",
        _utility(bitldp.OptimalUtility),
    ),
    Entry(
        "label-laplace",
        "categorical",
        ("categories",),
        frozenset(),
        "Laplace noise on the one-hot label: a baseline of BitRand",
        _label_laplace,
        perturbs=False,
    ),
)
