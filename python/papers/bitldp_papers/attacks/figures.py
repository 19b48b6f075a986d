"""Figures of the attacks: on records and gradients, at the papers' settings and at a true epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bitldp_papers.attacks import ATTACKS
from bitldp_papers.attacks.inversion import inversion
from bitldp_papers.attacks.outcomes import claims, outcome
from bitldp_papers.attacks.subjects import Attacked
from bitldp_papers.figures import Compared, FigureResult, FigureRun, figure, spread
from bitldp_papers.figures.drawing import Line, panels

_DATA = "ag_news"
_SMALL = "digits"


def _attacked(run: FigureRun, name: str, trials: Sequence[int]) -> FigureResult:
    run.data(_DATA)
    quick, medium, full = trials
    count = run.choose(quick=quick, medium=medium, full=full)
    attacked = list[Attacked]()
    for each in ATTACKS[name](_DATA, seeds=run.seeds, trials=count):
        next(run.each((each.mechanism,), name))
        attacked.append(each)
    return outcome(name, _DATA, attacked, count)


for _name, _source, _title, _claim, _minutes, _trials in (
    (
        "linkage",
        "the threat that BitRand and LDPFL name and do not test",
        "Linkage: which of 7,600 news stories a released record is of",
        "A record that is released at epsilon .1 to 1 cannot be recognized.",
        (0.5, 1.0, 3.0),
        (100, 300, 1000),
    ),
    (
        "membership",
        "the threat that every paper names and none tests",
        "Membership: whether a report is of a target or of somebody else",
        "Whoever sees a report can hardly tell whose it is.",
        (0.2, 0.3, 0.5),
        (500, 1000, 2000),
    ),
    (
        "inversion",
        "gradient inversion, which FedSel, MVU and BitRand name as the threat",
        "Inversion: whose record a released gradient was made of",
        "A gradient that is released through a mechanism no longer gives the record away.",
        (1.2, 3.0, 10.0),
        (20, 50, 200),
    ),
):
    figure(f"attack-{_name}", source=f"ours: {_source}", title=_title, claim=_claim, minutes=_minutes)(
        partial(_attacked, name=_name, trials=_trials)
    )


@figure(
    "attack-rounds",
    source="ours: the systems of BRR, MVU and FedSel release in every round",
    title="Inversion over a run of rounds, with an epsilon of each",
    claim="A budget that is small in each round protects the record in a run of rounds.",
    minutes=(1.2, 3.0, 16.0),
)
def rounds(run: FigureRun) -> FigureResult:
    """Attack a training of one, several and many rounds; the log-likelihoods of the rounds are added."""
    run.data(_SMALL)
    steps = run.choose(quick=(1, 3, 10, 30), medium=(1, 3, 10, 30), full=(1, 3, 10, 30, 100))
    trials = run.choose(quick=20, medium=50, full=100)
    seeds = run.seeds
    attacked = [
        each
        for number in run.each(steps, "rounds")
        for each in inversion(
            _SMALL, seeds=seeds, epsilons=(1.0, 8.0), trials=trials, rounds=number, claims=(0.3, 1.0)
        )
    ]

    def line(name: str, claimed: float) -> Line:
        own = [each for each in attacked if (each.mechanism, each.claimed) == (name, claimed)]
        bars = [spread(each.successes) or 0.0 for each in own]
        return [each.rounds for each in own], [each.mean for each in own], bars

    names = list(dict.fromkeys((each.mechanism, each.claimed) for each in attacked))
    shown = {
        f"{name}, {claimed:g}" + (" for all rounds" if name == "CrossPolytope" else " a round"): line(
            name, claimed
        )
        for name, claimed in names
    }
    compared = [
        Compared.scored(
            f"{each.mechanism}, {each.rounds} rounds", None, each.successes, each.exact, each.claimed
        )
        for each in attacked
    ]
    last = [each for each in attacked if each.rounds == 30]
    honest = max((each for each in last if each.is_true), key=lambda each: each.mean)
    return FigureResult(
        [{"data": _SMALL, **each.row("inversion")} for each in attacked],
        panels(
            {"": shown},
            xscale="log",
            xlabel="rounds",
            ylabel="share of records found",
            ylim=(-0.02, 1.04),
        ),
        compared,
        honest=f"CrossPolytope with {honest.claimed:g} for the whole run: {honest.mean:.2g} after 30 rounds, "
        f"at most {honest.ceiling:.2g}",
        findings=claims("inversion", last),
        parameters={"data": _SMALL, "candidates": last[0].candidates, "trials": trials, "rounds": steps},
    )
