"""Costs of a run side by side: what holds if nobody is trusted, if a shuffler is, if an aggregator is."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple

from flwr.serverapp.strategy import Result

from bitldp.accounting import account
from bitldp.accounting.compose import Method
from bitldp.amplification import (
    shuffled_central_epsilon,
    shuffled_histogram_central_epsilon,
    summed_central_epsilon,
)
from bitldp.base import checks
from bitldp.base.errors import MissingExtraError
from bitldp.federated import flower
from bitldp.federated.wire.codec import UpdatePlan
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee, composed

__all__ = ["Cost", "RunCosts", "RunResult", "central_costs", "run_costs"]

Model = Literal["local", "shuffled", "summed"]
Releases = Sequence[tuple[Mechanism, int]]
"""Mechanisms, each with how many of its releases are about one client."""

_NEIGHBOURS: dict[Model, str] = {
    "local": "any two contents of one client",
    "shuffled": "two populations that differ in one client",
    "summed": "two populations that differ in one client",
}
_TRUST: dict[Model, str] = {
    "local": "nobody",
    "shuffled": "a shuffler, which hides who sent what",
    "summed": "an aggregator, which shows the sum of a round alone",
}
_MOST_SYMBOLS = 100_000  # that are convolved: a second or two; Rényi divergences need no time
_SUM_TRUST = "as many honest clients as the agreement asks for"


class Cost(NamedTuple):
    """Privacy of a run against one kind of observer.

    Attributes
    ----------
    model : {"local", "shuffled", "summed"}
        What the observer sees: every report and whose it is; the reports of a round in random order; their
        sum alone.
    epsilon, delta : float
        What one client has spent in all rounds that it took part in, rounded up.
    neighbours : str
        What is told apart: the neighbouring relation.
    trusts : str
        Who must be honest for it.
    method : str
        Where the number comes from.
    """

    model: Model
    epsilon: float
    delta: float
    neighbours: str
    trusts: str
    method: str

    def __str__(self) -> str:
        """Return one line."""
        delta = f"delta {self.delta:.3g}"
        return (
            f"{self.model:<9}epsilon {self.epsilon:<9.6g} {delta:<12} {self.neighbours}; "
            f"trusted: {self.trusts} ({self.method})"
        )


@dataclass(frozen=True)
class RunCosts:
    """Costs of a run, side by side.

    Attributes
    ----------
    costs : tuple of Cost
        Local ones first. They are about the same run and do not add up.
    rounds : int
        Rounds that the busiest client was asked in.
    reports : int
        Reports of the smallest round.
    influence : float or None
        How far one client that lies may move a number of a round's mean update, at most, in the update's
        units; None where the mechanism knows no bound.
    """

    costs: tuple[Cost, ...]
    rounds: int
    reports: int
    influence: float | None = None

    def __getitem__(self, model: Model) -> Cost:
        """Return the least cost of a model."""
        return min((each for each in self.costs if each.model == model), key=lambda each: each.epsilon)

    def __str__(self) -> str:
        """Return a line for each cost, with what they are between and the influence of a liar."""
        times = "once" if self.rounds == 1 else f"in {self.rounds} rounds"
        lines = [
            f"Privacy of a client that was asked {times}, of {self.reports:,} reports or more each",
            *(f"  {cost}" for cost in self.costs),
        ]
        if self.influence is not None:
            lines.append(
                f"  one client that lies moves a number of a round's mean by {self.influence:.3g} at most"
            )
        return "\n".join(lines)


@dataclass(repr=False)
class RunResult(Result):
    """Result of a run with private reports: Flower's, and what the run cost."""

    costing: Callable[[], RunCosts | None] | None = field(default=None, compare=False)

    @cached_property
    def costs(self) -> RunCosts | None:
        """Costs of the run for a client, side by side; None for a run in which no report could be read.

        It is computed when it is first asked for: an accountant may take seconds.
        """
        return None if self.costing is None else self.costing()

    def __repr__(self) -> str:
        """Return Flower's text, and the costs."""
        return super().__repr__() + (f"\n{self.costs}\n" if self.costs is not None else "")

    def __reduce__(self) -> tuple[type[Result], tuple[Any, ...]]:
        """Pickle as Flower's result, without the strategy that the costs are of."""
        return Result, tuple(getattr(self, each.name) for each in fields(Result))


