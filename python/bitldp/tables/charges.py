"""Charges of a release to a ledger, each once; digests of records, by which their order is nothing."""

from __future__ import annotations

import hashlib
import hmac
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.ledger.budget import Ledger
from bitldp.ledger.entry import Entry, named
from bitldp.privacy import Guarantee
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.column import canonical_digest
from bitldp.tables.engines import EngineRelease
from bitldp.tables.frames import opened
from bitldp.tables.memoized import GIVEN_MOST, Days
from bitldp.tables.store import keyed_digests

__all__ = ["ChargedRelease"]

_SNAPSHOTS = " snapshots "
_ROWS = "rows-"  # what a digest of records begins with; others are of a file's bytes


class _Plan(Protocol):
    """The part of `bitldp.tables.TablePlan` that a charge depends on."""

    @property
    def types(self) -> Mapping[str, str]: ...

    @property
    def codecs(self) -> Sequence[ColumnCodec]: ...

    @property
    def digest(self) -> str: ...

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def charged(self) -> tuple[str, ...]: ...

    @property
    def guarantee(self) -> Guarantee: ...


class ChargedRelease(EngineRelease):
    """Release that a ledger is charged for, once.

    Attributes
    ----------
    plan : TablePlan
    days : Days or None
        Memoization over snapshots.
    """

    plan: _Plan
    days: Days | None
    _shown: dict[str, str]

    @property
    @abstractmethod
    def id(self) -> str:
        """Name of the release."""

    @property
    @abstractmethod
    def series(self) -> str:
        """Name of all snapshots of a memoized release together."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The privacy of a record."""

    @abstractmethod
    def encoded(self, table: pa.Table, first_row: int = 1) -> tuple[NDArray[Any], list[NDArray[Any]]]:
        """Return the ids of records, and the inputs of the mechanisms."""

    @abstractmethod
    def _derived(self, purpose: str, *, series: bool = False) -> bytes:
        """Return a key for a purpose, of the snapshot or of all of them."""

    def charge(
        self, ledger: Ledger, *, data: str = "", name: str = "", reservation: str = ""
    ) -> Entry | None:
        """Charge the release to a ledger; repeated calls charge it once.

        For a memoized release with a cap, the first charge covers all of its snapshots: epsilon times `most`,
        the cost of the record with the most values. Later snapshots are free, and a larger `most` costs the
        difference. A new store is charged again. Without a cap, each snapshot is charged, since some record
        may have a further value in it.

        Parameters
        ----------
        ledger : Ledger
            Open, where several processes share it.
        data : str, optional
            Digest of the records from `records_digest` or `digest`. Another digest for the same release is
            then refused. Ignored under a cap.
        name, reservation : str
            Name of the plan in the ledger, and the reservation that it draws on; see `Ledger.reserve`.

        Returns
        -------
        Entry or None
            What was charged; None where it was charged before.

        Raises
        ------
        PlanError
            If the release was charged for other data: one key and snapshot serve one frozen table. If the
            store is an older copy of the one that the ledger knows.
        BudgetExceededError
            If it costs more than remains.
        """
        if self.days is not None and self.days.most is not None:
            return self._charge_series(ledger, self.days.most, name, reservation)
        note, types = self.charged_as, self._types_digest
        for entry in ledger.entries:
            own, shown, before = _noted(entry)
            if own != note:
                continue
            if data and before and data != before:
                raise PlanError("snapshot: was released of other data; data that changed is another snapshot")
            if types and shown and types != shown:
                raise PlanError("types: was released of a table of other types; plan.typed states them")
            return None
        note = f"{note} types {types}" if types else note
        note = f"{note} data {data}" if data else note
        return self._charged(ledger, self.guarantee, 1, note, self.id, name, reservation)

    @property
    def charged_as(self) -> str:
        """Beginning of the notes of its charges: the release, or all snapshots and the store together."""
        if self.days is None or self.days.most is None:
            return f"release {self.id}"
        return self.counted_as.partition(_SNAPSHOTS)[0]

    @property
    def counted_as(self) -> str:
        """Note on how far the store has come, for the ledger's entry of an output; empty without a store."""
        if self.days is None or self.days.most is None:
            return ""
        store, snapshots = self.days.state(self.series)
        return f"series {self.series} store {store}{_SNAPSHOTS}{snapshots}"

    def _charge_series(self, ledger: Ledger, most: int, name: str, reservation: str) -> Entry | None:
        """Charge for as many values of each record as the cap allows beyond those that were charged."""
        note, _, snapshots = self.counted_as.partition(_SNAPSHOTS)
        paid = 0
        for entry in ledger.entries:
            own, _, count = entry.note.partition(_SNAPSHOTS)
            if own != note:
                continue
            paid += 0 if count else entry.count
            if count.isdecimal() and int(count) > int(snapshots):
                raise PlanError(
                    f"store: has seen {snapshots} snapshots, and the ledger knows of {count}; an older copy "
                    "of it was restored. Nothing is released with it"
                )
        if paid >= most:
            return None
        one = self.plan.guarantee
        one = replace(one, given=f"{one.given}; {GIVEN_MOST}" if one.given else GIVEN_MOST)
        return self._charged(ledger, one, most - paid, note, self.series, name, reservation)

    def _charged(
        self,
        ledger: Ledger,
        one: Guarantee,
        count: int,
        note: str,
        release: str,
        name: str,
        reservation: str,
    ) -> Entry:
        entry = Entry(*named(one), count, note, release=release, reservation=reservation)
        return ledger._charge(replace(entry, plan=self.plan.digest, name=name, columns=self.plan.charged))

    @property
    def _types_digest(self) -> str:
        """Digest of the types of the first table; empty where the plan states them, or not all are known."""
        if self.plan.types or set(self._shown) != {*self.plan.inputs, self.record}:
            return ""
        return canonical_digest(self._shown)[:16]

    # -- digests

    def digest(self, blocks: Iterable[bytes]) -> str:
        """Return a digest of some bytes that tells nothing about them without the key: HMAC-SHA256."""
        digest = hmac.new(self._derived("data"), digestmod=hashlib.sha256)
        for block in blocks:
            digest.update(block)
        return digest.hexdigest()

    def records_digest(self, frames: Iterable[Any]) -> str:
        """Return a digest of records that tells nothing about them without the key.

        It is the keyed hash of a sum of keyed hashes, one for each record: of its id and of the inputs of the
        mechanisms. It does not depend on the order of rows, on how they are divided into frames, or on
        columns that have no report.

        Parameters
        ----------
        frames : iterable of frames
            As the release takes them, all of the table together.

        Returns
        -------
        str
            For `charge`.

        Raises
        ------
        PlanError, DataError
            For a table that the release refuses, and for a release without a key.
        """
        key, total, rows = self._derived("records"), 0, 0
        for frame in frames:
            table, _ = opened(frame, self.reads)
            ids, values = self.encoded(table, rows + 1)
            rows += len(ids)
            if not len(ids):
                continue
            words = keyed_digests(key, [ids, *values]).view("<u4").sum(axis=0, dtype=np.uint64)
            total += sum(int(word) << 32 * place for place, word in enumerate(words))
        return _ROWS + self.digest([(total % (1 << 256)).to_bytes(32, "little")])

    def data_digest(self, ledger: Ledger, blocks: Iterable[bytes], records: str) -> str:
        """Return the digest to charge a file by: of its records, or as the ledger has one of its bytes."""
        for entry in ledger.entries:
            own, _, before = _noted(entry)
            if own == self.charged_as and before and not before.startswith(_ROWS):
                return self.digest(blocks)
        return records


def _noted(entry: Entry) -> tuple[str, str, str]:
    """Return the release, the digest of types, and that of the data in the note of a charge."""
    head, _, data = entry.note.partition(" data ")
    release, _, types = head.partition(" types ")
    return release, types, data
