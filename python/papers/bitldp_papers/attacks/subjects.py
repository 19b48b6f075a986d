"""Subjects of the attacks: mechanisms at the papers' settings and at a true epsilon, and who succeeds."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import bitldp
import numpy as np
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import PrivacyClaimWarning, ceiling, composed, share
from numpy.typing import NDArray

from bitldp_papers.attacks.likelihood import evidence, form_of
from bitldp_papers.data import load

__all__ = [
    "CONFIDENCE",
    "HONEST",
    "Attacked",
    "Subject",
    "attacked_records",
    "likelihoods",
    "ranks",
    "records",
]

#: Of the lower bounds on epsilon.
CONFIDENCE = 0.95

#: True budgets that are attacked beside the papers' settings.
HONEST = (1.0, 4.0, 8.0)

Array = NDArray[np.float32]

_ROUNDING = 1e-6  # of sums in single precision


@dataclass(frozen=True)
class Attacked:
    """Success of one attack on one mechanism.

    Attributes
    ----------
    mechanism : str
    claimed : float
        Epsilon that its paper states of one release; the exact one of the run where nobody claims another.
    exact : float
        Exact epsilon of a record, of all rounds together; infinite without privacy.
    wins : tuple of int
        By seed: in how many trials the attacker is right.
    trials : int
        Of each seed.
    candidates : int
        Equally likely before.
    rounds : int
        Releases of each record.
    more : dict
        Other figures of the same attack, means over the seeds.
    """

    mechanism: str
    claimed: float
    exact: float
    wins: tuple[int, ...]
    trials: int
    candidates: int
    rounds: int
    more: dict[str, float]

    @property
    def successes(self) -> tuple[float, ...]:
        """By seed: the share of trials in which the attacker is right."""
        return tuple(each / self.trials for each in self.wins)

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return statistics.fmean(self.successes)

    @property
    def deviation(self) -> float:
        """Standard deviation between seeds; NaN of one."""
        return statistics.stdev(self.successes) if len(self.successes) > 1 else math.nan

    @property
    def ceiling(self) -> float:
        """The largest chance of success that the exact epsilon allows, over all attacks."""
        return ceiling(self.exact, self.candidates)

    @property
    def is_true(self) -> bool:
        """True where the exact epsilon of all rounds is within the claim; never without one."""
        return self.exact <= self.claimed < math.inf

    @property
    def chance(self) -> float:
        """Chance of a guess without the report."""
        return 1.0 / self.candidates

    def proven(self, confidence: float = CONFIDENCE) -> float:
        """Return the epsilon that the successes prove the release to have at least; 0 where they prove none.

        Parameters
        ----------
        confidence : float
            Probability with which the bound holds, from 0 to below 1.

        Notes
        -----
        Each record is one of n, drawn uniformly and by itself. Given all that was released, the records are
        independent, and none has a posterior above s = e^epsilon/(e^epsilon + n - 1), whatever the rounds
        did. So the number of successes is at most binomial, of a chance s; with the lower bound of Clopper
        and Pearson for it, epsilon >= ln((n - 1) s/(1 - s)).
        """
        from scipy.stats import binomtest

        test = binomtest(sum(self.wins), self.trials * len(self.wins), alternative="greater")
        low = float(test.proportion_ci(confidence, method="exact").low)
        if low <= self.chance:
            return 0.0
        return math.log(self.candidates - 1) + math.log(low / (1.0 - low))

    def row(self, attack: str) -> dict[str, Any]:
        """Return it as a row of a table."""
        return {
            "attack": attack,
            "mechanism": self.mechanism,
            "rounds": self.rounds,
            "claimed": self.claimed,
            "exact": self.exact,
            "success": self.mean,
            "deviation": None if math.isnan(self.deviation) else self.deviation,
            "ceiling": self.ceiling,
            "chance": self.chance,
            "proven": self.proven(),
            **self.more,
        }


@dataclass(frozen=True)
class Subject:
    """Mechanism under attack.

    Attributes
    ----------
    name : str
    mechanism : Mechanism
        Of one release.
    claimed : float
    scale : float
        Factor of records before they are released: public.
    """

    name: str
    mechanism: Mechanism
    claimed: float
    scale: float = 1.0

    def exact(self, rounds: int) -> float:
        """Return the exact epsilon of a record that is released so many times."""
        return composed(self.mechanism.guarantee.record, rounds)


def quiet(make: Callable[..., Mechanism], **parameters: Any) -> Mechanism:
    """Return a mechanism of a paper's calibration without its warning: the tables show both epsilons."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)
        return make(**parameters)


