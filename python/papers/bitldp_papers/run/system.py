"""Federated system of a paper: two Flower apps, their settings, and how to run them in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from bitldp.federated import Recorder, run_in_process
from bitldp_papers.run.drive import Summary, Watcher, finishing, folder_of, watching
from bitldp_papers.run.settings import Settings, dashed

__all__ = ["Runnable", "System"]


@dataclass(frozen=True, kw_only=True)
class Runnable(ABC):
    """What ``bitldp fl`` runs.

    Attributes
    ----------
    name : str
        What ``bitldp fl`` calls it.
    summary : str
        One line.
    settings : type
        Its `Settings`.
    choices : mapping of str to tuple of str
        What each setting that is a word can be.
    """

    name: str
    summary: str
    settings: type[Settings]
    choices: Mapping[str, tuple[str, ...]]

    def configure(self, *, preset: str = "", **given: Any) -> Settings:
        """Return the settings of a run.

        Parameters
        ----------
        preset : str
            Which of the settings' presets to start from; empty: their defaults.
        **given
            Fields of the settings.

        Raises
        ------
        ValueError, TypeError
            For a preset or a field that there is not, or a value that it cannot have.
        """
        presets = self.settings.presets
        if preset and preset not in presets:
            raise ValueError(f"preset: {self.name} has no {preset!r}; there are {', '.join(presets)}")
        known = tuple(field.name for field in fields(self.settings))
        for name in given:
            if name not in known:
                raise ValueError(f"{name}: {self.name} has no such setting; there are {', '.join(known)}")
        # At once: what the preset says may not fit what is given in its place.
        chosen = {**self.settings().config(), **dashed(presets.get(preset, {})), **dashed(given)}
        return self.settings.of(chosen)

    @abstractmethod
    def run(
        self,
        settings: Settings,
        *,
        threads: int = 1,
        seeded: bool = False,
        watcher: Watcher | None = None,
        stop: Callable[[], None] | None = None,
        durable: bool = False,
    ) -> Summary:
        """Run it in this process; see `System.run`."""


@dataclass(frozen=True, kw_only=True)
class System(Runnable):
    """Federated system of a paper, as Flower apps.

    Attributes
    ----------
    name, summary, settings, choices
        As of `Runnable`.
    client_app, server_app : ClientApp, ServerApp
        The same that ``flwr run`` starts.
    """

    client_app: ClientApp
    server_app: ServerApp

    def run(
        self,
        settings: Settings,
        *,
        threads: int = 1,
        seeded: bool = False,
        watcher: Watcher | None = None,
        stop: Callable[[], None] | None = None,
        durable: bool = False,
        recorder: Recorder | None = None,
    ) -> Summary:
        """Run the system in this process.

        Parameters
        ----------
        settings : Settings
        threads : int
            Clients that work at a time; the model does not depend on it.
        seeded : bool
            Whether the releases take their randomness from the settings' seed, too: reproducible, for
            experiments only.
        watcher : callable, optional
            Called with the metrics of each round.
        stop : callable, optional
            Called before each client works: a KeyboardInterrupt that it raises ends the run.
        durable : bool
            As of `run_in_process`: whether files wait until they are on disk.
        recorder : callable, optional
            As of `run_in_process`: every byte that leaves a client.

        Returns
        -------
        Summary

        Raises
        ------
        ValueError, RoundFailedError
            See `drive`.
        """
        found: list[Summary] = []

        def client_app(message: Message, context: Context) -> Message:
            if stop is not None:
                stop()
            return self.client_app(message, context)

        with ExitStack() as stack:
            if watcher is not None:
                stack.enter_context(watching(watcher))
            stack.enter_context(finishing(found.append))
            run_in_process(
                self.server_app,
                client_app,  # type: ignore[arg-type]  # called like one
                settings.clients,
                run_config=settings.config(),
                threads=threads,
                seed=settings.seed,
                node_config={"home": str(Path(folder_of(settings, self.name)) / "clients"), "seeded": seeded},
                recorder=recorder,
                durable=durable,
            )
        return found[0]
