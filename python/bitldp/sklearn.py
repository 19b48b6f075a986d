"""Local differential privacy in scikit-learn pipelines: a transformer of features, a randomizer of labels.

    model = make_pipeline(FeatureRandomizer(epsilon=4.0, interval=(0.0, 16.0)), LogisticRegression())
    model.fit(X, LabelRandomizer(10, epsilon=2.0).fit_transform(y))

Each call of `transform` is a release of its own and costs epsilon again: transform the training records once,
and do not put what was released through it a second time. Needs the extra ``sklearn``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import require
from bitldp.categorical.responses import GRR
from bitldp.ledger.budget import Ledger
from bitldp.mechanism.base import Mechanism
from bitldp.numeric.piecewise import Piecewise
from bitldp.privacy import Guarantee

require("bitldp.sklearn", ["sklearn"], "sklearn")

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

__all__ = ["FeatureRandomizer", "LabelRandomizer"]


class FeatureRandomizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Randomizes the features of records, each a record of one person, to numbers whose mean is right.

    Parameters
    ----------
    mechanism : Mechanism or callable, optional
        Mechanism that releases a record of numbers, or a function that makes one for a number of features
        (`functools.partial` of a class can be pickled). Default: `Piecewise` with sampled features, from
        `epsilon` and `interval`.
    epsilon : float
        Budget of a record, for the default mechanism.
    interval : (float, float)
        Public range of every feature, for the default mechanism. Values outside are moved to its ends.
    ledger : Ledger, optional
        Ledger that every call of `transform` charges before it releases.
    random_state : int, optional
        Seed for reproducible releases, for tests only: it removes the privacy.

    Attributes
    ----------
    mechanism_ : Mechanism
        After `fit`, which looks at the shape of the data alone.
    n_features_in_ : int

    Raises
    ------
    ValueError
        For NaN, or records of another number of features; never with a value in the message.
    """

    def __init__(
        self,
        mechanism: Mechanism | Callable[[int], Mechanism] | None = None,
        *,
        epsilon: float = 1.0,
        interval: tuple[float, float] = (-1.0, 1.0),
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.interval = interval
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> FeatureRandomizer:  # noqa: N803
        """Take the number of features; learn nothing of their values."""
        X = validate_data(self, X, dtype=(np.float64, np.float32))  # noqa: N806
        features = X.shape[1]
        if self.mechanism is None:
            self.mechanism_: Mechanism = Piecewise(
                epsilon=self.epsilon,
                features=features,
                interval=self.interval,
                spend="split" if features == 1 else "sample",
            )
        elif isinstance(self.mechanism, Mechanism):
            self.mechanism_ = self.mechanism
        else:
            self.mechanism_ = self.mechanism(features)
        if self.mechanism_.columns != features:
            raise ValueError(f"mechanism: takes {self.mechanism_.columns} features, X has {features}")
        if "values" not in self.mechanism_.outputs:
            raise ValueError(f"mechanism: {type(self.mechanism_).__name__} releases no numbers")
        return self

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of a record, of one call of `transform`."""
        check_is_fitted(self)
        return self.mechanism_.guarantee

    def transform(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Release the records: this costs `guarantee` each time."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32))  # noqa: N806
        if self.ledger is not None:
            self.ledger.charge(self.mechanism_)
        codes = self.mechanism_.randomize(np.ascontiguousarray(X), rng=self.random_state)
        released: NDArray[Any] = np.asarray(self.mechanism_.decode(codes), dtype=X.dtype)
        return released.reshape(X.shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LabelRandomizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Randomizes class labels by randomized response: labels in, labels out.

    Parameters
    ----------
    categories : int or sequence
        Public list of the classes, or their number, for integers from 0. It is never learned from labels,
        since that would reveal which of them occur.
    epsilon : float
        Budget of a label.
    ledger : Ledger, optional
        Ledger that every call of `transform` charges before it releases.
    random_state : int, optional
        Seed for reproducible releases, for tests only: it removes the privacy.
    """

    def __init__(
        self,
        categories: int | Sequence[Any] = 2,
        *,
        epsilon: float = 1.0,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.categories = categories
        self.epsilon = epsilon
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, y: Any, _: Any = None) -> LabelRandomizer:
        """Prepare the mechanism; learn nothing of the labels."""
        self.mechanism_ = GRR(self.categories, epsilon=self.epsilon)
        return self

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of a label, of one call of `transform`."""
        check_is_fitted(self)
        return self.mechanism_.guarantee

    def transform(self, y: Any) -> NDArray[Any]:
        """Release the labels: this costs `guarantee` each time."""
        check_is_fitted(self)
        if self.ledger is not None:
            self.ledger.charge(self.mechanism_)
        labels = np.asarray(y)
        released: NDArray[Any] = self.mechanism_.decode(
            self.mechanism_.randomize(labels, rng=self.random_state)
        )
        return released.astype(labels.dtype, copy=False)

    def fit_transform(self, y: Any, _: Any = None) -> NDArray[Any]:
        """Fit, then release the labels."""
        return self.fit(y).transform(y)
