"""Audit of a mechanism: many reports of several inputs, and the most telling event among them."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from bitldp._core import Grid, Matrix, Window
from bitldp.audit.run import AuditRun, Event, drawn_pairs
from bitldp.base import checks
from bitldp.base.documents import facts_table, jsonable
from bitldp.base.errors import require
from bitldp.base.keys import RandomSource
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.frequencies import Labelled
from bitldp.mechanism.law import Experiment, Pair, codes_of, far_ends, of_rows
from bitldp.privacy import Guarantee
from bitldp.release.base import Release
from bitldp.release.window import WindowRelease

__all__ = ["AuditResult", "Event", "audit"]


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Result of an audit: its most telling event, the bound and the verdict.

    If bounds exceed what is allowed, the event is the one that does so most, with those above the exact
    epsilon of a record first. If none does, it is the event with the largest bound.

    Attributes
    ----------
    mechanism : str
        Name of the audited mechanism.
    lower : float
        Lower bound of ln P(event | first input)/P(event | second input), hence on epsilon. Below zero if it
        shows nothing; infinite if two calls repeated their reports.
    exact : float
        Limit for `lower`: the exact log-ratio of this event under the law of the mechanism or, if that is
        unknown, the exact epsilon of a record. It never exceeds that epsilon, and is below zero for an event
        that the second input should make likelier.
    claimed : float
        Claimed epsilon of the guarantee.
    n : int
        Reports of each input.
    confidence : float
        Probability with which all bounds of the audit hold together.
    pair : tuple
        The two inputs, one record each. Not shown in the repr.
    between : tuple of str
        The same in words.
    event : str
        The event, in words.
    guarantee : Guarantee
        Guarantee of the audited mechanism.
    detectable : float
        Excess of the log-ratio above `exact` that this n and confidence would have detected with probability
        0.95, for an event as likely under the first input as this one. A smaller fault may pass. Infinite if
        no fault would have been detected.
    """

    mechanism: str
    lower: float
    exact: float
    claimed: float
    n: int
    confidence: float
    pair: tuple[Any, Any] = field(repr=False)
    between: tuple[str, str]
    event: str
    guarantee: Guarantee
    detectable: float = math.inf

    @property
    def passed(self) -> bool:
        """Verdict: the bound is within the exact epsilon; an audit with repeated reports fails."""
        return self.lower <= self.exact and self.lower < math.inf

    @property
    def refuted(self) -> bool:
        """True if these reports alone refute the claimed epsilon; always False for claims about a feature."""
        return self.guarantee.unit == "record" and self.lower > self.claimed

    def __str__(self) -> str:
        """Return one line: bound, exact values, event, verdict."""
        a, b = self.between
        inputs = f"{a} against {b}" if a != b else f"{a}, twice"
        claimed = f"claimed {self.claimed:.4g}"
        if self.refuted:
            claimed += ": refuted"
        return (
            f"{self.mechanism}: epsilon >= {self.lower:.4g} (exact for this event {self.exact:.4g}, "
            f"per record {self.guarantee.record:.4g}, {claimed}) by "
            f'"{self.event}" for {inputs}, n = {self.n} each, confidence '
            f"{self.confidence:g}: {'passes' if self.passed else 'FAILS'}; an excess of "
            f"{self.detectable:.3g} would have been seen"
        )

    def _repr_html_(self) -> str:
        """Return the same as a table, for notebooks."""
        rows = {
            "epsilon is at least": f"{self.lower:.4g}",
            "exact for this event": f"{self.exact:.4g}",
            "exact per record": f"{self.guarantee.record:.4g}",
            "claimed": f"{self.claimed:.4g}" + (", refuted" if self.refuted else ""),
            "event": html.escape(self.event),
            "inputs": html.escape(" against ".join(self.between)),
            "reports of each": f"{self.n:,}",
            "confidence": f"{self.confidence:g}",
            "excess that would be seen": f"{self.detectable:.3g}",
            "verdict": "passes" if self.passed else "<b>FAILS</b>",
        }
        return facts_table(f"Audit of {self.mechanism}", rows.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, without the inputs themselves; infinities as ``"infinity"``."""
        plain = {
            "mechanism": self.mechanism,
            "passed": self.passed,
            "lower": self.lower,
            "exact": self.exact,
            "claimed": self.claimed,
            "n": self.n,
            "confidence": self.confidence,
            "between": list(self.between),
            "event": self.event,
            "detectable": self.detectable,
            "guarantee": asdict(self.guarantee),
        }
        return {name: jsonable(value) for name, value in plain.items()}


def audit(
    mechanism: Any,
    *,
    n: int = 100_000,
    confidence: float = 0.999,
    rng: RandomSource = None,
    pair: tuple[Any, Any] | None = None,
    event: Event | None = None,
) -> AuditResult:
    """Bound the epsilon of a mechanism from below by its reports, and compare with the exact one.

    Parameters
    ----------
    mechanism : Mechanism
        Anything with a `guarantee` and a ``randomize(x, *, rng)`` that returns one report (an array's row, or
        one row of each array of a tuple) for each record of `x`.
    n : int
        Reports to draw of each input, 100 or more.
    confidence : float
        Probability with which all bounds hold together, in [0.5, 1).
    rng : None, int, SeedSequence or Generator
        None: the mechanism draws its own keys, as it does in use. The others make the audit reproducible.
    pair : tuple, optional
        Two inputs to compare: one record each, a tuple where `randomize` takes several arguments. None: they
        are chosen from the law; for a mechanism of unknown law, the ends of its `interval`.
    event : callable, optional
        An event to look at, in place of those below; see `Event`.

    Returns
    -------
    AuditResult
        Its `passed` says whether no bound exceeded what is exact.

    Raises
    ------
    ValueError, TypeError
        For an argument out of its range, for an unknown law without `pair` or `interval`, for reports or an
        event of the wrong shape.
    MissingExtraError
        Without SciPy: ``pip install "bitldp[design]"``.

    Notes
    -----
    *Known law* (all mechanisms of bits and categories; others whose `channel` is a `Matrix` or `Window` and
    whose reports are its codes). Events come from the law, before anything is drawn: every value of every
    symbol of the report, for all inputs or up to 32 of them (bits: four records whose code words are
    complements in pairs), and whether the log-likelihood ratio of a whole report reaches a threshold, for the
    worst pairs. Neighbouring records are any two records. Of up to 64 symbols every two are looked at
    together: whether both, one or none are high, and whether they are equal, which shows random bits that
    two symbols share. Of longer reports these are the first 32 symbols and 32 others.

    Inputs that differ from column to column are drawn anew for each audit (from `rng`, where it is given) and
    compared with one whose columns are alike; so are two categories, where there are more than are compared.

    An event of known law is held to its own log-ratio, in both orders of the inputs. So departures from the
    law are found in either direction, also those toward more privacy, which would bias the estimates.

    *Unknown law*. Half of the `n` reports of each input serve to find two events (one for each order of the
    inputs), from the values of all numbers of a report, and from whether neighbours among its first 17 are
    equal; the bounds come from the other half, so that no report is used twice. They are compared with the
    exact epsilon of a record.

    *Bounds*. Clopper-Pearson intervals, whose error probability ``1 - confidence`` is shared evenly by all of
    them (Bonferroni): half of it by the pairs of symbols, where there are any. So a correct mechanism fails
    with probability at most ``1 - confidence``, whatever n is. A mechanism with a delta is treated as one of
    unknown law, and ln (P(event | a) - delta)/P(event | b) is bounded.

    *Keys*. Before that, two calls without `rng` are compared: if the second repeats the reports of the first
    where chance would do so less than once in 10^9, the keys are stale, and the bound is infinite, since two
    releases under one key tell where their inputs differ.

    Memory is bounded: reports are drawn in blocks of about a million symbols.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.audit import audit
    >>> result = audit(bitldp.GRR(4, epsilon=1.0), n=20_000, rng=1)
    >>> result.passed, 0.8 < result.lower <= 1.0
    (True, True)
    """
    require("the audit", ["scipy"], "design")
    n = checks.integer("n", n, 100)
    confidence = checks.real("confidence", confidence)
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence: must be in [0.5, 1), got {confidence}")
    guarantee = getattr(mechanism, "guarantee", None)
    if not isinstance(guarantee, Guarantee) or not callable(getattr(mechanism, "randomize", None)):
        raise TypeError("mechanism: must have a guarantee and a randomize method")
    if pair is not None and not (isinstance(pair, tuple) and len(pair) == 2):
        raise TypeError("pair: must be a tuple of two inputs")
    if event is not None and not callable(event):
        raise TypeError(f"event: must be callable, not {type(event).__name__}")
    if pair is not None and isinstance(mechanism, Labelled) and mechanism.labels is not None:
        pair = (mechanism._codes_of("pair", pair[0]), mechanism._codes_of("pair", pair[1]))
    known = _experiment(mechanism, pair)
    run = AuditRun(mechanism, guarantee, n, confidence, rng)
    laws: list[Experiment] = []
    if known is not None and known.blocks and event is None and guarantee.delta == 0.0:
        laws = [known] if pair is not None else [known, *_drawn_laws(mechanism, known, run.inputs)]
        setting, finding = run.known(laws)
        inputs, names = laws[setting].inputs, laws[setting].names
    else:
        settings = _settings(pair, known, run.inputs)
        pairs = [(given[0], given[1]) for given, _ in settings]
        setting, finding = run.searched(pairs) if event is None else run.given(pairs[0], event)
        inputs, names = settings[setting]
    if pair is not None:  # what was given is not shown
        names = ("pair[0]", "pair[1]")
    a, b = finding.a, finding.b
    return AuditResult(
        mechanism=type(mechanism).__name__,
        lower=finding.lower,
        exact=finding.exact,
        claimed=guarantee.claimed,
        n=n,
        confidence=confidence,
        pair=(inputs[a], inputs[b]),
        between=(names[a], names[b]),
        event=finding.event,
        guarantee=guarantee,
        detectable=finding.detectable(guarantee.delta) if finding.n else 0.0,
    )


def _experiment(mechanism: Any, pair: Pair | None) -> Experiment | None:
    """Return what a mechanism says of its law; of other objects, what their `channel` or `interval` says."""
    if isinstance(mechanism, Mechanism):
        return mechanism.extremes(pair)
    channel, codec = getattr(mechanism, "channel", None), getattr(mechanism, "codec", None)
    if getattr(mechanism, "features", 1) == 1 and isinstance(channel, (Matrix, Window)):
        release = (WindowRelease if isinstance(channel, Window) else Release)(
            channel, channel.epsilon, channel.cells if isinstance(channel, Window) else channel.outputs
        )
        count = channel.cells if isinstance(channel, Window) else channel.inputs
        points = codec.values() if isinstance(codec, Grid) else None
        chosen = codes_of(pair, count, points)
        return None if chosen is None else of_rows(release.row, count, release.alphabet, chosen, 1, points)
    interval = getattr(mechanism, "interval", None)
    if pair is not None or not isinstance(interval, tuple):
        return None
    return far_ends(interval, getattr(mechanism, "features", 1))


def _drawn_laws(mechanism: Any, known: Experiment, rng: np.random.Generator) -> Iterator[Experiment]:
    """Yield the law of inputs that are drawn anew for this audit, where the mechanism says it."""
    if not isinstance(mechanism, Mechanism) or known.groups:
        return
    for pair in drawn_pairs(known, rng):
        law = mechanism.extremes(pair)
        if law is not None and law.blocks:
            yield replace(law, names=("drawn[0]", "drawn[1]"))


def _settings(
    pair: Pair | None, known: Experiment | None, rng: np.random.Generator
) -> list[tuple[Sequence[Any], Sequence[str]]]:
    """Return the given pair; or the worst of a known law, or two that are far apart, and drawn ones.

    Each comes with the names of its inputs.
    """
    if pair is not None:
        return [(pair, ("pair[0]", "pair[1]"))]
    if known is None:
        raise ValueError("pair: is needed, since neither the law nor the inputs of this mechanism are known")
    a, b = known.pairs[0]
    far = (known.inputs[a], known.inputs[b]), (known.names[a], known.names[b])
    return [far, *((drawn, ("drawn[0]", "drawn[1]")) for drawn in drawn_pairs(known, rng))]
