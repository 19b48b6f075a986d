"""Folder of a run: its settings, one JSON line for each round, and a checkpoint to resume from."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from bitldp.base import documents
from bitldp.base.files import replacing
from numpy.typing import NDArray

__all__ = ["Checkpoint", "RunFolder"]

SETTINGS, METRICS, CHECKPOINT = "settings.json", "metrics.jsonl", "checkpoint.npz"
_ROUND = "round"

Arrays = Mapping[str, NDArray[Any]]


class Checkpoint:
    """Arrays of a model after a round, and other arrays that the server has to remember.

    Attributes
    ----------
    round : int
        Rounds that are done.
    arrays : dict of str to ndarray
    """

    def __init__(self, done: int, arrays: Arrays) -> None:
        self.round = done
        self.arrays = dict(arrays)


class RunFolder:
    """Folder of one run.

    Parameters
    ----------
    path : path-like
        Made if it does not exist.
    settings : mapping
        JSON values that say what is run. A folder is gone on with under equal settings only.
    resume : bool
        Whether to go on from the folder's checkpoint. Without it a folder that holds a run is refused.

    Raises
    ------
    ValueError
        If the folder holds another run, or holds one and `resume` is False, or its files are damaged.

    Notes
    -----
    Each file is replaced at once, so a run that is killed leaves the last round that was whole. Lines of
    rounds after the checkpoint are dropped on resuming: those rounds are run again.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any], *, resume: bool) -> None:
        self.path = Path(path)
        self.settings = json.loads(json.dumps(dict(settings), sort_keys=True))
        self.path.mkdir(parents=True, exist_ok=True)
        kept = self._read_settings()
        if kept is None:
            for name in (METRICS, CHECKPOINT):
                if (self.path / name).exists():
                    raise ValueError(f"out: {self.path} holds {name} of something else; give an empty folder")
            self._replace(SETTINGS, json.dumps(self.settings, indent=2, sort_keys=True).encode())
        elif not resume:
            raise ValueError(
                f"out: {self.path} holds a run already; resume it (--resume), or give another folder"
            )
        elif kept != self.settings:
            names = sorted(
                name
                for name in kept.keys() | self.settings.keys()
                if kept.get(name) != self.settings.get(name)
            )
            raise ValueError(
                f"out: {self.path} holds a run with another {', '.join(names)}; give another folder"
            )
        self.checkpoint = self._read_checkpoint()
        done = 0 if self.checkpoint is None else self.checkpoint.round
        self.rows = [row for row in self._read_rows() if row["round"] <= done]
        self._write_rows()

    def _read_settings(self) -> Any:
        try:
            text = (self.path / SETTINGS).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise ValueError(f"out: {self.path / SETTINGS} is damaged") from None

    def _read_rows(self) -> list[dict[str, Any]]:
        try:
            lines = (self.path / METRICS).read_text(encoding="utf-8").splitlines()
            rows = [json.loads(line) for line in lines]
        except FileNotFoundError:
            return []
        except ValueError:
            raise ValueError(f"out: {self.path / METRICS} is damaged") from None
        if not all(isinstance(row, dict) and isinstance(row.get("round"), int) for row in rows):
            raise ValueError(f"out: {self.path / METRICS} is damaged")
        return rows

    def _read_checkpoint(self) -> Checkpoint | None:
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        try:
            arrays = documents.arrays(path.read_bytes())
            return Checkpoint(int(arrays.pop(_ROUND)), arrays)
        except (ValueError, KeyError, TypeError, OSError):
            raise ValueError(f"out: {path} is damaged") from None

    def record(self, row: Mapping[str, Any], arrays: Arrays) -> None:
        """Keep the metrics and the checkpoint of a round.

        Parameters
        ----------
        row : mapping
            JSON values, among them ``"round"``; numbers that are not finite become null.
        arrays : mapping of str to ndarray
            What the next round starts from.
        """
        self.rows.append({name: _plain(value) for name, value in row.items()})
        with replacing(self.path / CHECKPOINT) as file:
            np.savez(file, **{**arrays, _ROUND: np.int64(row["round"])})
            # The metrics go first: a round whose line is there but whose checkpoint is not is run again.
            self._write_rows()

    def _write_rows(self) -> None:
        text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in self.rows)
        self._replace(METRICS, text.encode())

    def _replace(self, name: str, data: bytes) -> None:
        with replacing(self.path / name) as file:
            file.write(data)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
