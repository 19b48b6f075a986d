"""``bitldp demo``: a table of people is released at the ε that people use, and asked.

The records are real: 20,190 person-years of the RAND Health Insurance Experiment, which statsmodels brings.
Each record is randomized once, as a whole, and the questions are answered from the released table alone.
"""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

import bitldp
from bitldp.base.errors import require
from bitldp.base.palette import STYLES
from bitldp.cli.screen import print_whole, sentences, wide_console
from bitldp.privacy import PrivacyClaimWarning
from bitldp.report import claims, plot_claims
from bitldp.report.axes import plot_variance
from bitldp.tables import ReleasedTable, ReleaseKey, TableAnswer, TablePlan
from bitldp.tables.draft import draft_plan, questions_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["DemoAnswer", "demo", "people", "run"]

#: Budgets of a record: each is a release of its own.
BUDGETS = (0.5, 1.0, 2.0, 4.0)
#: Visits above the second number are counted as that many.
VISITS = (0.0, 15.0)
HEALTH = ("excellent", "good", "fair", "poor")
INSURANCE = ("free", "shared")
QUESTIONS = "share(health); mean(visits); mean(visits) by health; table(health, insurance)"
#: Five papers, by how `claims` names them.
_PAPERS = ("BitRand", "LDPFL", "Chaudhuri", "FedSel", "BRR")
_CURVE = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_SPEED_ROWS = 400_000
_NEXT = (
    ("your own file", "bitldp plan FILE --epsilon 2 --columns ..., then bitldp perturb and bitldp estimate"),
    ("one mechanism", "bitldp recommend mean --epsilon 1; bitldp explain piecewise --epsilon 1"),
    ("a paper's claim", "bitldp explain --claims"),
    ("learning", "bitldp demo --learning; bitldp.federated for Flower apps"),
)


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="PNG file to write the plot to.")] = Path(
        "demo-output"
    )
    / "demo.png",
    learning: Annotated[
        bool, typer.Option("--learning", help="Train on randomized records instead, at ε 10 and more.")
    ] = False,
) -> None:
    """Release a table of real people, ask it questions, and compare the answers with the truth."""
    with sentences():
        if learning:
            from bitldp.cli import learning as trained

            trained.run(out, wide_console())
        else:
            run(out, wide_console())


@dataclass(frozen=True)
class DemoAnswer:
    """Answer to one question at one budget, beside the truth.

    Attributes
    ----------
    question : str
        Its words, such as "share: good".
    epsilon : float
        Exact epsilon of a record, for any two records.
    truth, estimate, low, high : float
        True value, estimate and its 95 % interval. The estimate is NaN where too few records are left.
    """

    question: str
    epsilon: float
    truth: float
    estimate: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """True where the interval holds the truth."""
        return self.low <= self.truth <= self.high


def people() -> pa.Table:
    """Load the records: id, visits, health and insurance of 20,190 person-years.

    Returns
    -------
    pyarrow.Table
        "visits" are those to a doctor in that year; "health" is the person's own word; "insurance" says who
        pays. Source: RAND Health Insurance Experiment, in the public domain, by ``statsmodels.datasets``.
    """
    require("the demo", ["statsmodels"], "demo")
    from statsmodels.datasets import randhie

    years = randhie.load_pandas().data
    poor, fair, good = (years[name].to_numpy() == 1 for name in ("hlthp", "hlthf", "hlthg"))
    return pa.table(
        {
            "id": np.arange(len(years)),
            "visits": years["mdvis"].to_numpy(float),
            "health": np.select([poor, fair, good], ["poor", "fair", "good"], "excellent"),
            "insurance": np.where(years["lncoins"].to_numpy() == 0.0, "free", "shared"),
        }
    )


def plan_of(epsilon: float, table: pa.Table) -> TablePlan:
    """Return the plan that the package drafts for the questions, from the types and public facts alone."""
    draft = draft_plan(
        table.schema,
        epsilon=epsilon,
        columns=["visits", "health", "insurance"],
        intervals={"visits": VISITS},
        categories={"health": HEALTH, "insurance": INSURANCE},
        questions=questions_of(QUESTIONS),
        records=table.num_rows,
    )
    return draft.plan


def _key(epsilon: float) -> ReleaseKey:
    """Return the key of one release, which everybody can read here, so that the demonstration repeats."""
    return ReleaseKey(hashlib.sha256(f"bitldp demo 1 {epsilon}".encode()).digest())


