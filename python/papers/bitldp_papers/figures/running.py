"""What a figure's function is given: seeds, data, progress, and a cache of its expensive steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bitldp.base.documents import jsonable
from bitldp.base.files import replacing

from bitldp_papers.data import Dataset, DatasetError, load
from bitldp_papers.data.sources import CHECKSUMS

__all__ = ["FigureRun", "MissingData"]

_T = TypeVar("_T")
Notice = Callable[[str, int, int], None]

QUICK_SEEDS, SEEDS = (1, 2, 3), (1, 2, 3, 4, 5)


class MissingData(Exception):  # noqa: N818  # no fault of the program: the figure is left out, by name
    """Reason why a figure cannot be made here: the data set that it needs is not there."""


class FigureRun:
    """Course of one figure.

    Parameters
    ----------
    folder : path
        Of the figure; `cached` steps are kept in its ``steps``.
    quick : bool
        Whether to make the short form.
    notice : callable, optional
        ``notice(label, done, total)`` shows progress.

    Attributes
    ----------
    folder : pathlib.Path
    quick : bool
    seeds : tuple of int
        Several, in the short form, too.
    checksums : dict
        Of the data that were asked for: SHA-256 of each file, or of the arrays of a bundled set.
    """

    def __init__(self, folder: Path, *, quick: bool = False, notice: Notice | None = None) -> None:
        self.folder = Path(folder)
        self.quick = quick
        self.seeds: Sequence[int] = QUICK_SEEDS if quick else SEEDS
        self.checksums: dict[str, dict[str, str]] = {}
        self._notice = notice or (lambda label, done, total: None)

    def data(self, name: str) -> Dataset:
        """Return a data set of `bitldp_papers.data`, and note its checksums.

        A figure whose runs load data by themselves asks for them here first.

        Raises
        ------
        MissingData
            With the reason.
        """
        try:
            found = load(name)
        except DatasetError as error:
            raise MissingData(str(error)) from None
        self.checksums[name] = dict(CHECKSUMS.get(name) or {"arrays": _digest(found)})
        return found

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
            Names the step and all that it depends on; the short form is kept apart by itself.
        function : callable
            Returns a JSON value; tuples come back as lists, infinities as they were.

        Notes
        -----
        Steps of an earlier run are there with ``--resume`` only.
        """
        path = self.folder / "steps" / f"{_file_name(key, self.quick)}.json"
        if not path.exists():
            value = function()
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(json.dumps({"key": key, "value": jsonable(value)}).encode())
        found: _T = _restored(json.loads(path.read_text(encoding="utf-8"))["value"])
        return found


def _file_name(key: str, quick: bool) -> str:
    """Return a name for any key: its readable beginning, and a digest."""
    plain = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in key)[:60]
    return f"{plain}-{hashlib.sha256(f'{quick} {key}'.encode()).hexdigest()[:12]}"


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
    found = hashlib.sha256()
    for each in (data.train, data.train_labels, data.test, data.test_labels):
        found.update(each.tobytes())
    return found.hexdigest()
