"""Duchi's mechanism for one number: two points, two letters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys
from bitldp.mechanism.described import Variant
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import Calibration, Option, one_of
from bitldp.privacy import Guarantee
from bitldp.release.base import Interval, Release
from bitldp.release.cube import MOST, cap, cube_release, published_half
from bitldp.release.draws import permutations
from bitldp.release.window import windowed

__all__ = ["Duchi", "LDPFLDuchi"]

AnySpend = Annotated[Literal["split", "sample", "cube"], one_of("split", "sample", "cube")]


@dataclass(frozen=True, eq=False, repr=False)
class Duchi(Numeric):
    """Duchi's mechanism: reports a number as one of two values; least variance at small epsilon.

    Parameters
    ----------
    epsilon, features, interval
        As of `Numeric`.
    spend : {"split", "sample", "cube"}
        How a record's budget is spent: evenly on all features; on `k` features that are drawn for each record
        without looking at it; or on the record as a whole, which is the mechanism in d dimensions.
    k, clip
        As of `Numeric`.
    unit : {"record", "feature"}
        As of `Numeric`. With ``spend="cube"`` the two are the same (see Notes).
    calibration : {"exact", "paper"}
        "paper" is the published mechanism in d dimensions. It differs from "exact" only with ``spend="cube"``
        and an even number of features, where its claim does not hold (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Warns
    -----
    PrivacyClaimWarning
        With ``calibration="paper"``, ``spend="cube"`` and an even number of features.

    Notes
    -----
    With ``spend="cube"`` a record becomes a vector v of signs. The report is a vector of signs: with
    probability p, uniform among those that agree with v in more than half of the places, otherwise among the
    rest.

    For odd d this is the paper's mechanism: p = e^eps/(e^eps + 1), and on [-1, 1] the letters are +-C_d
    (e^eps + 1)/(e^eps - 1), C_d = 2^(d-1)/binom(d - 1, (d - 1)/2).

    For even d, the paper counts vectors that agree in exactly half of the places to both halves. They then
    have the probability of both, e^eps + 1 times that of a vector of the far half alone, so the exact epsilon
    is ln(e^eps + 1), never below ln 2. Here they belong to the far half, and p = e^eps t/(e^eps t + 1 - t),
    with t the share of the near half, makes epsilon exact. The letters are then +-(e^eps t + 1 - t)
    2^d/((e^eps - 1) binom(d - 1, d/2)). Two records that differ in one feature already reach epsilon, because
    one sign can move a report from one half to the other.

    Neighbouring records differ in any way. On [-1, 1] the letters are +-C, C = (e^eps + 1)/(e^eps - 1), and
    the variance is C^2 - x^2, the dither included. Source: Duchi, Jordan and Wainwright, "Minimax optimal
    procedures for locally private estimation", JASA 113 (2018); this form is Algorithm 1 of Wang et al.,
    "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019, whose
    default `k` and sampling these are.

    Inputs are placed on the grid with a resolution of 2**-32 of a step, in the precision of their dtype.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> from bitldp.numeric import Duchi
    >>> mechanism = Duchi(epsilon=1.0, interval=(0.0, 10.0))
    >>> reports = mechanism.randomize(np.full(100_000, 7.0), rng=1)
    >>> bool(abs(mechanism.estimate_mean(reports).value[0] - 7.0) < 0.2)
    True
    """

    _lasting: ClassVar[str] = "bitldp.numeric.duchi.Duchi"

    _: KW_ONLY
    spend: AnySpend = "split"  # type: ignore[assignment]  # one more than the others
    calibration: Calibration = "exact"

    _variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "duchi-cube",
            "Duchi in d dimensions: half of the cube's corners are likelier",
            {"spend": "cube", "k": None},
            usual_size=100,
        ),
    )

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return windowed(2, 1, epsilon, interval)

    def _promise(self, epsilon: float, parts: int, interval: Interval) -> tuple[Release, Guarantee]:
        if self.spend != "cube":
            return super()._promise(epsilon, parts, interval)
        checks.count("features", parts, 1, MOST)
        if self.calibration == "paper":
            law = published_half(parts, epsilon)
        else:
            law = cap(parts, parts // 2 + 1, epsilon)
        release = cube_release(law, interval)
        # One sign that differs may decide which half a report is in: a feature costs as much as the record.
        exact = release.epsilon
        return release, Guarantee.judge(epsilon, (exact, exact, exact), unit=self.unit)


@dataclass(frozen=True, eq=False, repr=False)
class LDPFLDuchi(Numeric):
    """Weight perturbation of LDP-FL: Duchi's mechanism around a centre, for weights of a model.

    Parameters
    ----------
    epsilon : float
        As of `Numeric`.
    features : int
        Weights of a record (a layer, in the paper), d; each is released by itself.
    center, radius : float
        The weights lie in [center - radius, center + radius].
    spend, k, clip
        As of `Numeric`.
    unit : {"record", "feature"}
        What `epsilon` covers. The paper's claim is about one weight, ``unit="feature"``: the guarantee shows
        what that makes for a record of all weights.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. The letters are center +- radius (e^eps + 1)/(e^eps - 1). Source:
    Sun, Qian, Chen and Yu, "LDP-FL: practical private aggregation in federated learning with local
    differential privacy", arXiv:2007.15789 (2020).
    """

    _lasting: ClassVar[str] = "bitldp.numeric.duchi.LDPFLDuchi"

    _: KW_ONLY
    center: Annotated[float, checks.real, Option(hidden=True)] = 0.0
    radius: Annotated[float, checks.positive, Option(hidden=True)] = 1.0

    interval: Interval = field(init=False, repr=False, compare=False)  # follows from the two

    @classmethod
    def _for_record(cls, **parameters: Any) -> Any:
        """Construct from a command line's options; center and radius follow from the interval."""
        low, high = parameters.pop("interval", (-1.0, 1.0))
        radius = (high - low) / 2.0
        return cls(center=low + radius, radius=radius, **parameters)

    def _build(self) -> None:
        ends = (self.center - self.radius, self.center + self.radius)
        self._set(interval=checks.interval("radius", ends))
        super()._build()

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return windowed(2, 1, epsilon, interval)

    def shuffle(self, reports: ArrayLike, *, rng: RandomSource = None) -> NDArray[Any]:
        """Shuffle each weight of the reports over the records: the paper's anonymiser.

        Parameters
        ----------
        reports : array_like of int, shape (n, features)
            Codes; (n,) too for one feature.
        rng : None, int, SeedSequence or Generator
            Source of the shuffle's randomness, as in `randomize`.

        Returns
        -------
        ndarray
            Same shape and dtype. A row no longer belongs to one record, and all estimates are unchanged.

        Raises
        ------
        ValueError, TypeError
            With ``spend="sample"``, for another shape, or for a code out of range.

        Notes
        -----
        The exact epsilon is local. The shuffle does not change it, and it holds without trust in whoever
        shuffles. The extra protection against those who see only the shuffled reports is not counted here.
        """
        if self.k is not None:
            raise ValueError(
                "reports: with spend='sample', records do not report the same weights to shuffle"
            )
        codes = self._check_codes(reports)
        table = codes.reshape(-1, self.features)
        order = permutations(keys(rng, 1)[0], *table.shape)
        return np.take_along_axis(table, order, axis=0).reshape(codes.shape)
