"""The figures of a case, how far they are from their goals, and the tables of them."""

from __future__ import annotations

from dataclasses import dataclass

from _table import table

SCALING = 1.9  # two threads against one
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
    ratio, ratio_of_medians : float
        Reference over ours, of the best timings and of the medians.
    goal, most : float or None
        The goals for the ratio and for the seconds of ours on this instruction set.
    floor : float
        What the keystream or the memory traffic alone would take; `binding` says which of the two.
    wall, wall_two : float
        Ours by the wall clock, on one and on two threads (None: not a batch).
    others : float
        Cores that other processes took meanwhile.
    """

    name: str
    reference: float
    tuned: float | None
    ours: float
    ratio: float
    ratio_of_medians: float
    goal: float | None
    most: float | None
    floor: float
    binding: str
    wall: float
    wall_two: float | None
    others: float

    @property
    def quiet(self) -> bool:
        """Whether a second thread had a core to itself."""
        return self.others < QUIET

    @property
    def scaling(self) -> float | None:
        """How much faster two threads are than one."""
        return None if self.wall_two is None else self.wall / self.wall_two

    def reached(self) -> float:
        """Return the least part of its one-thread goals that was reached; infinity without a goal."""
        parts = [float("inf")]
        if self.goal is not None:
            parts.append(self.ratio / self.goal)
        if self.most is not None:
            parts.append(self.most / self.ours)
        return min(parts)

    def reached_by_two(self) -> float:
        """Return the part of the scaling goal that was reached; infinity where there is no second thread."""
        return float("inf") if self.scaling is None else self.scaling / SCALING


def show(results: list[Result]) -> str:
    """Return the table of results, with a line for each goal that was missed."""
    head = [
        "case",
        "NumPy ms",
        "tuned ms",
        "ours ms",
        "ratio",
        "medians",
        "goal",
        "met",
        "of floor",
        "binding",
    ]
    rows = [[*head, "2 threads ms", "x NumPy", "x one"]]
    rows += [_row(each) for each in results]
    lines = [f"{each.name}: {reason}" for each in results for reason in missed(each)]
    return "\n".join([table(rows), *lines])


def _row(result: Result) -> list[str]:
    two = result.wall_two
    return [
        result.name,
        _milliseconds(result.reference),
        _milliseconds(result.tuned),
        _milliseconds(result.ours),
        f"{result.ratio:.1f}",
        f"{result.ratio_of_medians:.1f}",
        _goal(result),
        "-" if result.goal is None else "yes" if result.reached() >= 1.0 else "no",
        f"{result.floor / result.ours:.0%}",
        result.binding,
        _milliseconds(two),
        "-" if two is None else f"{result.reference / two:.1f}",
        "-" if result.scaling is None else f"{result.scaling:.2f}",
    ]


def missed(result: Result) -> list[str]:
    """Return the goals that were missed and what stood in the way, a sentence for each."""
    found = []
    at = f"one thread runs at {result.floor / result.ours:.0%} of the measured {result.binding} floor"
    if result.goal is not None and result.ratio < result.goal:
        found.append(f"ratio {result.ratio:.1f} of {result.goal:g}; {at}")
    if result.most is not None and result.ours > result.most:
        found.append(f"{result.ours * 1e6:.2f} us of {result.most * 1e6:g}; {at}")
    if result.reached_by_two() < 1.0:
        busy = "" if result.quiet else f"; others took {result.others:.1f} cores meanwhile"
        found.append(f"two threads are {result.scaling:.2f}x one, of {SCALING}{busy}")
    return found


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


def _goal(result: Result) -> str:
    if result.goal is None:
        return "-"
    most = f", {result.most * 1e6:g} us" if result.most is not None else ""
    return f"{result.goal:g}{most}"
