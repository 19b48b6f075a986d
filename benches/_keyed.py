"""Keyed releases of each family beside NumPy written by hand, which has the law and draws afresh."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _measure import require
from bitldp.tables import Column, ReleaseKey, TablePlan
from numpy.random import Generator
from numpy.typing import NDArray

EPSILON = 2.0
KEY = ReleaseKey(bytes(range(32)))
ROWS = 1 << 17
Reports = NDArray[Any]


@dataclass(frozen=True)
class Family:
    """A mechanism of categories, its law in NumPy, and the most nanoseconds a row of a keyed release."""

    name: str
    mechanism: Any
    by_hand: Callable[[Any, NDArray[np.int64], Generator], Reports]
    most: float


def unary(mechanism: Any, x: NDArray[np.int64], rng: Generator) -> Reports:
    """Return bits: each is 1 with one of two chances."""
    p, q = (threshold / 2**64 for threshold in mechanism.channel.thresholds())
    own = x[:, None] == np.arange(mechanism.categories)
    return (rng.random(own.shape) < np.where(own, p, q)).astype(np.uint8)


def response(mechanism: Any, x: NDArray[np.int64], rng: Generator) -> Reports:
    """Return the category, or another one."""
    kept = rng.random(len(x)) < mechanism.probabilities()[0, 0]
    return np.where(kept, x, (x + rng.integers(1, mechanism.categories, len(x))) % mechanism.categories)


def hashed(mechanism: Any, x: NDArray[np.int64], rng: Generator) -> Reports:
    """Return a hash function, and the response to the hashed value."""
    prime, values = mechanism.prime, mechanism.values
    a, b = rng.integers(1, prime, len(x)), rng.integers(0, prime, len(x))
    own = (a * x + b) % prime * values // prime
    kept = rng.random(len(x)) < np.exp(EPSILON) / (np.exp(EPSILON) + values - 1)
    return np.stack([a, b, np.where(kept, own, (own + rng.integers(1, values, len(x))) % values)], axis=1)


def subset(mechanism: Any, x: NDArray[np.int64], rng: Generator) -> Reports:
    """Return the categories of the least random numbers, the own one's among them or not."""
    size, rows = mechanism.channel.size, np.arange(len(x))
    order = rng.random((len(x), mechanism.categories))
    order[rows, x] = np.where(rng.random(len(x)) < mechanism.channel.high / 2**64, -1.0, 2.0)
    chosen = np.zeros(order.shape, np.uint8)
    np.put_along_axis(chosen, np.argpartition(order, size - 1, axis=1)[:, :size], 1, axis=1)
    return chosen


