"""Findings of a figure: statements of a paper, and what our numbers say of each; its verdict is these."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from bitldp_papers.figures.compared import Compared
from bitldp_papers.figures.stated import Printed

__all__ = ["WORDS", "Finding", "agreeing", "everywhere", "gain", "ordered", "p_value", "sure", "trained"]

HOLDS, FAILS = "holds", "does not hold"
SIGN, SIZE_OPEN = "sign holds, size does not", "sign holds, size not decided"
OPEN, UNTRAINED = "not decided", "not reached in this form"
CONSTANT, UNPRINTED = "a constant does better", "not printed"
#: What a finding may be, with the value of `holds` that goes with it.
WORDS: Mapping[str, bool | None] = {
    HOLDS: True,
    **{SIGN: False, FAILS: False},
    **{SIZE_OPEN: None, OPEN: None, UNTRAINED: None, CONSTANT: None, UNPRINTED: None},
}
#: Fewest seeds of which a p-value is given.
FEWEST = 5
#: Share of a printed gain that may be missing, where no tolerance is given.
_SLACK = 0.1


@dataclass(frozen=True)
class Finding:
    """A statement of a paper, and whether it holds.

    Attributes
    ----------
    says : str
        The statement, short.
    holds : bool or None
        None where it is not decided; `word` says why not.
    because : str
        The numbers that it was decided on.
    word : str
        One of `WORDS` that goes with `holds`; by default "holds", "does not hold" or "not decided".
    """

    says: str
    holds: bool | None
    because: str
    word: str = ""

    def __post_init__(self) -> None:
        word = self.word or {True: HOLDS, False: FAILS, None: OPEN}[self.holds]
        if word not in WORDS or WORDS[word] is not self.holds:
            some = ", ".join(each for each, holds in WORDS.items() if holds is self.holds)
            raise ValueError(f"word: must be one of {some} if holds is {self.holds}; got {word!r}")
        object.__setattr__(self, "word", word)

    @classmethod
    def of(cls, says: str, word: str, because: str) -> Finding:
        """Return the finding of one of `WORDS`."""
        return cls(says, WORDS.get(word), because, word)

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def verdict_of(findings: Sequence[Finding]) -> str:
    """Return findings as one line."""
    return "; ".join(f"{each.word}: {each.says} ({each.because})" for each in findings)


def summary_of(words: Sequence[str]) -> str:
    """Return the words of a figure's findings in short: "holds", or "holds (3), does not hold (1)"."""
    counts = Counter(words)
    if len(counts) < 2:
        return "".join(counts)
    return ", ".join(f"{word} ({counts[word]})" for word in WORDS if word in counts)


def sure(differences: Sequence[float], looks: int = 1) -> tuple[float, float]:
    """Return the mean of differences of several seeds, and half of its interval.

    Parameters
    ----------
    differences : sequence of float
        One a seed.
    looks : int
        How many intervals cover together with 95 %.

    Returns
    -------
    tuple of float
        The interval covers with 95 % (Student's t, n - 1 degrees of freedom: 4.3 standard errors of three
        seeds, 2.8 of five); it is infinite of one seed.
    """
    count = len(differences)
    if count < 2:
        return fmean(differences), math.inf
    from scipy.stats import t  # scikit-learn brings it

    quantile = float(t.ppf(1.0 - 0.025 / looks, count - 1))
    return fmean(differences), quantile * stdev(differences) / math.sqrt(count)


