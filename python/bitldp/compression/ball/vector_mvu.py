"""MVU for vectors: the design of least variance under metric privacy, for records of an l1 or l2 ball."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.accounting.compose import concentration
from bitldp.base import checks
from bitldp.compression.ball.base import Ball, Dither, Norm, enlarged, limited, norms
from bitldp.compression.mvu import tabled
from bitldp.design.mvu import INPUT_BITS, load_or_solve
from bitldp.design.result import DesignError
from bitldp.mechanism.designed import Designed, DesignTable
from bitldp.mechanism.parameters import Flag, optional, whole
from bitldp.privacy import ONE
from bitldp.release.base import Interval

__all__ = ["VectorMVU"]

_TRIES = 24  # of fitting the design to the budget; about five do
_SOLVES = 8  # the same, where a solver is called for each design
_SPENT = 1.0 - 1e-3  # of the budget is enough; less is, where a solver is called for each design
_SOLVED = 0.99
_NEAR = 1.0 + 1e-4  # budgets between which there is nothing to gain
_POWER = 0.9  # the epsilon of a record grows about as the design's
_FARTHEST = 8.0  # times the budget that was tried last
_MOST = 27.0  # beyond it, randomized response of 2**-64 has nothing to gain


class _Try(NamedTuple):
    """A design's budget, the share of epsilon that its records spend, and whether that is allowed."""

    budget: float
    spent: float
    holds: bool


def _between(tries: list[_Try]) -> tuple[_Try | None, _Try | None]:
    """Return the largest budget that is allowed, and the least that is not."""
    kept = max((each for each in tries if each.holds), default=None)
    return kept, min((each for each in tries if not each.holds), default=None)


def _next_budget(tries: list[_Try], aim: float) -> float:
    """Return the budget to try next, so that a share `aim` is spent, which grows with it.

    Up to the first tries on both sides, further each time; then between them, where a power law leads to
    and in the middle by turns: what is spent may rise steeply somewhere, or jump.
    """
    kept, broken = _between(tries)
    if kept is None or broken is None:
        last = tries[-1]
        missing = min(max(aim / last.spent if last.spent else math.inf, 1.0 / _FARTHEST), _FARTHEST)
        return last.budget * math.pow(missing, min(_POWER * 2.0 ** max(0, len(tries) - 2), 4.0))
    share = 0.5
    if len(tries) % 2 == 0 and 0.0 < kept.spent < broken.spent < math.inf:
        share = math.log(aim / kept.spent) / math.log(broken.spent / kept.spent)
    return kept.budget * math.pow(broken.budget / kept.budget, min(max(share, 0.02), 0.98))


