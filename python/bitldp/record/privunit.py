"""PrivUnit on the hypercube: whole records of numbers as one vector of signs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

from bitldp._core import Cube
from bitldp.base import checks
from bitldp.mechanism.base import Takes
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import Budget, Flag, Interval, at_least
from bitldp.privacy import Guarantee
from bitldp.release.cube import MOST, best_threshold, cap, cube_release

__all__ = ["HypercubePrivUnit"]


@dataclass(frozen=True, eq=False, repr=False)
class HypercubePrivUnit(Means):
    """PrivUnit on the hypercube: reports all signs of a record at once; good at large epsilon.

    Parameters
    ----------
    features : int
        Numbers of a record, r, 1 to 4,194,304.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    interval, clip
        As of `Duchi`.
    threshold : int, optional
        Threshold kappa, 1 to r: a report with at least this many agreements is in the likely set (the cap).
        None: the one with the least variance. The attribute then holds the chosen number.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Numbers are dithered to the ends of the interval, so that a record is a vector v of signs. Let A be the
    number of places in which a vector z agrees with v, and t = P(A >= kappa) for a uniform z. With
    probability p = e^eps t/(e^eps t + 1 - t) the report is uniform among the z with A >= kappa, else among
    the others. The letters are z/m on [-1, 1], with m = p E[2A/r - 1 | A >= kappa] + (1 - p) E[2A/r - 1 | A <
    kappa], a quotient of integers; each has the mean x and the variance 1/m^2 - x^2, the dither included.

    Neighbouring records differ in any way. Records that differ in one feature already reach epsilon, since
    one sign can move a report out of the cap. Bit, feature and record are therefore equal in `guarantee`. One
    record takes `features` bits.

    The law is exact: p is an integer over 2**64, and the number of agreements is drawn with big integers (the
    binomial law restricted to a set). The control flow depends on randomness alone.

    Source: Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its
    applications in private federated learning", arXiv:1812.00984 (2018), whose PrivUnit lives on the sphere;
    on the cube, with kappa in the middle, it is the mechanism of Duchi, Jordan and Wainwright.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.HypercubePrivUnit(768, epsilon=8.0)
    >>> mechanism.threshold, round(mechanism.worst_variance(), 1)
    (422, 102.3)
    >>> reports = mechanism.randomize(np.zeros((10, 768)), output="packed")
    >>> len(reports) * 8 == 10 * mechanism.report_bits
    True
    """

    features: Annotated[int, at_least(1, MOST)]
    _: KW_ONLY
    epsilon: Budget
    interval: Interval = (-1.0, 1.0)
    threshold: int | None = None
    clip: Flag = True

    _takes: ClassVar[Takes | None] = "reals"
    _command: ClassVar[str] = "privunit"
    _usual_size: ClassVar[int] = 100

    def _build(self) -> None:
        features, epsilon = self.features, self.epsilon
        if self.threshold is None:
            threshold = best_threshold(features, epsilon)
        else:
            threshold = checks.integer("threshold", self.threshold, 1, features)
        release = cube_release(cap(features, threshold, epsilon), self.interval)
        exact = release.epsilon
        self._set(
            threshold=threshold,
            _release=release,
            _ends=self.interval,
            _spread=release.spread,
            _guarantee=Guarantee.judge(epsilon, (exact, exact, exact)),
        )

    @property
    def channel(self) -> Cube:
        """The channel: its `high`, `near` and `sizes()` are the law; uninformative at epsilon 0."""
        return self._release.channel
