"""Learning with BRR or Laplace noise: gradients, vectors, or the leaves of trees.

Three tasks of the paper: "sgd" (each round's gradient, clipped by a threshold that adapts), "vectors"
(records perturbed once, a network trained on them) and "trees" (boosted regression trees whose leaves are
perturbed). Flower's own commands start the same two apps: ``bitldp_papers.brr:server_app`` and
``:client_app``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid, ServerApp

from bitldp_papers.brr import sgd, trees, vectors
from bitldp_papers.brr.settings import MECHANISMS, NAME, TASKS, UNITS, BRRSettings
from bitldp_papers.run.client import Client, silent
from bitldp_papers.run.system import System

__all__ = ["SYSTEM", "BRRSettings", "client_app", "server_app"]

_TASKS: Mapping[str, ModuleType] = {"sgd": sgd, "vectors": vectors, "trees": trees}


def _mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Release what the task releases in a round, through the task's own mod."""
    settings = BRRSettings.of(context.run_config)
    mod: ClientAppCallable | None = _TASKS[settings.task].mod(settings, Client.of(context, NAME), message)
    if mod is None:
        return call_next(message, context)
    released: Message = mod(message, context, call_next)  # type: ignore[call-arg]
    return released


client_app = ClientApp(mods=[silent, _mod])


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Answer a round of the task; the task's mod releases the answer."""
    settings = BRRSettings.of(context.run_config)
    client = Client.of(context, NAME)
    if not settings.private:
        client.expose("what it computes from its records as they are")
    reply: Message = _TASKS[settings.task].train(settings, client, message)
    return reply


server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the task's rounds."""
    settings = BRRSettings.of(context.run_config)
    _TASKS[settings.task].serve(settings, grid)


SYSTEM = System(
    name=NAME,
    summary="gradients, vectors or leaves of trees through BRR, against Laplace noise (BRR, 5.4 to 5.6)",
    settings=BRRSettings,
    client_app=client_app,
    server_app=server_app,
    choices={"task": TASKS, "mechanism": MECHANISMS, "unit": UNITS},
)
