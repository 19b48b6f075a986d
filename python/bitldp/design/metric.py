"""Tables for privacy under a metric: the log-ratio of two inputs is at most epsilon times their distance.

Two ways to a table. `least_loss` solves the linear program over all entries (Bordenabe, Chatzikokolakis and
Palamidessi, "Optimal geo-indistinguishable mechanisms for location privacy", CCS 2014). A pair needs rows
of its own only where it is an edge of a spanner: a way over edges is at most `stretch` times as long as the
distance, and epsilon/stretch on each edge gives epsilon on every pair. `kernel` needs no program: report y
has the weight c_y exp(-epsilon d(x, y)), with c so that all rows have the same sum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.base.errors import require
from bitldp.design.result import DesignError

__all__ = ["kernel", "least_loss", "settled", "slope", "spanner"]

Floats = NDArray[np.float64]

_MARGIN = 1e-6  # relative: what the program leaves of the budget for the solver's tolerance
_RESERVE = 1e-9  # relative: what the kernel leaves of it for rounding
_NOTHING = 1e-9  # a report that no input gives more often than this is left out
_LOG_ERROR = 2.0**-44  # of a difference of two logarithms of probabilities: some ulp of ln 2**-64
_NEAR = 16  # nearest candidates that the search for a scale looks at
_FIRST, _MOST = 2.0**-30, 2.0**-10  # shares of the uniform row that are tried


def slope(law: Floats, distances: Floats) -> float:
    """Return the largest log-ratio of any two rows by their distance, rounded up; over all pairs.

    Parameters
    ----------
    law : ndarray of float64, shape (N, M)
        Probabilities of a channel of integers, each right to an ulp.
    distances : ndarray of float64, shape (N, N)
        Above zero off the diagonal.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        worst = 0.0
        for one, row in enumerate(logs):
            gaps = np.fmax.reduce(row - logs, axis=1)  # a report that neither row gives has no ratio
            gaps = np.where(gaps > 0.0, gaps + _LOG_ERROR, 0.0) / distances[one]
            gaps[one] = 0.0
            worst = max(worst, float(gaps.max()))
    return math.nextafter(worst, math.inf) if worst else 0.0


def settled(law: Floats, distances: Floats, epsilon: float) -> Matrix:
    """Return a channel of integers near a law, whose exact `slope` is at most epsilon.

    Raises
    ------
    DesignError
        If the law would have to be changed by more than 2**-10.

    Notes
    -----
    Mixing the same row into all rows brings every ratio nearer to 1, and keeps probabilities away from
    2**-64.
    """
    live = law.max(axis=0) > _NOTHING
    held = np.where(live, np.maximum(law, 0.0), 0.0)
    held /= held.sum(axis=1, keepdims=True)
    if not np.isfinite(held).all() or np.abs(held - law).max() > 1e-4:
        raise DesignError("the table under the metric is not a law")
    uniform = live / live.sum()
    widest = epsilon * float(distances.max())
    share = _FIRST
    while share <= _MOST:
        channel = Matrix((1.0 - share) * held + share * uniform)
        if channel.epsilon <= widest and slope(channel.probabilities(), distances) <= epsilon:
            return channel
        share *= 4.0
    raise DesignError(f"no integers near the table keep {epsilon:.6g} times the distance")


def spanner(distances: Floats, dilation: float) -> tuple[list[tuple[int, int]], float]:
    """Return the edges of the greedy spanner, and the largest detour that they leave, at most `dilation`."""
    ways = np.where(np.eye(len(distances), dtype=np.bool_), 0.0, np.inf)
    first, second = np.triu_indices(len(distances), 1)
    edges = []
    for each in np.argsort(distances[first, second], kind="stable").tolist():
        a, b = int(first[each]), int(second[each])
        length = float(distances[a, b])
        if ways[a, b] > dilation * length * (1.0 + 1e-12):
            edges.append((a, b))
            to_a, to_b = ways[:, a, None] + length, ways[:, b, None] + length
            np.minimum(ways, np.minimum(to_a + ways[b], to_b + ways[a]), out=ways)
    stretch = float((ways[first, second] / distances[first, second]).max())
    return edges, max(1.0, stretch)


