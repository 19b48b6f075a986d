"""Bounds that no epsilon-LDP mechanism of a task is below, and what each is of.

All but the linear program of points rest on one step. Let x be uniform, h a function of mean 0 and E h^2 = 1,
and H an unbiased estimate of h(x) from a report o. Then E[H E(h|o)] = E h^2 = 1, so that E H^2 is at least
1/E[E(h|o)^2]. A column P(o|.) of an epsilon-LDP law is a sum of c (1 + g 1_S), g = e^epsilon - 1, with sets S
of inputs (Kairouz, Oh and Viswanath, JMLR 2016), and splitting a column adds information. So the sum of
E[E(h|o)^2] over orthonormal h is at most the largest g^2 |proj 1_S|^2/(1 + g t)^2 of a set S with the share t
of the inputs, proj being the projection on these h. Between it and the sum of E H^2 is the inequality of the
arithmetic and the harmonic mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bitldp.design.optimal import GAP
from bitldp.design.pricing import WorkloadProgram, spectral_bound
from bitldp.design.questions import gram_of
from bitldp.letters.directions import least_spread
from bitldp.ordered.workload import WorkloadDesign
from bitldp.points.optimal import OptimalUtility
from bitldp.recommend.question import Question

__all__ = ["Bound", "bound", "least_false", "least_indicator", "least_of_table"]

_ENUMERATED = 16  # records of categories whose sets are tried one by one
_SOLVED = 300  # candidates whose program is solved as it is
_ALL_ENDS = 23  # values between all of whose ends ranges are measured
_ROUNDING = 1e-6  # relative: what the solver of the linear program resolves
_NODES = 1e-3  # relative: what the best of so many angles may miss; .00033 at most for 2 to 2^24 coordinates


@dataclass(frozen=True)
class Bound:
    """A number that no mechanism of some kind is below.

    Attributes
    ----------
    value : float
        The least mean of `Recommendation.measure` that there could be; the worst is at least that.
    of : str
        The mechanisms that it is about.
    scope : str
        The inputs that the mean is over.
    source : str
        The theorem, or the program.
    """

    value: float
    of: str
    scope: str
    source: str

    def within(self, cost: float) -> str:
        """Return how far above it a cost is at most, as a phrase; rounded up."""
        above = max(0.0, cost / self.value - 1.0) if self.value > 0.0 else math.inf
        if not math.isfinite(above):
            return f"the bound of {self.of}, {self.value:.3g}, says nothing here"
        if above >= 1.0:
            return f"proven at most {_up(1.0 + above):,.6g} times the least of {self.of}"
        return f"proven within {_up(max(100.0 * above, 1e-3)):g} % of {self.of}"


def _up(value: float) -> float:
    """Return a number rounded up to two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.6g}")


_UNBIASED, _EVERY = "every unbiased epsilon-LDP mechanism", "every epsilon-LDP mechanism"
_SUBSETS = "subset selection: Ye and Barg, IEEE Trans. Inf. Theory 2018"


def bound(task: str, question: Question, mechanisms: Sequence[Any] = ()) -> Bound | None:
    """Return the lower bound that holds for all mechanisms of a task; None where none is known.

    Parameters
    ----------
    task : str
        The task.
    question : Question
        What was asked.
    mechanisms : sequence of Mechanism
        What was compared; a solved program among them tells its own optimum.
    """
    if question.liars:
        return None
    if task == "point":
        return _of_points(mechanisms) if question.features == 1 else None
    if task == "range":
        return _of_ranges(question, mechanisms)
    known = _KNOWN.get(task)
    return None if known is None else known(question)


def _of_vectors(s: Question) -> Bound | None:
    if s.norm != "l2":
        return None
    source = "PrivUnit on the sphere: Bhowmick et al. 2018; Asi, Feldman and Talwar, ICML 2022"
    value = least_spread(s.features, s.epsilon) * (1.0 - _NODES)
    return Bound(value, _UNBIASED, "on average over directions", source)


def _of_labels(s: Question) -> Bound:
    source = "k-ary randomized response: Kairouz, Oh and Viswanath, JMLR 2016"
    return Bound(least_false(s.sizes[0], s.epsilon), _EVERY, "over equally frequent classes", source)


def _of_words(s: Question) -> Bound:
    return Bound(least_indicator(s.size, s.epsilon), _UNBIASED, "over equally frequent words", _SUBSETS)


