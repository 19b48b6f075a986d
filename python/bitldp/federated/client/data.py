"""Records that are released once and served in every round; training sees nothing else."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks, documents
from bitldp.base.files import locked, replacing, resolved
from bitldp.base.keys import RandomSource
from bitldp.federated.wire.arrays import to_numpy
from bitldp.ledger.budget import Ledger
from bitldp.ledger.entry import Entry, checked, named
from bitldp.ledger.file import NoLedgerError
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

__all__ = ["PrivateData", "Released", "digest_of", "note", "read", "readonly", "write"]


_FORMAT = "bitldp.private-data"
_VERSION = 1


class Released(NamedTuple):
    """Released copy of a data set.

    Attributes
    ----------
    features : ndarray
        Reported features; read-only.
    labels : ndarray, or None
        Reported labels; read-only.
    """

    features: NDArray[Any]
    labels: NDArray[Any] | None

    def __repr__(self) -> str:
        """Return shapes, and no values."""
        labels = None if self.labels is None else f"<{self.labels.shape} {self.labels.dtype}>"
        return f"Released(features=<{self.features.shape} {self.features.dtype}>, labels={labels})"


def write(path: Path, released: Released, identity: dict[str, Any]) -> str:
    """Write a copy and its origin; return the note of its charge."""
    arrays = {name: each for name, each in released._asdict().items() if each is not None}
    digest = _digest(arrays)
    about = {"format": _FORMAT, "version": _VERSION, "sha256": digest, **identity}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, about=text, **arrays)
    return note(digest)


def readonly(features: NDArray[Any], labels: NDArray[Any] | None) -> Released:
    """Return a copy whose arrays cannot be written."""
    for each in (features, labels):
        if each is not None:
            each.flags.writeable = False
    return Released(features, labels)


def note(digest: str) -> str:
    """Return the ledger's note of a copy."""
    return f"private data {digest[:32]}"


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    result = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        result.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        result.update(np.ascontiguousarray(array).tobytes())
    return result.hexdigest()


def digest_of(path: Path) -> str:
    """Return the checksum of a file's arrays, which is checked first."""
    return str(read(path)[0]["sha256"])


def read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a file's statement of its origin, and its arrays, which match its checksum."""
    raw = path.read_bytes()
    try:
        arrays = documents.arrays(raw)
        about = json.loads(arrays.pop("about").tobytes())
        known = about["format"] == _FORMAT and "features" in arrays and set(arrays) <= {"features", "labels"}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path}: is not a released copy, or is damaged") from None
    if not known:
        raise ValueError(f"{path}: is not a released copy")
    if about.get("version") != _VERSION:
        raise ValueError(f"{path}: version must be {_VERSION}, got {about.get('version')!r}")
    if about.get("sha256") != _digest(arrays):
        raise ValueError(f"{path}: the contents do not match their checksum; damaged or changed by hand")
    return about, arrays