def p_value(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return the p-value of a paired two-sided t-test, or None of fewer than five seeds."""
    from bitldp_papers.run.many import paired

    return paired(ours, theirs) if len(ours) >= FEWEST else None


def ordered(
    says: str,
    scores: Mapping[str, Sequence[float]],
    first: str,
    seeds: Sequence[int] = (),
    *,
    higher: bool = True,
) -> Finding:
    """Return whether one method is better than all others, by paired differences over the seeds.

    Parameters
    ----------
    says : str
    scores : mapping
        Of each method, a score a seed, in the same order of seeds.
    first : str
        The method that is said to be the best.
    seeds : sequence of int, optional
        They are checked against the scores, if given.
    higher : bool
        Whether more is better: False for errors.

    Returns
    -------
    Finding
        It holds where `first` is above every other by more than the interval of `sure`; it does not where one
        is above it by more. Else it is not decided.

    Raises
    ------
    ValueError
        For methods with scores of another number of seeds.
    """
    if first not in scores or len(scores) < 2:
        raise ValueError(f"first: must be one of several methods; got {first!r} of {', '.join(scores)}")
    if len({len(each) for each in scores.values()} | ({len(seeds)} if len(seeds) else set())) > 1:
        raise ValueError("scores: every method needs a score of each seed")
    sign = 1.0 if higher else -1.0
    leads = {
        name: sure([sign * (a - b) for a, b in zip(scores[first], own, strict=True)])
        for name, own in scores.items()
        if name != first
    }
    # Of those that decide, the nearest; if there is none, the one that leaves it open the most.
    name = min(leads, key=lambda each: leads[each][0] + leads[each][1])
    if leads[name][0] + leads[name][1] >= 0.0:
        name = min(leads, key=lambda each: leads[each][0] - leads[each][1])
    lead, half = leads[name]
    count = len(scores[first])
    because = f"{first} {_number(sign * lead, signed=True)}{_half(half)} against {name}, {_seeds(count)}"
    holds = None if abs(lead) <= half else lead > 0.0
    return Finding(says, holds, because)


def everywhere(says: str, differences: Mapping[str, Sequence[float]]) -> Finding:
    """Return whether differences are above zero in every setting.

    Parameters
    ----------
    says : str
    differences : mapping
        Of each setting, a difference a seed, which is said to be above zero.

    Returns
    -------
    Finding
        It holds where every interval of `sure` is above zero; it does not where one is below, by intervals
        that cover together with 95 %. Else it is not decided.

    Raises
    ------
    ValueError
        Without a setting.
    """
    if not differences:
        raise ValueError("differences: must be of one setting or more")
    own = {name: sure(each) for name, each in differences.items()}
    joint = {name: sure(each, len(differences)) for name, each in differences.items()}
    above = sum(lead > half for lead, half in own.values())
    worst = min(joint, key=lambda name: joint[name][0] + joint[name][1])
    fails = joint[worst][0] + joint[worst][1] < 0.0
    if not fails:
        worst = min(own, key=lambda name: own[name][0] - own[name][1])
    lead, half = joint[worst] if fails else own[worst]
    count = len(differences[worst])
    because = f"above in {above} of {len(own)}" if len(own) > 1 else ""
    because += f"{'; ' if because else ''}{worst}: {_number(lead, signed=True)}{_half(half)}, {_seeds(count)}"
    return Finding(says, False if fails else (True if above == len(own) else None), because)


def gain(
    says: str,
    printed: Printed | None,
    differences: Sequence[float],
    tolerance: float | None = None,
    *,
    unit: str = "points",
) -> Finding:
    """Return whether a printed gain is reached.

    Parameters
    ----------
    says : str
    printed : Printed or None
        The gain as the paper prints it; None where it prints none, so that the sign alone is looked at,
        which is taken as above zero.
    differences : sequence of float
        Ours, one a seed, in the unit of `printed`.
    tolerance : float, optional
        Absolute: how far below the printed gain ours may be; a tenth of it by default. More than printed is
        reached.
    unit : str
        Of the sentence.

    Returns
    -------
    Finding
        "holds", "sign holds, size does not" or "does not hold", where the interval of `sure` decides it.
        "sign holds, size not decided" where it covers the printed gain less the tolerance, and "not decided"
        where it covers zero.
    """
    lead, half = sure(differences)
    ours = f"{_number(lead, signed=True)}{_half(half)} {unit}"
    sign = -1.0 if printed is not None and printed.value < 0.0 else 1.0
    against = "" if printed is None else f" against {printed.value:+.4g} printed"
    because = f"{ours}{against}, {_seeds(len(differences))}"
    if abs(lead) <= half:
        return Finding(says, None, because)
    if sign * lead < 0.0:
        return Finding(says, False, because)
    if printed is None:
        return Finding(says, True, because)
    least = abs(printed.value) * (1.0 - _SLACK) if tolerance is None else abs(printed.value) - tolerance
    if sign * lead - half >= least:
        return Finding(says, True, because)
    return Finding.of(says, SIGN if sign * lead + half < least else SIZE_OPEN, because)


def agreeing(compared: Sequence[Compared], says: str = "the numbers of the paper") -> Finding:
    """Return whether ours are the paper's numbers: those that are printed, or read off its drawings."""
    kinds = {True: 0, False: 0, None: 0}
    off = []
    for each in compared:
        if each.paper is None or each.kind not in ("printed", "drawn"):
            continue
        kinds[each.agrees] += 1
        if each.agrees is False:
            off.append(f"{each.what}: {_number(each.ours)} against {_number(each.stands)}")
    total = sum(kinds.values())
    if not total:
        return Finding.of(says, UNPRINTED, "the text prints no number of this")
    because = f"{kinds[True]} of {total} agree" + (
        f", {kinds[None]} within the spread" if kinds[None] else ""
    )
    because += "".join(f"; {each}" for each in off[:2]) + (f"; {len(off) - 2} more" if off[2:] else "")
    return Finding(says, False if off else (True if kinds[True] else None), because)


def trained(
    finding: Finding,
    scores: float | Sequence[float],
    constant: float,
    noiseless: float | Sequence[float],
    *,
    reach: float | None = None,
    higher: bool = True,
) -> Finding:
    """Return a finding where models learned something, else the reason why there is none.

    Parameters
    ----------
    finding : Finding
        Of the models.
    scores : float or sequence of float
        Of the method that the finding praises, a score a seed.
    constant : float
        Score of the best constant: the majority class, the mean, or 0.
    noiseless : float or sequence of float
        Of the same model without noise.
    reach : float, optional
        Score that the model without noise must have; by default, more than the constant's.
    higher : bool
        Whether more is better: False for errors.

    Returns
    -------
    Finding
        The one given; "not reached in this form" where the model without noise does not learn, "a constant
        does better" where the method is below the constant, "not decided" where the spread covers that.
    """
    sign = 1.0 if higher else -1.0
    without = fmean(_listed(noiseless))
    least = constant if reach is None else reach
    if not sign * (without - least) > 0.0:
        because = f"without noise {_number(without)}, where {_number(least)} is needed"
        return Finding.of(finding.says, UNTRAINED, because)
    own = _listed(scores)
    lead, half = sure([sign * (each - constant) for each in own])
    half = 0.0 if len(own) == 1 else half
    if abs(lead) > half and lead > 0.0:
        return finding
    because = f"{_number(fmean(own))}{_half(half)}, a constant {_number(constant)}; {finding.because}"
    return Finding.of(finding.says, CONSTANT if lead <= -half else OPEN, because)


def _listed(scores: float | Sequence[float]) -> Sequence[float]:
    return scores if isinstance(scores, Sequence) else [float(scores)]


def _number(value: float | str, *, signed: bool = False) -> str:
    if isinstance(value, str):
        return value
    return f"{value:+.3g}" if signed else f"{value:.4g}"


def _half(half: float) -> str:
    return f" ± {half:.2g}" if 0.0 < half < math.inf else ""


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"
