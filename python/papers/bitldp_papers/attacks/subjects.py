"""Subjects of the attacks: mechanisms at the papers' settings and at a true epsilon, and likely sources."""

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
from bitldp.privacy import PrivacyClaimWarning
from numpy.typing import NDArray

from bitldp_papers.data import load

__all__ = ["HONEST", "Attacked", "Subject", "attacked_records", "records", "released", "scores"]

#: True budgets that are attacked beside the papers' settings.
HONEST = (1.0, 4.0, 8.0)

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Attacked:
    """Success of one attack on one mechanism.

    Attributes
    ----------
    mechanism : str
    claimed : float
        Epsilon that its paper states; the exact one where nobody claims another.
    exact : float
        Exact epsilon of a record; infinite without privacy.
    successes : tuple of float
        By seed: the share of trials in which the attacker is right.
    ceiling : float
        The largest share that the exact epsilon allows, over all attacks.
    chance : float
        Of a guess without the report.
    more : dict
        Other figures of the same attack, means over the seeds.
    """

    mechanism: str
    claimed: float
    exact: float
    successes: tuple[float, ...]
    ceiling: float
    chance: float
    more: dict[str, float]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return statistics.fmean(self.successes)

    @property
    def deviation(self) -> float:
        """Standard deviation between seeds; NaN of one."""
        return statistics.stdev(self.successes) if len(self.successes) > 1 else math.nan

    def row(self, attack: str) -> dict[str, Any]:
        """Return it as a row of a table."""
        return {
            "attack": attack,
            "mechanism": self.mechanism,
            "claimed": self.claimed,
            "exact": self.exact,
            "success": self.mean,
            "deviation": None if math.isnan(self.deviation) else self.deviation,
            "ceiling": self.ceiling,
            "chance": self.chance,
            **self.more,
        }


@dataclass(frozen=True)
class Subject:
    """Mechanism under attack.

    Attributes
    ----------
    name : str
    mechanism : Mechanism
    claimed : float
    scale : float
        Factor of records before they are released: public.
    """

    name: str
    mechanism: Mechanism
    claimed: float
    scale: float = 1.0

    @property
    def exact(self) -> float:
        """Exact epsilon of a record."""
        return self.mechanism.guarantee.record


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


def true_records(features: int, epsilons: Sequence[float]) -> list[Subject]:
    """Return mechanisms of such records at epsilons that are true: bits, and the recommended one."""
    subjects = []
    for epsilon in epsilons:
        bits = bitldp.FRR(features=features, bits=10, integer_bits=5, epsilon=epsilon, calibration="exact")
        subjects.append(Subject("f-RR, exact", bits, epsilon, _filling(5, features)))
        polytope = bitldp.CrossPolytope(features, epsilon=epsilon)
        subjects.append(Subject("CrossPolytope", polytope, epsilon))
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


def attacked_records(data: str, epsilons: Sequence[float]) -> tuple[Array, list[Subject]]:
    """Return the candidates of a data set, and the mechanisms that release records of their size."""
    candidates, _, _ = records(data)
    features = candidates.shape[1]
    return candidates, [*paper_records(features), *true_records(features, epsilons)]


_TINY = 1e-300


def released(mechanism: Mechanism, x: NDArray[np.float32], seed: np.random.SeedSequence) -> Any:
    """Return reports about records, as `scores` takes them."""
    return mechanism.randomize(x, rng=seed, output="bits" if _of_bits(mechanism) else "codes")


def scores(mechanism: Mechanism, reports: Any, candidates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores of candidates, shape (reports, candidates).

    Of mechanisms of bits it is the log-likelihood, up to what is the same for all candidates: with chances p
    and q that a bit of 1 and of 0 is reported as 1, a candidate's bit of 1 adds ln(p/q) where 1 came, and
    ln((1 - p)/(1 - q)) where 0 did. Of others it is the product of the candidate and of what the report is
    worth, which orders candidates of the same length as their distance does.
    """
    if not _of_bits(mechanism):
        decoded = np.asarray(mechanism.decode(reports), np.float32)
        return np.asarray(decoded @ candidates.T, np.float32)
    words: Any = mechanism
    law = np.maximum(words.probabilities(), _TINY)
    p, q = (np.broadcast_to(law[..., side], (words.features, words.bits)).ravel() for side in (0, 1))
    one, none = np.log(p / q), np.log(np.maximum(1.0 - p, _TINY) / np.maximum(1.0 - q, _TINY))
    shifts = np.arange(words.bits - 1, -1, -1, dtype=np.uint16)  # the sign is the highest bit
    codes = words.codec.encode(np.ascontiguousarray(candidates))
    own = ((codes[:, :, None] >> shifts) & 1).reshape(len(candidates), -1).astype(np.float32)
    evidence = np.where(reports.reshape(len(reports), -1) == 1, one, none).astype(np.float32)
    return np.asarray(evidence @ own.T, np.float32)


def _of_bits(mechanism: Mechanism) -> bool:
    return "bits" in mechanism.outputs