class PrivateData:
    """Records of a client, released once and kept on disk.

    Parameters
    ----------
    path : path-like
        File (npz) of the released copy. Beside it: ``NAME.lock``, and for a moment ``NAME.pending``.
    mechanism : Mechanism
        Mechanism that releases the features; one for records with a label (`BitRand`) releases both.
    labels : Mechanism, optional
        Mechanism that releases the labels, such as `LabelRR`. Without it, labels are refused.
    output : str
        Form of the released features, as of the mechanism's `randomize`: "values", "bits" or "codes". Reports
        of two parts (`RotatedReports`) are kept side by side, as columns.
    ledger : Ledger or path-like, optional
        What is charged: the exact epsilon of a record, once. A path is a ledger's file, as in `Ledger.open`.
    budget, delta : float, optional
        Of the ledger's file: another one is refused. Delta is 0 where a budget is given alone.
    create : bool
        Whether to begin the ledger's file, with `budget`, where there is none. A folder that was emptied or
        is not mounted then grants the whole budget again, for a new release.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.
    NoLedgerError
        If the ledger's file does not exist, and `create` is false.

    Notes
    -----
    Pass the original data to `get` as a function. It is called only for the first release, and its result is
    not kept: no object of this class, its repr or its pickle holds the data.

    The release is charged once, even if processes race or crash. First the released copy is written under
    another name. Then the ledger is charged, with the copy's checksum as a note. Finally the copy is renamed.
    If a crash occurs between the last two steps, the copy is found to be charged, and nobody has seen it. If
    you delete the copy, the next call makes a new release with a new charge.

    Neighbouring data sets differ in one record, in any way; every record is released by itself. You must
    ensure that a file always belongs to the same people: one file, one set of people.

    Examples
    --------
    >>> import tempfile, numpy as np, bitldp
    >>> from bitldp.federated import PrivateData
    >>> folder = tempfile.TemporaryDirectory()
    >>> both = bitldp.BitRand(3, categories=4, epsilon_x=4.0, epsilon_y=1.0)
    >>> data = PrivateData(folder.name + "/client.npz", both, ledger=bitldp.Ledger(5.0))
    >>> data.get(lambda: (np.zeros((5, 3)), np.arange(5) % 4))
    Released(features=<(5, 3) float64>, labels=<(5,) uint8>)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mechanism: Mechanism,
        *,
        labels: Mechanism | None = None,
        output: str = "values",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        budget: float | None = None,
        delta: float | None = None,
        create: bool = False,
    ) -> None:
        for name, each in (("mechanism", mechanism), ("labels", labels)):
            if not isinstance(each, Mechanism) and not (name == "labels" and each is None):
                raise TypeError(f"{name}: must be a mechanism, not {type(each).__name__}")
        self._pair = hasattr(mechanism, "label_mechanism")
        if self._pair and labels is not None:
            raise ValueError(f"labels: {type(mechanism).__name__} releases them already")
        checks.choice("output", output, ("values", "bits", "codes"))
        if budget is not None:
            Ledger(budget, delta=0.0 if delta is None else delta)
        checks.flag("create", create)
        if ledger is None or isinstance(ledger, Ledger):
            for name, given in (
                ("budget", budget is not None),
                ("delta", delta is not None),
                ("create", create),
            ):
                if given:
                    raise ValueError(f"{name}: needs a ledger with a file")
        elif not Path(ledger).exists():
            if not create:
                raise NoLedgerError(ledger)
            if budget is None:
                raise ValueError("budget: must be given, the file of the ledger does not exist yet")
        self._path = Path(path)
        self._mechanism, self._labels, self._output = mechanism, labels, output
        self._ledger, self._create = ledger, create
        self._budget, self._delta = budget, 0.0 if delta is None and budget is not None else delta

    def __repr__(self) -> str:
        """Return file and mechanisms."""
        labels = "" if self._labels is None else f", labels={self._labels!r}"
        return f"PrivateData({str(self._path)!r}, {self._mechanism!r}{labels})"

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Guarantees to charge: of the features (or of both), and of the labels by themselves."""
        both = (self._mechanism,) if self._labels is None else (self._mechanism, self._labels)
        return tuple(each.guarantee for each in both)

    @property
    def released(self) -> bool:
        """True once the released copy is on disk."""
        return self._path.exists()

    def get(
        self, original: Callable[[], tuple[ArrayLike, ArrayLike | None]], *, rng: RandomSource = None
    ) -> Released:
        """Return the released copy, and release it the first time.

        Parameters
        ----------
        original : callable
            Returns (features, labels), labels None where there are none. Not called where a copy exists.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.

        Returns
        -------
        Released

        Raises
        ------
        BudgetExceededError
            If the release would exceed the ledger's budget. Nothing is released then.
        ValueError
            If the copy on disk is damaged, or was released by other mechanisms, or for bad input.
        OSError
            If a file cannot be read or written.
        """
        path = resolved(self._path)  # two links to one copy are one release
        with locked(path):
            if path.exists():
                return self._open(path)
            pending = path.with_name(path.name + ".pending")
            if pending.exists() and self._settled(pending, path):
                return self._open(path)
            released = self._release(original, rng)
            self._charge(write(pending, released, self._identity()))
            pending.replace(path)
            return released

    def _settled(self, pending: Path, path: Path) -> bool:
        """Finish a release that a crash cut short, if it was charged; else drop it: nobody has seen it."""
        try:
            digest = digest_of(pending)
        except ValueError:
            digest = None
        if digest is not None and self._charged(note(digest)):
            self._open(pending)  # refuses what other mechanisms released
            pending.replace(path)
            return True
        pending.unlink()
        return False

    def _release(self, original: Callable[[], Any], rng: RandomSource) -> Released:
        pair = original()
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError("original: must return a pair (features, labels)")
        features, labels = (None if each is None else _plain(each) for each in pair)
        if features is None or (labels is None) == (self._pair or self._labels is not None):
            wanted = "features and labels" if labels is None else "features, for nothing releases the labels"
            raise ValueError(f"original: must return {wanted}")
        if labels is not None and len(labels) != len(features):
            raise ValueError(f"original: {len(features)} records of features, {len(labels)} labels")
        randomize: Any = self._mechanism.randomize
        if self._pair:
            reports = randomize(features, labels, rng=rng, output=self._output)
        else:
            if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
                rng = np.random.SeedSequence(int(rng))
            one, other = (
                rng.spawn(2) if isinstance(rng, np.random.SeedSequence) else (rng, rng)
            )  # streams that do not repeat each other
            reports = (randomize(features, rng=one, output=self._output), None)
            if self._labels is not None:
                reports = (reports[0], self._labels.randomize(labels, rng=other))  # type: ignore[arg-type]
        reports = (_one_array(reports[0]), reports[1])
        if not all(each is None or isinstance(each, np.ndarray) for each in reports):
            raise TypeError(f"output: {self._output!r} of {type(self._mechanism).__name__} is not an array")
        return readonly(*reports)

    def _identity(self) -> dict[str, Any]:
        labels = None if self._labels is None else self._labels.fingerprint()
        identity = {"mechanism": self._mechanism.fingerprint(), "labels": labels, "output": self._output}
        plain: dict[str, Any] = json.loads(json.dumps(identity, default=repr))
        return plain

    def _open(self, path: Path) -> Released:
        about, arrays = read(path)
        theirs = {name: about.get(name) for name in self._identity()}
        if theirs != self._identity():
            raise ValueError(
                f"{path}: was released by another mechanism, or in another form; the copy is served to those "
                "alone who name the mechanism that made it"
            )
        return readonly(arrays["features"], arrays.get("labels"))

    def _charged(self, remark: str) -> bool:
        if self._ledger is None:
            return False
        if isinstance(self._ledger, Ledger):
            ledger = self._ledger
        elif self._create and not Path(self._ledger).exists():
            return False
        else:
            ledger = Ledger.load(self._ledger)
        return any(entry.note == remark for entry in ledger.entries)

    def _charge(self, remark: str) -> None:
        """Charge all that a release costs, or nothing."""
        if self._ledger is None:
            return
        both = (self._mechanism,) if self._labels is None else (self._mechanism, self._labels)
        entries = [checked(Entry(*named(each), 1, remark)) for each in both]
        if isinstance(self._ledger, Ledger):
            self._ledger._extend(entries)
            return
        options: dict[str, Any] = {"budget": self._budget, "delta": self._delta}
        with Ledger.open(self._ledger, **options, create=self._create) as ledger:
            ledger._extend(entries)


def _one_array(reports: Any) -> Any:
    """Return reports of two parts (a rotation's number, what is reported of it) side by side, as columns."""
    if not isinstance(reports, tuple) or not all(isinstance(part, np.ndarray) for part in reports):
        return reports
    return np.column_stack([part.reshape(len(part), -1) for part in reports])


def _plain(array: Any) -> NDArray[Any]:
    plain = np.asarray(array) if isinstance(array, (list, tuple)) else to_numpy(array)
    if plain.ndim == 0:
        raise ValueError("original: features and labels must be arrays of records")
    return plain
