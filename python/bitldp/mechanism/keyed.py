"""Releases that may be evaluated again: mechanisms whose coins are a function of the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from bitldp._core import Coins
from bitldp.release.base import Call
from bitldp.release.keyed import Ids, bound, coins_of, fitting, keyed_call


class Repeatable:
    """Base of the mechanisms: what keyed coins ask of them."""

    outputs: ClassVar[tuple[str, ...]]

    if TYPE_CHECKING:

        def _admit(self, x: Any) -> NDArray[Any]:
            """See `Mechanism`."""

        def _perturb(self, x: NDArray[Any], call: Call) -> Any:
            """See `Mechanism`."""

        @property
        def columns(self) -> int:
            """See `Mechanism`."""

        @property
        def _streams(self) -> int:
            """See `Mechanism`."""

    def randomize_keyed(
        self,
        x: ArrayLike,
        *,
        key: bytes,
        ids: Ids,
        context: bytes = b"",
        column: int = 0,
        output: str | None = None,
        threads: int | None = None,
        duplicates: bool = False,
    ) -> Any:
        """Randomize records with coins that a retry does not draw anew.

        A report is a function of the key, the context, the mechanism's law, the record's id, its column and
        its value, and of nothing else: not of the batch, its order, threads or the instruction set. So
        whatever evaluates it again, an engine that retries a task or a frame that is read twice, gives the
        same report, and the cost is that of one. The law is that of `randomize`, and so is the guarantee, as
        long as the key stays secret.

        Where each number or category of a record is released by itself (`GRR`, `Piecewise` with a budget
        that is split, ...) it is the value, and a record of which one number is another has the same reports
        of the others. Everywhere else the record is the value, and two that differ in one number share
        nothing.

        One key and context serve one frozen snapshot of the data: under them a report that changes says that
        its record changed, and one that stays says that it likely did not. Keep the key with the data's
        owner, never beside the reports: whoever holds it can test values.

        Parameters
        ----------
        x : array_like, shape (n, columns), or (n,) where a record is one number or category
            As of `randomize`. Numbers count as the float64 that they are, with -0.0 and subnormals as 0.0.
        key : bytes
            32 of them, secret; it is in no repr, pickle, log or error.
        ids : ndarray of int, zero or more, shape (n,); of uint8, shape (n, 32); or sequence of n bytes
            The records' ids: numbers, digests of 32 bytes, or names, of which SHA-256 makes digests.
        context : bytes
            What the coins are for: the plan and the snapshot.
        column : int
            Number of the record's first column among all that are released under the key and context: two
            columns of one number would share their coins.
        output, threads
            As of `randomize`; None is the first of `outputs`.
        duplicates : bool
            Whether an id may come up twice. Then equal values of it give the same report, different ones
            independent reports, each at the cost of the guarantee.

        Returns
        -------
        ndarray or tuple of ndarray
            The reports, as of `randomize`.

        Raises
        ------
        ValueError, TypeError
            As of `randomize`; and for a key of another length, ids that are not as many as the records, and
            an id that comes up twice.
        """
        coins = coins_of(key, ids, context, column, duplicates)
        values = self._admit(x)
        fitting(coins, values)
        if values.ndim == 1 and self.columns > 1:
            raise ValueError(f"x: shape must be (n, {self.columns}), got {values.shape}")
        return self._perturb(values, self._keyed(coins, [values], output, threads))

    def _keyed(
        self, coins: Coins, records: Sequence[NDArray[Any]], output: str | None, threads: int | None
    ) -> Call:
        """Return the call that takes its coins from those of the records."""
        own = bound(coins, records, threads) if self._bound else coins
        form = self.outputs[0] if output is None else output
        return keyed_call(own, self._streams, form, self.outputs, threads)

    @property
    def _bound(self) -> bool:
        """Whether keyed coins are to be bound to the whole record: more is done than one draw of it."""
        return True
