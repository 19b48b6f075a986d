"""Statements of the papers that are no setting's epsilon: whether they hold, and why not, in a sentence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import bitldp
from bitldp.base.errors import missing, require
from bitldp.compression import CLDP, MVU, BitwiseRR, GeneralizedRR, LaplaceBall, MetricMVU
from bitldp.points.brr import limit_ratio, printed_limit_ratio
from bitldp.points.width import equidistant_width, printed_equidistant_width
from bitldp.privacy import PrivacyClaimWarning, number

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Verdict", "verdicts", "verdicts_markdown", "verdicts_table"]


@dataclass(frozen=True)
class Verdict:
    """One statement of a paper.

    Attributes
    ----------
    statement : str
        In a few words.
    source : str
        Where it stands.
    holds : bool
    reason : str
        One sentence, with what was computed.
    """

    statement: str
    source: str
    holds: bool
    reason: str


_Judged = tuple[bool, str]


def _limit() -> _Judged:
    count, epsilon = 20_000, 2.0
    brr, grr = (bitldp.BRR(count, epsilon=epsilon, m=m).expected_error() for m in ("paper", 1))
    printed, right = printed_limit_ratio(epsilon), limit_ratio(epsilon)
    return math.isclose(brr / grr, printed, rel_tol=1e-3), (
        f"at epsilon 2 the printed limit is {printed:.4f}; the ratio at {count:,} points is "
        f"{brr / grr:.4f}, and "
        f"its limit (7h + 9)/(4(h + 1)^2), h = e^(epsilon/2), is {right:.4f}"
    )


def _wrong_widths(sizes: Sequence[int], budgets: Sequence[float]) -> tuple[int, str]:
    wrong = sum(
        printed_equidistant_width(count, epsilon) != equidistant_width(count, epsilon)
        for count in sizes
        for epsilon in budgets
    )
    return wrong, f"{wrong} of {len(sizes) * len(budgets)}"


def _algorithm_3() -> _Judged:
    wrong, shown = _wrong_widths(range(5, 115), (0.2, 0.4, 0.6, 0.8))
    return (
        wrong == 0,
        f"below epsilon 1 its m is another than Algorithm 2's in {shown} settings: even i gives i - 1, not "
        "i + 1",
    )


def _theorem_1() -> _Judged:
    wrong, shown = _wrong_widths(range(5, 115), (1.0, 2.0, 3.0, 4.0))
    return (
        wrong == 0,
        f"the end point alone gives another m than Algorithm 2 in {shown} settings: the middle point still "
        "binds",
    )


def _optimal() -> _Judged:
    paper, best = (bitldp.BRR(24, epsilon=2.0, m=m).expected_error() for m in ("paper", "best"))
    reason = f"another m of the same law is better by {1.0 - best / paper:.1%} (24 points, epsilon 2)"
    if not missing(["scipy"]):
        ratios = [
            bitldp.BRR(24, epsilon=e).expected_error() / bitldp.OptimalUtility(24, epsilon=e).expected_error()
            for e in (0.5, 1.0, 2.0, 4.0)
        ]
        shown = ", ".join(f"{each:.3f}" for each in ratios)
        reason += (
            f"; over the optimal law of a linear program its error is {shown} times at epsilon .5, 1, 2, 4"
        )
    return best >= paper, reason


def _regions() -> _Judged:
    made = bitldp.BRR(6, epsilon=1.0, regions=[0, 0, 0, 1, 1, 1])
    law = made.probabilities()
    apart = bool((law[:3, 3:] == 0.0).all() and (law[3:, 3:] > 0.0).all())
    exact = math.inf if apart else made.guarantee.record
    return not apart, (
        "a report never leaves the region of its place, so it tells the region: "
        f"{number(made.guarantee.record)} is the "
        f"exact epsilon between places of one region, over all places it is {number(exact)}"
    )


def _mvu_lowest() -> _Judged:
    x = np.linspace(-1.0, 1.0, 401)
    shares = []
    for epsilon in (1.0, 3.0, 5.0):
        others: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = [
            BitwiseRR(epsilon=epsilon, bits=3).variance(x),
            GeneralizedRR(epsilon=epsilon, bits=3).variance(x),
            CLDP(1, epsilon=epsilon).variance(x[:, None]).reshape(-1),
        ]
        ours = MVU(epsilon=epsilon).variance(x)
        shares.append(float(np.mean(ours < np.min(others, axis=0))))
    shown = ", ".join(f"{share:.0%}" for share in shares)
    return min(shares) == 1.0, f"with 3 bits it is lowest on {shown} of the inputs at epsilon 1, 3, 5"


def _sensitivity() -> _Judged:
    apart = float(np.abs(np.eye(2)[0] - np.eye(2)[1]).sum())
    exact = LaplaceBall(128, epsilon=2.0).guarantee.record
    return exact <= 1.0, (
        f"two vectors of l1 norm 1 are up to {apart:g} apart: Laplace noise of scale 1/epsilon, drawn as "
        "epsilon 1, "
        f"is exactly {number(exact)}"
    )


def _metric() -> _Judged:
    slopes = [_slope(epsilon) for epsilon in (3.0, 5.0)]
    return slopes[0] <= 3.0 and slopes[1] <= 5.0, (
        f"between the points of the grid dither mixes rows: the steepest loss a length is {slopes[0]:.3f} "
        "at epsilon 3 and "
        f"{slopes[1]:.3f} at 5"
    )


def _slope(epsilon: float) -> float:
    return MetricMVU(epsilon=epsilon, metric=1.0, interval=(0.0, 1.0)).slope


def _sign_split() -> _Judged:
    up, down = (bitldp.BRR(5, epsilon=1.0, interval=ends).points for ends in ((0.0, 1.0), (-1.0, 0.0)))
    shared = len(set(up.tolist()) & set(down.tolist()))
    return shared == 5, (
        "the range is [0, c] or [-c, 0] by the gradient's sign, so a report tells the sign: of 5 points of "
        "each range "
        f"{shared} is of both, and the exact epsilon is infinite"
    )


def _theorem_5() -> _Judged:
    made = bitldp.MOUE._quiet(features=1000, epsilon=0.1, alpha=7.0, calibration="paper")
    reported, exact = made.paper_reported_epsilon(), made.guarantee.record
    return math.isclose(reported, exact, rel_tol=1e-6), (
        f"at 0.1 it reports {reported:.3f}; the exact epsilon of the record is "
        f"{exact:.4f}, "
        "below LATENT's own claim: powers of a chance by its sensitivity are no privacy loss"
    )


def _theorem_6() -> _Judged:
    made = bitldp.UER._quiet(features=1000, epsilon=0.1, alpha=100.0, calibration="paper")
    reported, exact = made.paper_reported_epsilon(), made.guarantee.record
    return math.isclose(reported, exact, rel_tol=1e-6), (
        f"at 0.1 and alpha 100 it reports {reported:,.0f}, a negative epsilon; the exact one is {exact:,.0f}"
    )


#: Table 2 of BitRand (gradients, anonymiser, AG), at epsilon 1 to 9, where both are printed.
_FRR = (72.46, 79.72, 81.42, 79.35, 81.11, 79.84, 79.50, 80.05, 81.20)
_LDP_FL = (78.73, 83.25, 84.19, 84.36, 84.22, 84.64, 84.43, 84.31, 84.72)


def _table_2() -> _Judged:
    above = sum(theirs > ours for ours, theirs in zip(_FRR, _LDP_FL, strict=True))
    return (
        above == 0,
        f"in its own table LDP-FL with the anonymiser stands above f-RR at {above} of {len(_FRR)} budgets",
    )


def _quarter() -> _Judged:
    made = bitldp.UER._quiet(features=1024, epsilon=0.5, calibration="paper")
    law = made.probabilities()[0]
    index = int(np.argmin(law[:, 0]))
    return law[index, 0] > 0.25, (
        f"a one at those positions is reported 0 with {1.0 - law[index, 0]:.4f}: not random but inverted, at "
        "an exact epsilon of "
        f"{made.guarantee.bit:.2f} a bit"
    )


def _equal_groups() -> _Judged:
    codes = [f"{index:04b}" for index in range(16)]
    made = bitldp.LSRR._quiet(
        candidates=np.arange(16.0), epsilon=1.0, calibration="paper", encoding=codes, prefixes=(2, 1)
    )
    return made.guarantee.holds, (
        "where all inputs have groups of the same sizes, all rows have one normaliser: exact "
        f"{number(made.guarantee.record)} "
        "of 1"
    )


_STATEMENTS: tuple[tuple[str, str, Callable[[], _Judged]], ...] = (
    ("The error of BRR over that of GRR tends to (7h + 1)/(4h(h + 1))", "BRR, Theorem 3", _limit),
    ("Closed form of m", "BRR, Algorithm 3", _algorithm_3),
    ("From epsilon 1 on the end point decides m", "BRR, Theorem 1.2", _theorem_1),
    ("No better mechanism exists", "BRR, Section 1", _optimal),
    ("Within regions the release is epsilon-LDP", "BRR, Section 5.3", _regions),
    ("Ranges split by the gradient's sign keep epsilon", "BRR, Sections 5.5 and 5.6", _sign_split),
    ("MVU with 3 bits has the least variance of all that compress", "MVU, Fig. 2", _mvu_lowest),
    ("The l1 sensitivity of vectors of norm 1 is 1", "MVU, Fig. 3", _sensitivity),
    ("After dither the mechanism keeps the metric's epsilon", "MVU, Section 4.1", _metric),
    ("LATENT's corrected budget", "BitRand, Theorem 5", _theorem_5),
    ("OME's corrected budget", "BitRand, Theorem 6", _theorem_6),
    ("f-RR is ahead of all baselines on gradients with the anonymiser", "BitRand, Table 2", _table_2),
    ("A quarter of the bits is heavily randomized", "LDPFL, Section IV", _quarter),
    ("The staircase with groups of equal sizes is epsilon-LDP", "L-SRR, Wang et al. 2022", _equal_groups),
)


def verdicts() -> list[Verdict]:
    """Judge the statements, each computed from the mechanisms of this package where that is possible.

    Returns
    -------
    list of Verdict
        In about two seconds.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)  # the table is about them
        judged = [(statement, source, judge()) for statement, source, judge in _STATEMENTS]
    return [Verdict(statement, source, bool(holds), reason) for statement, source, (holds, reason) in judged]


_HEADER = ("Statement", "Source", "Holds", "Because")


def _cells(verdict: Verdict) -> tuple[str, ...]:
    return verdict.statement, verdict.source, "yes" if verdict.holds else "NO", verdict.reason


def verdicts_markdown(rows: Sequence[Verdict] | None = None) -> str:
    """Return `verdicts` as a Markdown table."""
    lines = [_HEADER, ("---",) * len(_HEADER), *map(_cells, verdicts() if rows is None else rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def verdicts_table(rows: Sequence[Verdict] | None = None) -> Table:
    """Return `verdicts` as a rich table (extra ``cli``)."""
    require("a table", ["rich"], "cli")
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="What else the papers state", box=SIMPLE_HEAD, pad_edge=False)
    for name in _HEADER:
        table.add_column(name, no_wrap=name == "Holds")
    for row in verdicts() if rows is None else rows:
        table.add_row(*_cells(row), style=None if row.holds else "bold")
    return table
