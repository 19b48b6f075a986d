"""Runs with several seeds and mechanisms, presets, and what their scores say together."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp_papers import NAMES, Privacy, Summary, get
from bitldp_papers.run.many import compare, paired, run_many
from support.small_runs import SMALL, run


def summary(mechanism: str, seed: int, score: float) -> Summary:
    return Summary("any", "accuracy", score, 1, 0, Privacy(1.0, 1.0), 0.0, mechanism=mechanism, seed=seed)


def test_many_runs_are_the_single_ones_in_order(tmp_path: Path) -> None:
    system = get("bitrand")
    settings = system.configure(preset="quick", **SMALL["bitrand"], out=str(tmp_path / "many"))
    seen: list[int] = []
    found = run_many(
        system,
        settings,
        iter((3, 4)),
        ("noiseless", "bitrand"),
        seeded=True,
        watcher=lambda row: seen.append(row["round"]),
    )
    named = [("noiseless", 3), ("noiseless", 4), ("bitrand", 3), ("bitrand", 4)]
    assert [(each.mechanism, each.seed) for each in found] == named
    assert len(seen) == 4 * (SMALL["bitrand"]["rounds"] + 1)
    alone, _ = run("bitrand", tmp_path / "alone", seed=4)
    assert found[-1].score == alone.score
    assert found[-1].scores["accuracy"] == alone.score
    # With `resume` what ended is read.
    resumed = system.configure(
        preset="quick", **SMALL["bitrand"], out=str(tmp_path / "many"), resume=True, mechanism="bitrand"
    )
    seen.clear()
    again = run_many(system, resumed, [3, 4], seeded=True, watcher=lambda row: seen.append(row["round"]))
    assert [each.score for each in again] == [each.score for each in found[2:]]
    assert not seen
    with pytest.raises(ValueError, match="mechanism: must be one of"):
        run_many(system, settings, [1], ("noiseless", "nothing"))


def test_scores_are_compared_in_pairs() -> None:
    scores = {"a": (0.8, 0.7, 0.9), "b": (0.83, 0.74, 0.92), "c": (0.8, 0.7, 0.9)}
    found = compare(
        [summary(name, place, each) for name, those in scores.items() for place, each in enumerate(those)]
    )
    first, second, third = found
    assert (first.mechanism, first.difference) == ("a", 0.0)
    assert math.isnan(first.p)
    assert second.mean == pytest.approx(0.83)
    assert second.deviation == pytest.approx(np.std(scores["b"], ddof=1))
    # t = mean / (sd / sqrt n) of the differences .03 .04 .02 is 5.196; with two degrees of freedom, p below.
    t = 5.196152
    assert second.p == pytest.approx(1.0 - t / math.sqrt(2.0 + t * t), rel=1e-4)
    assert third.p == 1.0
    assert paired((1.0, 2.0), (0.0, 1.0)) == 0.0
    (alone,) = compare([summary("a", 1, 0.5)])
    assert math.isnan(alone.deviation)


@pytest.mark.parametrize("name", NAMES)
def test_presets_are_settings(name: str) -> None:
    system = get(name)
    assert "quick" in system.settings.presets
    for preset, words in system.settings.presets.items():
        found: Any = system.configure(preset=preset)
        assert {key: getattr(found, key) for key in words} == dict(words)
    with pytest.raises(ValueError, match=f"preset: {name} has no 'none'; there are quick"):
        system.configure(preset="none")


def test_a_preset_gives_way_to_what_is_given_at_once() -> None:
    from dataclasses import replace

    system = get("fedsel")

    class Other(system.settings):  # type: ignore[name-defined,misc]
        presets: ClassVar = {"small": {"clients": 100, "batch": 50}}

    # A batch of 50 does not fit 40 clients, nor one of 326, the default, the 100 of the preset.
    found: Any = replace(system, settings=Other).configure(preset="small", clients=40, batch=4)
    assert (found.clients, found.batch) == (40, 4)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_simulation_waits_for_no_disk_unless_told(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    system = get("brr")
    for name, durable in (("fleeting", False), ("durable", True)):
        settings = system.configure(preset="quick", **SMALL["brr"], out=str(tmp_path / name))
        system.run(settings, threads=threads, durable=durable)
        assert bool(waits) is durable
    # Four a client and round at the least: the ledger's file and folder, and the last report's.
    assert len(waits) >= 4 * SMALL["brr"]["clients"] * SMALL["brr"]["rounds"]
