"""The transformer and the randomizer of labels in scikit-learn's own company."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import bitldp
import numpy as np
import pytest

pytest.importorskip("sklearn", reason='needs pip install "bitldp[sklearn]"')

from bitldp.sklearn import FeatureRandomizer, LabelRandomizer
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator


def test_it_is_an_estimator_by_all_of_their_checks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that say which of them do not apply
        found = check_estimator(FeatureRandomizer(), on_fail=None)
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []
    assert sum(each["status"] == "passed" for each in found) > 30


@pytest.mark.slow
def test_a_pipeline_learns_from_released_records() -> None:
    """Digits at epsilon 40 a record and 4 a label: seeded; by guessing it would be .1."""
    x, y = load_digits(return_X_y=True)
    steps = FeatureRandomizer(epsilon=40.0, interval=(0.0, 16.0), random_state=1)
    model = make_pipeline(steps, LogisticRegression(max_iter=200))
    labels = LabelRandomizer(10, epsilon=4.0, random_state=2).fit_transform(y)
    model.fit(x, labels)
    assert 0.75 < np.mean(labels == y) < 0.95  # p = e^4/(e^4 + 9) = .858
    assert model[-1].score(x, y) > 0.6
    assert model[0].guarantee.record <= 40.0


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_and_names_come_out(kind: str) -> None:
    library = pytest.importorskip(kind)
    frame = library.DataFrame({"height": [0.1, -0.2, 0.3], "weight": [0.5, 0.0, -0.5]})
    steps = FeatureRandomizer(epsilon=2.0).set_output(transform=kind)
    released = steps.fit_transform(frame)
    assert type(released) is type(frame)
    assert list(released.columns) == ["height", "weight"] == list(steps.get_feature_names_out())


def test_clones_and_pickles_are_equal_and_hold_no_data() -> None:
    made = FeatureRandomizer(partial(_duchi, 3.0), ledger=None)
    assert str(clone(made)) == str(made)
    fitted = pickle.loads(pickle.dumps(made.fit(np.array([[0.123456789]]))))
    assert fitted.mechanism_ == bitldp.Duchi(epsilon=3.0, features=1)
    assert b"123456789" not in pickle.dumps(made)


def _duchi(epsilon: float, features: int) -> bitldp.Duchi:
    return bitldp.Duchi(epsilon=epsilon, features=features)


def test_its_numbers_are_unbiased() -> None:
    """N = 40,000, seeded; within 5 standard errors."""
    x = np.full((40_000, 1), 0.3)
    released = FeatureRandomizer(epsilon=2.0, random_state=3).fit_transform(x)
    assert abs(released.mean() - 0.3) < 5.0 * released.std() / 200.0 + 1e-12
    assert FeatureRandomizer().fit(x).transform(x).std() > 0.1


def test_every_call_is_charged_before_it_releases() -> None:
    ledger = bitldp.Ledger(2.5)
    x = np.zeros((3, 1))
    steps = FeatureRandomizer(epsilon=1.0, ledger=ledger).fit(x)
    steps.transform(x)
    steps.transform(x)
    with pytest.raises(bitldp.BudgetExceededError):
        steps.transform(x)
    assert ledger.spent == pytest.approx(2.0)
    labels = LabelRandomizer(epsilon=0.5, ledger=ledger)
    labels.fit_transform([0, 1])
    with pytest.raises(bitldp.BudgetExceededError):
        labels.fit_transform([0, 1])


def test_labels_keep_their_type_and_unknown_ones_are_refused() -> None:
    labels = LabelRandomizer(["no", "yes"], epsilon=1.0).fit_transform(np.array(["no", "yes", "no"]))
    assert set(labels) <= {"no", "yes"}
    with pytest.raises(ValueError, match="x: ") as caught:
        LabelRandomizer(["no", "yes"], epsilon=1.0).fit_transform(np.array(["no", "maybe"]))
    assert "maybe" not in str(caught.value)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="takes 2 features, X has 3"):
        FeatureRandomizer(bitldp.Duchi(epsilon=1.0, features=2)).fit(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="releases no numbers"):
        FeatureRandomizer(bitldp.GRR(3, epsilon=1.0)).fit(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="NaN"):
        FeatureRandomizer().fit_transform(np.array([[np.nan]]))
