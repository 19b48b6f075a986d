"""A folder of released files that grows under another name, and takes its own when all of it is there."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from bitldp.base.files import sync_folder, take
from bitldp.cli.commands import FOLDER_REPORT
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.perturb.outputs import Signals, Unchanged, digest

__all__ = ["Part", "Staging", "check_folder", "digest_of", "is_listed", "staged"]


class Part(NamedTuple):
    """One file of a released folder: its name in it, its rows and the SHA-256 of its bytes."""

    name: str
    rows: int
    sha256: str


def digest_of(parts: Sequence[Part]) -> str:
    """Return the SHA-256 of a folder: of the names, rows and digests of its files, as canonical JSON."""
    text = json.dumps(
        [each._asdict() for each in parts], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _contents(folder: Path) -> set[str]:
    """Return the names of all files in a folder and the folders in it, but for its report."""
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return there - {FOLDER_REPORT}


def is_listed(report: Path, sha256: str, folder: Path) -> bool:
    """Return whether a folder holds the files that a report lists, with their bytes, and nothing else."""
    try:
        parts = [Part(**each) for each in json.loads(report.read_bytes())["files"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    if digest_of(parts) != sha256 or _contents(folder) != {each.name for each in parts}:
        return False
    for each in parts:
        with (folder / each.name).open("rb") as file:
            if digest(file) != each.sha256:
                return False
    return True


def _is_release(folder: Path) -> bool:
    """Return whether a folder holds what its report lists, and nothing else."""
    try:
        listed = json.loads((folder / FOLDER_REPORT).read_bytes())["files"]
        return _contents(folder) == {each["name"] for each in listed}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def check_folder(target: Path, sources: Sequence[Path], folders: Sequence[Path], *, force: bool) -> None:
    """Refuse, before anything is read, a folder that cannot be written.

    Parameters
    ----------
    target : pathlib.Path
        The folder to write.
    sources, folders : sequence of pathlib.Path
        Local files and folders that are read.
    force : bool
        Whether an older release may be replaced.

    Raises
    ------
    UsageError
        If it is a file or a link, is where the input is, or exists and is no release that may be replaced.
    """
    here = target.resolve()
    if not target.parent.is_dir():
        raise UsageError(f"{target}: the folder {target.parent} does not exist")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError(f"{target}: is a file or a link, and no folder")
    if any(path.resolve().is_relative_to(here) for path in (*sources, *folders)):
        raise UsageError("the input is in the output's folder; give the output another name")
    if any(here.is_relative_to(path.resolve()) for path in folders):
        raise UsageError("the output is in the input's folder, which would hold both; give it another name")
    if not target.exists() or not any(target.iterdir()):
        return
    if not force:
        raise UsageError(f"{target}: exists, and is not empty; give another name, or --force to replace it")
    if not _is_release(target):
        raise UsageError(
            f"{target}: holds files that are not of a release; --force replaces only files that perturb wrote"
        )


class Staging:
    """A folder that grows; `staged` opens it.

    Attributes
    ----------
    folder : pathlib.Path
        Where the files are until all are there.
    finished : dict of str to Part
        Those that are there, by name.
    """

    def __init__(self, target: Path, journal: BinaryIO, finished: Mapping[str, Part]) -> None:
        self._target, self._journal = target, journal
        self._before = Unchanged(target)
        self.folder = _growing(target)
        self.finished: dict[str, Part] = dict(finished)

    @contextmanager
    def part(self, name: str) -> Iterator[BinaryIO]:
        """Open one file of the folder; `keep` gives it its name."""
        temporary = self._temporary(name)
        temporary.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def _temporary(self, name: str) -> Path:
        path = self.folder / name
        return path.with_name(f".{path.name}.tmp")

    def keep(self, part: Part) -> None:
        """Give a file its name, and note that it is finished: it is on disk then."""
        path = self.folder / part.name
        self._temporary(part.name).replace(path)
        sync_folder(path.parent)
        self._journal.write((json.dumps(part._asdict()) + "\n").encode())
        self._journal.flush()
        os.fsync(self._journal.fileno())
        self.finished[part.name] = part

    def finish(self, report: bytes, signals: Signals) -> None:
        """Give the folder its name, with its report in it, in one step.

        Raises
        ------
        CommandError
            If another run gave the name meanwhile.
        """
        with self.part(FOLDER_REPORT) as file:
            file.write(report)
        self._temporary(FOLDER_REPORT).replace(self.folder / FOLDER_REPORT)
        sync_folder(self.folder)
        signals.hold()
        try:
            if not self._before:
                raise CommandError(f"{self._target}: was changed in the meantime; nothing was replaced")
            if self._target.exists():
                self._target.replace(_aside(self._target))
            self.folder.replace(self._target)
        except BaseException:
            signals.release()
            raise
        sync_folder(self._target.parent)
        _remove_aside(self._target)
        _journal(self._target).unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        _journal(self._target).unlink(missing_ok=True)


def _growing(target: Path) -> Path:
    return target.with_name(f".{target.name}.partial")


def _journal(target: Path) -> Path:
    return target.with_name(f".{target.name}.partial.json")


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.old")


def _remove_aside(target: Path) -> None:
    """Remove releases that were replaced."""
    for other in target.parent.glob(f".{glob_escaped(target.name)}.*.old"):
        shutil.rmtree(other, ignore_errors=True)


def glob_escaped(name: str) -> str:
    """Return a name as a pattern of itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


@contextmanager
def staged(target: Path, state: Mapping[str, Any] | None) -> Iterator[Staging]:
    """Open the folder that will be `target`, for one run at a time.

    Parameters
    ----------
    target : pathlib.Path
    state : mapping or None
        What the files are a function of, as JSON values without anything private. Where a run that ended
        early had the same, its finished files are taken over, after a look at their bytes. None: they are of
        this run alone.

    Raises
    ------
    CommandError
        If another run is writing it.
    """
    path = _journal(target)
    with os.fdopen(
        os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600), "r+b"
    ) as journal:
        with suppress(OSError):  # where the file system has no locks
            if not take(journal.fileno(), wait=False) or not _is_same(journal, path):
                raise CommandError(f"{target}: another run is writing it")
        lines = [_json(line) for line in journal.read().splitlines()]
        finished: dict[str, Part] = {}
        if state is not None and lines and lines[0] == dict(state):
            finished = {part.name: part for part in _parts(_growing(target), lines[1:])}
        _clear(_growing(target), set(finished))
        journal.seek(0)
        journal.truncate()
        for each in (dict(state or {}), *(part._asdict() for part in finished.values())):
            journal.write((json.dumps(each) + "\n").encode())
        journal.flush()
        os.fsync(journal.fileno())
        _growing(target).mkdir(exist_ok=True)
        yield Staging(target, journal, finished)


def _is_same(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:  # a run that was waited for has finished
        return False


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):  # the last line of a run that was killed
        return None


def _parts(folder: Path, lines: Sequence[Any]) -> Iterator[Part]:
    """Yield the files that a journal lists and that are as it says."""
    for line in lines:
        with suppress(TypeError, OSError):
            part = Part(**line)
            with (folder / part.name).open("rb") as file:
                if digest(file) == part.sha256:
                    yield part


def _clear(folder: Path, kept: set[str]) -> None:
    """Remove what an earlier run left and nobody lists."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):  # not empty
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in kept:
            path.unlink()
