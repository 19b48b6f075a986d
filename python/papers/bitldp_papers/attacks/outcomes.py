"""Table and drawing of an attack: its success against the exact epsilon, below that epsilon's ceiling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bitldp.privacy import ceiling

from bitldp_papers.attacks.subjects import CONFIDENCE, Attacked
from bitldp_papers.figures.compared import Compared
from bitldp_papers.figures.drawing import Line, lines
from bitldp_papers.figures.findings import Finding
from bitldp_papers.figures.result import FigureResult

__all__ = ["WORDS", "among", "claims", "outcome"]

#: Each attack in words, for titles and tables.
WORDS = {
    "linkage": "source of a report found",
    "membership": "target told from another person",
    "inversion": "record attacked from gradients",
}
_MOST = 3e4  # where an infinite epsilon is drawn


def among(attack: str, attacked: Sequence[Attacked]) -> str:
    """Return the attack with its candidates, and its rounds if there are several."""
    candidates, rounds = attacked[0].candidates, attacked[0].rounds
    found = f"{attack} among {candidates:,}" if candidates > 2 else attack
    return f"{found}, {rounds} rounds" if rounds > 1 else found


def outcome(attack: str, data: str, attacked: Sequence[Attacked], trials: int) -> FigureResult:
    """Return the results of an attack as those of a figure.

    Parameters
    ----------
    attack : {"linkage", "membership", "inversion"}
    data : str
        Whose records were attacked.
    attacked : sequence of Attacked
    trials : int
        For each seed.
    """
    head, candidates = among(attack, attacked), attacked[0].candidates
    compared = [
        Compared(
            f"{head}: {each.mechanism}",
            None,
            each.mean,
            None if math.isnan(each.deviation) else each.deviation,
            each.exact,
            each.claimed,
        )
        for each in attacked
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        names = list(dict.fromkeys(each.mechanism for each in attacked))
        shown: dict[str, Line] = {}
        for name in names:
            own = [each for each in attacked if each.mechanism == name]
            spread = [0.0 if math.isnan(each.deviation) else each.deviation for each in own]
            shown[name] = ([min(each.exact, _MOST) for each in own], [each.mean for each in own], spread)
        steps = [10.0 ** (step / 20.0 - 1.0) for step in range(111)]
        axes.plot(
            steps,
            [ceiling(step, candidates) for step in steps],
            color="0.45",
            linestyle=":",
            label="what epsilon allows",
        )
        label = "exact epsilon of a record (at the right end: none)"
        lines(axes, shown, xscale="log", xlabel=label, ylabel=f"share: {WORDS[attack]}")
        axes.set_ylim(-0.02, 1.04)

    honest = [each for each in attacked if each.is_true]
    least = min(honest, key=lambda each: each.exact)
    return FigureResult(
        [{"data": data, **each.row(attack)} for each in attacked],
        draw,
        compared,
        honest=f"at an exact epsilon of {least.exact:.3g} no attack succeeds more often than "
        f"{least.ceiling:.2g}; this one does in {max(e.mean for e in honest if e.exact == least.exact):.2g}",
        findings=claims(attack, attacked),
        parameters={
            "data": data,
            "candidates": candidates,
            "trials": trials,
            "rounds": attacked[0].rounds,
            "confidence": CONFIDENCE,
        },
    )


def claims(attack: str, attacked: Sequence[Attacked]) -> list[Finding]:
    """Return a finding for each epsilon that a paper claims: whether a record has it, in all rounds.

    The exact epsilon decides; what the attack proves by itself stands beside it.
    """
    return [
        Finding(
            f"{each.mechanism}: the claimed {each.claimed:g}{_times(each.rounds)} is what a record has",
            each.exact <= each.claimed * each.rounds,
            f"exactly {each.exact:,.4g}; {WORDS[attack]} in {each.mean:.1%} of "
            f"{each.trials * len(each.wins):,} trials, where the claim allows "
            f"{ceiling(each.claimed * each.rounds, each.candidates):.2g}: that alone proves "
            f"{each.proven():.3g} at {CONFIDENCE:.0%} confidence",
        )
        for each in attacked
        if math.isfinite(each.claimed) and not each.is_true
    ]


def _times(rounds: int) -> str:
    return f" in each of {rounds} rounds" if rounds > 1 else ""