def printed(result: RunResult) -> None:
    """Log the costs of a run where Flower's log of it can be read."""
    if flower.console.isEnabledFor(logging.INFO):
        for line in str(result.costs or "").splitlines():
            flower.console.info("%s", line)


class Attendance:
    """Who was asked in the rounds of a run, and what came."""

    def __init__(self) -> None:
        self._asked: Counter[int] = Counter()
        self._judged: Counter[int] = Counter()
        self._reports: list[int] = []
        self._share = 0.0

    def asked(self, nodes: Iterable[int]) -> None:
        """Note the clients of a round."""
        self._asked.update(nodes)

    def judged(self, nodes: Iterable[int]) -> None:
        """Note the clients of an evaluation."""
        self._judged.update(nodes)

    def came(self, reports: int, share: float) -> None:
        """Note how many reports a round had, and the largest share of its mean that is one client's."""
        self._reports.append(reports)
        self._share = max(self._share, share)

    def costs(self, plan: UpdatePlan, metrics: Mapping[str, Mechanism], delta: float) -> RunCosts | None:
        """Return what the run cost the client that was asked most often; None where no report came."""
        if not self._reports:
            return None
        rounds = max(self._asked.values())
        releases = [(plan.mechanism, plan.records * rounds)]
        if self._judged:
            releases += [(each, max(self._judged.values())) for each in metrics.values()]
        return run_costs(
            releases,
            rounds=rounds,
            reports=min(self._reports),
            delta=delta,
            influence=_influence(plan, self._share),
        )


def _influence(plan: UpdatePlan, share: float) -> float | None:
    """Return how far a client of such a share of the mean may move a number, in the update's units."""
    try:
        letters = plan.mechanism.influence(min(1.0, share))
    except (TypeError, ValueError):  # no linear estimate
        return None
    return letters * 2.0 * plan.header.clip / (plan.header.high - plan.header.low)


def run_costs(
    releases: Releases, *, rounds: int, reports: int, delta: float, influence: float | None = None
) -> RunCosts:
    """Return what a run of local releases cost a client.

    Parameters
    ----------
    releases : sequence of (Mechanism, int)
        All that a client released, each with its number in all rounds; the first one is that of the updates,
        in every round as often.
    rounds : int
        Rounds that the client took part in, 1 or more.
    reports : int
        Reports of each of those rounds, at least; 1 or more.
    delta : float
        Delta of what is composed and of the central epsilons, in (0, 1).
    influence : float, optional
        How far one client that lies may move a number of a round's mean update, at most, in the update's
        units; None where the mechanism knows no bound.

    Returns
    -------
    RunCosts
        The local cost by basic composition, and by the best accountant where that is less; the shuffled and
        the summed one by `bitldp.amplification`, composed over the rounds. Where its bound says nothing for
        so few reports, the local cost stands in its place, for it always holds.
    """
    delta = checks.real("delta", delta)
    local = _local(releases, delta)
    best = min(local, key=lambda each: each.epsilon)
    shuffled = _amplified("shuffled", releases, rounds, reports, delta, best)
    summed = _amplified("summed", releases, rounds, reports, delta, best)
    if shuffled.epsilon < summed.epsilon:  # a sum is a function of the shuffled reports
        summed = shuffled._replace(
            model="summed", trusts=_TRUST["summed"], method=f"of shuffled reports, {shuffled.method}"
        )
    return RunCosts((*local, shuffled, summed), rounds, reports, influence)


def central_costs(release: Any, *, rounds: int, reports: int) -> RunCosts:
    """Return what a run of secure sums cost a client: of each share by itself, and of the totals.

    Parameters
    ----------
    release : SecureSum
        Of each round.
    rounds : int
        That a client took part in, 1 or more.
    reports : int
        Survivors of the smallest round.
    """
    share = release.guarantee.local
    whole = Guarantee(*(composed(share.epsilon, rounds),) * 4, delta=min(1.0, rounds * share.delta))
    local = _cost("local", whole.epsilon, whole.delta, "of its shares without their masks, basic")
    if rounds == 1:
        total = release.guarantee.central(reports)
        summed = _cost("summed", total.epsilon, total.delta, "of that many survivors")
    else:
        found = account([(release, rounds)], delta=release.guarantee.central().delta)
        summed = _cost("summed", found.epsilon, found.delta, f"{found.method}, of the least survivors")
    return RunCosts((local, summed._replace(trusts=_SUM_TRUST)), rounds, reports)


