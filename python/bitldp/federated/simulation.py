"""Round of many clients in one process, without a message each: rows of updates in, the server's mean out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.client.message import write
from bitldp.federated.client.account import UPDATE
from bitldp.federated.server.mean import ReportMean
from bitldp.federated.wire.arrays import Layout
from bitldp.federated.wire.codec import UpdateCodec, UpdatePlan
from bitldp.ledger.budget import Ledger

__all__ = ["Simulated", "Updates", "messages", "simulate"]

Updates: TypeAlias = NDArray[np.floating] | Callable[[int, int], NDArray[np.floating]]
"""Updates of clients by rows, or a function of (start, stop) that returns those rows."""

_BLOCK = 1 << 18  # coordinates at once: a few megabytes, whatever the number of clients
_BLOCK_SEED = 0xB10C


@dataclass(frozen=True)
class Simulated:
    """State of a server after a round.

    Attributes
    ----------
    value : ndarray of float64, shape (coordinates,)
        Mean of the clipped updates, estimated from the reports; as in `DecodingStrategy`.
    stderr : ndarray of float64, shape (coordinates,)
        Its standard error; NaN with one client.
    clients : int
        How many reported.
    bytes_up : int
        Of all reports, headers included.
    """

    value: NDArray[np.float64]
    stderr: NDArray[np.float64]
    clients: int
    bytes_up: int


def simulate(
    codec: UpdateCodec,
    updates: Updates,
    *,
    clients: int | None = None,
    layout: Layout | None = None,
    ledger: Ledger | None = None,
    rng: RandomSource = None,
    threads: int | None = None,
) -> Simulated:
    """Release the updates of many clients by blocks, and estimate their mean as a server does.

    The steps are those of a run with messages: each update is clipped and scaled by the codec, released by
    its mechanism, decoded and averaged. Only the packing, sending and reading of messages is left out.
    `messages` returns the messages for the same random bits; `DecodingStrategy` computes exactly the same
    mean from them.

    Parameters
    ----------
    codec : UpdateCodec
        The codec that clients and server share.
    updates : ndarray of float, shape (clients, coordinates), or callable
        Of each client one row; with ``codec.rows`` above 1 shape (clients, rows, coordinates). A function
        ``updates(start, stop)`` returns those of a block, so that memory does not grow with the clients.
    clients : int, optional
        How many; needed where `updates` is a function.
    layout : Layout, optional
        Of the model's arrays; None for one vector.
    ledger : Ledger, optional
        Ledger of this cohort: of clients who have taken part in the same rounds, so that one ledger says what
        each of them has spent. It is charged once, before anything is released.
    rng : None, int, SeedSequence or Generator
        None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
        tests and experiments only: a key that is used on two inputs reveals where they differ.
    threads : int, optional
        Number of threads; the result does not depend on it.

    Returns
    -------
    Simulated

    Raises
    ------
    BudgetExceededError
        If the ledger does not cover the round.
    ValueError, TypeError
        For updates of another shape, or that are not finite, and as in `UpdateCodec.plan`. Rounds that end so
        are charged: clients have reported.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> from bitldp.federated import UpdateCodec, simulate
    >>> codec = UpdateCodec(lambda d: bitldp.CrossPolytope(d, epsilon=4.0), clip=1.0)
    >>> ledger = bitldp.Ledger(4.0)
    >>> round_ = simulate(codec, np.full((1000, 64), 0.1), ledger=ledger, rng=1)
    >>> round_.clients, round(float(round_.value.mean()), 1), ledger.remaining
    (1000, 0.1, 0.0)
    """
    plan, count, width = _planned(codec, updates, clients, layout)
    if ledger is not None:
        ledger.charge(plan.mechanism, plan.records, note=UPDATE)
    mean = ReportMean(width)
    for codes in _blocks(plan, updates, count, rng, threads):
        mean.add_all(plan.decoded(codes))
    errors = mean.errors() if count > 1 else np.full(width, np.nan)
    return Simulated(mean.value, errors, count, count * plan.header.size)


def messages(
    codec: UpdateCodec,
    updates: Updates,
    *,
    clients: int | None = None,
    layout: Layout | None = None,
    rng: RandomSource = None,
    server_round: int = 1,
) -> Iterator[bytes]:
    """Yield the report that each client sends, as bytes: with the same `rng`, those of `simulate`.

    Parameters
    ----------
    codec : UpdateCodec
        The codec that clients and server share.
    updates : ndarray of float, shape (clients, coordinates), or callable
        Of each client one row, or a function of a block's start and stop; see `simulate`.
    clients : int, optional
        How many; needed where `updates` is a function.
    layout : Layout, optional
        Of the model's arrays; None for one vector.
    rng : None, int, SeedSequence or Generator
        None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
        only.
    server_round : int
        Number of the round, which every report names.
    """
    plan, count, _ = _planned(codec, updates, clients, layout)
    plan = plan.at(checks.integer("server_round", server_round, 1))
    for codes in _blocks(plan, updates, count, rng, None):
        parts = [
            each.reshape(-1, plan.records * field.columns)
            for each, field in zip(codes, plan.header.fields, strict=True)
        ]
        for index in range(len(parts[0])):
            yield write(plan.header, [part[index] for part in parts]).tobytes()


def _planned(
    codec: UpdateCodec, updates: Updates, clients: int | None, layout: Layout | None
) -> tuple[UpdatePlan, int, int]:
    """Return the plan, the number of clients and that of coordinates."""
    if callable(updates):
        count = checks.integer("clients", clients, 1)
        shape = (count, *np.shape(updates(0, 1))[1:])
    else:
        shape = np.shape(updates)
        count = shape[0] if shape else 0
        if clients is not None and clients != count:
            raise ValueError(f"clients: {clients} are not the {count} rows of updates")
    if len(shape) not in (2, 3) or not all(shape):
        raise ValueError(f"updates: shape must be (clients, coordinates), got {shape}")
    width = shape[-1]
    plan = codec.plan(layout or Layout(("update",), ((width,),), ("<f8",)))
    if shape[1:] != plan.update_shape:
        raise ValueError(f"updates: of each client shape {plan.update_shape} is needed, got {shape[1:]}")
    return plan, count, width


def _blocks(
    plan: UpdatePlan, updates: Updates, count: int, rng: RandomSource, threads: int | None
) -> Iterator[list[NDArray[np.unsignedinteger]]]:
    """Yield the codes of blocks of clients, each with randomness of its own."""
    width = plan.header.coordinates
    step = max(1, _BLOCK // (width * plan.rows))
    source = np.random.SeedSequence(int(rng)) if isinstance(rng, (int, np.integer)) else rng
    for number, start in enumerate(range(0, count, step)):
        stop = min(start + step, count)
        given = updates(start, stop) if callable(updates) else updates[start:stop]
        block = np.asarray(given, dtype=np.float64)
        if block.shape != (stop - start, *plan.update_shape):
            raise ValueError(f"updates: rows {start} to {stop} have shape {block.shape}")
        coins = source
        if isinstance(source, np.random.SeedSequence):
            key = (*source.spawn_key, _BLOCK_SEED, number)
            coins = np.random.SeedSequence(source.entropy, spawn_key=key)
        yield [
            np.asarray(part).reshape(-1, field.columns)
            for part, field in zip(
                plan.codes(plan.clipped_rows(block.reshape(-1, width)), coins, threads),
                plan.header.fields,
                strict=True,
            )
        ]
