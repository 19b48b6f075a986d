"""The figures of a case, how far they are from their goals, and the tables of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from _goals import GATE, SCALING, WORTH_TWO, Goal
from _table import table

QUIET = 0.1  # cores that others may take before the scaling says nothing
MEMORY = 64 << 10  # bytes a thread, besides input and output


@dataclass(frozen=True)
class Result:
    """The figures of one case: seconds of a call, the best of its timings, and ratios.

    Attributes
    ----------
    name : str
    reference, tuned, ours : float
        One thread of `bitldp.reference`, of the tuned NumPy (None: there is none), and of bitldp.
    ratio, ratio_of_medians : float or None
        Reference over ours, of the best timings and of the medians.
    goal : Goal or None
        What the case should reach on this instruction set.
    beside : tuple or None
        (name, seconds, times): a call, its time, and how many times that ours may take.
    floor : float
        What the keystream or the memory traffic alone would take; `binding` says which of the two.
    walls : dict
        Ours by the wall clock, by number of threads; one thread only where it is no batch.
    others : float
        Cores that other processes took meanwhile.
    second : float
        What the machine's second thread was worth meanwhile: how much faster than one two threads were that
        compute and share nothing.
    """

    name: str
    reference: float | None
    tuned: float | None
    ours: float
    ratio: float | None
    ratio_of_medians: float | None
    goal: Goal | None
    beside: tuple[str, float, float] | None
    floor: float
    binding: str
    walls: Mapping[int, float]
    others: float
    second: float

    @property
    def quiet(self) -> bool:
        """Whether a second thread had a core to itself."""
        return self.others < QUIET and self.second >= SCALING

    @property
    def scaling(self) -> dict[int, float]:
        """How much faster several threads are than one."""
        return {threads: self.walls[1] / wall for threads, wall in self.walls.items() if threads > 1}

    @property
    def of_floor(self) -> float:
        """The share of ours that the binding limit alone would take."""
        return self.floor / self.ours


@dataclass(frozen=True)
class Part:
    """How much of one goal was reached.

    Attributes
    ----------
    reached : float
        1 is all of it.
    text : str
        The figure, the goal and what stood in the way.
    counts : bool
        Whether a figure below the gate fails the run: not where the binding limit alone takes more time than
        the gate allows, nor a scaling that others disturbed.
    """

    reached: float
    text: str
    counts: bool


def parts(result: Result) -> Iterator[Part]:
    """Yield every goal of a case."""
    ours, goal = result.ours, result.goal
    at = f"{result.of_floor:.0%} of the time is the {result.binding}'s"

    def part(allowed: float, text: str) -> Part:
        """Return the part of a goal to take no more than the `allowed` seconds."""
        bound = result.floor > allowed / GATE
        reason = f"the {result.binding} alone takes {result.floor * 1e3:.4g} ms" if bound else at
        return Part(allowed / ours, f"{text}; {reason}", not bound)

    if goal is not None and goal.ratio is not None and result.reference is not None:
        text = f"{result.reference / ours:.1f} times NumPy, of {goal.ratio:.3g}"
        yield part(result.reference / goal.ratio, text)
    if goal is not None and goal.seconds is not None:
        yield part(goal.seconds, f"{ours * 1e6:.4g} us, of {goal.seconds * 1e6:.4g}")
    if goal is not None and goal.floor is not None:
        text = f"{result.of_floor:.0%} of the {result.binding} floor, of {goal.floor:.0%}"
        yield Part(result.of_floor / goal.floor, text, True)
    if result.beside is not None:
        name, seconds, times = result.beside
        yield part(seconds * times, f"{ours / seconds:.2f} times the time of {name}, of {times:.3g}")
    if 2 in result.walls and result.walls[1] >= WORTH_TWO:
        busy = f"; two that share nothing are {result.second:.2f}x, others took {result.others:.1f} cores"
        # A second thread finds nothing to do where one takes all that the memory gives.
        full = result.binding == "memory" and result.of_floor >= 1.0
        bound = "; one takes all of the memory" if full else ""
        text = f"two threads are {result.scaling[2]:.2f}x one, of {SCALING}{busy}{bound}"
        yield Part(result.scaling[2] / SCALING, text, result.quiet and not full)


def missed(result: Result) -> list[str]:
    """Return the goals that were missed and what stood in the way, a sentence for each."""
    return [
        f"{'MISSED' if each.counts and each.reached < GATE else 'short'}: {each.text}"
        for each in parts(result)
        if each.reached < 1.0
    ]


def failed(result: Result) -> bool:
    """Whether a goal was missed by so much that the run fails."""
    return any(each.counts and each.reached < GATE for each in parts(result))


_HEAD = ["case", "NumPy ms", "tuned ms", "ours ms", "ratio", "medians", "goal", "beside", "met", "of floor"]


def show(results: list[Result]) -> str:
    """Return the table of results, with a line for each goal that was missed."""
    threads = sorted({each for result in results for each in result.walls})
    rows = [
        [*_HEAD, "binding", *(f"{n} threads ms" for n in threads[1:]), *(f"x one, {n}" for n in threads[1:])]
    ]
    rows += [_row(each, threads[1:]) for each in results]
    lines = [f"{each.name}: {reason}" for each in results for reason in missed(each)]
    return "\n".join([table(rows), *lines])


def _row(result: Result, threads: list[int]) -> list[str]:
    reached = [each.reached for each in parts(result) if "threads" not in each.text]
    return [
        result.name,
        _milliseconds(result.reference),
        _milliseconds(result.tuned),
        _milliseconds(result.ours),
        _short(result.ratio, ".1f"),
        _short(result.ratio_of_medians, ".1f"),
        _goal(result),
        "-" if result.beside is None else f"{result.ours / result.beside[1]:.2f}",
        "-" if not reached else "yes" if min(reached) >= 1.0 else "no",
        f"{result.of_floor:.0%}",
        result.binding,
        *(_milliseconds(result.walls.get(n)) for n in threads),
        *(_short(result.scaling.get(n), ".2f") for n in threads),
    ]


def show_memory(memory: dict[str, dict[str, int]]) -> str:
    """Return what `_memory.extra_memory` measured, as text."""
    lines = ["memory of a first call besides its input and output, in a fresh process:"]
    for threads, measured in memory.items():
        allowed = int(threads) * MEMORY >> 10
        lines.append(
            f"  on {threads}: {measured['touched'] >> 10} KiB touched of {allowed} allowed, "
            f"peak +{measured['peak'] >> 10} KiB, by Python {measured['python']} bytes"
        )
    return "\n".join(lines)


def too_much(memory: dict[str, dict[str, int]]) -> list[str]:
    """Return the numbers of threads at which a call took more memory than allowed."""
    return [
        threads
        for threads, measured in memory.items()
        if max(measured["touched"], measured["python"]) > int(threads) * MEMORY
    ]


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.4g}"


def _short(number: float | None, form: str) -> str:
    return "-" if number is None else format(number, form)


def _goal(result: Result) -> str:
    goal = result.goal
    if goal is None:
        return "-"
    ratio = "" if goal.ratio is None else f"{goal.ratio:.3g}x"
    seconds = "" if goal.seconds is None else f"{goal.seconds * 1e6:.4g} us"
    return f"{ratio}{seconds}" or "-"
