"""Table and drawing of an attack: its success against the exact epsilon, below that epsilon's ceiling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bitldp.privacy import ceiling

from bitldp_papers.attacks.subjects import Attacked
from bitldp_papers.figures.drawing import Line, lines
from bitldp_papers.figures.result import Compared, FigureResult

__all__ = ["WORDS", "outcome"]

#: Each attack in words, for titles and tables.
WORDS = {
    "linkage": "source of a report found",
    "membership": "target told from another person",
    "inversion": "record attacked from a gradient",
}
_MOST = 3e4  # where an infinite epsilon is drawn


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
    candidates = round(1.0 / attacked[0].chance)
    among = f"{attack} among {candidates:,}" if candidates > 2 else attack
    compared = [
        Compared(
            f"{among}: {each.mechanism}",
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

    worst = max(attacked, key=lambda each: each.mean if math.isfinite(each.exact) else 0.0)
    honest = [each for each in attacked if each.exact <= each.claimed]
    least = min(honest, key=lambda each: each.exact)
    return FigureResult(
        [{"data": data, **each.row(attack)} for each in attacked],
        draw,
        compared,
        honest=f"at an exact epsilon of {least.exact:.3g} no attack succeeds more often than "
        f"{least.ceiling:.2g}; this one does in {max(e.mean for e in honest if e.exact == least.exact):.2g}",
        verdict=f"{worst.mechanism}, claimed {worst.claimed:g}, exact {worst.exact:,.0f}: "
        f"{WORDS[attack]} in {worst.mean:.1%} of trials, where the claim would allow "
        f"{ceiling(worst.claimed, candidates):.2g}",
        parameters={"data": data, "candidates": candidates, "trials": trials},
    )
