"""The record of the figures, the time left, and two runs side by side."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.cli import main
from bitldp_papers.figures import Finding, figures, make, record
from bitldp_papers.figures.comparing import pairs
from bitldp_papers.figures.remaining import Remaining, minutes, planned, recorded

HERE = Path(__file__).parents[2]
RECORD = HERE / "benches" / "records" / "papers.json"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as exit_of:
        main(["paper", *map(str, arguments)])
    return int(exit_of.value.code or 0)


# -- the record


def test_a_figure_is_added_as_it_ends(tmp_path: Path) -> None:
    entry = figures()["bitrand-5"]
    path = tmp_path / "papers.json"
    document = make(entry, tmp_path, form="medium")
    assert record.add(path, document)
    one = record.read(path)["figures"]["bitrand-5"]
    assert (one["form"], one["title"]) == ("medium", entry.title)
    assert one["panels"][0]["lines"]
    assert one["seconds"] > 0
    # A shorter form, or one that was not made, replaces no longer one.
    assert not record.add(path, document | {"form": "quick"})
    assert not record.add(path, document | {"status": "skipped", "reason": "no data"})
    assert record.add(path, document | {"form": "full", "title": "another"})
    assert record.read(path)["figures"]["bitrand-5"]["title"] == "another"
    # One that could not be made gives way.
    other = document | {"name": "bitrand-4", "status": "skipped", "reason": "no data"}
    assert record.add(path, other)
    assert list(record.read(path)["figures"]) == ["bitrand-4", "bitrand-5"]
    assert record.add(path, document | {"name": "bitrand-4", "form": "medium"})
    assert not record.add(path, document | {"form": "full", "given": "adult=mine.csv"})
    # Places where people were are not kept.
    person = "a place of one person"
    record.add(path, document | {"name": "brr-6", "paper": "brr", "rows": [{"x": person}]})
    assert record.read(path)["figures"]["brr-6"]["panels"] == []
    assert person not in path.read_text()


def test_the_command_keeps_a_record_and_other_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "papers.json"
    given = ("mvu-b2", "--form", "medium", "--seed", 11, "--repeats", 2, "--record", path)
    assert run(*given, "--out", tmp_path / "a", "--json") == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["form"], shown["seeds"], shown["status"]) == ("medium", [11, 12], "done")
    assert record.read(path)["figures"]["mvu-b2"]["seeds"] == [11, 12]
    # With --resume it is left as it is; with other seeds it is made.
    assert run(*given, "--out", tmp_path / "a", "--resume") == 0
    assert "was there" in capsys.readouterr().err
    assert run("mvu-b2", "--form", "medium", "--out", tmp_path / "a", "--resume") == 0
    assert "was there" not in capsys.readouterr().err
    assert json.loads((tmp_path / "a" / "mvu-b2" / "figure.json").read_text())["seeds"] == [1, 2, 3, 4, 5]
    assert run("mvu-b2", "--form", "long") == 2
    assert run("mvu-b2", "--form", "full", "--quick") == 2
    assert "--quick is --form quick" in capsys.readouterr().err


# -- the time left


def left_over(actual: dict[str, float], seconds: dict[str, float]) -> list[tuple[float, float]]:
    """Return the share that is done and the estimate over the truth, four times a figure."""
    now = [0.0]
    remaining = Remaining(seconds, lambda: now[0])
    total = sum(actual.values())
    found = []
    for name, takes in actual.items():
        remaining.begins(name)
        for _ in range(4):
            found.append((now[0] / total, remaining.seconds() / (total - now[0])))
            now[0] += takes / 4
        remaining.ended(name)
    return found


@pytest.mark.parametrize("speed", [0.4, 1.0, 2.5])
def test_the_time_left_is_right_within_a_factor_of_one_and_a_half(speed: float) -> None:
    """Recorded seconds on a machine of another speed, each figure off by up to a fifth, 20 seeds.

    The error of the figures that gave the speed multiplies that of the one left: 1.2 * 1.2 is below 1.5.
    """
    seconds = planned(list(figures().values()), "quick")
    assert sum(seconds.values()) > 300.0
    for seed in range(20):
        rng = random.Random(seed)
        actual = {name: speed * value * rng.uniform(1 / 1.2, 1.2) for name, value in seconds.items()}
        found = left_over(actual, seconds)
        late = [ratio for done, ratio in found if 0.1 <= done <= 0.9]
        assert 1 / 1.5 < min(late) <= max(late) < 1.5


def test_a_time_left_that_learns_nothing_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitldp_papers.figures.remaining._PRIOR", 1e9)
    seconds = planned(list(figures().values()), "quick")
    found = left_over({name: 2.5 * value for name, value in seconds.items()}, seconds)
    assert min(ratio for done, ratio in found if 0.1 <= done <= 0.9) < 1 / 1.5


def test_a_figure_that_was_there_measures_nothing() -> None:
    now = [0.0]
    remaining = Remaining({"a": 100.0, "b": 100.0, "c": 100.0}, lambda: now[0])
    remaining.begins("a")
    remaining.ended("a", made=False)
    remaining.begins("b")
    assert remaining.seconds() == pytest.approx(200.0)
    now[0] = 50.0
    assert remaining.seconds() == pytest.approx(150.0)
    now[0] = 200.0
    remaining.ended("b")
    remaining.begins("c")
    fade = math.exp(-100.0 / 60.0)  # of the speed assumed at first
    assert remaining.seconds() == pytest.approx(100.0 * (200.0 + 5.0 * fade) / (100.0 + 5.0 * fade))
    now[0] = 2000.0
    assert remaining.seconds() >= 0.1 * 1800.0  # it is not said to end at once
    remaining.ended("c")
    assert remaining.seconds() == pytest.approx(0.0)


def test_one_number_for_one_command() -> None:
    """What `list` and the time left say is what the pages print: the seconds of the record."""
    known = figures()
    for name, one in record.read(RECORD)["figures"].items():
        if "seconds" in one and name in known:
            assert recorded(name)[one["form"]] == [one["seconds"], one["borrowed"]], name
            assert 60.0 * minutes(known[name], one["form"]) == pytest.approx(one["seconds"])


# -- two runs


def document(folder: Path, name: str, word: str, seeds: list[int], form: str = "quick") -> None:
    (folder / name).mkdir(parents=True)
    found = [Finding.of("it is", word, f"with {seeds}").document()]
    kept = {"status": "done", "form": form, "seeds": seeds, "asked": seeds, "findings": found}
    (folder / name / "figure.json").write_text(json.dumps(kept))


@pytest.mark.parametrize(
    ("words", "flips"),
    [
        (("holds", "holds"), False),
        (("holds", "not decided"), False),
        (("not reached in this form", "does not hold"), False),
        (("holds", "does not hold"), True),
        (("holds", "sign holds, size does not"), True),
        (("a constant does better", "holds"), True),
    ],
)
def test_a_verdict_that_flips_with_the_seeds_is_seen(
    words: tuple[str, str], flips: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for word, seeds, place in zip(words, ([1, 2], [3, 4]), "ab", strict=True):
        document(tmp_path / place, "brr-10", word, seeds)
    assert run("compare", tmp_path / "a", tmp_path / "b") == int(flips)
    shown = capsys.readouterr()
    assert f"{int(flips)} flipped" in shown.out
    assert ("verdicts flip with the seeds: brr-10" in shown.err) is flips


def test_runs_that_say_nothing_of_each_other_are_refused(tmp_path: Path) -> None:
    document(tmp_path / "a", "brr-10", "holds", [1, 2])
    document(tmp_path / "same", "brr-10", "holds", [2, 3])
    document(tmp_path / "form", "brr-10", "holds", [3, 4], "medium")
    with pytest.raises(ValueError, match="the same seeds in both; run one with --seed 3"):
        list(pairs(tmp_path / "a", tmp_path / "same"))
    with pytest.raises(ValueError, match="quick form here, in the medium form there"):
        list(pairs(tmp_path / "a", tmp_path / "form"))
    assert run("compare", tmp_path / "a") == 2
    assert run("compare", tmp_path / "a", tmp_path / "none") == 2
