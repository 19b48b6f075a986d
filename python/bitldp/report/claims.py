"""Claims of papers about their mechanisms, beside the exact epsilon at the papers' settings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import bitldp
from bitldp._core import log_ratio
from bitldp.base.errors import require
from bitldp.privacy import ONE, Guarantee, PrivacyClaimWarning

if TYPE_CHECKING:
    from rich.table import Table
from bitldp.privacy import number

__all__ = ["Claim", "claims", "claims_markdown", "claims_table"]


@dataclass(frozen=True)
class Claim:
    """One published setting, with its claimed and its exact epsilon.

    Attributes
    ----------
    setting : str
        Mechanism and parameters.
    source : str
        Where epsilon is claimed.
    guarantee : Guarantee
        Claimed and exact.
    """

    setting: str
    source: str
    guarantee: Guarantee


@dataclass(frozen=True)
class _SampledAmongFake:
    """One attribute by randomized response, hidden among uniform categories of all others (RS+FD[GRR]).

    Which attribute is true stays secret, so the paper takes the chance 1/d of each for amplification by
    sampling, and lets each response spend ln(d (e^epsilon - 1) + 1). A report (y_1, ..., y_d) has the
    likelihood sum_j k_j P(y_j | x_j) over d k_1 ... k_d. Where records differ in one attribute the other
    terms are alike, and with equal k_j the ratio is at most e^epsilon. Records that differ in all have the
    ratio of sum_j k_j p_j to sum_j k_j q_j, which is that of one response: nothing is amplified.

    Parameters
    ----------
    sizes : tuple of int
        Categories k_j of each attribute.
    epsilon : float
        What is claimed, for any two records; above 0.

    Notes
    -----
    Source: Arcolezi, Couchot, Al Bouna and Xiao, "Random sampling plus fake data: multidimensional frequency
    estimates with local differential privacy", CIKM 2021, Section 3.2 and Algorithm 1.
    """

    sizes: tuple[int, ...]
    epsilon: float

    def responses(self) -> list[tuple[Fraction, Fraction]]:
        """Return P(y | x) for y = x and for another y, of each attribute, from its sampler's integer."""
        spent = math.log1p(len(self.sizes) * math.expm1(self.epsilon))
        shares = [Fraction(bitldp.GRR(size, epsilon=spent).channel.high, ONE) for size in self.sizes]
        return [(p, (1 - p) / (size - 1)) for size, p in zip(self.sizes, shares, strict=True)]

    @property
    def guarantee(self) -> Guarantee:
        """Claimed and exact, of one attribute that differs and of all."""
        terms = [(size * p, size * q) for size, (p, q) in zip(self.sizes, self.responses(), strict=True)]
        lowest = sum((q for _, q in terms), Fraction(0))
        record = sum((p for p, _ in terms), Fraction(0)) / lowest
        one = max((lowest - q + p) / lowest for p, q in terms)
        feature = log_ratio(one.numerator, one.denominator)
        return Guarantee.judge(
            self.epsilon, (feature, feature, log_ratio(record.numerator, record.denominator))
        )


_Setting = tuple[str, str, Callable[[], Any]]

_PLACES = [(37 * i % 101 / 101, 59 * i % 101 / 101) for i in range(60)]  # scattered

