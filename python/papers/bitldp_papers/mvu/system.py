"""DP-SGD with MVU: gradients clipped to a ball and compressed to a few private bits a coordinate.

Each client releases the gradient of each of some records (or its mean gradient) by itself, so that the server
need not be trusted; the server averages what the reports are worth and takes a step. Beside MVU are
stochastic signSGD, Gaussian and Skellam noise, CLDP, and gradients that are clipped alone. Rounds compose by
Rényi divergences to (epsilon, delta). Source: Chaudhuri, Guo and Rabbat, "Privacy-aware compression for
federated data analysis", UAI 2022, sections 4.3 and 5.2. Flower's own commands start the same two apps:
``bitldp_papers.mvu:server_app`` and ``:client_app``.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from bitldp.base.lock import locked
from bitldp.federated import ComposedAccount, DecodingStrategy, Layout, PrivateUpdateMod
from flwr.app import ArrayRecord, Context, Message
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.models import nets
from bitldp_papers.mvu.inputs import FEATURES, convolved, inputs
from bitldp_papers.mvu.settings import DITHERS, LEVELS, MECHANISMS, NAME, MVUSettings
from bitldp_papers.mvu.steps import corrected
from bitldp_papers.run.client import Client, answered, silent
from bitldp_papers.run.drive import Privacy, Rows, drive, turn_of
from bitldp_papers.run.system import System

__all__ = ["SYSTEM", "MVUSettings", "client_app", "privacy", "server_app", "size"]


def _model(settings: MVUSettings) -> list[NDArray[np.float32]]:
    return nets.initial(settings.sizes(), settings.seed)


def size(settings: MVUSettings) -> int:
    """Return the number of coordinates of a gradient."""
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(settings.sizes()))


def _account(settings: MVUSettings, client: Client) -> ComposedAccount:
    """Return the client's account: of one of its records, which take turns, or of all of them."""
    held = client.holding(settings)
    who = (settings.level, settings.data, settings.seed, client.place, client.clients)
    return ComposedAccount(
        min(settings.spent(size(settings)).epsilon, client.budget),
        min(settings.delta, client.delta),
        client.home / "ledger.json",
        create=client.create,
        turns=len(held.x) if settings.level == "example" else 1,
        identity=" ".join(map(str, who)),
    )


def _mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Release the gradients, one message after another: the ledger says which records come next."""
    settings = MVUSettings.of(context.run_config)
    client = Client.of(context, NAME)
    if not settings.private:
        client.expose("what it computes from its records as they are")
        return call_next(message, context)
    mod = PrivateUpdateMod(
        settings.codec(),
        budget=_account(settings, client),
        rng=settings.seed if client.seeded else None,
        repeat=client.home / "last-report.npz",
    )
    with locked(client.home / "turn"):
        return mod(message, context, call_next)


client_app = ClientApp(mods=[silent, _mod])


def _places(settings: MVUSettings, client: Client, start: int, records: int) -> NDArray[np.intp]:
    """Return which records come next, where `start` have come before: all in turn, each time in a new order.

    The order of a pass over the records is fixed by the run and the client, and not by what the server says
    of the round, so that a record is released once in a pass and no more.
    """
    turns = np.arange(start, start + settings.batch)
    places = np.empty(settings.batch, np.intp)
    for each in np.unique(turns // records):
        order = np.random.default_rng(client.training_seed(settings, int(each))).permutation(records)
        mine = turns // records == each
        places[mine] = order[turns[mine] % records]
    return places


def _begun(settings: MVUSettings, client: Client, context: Context, message: Message) -> int:
    """Return how many records were used before this round."""
    if not settings.private:
        return (turn_of(message) - 1) * settings.batch
    done = _account(settings, client).reported(context, settings.release(size(settings)))
    return done if settings.level == "example" else done * settings.batch


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Return gradients at the received model: one for each record, or their mean."""
    settings = MVUSettings.of(context.run_config)
    client = Client.of(context, NAME)
    held = client.holding(settings)
    places = _places(settings, client, _begun(settings, client, context, message), len(held.x))
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    model = record.to_numpy_ndarrays()
    x = convolved(held.x[places]) if settings.features == "convolutions" else held.x[places]
    gradients = nets.example_gradients(model, x, held.y[places])
    if settings.level == "client":
        gradients = gradients.mean(axis=0, keepdims=True)
    if not settings.private:
        arrays = _stepped(settings, model, gradients)
    else:
        front = (settings.rows,) if settings.rows > 1 else ()
        ends = np.cumsum([array.size for array in model])[:-1]
        parts = np.split(gradients, ends, axis=1)
        arrays = [part.reshape(*front, *array.shape) for part, array in zip(parts, model, strict=True)]
    return answered(message, arrays)


def _stepped(
    settings: MVUSettings, model: list[NDArray[Any]], gradients: NDArray[np.float32]
) -> list[NDArray[Any]]:
    """Return the model after a step by the mean of clipped gradients: what is averaged without noise."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    step = settings.rate * (gradients * np.minimum(1.0, settings.clip / np.maximum(norms, 1e-30))).mean(
        axis=0
    )
    parts = np.split(step, np.cumsum([array.size for array in model])[:-1])
    return [
        (array - part.reshape(array.shape)).astype(array.dtype)
        for array, part in zip(model, parts, strict=True)
    ]


class Descent(DecodingStrategy):
    """Gradient descent on what `corrected` makes of decoded means."""

    def __init__(self, settings: MVUSettings, **options: Any) -> None:
        super().__init__(settings.codec(), rate=-settings.rate, **options)
        self._settings = settings

    def updated(self, layout: Layout, mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Take a step."""
        return super().updated(layout, corrected(self._settings, mean))


server_app = ServerApp()


def privacy(settings: MVUSettings) -> Privacy:
    """Return the cost of all rounds together, for a record or a client."""
    if not settings.private:
        return Privacy(claimed=np.inf, record=np.inf, covers="nothing: this run has no privacy")
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


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Average the decoded reports, and step, round by round."""
    settings = MVUSettings.of(context.run_config)
    data, _, test = inputs(settings.data, settings.features)
    options = settings.federation()

    def strategy(first_round: int, rows: Rows) -> FedAvg:
        if not settings.private:
            return FedAvg(**options)
        return Descent(settings, first_round=first_round, **options)

    drive(
        grid,
        settings,
        system=NAME,
        strategy=strategy,
        initial=list(_model(settings)),
        evaluate=partial(nets.scores, x=test, y=data.test_labels),
        privacy=privacy(settings),
    )


SYSTEM = System(
    name=NAME,
    summary="gradients compressed to a few private bits a coordinate (DP-SGD with MVU, 5.2)",
    settings=MVUSettings,
    client_app=client_app,
    server_app=server_app,
    choices={"mechanism": MECHANISMS, "level": LEVELS, "dither": DITHERS, "features": FEATURES},
)
