"""DP-SGD with MVU: gradients clipped to a ball and compressed to a few private bits a coordinate.

Each client releases the gradient of each of some records (or its mean gradient) by itself, so that the server
need not be trusted; the server averages the decoded reports and takes a step. Beside MVU are
stochastic signSGD, Gaussian and Skellam noise, CLDP, and gradients that are clipped alone. Rounds compose by
Rényi divergences to (epsilon, delta). Source: Chaudhuri, Guo and Rabbat, "Privacy-aware compression for
federated data analysis", UAI 2022, sections 4.3 and 5.2. Flower's own commands start the same two apps:
``bitldp_papers.mvu:server_app`` and ``:client_app``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from bitldp.base.files import locked
from bitldp.compression import SignSGD
from bitldp.federated import ComposedAccount, PrivateUpdateMod, UpdateCodec
from flwr.app import Context, Message
from flwr.clientapp.typing import ClientAppCallable
from numpy.typing import NDArray

from bitldp_papers.models import nets
from bitldp_papers.mvu.inputs import FEATURES, convolved, inputs
from bitldp_papers.mvu.settings import DITHERS, LEVELS, MAJORITIES, MECHANISMS, NAME, SIGNS, MVUSettings
from bitldp_papers.run.client import Client
from bitldp_papers.run.rounds import NO_PRIVACY, Descent, Mod, Privacy, Turn, course
from bitldp_papers.run.share import shuffled
from bitldp_papers.run.system import System
from bitldp_papers.run.vectors import Model, in_ball, shaped, stepped

__all__ = ["SYSTEM", "MVURound", "MVUSettings", "client_app", "descend", "privacy", "server_app", "size"]


def size(settings: MVUSettings) -> int:
    """Return the number of coordinates of a gradient."""
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(settings.sizes()))


def corrected(settings: MVUSettings, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the estimate of the mean gradient, from the decoded mean of the reports.

    A majority's step has the length of a clipped gradient. The mean of signs is (2/pi)^(1/2) x/sigma for
    coordinates x that are small beside sigma, and is divided by that. All else is right on average.
    """
    if settings.mechanism in MAJORITIES:
        step: NDArray[np.float64] = np.sign(mean) * (settings.clip / math.sqrt(mean.size))
        return step
    if settings.mechanism in SIGNS:
        mechanism = settings.release(mean.size)
        assert isinstance(mechanism, SignSGD)
        return mean * (mechanism.sigma * math.sqrt(math.pi / 2.0))
    return mean


def privacy(settings: MVUSettings) -> Privacy:
    """Return the cost of all rounds together, for a record or a client."""
    if not settings.private:
        return NO_PRIVACY
    spent = settings.spent(size(settings))
    whose = "one record" if settings.level == "example" else "all records"
    against = "any other" if settings.level == "example" else "any others"
    releases = settings.releases()
    return Privacy(
        claimed=settings.epsilon,
        record=spent.epsilon,
        delta=spent.delta,
        covers=f"{whose} of a client against {against}, in at most {releases} releases (composed by "
        f"{spent.method})",
        not_covered="that the client takes part",
    )


