"""Mechanisms whose law an audit does not know: only the guarantee and the reports are there."""

from __future__ import annotations

import numpy as np
from bitldp.privacy import Guarantee


class Hidden:
    """A mechanism of which only guarantee and reports are known."""

    def __init__(self, mechanism, *, record=None, **attributes):
        exact = mechanism.guarantee.record if record is None else record
        self.guarantee = Guarantee.judge(exact, (exact, exact, exact))
        self._mechanism = mechanism
        vars(self).update(attributes)

    def randomize(self, x, *, rng=None):
        return self._mechanism.randomize(x, rng=rng)


class Laplace:
    """Noise in plain NumPy on `features` values of [0, 1], epsilon split evenly; no exactness is claimed."""

    interval = (0.0, 1.0)

    def __init__(self, epsilon, features=1, *, factor=1.0, delta=0.0, unprotected=False):
        self.guarantee = Guarantee(epsilon, epsilon, epsilon, epsilon, delta=delta)
        self.features = features
        self.scale = factor * features / epsilon
        self.unprotected = unprotected

    def randomize(self, x, *, rng=None):
        reports = x + (np.random.default_rng() if rng is None else rng).laplace(0.0, self.scale, np.shape(x))
        if self.unprotected:
            reports[:, -1] = x[:, -1]
        return reports