@dataclass(frozen=True, eq=False, repr=False)
class VectorMVU(Designed, Ball):
    """MVU for vectors of a ball, with epsilon and delta from Rényi accounting (needs SciPy).

    Every coordinate of a record becomes `output_bits` bits.

    Parameters
    ----------
    features : int
        Coordinates of a record, d.
    epsilon : float
        Privacy of a record, above zero.
    norm : {"l1", "l2"}
        Records lie in the ball of this norm.
    delta : float
        Delta of a record, in [0, 1). With 0 the guarantee is pure. An l2 ball in many dimensions needs a
        delta of about 1/n; privacy is then accounted in Rényi divergences.
    radius : float
        Radius of the ball, above zero, in units of `x`.
    clip : bool
        Whether records outside the ball are scaled to it, or refused.
    input_bits, output_bits : int
        A coordinate is dithered to one of 2**input_bits points of its interval (by default [-radius,
        radius]), and reported as one of 2**output_bits codes. input_bits is 1 to 9, output_bits 1 to 6. Above
        6 input bits, and for more than one output bit, designs take minutes.
    dither : {"unbiased", "conditional"}
        "unbiased": each coordinate by itself. "conditional": the paper's norm-preserving dither, which is
        drawn again until the record lies in a slightly larger ball. It is biased (see `bias_bound`), and in
        high dimensions the ball is much larger unless `input_bits` is large.
    limit : float, optional
        Coordinates are also clipped to [-limit, limit]; above zero and at most `radius`. Records of many
        dimensions rarely have larger coordinates, and a shorter interval has less variance.
    positive : bool
        Whether all coordinates are 0 or more. A negative one is then taken as 0 (or refused). Two records are
        closer in the l2 norm, sqrt(2) radii, and the interval is half as long. Needs unbiased dither.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    bitldp.design.mvu.DesignError
        If no design is found.
    MissingExtraError
        Without the extra ``design``, where the design is not shipped or cached, or delta is not 0.

    Notes
    -----
    Neighbouring records are any two of the ball, whose diameter is twice its radius. The channel of a
    coordinate has l1-metric privacy, d(y, y') = abs(y - y'), as in the paper's experiments for both norms.
    `guarantee.record` is an upper bound computed from the integers. For the l1 ball it bounds the epsilon,
    and equals it with one output bit, since the worst pair of records is computed (within 7 % in an l2 ball
    of two or three dimensions). With a delta, it is the epsilon that the Rényi bound converts to (`renyi`).
    `guarantee.feature` is the exact epsilon of records that differ in one coordinate, at delta 0; with
    conditional dither, where a coordinate decides what is accepted of the others, it is an upper bound for
    any two records.

    Unbiased dither needs a design for a slightly smaller metric epsilon, since between the points of the grid
    the law changes faster than from one to the next: by e^s - 1 a step in place of s.

    Source: Chaudhuri, Guo and Rabbat, "Privacy-aware compression for federated data analysis", UAI 2022,
    sections 4.2 and 4.3, Lemmas 6 and 7. There, d(y, y') = abs(y - y')^2 for the l2 ball is a further
    choice, which the paper finds "significantly less competitive"; it is not supported.

    With unbiased dither the design is fitted to the budget: its own epsilon is raised until the bound of a
    record, in which two close inputs cost the square of their distance, leaves less than 1 % of it. With one
    output bit the design is randomized response of the dithered number, (1 + s x)/2, the Poisson binomial
    mechanism of one trial (Chen, Ozgur and Kairouz, ICML 2022). Its variance 1/s^2 - x^2 is the least that
    its Fisher information allows at every x. So where s is below 1, which in an l2 ball with delta 1e-4 is
    at epsilons below 9, one bit has less variance than more bits of this, and than Gaussian noise that is
    accounted by the same conversion; `BallGaussian`, in 13 bits, is accounted without one, and has less.
    `InterpolatedMVU` spends more bits better.

    The number of attempts of the conditional dither depends on the record, so it is not constant-time.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> from bitldp.compression import VectorMVU
    >>> mechanism = VectorMVU(16, epsilon=2.0, norm="l1", input_bits=2, output_bits=1)
    >>> x = np.full((20_000, 16), 1.0 / 16.0)
    >>> reports = mechanism.randomize(x, rng=1)
    >>> bool(np.abs(mechanism.estimate_mean(reports).value - x[0]).max() < 0.1)
    True
    >>> mechanism.report_bits
    16
    """

    _: KW_ONLY
    norm: Norm = "l2"
    input_bits: Annotated[int, whole(1, INPUT_BITS)] = 4
    output_bits: Annotated[int, whole(1, 6)] = 3
    dither: Dither = "unbiased"
    limit: Annotated[float | None, optional(checks.positive)] = None
    positive: Flag = False

    @property
    def _fingerprint_version(self) -> int:
        """2 of one bit: before, another law kept the bound of the ball's diameter."""
        return 2 if self._one_bit else 1

    @property
    def _one_bit(self) -> bool:
        """True for one bit without bias, which is randomized response."""
        return self.output_bits == 1 and self.dither == "unbiased"

    def _build(self) -> None:
        if self.limit is not None and self.limit > self.radius:
            raise ValueError(f"limit: must be at most the radius, {self.radius}, got {self.limit}")
        if self.positive and self.dither != "unbiased":
            raise ValueError("positive: is offered with dither='unbiased'")
        power = 1 if self.norm == "l1" else 2
        if self._held:  # the last table of a search that was made elsewhere
            self._adopt(self._held[0], power)
        else:
            self._fit(power)

    def _interval(self) -> Interval:
        high = self.radius if self.limit is None else self.limit
        return 0.0 if self.positive else -high, high

    def _distance(self, power: int) -> float:
        # |x - x'|^p is at most the larger of x^p and x'^p where neither is negative
        distance = math.pow(2.0, 1.0 / power) * self.radius if self.positive else 2.0 * self.radius
        low, high = self._interval()
        return min(distance, (high - low) * math.pow(self.features, 1.0 / power))

    def _inside(self, x: ArrayLike) -> NDArray[np.float64]:
        low, high = self._ends
        if self.positive:  # before the norm is taken, which negative numbers are no part of
            x = limited(x, self.features, low, math.inf, self.clip)
        return limited(super()._inside(x), self.features, low, high, self.clip)

    def outside(self, x: ArrayLike) -> int:
        """Return how many records are moved: scaled to the ball, or clipped; see `Mechanism.outside`."""
        records, lengths = norms(x, self.features, self._power)
        low, high = self._ends
        moved = ((records < low) | (records > high)).any(axis=-1, keepdims=True)
        return int(np.count_nonzero((lengths > self.radius) | moved))

    def _fit(self, power: int) -> None:
        """Build the mechanism from the largest design that was found to keep the budget."""
        single = self._one_bit
        trial = self._response_epsilon(power) if single else self._metric_epsilon(power)
        enough = _SPENT if single else _SOLVED
        tries: list[_Try] = []
        for _ in range(_TRIES if single else _SOLVES):
            self._with(trial, power)
            tries.append(_Try(trial, self.guarantee.record / self.epsilon, self.guarantee.holds))
            if tries[-1].holds and (tries[-1].spent >= enough or (single and trial >= _MOST)):
                return
            kept, broken = _between(tries)
            if kept and broken and broken.budget <= kept.budget * _NEAR:
                break
            # a little below the budget that would spend all, so that the tries end on the safe side
            trial = _next_budget(tries, (1.0 + enough) / 2.0)
            trial = min(trial, _MOST) if single else trial
        kept, _ = _between(tries)
        if kept is None:
            raise DesignError(f"no design was found that keeps epsilon {self.epsilon:.6g}")
        if kept != tries[-1]:
            self._with(kept.budget, power)

    def _with(self, budget: float, power: int) -> None:
        """Build the mechanism from the design of an epsilon from one end of the interval to the other."""
        single = self._one_bit
        # one bit without bias is randomized response under any metric
        design = load_or_solve(self.input_bits, self.output_bits, budget, metric=None if single else 1.0)
        self._adopt(tabled(design), power)

    def _adopt(self, table: DesignTable, power: int) -> None:
        """Build the mechanism from a table; it is the one that a pickle holds."""
        channel, own = table
        if own is None or (channel.inputs, channel.outputs) != (1 << self.input_bits, 1 << self.output_bits):
            raise ValueError("input_bits: the stored table belongs to other parameters")
        self._set(_made=[table])
        low, high = self._interval()
        letters = low + (high - low) * own
        rows = np.array([[weight / ONE for weight in row] for row in channel.weights()])
        self._finish(
            channel,
            rows,
            power=power,
            conditional=self.dither == "conditional",
            letters=letters,
            claimed=self.epsilon,
        )

    def _response_epsilon(self, power: int) -> float:
        """Return where to start with randomized response: its epsilon, 2 artanh(s).

        A number x of [-1, 1] is reported as 1 with the chance (1 + s x)/2. The Rényi divergence of a record
        is about 2 alpha s^2; its pure epsilon, 2 s times the l1 norm, and that of one number.
        """
        if self.delta > 0.0:
            slope = math.sqrt(concentration(self.epsilon, self.delta) / 2.0)
        elif power == 2:
            slope = self.epsilon / (2.0 * math.sqrt(self.features))
        else:
            slope = math.tanh(self.epsilon / 2.0)
        low, high = self._interval()
        slope *= (high - low) / self._distance(power)
        return min(2.0 * math.atanh(slope), _MOST) if slope < 1.0 else _MOST

    def _metric_epsilon(self, power: int) -> float:
        """Return the design's epsilon from one end of the interval to the other.

        Such that `pure_epsilon`, or the conversion of `renyi`, is at most what was asked for: with s the
        epsilon of a step, a record costs c D with c = e^s - 1 (s, of conditional dither), or has the Rényi
        divergence alpha (c D)^2/2, in steps.
        """
        steps = (1 << self.input_bits) - 1
        conditional = self.dither == "conditional"
        low, high = self._interval()
        distance = self._distance(power) * steps / (high - low)
        diameter = 2.0 * enlarged(distance / 2.0, self.features, power) if conditional else distance
        if self.delta > 0.0:
            length = math.sqrt(2.0 * concentration(self.epsilon, self.delta))
        else:
            length = self.epsilon / (1.0 if power == 1 else math.sqrt(self.features))
        rate = length / diameter * (1.0 - 1e-6)
        pure = self.epsilon / self.features  # every coordinate at its worst costs no more than this
        step = rate if conditional else math.log1p(rate)
        return max(steps * step, pure * (1.0 - 1e-6) if self.delta == 0.0 else 0.0)