def _answered(table: pa.Table, epsilon: float) -> list[DemoAnswer]:
    """Release the table at one budget, ask, and put each answer beside the truth."""
    plan = plan_of(epsilon, table)
    released = plan.release(_key(epsilon), record="id", snapshot="demo")(table)
    asked = ReleasedTable(plan, released, project=True)
    exact = plan.guarantee.record
    visits = np.clip(table["visits"].to_numpy(), *VISITS)
    health, insurance = (np.asarray(table[name].to_pylist()) for name in ("health", "insurance"))
    mine = {word: health == word for word in HEALTH}
    paid = {word: insurance == word for word in INSURANCE}

    def rows(words: str, answer: TableAnswer, truths: list[float]) -> list[DemoAnswer]:
        keys = zip(*(column.to_pylist() for column in answer.keys.values()), strict=True)
        names = [", ".join(filter(None, key)) for key in keys] or [""]
        low, high = answer.interval
        shown = zip(names, truths, answer.estimate.tolist(), low.tolist(), high.tolist(), strict=True)
        return [DemoAnswer(f"{words}: {name}".rstrip(": "), exact, *rest) for name, *rest in shown]

    means = [float(visits[own].mean()) for own in mine.values()]
    cells = [float(np.mean(mine[each] & paid[who])) for each in HEALTH for who in INSURANCE]
    return [
        *rows("share", asked.share("health"), [float(own.mean()) for own in mine.values()]),
        *rows("mean visits", asked.mean("visits"), [float(visits.mean())]),
        *rows("mean visits", asked.mean("visits", by="health"), means),
        *rows("both", asked.table("health", "insurance"), cells),
    ]


def _table(by_budget: list[list[DemoAnswer]], records: int) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=f"{records:,} people, each record randomized once: true answers, and answers of the releases",
        box=SIMPLE_HEAD,
        padding=(0, 1),
        show_edge=False,
    )
    table.add_column("question")
    table.add_column("truth", justify="right", no_wrap=True)
    for answers in by_budget:
        table.add_column(f"ε = {answers[0].epsilon:.3g}", justify="right", no_wrap=True)
    before = ""
    for row in zip(*by_budget, strict=True):
        if before and row[0].question.split(":")[0] != before:
            table.add_section()
        before = row[0].question.split(":")[0]
        table.add_row(row[0].question, f"{row[0].truth:.3f}", *map(_cell, row))
    return table


def _cell(answer: DemoAnswer) -> str:
    """Return estimate and interval; ``*`` where the interval misses the truth."""
    if math.isnan(answer.estimate):
        return "too few records"
    mark = " " if answer.holds else "*"
    return f"{answer.estimate:.3f} ({answer.low:.3f} to {answer.high:.3f}){mark}"


def _speed(table: pa.Table) -> float:
    """Return rows a second that are released from memory, the best of three."""
    rows = np.resize(np.arange(table.num_rows), _SPEED_ROWS)
    many = table.take(rows).set_column(0, "id", pa.array(np.arange(_SPEED_ROWS)))
    release = plan_of(1.0, table).release(_key(1.0), record="id", snapshot="speed")
    times = []
    for _ in range(3):
        start = time.perf_counter()
        release(many)
        times.append(time.perf_counter() - start)
    return _SPEED_ROWS / min(times)


