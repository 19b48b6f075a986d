"""Figures of the attacks: on records and gradients of AG, at the papers' settings and at a true epsilon."""

from __future__ import annotations

from functools import partial

from bitldp_papers.attacks import ATTACKS
from bitldp_papers.attacks.outcomes import outcome
from bitldp_papers.attacks.subjects import Attacked
from bitldp_papers.figures import FigureResult, FigureRun, figure

_DATA = "ag_news"


def _attacked(run: FigureRun, name: str, quick: int, full: int) -> FigureResult:
    run.data(_DATA)
    trials = quick if run.quick else full
    attacked = list[Attacked]()
    for each in ATTACKS[name](_DATA, seeds=run.seeds, trials=trials):
        next(run.each((each.mechanism,), name))
        attacked.append(each)
    return outcome(name, _DATA, attacked, trials)


for _name, _source, _title, _claim, _minutes, _trials in (
    (
        "linkage",
        "the threat that BitRand and LDPFL name and do not test",
        "Linkage: which of 7,600 news stories a released record is of",
        "A record that is released at epsilon .1 to 1 cannot be recognized.",
        (0.5, 3.0),
        (100, 2000),
    ),
    (
        "membership",
        "the threat that every paper names and none tests",
        "Membership: whether a report is of a target or of somebody else",
        "Whoever sees a report can hardly tell whose it is.",
        (0.2, 0.5),
        (500, 5000),
    ),
    (
        "inversion",
        "gradient inversion, which FedSel, MVU and BitRand name as the threat",
        "Inversion: whose record a released gradient was made of",
        "A gradient that is released through a mechanism no longer gives the record away.",
        (0.5, 3.0),
        (50, 500),
    ),
):
    figure(f"attack-{_name}", source=f"ours: {_source}", title=_title, claim=_claim, minutes=_minutes)(
        partial(_attacked, name=_name, quick=_trials[0], full=_trials[1])
    )
