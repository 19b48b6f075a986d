"""Course of one figure: its seeds, data and progress, and a cache of its expensive steps."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from bitldp.base.documents import jsonable
from bitldp.base.files import replacing

from bitldp_papers.data import Dataset, DatasetError, load, names, using
from bitldp_papers.data.sources import CHECKSUMS

__all__ = ["FORMS", "SHARED", "FigureRun", "MissingData"]

_T = TypeVar("_T")
#: Folder, beside those of the figures, of steps that several of them use.
SHARED = "shared"
Notice = Callable[[str, int, int], None]

#: Forms of a figure, the shortest first, each with its number of seeds.
FORMS = {"quick": 3, "medium": 5, "full": 5}


class MissingData(Exception):  # noqa: N818  # no fault of the program: the figure is left out, by name
    """Reason why a figure cannot be made here: the data set that it needs is not there."""


class FigureRun:
    """Course of one figure.

    Parameters
    ----------
    folder : path
        Of the figure; `cached` steps are kept in its ``steps``.
    form : str
        One of `FORMS`: "quick", "medium" or "full".
    seeds : sequence of int, optional
        By default 1, 2, ..., as many as the form has.
    notice : callable, optional
        ``notice(label, done, total)`` shows progress.
    given : (str, Dataset), optional
        A data set of the user's, and the name of the figure's own that it stands for; empty: its only one.

    Attributes
    ----------
    folder : pathlib.Path
    form : str
    quick : bool
        Whether the form is "quick".
    given_seeds : tuple of int
        All; `seeds` are the same, and count as used.
    used : dict
        Which seeds were used: by "" those of most runs, by a word those of a part that took fewer.
    spent, borrowed : float
        Seconds that steps took when they were made before: `cached` ones by an earlier run of the figure,
        `shared` ones by other figures.
    stood_for : list of str
        Names of the figure's sets that the user's was read for.
    checksums : dict
        Of the data that were asked for: SHA-256 of each file, or of the arrays of a bundled set.
    """

    def __init__(
        self,
        folder: Path,
        *,
        form: str = "full",
        seeds: Sequence[int] | None = None,
        notice: Notice | None = None,
        given: tuple[str, Dataset] | None = None,
    ) -> None:
        if form not in FORMS:
            raise ValueError(f"form: must be one of {', '.join(FORMS)}; got {form!r}")
        self.folder = Path(folder)
        self.given = given
        self.stood_for: list[str] = []
        self._stack = ExitStack()
        self.form = form
        self.given_seeds = tuple(seeds or range(1, FORMS[form] + 1))
        self.used: dict[str, list[int]] = {}
        self.spent = self.borrowed = 0.0
        self.checksums: dict[str, dict[str, str]] = {}
        self._read: dict[str, Dataset] = {}
        self._notice = notice or (lambda label, done, total: None)

    @property
    def quick(self) -> bool:
        """True in the quick form."""
        return self.form == "quick"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return all seeds, which count as used from now on."""
        return self.take(len(self.given_seeds))

    def take(self, most: int, of: str = "") -> tuple[int, ...]:
        """Return the first seeds, for a part of a figure that is expensive.

        Parameters
        ----------
        most : int
            How many, if there are so many.
        of : str
            What they are used for, in a few words, where other parts of the figure use others.
        """
        some = self.given_seeds[:most]
        if len(some) > len(self.used.get(of, ())):
            self.used[of] = list(some)
        return some

    def choose(self, *, quick: _T, medium: _T, full: _T) -> _T:
        """Return what goes with the form."""
        return {"quick": quick, "medium": medium, "full": full}[self.form]

    def data(self, name: str) -> Dataset:
        """Return a data set of `bitldp_papers.data`, read once, and note its checksums.

        A figure whose runs load data by themselves asks for them here first.

        Raises
        ------
        MissingData
            With the reason.
        """
        if self.given is not None and self.given[0] in ("", name):
            return self._given(name, self.given[1])
        if name not in self._read:
            try:
                self._read[name] = load(name)
            except DatasetError as error:
                raise MissingData(str(error)) from None
            self.checksums[name] = dict(CHECKSUMS.get(name) or {"arrays": _digest(self._read[name])})
        return self._read[name]

    def has(self, name: str) -> bool:
        """Tell whether `data` returns a set: for those that a figure can do without."""
        if name not in names() and (self.given is None or self.given[0] != name):
            return False
        try:
            self.data(name)
        except MissingData:
            return False
        return True

    def _given(self, name: str, data: Dataset) -> Dataset:
        if name not in self.stood_for:
            if self.stood_for:
                raise MissingData(
                    f"has the sets {self.stood_for[0]} and {name}: --data {name}=FILE says which is meant"
                )
            self.stood_for.append(name)
            self._stack.enter_context(using(data, instead_of=name))
            self.checksums[name] = {"given": data.name}
        return data

    def close(self) -> None:
        """Let the names of the figure's sets stand for these again."""
        self._stack.close()

    def each(self, things: Collection[_T], label: str = "") -> Iterator[_T]:
        """Yield things one by one, with progress shown."""
        for done, thing in enumerate(things):
            self._notice(f"{label} {thing}".strip(), done, len(things))
            yield thing
        self._notice(label, len(things), len(things))

    def cached(self, key: str, function: Callable[[], _T]) -> _T:
        """Return what a function returns, from the figure's folder if it was called there before.

        Parameters
        ----------
        key : str
            Names the step and all that it depends on; the form is kept apart by itself.
        function : callable
            Returns a JSON value; tuples come back as lists, infinities as they were.

        Notes
        -----
        Steps of an earlier run are there with ``--resume`` only.
        """
        path = self.folder / "steps" / f"{_file_name(self._whose + key, self.form)}.json"
        value, seconds = _step(path, key, function)
        self.spent += seconds
        return value

    def shared(self, key: str, function: Callable[[], _T]) -> _T:
        """Return what a function returns, from a folder that all figures share.

        Parameters
        ----------
        key : str
            Names the step and all that it depends on, the form's settings, too.
        function : callable
            Returns a JSON value or a dictionary of NumPy arrays; tuples come back as lists.
        """
        path = self.folder.parent / SHARED / f"{_file_name(self._whose + key)}.json"
        value, seconds = _step(path, key, function)
        self.borrowed += seconds
        return value

    @property
    def _whose(self) -> str:
        """Beginning of the keys of steps on a user's own data."""
        return "" if self.given is None else f"{self.given[0]} {self.given[1].name} "


