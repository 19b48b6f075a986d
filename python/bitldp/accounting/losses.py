"""Privacy-loss distributions of integer laws, as objects of the library dp_accounting."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.accounting.laws import Tables, parts
from bitldp.accounting.loss_table import Normal
from bitldp.base import checks
from bitldp.base.errors import require

__all__ = ["composed", "merged", "normal", "pld", "profile"]

_FEW = 1 << 10  # steps of the distribution of a single release, which may be composed many times
_POINTS = 1 << 17  # steps of the distribution of a composition, about
_MOST = 1 << 21
_FINER = 20.0  # how much finer than the smallest loss of a symbol the steps should be
_FARTHEST = 600.0  # a loss beyond is counted as infinite; its exponential would near the end of doubles
_CERTAIN = 1.0 - 1e-9
_UP = 1.0 + 2.0**-48
_BETWEEN = 64  # further points where a table has many pairs


def pld(release: Any, *, interval: float | None = None) -> Any:
    """Return the privacy-loss distribution of a release.

    Parameters
    ----------
    release : Mechanism, channel or Guarantee
        As in `bitldp.accounting.renyi`. For a mechanism whose law is not known symbol by symbol, the worst
        law that its guarantee allows is used.
    interval : float, optional
        Step between losses, above zero. None: chosen to fit. Distributions must have the same step to be
        composed.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        A pessimistic distribution: its divergences are at least those of any two records, up to the rounding
        of its floats.

    Raises
    ------
    MissingExtraError
        Without the extra ``design``.
    ValueError, TypeError
        For an interval out of range, or a release of another kind.

    Notes
    -----
    Neighbouring records differ in any way. If inputs are no easier to distinguish than normal laws
    (`BallGaussian`, `Skellam`), the distribution is that of those laws. Otherwise, no single pair of inputs
    need be the worst for every epsilon. For each symbol, the largest hockey-stick divergence of any pair is
    therefore taken at every epsilon of a grid. A pair of laws with these divergences exists and dominates all
    pairs, also under adaptive composition (Zhu, Dong and Wang, "Optimal accounting of differential privacy
    via characteristic function", AISTATS 2022, Proposition 8 and Theorem 10). Between the points of the grid
    the divergences are joined by chords (Doroshenko et al., "Connect the dots", PoPETs 2022), which lie
    above.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.accounting import pld
    >>> loss = pld(bitldp.WarnerRR(epsilon=1.0)).self_compose(100)
    >>> round(loss.get_epsilon_for_delta(1e-6), 1)
    83.5
    """
    symbols = merged([(part, part.times) for part in parts(release)])
    return composed(symbols, _step(symbols, _FEW) if interval is None else interval)


def merged(symbols: Sequence[tuple[Tables, int]]) -> list[tuple[Tables, int]]:
    """Return the symbols with all that are normal as one, which they compose to: the squares of mu add up.

    Source: Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022, Corollary 3.3.
    """
    rest, squares = [], []
    for part, count in symbols:
        if len(part.tables) == 1 and isinstance(table := part.tables[0], Normal):
            squares.append(count * table.mu * table.mu)
        else:
            rest.append((part, count))
    total = math.sqrt(math.fsum(squares)) * _UP
    return rest if total == 0.0 else [*rest, (Tables((Normal(total),), 1), 1)]


def normal(symbols: Sequence[tuple[Tables, int]]) -> float | None:
    """Return mu of merged symbols that are all normal; None of others."""
    if len(symbols) != 1 or not isinstance(table := symbols[0][0].tables[0], Normal):
        return None
    return table.mu


def composed(symbols: Sequence[tuple[Tables, int]], interval: float | None = None) -> Any:
    """Return the distribution of independent symbols, each so many times."""
    require("accounting", ["dp_accounting"], "design")
    library: Any = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    masses: Any = importlib.import_module("dp_accounting.pld.pld_pmf")
    step = _step(symbols) if interval is None else checks.positive("interval", interval)
    total = None
    for part, count in symbols:
        if not any(table.epsilon > 0.0 for table in part.tables):
            continue
        steps, deltas = _points(part, step)
        if deltas[-1] > _CERTAIN:  # the input is told; nothing is worse
            return library.PrivacyLossDistribution(masses.create_pmf({0: 0.0}, step, 1.0, True))
        mass = masses.create_pmf_pessimistic_connect_dots(step, steps, deltas)
        one = library.PrivacyLossDistribution(mass)
        several = one if count == 1 else one.self_compose(count)
        total = several if total is None else total.compose(several)
    return library.identity(step) if total is None else total


def profile(part: Tables, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest hockey-stick divergence ``sum_y max(P(y) - e^eps P'(y), 0)`` of any pair."""
    return np.minimum(np.max([table.profile(epsilons) for table in part.tables], axis=0), 1.0)


def _points(part: Tables, step: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return grid points, in steps, and the divergences there."""
    chosen = [0]
    for table in part.tables:
        losses = np.minimum(table.losses(), 2.0 * _FARTHEST)
        losses = np.concatenate([losses, -losses]) / step
        chosen += np.floor(losses - 1e-6).astype(int).tolist()
        chosen += np.ceil(losses + 1e-6).astype(int).tolist()
    if len(part.tables) > 1 or any(table.crosses for table in part.tables):
        chosen += np.linspace(min(chosen), max(chosen), _BETWEEN).round().astype(int).tolist()
    most = math.floor(_FARTHEST / step)
    steps = np.unique(np.clip(np.array(chosen, np.int64), -most, most))
    return steps, np.minimum.accumulate(profile(part, np.asarray(steps * step, dtype=np.float64)))


def _step(symbols: Sequence[tuple[Tables, int]], points: int = _POINTS) -> float:
    """Return a step that is fine for the losses of a symbol, and not too fine for their sum."""
    worst = [
        (max((float(table.losses().max(initial=0.0)) for table in part.tables), default=0.0), count)
        for part, count in symbols
    ]
    worst = [(loss, count) for loss, count in worst if loss > 0.0]
    if not worst:
        return 1e-4
    largest = math.fsum(loss * count for loss, count in worst)
    deviation = math.sqrt(math.fsum(loss * loss * count for loss, count in worst))
    drift = math.fsum(count * loss * math.tanh(loss / 2.0) for loss, count in worst)
    width = min(largest, 16.0 * deviation + drift)
    fine = min(min(loss for loss, _ in worst) / _FINER, width / points)
    return max(fine, width / _MOST)
