"""Search for a design: a sequential linear program over table and letters, from several starts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bitldp.design._program import Floats, Program
from bitldp.design.distance import Metric
from bitldp.design.result import DesignError

_GAIN = 1e-10  # relative; a step that promises less is the last
_SAME = 1e-4  # letters that are nearer to the middle are one
_SMALL = 1 << 10  # inequalities of a program that is also solved without its symmetry
_UNBIASED = 1e-7  # sum of the biases that rounding to integers can still make up for


class _Effort(NamedTuple):
    """How long to search: steps from every start, starts that are followed on, and steps of each of them."""

    first: int
    kept: int
    most: int


def _effort(inequalities: int) -> _Effort:
    """Return the effort for a program with so many inequalities."""
    if inequalities < _SMALL:
        return _Effort(12, 2, 60)
    return _Effort(4, 1, 60) if inequalities < 1 << 13 else _Effort(0, 1, 8)


@dataclass
class _Run:
    """One sequence of steps: letters, their best table, and how far they may move."""

    coordinates: Floats
    value: float
    table: Floats
    slack: float
    radius: float
    done: bool = False


def best(
    shape: tuple[int, int], budget: float, metric: Metric | None, criterion: str
) -> tuple[Floats, Floats]:
    """Search for a table and ascending letters on [0, 1], in floating point.

    Parameters
    ----------
    shape : (int, int)
        Points and letters.
    budget, metric, criterion
        As for `bitldp.design.mvu.design`.

    Raises
    ------
    DesignError
        If the solver fails from every start, or no start reaches letters without bias.
    """
    program = Program(shape, budget, metric, criterion)
    runs = [run for start in _starts(program, shape) if (run := _begin(program, start)) is not None]
    if not runs:
        raise DesignError("the linear programs of all starts failed")
    effort = _effort(program.inequalities)
    for run in runs:
        _follow(program, run, effort.first)
    runs.sort(key=lambda run: run.value)
    for run in runs[: effort.kept]:
        _follow(program, run, effort.most)
    unbiased = [run for run in runs if run.slack < _UNBIASED]
    if not unbiased:
        least = min(run.slack for run in runs)
        raise DesignError(f"no start reached letters without bias; the least sum of biases is {least:.3g}")
    found = min(unbiased, key=lambda run: run.value)
    if program.mirrored and found.coordinates.min() < _SAME:
        free = Program(shape, budget, metric, criterion, mirrored=False)
        if free.inequalities < _SMALL:
            lopsided = [_free(free, start) for start in _split(program.basis @ found.coordinates)]
            better = [run for run in lopsided if run is not None and run.value < found.value * (1.0 - _GAIN)]
            if better:
                return _whole(free, min(better, key=lambda run: run.value))
    return _whole(program, found)


def _split(letters: Floats) -> Iterator[Floats]:
    """Yield letters with one of the two at the middle, which are the same, and one of the others twice."""
    ordered = np.sort(letters)
    half = len(ordered) // 2
    for place in range(half - 1):
        gap = 0.25 * (ordered[place + 1] - ordered[place]) if place + 1 < half - 1 else 0.1
        yield np.sort(np.concatenate([ordered[: half - 1], [ordered[place] + gap, 0.0], ordered[half + 1 :]]))


def _free(program: Program, start: Floats) -> _Run | None:
    """Search from a start; None where it fails or stays biased."""
    run = _begin(program, start)
    if run is None:
        return None
    _follow(program, run, _effort(program.inequalities).most)
    return run if run.slack < _UNBIASED else None


def _starts(program: Program, shape: tuple[int, int]) -> Iterator[Floats]:
    """Yield coordinates to start from: letters of known mechanisms, and evenly spaced ones."""
    letters = shape[1]
    even: Floats = np.arange(letters, dtype=np.float64) - (letters - 1) / 2.0
    # GRR on as many points as letters: its letters are the points, stretched.
    stretch = 1.0 + letters * math.exp(-program.widest) / -math.expm1(-program.widest)
    last = (letters - 1) / 2.0
    for reach in (stretch / (2.0 * program.unit), 1.0, 1.2, 1.4, 1.6):
        yield _coordinates(program, reach / last * even)
    yield _coordinates(program, np.sign(even) * 1.2 * (np.abs(even) + 0.5) / (letters / 2.0))


def _coordinates(program: Program, letters: Floats) -> Floats:
    return letters[program.letters // 2 :] if program.mirrored else letters


def _begin(program: Program, coordinates: Floats) -> _Run | None:
    found = program.held(coordinates)
    if found is None:
        return None
    radius = 0.25 * float(np.abs(coordinates).max())
    return _Run(coordinates, found.value, found.table, found.slack, radius)


def _follow(program: Program, run: _Run, steps: int) -> None:
    """Take up to so many steps: each to the optimum of the linearisation, if that is no worse."""
    for _ in range(steps):
        if run.done:
            return
        ahead = program.moved(run.coordinates, run.table, run.radius)
        if ahead is None:
            run.radius /= 4.0
            continue
        promised = run.value - ahead.value
        if promised < _GAIN * max(1.0, abs(run.value)) or run.radius < 1e-9:
            run.done = True
            return
        coordinates = run.coordinates + ahead.step
        found = program.held(coordinates)
        gained = -1.0 if found is None else run.value - found.value
        if found is None or gained <= 0.05 * promised:
            run.radius /= 4.0
            continue
        run.coordinates, run.value = coordinates, found.value
        run.table, run.slack = found.table, found.slack
        if gained > 0.7 * promised:
            run.radius *= 2.0


def _whole(program: Program, run: _Run) -> tuple[Floats, Floats]:
    """Return all rows, and letters on [0, 1] in ascending order."""
    letters = program.basis @ run.coordinates
    table = np.vstack([run.table, run.table[::-1, ::-1]]) if program.mirrored else run.table
    order = np.argsort(letters, kind="stable")
    return table[:, order], 0.5 + program.unit * letters[order]
