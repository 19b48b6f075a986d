"""Learning with BRR or Laplace noise: gradients, vectors, or the leaves of trees.

Three tasks of the paper: "sgd" (each round's gradient, clipped by a threshold that adapts), "vectors"
(records perturbed once, a network trained on them: DNN-DP) and "trees" (boosted regression trees whose leaves
are perturbed). Flower's own commands start the same two apps: ``bitldp_papers.brr:server_app`` and
``:client_app``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp_papers.brr.settings import MECHANISMS, NAME, TASKS, UNITS, BRRSettings, privacy
from bitldp_papers.brr.sgd import Gradients
from bitldp_papers.brr.trees import Trees
from bitldp_papers.models import nets
from bitldp_papers.run.client import Client
from bitldp_papers.run.rounds import Privacy, Round, Turn
from bitldp_papers.run.share import loaded
from bitldp_papers.run.system import System
from bitldp_papers.run.vectors import Model

__all__ = ["SYSTEM", "BRRSettings", "Vectors", "client_app", "server_app"]


class Vectors(Round[BRRSettings]):
    """Training on records released once through BRR, feature by feature."""

    def initial(self) -> Model:
        settings = self.settings
        data, train, _ = loaded(settings.data)
        sizes = (train.shape[1], settings.hidden, settings.hidden, data.classes)
        return list(nets.initial(sizes, settings.seed))

    def privacy(self) -> Privacy:
        return privacy(
            self.settings,
            loaded(self.settings.data)[1].shape[1],
            1,
            covers="the features of one record of a client against any others",
            not_covered="the labels, which train the network as they are; how many records a client holds",
        )

    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        data, _, test = loaded(self.settings.data)
        return nets.scores(list(model), test, data.test_labels)

    def exposed(self) -> str:
        return super().exposed() or "a model trained on the true labels"

    def _features(self, client: Client) -> NDArray[np.floating]:
        settings = self.settings
        if not settings.private:
            return client.holding(settings).x
        mechanism = settings.build(loaded(settings.data)[1].shape[1], 1)
        kept = client.private_data(mechanism, mechanism.guarantee.record)
        released: NDArray[np.floating] = kept.get(
            lambda: (client.holding(settings).x, None), rng=client.release_seed(settings)
        ).features
        return released

    def train(self, turn: Turn) -> Model:
        """Train the received model on the client's released features and its true labels."""
        settings, client = self.settings, turn.client
        model = nets.train(
            turn.arrays(),
            self._features(client),
            client.holding(settings).y,
            epochs=settings.epochs,
            batch=settings.batch,
            rate=0.05 * settings.rate,
            seed=client.training_seed(settings, turn.number),
        )
        return list(model)


_TASKS: Mapping[str, Callable[[BRRSettings], Round[BRRSettings]]] = {
    "sgd": Gradients,
    "vectors": Vectors,
    "trees": Trees,
}

SYSTEM = System(
    name=NAME,
    summary="gradients, vectors or leaves of trees through BRR, against Laplace noise (BRR, 5.4 to 5.6)",
    settings=BRRSettings,
    rounds=lambda settings: _TASKS[settings.task](settings),
    choices={"task": TASKS, "mechanism": MECHANISMS, "unit": UNITS},
)
client_app, server_app = SYSTEM.client_app, SYSTEM.server_app
