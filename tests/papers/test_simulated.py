"""FedSel's rounds on tables against the federated system, its methods, and DPBoost."""

from __future__ import annotations

import math
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp
from bitldp_papers import get
from bitldp_papers.brr.sgd import gain
from bitldp_papers.brr.trees import boost, leaf_sensitivity, tree_sizes
from bitldp_papers.fedsel.runs import METHODS
from bitldp_papers.fedsel.system import descend
from bitldp_papers.models import linear
from bitldp_papers.run.many import paired

SMALL: dict[str, Any] = {"data": "breast_cancer", "clients": 456, "batch": 46, "rounds": 10, "rate": 5.0}


def settings(**given: Any) -> Any:
    return get("fedsel").configure(**{**SMALL, "epsilon": 8.0, **given})


@pytest.mark.parametrize("mechanism", ["full", "top"])
@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_rounds_on_tables_are_those_of_messages(mechanism: str, model: str, tmp_path: Path) -> None:
    words: dict[str, Any] = {"mechanism": mechanism, "model": model, "batch": 228, "rounds": 4}
    chosen = settings(**words, out=str(tmp_path))
    summary = get("fedsel").run(chosen, seeded=True)
    # Messages carry float32: a record that lies on the line may fall to either side.
    assert descend(chosen)[-1]["accuracy"] == pytest.approx(summary.score, abs=1.5 / 113)


def test_gradients_of_records_have_the_mean_gradient() -> None:
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(30, 5)), rng.normal(size=(5, 3))
    y = linear.targets(rng.integers(0, 3, 30), 3)
    for model in ("logistic", "svm"):
        each = linear.gradients(w, x, y, model, 0.1)
        assert each.shape == (30, 15)
        assert np.allclose(each.mean(axis=0), linear.gradient(w, x, y, model, 0.1).ravel(), atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs(name: str) -> None:
    words = {**METHODS[name], "rounds": 15}  # one epoch and a half
    rows = descend(settings(**words), every=5)
    assert [row["round"] for row in rows] == [0, 5, 10, 15]
    assert all(0.0 <= row["auc"] <= 1.0 for row in rows)
    assert rows == descend(settings(**words), every=5)


def test_selection_alone_and_what_is_refused() -> None:
    assert descend(settings(values="none", epsilon=20.0))[-1]["auc"] > 0.9
    with pytest.raises(ValueError, match="and two are needed"):
        descend(settings(data="digits"))
    with pytest.raises(ValueError, match="clients: 500 are more than the 456"):
        descend(settings(clients=500))


@pytest.mark.skipif("BITLDP_DATA" not in os.environ, reason="BITLDP_DATA does not name a folder of data sets")
def test_ps_is_above_random_coordinates_at_rate_1_over_twenty_paired_seeds() -> None:
    def last(mechanism: str, seed: int) -> dict[str, float]:
        chosen: Any = get("fedsel").configure(preset="paper", epsilon=2.0, mechanism=mechanism, seed=seed)
        return descend(chosen)[-1]

    ours, theirs = ([last(name, seed) for seed in range(1, 21)] for name in ("fedsel", "flat"))
    for score in ("accuracy", "auc"):
        pair = [[each[score] for each in some] for some in (ours, theirs)]
        assert np.mean(pair[0]) > np.mean(pair[1])
        assert paired(*pair) < 0.01


def test_the_numbers_of_dpboost() -> None:
    assert leaf_sensitivity(1, 0.1, 0.1) == pytest.approx(1.0 / 1.1)
    assert leaf_sensitivity(20, 0.1, 0.1) == pytest.approx(2.0 * 0.9**19)
    sizes = tree_sizes(1000, 10, 0.1)
    assert sizes[0] == int(100.0 / (1.0 - 0.9**10))
    assert all(a > b for a, b in pairwise(sizes))
    assert 990 <= sum(sizes) <= 1000  # no record serves two trees


def _made() -> tuple[Any, Any]:
    rng = np.random.default_rng(6)
    x = rng.uniform(-1.0, 1.0, (4000, 5)).astype(np.float32)
    return x, np.where(x[:, 0] > 0.25, 0.5, -0.5) + 0.2 * np.sign(x[:, 3])


def _error(grown: Any, x: Any, y: Any) -> float:
    return math.sqrt(float(np.mean(np.square(grown.predict(x) - y))))


def test_boosted_trees_fit_and_noise_costs() -> None:
    x, y = _made()
    words: dict[str, Any] = {"trees": 20, "depth": 3}
    plain = _error(boost(x, y, epsilon=1.0, leaves="noiseless", **words), x, y)
    assert plain < 0.15 < y.std()
    errors = {
        (leaves, epsilon): _error(boost(x, y, epsilon=epsilon, leaves=leaves, **words), x, y)
        for leaves in ("brr", "laplace")
        for epsilon in (0.1, 50.0)
    }
    for leaves in ("brr", "laplace"):
        assert plain < errors[leaves, 50.0] < errors[leaves, 0.1]
    # Leaves of BRR stay in their range, whatever epsilon is; Laplace's do not.
    assert errors["brr", 0.1] < errors["laplace", 0.1]
    assert np.array_equal(*(boost(x, y, epsilon=1.0, leaves="brr", **words).values for _ in range(2)))


def test_leaves_may_be_divided_by_the_gain_of_brr() -> None:
    x, y = _made()
    words: dict[str, Any] = {"epsilon": 3.0, "trees": 1, "depth": 2, "seed": 4}
    plain, corrected = (boost(x, y, leaves=leaves, **words).values for leaves in ("brr", "brr-corrected"))
    kept = gain(bitldp.BRR(21, epsilon=1.5, interval=(-1.0, 1.0)))
    assert 0.4 < kept < 0.6
    assert corrected == pytest.approx(plain / kept, rel=1e-12)  # the same draws


def test_a_split_is_drawn_by_its_gain() -> None:
    x, y = _made()
    # With a large budget the first split is the best one, of feature 0; with none, of any.
    firsts = {
        epsilon: [
            boost(x, y, epsilon=epsilon, leaves="brr", trees=1, depth=1, seed=seed).trees[0].features[0]
            for seed in range(20)
        ]
        for epsilon in (1000.0, 1e-6)
    }
    assert set(firsts[1000.0]) == {0}
    assert len(set(firsts[1e-6])) > 2
    with pytest.raises(ValueError, match="leaves: must be one of"):
        boost(x, y, epsilon=1.0, leaves="grr")