def _of_categories(s: Question) -> Bound | None:
    if s.numbers:
        return None
    if len(s.sizes) == 1:
        value = least_indicator(s.sizes[0], s.epsilon)
        return Bound(value, _UNBIASED, "over equally frequent categories", _SUBSETS)
    if len(set(s.sizes)) > 1 or math.prod(s.sizes) > _ENUMERATED:
        return None
    value = least_of_table(s.sizes[0], len(s.sizes), s.epsilon)
    return Bound(value, _UNBIASED, "over equally frequent records", "all sets of records, one by one")


def _of_ranges(s: Question, mechanisms: Sequence[Any]) -> Bound | None:
    """Return the bound of all ranges of few values, whose ends are all looked at.

    That of a design is of what the random bits add to the answers; the records' own variance comes on top.
    """
    if s.size > _ALL_ENDS:
        return None
    gram = gram_of("ranges", s.size, ())
    answers = s.size * (s.size + 1) // 2
    own = float(np.trace(gram)) / s.size - float(gram.sum()) / s.size**2
    scope = "over all ranges of equally frequent values"
    design = next((each for each in mechanisms if isinstance(each, WorkloadDesign)), None)
    proof = None if design is None else design.certificate
    if proof is not None:
        return Bound((proof.bound + own) / answers, _UNBIASED, scope, f"the workload's dual: {proof.method}")
    program = WorkloadProgram(gram, s.epsilon)
    least = program.scale * spectral_bound(program) * (1.0 - 1e-12)
    return Bound(max(least, own) / answers, _UNBIASED, scope, "the workload's dual: spectral relaxation")


def _of_points(mechanisms: Sequence[Any]) -> Bound | None:
    solved = next((each for each in mechanisms if isinstance(each, OptimalUtility)), None)
    if solved is None:
        return None
    slack = _ROUNDING + (GAP if len(solved.points) > _SOLVED else 0.0)
    value = solved.expected_error() * (1.0 - slack)
    return Bound(value, _EVERY, "over equally frequent candidates", "the linear program itself")


_KNOWN: Mapping[str, Callable[[Question], Bound | None]] = {
    "vector": _of_vectors,
    "label": _of_labels,
    "top": _of_words,
    "frequency": _of_categories,
    "record": _of_categories,
}


def _growth(epsilon: float) -> float:
    return math.expm1(min(epsilon, 300.0))


def least_false(size: int, epsilon: float) -> float:
    """Return the least chance that a reported class is false, on average over the classes.

    Of any law, 1 >= P(x|x) + e^-epsilon times the sum of P(y|y) over the others; summed over x, the mean of
    P(x|x) is at most e^epsilon/(e^epsilon + k - 1).
    """
    rest = (size - 1) * math.exp(-epsilon)
    return rest / (1.0 + rest)


def least_indicator(size: int, epsilon: float) -> float:
    """Return the least variance of a record's unbiased indicator, averaged over categories and inputs.

    The projection of a set on all functions of mean 0 has the square t (1 - t); (1 + g t)^2/(t (1 - t)) is
    least at t = 1/(e^epsilon + 1), and falls toward it from either side.
    """
    growth = _growth(epsilon)
    near = size / (growth + 2.0)
    widths = {min(size - 1.0, max(1.0, each)) for each in (math.floor(near), math.floor(near) + 1.0)}
    share = min(((1.0 + growth * w / size) ** 2 / (w / size * (1.0 - w / size))) for w in widths)
    return _per_category(size, 1, share / growth / growth)


def _per_category(size: int, attributes: int, inverse: float) -> float:
    """Return the variance of an indicator, where 1/`inverse` is the largest g^2 |proj 1_S|^2/(1 + g t)^2.

    Indicators without their mean, 1/k, are k^-1/2 times orthonormal functions, k - 1 an attribute.
    """
    return (size - 1) / size**2 * (attributes * (size - 1) * inverse - 1.0)


@lru_cache(maxsize=64)
def least_of_table(size: int, attributes: int, epsilon: float) -> float:
    """Return the same for several attributes of one size, from all sets of at most 16 records."""
    records = size**attributes
    growth = _growth(epsilon)
    places = np.arange(records)
    digits = places[:, None] // size ** np.arange(attributes) % size
    belongs = (digits[:, :, None] == np.arange(size)).reshape(records, -1).astype(np.float64)
    sets = (np.arange(1, 1 << records)[:, None] >> places & 1).astype(np.float64)
    share = sets.mean(axis=1)
    parts = sets @ belongs / records - share[:, None] / size
    squares = size * np.square(parts).sum(axis=1)
    best = float(np.max(squares / np.square(1.0 + growth * share)))
    return _per_category(size, attributes, 1.0 / (growth * growth * best))
