"""Deployment `honest`: a linear model of public features, from one report of each client."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from bitldp.amplification import shuffled_central_epsilon
from bitldp.base.files import fleeting

from bitldp_papers.data import Dataset
from bitldp_papers.honest.features import FEATURES
from bitldp_papers.honest.pool import PooledRecords, PoolServer
from bitldp_papers.honest.records import HonestRecords, dealt
from bitldp_papers.honest.rounds import RoundsServer
from bitldp_papers.honest.settings import MECHANISMS, HonestSettings
from bitldp_papers.run.drive import Summary, Watcher, finished, folder_of
from bitldp_papers.run.folder import RunFolder
from bitldp_papers.run.rounds import NO_PRIVACY, SHUFFLED_DELTA, Privacy
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.system import Runnable, dealing

__all__ = ["NAME", "SYSTEM", "Honest"]

NAME = "honest"


@dataclass(frozen=True)
class Honest(Runnable):
    """Simulation of the deployment: cohorts of clients, each of which takes part in one round."""

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
        """Run the rounds; see `System.run`. Nothing but the server's files is kept: no client has any."""
        with dealing(settings, data) as chosen:
            assert isinstance(chosen, HonestSettings)
            if durable:
                return self._run(chosen, threads, seeded, watcher, stop)
            with fleeting():
                return self._run(chosen, threads, seeded, watcher, stop)

    def _run(
        self,
        settings: HonestSettings,
        threads: int,
        seeded: bool,
        watcher: Watcher | None,
        stop: Callable[[], None] | None,
    ) -> Summary:
        start = time.perf_counter()
        learner = _learner(settings)
        records = learner.records
        folder = RunFolder(folder_of(settings, self.name), settings.lasting(), resume=settings.resume)
        done = 0
        if folder.checkpoint is not None:
            learner.state, done = folder.checkpoint.arrays, folder.checkpoint.round
        members = dealt(len(records.train), settings)
        for turn in range(done + 1, settings.rounds + 1):
            if stop is not None:
                stop()
            rng = np.random.SeedSequence(settings.seed, spawn_key=(0x5EED, turn)) if seeded else None
            row = learner.reported(turn, members[turn - 1], rng, threads)
            folder.record({"round": turn, "accuracy": learner.accuracy(turn), **row}, learner.state)
            if watcher is not None:
                watcher(folder.rows[-1])
        caveats = [records.caveat] if isinstance(records, PooledRecords) else []
        if settings.clients > len(records.train):
            caveats.append(
                f"{settings.clients} clients hold {len(records.train)} records, which are dealt again"
            )
        return finished(
            folder,
            settings,
            system=self.name,
            privacy=_privacy(settings, max(row.get("spent", 0.0) for row in folder.rows)),
            seconds=time.perf_counter() - start,
            caveat="; ".join(caveats),
            truth=records.test_labels,
        )


def _learner(settings: HonestSettings) -> RoundsServer | PoolServer:
    """Return the server that learns: by rounds, or from a public pool's graph and one report of everybody."""
    if not settings.pool:
        return RoundsServer(settings, HonestRecords.of(settings.data, settings.features))
    return PoolServer(settings, PooledRecords.on(settings))


def _privacy(settings: HonestSettings, exact: float) -> Privacy:
    if not settings.private:
        return NO_PRIVACY
    return Privacy(
        settings.epsilon,
        exact,
        covers="a client (its record, its label): all that it sends in the whole run, against any other",
        not_covered="that the client takes part" + (", and in which round" if not settings.pool else ""),
        shuffled=_shuffled(exact, settings.clients) if settings.pool else None,
    )


def _shuffled(exact: float, clients: int) -> float | None:
    """Return the central epsilon of one shuffle of all reports; None where the bound does not hold."""
    try:
        return shuffled_central_epsilon(exact, clients, SHUFFLED_DELTA)
    except ValueError:  # too few clients for so large an epsilon
        return None


SYSTEM = Honest(
    name=NAME,
    summary="one report of each client in its life, at a client's true epsilon (none of the papers')",
    settings=HonestSettings,
    choices={"mechanism": MECHANISMS, "features": FEATURES},
)
