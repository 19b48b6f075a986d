"""Clocks, rates of the machine, and what it is made of."""

from __future__ import annotations

import hashlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bitldp import _core
from keep import cpu_name

MILLISECOND = 1e-3
MEBIBYTE = 1 << 20


class WrongResultError(Exception):
    """What is about to be timed does not compute what it should."""


def require(condition: bool, message: str) -> None:
    """Raise `WrongResultError` unless the condition holds."""
    if not condition:
        raise WrongResultError(message)


@dataclass(frozen=True)
class Times:
    """Repeated timings of one call, in seconds."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The least: what the machine can do when it does nothing else."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Timed:
    """A call to be timed.

    Attributes
    ----------
    call : callable
        What is timed; `inner` calls make one timing.
    clock : callable
        `time.thread_time` leaves out what other threads and processes take and suits one thread;
        `time.perf_counter` is the wall's and the only one that shows what a second thread brings.
    inner, repeats : int
        Calls in a timing, and timings in a round.
    """

    call: Callable[[], object]
    clock: Callable[[], float] = time.perf_counter
    inner: int = 1
    repeats: int = 1

    def once(self) -> float:
        """Return the seconds of one call, as the mean of `inner`."""
        start = self.clock()
        for _ in range(self.inner):
            self.call()
        return (self.clock() - start) / self.inner


def interleaved(timed: Sequence[Timed], rounds: int) -> list[Times]:
    """Time calls in turn, so that a slow spell of the machine falls on all of them.

    Parameters
    ----------
    timed : sequence of Timed
        Each is called once before, untimed.
    rounds : int
        How often all of them are gone through.

    Returns
    -------
    list of Times
    """
    for each in timed:
        each.call()
    seconds: list[list[float]] = [[] for _ in timed]
    for _ in range(rounds):
        for each, kept in zip(timed, seconds, strict=True):
            kept.extend(each.once() for _ in range(each.repeats))
    return [Times(tuple(kept)) for kept in seconds]


class Pair:
    """Two threads that compute the same and share nothing: what the machine gives a second one meanwhile."""

    def __init__(self) -> None:
        self._data = bytes(2 * MEBIBYTE)
        self._other = ThreadPoolExecutor(1)

    def alone(self) -> None:
        """Compute on the caller's thread."""
        hashlib.sha256(self._data)

    def together(self) -> None:
        """Compute as much on each of two threads: hashing leaves the interpreter to others."""
        other = self._other.submit(self.alone)
        self.alone()
        other.result()


class Others:
    """Watches how many cores other processes use meanwhile."""

    def __init__(self) -> None:
        self._start = (_busy(), time.process_time(), time.perf_counter())

    def cores(self) -> float:
        """Return the mean number of cores that others (and the host) took since then; 0 if unknown."""
        busy, own, wall = _busy(), time.process_time(), time.perf_counter()
        seconds = wall - self._start[2]
        return max(0.0, (busy - self._start[0]) - (own - self._start[1])) / seconds if busy else 0.0


def _busy() -> float:
    """Return the seconds of all cores that were not idle since the machine started; 0 where nothing tells."""
    statistics_ = Path("/proc/stat")
    if not statistics_.exists():
        return 0.0
    ticks = [int(word) for word in statistics_.read_text().splitlines()[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Probe:
    """A call that does one thing only, as fast as one thread can, on a known number of bytes."""

    timed: Timed
    bytes: int

    def rate(self, times: Times) -> float:
        """Return bytes a second, from timings of `timed`."""
        return self.bytes / times.best


def probes() -> dict[str, Probe]:
    """Return what measures the limits of the machine.

    Returns
    -------
    dict
        `keystream`: makes keystream in a buffer that stays cached. `copy`: reads and writes memory that no
        cache holds. `fill`: writes such memory.
    """
    key, length = bytes(32), 32 << 10
    source = np.ones(32 * MEBIBYTE, dtype=np.uint8)
    target = np.zeros_like(source)
    clock = time.thread_time
    return {
        "keystream": Probe(Timed(lambda: _core.keystream(key, 0, length), clock, inner=100), length),
        "copy": Probe(Timed(lambda: np.copyto(target, source), clock), 2 * source.nbytes),
        "fill": Probe(Timed(lambda: target.fill(1), clock), target.nbytes),
    }


@dataclass(frozen=True)
class Machine:
    """Where the figures come from."""

    cpu: str
    cores: int
    isa: str
    python: str
    numpy: str
    bitldp: str
    keystream: float
    copy: float
    fill: float

    def lines(self) -> list[str]:
        """Return the machine as lines of text."""
        return [
            f"{self.cpu}, {self.cores} cores; kernels run on {self.isa}",
            f"Python {self.python}, NumPy {self.numpy}, bitldp {self.bitldp}",
            f"one thread: keystream {self.keystream / 1e9:.2f} GB/s, "
            f"copy {self.copy / 1e9:.2f} GB/s read and written, fill {self.fill / 1e9:.2f} GB/s",
        ]


def machine(limits: dict[str, Probe]) -> Machine:
    """Look at the machine and measure its limits."""
    times = interleaved([probe.timed for probe in limits.values()], 9)
    rates = {name: limits[name].rate(each) for name, each in zip(limits, times, strict=True)}
    return Machine(
        cpu=cpu_name(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        isa=_core.isa(),
        python=platform.python_version(),
        numpy=np.__version__,
        bitldp=_core.__version__,
        keystream=rates["keystream"],
        copy=rates["copy"],
        fill=rates["fill"],
    )
