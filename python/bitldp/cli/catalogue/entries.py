"""Entries of the command line for bits, categories and points."""

from __future__ import annotations

from typing import Any

import bitldp
from bitldp.cli.catalogue.entry import Entry, Settings
from bitldp.cli.options import needed
from bitldp.cli.perturb.files import UsageError

__all__ = ["BASIC", "ENTRIES", "NUMERIC", "check", "entry"]

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


_SPENDING = ("spend", "k")


def _on_interval(kind: Any, *names: str, **fixed: Any) -> Any:
    """Return the builder of a numeric mechanism that takes its interval as a pair."""

    def build(s: Settings, size: int) -> Any:
        given = s.given("unit", *_SPENDING, *names)
        return kind(s.epsilon, features=size, interval=s.interval, **fixed, **given)

    return build


def _ldpfl_duchi(s: Settings, size: int) -> Any:
    low, high = s.interval
    center, radius = low + (high - low) / 2.0, (high - low) / 2.0
    return bitldp.LDPFLDuchi(
        s.epsilon, features=size, center=center, radius=radius, **s.given("unit", *_SPENDING)
    )


def _gaussian(s: Settings, size: int) -> Any:
    delta = needed("--delta", s.delta)
    options = s.given("unit", *_SPENDING)
    return bitldp.Gaussian(s.epsilon, delta, features=size, interval=s.interval, **options)


def _metric_mvu(s: Settings, size: int) -> Any:
    low, high = s.interval
    # An epsilon a unit of distance; --epsilon is what the greatest distance of a record costs.
    each = s.epsilon / ((high - low) * size)
    options = s.given("input_bits", "output_bits")
    return bitldp.MetricMVU(each, features=size, interval=s.interval, **options)


def _bits_of(kind: Any) -> Any:
    """Return the builder of a mechanism whose report has as many bits as its grid."""

    def build(s: Settings, size: int) -> Any:
        options = s.given("unit", *_SPENDING)
        if s.output_bits is not None:
            options["bits"] = s.output_bits
        return kind(s.epsilon, features=size, interval=s.interval, **options)

    return build


def _record(kind: Any, *names: str) -> Any:
    """Return the builder of a mechanism that releases a record as a whole."""
    return lambda s, size: kind(size, epsilon=s.epsilon, interval=s.interval, **s.given(*names))


def _ball(kind: Any, *names: str, **fixed: Any) -> Any:
    """Return the builder of a mechanism for vectors of a ball of radius 1."""
    return lambda s, size: kind(size, epsilon=s.epsilon, **fixed, **s.given(*names))


def _top(kind: Any, *names: str) -> Any:
    """Return the builder of a selection from the top k dimensions."""
    return lambda s, size: kind(size, needed("--k", s.k), epsilon=s.epsilon, **s.given(*names))


def _exp(s: Settings, size: int) -> Any:
    return bitldp.EXP(size, epsilon=s.epsilon)


