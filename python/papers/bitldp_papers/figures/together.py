"""Making of several figures: one after the other, or papers side by side in processes of their own."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bitldp_papers.figures.making import heading, made, make
from bitldp_papers.figures.registry import FigureEntry, figures

__all__ = ["Begun", "Ended", "each_made"]

_CONTEXT = multiprocessing.get_context("spawn")  # libraries that were loaded already have threads


@dataclass(frozen=True)
class Begun:
    """A figure that is being made now."""

    entry: FigureEntry


@dataclass(frozen=True)
class Ended:
    """A figure that ended: its document, whether it was there already, and the seconds that it took."""

    entry: FigureEntry
    document: dict[str, Any]
    was_there: bool
    seconds: float


def each_made(
    entries: Sequence[FigureEntry],
    folder: Path,
    *,
    jobs: int,
    planned: Mapping[str, float],
    notice: Callable[[FigureEntry, str], None],
    **words: Any,
) -> Iterator[Begun | Ended]:
    """Make figures and yield as each begins and ends.

    Parameters
    ----------
    entries : sequence of FigureEntry
    folder : path
        Of all figures.
    jobs : int
        Number of processes. Figures of one paper share steps, so that they stay in one process, in their
        order; with one process, or of one paper, this process makes them.
    planned : mapping
        Seconds by figure: the paper that takes longest begins first.
    notice : callable
        ``notice(entry, text)`` shows progress.
    **words
        As of `make`: form, seeds, resume, given.
    """
    papers: dict[str, list[FigureEntry]] = {}
    for entry in entries:
        papers.setdefault(entry.paper, []).append(entry)
    if min(jobs, len(papers)) < 2:
        for entry in entries:
            yield Begun(entry)
            yield Ended(entry, *_one(entry, folder, words, partial(notice, entry)))
        return
    longest = sorted(papers.values(), key=lambda some: -sum(planned[each.name] for each in some))
    waiting = deque(deque(each) for each in longest)
    workers = [_Worker(folder, words) for _ in range(min(jobs, len(waiting)))]
    try:
        while True:
            for worker in workers:
                if worker.entry is None and (worker.chain or waiting):
                    worker.chain = worker.chain or waiting.popleft()
                    yield Begun(worker.begin(worker.chain.popleft()))
            busy = {each.pipe: each for each in workers if each.entry is not None}
            if not busy:
                return
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                said = worker.said()
                if isinstance(said, str):
                    notice(worker.current, said)
                else:
                    entry, worker.entry = worker.current, None
                    yield Ended(entry, *said)
    finally:
        for worker in workers:
            worker.stop()


@dataclass(eq=False)
class _Worker:
    """A process that makes figures, one at a time, and the figures that wait for it."""

    folder: Path
    words: dict[str, Any]
    chain: deque[FigureEntry] = field(default_factory=deque)
    entry: FigureEntry | None = None

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.pipe, other = _CONTEXT.Pipe()
        self.process: BaseProcess = _CONTEXT.Process(
            target=_work, args=(other, self.folder, self.words), daemon=True
        )
        self.process.start()
        other.close()  # the process has the only one, so that its end is seen here

    @property
    def current(self) -> FigureEntry:
        assert self.entry is not None
        return self.entry

    def begin(self, entry: FigureEntry) -> FigureEntry:
        self.entry, self._since = entry, time.perf_counter()
        try:
            self.pipe.send(entry.name)
        except BrokenPipeError:  # it ended while it had nothing to do
            self._again()
            self.pipe.send(entry.name)
        return entry

    def said(self) -> str | tuple[dict[str, Any], bool, float]:
        """Return progress, or how the figure ended; a process that ended with it makes way for a new one."""
        try:
            result: str | tuple[dict[str, Any], bool, float] = self.pipe.recv()
            return result
        except (EOFError, OSError):
            self.process.join()
            reason = f"its process ended with exit code {self.process.exitcode}"
            document = heading(self.current, **self.words) | {"status": "failed", "reason": reason}
            self._again()
            return document, False, time.perf_counter() - self._since

    def _again(self) -> None:
        self.stop()
        self._start()

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _work(pipe: Connection, folder: Path, words: dict[str, Any]) -> None:
    """Make the figures that a pipe names, until it is closed."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    known = figures()
    try:
        while True:
            pipe.send(_one(known[pipe.recv()], folder, words, pipe.send))
    except (EOFError, OSError, KeyboardInterrupt):  # the other side ended, or was interrupted as this one was
        return


def _one(
    entry: FigureEntry, folder: Path, words: Mapping[str, Any], say: Callable[[str], None]
) -> tuple[dict[str, Any], bool, float]:
    """Return the document of a figure, whether it was there, and its seconds."""
    begun = time.perf_counter()
    asked = {key: value for key, value in words.items() if key != "resume"}
    there = made(folder, entry, **asked) if words["resume"] else None
    if there is not None:
        return there, True, time.perf_counter() - begun
    document = make(entry, folder, notice=lambda label, done, total: say(f"{label} {done}/{total}"), **words)
    return document, False, time.perf_counter() - begun
