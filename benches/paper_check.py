"""The papers' headlines, reached: ``make paper-check``, on real data, beside the exact epsilon of each.

    python benches/paper_check.py [--seeds 5] [--only WORD] [--out FOLDER]

Needs the data sets of BITLDP_DATA, and fails without them. What has ended is kept in the folder, so that an
interrupted run goes on. Its figures are kept in ``benches/records/paper.json``; from it ``docs/fill.py``
fills the tables of the documents.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from bitldp.base.documents import jsonable
from bitldp_papers import get
from bitldp_papers.bitrand import system as bitrand
from bitldp_papers.bitrand.settings import FEATURES, UPDATES
from bitldp_papers.brr import sgd as brr
from bitldp_papers.fedsel import system as fedsel
from bitldp_papers.figures import FigureRun
from bitldp_papers.ldpfl import system as ldpfl
from bitldp_papers.mvu import system as mvu
from bitldp_papers.run.many import paired

RECORD = Path(__file__).parent / "records" / "paper.json"
_EPSILONS = (0.1, 0.3, 0.5, 0.7, 1.0)

Number = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """What a check saw: whether it holds, and every number, with its mean, spread and exact epsilon."""

    holds: bool
    numbers: list[Number]


@dataclass(frozen=True)
class Check:
    """One headline: its name, what must be so, and the function that looks."""

    name: str
    must: str
    look: Callable[[FigureRun], Found]


def _number(what: str, scores: Sequence[float], claimed: float, exact: float | None = None) -> Number:
    spread = stdev(scores) if len(scores) > 1 else None
    return {"what": what, "mean": fmean(scores), "spread": spread, "claimed": claimed, "exact": exact}


def _scores(
    run: FigureRun, system: str, score: Callable[[Any], dict[str, float]], given: dict[str, Any]
) -> list[dict[str, float]]:
    """Return what `score` gives of a system's runs, seed after seed; each run is kept."""
    found = []
    for seed in run.seeds:
        settings = get(system).configure(**{"preset": "paper", **given, "seed": seed})
        begun = time.perf_counter()
        found.append(run.cached(f"{system} {settings}", partial(score, settings)))
        print(
            f"  {system} {given} seed {seed}: {found[-1]} ({time.perf_counter() - begun:.0f} s)", flush=True
        )
    return found


def _column(found: Sequence[dict[str, float]], name: str = "accuracy") -> list[float]:
    return [each[name] for each in found]


def brr_over_laplace(run: FigureRun) -> Found:
    """Look at Figure 9 of BRR: gradients perturbed by BRR and by Laplace noise."""
    given = {"net": "dense", "hidden": 32, "rounds": 100}

    def score(settings: Any) -> dict[str, float]:
        return {"accuracy": brr.descend(settings, every=settings.rounds)[-1]["accuracy"]}

    numbers, holds = [], True
    for epsilon in _EPSILONS:
        ours, theirs = (
            _column(_scores(run, "brr", score, {**given, "mechanism": name, "epsilon": epsilon}))
            for name in ("brr", "laplace")
        )
        gain = fmean(ours) - fmean(theirs)
        holds &= gain > 0.0 if epsilon <= 0.3 else gain > -0.02
        numbers += [
            _number(f"{name}, epsilon {epsilon:g}", some, epsilon)
            for name, some in (("BRR", ours), ("Laplace", theirs))
        ]
    return Found(holds, numbers)


def bitrand_over_baselines(run: FigureRun) -> Found:
    """Look at BitRand on AG at claimed 1, labels as they are, and at the baselines of Figures 15 and 16.

    The paper's 1,500 units a layer would be hours for the updates, of which every weight is drawn in every
    round: the network is small, and ends where the large one does on these records.
    """
    records = {"hidden": 64, "rounds": 80, "rate": 0.4}
    updates = {"place": "updates", "hidden": 32, "rounds": 20, "rate": 0.5}

    def score(settings: Any) -> dict[str, float]:
        return bitrand.learned(settings)

    def number(what: str, given: dict[str, Any]) -> Number:
        found = _scores(run, "bitrand", score, given)
        return _number(what, _column(found), 1.0, found[0]["exact"])

    ours = number("BitRand (f-RR), features", {"mechanism": "bitrand-paper", **records})
    others = [
        number(f"{name}, features", {"mechanism": name, **records})
        for name in FEATURES
        if not name.startswith("bitrand")
    ]
    others += [number(f"{name}, gradients", {"mechanism": name, **updates}) for name in UPDATES]
    holds = ours["mean"] >= 0.83 and all(each["mean"] < ours["mean"] for each in others)
    return Found(holds, [ours, *others])