def least_loss(distances: Floats, epsilon: float, prior: Floats | None, dilation: float) -> Matrix:
    """Solve for the channel of least expected distance, on the edges of a spanner.

    Parameters
    ----------
    distances : ndarray of float64, shape (N, N)
        A metric: no way over others is shorter.
    epsilon : float
        Budget for a distance of 1, above zero.
    prior : ndarray of float64, shape (N,), optional
        How often each input occurs. None: all alike.
    dilation : float
        1 or more: the larger, the fewer edges, and the less of epsilon each may use.

    Raises
    ------
    MissingExtraError
        Without SciPy.
    DesignError
        If the solver fails. No iterate is returned in its place.
    """
    require("the program under a metric", ("scipy",), "design")
    from scipy import sparse
    from scipy.optimize import linprog

    count = len(distances)
    edges, stretch = spanner(distances, dilation)
    a, b = np.array([*edges, *((b, a) for a, b in edges)]).T
    rows = np.arange(len(a))
    budget = epsilon * (1.0 - _MARGIN)
    rates = np.exp(-budget / stretch * distances[a, b])
    bounds = sparse.csr_matrix(
        (np.concatenate([rates, -np.ones(len(a))]), (np.tile(rows, 2), np.concatenate([a, b]))),
        shape=(len(a), count),
    )
    weights = np.full(count, 1.0 / count) if prior is None else prior / prior.sum()
    result = linprog(
        (weights[:, None] * distances / distances.max()).ravel(),
        A_ub=sparse.kron(bounds, sparse.identity(count), format="csr"),
        b_ub=np.zeros(len(a) * count),
        A_eq=sparse.kron(sparse.identity(count), np.ones((1, count)), format="csr"),
        b_eq=np.ones(count),
        # Measured: the simplex method is the faster one on a line, interior points on a plane.
        method="highs-ds" if len(edges) < 2 * count else "highs-ipm",
    )
    if result.status != 0:
        raise DesignError(f"the linear program under the metric failed: {result.message}")
    law = np.maximum(result.x.reshape(count, count), 0.0)
    # No row may exceed this least table above the solution, whatever the solver's tolerance left.
    shares = np.exp(-budget * distances)
    return settled(np.stack([(law * row[:, None]).max(axis=0) for row in shares]), distances, epsilon)


def kernel(distances: Floats, epsilon: float) -> Matrix:
    """Return the channel of weights c_y exp(-s d(x, y)), s being epsilon or just what the table allows.

    Parameters
    ----------
    distances, epsilon
        Of `least_loss`.

    Notes
    -----
    Where the solution c of K c = 1, K = exp(-epsilon d), is above zero, every row has the sum 1 and the
    triangle inequality gives epsilon; on equidistant points of a line this is the truncated geometric
    mechanism. Elsewhere c is cut off at a little above zero, rows are divided by their sums, and s, from
    epsilon/2 to epsilon, is searched for on the table.
    """
    count, budget = len(distances), epsilon * (1.0 - _RESERVE)
    near = np.argsort(distances, axis=1, kind="stable")[:, 1 : _NEAR + 1]

    def law(scale: float) -> tuple[Floats, bool]:
        table = np.exp(-scale * distances)
        try:
            wanted = np.linalg.solve(table, np.ones(count))
        except np.linalg.LinAlgError:
            wanted = np.ones(count)
        least = 1e-3 / count
        table *= np.maximum(wanted, least)
        return table / table.sum(axis=1, keepdims=True), bool(wanted.min() >= least)

    def excess(scale: float) -> float:
        """Return by how much neighbours exceed the budget, relative to it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(law(scale)[0])
            worst = max(
                float(
                    np.nanmax((logs[near[:, each]] - logs) / distances[np.arange(count), near[:, each], None])
                )
                for each in range(near.shape[1])
            )
        return worst / budget - 1.0

    table, even = law(budget)
    if even:
        return settled(table, distances, epsilon)
    low, high = budget / 2.0, budget
    for _ in range(14):
        middle = (low + high) / 2.0
        low, high = (middle, high) if excess(middle) <= 0.0 else (low, middle)
    for _ in range(8):  # pairs further apart than the neighbours may need a little less
        try:
            return settled(law(low)[0], distances, epsilon)
        except DesignError:
            low = max(budget / 2.0, 0.98 * low)
    return settled(_halved(distances, budget), distances, epsilon)


def _halved(distances: Floats, epsilon: float) -> Floats:
    """Return the law of weights exp(-epsilon d/2), whose normalisers change by no more than the weights."""
    table = np.exp(-epsilon / 2.0 * distances)
    return np.asarray(table / table.sum(axis=1, keepdims=True))
