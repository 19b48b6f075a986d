"""Federated system of a paper: its rounds as two Flower apps, their settings, and a run in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bitldp.federated import Recorder, run_in_process
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid, ServerApp

from bitldp_papers.data import Dataset, using
from bitldp_papers.run.client import Client, answered, silent
from bitldp_papers.run.drive import Summary, Watcher, drive, finishing, folder_of, watching
from bitldp_papers.run.rounds import Round, Turn
from bitldp_papers.run.settings import Settings, dashed

__all__ = ["Runnable", "System", "dealing"]


@dataclass(frozen=True, kw_only=True)
class Runnable(ABC):
    """System or deployment that ``bitldp fl`` runs.

    Attributes
    ----------
    name : str
        Its name in ``bitldp fl``.
    summary : str
        One line.
    settings : type
        Its `Settings`.
    choices : mapping of str to tuple of str
        Values of each setting that is a word.
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
        data: Dataset | None = None,
        threads: int = 1,
        seeded: bool = False,
        watcher: Watcher | None = None,
        stop: Callable[[], None] | None = None,
        durable: bool = False,
    ) -> Summary:
        """Run it in this process; see `System.run`."""


@contextmanager
def dealing(settings: Settings, data: Dataset | None) -> Iterator[Settings]:
    """Yield the settings of a run on a data set, which has a name while the block runs; None: theirs."""
    if data is None:
        yield settings
        return
    with using(data) as name:
        yield replace(settings, data=name)


@dataclass(frozen=True, kw_only=True)
class System(Runnable):
    """Federated system of a paper, as Flower apps.

    Attributes
    ----------
    name : str
        Its name in ``bitldp fl``.
    summary : str
        One line.
    settings : type
        Its `Settings`.
    choices : mapping of str to tuple of str
        Values of each setting that is a word.
    rounds : callable
        From settings to the `Round` that both apps drive.
    """

    rounds: Callable[[Any], Round[Any]]

    def _begun(self, message: Message, context: Context) -> tuple[Round[Any], Turn]:
        """Return the rounds that a client is asked for, and its turn in them."""
        rounds = self.rounds(self.settings.of(context.run_config))
        return rounds, Turn(Client.of(context, self.name), message, context)

    def _released(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Release the client's answer, unless the client refuses data that would leave as they are."""
        rounds, turn = self._begun(message, context)
        if exposed := rounds.exposed():
            turn.client.expose(exposed)
        mod = rounds.mod(turn)
        return call_next(message, context) if mod is None else mod(message, context, call_next)

    def _trained(self, message: Message, context: Context) -> Message:
        rounds, turn = self._begun(message, context)
        return answered(message, rounds.train(turn))

    def _scored(self, message: Message, context: Context) -> Message:
        rounds, turn = self._begun(message, context)
        scores: dict[str, Any] = {**rounds.score(turn), "num-examples": 1}
        return Message(RecordDict({"metrics": MetricRecord(scores)}), reply_to=message)

    def _served(self, grid: Grid, context: Context) -> None:
        drive(grid, self.rounds(self.settings.of(context.run_config)), self.name)

    @cached_property
    def client_app(self) -> ClientApp:
        """The app of a client, which ``flwr run`` starts, too."""
        app = ClientApp(mods=[silent, self._released])
        app.train()(self._trained)
        app.evaluate()(self._scored)
        return app

    @cached_property
    def server_app(self) -> ServerApp:
        """The app of the server, which ``flwr run`` starts, too."""
        app = ServerApp()
        app.main()(self._served)
        return app

    def run(
        self,
        settings: Settings,
        *,
        data: Dataset | None = None,
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
        data : Dataset, optional
            Records to run on, in place of the data set that the settings name: see
            `bitldp_papers.data.read`. A run is gone on with on the same records: that is not checked.
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
            Whether files wait until they are on disk.
        recorder : callable, optional
            Is given every byte that leaves a client.

        Returns
        -------
        Summary

        Raises
        ------
        ValueError, RoundFailedError
            See `drive`.
        """
        summaries: list[Summary] = []

        def client_app(message: Message, context: Context) -> Message:
            if stop is not None:
                stop()
            return self.client_app(message, context)

        with ExitStack() as stack:
            if watcher is not None:
                stack.enter_context(watching(watcher))
            stack.enter_context(finishing(summaries.append))
            settings = stack.enter_context(dealing(settings, data))
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
        return summaries[0]