def progression(mechanism: Any, x: NDArray[np.int64], rng: Generator) -> Reports:
    """Return a step and a cell: one of the row's progression, or another one."""
    law, n = mechanism.channel, len(x)
    step = rng.integers(1, (law.cells - 1) // 2 + 1, n)
    inside = rng.random(n) < law.high / 2**64
    rank = np.where(inside, rng.integers(0, law.width, n), rng.integers(law.width, law.cells, n))
    return (step - 1) * law.cells + (x + step * rank) % law.cells  # a prime, so ranks are cells


def half(mechanism: Any, x: NDArray[np.int64], rng: Generator) -> Reports:
    """Return a cell of the row's block with an even parity along its line, or another one."""
    law, n = mechanism.channel, len(x)
    size = 2 * law.width
    blocks = law.cells // size
    line = x // blocks + 1
    cell = rng.integers(0, size, n)
    odd = np.bitwise_count(cell & line) & 1
    even = cell ^ np.where(odd, 1 << np.log2(line).astype(np.int64), 0)
    inside = rng.random(n) < law.high / 2**64
    own = x % blocks * size
    # Others: all blocks but the own one, or its other half.
    other = rng.integers(0, law.cells - law.width, n)
    far = (own + size + other) % law.cells
    near = own + (even ^ 1 << np.log2(line).astype(np.int64))
    return np.where(inside, own + even, np.where(other < law.cells - size, far, near))


FAMILIES = [
    Family("OUE(3)", bitldp.OUE(3, epsilon=EPSILON), unary, 80.0),
    Family("SUE(3)", bitldp.SUE(3, epsilon=EPSILON), unary, 80.0),
    Family("OUE(128)", bitldp.OUE(128, epsilon=EPSILON), unary, 400.0),
    Family("OLH(128)", bitldp.OLH(128, epsilon=EPSILON), hashed, 120.0),
    Family("BlockDesign(128)", bitldp.BlockDesign(128, epsilon=EPSILON), progression, 120.0),
    Family("SubsetSelection(3)", bitldp.SubsetSelection(3, epsilon=EPSILON), subset, 120.0),
    Family("SubsetSelection(16)", bitldp.SubsetSelection(16, epsilon=EPSILON), subset, 120.0),
    Family("HadamardResponse(128)", bitldp.HadamardResponse(128, epsilon=EPSILON), half, 120.0),
    Family("GRR(3)", bitldp.GRR(3, epsilon=EPSILON), response, 80.0),
]


def goals() -> dict[str, float]:
    """Return the most of each figure that has a goal."""
    most = {f"keyed {family.name}, ns a row": family.most for family in FAMILIES}
    return {**most, PLAN: 2.5, "keyed Duchi, ns a record and column": 50.0}


PLAN = "keyed plan of the guide against NumPy, times"


def medians(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return the median seconds of the processor that each of some calls takes, in turn."""
    seen: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, seconds in zip(calls, seen, strict=True):
            start = time.process_time()  # a thread that should not be there would count, too
            call()
            seconds.append(time.process_time() - start)
    return [statistics.median(seconds[1:]) for seconds in seen]


def near(name: str, value: Any, stderr: Any, truth: Any) -> None:
    """Refuse an answer further than six standard errors from the truth."""
    require(bool((np.abs(np.subtract(value, truth)) <= 6.0 * np.asarray(stderr)).all()), f"{name}: is wrong")


def parts(release: Any, table: pa.Table) -> pa.Table:
    """Return a release of a table in two parts, the second first; the whole release is the same."""
    cut = len(table) // 3
    again = pa.concat_tables([release(table.slice(cut)), release(table.slice(0, cut))])
    released = release(table)
    require(released.slice(cut).equals(again.slice(0, len(table) - cut)), "a release differs from its parts")
    require(released.slice(0, cut).equals(again.slice(len(table) - cut)), "a release differs from its parts")
    return released


def families(rounds: int) -> dict[str, float]:
    """Measure keyed releases of a column of each family, and the law by hand."""
    found = {}
    for family in FAMILIES:
        mechanism, rng = family.mechanism, np.random.default_rng(3)
        x = np.minimum(rng.integers(0, 2 * mechanism.categories, ROWS), mechanism.categories - 1)
        truth = np.bincount(x, minlength=mechanism.categories) / ROWS
        table = pa.table({"id": np.arange(ROWS), "x": x})
        plan = TablePlan([Column(mechanism, "x", categories=list(range(mechanism.categories)))])
        release = plan.release(KEY, record="id", threads=1)
        answers = plan.aggregate().update(parts(release, table)).estimate()
        share, error = (answers.column(name).to_numpy() for name in ("estimate", "stderr"))
        near(family.name, share, error, truth)
        by_hand = mechanism.estimate_frequencies(family.by_hand(mechanism, x, rng))
        near(f"{family.name} by hand", by_hand.value, by_hand.stderr, truth)
        ours, theirs = medians(
            rounds,
            lambda release=release, table=table: release(table),
            lambda family=family, x=x, rng=rng: family.by_hand(family.mechanism, x, rng),
        )
        found[f"keyed {family.name}, ns a row"] = ours / ROWS * 1e9
        found[f"keyed {family.name}, times NumPy's fresh"] = ours / theirs
    return found


def numbers(rounds: int, columns: int = 4) -> dict[str, float]:
    """Measure a keyed release of numbers as two values, with four columns."""
    rng = np.random.default_rng(4)
    names = [f"x{j}" for j in range(columns)]
    x = rng.uniform(-1.0, 1.0, (columns, ROWS))
    table = pa.table({"id": np.arange(ROWS), **dict(zip(names, x, strict=True))})
    plan = TablePlan([Column(bitldp.Duchi(epsilon=EPSILON, interval=(-1.0, 1.0)), name) for name in names])
    release = plan.release(KEY, record="id", threads=1)
    answers = plan.aggregate().update(parts(release, table)).estimate()
    near("Duchi", answers.column("estimate"), answers.column("stderr"), x.mean(axis=1))
    c = (np.exp(EPSILON) + 1.0) / (np.exp(EPSILON) - 1.0)

    def by_hand() -> Any:
        return [np.where(rng.random(ROWS) < 0.5 + each / (2.0 * c), c, -c) for each in x]

    near("Duchi by hand", np.mean(by_hand(), axis=1), c / ROWS**0.5, x.mean(axis=1))
    ours, theirs = medians(rounds, lambda: release(table), by_hand)
    return {
        "keyed Duchi, ns a record and column": ours / ROWS / columns * 1e9,
        "keyed Duchi, times NumPy's fresh": ours / theirs,
    }


def guide(rounds: int) -> dict[str, float]:
    """Measure the plan of the guide on releases: a number, a category, and one that may be missing, as bits.

    By hand it is one line of NumPy for each law, from an Arrow table to another.
    """
    rng, cities = np.random.default_rng(5), ["Paris", "Rome", "Oslo"]
    height = np.clip(rng.normal(172.0, 9.0, ROWS), 120.0, 220.0)
    city, drink = rng.choice(3, ROWS, p=[0.5, 0.3, 0.2]), rng.choice(3, ROWS, p=[0.6, 0.3, 0.1])
    spellings = pa.array(["tea", "coffee", None])
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "height": height,
            "city": pa.array(cities).take(pa.array(city)),
            "drink": spellings.take(pa.array(drink)),
            "survey": rng.choice(["spring", "autumn"], ROWS),
        }
    )
    grr, oue = bitldp.GRR(3, epsilon=1.0), bitldp.OUE(3, epsilon=1.0)
    plan = TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=1.0, interval=(120.0, 220.0)), "height"),
            Column(grr, "city", categories=cities),
            Column(oue, "drink", categories=["tea", "coffee"], nulls="category"),
        ],
        keep=["survey"],
    )
    release = plan.release(KEY, record="id", threads=1)
    answers = plan.aggregate().update(parts(release, table)).estimate()
    shares = [np.bincount(each, minlength=3) / ROWS for each in (city, drink)]
    near(PLAN, answers.column("estimate"), answers.column("stderr"), [height.mean(), *shares[0], *shares[1]])
    half_way = np.exp(0.5)
    c = (half_way + 1.0) / (half_way - 1.0)

    def by_hand() -> pa.Table:
        height = table.column("height").to_numpy()
        city = pc.index_in(table.column("city"), pa.array(cities)).to_numpy()
        drink = pc.fill_null(pc.index_in(table.column("drink"), pa.array(["tea", "coffee"])), 2).to_numpy()
        t = (height - 170.0) / 50.0
        low = (c + 1.0) / 2.0 * t - (c - 1.0) / 2.0
        inside, outside = low + rng.random(ROWS) * (c - 1.0), rng.random(ROWS) * (c + 1.0) - c
        outside += np.where(outside >= low, c - 1.0, 0.0)
        number = np.where(rng.random(ROWS) < half_way / (half_way + 1.0), inside, outside)
        bits = unary(oue, drink, rng)
        made = [170.0 + 50.0 * number, pa.array(cities).take(pa.array(response(grr, city, rng)))]
        names = ["height", "city", "drink=tea", "drink=coffee", "drink missing", "survey"]
        columns = [np.ascontiguousarray(bits[:, j]) for j in range(3)]
        return pa.table([*made, *columns, table.column("survey")], names)

    made = by_hand()
    near("height by hand", np.mean(made.column("height")), 50.0 * c / ROWS**0.5, height.mean())
    one = pc.index_in(made.column("city"), pa.array(cities)).to_numpy()
    bits = np.stack([made.column(j) for j in (2, 3, 4)], axis=1)
    for mechanism, reports, truth in ((grr, one, shares[0]), (oue, bits, shares[1])):
        estimate = mechanism.estimate_frequencies(reports)
        near("plan by hand", estimate.value, estimate.stderr, truth)
    fresh = plan.release(threads=1)
    ours, unkeyed, theirs = medians(rounds, lambda: release(table), lambda: fresh(table), by_hand)
    return {
        "keyed plan of the guide, ns a row": ours / ROWS * 1e9,
        PLAN: ours / theirs,
        "fresh plan of the guide against NumPy, times": unkeyed / theirs,
    }
