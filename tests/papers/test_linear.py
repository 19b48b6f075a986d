"""The linear models of the systems: gradients against differences, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp_papers.models import linear
from bitldp_papers.run.share import loaded


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_gradients_are_those_of_the_loss(model: str) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 1, (40, 5)), linear.targets(rng.integers(0, 3, 40), 3)
    w, step = rng.normal(size=(5, 3)), 1e-6
    slope = linear.gradient(w, x, y, model, 0.25)
    for place in np.ndindex(w.shape):
        ends = []
        for sign in (1.0, -1.0):
            moved = w.copy()
            moved[place] += sign * step
            ends.append(linear.loss(moved, x, y, model) + 0.125 * float((moved * moved).sum()))
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / (2.0 * step), abs=1e-6)


def test_the_gradient_vanishes_where_scikit_learn_stops() -> None:
    from sklearn.linear_model import LogisticRegression

    data, train, test = loaded("breast_cancer")
    x, y = linear.design(train, -1.0), linear.targets(data.train_labels, 1)
    ridge = 1e-2
    other = LogisticRegression(C=1.0 / (ridge * len(x)), fit_intercept=False, tol=1e-10, max_iter=10_000)
    best = other.fit(x, data.train_labels).coef_.T
    assert np.abs(linear.gradient(best, x, y, "logistic", ridge)).max() < 1e-6
    design = linear.design(test, -1.0)
    assert linear.accuracy(best, design, data.test_labels) == other.score(design, data.test_labels)


def test_features_are_scaled_and_classes_told_apart() -> None:
    x = np.array([[-1.0, 0.0, 1.0]], np.float32)
    assert linear.design(x, 0.0).tolist() == [[0.0, 0.5, 1.0, 1.0]]
    assert linear.design(x, -1.0).tolist() == [[-1.0, 0.0, 1.0, 1.0]]
    assert linear.targets(np.array([0, 1]), 1).tolist() == [[-1.0], [1.0]]
    assert linear.targets(np.array([2]), 3).tolist() == [[-1.0, -1.0, 1.0]]
    assert linear.initial(4, 2).shape == (5, 1)
    assert linear.initial(4, 3).shape == (5, 3)