_SETTINGS: tuple[_Setting, ...] = (
    (
        "f-RR, 1000 features of 10 bits, paper",
        "BitRand, Theorem 2",
        lambda: bitldp.FRR(1000, epsilon=1.0, calibration="paper"),
    ),
    ("f-RR, the same, exact", "this package", lambda: bitldp.FRR(1000, epsilon=1.0)),
    (
        "label-RR, 10 classes",
        "BitRand, Theorem 3",
        lambda: bitldp.LabelRR(10, epsilon=2.5),
    ),
    (
        "label-RR, 10 classes, beta = -5",
        "BitRand, Theorem 3",
        lambda: bitldp.LabelRR(10, epsilon=1.0, beta=-5.0),
    ),
    (
        "symmetric RR, 1024 features of 10 bits",
        "LDPFL, Eq. 15",
        lambda: bitldp.SymmetricRR(1024, epsilon=0.5),
    ),
    (
        "MOUE, 1024 features of 10 bits, alpha 10, paper",
        "LDPFL, Theorem 1",
        lambda: bitldp.MOUE(1024, epsilon=0.5, calibration="paper"),
    ),
    (
        "UER, 1024 features of 10 bits, alpha 10, paper",
        "LDPFL, Theorem 2",
        lambda: bitldp.UER(1024, epsilon=0.5, calibration="paper"),
    ),
    ("SUE, 100 categories", "RAPPOR", lambda: bitldp.SUE(100, epsilon=1.0)),
    ("OUE, 100 categories", "Wang et al. 2017", lambda: bitldp.OUE(100, epsilon=1.0)),
    ("GRR, 100 categories", "Kairouz et al. 2016", lambda: bitldp.GRR(100, epsilon=1.0)),
    ("BRR, 100 points", "BRR, arXiv:2504.20926", lambda: bitldp.BRR(100, epsilon=1.0)),
    (
        "exponential, 20 points, paper",
        "McSherry and Talwar 2007",
        lambda: bitldp.Exponential(20, epsilon=1.0, calibration="paper"),
    ),
    (
        "L-SRR, 60 places in the plane, paper",
        "Wang et al. 2022",
        lambda: bitldp.LSRR(_PLACES, epsilon=1.0, calibration="paper"),
    ),
    ("EXP, 100 dimensions", "FedSel, Lemma 1", lambda: bitldp.EXP(100, epsilon=1.0)),
    (
        "PE, 2 dimensions, k 1, paper",
        "FedSel, Lemma 2",
        lambda: bitldp.PE(2, k=1, epsilon=1.0, calibration="paper"),
    ),
    ("PS, 100 dimensions, k 10", "FedSel, Lemma 3", lambda: bitldp.PS(100, k=10, epsilon=1.0)),
    (
        "Duchi, 2 dimensions by half-cubes, paper",
        "Duchi et al. 2018",
        lambda: bitldp.Duchi(epsilon=1.0, features=2, spend="cube", calibration="paper"),
    ),
    ("MVU, 3 bits", "Chaudhuri et al. 2022", lambda: bitldp.MVU(epsilon=1.0)),
    (
        "RS+FD, GRR, 2 attributes of 10 categories",
        "Arcolezi et al. 2021",
        lambda: _SampledAmongFake((10,) * 2, 1.0),
    ),
    (
        "RS+FD, GRR, 10 attributes of 10 categories",
        "Arcolezi et al. 2021",
        lambda: _SampledAmongFake((10,) * 10, 1.0),
    ),
)


def claims() -> list[Claim]:
    """Build the published settings, and return their claimed and exact epsilon.

    Returns
    -------
    list of Claim
        Computed from the channels that this package samples with, not quoted.
    """
    with warnings.catch_warnings():
        # The table is about the claims that fail.
        warnings.simplefilter("ignore", PrivacyClaimWarning)
        return [Claim(setting, source, build().guarantee) for setting, source, build in _SETTINGS]


_HEADER = (
    "Setting",
    "Claimed by",
    "Claimed ε",
    "Exact ε, record",
    "Exact ε, feature",
    "Exact ε, bit",
    "Holds",
)


def _cells(claim: Claim) -> tuple[str, ...]:
    g = claim.guarantee
    figures = (number(value) for value in (g.claimed, g.record, g.feature, g.bit))
    return (claim.setting, claim.source, *figures, "yes" if g.holds else "NO")


def claims_markdown(rows: Sequence[Claim] | None = None) -> str:
    """Return `claims` as a Markdown table, for the documentation."""
    lines = [_HEADER, tuple("---" if i < 2 else "---:" for i in range(len(_HEADER)))]
    lines += [_cells(row) for row in (claims() if rows is None else rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def claims_table(rows: Sequence[Claim] | None = None) -> Table:
    """Return `claims` as a rich table (extra ``cli``)."""
    require("a table", ["rich"], "cli")
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="Claimed epsilon against the exact one", box=SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(_HEADER):
        # Figures are never cut, however narrow the terminal.
        heading = name if i < 2 else name.replace(", ", ",\n")
        table.add_column(heading, justify="left" if i < 2 else "right", no_wrap=i >= 2)
    for row in claims() if rows is None else rows:
        table.add_row(*_cells(row), style=None if row.guarantee.holds else "bold")
    return table
