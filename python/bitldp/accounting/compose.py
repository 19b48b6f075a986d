"""Composition: what many releases about the same records cost together, by three accountants."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.accounting import losses
from bitldp.accounting.divergence import ORDERS, check_orders, renyi
from bitldp.accounting.laws import Tables, parts
from bitldp.accounting.loss_table import Curve, Normal
from bitldp.base import checks
from bitldp.base.errors import require
from bitldp.channels.normal import NormalBound, beside, delta_of
from bitldp.privacy import Guarantee, added, composed

__all__ = ["Account", "Method", "account", "concentration", "from_renyi"]

Method = Literal["basic", "renyi", "pld"]

_UP = 1.0 + 2.0**-40  # more than the rounding of the conversions
_CONCENTRATED = 1e9  # the largest rho that is looked at
_HALVINGS = 100  # of the search for a concentration: more mean that there is none
_MIDDLE = 24  # of the orders: that of 2
_COSTS = (3.0, 500.0, 1e6, 1e10)  # 1 + e^epsilon of sums
_ROUNDING = 1e-12  # delta that is set aside for the rounding of convolutions


@dataclass(frozen=True)
class Account:
    """Privacy cost of several releases together: epsilon and delta, in the local model unless `central`.

    Attributes
    ----------
    epsilon : float
        Epsilon of all releases, rounded up.
    delta : float
        Delta of that guarantee.
    method : {"basic", "renyi", "pld"}
        Accountant that computed it.
    order : float or None
        Rényi order of the bound; None for other accountants.
    releases : tuple of (str, int)
        Name and number of the releases.
    central : bool
        True for totals of secure sums: the guarantee holds against anyone who sees only the totals.
    """

    epsilon: float
    delta: float
    method: Method
    order: float | None
    releases: tuple[tuple[str, int], ...]
    central: bool = False

    def __str__(self) -> str:
        """Return one line: epsilon, delta and method."""
        total = sum(count for _, count in self.releases)
        where = "central" if self.central else "local"
        order = "" if self.order is None else f", order {self.order:.4g}"
        return (
            f"{total} releases: {where} epsilon {self.epsilon:.6g} at delta {self.delta:.3g} "
            f"({self.method}{order})"
        )


def account(
    releases: Iterable[tuple[Any, int]],
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    method: Method = "pld",
    orders: ArrayLike = ORDERS,
) -> Account:
    """Compose releases about the same records: epsilon at a given delta, or delta at a given epsilon.

    Parameters
    ----------
    releases : iterable of (release, int)
        Mechanisms, channels or guarantees, each with its number of releases (rounds, parts or clients that
        hold the same record), 1 or more. You may choose each of them after seeing the earlier reports. Or
        only secure sums (`bitldp.sums.SecureSum`), each with its number of rounds: their epsilon is central.
    delta : float, optional
        Delta, in [0, 1) for "basic", else in (0, 1).
    epsilon : float, optional
        Epsilon, zero or more. Give it in place of `delta` to compute the delta at this epsilon.
    method : {"basic", "renyi", "pld"}
        The accountant.
    orders : array_like of float
        Rényi orders that "renyi" tries, above 1.

    Returns
    -------
    Account
        Never more than basic composition. The other methods return that of basic composition if they find
        nothing better.

    Raises
    ------
    ValueError
        For sums together with local releases, whose epsilons have no common meaning, or "renyi" for sums; for
        a delta out of its range, neither or both of delta and epsilon, no releases, a count below 1, or a
        delta that the sum of the releases' own deltas exceeds. "pld" needs a delta of at least 2e-12, because
        of the rounding of its convolutions, except for Gaussian noise alone.
    TypeError
        For an argument of another kind.
    MissingExtraError
        Without the extra ``design``, for "renyi" and "pld" (except for normal laws alone).

    Notes
    -----
    Neighbouring inputs are any two series of records that one person may have (local differential privacy).
    The laws are those of the integers that the samplers use; claimed epsilons are ignored. Releases that are
    no easier to distinguish than normal laws (`BallGaussian`, `Skellam`: their `gdp_mu`) compose exactly in
    "pld" (Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022), and so do secure sums of vectors.
    Other sums are composed by the curve of their delta, with the least number of survivors that they allow,
    and neighbouring data sets differ in the records of one person, replaced. "renyi" converts by Canonne,
    Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Proposition 12, as
    ``dp_accounting.rdp`` has it.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.accounting import account
    >>> rounds = [(bitldp.Duchi(epsilon=0.1), 100)]
    >>> for method in ("basic", "renyi", "pld"):
    ...     print(account(rounds, delta=1e-6, method=method))
    100 releases: local epsilon 10 at delta 1e-06 (basic)
    100 releases: local epsilon 5.08034 at delta 1e-06 (renyi, order 6.657)
    100 releases: local epsilon 4.77457 at delta 1e-06 (pld)
    """
    checks.choice("method", method, ("basic", "renyi", "pld"))
    listed = _listed(releases)
    if (delta is None) == (epsilon is None):
        raise ValueError("delta: exactly one of delta and epsilon must be given")
    names = tuple((type(release).__name__, count) for release, count in listed)
    central = _is_central(listed)
    if central and method == "renyi":
        raise ValueError("method: secure sums are accounted by 'pld' and 'basic'")
    alphas = np.atleast_1d(check_orders(orders))
    whole, own = _basic(listed)
    if delta is not None:
        given = checks.real("delta", delta)
        if not (0.0 <= given < 1.0 and (given > 0.0 or method == "basic")):
            least = "at least" if method == "basic" else "above"
            raise ValueError(f"delta: must be {least} 0 and below 1, got {given}")
        found = _epsilon_at(listed, given, method, alphas, (whole, own), names)
    else:
        target = checks.budget("epsilon", epsilon)
        found = _delta_at(listed, target, method, alphas, (whole, own), names)
    return replace(found, central=central)


def _accounted(release: Any) -> Callable[[float], tuple[Curve | Normal, float]] | None:
    """Return what says the law of a secure sum; None of another release."""
    return getattr(getattr(release, "guarantee", None), "accounted", None)


def _is_central(listed: list[tuple[Any, int]]) -> bool:
    """Return whether all releases are secure sums; refuse some."""
    sums = sum(_accounted(release) is not None for release, _ in listed)
    if 0 < sums < len(listed):
        raise ValueError(
            "releases: the epsilon of a secure sum is central, that of the others local; "
            "account for them apart"
        )
    return sums > 0


def _listed(releases: Any) -> list[tuple[Any, int]]:
    if isinstance(releases, (str, bytes, Guarantee)) or not isinstance(releases, Iterable):
        raise TypeError(f"releases: must be pairs (release, count), not {type(releases).__name__}")
    listed: list[tuple[Any, int]] = []
    for each in releases:
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            raise TypeError("releases: must be pairs (release, count)")
        listed.append((each[0], checks.integer("count", each[1], 1)))
        if _accounted(each[0]) is None:
            parts(each[0])  # refuses what is no release
    if not listed:
        raise ValueError("releases: at least one is needed")
    return listed


def _basic(listed: list[tuple[Any, int]]) -> tuple[float, float]:
    """Return the sums of the exact epsilons and of the deltas, rounded up."""
    epsilons, deltas = [], []
    for release, count in listed:
        guarantee = release if isinstance(release, Guarantee) else getattr(release, "guarantee", None)
        if guarantee is None:  # a channel
            result = parts(release)
            each = added(*(composed(max(t.epsilon for t in part.tables), part.times) for part in result))
            guarantee = Guarantee.judge(each, (each, each, each))
        elif _accounted(release) is not None:
            one = release.guarantee.central()
            guarantee = Guarantee(one.epsilon, one.epsilon, one.epsilon, one.epsilon, one.delta)
        epsilons.append(composed(guarantee.record, count))
        deltas.append(Fraction(guarantee.delta) * count)
    exact = sum(deltas, Fraction(0))
    nearest = float(exact)
    return added(*epsilons), nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _epsilon_at(
    listed: list[tuple[Any, int]],
    delta: float,
    method: Method,
    alphas: NDArray[np.float64],
    basic: tuple[float, float],
    names: tuple[tuple[str, int], ...],
) -> Account:
    whole = basic[0] if basic[1] <= delta else math.inf
    order = None
    if method == "basic":
        if math.isinf(whole) and basic[1] > delta:
            raise ValueError(f"delta: the deltas of the releases add up to {basic[1]:.6g}, above {delta:.6g}")
        result = whole
    elif method == "renyi":
        converted, best = _rdp().compute_epsilon(alphas, _curve(listed, alphas), delta)
        result = float(converted) * _UP  # as from_renyi
        order = float(best) if result < whole else None
    else:
        result = min(_composed(listed, delta, cost) for cost in _costs(listed))
    return Account(min(result, whole), delta, method, order, names)


def _delta_at(
    listed: list[tuple[Any, int]],
    epsilon: float,
    method: Method,
    alphas: NDArray[np.float64],
    basic: tuple[float, float],
    names: tuple[tuple[str, int], ...],
) -> Account:
    whole = min(basic[1], 1.0) if basic[0] <= epsilon else 1.0
    order = None
    if method == "basic":
        result = whole
    elif method == "renyi":
        converted, best = _rdp().compute_delta(alphas, _curve(listed, alphas), epsilon)
        result = float(converted) * _UP
        order = float(best) if result < whole else None
    else:
        result = min(_left(listed, epsilon, cost) for cost in _costs(listed))
    return Account(epsilon, min(result, whole), method, order, names)


def from_renyi(curve: ArrayLike, orders: ArrayLike, delta: float) -> float:
    """Return the epsilon at a delta that a Rényi curve converts to, rounded up."""
    return float(_rdp().compute_epsilon(np.asarray(orders), np.asarray(curve), delta)[0]) * _UP


def searched(curve: Callable[[NDArray[np.float64]], NDArray[np.float64]], delta: float) -> float:
    """Return the epsilon at a delta that a Rényi curve converts to, rounded up, without looking at all of it.

    `ORDERS` are walked downhill, by fours and then one by one, from where a curve through the first order
    that is looked at, rising in proportion, would convert best. Any order gives a bound.
    """
    orders = np.array(ORDERS)

    @cache
    def bound(index: int) -> float:
        if not 0 <= index < len(orders):
            return math.inf
        order = orders[index : index + 1]
        return from_renyi(curve(order), order, delta)

    start = _MIDDLE
    slope = float(curve(orders[start : start + 1])[0]) / float(orders[start])
    if slope > 0.0 and math.isfinite(slope):
        start = int(np.argmin(slope * orders - math.log(delta) / (orders - 1.0))) // 4 * 4
    if not math.isfinite(bound(start)):  # no way leads down
        start = min(range(0, len(orders), 4), key=bound)
    for step in (4, 1):
        for way in (-step, step):
            while bound(start + way) < bound(start):
                start += way
    return bound(start)


def concentration(epsilon: float, delta: float) -> float:
    """Return the largest rho whose curve, rho alpha, converts to no more than epsilon at delta.

    Rounded down. Source of the notion: Bun and Steinke, "Concentrated differential privacy", TCC 2016.
    """
    orders = np.array(ORDERS)
    low, high = 0.0, min(epsilon, _CONCENTRATED)
    for _ in range(_HALVINGS):
        if high - low <= 1e-9 * high:
            break
        middle = (low + high) / 2.0
        fits = from_renyi(middle * orders, orders, delta) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    if low == 0.0:
        raise ValueError(f"epsilon: {epsilon:g} is too small for any noise at delta {delta:g}")
    return low


def _rdp() -> Any:
    require("accounting", ["dp_accounting"], "design")
    return importlib.import_module("dp_accounting.rdp.rdp_privacy_accountant")


def _curve(listed: list[tuple[Any, int]], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    curve = np.zeros(len(alphas))
    for release, count in listed:
        curve += count * renyi(release, alphas)
    return np.asarray(curve * _UP)


def _costs(listed: list[tuple[Any, int]]) -> tuple[float, ...]:
    """Return what a total variation may cost of delta: 1 + e^epsilon times the rounds, which is not known."""
    if not any(_accounted(release) is not None for release, _ in listed):
        return (1.0,)
    rounds = sum(count for _, count in listed)
    if not any(_merged([each], 1.0)[1] > 0.0 for each in listed):
        return (float(rounds),)
    return tuple(rounds * cost for cost in _COSTS)


def _composed(listed: list[tuple[Any, int]], delta: float, cost: float) -> float:
    """Return the epsilon of all releases at a delta."""
    symbols, lost = _merged(listed, cost)
    mu = losses.normal(symbols)
    if mu is not None:
        return NormalBound(mu, lost).epsilon(delta)
    if not delta > 2.0 * _ROUNDING:
        raise ValueError(f"delta: must be above {2.0 * _ROUNDING} for 'pld', got {delta}")
    law = losses.composed(symbols)

    def reached(left: float) -> float:
        return float(law.get_epsilon_for_delta(left - _ROUNDING)) * _UP if left > _ROUNDING else math.inf

    return beside(reached, delta, lost)


def _left(listed: list[tuple[Any, int]], epsilon: float, cost: float) -> float:
    """Return the delta of all releases at an epsilon."""
    symbols, lost = _merged(listed, cost)
    mu = losses.normal(symbols)
    if mu is not None:
        return NormalBound(mu, lost).delta(epsilon) if lost > 0.0 else delta_of(mu, epsilon)
    aside = (1.0 + math.exp(min(epsilon, 700.0))) * lost
    return float(losses.composed(symbols).get_delta_for_epsilon(epsilon)) + _ROUNDING + aside


def _merged(listed: list[tuple[Any, int]], cost: float) -> tuple[list[tuple[Tables, int]], float]:
    """Return the symbols of all releases, and the total variation that sums lose beside theirs."""
    symbols, lost = [], []
    for release, count in listed:
        accounted = _accounted(release)
        if accounted is None:
            symbols += [(part, part.times * count) for part in parts(release)]
        else:
            law, aside = accounted(cost)
            symbols.append((Tables((law,), 1), count))
            lost.append(count * aside)
    return losses.merged(symbols), math.fsum(lost) * _UP