def run(out: Path, console: Console) -> list[DemoAnswer]:
    """Run the demonstration: print the table, draw the picture.

    Parameters
    ----------
    out : pathlib.Path
        The picture to write (PNG); its folder is made.
    console : rich.console.Console
        Where the table goes.

    Returns
    -------
    list of DemoAnswer
        All answers, budget by budget.
    """
    require("the demo", ["statsmodels", "matplotlib", "rich"], "demo")
    start = time.perf_counter()
    table = people()
    by_budget = [_answered(table, epsilon) for epsilon in BUDGETS]
    every = [answer for answers in by_budget for answer in answers]
    print_whole(console, _table(by_budget, table.num_rows))
    given = [answer for answer in every if not math.isnan(answer.estimate)]
    held = sum(answer.holds for answer in given)
    console.print(
        f"{held} of {len(given)} intervals of 95 % hold the truth (* marks a miss). Shares are of "
        f"self-rated health, and of health and insurance together; visits above {VISITS[1]:g} count as "
        f"{VISITS[1]:g}. Each ε is a separate release.",
        markup=False,
        highlight=False,
    )
    console.print(
        "What one report reveals: at ε = 1, it changes the odds between any two records that a person may "
        f"have by a factor of at most e = {math.e:.2f}.",
        markup=False,
        highlight=False,
    )
    console.print(f"Speed: {_speed(table) / 1e6:.1f} million rows a second.", markup=False, highlight=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    _picture(by_budget, out)
    for what, line in _NEXT:
        console.print(f"Next, {what}: {line}", markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"Data: RAND Health Insurance Experiment, public domain, from statsmodels. Plot: {out}. "
        f"{time.perf_counter() - start:.0f} s.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return every


# -- the picture


def _picture(by_budget: list[list[DemoAnswer]], out: Path) -> None:
    """Draw answers beside the truth, errors of mechanisms, and claims of papers."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(19.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    _forest(left, by_budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)  # the picture is about it
        plot_variance(_ways(), _CURVE, ax=middle)
        shown = [each for each in claims() if each.source.startswith(_PAPERS)]
        plot_claims(shown, ax=right)
    named = middle.lines[0]  # a band, so that a line on it does not hide it
    named.set(linewidth=6.0, alpha=0.45, markersize=11.0)
    middle.set(title="Error of one report of a number in [-1, 1]", ylabel="variance, mean over inputs")
    middle.set_xticks(_CURVE, [f"{each:g}" for each in _CURVE])
    middle.legend()
    right.set(title="Claimed and exact ε of the papers' settings")
    for place, each in enumerate(shown):
        if not each.guarantee.holds:
            exact = each.guarantee.record
            says = f"is {exact:.2f}"
            if exact > 10.0:
                says = f"claims {each.guarantee.claimed:g}, is {exact:,.0f}"
            near = (exact, place) if exact < 10 else (each.guarantee.claimed, place)
            right.annotate(says, near, (9, 4), textcoords="offset points", fontsize=9)
    right.legend(loc="lower right")
    for axes in (left, middle, right):
        axes.grid(True, which="major", color="0.92", linewidth=0.7)
        axes.set_axisbelow(True)
    figure.savefig(out, dpi=110, format="png")


def _forest(axes: Any, by_budget: list[list[DemoAnswer]]) -> None:
    """Draw truth and intervals of the shares of health and of the cells, at each budget."""
    shown = [i for i, each in enumerate(by_budget[0]) if not each.question.startswith("mean")]
    places: NDArray[np.float64] = np.arange(len(shown), dtype=float)
    for number, answers in enumerate(by_budget):
        own = [answers[i] for i in shown]
        value = np.array([each.estimate for each in own])
        sides = np.maximum([value - [each.low for each in own], [each.high for each in own] - value], 0.0)
        color, marker = STYLES[number]
        place = places + 0.18 * (number - 1.5)
        axes.errorbar(
            *(value, place),
            xerr=sides,
            fmt=marker,
            color=color,
            markersize=4,
            capsize=2,
            linewidth=1.2,
            label=f"ε = {own[0].epsilon:.3g}",
        )
    for place, i in zip(places, shown, strict=True):
        truth = by_budget[0][i].truth
        label = "truth" if place == 0 else None
        axes.plot([truth, truth], [place - 0.42, place + 0.42], color="black", linewidth=1.6, label=label)
    axes.set_yticks(places, [by_budget[0][i].question for i in shown])
    axes.invert_yaxis()
    axes.set(xlabel="share of people, 95 % intervals", title="Answers from the released tables")
    axes.legend(loc="lower right")


def _ways() -> dict[str, Any]:
    """Return the papers' mechanisms for one number, and the one that `recommend` names at each budget.

    BRR is missing: at small ε its reports have no unbiased decode.
    """

    def named(epsilon: float) -> Any:
        return bitldp.recommend("mean", epsilon=epsilon).mechanism

    return {
        "what recommend names": named,
        "f-RR (BitRand), 8 bits": lambda epsilon: bitldp.FRR(1, bits=8, integer_bits=0, epsilon=epsilon),
        "MOUE (LDPFL), 8 bits": lambda epsilon: bitldp.MOUE(1, bits=8, integer_bits=0, epsilon=epsilon),
        "MVU, 3 bits": lambda epsilon: bitldp.MVU(epsilon=epsilon, interval=(-1.0, 1.0)),
    }
