"""Figures of several papers at once: the same documents, in processes that may end."""

from __future__ import annotations

import multiprocessing
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("bitldp_papers", reason="bitldp-papers is not installed")

from bitldp_papers.figures import chosen, figures
from bitldp_papers.figures.remaining import Remaining, planned
from bitldp_papers.figures.together import Begun, Ended, each_made

ENTRIES = chosen(["bitrand-4", "bitrand-6", "mvu-b1", "mvu-b2"])
WORDS: dict[str, Any] = {"form": "quick", "seeds": range(1, 3), "resume": False, "given": None}
TIMES = ("seconds", "borrowed")


def events(folder: Path, jobs: int, **words: Any):
    seconds = {each.name: 1.0 for each in ENTRIES}
    return each_made(
        ENTRIES, folder, jobs=jobs, planned=seconds, notice=lambda *_: None, **{**WORDS, **words}
    )


def ended(found) -> dict[str, Ended]:
    return {each.entry.name: each for each in found if isinstance(each, Ended)}


def test_two_processes_make_what_one_makes(tmp_path: Path) -> None:
    alone = ended(events(tmp_path / "one", 1))
    found = list(events(tmp_path / "two", 2))
    assert not multiprocessing.active_children()
    together = ended(found)
    for name, each in alone.items():
        assert each.document["status"] == "done"
        shown = {key: value for key, value in each.document.items() if key not in TIMES}
        assert {key: value for key, value in together[name].document.items() if key not in TIMES} == shown
        assert (tmp_path / "two" / name / "figure.csv").read_bytes() == (
            tmp_path / "one" / name / "figure.csv"
        ).read_bytes()
    assert [isinstance(each, Begun) for each in found[:2]] == [True, True]  # both at once
    again = ended(events(tmp_path / "two", 2, resume=True))
    assert all(each.was_there for each in again.values())


def test_a_process_that_ends_loses_one_figure(tmp_path: Path) -> None:
    found = events(tmp_path, 2)
    assert isinstance(next(found), Begun)
    assert isinstance(next(found), Begun)
    for each in multiprocessing.active_children():
        each.kill()
    documents = {name: each.document for name, each in ended(found).items()}
    lost = [name for name, each in documents.items() if each["status"] == "failed"]
    assert {each.partition("-")[0] for each in lost} == {"bitrand", "mvu"}
    assert len(lost) == 2
    assert documents[lost[0]]["reason"] == "its process ended with exit code -9"
    assert {each["status"] for name, each in documents.items() if name not in lost} == {"done"}


def test_a_process_that_ends_while_it_waits_loses_nothing(tmp_path: Path) -> None:
    found = events(tmp_path, 2)
    next(found)
    for each in multiprocessing.active_children():
        each.kill()
        each.join()
    assert [each.document["status"] for each in ended(found).values()].count("failed") == 1


@pytest.mark.parametrize("jobs", [2, 4])
def test_the_time_left_of_several_processes(jobs: int) -> None:
    """Recorded seconds at another speed, each figure off by up to a fifth, 20 seeds: within a factor 1.5."""
    entries = list(figures().values())
    seconds = planned(entries, "quick")
    for seed in range(20):
        rng = random.Random(seed)
        actual = {name: 1.7 * value * rng.uniform(1 / 1.2, 1.2) for name, value in seconds.items()}
        found = schedule(actual, seconds, jobs)
        late = [ratio for done, ratio in found if 0.1 <= done <= 0.9]
        assert 1 / 1.5 < min(late) <= max(late) < 1.5


def schedule(actual: dict[str, float], seconds: dict[str, float], jobs: int) -> list[tuple[float, float]]:
    """Return the share of the time that is over, and the time left as said over the true one."""
    papers: dict[str, list[str]] = {}
    for name in actual:
        papers.setdefault(name.partition("-")[0], []).append(name)
    waiting = sorted(papers.values(), key=lambda some: -sum(seconds[name] for name in some))
    now = [0.0]
    remaining = Remaining(seconds, lambda: now[0], jobs=jobs)
    chains: list[list[str]] = [[] for _ in range(jobs)]
    ends: list[tuple[float, str] | None] = [None] * jobs
    said = []
    while True:
        for index in range(jobs):
            if ends[index] is None and (chains[index] or waiting):
                chains[index] = chains[index] or waiting.pop(0)
                name = chains[index].pop(0)
                remaining.begins(name)
                ends[index] = now[0] + actual[name], name
        under_way = [(end, index) for index, end in enumerate(ends) if end is not None]
        if not under_way:
            break
        said.append((now[0], remaining.seconds()))
        (now[0], name), index = min(under_way)
        remaining.ended(name)
        ends[index] = None
    return [(at / now[0], left / (now[0] - at)) for at, left in said]
