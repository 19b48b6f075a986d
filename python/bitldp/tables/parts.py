"""Saved counts: how their text begins, and which parts of a table they are of, so that none counts twice."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from bitldp.base.documents import document
from bitldp.base.errors import PlanError

__all__ = ["Parts", "refuse_two_snapshots", "saved_counts", "snapshots_of"]


class Parts:
    """Names of the parts that counts are of: none twice, nor two snapshots of one memoized series."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._snapshots: set[tuple[str, str]] = set()  # series and release, of memoized ones
        self._own = secrets.token_hex(16)  # of all that nobody named

    def refuse(self, source: str | None, snapshots: set[tuple[str, str]]) -> None:
        """Refuse a part that was counted, or that is another snapshot of a series that was.

        Raises
        ------
        PlanError
        """
        if source is not None and source in self._names:
            raise PlanError(f"source: {source!r} was counted before")
        refuse_two_snapshots(self._snapshots | snapshots, "frame: is")

    def add(self, source: str | None, snapshots: set[tuple[str, str]]) -> None:
        """Add a part that has rows, under the name that it has."""
        self._names.add(self._own if source is None else source)
        self._snapshots |= snapshots

    @property
    def snapshots(self) -> set[tuple[str, str]]:
        """Series and release of each part that is memoized."""
        return self._snapshots

    def refuse_merged(self, other: Parts) -> None:
        """Refuse the parts of other counts where one of them is here, too.

        Raises
        ------
        PlanError
        """
        if other is self or self._names & other._names:
            raise PlanError("other: was counted already; merge each part once")
        refuse_two_snapshots(self._snapshots | other._snapshots, "other: holds")

    def merge(self, other: Parts) -> None:
        """Add the parts of other counts."""
        self._names |= other._names
        self._snapshots |= other._snapshots

    def to_json(self) -> dict[str, Any]:
        """Return the names as JSON values; those of snapshots where there are any."""
        snapshots = {"snapshots": sorted(self._snapshots)} if self._snapshots else {}
        return {"counted": sorted(self._names), **snapshots}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take the names of JSON values, as `to_json` gives them.

        Raises
        ------
        KeyError, ValueError, TypeError
            For what is none.
        """
        self._names = set(map(str, saved["counted"]))
        self._snapshots = {(str(series), str(release)) for series, release in saved.get("snapshots", [])}


def snapshots_of(metadata: Mapping[bytes, bytes] | None) -> set[tuple[str, str]]:
    """Return series and release that the metadata of a memoized table say; nothing of another."""
    series = (metadata or {}).get(b"bitldp.series")
    release = (metadata or {}).get(b"bitldp.release", b"")
    return set() if series is None else {(series.decode(), release.decode())}


def refuse_two_snapshots(snapshots: set[tuple[str, str]], problem: str = "source: holds") -> None:
    """Refuse to count several snapshots of one memoized series as records of one population.

    Raises
    ------
    PlanError
        With the beginning `problem`.
    """
    if len(snapshots) > len({series for series, _ in snapshots}):
        raise PlanError(
            f"{problem} another snapshot of a memoized release that was counted: most of its reports are the "
            "same again, which no interval expects; count each by itself, or group by a kept day"
        )


def saved_counts(text: str, form: str, versions: Sequence[int], plan: str) -> dict[str, Any]:
    """Return the JSON values of saved counts.

    Parameters
    ----------
    text : str
    form : str
        What the document calls itself.
    versions : sequence of int
        Those that are read.
    plan : str
        Digest of the plan that the counts are of.

    Raises
    ------
    PlanError
        For a text that is none, of another version, or of another plan.
    TypeError
        For another type.
    """
    try:
        saved = document(text)
    except ValueError as error:
        raise PlanError(str(error)) from None
    if not isinstance(saved, dict) or saved.get("format") != form:
        raise PlanError(f"text: is not a {form} document")
    if saved.get("version") not in versions or saved.get("plan") != plan:
        raise PlanError("text: is of another version, or of another plan")
    return saved
