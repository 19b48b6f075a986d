"""Tables and plots: what is claimed against what is exact, and accuracy against exact epsilon."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import bitldp
from bitldp._extras import require
from bitldp.privacy import Guarantee, PrivacyClaimWarning, added, composed

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "Claim",
    "Total",
    "accuracy_plot",
    "claims",
    "claims_markdown",
    "claims_table",
    "number",
    "rounds_plot",
    "total",
]


def number(value: float, digits: int = 4) -> str:
    """Write a number for a person: `digits` significant ones, thousands apart, infinity as a word."""
    if math.isinf(value):
        return "infinite"
    if value == 0 or 1e-4 <= abs(value) < 10 ** min(digits, 4):
        return f"{value:.{digits}g}"
    return f"{value:,.0f}" if 1 <= abs(value) < 1e9 else f"{value:.{digits - 1}e}"


@dataclass(frozen=True)
class Total:
    """Privacy of a record whose parts are randomized independently.

    Attributes
    ----------
    claimed, record : float
        Sums of the claimed and of the exact epsilon of the parts, the exact one rounded up.
    delta : float
        Sum of the deltas, at most 1.
    holds : bool
        Whether every part's claim holds.
    """

    claimed: float
    record: float
    delta: float
    holds: bool


def total(guarantees: Sequence[Guarantee], features: Sequence[int] | None = None) -> Total:
    """Add up the guarantees of independent parts of a record (basic composition).

    Parameters
    ----------
    guarantees : sequence of Guarantee
        One a part.
    features : sequence of int, optional
        Features of each part: a claim that covers one feature counts once for each. Without it, such a claim
        counts as the part's exact epsilon of the record.

    Returns
    -------
    Total
        For neighbouring records that differ in every part.
    """
    sizes = [None] * len(guarantees) if features is None else features
    claimed = [
        g.claimed if g.unit == "record" else g.record if size is None else composed(g.claimed, size)
        for g, size in zip(guarantees, sizes, strict=True)
    ]
    return Total(
        claimed=math.fsum(claimed),
        record=added(*(g.record for g in guarantees)),
        delta=min(1.0, added(*(g.delta for g in guarantees))),
        holds=all(g.holds for g in guarantees),
    )


@dataclass(frozen=True)
class Claim:
    """One published setting and what it is worth.

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
        lambda: bitldp.PE(2, 1, epsilon=1.0, calibration="paper"),
    ),
    ("PS, 100 dimensions, k 10", "FedSel, Lemma 3", lambda: bitldp.PS(100, 10, epsilon=1.0)),
    (
        "Duchi, 2 dimensions by half-cubes, paper",
        "Duchi et al. 2018",
        lambda: bitldp.Duchi(1.0, features=2, spend="cube", calibration="paper"),
    ),
    ("MVU, 3 bits", "Chaudhuri et al. 2022", lambda: bitldp.MVU(1.0)),
)


def claims() -> list[Claim]:
    """Build the published settings and return what they claim and what is exact.

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
    """Return `claims` as a Markdown table, for the README."""
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


def accuracy_plot(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    references: Mapping[str, Mapping[str, float]],
    path: str | PathLike[str],
    *,
    title: str,
) -> None:
    """Save accuracy against exact epsilon of a record as a PNG, a panel a data set and a line a mechanism.

    Parameters
    ----------
    panels : mapping
        ``{data set: {mechanism: [(exact epsilon of a record, accuracy), ...]}}``.
    references : mapping
        ``{data set: {name: accuracy}}``: horizontal lines.
    path : path
        The file to write.
    title : str
        Title of the figure.

    Raises
    ------
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    require("a plot", ["matplotlib"], "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter, PercentFormatter

    figure = Figure(figsize=(6.4 * len(panels), 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    styles = dict(
        zip(sorted({name for lines in panels.values() for name in lines}), _STYLES * 3, strict=False)
    )
    for axis, (data, lines) in zip(axes, panels.items(), strict=True):
        for name, points in lines.items():
            ordered = sorted(point for point in points if 0 < point[0] < math.inf)
            color, marker = styles[name]
            axis.plot(*zip(*ordered, strict=True), color=color, marker=marker, label=name, linewidth=1.8)
        for (name, level), dashes in zip(references.get(data, {}).items(), ("--", ":", "-."), strict=False):
            axis.axhline(level, color="0.25", linestyle=dashes, linewidth=1.2, label=name)
        axis.set(
            xscale="log",
            xlabel="exact epsilon of a record (features and label)",
            title=data,
            ylim=(0.0, 1.02),
        )
        axis.xaxis.set_major_formatter(LogFormatter())
        axis.yaxis.set_major_formatter(PercentFormatter(1.0))
        axis.grid(True, which="major", color="0.9")
    axes[0].set_ylabel("accuracy on clean test records")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title)
    figure.savefig(path, dpi=130, format="png")


def rounds_plot(
    rows: Sequence[Mapping[str, Any]], metric: str, path: str | PathLike[str], *, title: str
) -> None:
    """Save a score of a federated run by round as a PNG.

    Parameters
    ----------
    rows : sequence of mapping
        The lines of a run's metrics: "round", and the score under `metric`, or None.
    metric : str
        Name of the score; "accuracy" is drawn from 0 to 100 %.
    path : path
        The file to write.
    title : str

    Raises
    ------
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    require("a plot", ["matplotlib"], "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(6.8, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    points = [(row["round"], row[metric]) for row in rows if row.get(metric) is not None]
    color, marker = _STYLES[0]
    axis.plot(*zip(*points, strict=True), color=color, marker=marker, markersize=4, linewidth=1.8)
    axis.set(xlabel="round", ylabel=f"{metric} on clean test records", title=title)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    if metric == "accuracy":
        axis.set_ylim(0.0, 1.02)
        axis.yaxis.set_major_formatter(PercentFormatter(1.0))
    axis.grid(True, which="major", color="0.9")
    figure.savefig(path, dpi=130, format="png")


# Okabe and Ito's colours, told apart by colour-blind readers and, with the markers, in grey.
_STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#000000", "X"),
)