def paper_records(features: int) -> list[Subject]:
    """Return the papers' mechanisms for records of `features` numbers, at the epsilons that they state."""
    subjects = []
    for claimed in (0.1, 1.0):
        words = {"bits": 10, "integer_bits": 5, "epsilon": claimed, "calibration": "paper"}
        frr = quiet(bitldp.FRR, features=features, **words)
        subjects.append(Subject("f-RR, BitRand's setting", frr, claimed, _filling(5, features)))
    words = {"bits": 10, "integer_bits": 4, "epsilon": 0.5, "alpha": 10.0, "calibration": "paper"}
    uer = quiet(bitldp.UER, features=features, **words)
    subjects.append(Subject("UER, LDPFL's setting", uer, 0.5, _filling(4, features)))
    return subjects


def true_records(features: int, epsilons: Sequence[float], rounds: int) -> list[Subject]:
    """Return mechanisms of such records at epsilons that are true of all rounds: bits, and the best one."""
    subjects = []
    for epsilon in epsilons:
        each = share(epsilon, rounds)
        bits = bitldp.FRR(features=features, bits=10, integer_bits=5, epsilon=each, calibration="exact")
        subjects.append(Subject("f-RR, exact", bits, epsilon, _filling(5, features)))
        subjects.append(Subject("CrossPolytope", bitldp.CrossPolytope(features, epsilon=each), epsilon))
    return subjects


def _filling(integer_bits: int, features: int) -> float:
    """Return the factor of records of length 1 with which most of their numbers fill a code.

    A number of such a record is about 1/sqrt(r), and seldom more than two and a half times that.
    """
    return 2.0**integer_bits * math.sqrt(features) / 2.5


@cache
def records(name: str) -> tuple[Array, NDArray[np.generic], int]:
    """Return the candidates: different test records of [-1, 1], each of length 1, their labels and classes.

    Of records that are the same only the first is a candidate: nobody could tell them apart.
    """
    data = load(name)
    _, test = data.scaled()
    lengths = np.linalg.norm(test, axis=1, keepdims=True)
    every = (test / np.maximum(lengths, 1e-9)).astype(np.float32)
    _, first = np.unique(every, axis=0, return_index=True)
    rows = np.sort(first)
    return every[rows], data.test_labels[rows] if data.classes else np.zeros(0), data.classes


def attacked_records(data: str, epsilons: Sequence[float], rounds: int) -> tuple[Array, list[Subject]]:
    """Return the candidates of a data set, and the mechanisms that release records of their size."""
    candidates, _, _ = records(data)
    features = candidates.shape[1]
    return candidates, [*paper_records(features), *true_records(features, epsilons, rounds)]


def likelihoods(
    subject: Subject, x: Array, candidates: Array, rounds: int, rng: np.random.SeedSequence
) -> NDArray[np.float64]:
    """Release records in several rounds; return the log-likelihood of each candidate, (records, candidates).

    Up to a constant of the record.
    """
    mechanism, total = subject.mechanism, np.zeros((len(x), len(candidates)))
    for key in rng.spawn(rounds):
        reports = mechanism.randomize(x, rng=key, output=form_of(mechanism))
        total += evidence(mechanism, reports, candidates)
    return total


def ranks(table: NDArray[np.float64], own: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return how many candidates the attacker names before the right one; ties are broken by lot.

    Parameters
    ----------
    table : ndarray of float64, shape (trials, candidates)
        Log-likelihoods.
    own : ndarray of int, shape (trials,)
        The right candidates.
    rng : numpy.random.Generator
    """
    mine = table[np.arange(len(table)), own][:, None]
    tied = np.isclose(table, mine, rtol=_ROUNDING, atol=_ROUNDING)
    before = ((table > mine) & ~tied).sum(axis=1)
    return before + rng.integers(0, tied.sum(axis=1))  # which of those that are tied is named first
