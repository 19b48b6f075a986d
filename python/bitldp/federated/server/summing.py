"""Flower strategy that learns the sum of its clients' numbers, and no number of any one."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from bitldp.base import checks
from bitldp.estimate.estimates import Estimate
from bitldp.federated.server.costs import RunCosts, RunResult, central_costs, printed
from bitldp.federated.server.strategy import RoundFailedError
from bitldp.federated.wire.arrays import Layout
from bitldp.federated.wire.sums import SUM, sum_bytes, sum_record
from bitldp.sums.protocol import Agreement, Stage, SumFailedError, SummingServer, SumRefusedError

__all__ = ["SummingStrategy"]

log = logging.getLogger("bitldp.federated")


class SummingStrategy(FedAvg):
    """Rounds of secure sums: the server learns the noisy sum of the survivors' numbers, and nothing else.

    Parameters
    ----------
    agreement : Agreement
        The terms of the sum, equal to those that each client has in its own configuration.
    update : {"add", "keep"}
        What is done with the mean: added to the model's arrays, times `rate` (learning: clients send
        differences), or nothing (statistics: it is in `estimates`).
    rate : float
        What the mean is multiplied by before it is added.
    patience : float
        Seconds that the clients have for each of the four short stages; the one in which they train has the
        `timeout` of `start`.
    first_number : int, optional
        Number of the first round. Clients answer rising numbers alone, in all runs together; the default is
        the time in nanoseconds.
    **options
        Of `flwr.serverapp.strategy.FedAvg`. All clients are asked; ``min_available_nodes`` (by default all of
        the agreement) says how many must be there for a round to begin.

    Attributes
    ----------
    estimates : dict of int to Estimate
        Of each round the decoded sum, with its standard error and intervals.
    survivors : dict of int to tuple of int
        Of each round the indices of the clients in the sum.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    A round has five exchanges (`bitldp.sums.protocol`), of which the third one trains. Its metrics are:
    "clients" asked; "advertise", "share", "mask", "agree" and "reveal", the usable replies of each stage;
    "survivors"; "failed" (Error replies) and "refused-REASON" for replies that could not be used; "bytes-up"
    and "bytes-down" of all messages of the protocol, without the model; and "epsilon" and "delta", central,
    of the sum of so many survivors.

    Examples
    --------
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from bitldp.federated import SummingStrategy
    >>> from bitldp.sums import Count, SecureSum
    >>> from bitldp.sums.protocol import Agreement
    >>> keys = [Ed25519PrivateKey.generate().public_key().public_bytes_raw() for _ in range(10)]
    >>> agreement = Agreement(SecureSum(Count(), epsilon=1.0, clients=10, floor=8), keys)
    >>> strategy = SummingStrategy(agreement, update="keep")  # then start(), and strategy.estimates[1]
    """

    def __init__(
        self,
        agreement: Agreement,
        *,
        update: Literal["add", "keep"] = "add",
        rate: float = 1.0,
        patience: float = 60.0,
        first_number: int | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(agreement, Agreement):
            raise TypeError(f"agreement: must be an Agreement, not {type(agreement).__name__}")
        defaults = {"fraction_evaluate": 0.0, "min_available_nodes": agreement.clients}
        super().__init__(**{**defaults, **options})
        self.agreement = agreement
        self.update = checks.choice("update", update, ("add", "keep"))
        self.rate = checks.real("rate", rate)
        self.patience = checks.positive("patience", patience)
        self._first = (
            time.time_ns() if first_number is None else checks.integer("first_number", first_number, 0)
        )
        self.estimates: dict[int, Estimate] = {}
        self.survivors: dict[int, tuple[int, ...]] = {}
        self._attended: Counter[int] = Counter()
        self._model = ArrayRecord()
        self._grid: Grid | None = None
        self._server: SummingServer | None = None
        self._counts: dict[str, int] = {}

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Run the stages before the training, and return the messages that train.

        Raises
        ------
        RoundFailedError
            If too few clients answer.
        """
        self._model, self._grid = arrays, grid
        asked = [
            each.metadata.dst_node_id for each in super().configure_train(server_round, arrays, config, grid)
        ]
        self._attended.update(asked)
        self._counts = {"clients": len(asked), "failed": 0, "bytes-up": 0, "bytes-down": 0}
        self._server = SummingServer(self.agreement, self._first + server_round)
        try:
            messages = self._server.invite(asked)
            while self._server.stage is not Stage.MASK:
                messages = self._exchanged(messages)
        except SumFailedError as error:
            raise RoundFailedError(f"round {server_round}: {error}") from None
        content = {self.arrayrecord_key: arrays, self.configrecord_key: config}
        return self._flower(messages, content)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Run the stages after the training, and return the new model and the metrics of the round.

        Raises
        ------
        RoundFailedError
            If the sum cannot be opened.
        """
        server = self._server
        if server is None:
            return None, None
        try:
            messages = server.proceed(self._read(replies))
            while messages:
                messages = self._exchanged(messages)
        except SumFailedError as error:
            raise RoundFailedError(f"round {server_round}: {error}") from None
        opened = server.opened
        assert opened is not None
        estimate = self.agreement.sum.decode(opened.total, opened.survivors)
        self.estimates[server_round], self.survivors[server_round] = estimate, opened.members
        metrics: dict[str, Any] = {**self._counts, **server.answered, "survivors": opened.survivors}
        central = self.agreement.sum.guarantee.central(opened.survivors)
        metrics |= {"epsilon": central.epsilon, "delta": central.delta}
        metrics |= {f"refused-{reason}": count for reason, count in sorted(server.refused.items())}
        return self._updated(estimate), MetricRecord(metrics)

    def _updated(self, estimate: Estimate) -> ArrayRecord:
        """Return the model with the mean added, or as it was."""
        if self.update == "keep":
            return self._model
        model = {name: array.numpy() for name, array in self._model.items()}
        layout = Layout.of(model)
        vector = layout.flatten(model) + self.rate * np.asarray(estimate.value, dtype=np.float64)
        return ArrayRecord({name: Array(array) for name, array in layout.restore(vector, model).items()})

    def _exchanged(self, messages: Mapping[Any, bytes]) -> dict[Any, bytes]:
        """Send the messages of a short stage, and return those of the next one."""
        assert self._grid is not None
        assert self._server is not None
        replies = self._grid.send_and_receive(self._flower(messages, {}), timeout=self.patience)
        return self._server.proceed(self._read(replies))

    def _flower(self, messages: Mapping[Any, bytes], more: Mapping[str, Any]) -> list[Message]:
        """Return messages of the protocol as messages of Flower, with more records."""
        self._counts["bytes-down"] += sum(map(len, messages.values()))
        return [
            Message(
                RecordDict({SUM: sum_record(data), **more}), dst_node_id=node, message_type=MessageType.TRAIN
            )
            for node, data in messages.items()
        ]

    def _read(self, replies: Iterable[Message]) -> dict[Any, bytes]:
        """Return the replies of a stage by their node."""
        result: dict[Any, bytes] = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            if reply.has_error():
                self._counts["failed"] += 1
                log.info("client %d dropped out: error %d", node, reply.error.code)
                continue
            try:
                result[node] = sum_bytes(reply)
            except SumRefusedError as error:
                log.warning("client %d: %s", node, error)
                continue
            self._counts["bytes-up"] += len(result[node])
        return result

    def start(self, grid: Grid, *args: Any, **options: Any) -> RunResult:
        """Run the rounds: `FedAvg.start`; log what they cost a client at the end.

        Raises
        ------
        RoundFailedError
            See `configure_train` and `aggregate_train`.
        """
        self._attended = Counter()
        found = super().start(grid, *args, **options)
        result = RunResult(**vars(found), costing=self._costs)
        printed(result)
        keep = getattr(grid, "keep_result", None)
        if keep is not None:
            keep(result)
        return result

    def _costs(self) -> RunCosts | None:
        if not self.survivors:
            return None
        rounds, least = max(self._attended.values()), min(map(len, self.survivors.values()))
        return central_costs(self.agreement.sum, rounds=rounds, reports=least)
