"""Course of one figure: its seeds, data and progress, and a cache of its expensive steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from bitldp.base.documents import jsonable
from bitldp.base.files import replacing

from bitldp_papers.data import Dataset, DatasetError, load, using
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
    given : (str, Dataset), optional
        A data set of the user's, and the name of the figure's own that it stands for; empty: its only one.

    Attributes
    ----------
    folder : pathlib.Path
    quick : bool
    seeds : tuple of int
        Several, in the short form, too.
    stood_for : list of str
        Names of the figure's sets that the user's was read for.
    checksums : dict
        Of the data that were asked for: SHA-256 of each file, or of the arrays of a bundled set.
    """

    def __init__(
        self,
        folder: Path,
        *,
        quick: bool = False,
        notice: Notice | None = None,
        given: tuple[str, Dataset] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.given = given
        self.stood_for: list[str] = []
        self._stack = ExitStack()
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
        if self.given is not None and self.given[0] in ("", name):
            return self._given(name, self.given[1])
        try:
            result = load(name)
        except DatasetError as error:
            raise MissingData(str(error)) from None
        self.checksums[name] = dict(CHECKSUMS.get(name) or {"arrays": _digest(result)})
        return result

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
            Names the step and all that it depends on; the short form is kept apart by itself.
        function : callable
            Returns a JSON value; tuples come back as lists, infinities as they were.

        Notes
        -----
        Steps of an earlier run are there with ``--resume`` only.
        """
        named = "" if self.given is None else f"{self.given[0]} {self.given[1].name} "
        path = self.folder / "steps" / f"{_file_name(named + key, self.quick)}.json"
        if not path.exists():
            value = function()
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(json.dumps({"key": key, "value": jsonable(value)}).encode())
        result: _T = _restored(json.loads(path.read_text(encoding="utf-8"))["value"])
        return result


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
    digest = hashlib.sha256()
    for each in (data.train, data.train_labels, data.test, data.test_labels):
        digest.update(each.tobytes())
    return digest.hexdigest()