def ldpfl_on_mnist(run: FigureRun) -> Found:
    """Look at LDPFL on MNIST: two clients with 5,000 records each."""
    network = {"extractor_epochs": 3, "extractor_optimizer": "sgd", "extractor_rate": 0.03, "tested": 2000}
    plain = {"batch_norm": False, "augment": False, "ridge": 0.0}
    dense = {"hidden": 128, "rounds": 4, "epochs": 2, "rate": 0.1, "optimizer": "sgd"}
    given = {"records": 10_000, **network, **plain, **dense}

    def score(settings: Any) -> dict[str, float]:
        course = ldpfl.learned(settings)
        return {"accuracy": course["accuracy"][-1], "exact": course["exact"]}

    found = _scores(run, "ldpfl", score, given)
    number = _number("LDPFL (UER), 2 x 5,000", _column(found), 0.5, found[0]["exact"])
    return Found(number["mean"] >= 0.90, [number])


def mvu_near_gaussian(run: FigureRun) -> Found:
    """Look at MVU with one bit a coordinate, and at Gaussian noise of twelve, at epsilon 5."""

    def score(settings: Any) -> dict[str, float]:
        return {"accuracy": mvu.descend(settings)[-1]["accuracy"]}

    numbers = [
        _number(what, _column(_scores(run, "mvu", score, {"epsilon": 5.0, **given})), 5.0, 5.0)
        for what, given in (
            ("MVU, 1 bit", {"mechanism": "mvu", "output_bits": 1}),
            ("Gaussian, 12 bits", {"mechanism": "gaussian", "noise_bits": 12}),
        )
    ]
    return Found(numbers[0]["mean"] >= numbers[1]["mean"] - 0.05, numbers)


def ps_over_flat(run: FigureRun) -> Found:
    """Look at FedSel's PS and at flat PM on Adult, at rate 1, over 20 paired seeds."""
    run.given_seeds = tuple(range(1, 21))
    found = {
        name: _column(
            _scores(run, "fedsel", lambda settings: fedsel.descend(settings)[-1], {"rate": 1.0, **given})
        )
        for name, given in (("PS", {"select": "PS"}), ("flat", {"mechanism": "flat"}))
    }
    p = paired(found["PS"], found["flat"])
    numbers = [_number(f"{name}, rate 1", scores, 2.0, 2.0) for name, scores in found.items()]
    numbers.append(
        {"what": "p of a paired t-test", "mean": p, "spread": None, "claimed": None, "exact": None}
    )
    return Found(fmean(found["PS"]) > fmean(found["flat"]), numbers)


CHECKS = (
    Check(
        "brr", "BRR above Laplace at epsilon <= .3 (Fig. 9), within two points of it above", brr_over_laplace
    ),
    Check(
        "bitrand",
        "BitRand on AG at claimed 1 >= .83 clean, every baseline of Figs. 15, 16 below",
        bitrand_over_baselines,
    ),
    Check("ldpfl", "LDPFL on MNIST, 2 x 5,000 records, >= .90 at claimed .5", ldpfl_on_mnist),
    Check(
        "mvu", "MVU with one bit within 5 points of Gaussian noise of twelve at epsilon 5", mvu_near_gaussian
    ),
    Check("fedsel", "PS above flat PM at rate 1 over 20 paired seeds", ps_over_flat),
)
_DATA = ("mnist", "ag_news", "adult")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks, keep their figures, and return how many failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 1 on")
    parser.add_argument("--only", default="", metavar="WORD", help="checks whose name has this word")
    parser.add_argument(
        "--out", type=Path, default=Path("paper-check-output"), help="what has ended is kept there"
    )
    options = parser.parse_args(arguments)
    if not os.environ.get("BITLDP_DATA"):
        print(
            "paper-check: BITLDP_DATA must name the folder of the data sets; nothing was checked",
            file=sys.stderr,
        )
        return 1
    warnings.simplefilter("ignore")
    kept = {each["name"]: each for each in json.loads(RECORD.read_text())} if RECORD.exists() else {}
    failed = 0
    for check in CHECKS:
        if options.only not in check.name:
            continue
        run = FigureRun(options.out / check.name, seeds=range(1, options.seeds + 1))
        checksums = [run.data(name) and run.checksums[name] for name in _DATA]
        found = check.look(run)
        failed += not found.holds
        print(f"{check.name}: {'holds' if found.holds else 'FAILS'}: {check.must}", flush=True)
        kept[check.name] = {
            "name": check.name,
            "must": check.must,
            "holds": found.holds,
            "seeds": len(run.seeds),
            "date": date.today().isoformat(),
            "numbers": found.numbers,
            "data": dict(zip(_DATA, checksums, strict=True)),
        }
        ordered = [kept[each.name] for each in CHECKS if each.name in kept]
        RECORD.write_text(json.dumps(jsonable(ordered), indent=1) + "\n", encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