def _cost(model: Model, epsilon: float, delta: float, method: str) -> Cost:
    return Cost(model, epsilon, delta, _NEIGHBOURS[model], _TRUST[model], method)


def _own(releases: Releases) -> float:
    """Return the sum of the deltas of the releases."""
    return math.fsum(mechanism.guarantee.delta * times for mechanism, times in releases)


def _local(releases: Releases, delta: float) -> list[Cost]:
    """Return the cost by basic composition at its own delta, and the least one at `delta` if that is less."""
    own = min(_own(releases), math.nextafter(1.0, 0.0))
    basic = account(releases, delta=min(own * (1.0 + 2.0**-40), 1.0), method="basic") if own else None
    plain = basic or account(releases, delta=0.0, method="basic")
    result = [_cost("local", plain.epsilon, own, "basic")]
    methods: list[Method] = ["renyi"]
    if sum(_symbols(mechanism) * times for mechanism, times in releases) <= _MOST_SYMBOLS:
        methods.append("pld")
    finer = [_composed(releases, delta, method) for method in methods]
    found = min((each for each in finer if each is not None), key=lambda each: each.epsilon, default=None)
    if found is not None and found.epsilon < plain.epsilon:
        result.append(found)
    return result


def _symbols(mechanism: Mechanism) -> int:
    """Return how many laws a release is made of that an accountant has to convolve."""
    if getattr(mechanism, "gdp_mu", None) is not None:  # a normal law, whose rounds are added
        return 0
    return sum(times for _, times in mechanism._symbols())


def _composed(releases: Sequence[tuple[Any, int]], delta: float, method: Method) -> Cost | None:
    """Return the cost by an accountant; None where it is not installed or has no answer."""
    try:
        found = account(releases, delta=delta, method=method)
    except (MissingExtraError, ValueError):
        return None
    return _cost("local", found.epsilon, delta, found.method) if math.isfinite(found.epsilon) else None


def _amplified(
    model: Model, releases: Releases, rounds: int, reports: int, delta: float, local: Cost
) -> Cost:
    """Return the cost to those who see a round's shuffled reports, or their sum."""
    none = _cost(model, local.epsilon, local.delta, "the local one, which is less")
    if _own(releases):
        return none._replace(method="the local one: the bound is for releases without a delta")
    each, why = _round(model, releases, rounds, reports, delta if rounds == 1 else delta / (2.0 * rounds))
    if each is None:
        return none._replace(method=f"the local one: {why}")
    if rounds == 1:
        found = _cost(model, each, delta, "of one round")
    else:
        share = Guarantee(each, each, each, each, delta / (2.0 * rounds))
        pld = _composed([(share, rounds)], delta, "pld")
        found = _cost(model, composed(each, rounds), delta / 2.0, "basic")
        if pld is not None and pld.epsilon < found.epsilon:
            found = _cost(model, pld.epsilon, delta, "pld")
    return found if found.epsilon < local.epsilon else none


def _round(
    model: Model, releases: Releases, rounds: int, reports: int, delta: float
) -> tuple[float | None, str]:
    """Return epsilon of one round, or why there is none."""
    (mechanism, times), *more = releases
    if not more and times == rounds and mechanism.columns == 1:
        law = summed_central_epsilon if model == "summed" else shuffled_histogram_central_epsilon
        try:
            return law(mechanism, reports, delta), ""
        except (TypeError, ValueError):
            pass  # of another law: the bound of any
    whole = math.fsum(composed(each.guarantee.record, count) for each, count in releases) / rounds
    try:
        return shuffled_central_epsilon(whole * (1.0 + 2.0**-40), reports, delta), ""
    except ValueError as error:
        return None, str(error).removeprefix("n: ").replace("users", "reports a round")