def _step(path: Path, key: str, function: Callable[[], _T]) -> tuple[_T, float]:
    """Return the value of a step and, where it was kept, the seconds that it took."""
    arrays = path.with_suffix(".npz")
    before = path.exists()
    if not before:
        begun = time.perf_counter()
        value = function()
        kept: dict[str, Any] = {"key": key, "seconds": round(time.perf_counter() - begun, 3)}
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, dict) and value and all(isinstance(each, np.ndarray) for each in value.values()):
            with replacing(arrays) as file:
                np.savez(file, **value)
        else:
            kept["value"] = jsonable(value)
        with replacing(path) as file:
            file.write(json.dumps(kept).encode())
    known = json.loads(path.read_text(encoding="utf-8"))
    if "value" in known:
        result: _T = _restored(known["value"])
    else:
        with np.load(arrays, allow_pickle=False) as held:
            result = dict(held)  # type: ignore[assignment]
    return result, known.get("seconds", 0.0) if before else 0.0


def _file_name(key: str, form: str = "") -> str:
    """Return a name for any key: its readable beginning, and a digest."""
    plain = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in key)[:60]
    return f"{plain}-{hashlib.sha256(f'{form} {key}'.encode()).hexdigest()[:12]}"


def _restored(value: Any) -> Any:
    """Return a JSON value with the words for infinities as numbers again."""
    if isinstance(value, dict):
        return {name: _restored(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_restored(each) for each in value]
    return (
        {"infinity": float("inf"), "-infinity": float("-inf")}.get(value, value)
        if isinstance(value, str)
        else value
    )


def _digest(data: Dataset) -> str:
    digest = hashlib.sha256()
    for each in (data.train, data.train_labels, data.test, data.test_labels):
        digest.update(each.tobytes())
    return digest.hexdigest()
