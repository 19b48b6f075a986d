"""Plots on axes of the caller: variance by ε, claimed beside exact ε, an estimate with its intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bitldp.base.errors import require
from bitldp.base.palette import STYLES
from bitldp.estimate.estimates import Estimate
from bitldp.report.claims import Claim, claims

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["new_axes", "plot_claims", "plot_estimate", "plot_variance"]


def new_axes(ax: Axes | None) -> Any:
    """Return the caller's axes, or new ones of the current figure.

    Raises
    ------
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    require("a plot", ["matplotlib"], "plot")
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def plot_variance(
    mechanisms: Mapping[str, Callable[..., Any]], epsilons: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Draw the mean variance of mechanisms against their exact epsilon of a record.

    Parameters
    ----------
    mechanisms : mapping of str to callable
        What builds each mechanism, called with ``epsilon=``: ``{"Duchi": bitldp.Duchi}``.
    epsilons : array_like of float, shape (n,)
        Budgets, above zero; a point is drawn at the exact epsilon that comes of each.
    ax : matplotlib Axes, optional
        Where to draw. None: new axes.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    axes = new_axes(ax)
    budgets = np.ravel(np.asarray(epsilons, float))
    for (name, make), (color, marker) in zip(mechanisms.items(), STYLES * len(mechanisms), strict=False):
        built = [make(epsilon=float(epsilon)) for epsilon in budgets]
        exact = [each.guarantee.record for each in built]
        axes.plot(exact, [each.mean_variance() for each in built], color=color, marker=marker, label=name)
    axes.set(xscale="log", yscale="log", xlabel="exact ε of a record", ylabel="variance, mean over inputs")
    low, high = axes.get_xlim()
    ticks = [
        tick for power in range(-4, 3) for tick in (10.0**power * k for k in (1, 2, 5)) if low <= tick <= high
    ]
    if len(ticks) > 1:  # the axis' own are powers of ten, of which a usual range of ε has one
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
    axes.legend()
    return axes


def plot_claims(rows: Sequence[Claim] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the claimed and the exact epsilon of a record of each setting, on one line each.

    Parameters
    ----------
    rows : sequence of Claim, optional
        None: those of `claims`.
    ax : matplotlib Axes, optional
        Where to draw. None: new axes. They are returned.

    Raises
    ------
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    axes = new_axes(ax)
    shown = list(claims() if rows is None else rows)
    positions = np.arange(len(shown))
    claimed = [each.guarantee.claimed for each in shown]
    exact = [each.guarantee.record for each in shown]
    axes.hlines(positions, claimed, exact, color="0.7")
    axes.plot(claimed, positions, "o", color=STYLES[0][0], label="claimed ε")
    axes.plot(exact, positions, "D", color=STYLES[1][0], label="exact ε of a record")
    axes.set(xscale="log", xlabel="ε", yticks=positions, yticklabels=[each.setting for each in shown])
    axes.invert_yaxis()
    axes.legend()
    return axes


def plot_estimate(estimate: Estimate, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw the values of an estimate with their confidence intervals.

    Parameters
    ----------
    estimate : Estimate
        Of shares or means, shape (n,).
    level : float
        Of each interval by itself, above 0 and below 1.
    ax : matplotlib Axes, optional
        Where to draw. None: new axes. They are returned.

    Raises
    ------
    ValueError
        If the estimate has more than one axis.
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    values = np.atleast_1d(estimate.value)
    if values.ndim != 1:
        raise ValueError(f"estimate: must have one axis, not {values.ndim}")
    axes = new_axes(ax)
    low, high = (np.atleast_1d(end) for end in estimate.confidence_interval(level))
    positions = np.arange(values.size)
    axes.errorbar(positions, values, [values - low, high - values], fmt="o", color=STYLES[0][0], capsize=3)
    names = estimate.labels if estimate.labels is not None else [str(position) for position in positions]
    axes.set(ylabel=f"estimate, {level:.0%} intervals")
    if values.size <= 40:  # more names than that lie on each other
        axes.set_xticks(positions, names, rotation=30 if max(map(len, names)) > 6 else 0)
    return axes
