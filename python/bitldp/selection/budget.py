"""Budgets of FedSel: how a round's splits between selection and value, and the selection of a word."""

from __future__ import annotations

import math

from bitldp.base import checks
from bitldp.privacy import Calibration, added
from bitldp.selection.mechanisms import EXP, PE, PS

__all__ = ["budget_of", "selection_of", "split_budget"]

_SHARE_OF_TOP = 0.1  # of all coordinates, the paper's default of k


def split_budget(
    epsilon: float, dimensions: int, *, batch: int, threshold: float = 0.2
) -> tuple[float, float]:
    """Split the budget of a round without a hyper-parameter: first to the value, then to the selection.

    Parameters
    ----------
    epsilon : float
        Budget of one round, above zero.
    dimensions : int
        Coordinates d, 2 or more.
    batch : int
        Clients m of a round, 1 or more.
    threshold : float
        The largest part of `epsilon` that the selection may have, theta, in [0, 1).

    Returns
    -------
    (float, float)
        eps_1 of the selection and eps_2 of the value. The value gets sqrt(d ln d/m) first; of the rest, the
        selection gets up to theta epsilon, and the value what is left. With few clients, eps_1 is 0: the
        coordinate is drawn uniformly.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    Source: FedSel, Section 5.3, which gives the order sqrt(d log d/m), taken with the factor 1 here, and
    found theta = 0.2 by experiment.
    """
    epsilon = checks.positive("epsilon", epsilon)
    dimensions = checks.integer("dimensions", dimensions, 2)
    batch = checks.integer("batch", batch, 1)
    threshold = checks.real("threshold", threshold)
    if not 0.0 <= threshold < 1.0:
        raise ValueError(f"threshold: must be in [0, 1), got {threshold}")
    first = math.sqrt(dimensions * math.log(dimensions) / batch)
    return _parts(epsilon, max(0.0, min(epsilon - first, threshold * epsilon)))


def _parts(epsilon: float, selection: float) -> tuple[float, float]:
    """Return a part and the rest of a budget, which together keep it exactly."""
    rest = epsilon - selection
    while added(selection, rest) > epsilon:
        rest = math.nextafter(rest, 0.0)
    return selection, rest


def budget_of(
    epsilon: float, dimensions: int, mu: float | None, batch: int | None, threshold: float
) -> tuple[float, float]:
    """Return the budgets of selection and value of one round."""
    if mu is None:
        if batch is None:
            raise ValueError("mu: give it, or give batch, the clients of a round, to derive it")
        return split_budget(epsilon, dimensions, batch=batch, threshold=threshold)
    mu = checks.real("mu", mu)
    if not 0.0 <= mu < 1.0:
        raise ValueError(f"mu: must be in [0, 1), got {mu}")
    return _parts(epsilon, mu * epsilon)


def selection_of(
    select: str, dimensions: int, k: int | None, epsilon: float, calibration: Calibration
) -> EXP | PE | PS:
    """Return the selection that a word names."""
    checks.choice("select", select, ("PS", "EXP", "PE"))
    checks.choice("calibration", calibration, ("exact", "paper"))
    if select != "PE" and calibration == "paper":
        raise ValueError("calibration: 'paper' is for select='PE'; the claims of the others hold")
    if select == "EXP":
        if k is not None:
            raise ValueError("k: is for 'PS' and 'PE'; 'EXP' has no top k")
        return EXP(dimensions, epsilon=epsilon)
    top = max(1, round(_SHARE_OF_TOP * dimensions)) if k is None else k
    if select == "PS":
        return PS(dimensions, top, epsilon=epsilon)
    return PE(dimensions, top, epsilon=epsilon, calibration=calibration)
