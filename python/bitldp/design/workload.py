"""Solver for the mechanism of least total variance for linear questions about one of k inputs.

Every epsilon-LDP channel on k inputs splits into columns (Kairouz, Oh and Viswanath, JMLR 17, 2016): report
S, for a set S of inputs, has the rate c_S (1 + g 1[x in S]) for an input x, g = e^epsilon - 1, and the rates
of an input sum to 1. With inputs uniform, report S has the chance p_S = c_S (1 + g w/k) for w inputs in S,
and is evidence of the vector r_S = (1 + g 1_S)/(1 + g w/k), of mean 1. Then

    sum_S p_S = 1,   sum_S p_S r_S = 1 (the vector of ones),   M = sum_S p_S r_S r_S^T,

and unbiased letters of the questions W (a row each) have a total second moment of at least tr(W M^-1 W^T),
which the letters W M^-1 r_S reach. M keeps the ones (M 1 = k 1), so that only what is orthogonal to them is
designed: with x_S the part of r_S there, minimise tr(A X^-1) over X = sum_S p_S x_S x_S^T with
sum_S p_S x_S = 0. That is convex in p: a design of experiments, solved here by an interior-point method. The
matrix of second derivatives is a product, entry by entry, of two of rank k - 1, so that a step over all 4,094
sets of 12 inputs takes milliseconds. For more inputs sets are generated: those by which the dual program
(`bitldp.design.pricing`) is broken most.

The factorization mechanism of McKenna, Maity, Mazumdar and Miklau ("A workload-adaptive mechanism for linear
queries under local differential privacy", VLDB 2020) minimises the same by gradient descent over tables with
a set number of reports, which ends at a local optimum; here it is the global one where all sets are priced.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.design import DesignError
from bitldp.design.pricing import (
    ALL_PRICED,
    Dual,
    WorkloadProgram,
    climbed,
    every_violation,
    spectral_bound,
    subsets,
)
from bitldp.privacy import ONE

__all__ = ["ENUMERATED", "MOST_INPUTS", "Columns", "integers", "least_total_variance"]

Floats = NDArray[np.float64]
Sets = NDArray[np.bool_]

ENUMERATED = 12
"""Inputs of which all sets are columns from the start."""

MOST_INPUTS = 512
"""Inputs for which sets are searched: a table then has some thousands of columns."""

_STEPS = 80
_GAP = 1e-7  # relative: of the complementary products, where no more sets are generated
_ROUGH = 1e-5  # while they are
_HALVINGS = 30
_CENTRAL = 1e-4  # the least product of a chance and its slack, over their mean
_MISSING, _MENDED = 1e-9, 1e-6  # by which rows of the law may miss 1: aimed at, and the most that is mended
_GIVEN_UP = 1e-3  # relative: how near doubles must come at the least
_PRICED = 1e-5  # relative: how far the dual may be broken by the worst set when generation ends
_ROUNDS = 40
_SEARCHES, _SEARCHED = 16, 1024  # of more inputs: rounds, and their product with the number of inputs
_NEAR = 3e-3  # relative: how near to a bound a search ends
_MOST = 2000  # columns with which it ends
_RARE = 1e-6  # chance below which a column is priced again before it stays
_START = 700  # translates of sets, and sets that are drawn, with which generation begins
_SEED = 20200521  # of these
_KEPT = 1e-7  # chance below which a column is left out
_SLACK = 40  # bits of a row that are shared out at the end: 2^(64 - 40) of 2^64
_BELOW = Decimal(2) ** -44  # relative: how far e^epsilon is rounded down
_EXACT = Context(prec=60)


class Columns(NamedTuple):
    """A channel by its columns.

    Attributes
    ----------
    sets : ndarray of bool, shape (N, k)
        Inputs that report at the higher rate.
    chances : ndarray of float64, shape (N,)
        Chance of each report over uniform inputs: zero or more.
    """

    sets: Sets
    chances: Floats


def least_total_variance(gram: Floats, epsilon: float) -> Columns:
    """Solve for the channel of least total variance of unbiased questions, inputs being uniform.

    Parameters
    ----------
    gram : ndarray of float64, shape (k, k)
        W^T W of the questions W, not constant; k from 2 to 512.
    epsilon : float
        Privacy budget, above zero.

    Returns
    -------
    Columns
        At most k(k + 1)/2 of them: as many as it takes to have the same M. How near they are to the optimum,
        the bounds of `bitldp.design.pricing` say.

    Raises
    ------
    DesignError
        If the solver fails.

    Notes
    -----
    Up to 12 inputs all sets are columns; up to 20 sets are generated, and all are looked at for the next
    ones; for more they are found by climbing from intervals, the best sets so far, and halves of the gram
    matrix's directions.
    """
    program = WorkloadProgram(gram, epsilon)
    with np.errstate(all="ignore"):  # what is not finite is refused below
        if program.size <= ENUMERATED:
            sets = subsets(program.size)[1:-1]
            chances, _ = _master(program, program.evidence(sets), _GAP)
        else:
            sets, chances = _generated(program)
    chances = np.where(chances > _KEPT, chances, 0.0)
    kept = chances > 0.0
    return _balanced(program, _thinned(program, Columns(sets[kept], chances[kept] / chances.sum())))


# -- the program over some columns


def _master(program: WorkloadProgram, x: Floats, gap: float) -> tuple[Floats, Dual]:
    """Return chances of columns, shape (N,), and the dual, by an interior-point method (Mehrotra)."""
    point = _Interior(program, x)
    try:
        for _ in range(_STEPS):
            if point.gap < gap and point.missing < _MISSING:
                break
            point.step()
    except np.linalg.LinAlgError:
        pass  # doubles resolve no more; whether that is near enough is looked at next
    if not (point.gap < _GIVEN_UP and point.missing < _MENDED):
        raise DesignError("the program of the workload design did not come near its optimum")
    return point.chances, Dual.of(program, x, point.chances, point.prices)


class _Interior:
    """A point inside the program over some columns, which a step brings nearer to its optimum.

    Parameters
    ----------
    program : WorkloadProgram
        Questions and budget.
    x : ndarray of float64, shape (N, k - 1)
        The columns' x_S.

    Attributes
    ----------
    chances, slack : ndarray of float64, shape (N,)
        Above zero; their products vanish at the optimum.
    prices : ndarray of float64, shape (k,)
        Of the rows' sums.
    gap : float
        Relative: by how much the chances may miss the optimum.
    missing : float
        By how much the rows' sums miss 1.
    """

    def __init__(self, program: WorkloadProgram, x: Floats) -> None:
        self._gram, self._x = program.gram, x
        self._rows = np.hstack([np.ones((len(x), 1)), x])
        self._target = np.eye(1, x.shape[1] + 1)[0]
        self.chances = np.full(len(x), 1.0 / len(x))
        self._look()
        weighted = self._rows * self.chances[:, None]
        self.prices = np.linalg.lstsq(weighted, self._slope * self.chances, rcond=None)[0]
        self.slack = np.maximum(self._slope - self._rows @ self.prices, 0.1 * self._objective)
        self._judge()

    def _look(self) -> None:
        """Compute the objective and its slopes in the basis where X is the identity and the gram diagonal."""
        lower = np.linalg.cholesky((self._x * self.chances[:, None]).T @ self._x)
        inner = np.linalg.solve(lower, np.linalg.solve(lower, self._gram).T)
        values, turn = np.linalg.eigh((inner + inner.T) / 2.0)
        self._values = np.maximum(values, 0.0)
        self._y = np.linalg.solve(lower, self._x.T).T @ turn
        self._objective = float(self._values.sum())
        self._slope = -np.square(self._y) @ self._values

    def _judge(self) -> None:
        self._missed = self._target - self._rows.T @ self.chances
        self._wrong = self._rows @ self.prices + self.slack - self._slope
        self.missing = float(np.abs(self._missed).max())
        between = float(self.chances @ self.slack)
        self.gap = (between + float(np.abs(self._wrong).max())) / self._objective

    def step(self) -> None:
        """Take a step: towards the optimum as far as that goes, then so that the products stay alike."""
        p, slack = self.chances, self.slack
        solve = _inverse(self._y, self._values, slack / p)
        moved = solve(self._rows)
        schur = self._rows.T @ moved

        def direction(products: Floats) -> tuple[Floats, Floats, Floats]:
            first = solve(self._wrong + products / p)
            dual = np.linalg.solve(schur, self._missed - self._rows.T @ first)
            primal = first + moved @ dual
            return primal, dual, (products - slack * primal) / p

        between = float(p @ slack)
        primal, _, other = direction(-p * slack)
        reach = min(_longest(p, primal), _longest(slack, other))
        after = float((p + reach * primal) @ (slack + reach * other)) / between
        primal, dual, other = direction(after**3 * between / len(p) - p * slack - reach * primal * other)
        before = self.chances, self.prices, self.slack, self._worth()
        length = min(1.0, max(0.9, 1.0 - self.gap) * min(_longest(p, primal), _longest(slack, other)))
        for _ in range(_HALVINGS):
            self.chances, self.prices = p + length * primal, before[1] + length * dual
            self.slack = slack + length * other
            self._look()
            self._judge()
            products = self.chances * self.slack
            central = float(products.min()) > _CENTRAL * float(products.mean())
            if central and self._worth() <= (1.0 - 0.01 * length) * before[3]:
                return
            length /= 2.0
        self.chances, self.prices, self.slack = before[:3]
        self._look()
        self._judge()
        raise np.linalg.LinAlgError("no step is shorter")

    def _worth(self) -> float:
        """Return how far from the optimum the point is, in units of the objective."""
        return self.gap + self.missing


def _longest(values: Floats, change: Floats) -> float:
    """Return how far values may go until one is zero, at most 1."""
    falls = change < 0.0
    return min(1.0, float((values[falls] / -change[falls]).min())) if falls.any() else 1.0


def _inverse(y: Floats, values: Floats, diagonal: Floats) -> Callable[[Floats], Floats]:
    """Return the solver of systems with the second derivatives, and a diagonal added.

    These are 2 (y_i . y_j)(y_i . V y_j) in the basis where M is the identity and the gram matrix V, diagonal:
    the products of features y_a y_b sqrt(2 (v_a + v_b)), a <= b, by which they are inverted where those are
    fewer.
    """
    dimension = y.shape[1]
    if len(y) <= dimension * (dimension + 1) // 2:
        whole = 2.0 * (y @ y.T) * ((y * values) @ y.T)
        whole[np.diag_indices(len(y))] += diagonal
        inverse = np.linalg.inv(whole)  # once, for three right sides
        return lambda right: np.asarray(inverse @ right)
    first, second = np.triu_indices(dimension)
    weights = 2.0 * (values[first] + values[second] * (first != second))
    features = y[:, first] * y[:, second] * np.sqrt(weights)
    scaled = features / diagonal[:, None]
    inner = features.T @ scaled
    inner[np.diag_indices(len(inner))] += 1.0
    inverse = np.linalg.inv(inner)

    def solve(right: Floats) -> Floats:
        plain = right / (diagonal[:, None] if right.ndim == 2 else diagonal)
        return np.asarray(plain - scaled @ (inverse @ (scaled.T @ right)))

    return solve


# -- generation of columns


def _generated(program: WorkloadProgram) -> tuple[Sets, Floats]:
    """Return columns by column generation: solve, price, add sets that break the dual, drop distant ones."""
    size, priced = program.size, program.size <= ALL_PRICED
    sets = _structured(program)
    enough = 0.0 if priced else spectral_bound(program) * (1.0 + _NEAR)
    for _ in range(_ROUNDS if priced else max(2, min(_SEARCHES, _SEARCHED // size))):
        x = program.evidence(sets)
        chances, dual = _master(program, x, _ROUGH)
        if dual.objective <= enough or (not priced and len(sets) > _MOST):
            return sets, chances
        if priced:
            broken = every_violation(program, dual)
            order = np.argsort(-broken)[: 4 * size]
            order = order[broken[order] > _PRICED * dual.objective]
            new = (order[:, None] >> np.arange(size)) & 1 == 1
        else:
            likely = sets[np.argsort(-chances)[: 4 * size]]
            new = climbed(program, dual, likely, _PRICED * dual.objective)
        known = {each.tobytes() for each in sets}
        new = new[np.array([each.tobytes() not in known for each in new], np.bool_)]
        if not len(new):
            break
        # Single inputs stay, too: with them there is a design whatever else is left out.
        keep = (chances > _RARE) | (sets.sum(axis=1) == 1)
        keep |= np.argsort(np.argsort(-dual.violation(x))) < 2 * size
        sets = np.concatenate([sets[keep], new])
    chances, _ = _master(program, program.evidence(sets), _GAP if priced else _ROUGH)
    return sets, chances


def _structured(program: WorkloadProgram) -> Sets:
    """Return sets to begin with: single inputs, intervals around a circle, roundings of directions."""
    size, share = program.size, program.share
    width = min(max(1, round(share * size)), size - 1)
    cells = np.arange(size)
    widths = dict.fromkeys(
        min(max(1, round(each * width)), size - 1) for each in (1.0, 0.5, 1.5, 0.75, 2.0, 0.25)
    )
    runs = [(cells - cells[:, None]) % size < each for each in widths][: max(1, _START // size)]
    values, vectors = np.linalg.eigh(program.gram)
    vectors = program.basis @ vectors
    ranks = np.argsort(np.argsort(vectors[:, -64:], axis=0), axis=0).T
    # X is about the root of the gram matrix. Normal numbers with the correlations sin(pi/2 rho) above a
    # threshold at 0 have correlations rho (Sheppard 1899), and at others nearly so. The numbers are always
    # the same.
    spread = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    unit = np.sqrt(np.maximum(np.diag(spread), 1e-300))
    values, vectors = np.linalg.eigh(np.sin(np.pi / 2.0 * np.clip(spread / np.outer(unit, unit), -1.0, 1.0)))
    normal = np.random.default_rng(_SEED).standard_normal((min(_START, 12 * size), size))
    normal = (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    drawn = normal > NormalDist().inv_cdf(1.0 - share)
    drawn = drawn[drawn.any(axis=1) & ~drawn.all(axis=1)]
    singles = np.eye(size, dtype=np.bool_)
    return np.unique(np.concatenate([singles, *runs, ranks < width, ranks >= size - width, drawn]), axis=0)


# -- fewer columns, and integers


def _thinned(program: WorkloadProgram, columns: Columns) -> Columns:
    """Return as many of the columns as it takes for the same M: at most k(k + 1)/2 (Caratheodory).

    Along a vector of the kernel of the moments the chances change and M does not, until one of them is zero.
    """
    sets, chances = columns.sets[np.argsort(-columns.chances)], np.sort(columns.chances)[::-1].copy()
    evidence = program.evidence(sets)
    first, second = np.triu_indices(evidence.shape[1])
    moments = np.hstack([np.ones((len(sets), 1)), evidence, evidence[:, first] * evidence[:, second]])
    most = moments.shape[1]
    alive = list(range(min(len(sets), most)))
    for start in range(most, len(sets), most):
        alive += range(start, min(start + most, len(sets)))
        index = np.array(alive)
        _, sizes, kernel = np.linalg.svd(moments[index].T, full_matrices=True)
        rank = int((sizes > 1e-10 * sizes[0]).sum())
        kernel = kernel[rank:]
        kept = np.ones(len(index), np.bool_)
        while len(kernel):
            vector, kernel = kernel[0], kernel[1:]
            vector = vector if vector.max() > -vector.min() else -vector
            falls = kept & (vector > 1e-12)
            lengths = np.where(falls, chances[index], np.inf) / np.where(falls, vector, 1.0)
            out = int(lengths.argmin())
            chances[index] = np.maximum(chances[index] - lengths[out] * vector * kept, 0.0)
            chances[index[out]], kept[out] = 0.0, False
            kernel = kernel - np.outer(kernel[:, out] / vector[out], vector)
        alive = index[kept].tolist()
    alive = [each for each in alive if chances[each] > _KEPT]
    return Columns(sets[alive], chances[alive] / chances[alive].sum())


def _balanced(program: WorkloadProgram, columns: Columns) -> Columns:
    """Return columns whose rows sum to 1 to rounding: the least relative changes that make them do."""
    sets, chances = columns
    rows = np.hstack([np.ones((len(sets), 1)), program.evidence(sets)])
    target = np.eye(1, program.size)[0]
    for _ in range(3):
        missed = target - rows.T @ chances
        chances = chances * (
            1.0 + rows @ np.linalg.lstsq((rows * chances[:, None]).T @ rows, missed, rcond=None)[0]
        )
    if not (chances > 0.0).all():
        raise DesignError("the columns of the workload design do not sum to 1")
    return Columns(sets, chances)


def integers(columns: Columns, epsilon: float) -> list[list[int]]:
    """Return P(report | input) in units of 2**-64, a row an input, whose exact epsilon is at most `epsilon`.

    Parameters
    ----------
    columns : Columns
        Columns and chances; the rows of their channel sum to 1, up to rounding.
    epsilon : float
        Privacy budget, above zero.

    Raises
    ------
    DesignError
        If the rows sum to something else.

    Notes
    -----
    A column is a at the lower and b = floor(a e^epsilon) at the higher rate, e^epsilon being rounded down.
    All are a little smaller than they should be, and the most likely column takes what is left of a row:
    about the same in all rows, which brings its ratio nearer to 1. Nothing but integers and one exponential
    of 60 digits decides, so that the same columns are the same integers anywhere.
    """
    size = columns.sets.shape[1]
    ratio = int((_EXACT.exp(Decimal(epsilon)) * (1 - _BELOW)).scaleb(0) * ONE)
    least = []
    for chance, width in zip(columns.chances.tolist(), columns.sets.sum(axis=1).tolist(), strict=True):
        mean = size * ONE + (ratio - ONE) * int(width)  # of the column's rates, times k and 2^64
        least.append(int(chance * 2.0**52) * (ONE << 12) * size // mean)
    total = [0] * size
    table = []
    for low, members in zip(least, columns.sets.tolist(), strict=True):
        high = low * ratio // ONE
        table.append([high if each else low for each in members])
        total = [one + each for one, each in zip(total, table[-1], strict=True)]
    # Scaled, so that every row has a rest to take.
    most = max(total)
    room = ONE - (ONE >> _SLACK)
    least = [low * room // most for low in least]
    table = []
    for low, members in zip(least, columns.sets.tolist(), strict=True):
        high = low * ratio // ONE
        table.append([high if each else low for each in members])
    rest = [ONE - sum(column) for column in zip(*table, strict=True)]
    if min(rest) <= 0 or max(rest) > ONE >> 20:
        raise DesignError("the columns of the workload design do not sum to 1")
    likely = max(range(len(least)), key=lambda each: sum(table[each]))
    table[likely] = [one + left for one, left in zip(table[likely], rest, strict=True)]
    return [list(row) for row in zip(*table, strict=True)]