NUMERIC = (
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
    Entry(
        "laplace",
        "numeric",
        ("reals",),
        frozenset(_SPENDING),
        "discrete Laplace noise on a grid: a baseline",
        _on_interval(bitldp.Laplace),
    ),
    Entry(
        "gaussian",
        "numeric",
        ("reals",),
        frozenset({*_SPENDING, "delta"}),
        "discrete Gaussian noise on a grid: a baseline, with a delta",
        _gaussian,
    ),
    Entry(
        "bit-budgets",
        "numeric",
        ("reals",),
        frozenset({*_SPENDING, "bits"}),
        "independent bits with the best budgets: what bits by themselves can do",
        _on_interval(bitldp.BitBudgets, "bits"),
        usual={"bits": None},  # as many as are best
    ),
    Entry(
        "minimax",
        "numeric",
        ("reals",),
        frozenset(_SPENDING),
        "the least worst-case variance, by a linear program (needs SciPy)",
        _on_interval(bitldp.MinimaxVariance),
    ),
    Entry(
        "mvu",
        "compression",
        ("reals",),
        frozenset({*_SPENDING, "input_bits", "output_bits"}),
        "MVU: the least variance in a few bits, by a program that was solved before",
        _on_interval(bitldp.MVU, "input_bits", "output_bits"),
    ),
    Entry(
        "metric-mvu",
        "compression",
        ("reals",),
        frozenset({"input_bits", "output_bits"}),
        "MVU under metric privacy: near numbers are told apart less (needs SciPy)",
        _metric_mvu,
    ),
    Entry(
        "generalized-rr",
        "compression",
        ("reals",),
        frozenset({*_SPENDING, "output_bits"}),
        "unbiased k-ary randomized response on the points of a grid",
        _bits_of(bitldp.GeneralizedRR),
    ),
    Entry(
        "bitwise-rr",
        "compression",
        ("reals",),
        frozenset({*_SPENDING, "output_bits"}),
        "unbiased randomized response, bit by bit",
        _bits_of(bitldp.BitwiseRR),
    ),
    Entry(
        "vector-mvu",
        "compression",
        ("ball",),
        frozenset({"delta", "input_bits", "output_bits"}),
        "MVU for vectors of an l2 ball, epsilon and delta by Renyi accounting (needs SciPy)",
        _ball(bitldp.VectorMVU, "delta", "input_bits", "output_bits"),
        perturbs=False,
    ),
    Entry(
        "interpolated-mvu",
        "compression",
        ("ball",),
        frozenset({"delta", "output_bits"}),
        "interpolated MVU: tilted letters for vectors of an l2 ball, 2 to 5 bits a coordinate",
        _ball(bitldp.InterpolatedMVU, "delta", "output_bits"),
        perturbs=False,
    ),
    Entry(
        "cldp",
        "compression",
        ("ball",),
        frozenset(),
        "CLDP: one coordinate of a vector of an l1 ball, and its sign",
        _ball(bitldp.CLDP),
        perturbs=False,
    ),
    Entry(
        "skellam",
        "compression",
        ("ball",),
        frozenset({"delta", "output_bits"}),
        "Skellam noise on vectors of an l2 ball, with a delta",
        _ball(bitldp.Skellam, "delta", "output_bits"),
        perturbs=False,
    ),
    Entry(
        "ball-gaussian",
        "compression",
        ("ball",),
        frozenset({"delta", "output_bits"}),
        "discrete Gaussian noise on vectors of an l2 ball, with a delta",
        _ball(bitldp.BallGaussian, "delta", "output_bits"),
        perturbs=False,
    ),
    Entry(
        "sign-sgd",
        "compression",
        ("ball",),
        frozenset({"delta"}),
        "signs of a noisy gradient of an l2 ball; no unbiased mean",
        _ball(bitldp.SignSGD, "delta"),
        perturbs=False,
    ),
    Entry(
        "privunit",
        "record",
        ("reals",),
        frozenset(),
        "PrivUnit on the hypercube: all signs of a record at once, good at large epsilon",
        _record(bitldp.HypercubePrivUnit),
        perturbs=False,
    ),
    Entry(
        "sampled-signs",
        "record",
        ("reals",),
        frozenset({"k"}),
        "the signs of k sampled coordinates as one symbol",
        _record(bitldp.SampledSigns, "k"),
        usual={"k": None},  # as many as are best
        perturbs=False,
    ),
    Entry(
        "duchi-cube",
        "record",
        ("reals",),
        frozenset({"calibration"}),
        "Duchi in d dimensions: half of the cube's corners are likelier",
        _on_interval(bitldp.Duchi, "calibration", spend="cube"),
        perturbs=False,
    ),
    Entry(
        "exp",
        "selection",
        ("scores",),
        frozenset(),
        "EXP: a dimension by the rank of its size",
        _exp,
        perturbs=False,
    ),
    Entry(
        "pe",
        "selection",
        ("scores",),
        frozenset({"k", "calibration"}),
        "PE: randomized response on who is in the top k, then one of them; its claim does not hold",
        _top(bitldp.PE, "calibration"),
        perturbs=False,
    ),
    Entry(
        "ps",
        "selection",
        ("scores",),
        frozenset({"k"}),
        "PS: one of the top k with a chance, else one of the rest; the one to use",
        _top(bitldp.PS),
        perturbs=False,
    ),
)

ENTRIES: dict[str, Entry] = {each.name: each for each in (*BASIC, *NUMERIC)}


def entry(name: str) -> Entry:
    """Return the entry of a mechanism by the name used on the command line."""
    try:
        return ENTRIES[name.lower().replace("_", "-")]
    except KeyError:
        raise UsageError(f"no mechanism {name!r}; there are {', '.join(ENTRIES)}") from None


def check(chosen: Entry, settings: Settings) -> None:
    """Refuse options that say nothing to the chosen mechanism."""
    chosen.check(settings, ENTRIES)
