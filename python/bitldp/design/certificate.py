"""Certificates: how near the variance of a mechanism is to what no unbiased one can beat."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.design.pricing import ALL_PRICED, Dual, WorkloadProgram, exact_bound, spectral_bound

__all__ = ["Certificate", "certified"]

Floats = NDArray[np.float64]

_UP = 1e-9  # relative: by which a value is raised for the rounding of doubles
_FAR = 1.0  # a gap from which on a bound says too little to be stated


@dataclass(frozen=True)
class Certificate:
    """Variance of a mechanism, compared with a lower bound for every mechanism.

    Attributes
    ----------
    value : float
        Variance of the mechanism, rounded up.
    bound : float
        Lower bound on the variance of every unbiased mechanism of the same epsilon, rounded down; above zero.
    measure : str
        Which variance it is.
    method : str
        How the bound was found.

    Examples
    --------
    >>> from bitldp.design import Certificate
    >>> print(Certificate(1.021, 1.0, "total variance, inputs uniform", "by hand"))
    proven within 2.1 % of every unbiased epsilon-LDP mechanism (total variance, inputs uniform; by hand)
    """

    value: float
    bound: float
    measure: str
    method: str

    @property
    def gap(self) -> float:
        """By how many percent the value is above the bound, at most."""
        return 100.0 * max(0.0, self.value / self.bound - 1.0)

    def __str__(self) -> str:
        """Return the sentence that it proves, the gap rounded up to two digits, 0.001 % at the least."""
        unit = 10.0 ** max(-3, math.floor(math.log10(max(self.gap, 1e-9))) - 1)
        gap = max(1e-3, math.ceil(self.gap / unit * (1.0 - 1e-12)) * unit)
        every = f"proven within {gap:.6g} % of every unbiased epsilon-LDP mechanism"
        return f"{every} ({self.measure}; {self.method})"


def certified(gram: Floats, channel: Matrix, epsilon: float, second: float) -> Certificate | None:
    """Return the certificate of a channel for linear questions, whatever made it; None where none is known.

    Parameters
    ----------
    gram : ndarray of float64, shape (k, k)
        W^T W of the questions.
    channel : Matrix
        A table of k inputs.
    epsilon : float
        Budget of the mechanisms that it is compared with.
    second : float
        Total second moment of one report's letters, over uniform inputs.

    Notes
    -----
    The variance is that of one report's letters by its random bits, summed over the answers and averaged over
    uniform inputs. That of uniformly drawn inputs' answers is larger by the same amount for all mechanisms,
    so the gap holds for it, too. The bound is that of eigenvalues, or up to 20 inputs that of all sets, at
    the prices that fit the channel, where it is larger.
    """
    program = WorkloadProgram(gram, epsilon)
    shown = float(np.trace(gram)) / len(gram)  # the second moment of the answers themselves
    fixed = float(gram.sum()) / len(gram) ** 2  # that of the mean answers, which no mechanism changes
    least, method = spectral_bound(program), "spectral relaxation"
    if program.size <= ALL_PRICED:
        law = channel.probabilities()
        mass = law.mean(axis=0)
        used = mass > 0.0
        dual = Dual.of(program, (law[:, used] / mass[used]).T @ program.basis, mass[used])
        exact = exact_bound(program, dual).bound
        if exact > least:
            least, method = exact, "all sets of inputs priced"
    noise = program.scale * least * (1.0 - 1e-12) + fixed - shown
    value = second - shown
    value += _UP * max(second, shown)
    noise -= _UP * max(second, shown)
    if not noise > 0.0 or value / noise - 1.0 > _FAR:
        return None
    return Certificate(value, noise, "total variance, inputs uniform", method)