def records_of(settings: MVUSettings, client: Client, start: int, records: int) -> NDArray[np.intp]:
    """Return the records that come next, where `start` have come before: all in turn, passes in new orders.

    The order of a pass over the records is fixed by the run and the client, and not by what the server says
    of the round, so that a record is released once in a pass and no more.
    """
    turns = np.arange(start, start + settings.batch)
    rows = np.empty(settings.batch, np.intp)
    for each in np.unique(turns // records):
        order = np.random.default_rng(client.training_seed(settings, int(each))).permutation(records)
        mine = turns // records == each
        rows[mine] = order[turns[mine] % records]
    return rows


class MVURound(Descent[MVUSettings]):
    """Gradients of records, or a client's mean gradient, through a mechanism of vectors."""

    @property
    def rate(self) -> float:
        return self.settings.rate

    def initial(self) -> Model:
        return list(nets.initial(self.settings.sizes(), self.settings.seed))

    def privacy(self) -> Privacy:
        return privacy(self.settings)

    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        data, _, test = inputs(self.settings.data, self.settings.features)
        return nets.scores(list(model), test, data.test_labels)

    def _account(self, client: Client) -> ComposedAccount:
        """Return the client's account: of one of its records, which take turns, or of all of them."""
        settings, held = self.settings, client.holding(self.settings)
        who = (settings.level, settings.data, settings.seed, client.index, client.clients)
        return ComposedAccount(
            min(settings.spent(size(settings)).epsilon, client.budget),
            min(settings.delta, client.delta),
            client.ledger,
            create=client.create,
            turns=len(held.x) if settings.level == "example" else 1,
            identity=" ".join(map(str, who)),
        )

    def mod(self, turn: Turn) -> Mod | None:
        if not self.settings.private:
            return None
        client = turn.client
        mod = PrivateUpdateMod(
            self.codec(),
            budget=self._account(client),
            rng=self.settings.seed if client.seeded else None,
            repeat=client.folder / "last-report.npz",
        )

        def one_by_one(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
            with locked(client.folder / "turn"):
                return mod(message, context, call_next)

        return one_by_one

    def codec(self) -> UpdateCodec:
        return self.settings.codec()

    def _used(self, turn: Turn) -> int:
        """Return how many records were used before this round."""
        settings = self.settings
        if not settings.private:
            return (turn.number - 1) * settings.batch
        done = self._account(turn.client).reported(turn.context, settings.release(size(settings)))
        return done if settings.level == "example" else done * settings.batch

    def train(self, turn: Turn) -> Model:
        """Return gradients of records, or their mean; without privacy the model after a step."""
        settings, held, model = self.settings, turn.client.holding(self.settings), turn.arrays()
        rows = records_of(settings, turn.client, self._used(turn), len(held.x))
        x = convolved(held.x[rows]) if settings.features == "convolutions" else held.x[rows]
        gradients = nets.example_gradients(model, x, held.y[rows])
        if settings.level == "client":
            gradients = gradients.mean(axis=0, keepdims=True)
        if not settings.private:
            return stepped(model, self.rate * in_ball(gradients, settings.clip).mean(axis=0))
        return shaped(gradients if settings.rows > 1 else gradients[0], model)

    def corrected(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return corrected(self.settings, mean)

    def mean(self, model: Model, turn: int) -> tuple[NDArray[np.float64], float]:
        """Release gradients of the next records: all in turn, each pass through them in the same order."""
        settings = self.settings
        if settings.level != "example":
            raise ValueError("level: must be 'example'")
        data, train, _ = inputs(settings.data, settings.features)
        order = shuffled(len(train), settings.seed)
        records = settings.clients * settings.batch
        some = order[np.arange((turn - 1) * records, turn * records) % len(order)]
        rows = nets.example_gradients(model, train[some], data.train_labels[some])
        if not settings.private:
            return in_ball(rows, settings.clip).mean(axis=0, dtype=np.float64), 0.0
        shape = (settings.clients, settings.batch, -1) if settings.batch > 1 else (settings.clients, -1)
        seed = np.random.SeedSequence(settings.seed, spawn_key=(0x31, turn))
        return self.simulated(rows.reshape(shape), seed)


def descend(settings: MVUSettings, *, every: int = 0) -> list[dict[str, Any]]:
    """Return the scores of a run without messages: `course`; of ``level="example"``.

    Each round releases the gradients of ``clients * batch`` records, each record at most as often as in the
    federated system.
    """
    return course(MVURound(settings), every=every)


SYSTEM = System(
    name=NAME,
    summary="gradients compressed to a few private bits a coordinate (DP-SGD with MVU, 5.2)",
    settings=MVUSettings,
    rounds=MVURound,
    choices={"mechanism": MECHANISMS, "level": LEVELS, "dither": DITHERS, "features": FEATURES},
)
client_app, server_app = SYSTEM.client_app, SYSTEM.server_app
