"""Figures of the attacks: on records and gradients of AG, at the papers' settings and at a true epsilon."""

from __future__ import annotations

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


@figure(
    "attack-linkage",
    source="ours: the threat that BitRand and LDPFL name and do not test",
    title="Linkage: which of 7,600 news stories a released record is of",
    claim="A record that is released at epsilon .1 to 1 cannot be recognized.",
    minutes=(0.5, 3.0),
)
def linked(run: FigureRun) -> FigureResult:
    """Release records, and look for the source of each among all."""
    return _attacked(run, "linkage", 100, 2000)


@figure(
    "attack-membership",
    source="ours: the threat that every paper names and none tests",
    title="Membership: whether a report is of a target or of somebody else",
    claim="Whoever sees a report can hardly tell whose it is.",
    minutes=(0.2, 0.5),
)
def told_apart(run: FigureRun) -> FigureResult:
    """Release records of targets or of others, and let the attacker call which."""
    return _attacked(run, "membership", 500, 5000)


@figure(
    "attack-inversion",
    source="ours: gradient inversion, which FedSel, MVU and BitRand name as the threat",
    title="Inversion: whose record a released gradient was made of",
    claim="A gradient that is released through a mechanism no longer gives the record away.",
    minutes=(0.5, 3.0),
)
def inverted(run: FigureRun) -> FigureResult:
    """Release gradients of one record each, and compute the records from them."""
    return _attacked(run, "inversion", 50, 500)
