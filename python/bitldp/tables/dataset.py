"""Tables of many files: folders, globs and several paths, local or remote, and what names of folders say.

Folders named ``day=3`` hold the records whose column ``day`` is 3, as Hive, Spark and DuckDB write them. The
files are in the order of their paths, whatever order they are named in.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from bitldp.base.errors import DataError, PlanError, require

__all__ = ["DatasetFile", "column_of_key", "dataset_of", "files_of", "is_many", "is_remote", "key_types"]

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_WILD = re.compile(r"[*?\[]")
_HIDDEN = ("_", ".")  # what engines write beside the files of a table
_ABSENT = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")


@dataclass(frozen=True)
class DatasetFile:
    """One file of a table.

    Attributes
    ----------
    filesystem : pyarrow.fs.FileSystem
    path : str
        In the file system.
    name : str
        What errors call it.
    keys : mapping of str
        What the names of its folders say of its records, by column; None is a missing value.
    size : int
    """

    filesystem: pa.fs.FileSystem
    path: str
    name: str
    keys: Mapping[str, str | None] = field(default_factory=dict)
    size: int = 0

    @property
    def local(self) -> Path | None:
        """Where it is on this machine, if it is there."""
        return Path(self.path) if isinstance(self.filesystem, pa.fs.LocalFileSystem) else None


def is_remote(location: str) -> bool:
    """Return whether a location is a URI, such as ``s3://bucket/people``."""
    return _REMOTE.match(location) is not None


def is_many(location: str) -> bool:
    """Return whether a location may be several files or a remote one: a folder, a glob, or a URI."""
    if is_remote(location):
        return True
    return Path(location).is_dir() or (_WILD.search(location) is not None and not Path(location).exists())


def files_of(locations: Sequence[str]) -> list[DatasetFile]:
    """Return the files of a table, in the order of their paths.

    Parameters
    ----------
    locations : sequence of str
        Files, folders (with all folders in them) and globs; ``**`` stands for any number of folders. Each is
        a path, or a URI of a file system of pyarrow (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``) or
        fsspec. Files and folders whose names begin with "_" or "." are left out of folders and globs.

    Raises
    ------
    PlanError
        If there are no files, one is named twice, or only some are in folders named ``column=value``.
    MissingExtraError
        For a file system of fsspec, without it.
    """
    found: list[tuple[pa.fs.FileSystem, pa.fs.FileInfo, str]] = []
    for location in locations:
        filesystem, path = _filesystem(location)
        found += [(filesystem, *each) for each in _matching(filesystem, path, location)]
    if len({filesystem.type_name for filesystem, _, _ in found}) > 1:
        raise PlanError("source: the files of one table are in one file system")
    for path, times in Counter(info.path for _, info, _ in found).items():
        if times > 1:
            raise PlanError(f"source: {path} is named twice")
    base = _common([folder for _, _, folder in found])
    files = [
        DatasetFile(filesystem, info.path, _shown(filesystem, info.path), _keys(info.path, base), info.size)
        for filesystem, info, _ in found
    ]
    files.sort(key=lambda file: file.path.split("/"))
    if any(list(file.keys) != list(files[0].keys) for file in files):
        raise PlanError(
            "source: some files are in folders named column=value, and others are not in the same"
        )
    return files


def _filesystem(location: str) -> tuple[pa.fs.FileSystem, str]:
    """Return the file system of a location, and the path in it."""
    if not is_remote(location):
        return pa.fs.LocalFileSystem(), Path(os.path.abspath(location)).as_posix()  # noqa: PTH100  # no links
    try:
        filesystem, path = pa.fs.FileSystem.from_uri(_escaped(location))
    except pa.ArrowException:
        require(f"a location such as {location.partition('://')[0]}://", ["fsspec"], "remote")
        import fsspec

        try:
            own, path = fsspec.core.url_to_fs(location)
        except (ValueError, ImportError):
            raise PlanError(f"source: {location}: no file system is known for it") from None
        filesystem = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(own))
    return filesystem, path


def _escaped(location: str) -> str:
    """Return a URI in which the characters of a glob are no part of its grammar."""
    return (
        location.replace("[", "%5B").replace("]", "%5D").replace("?", "%3F") if "[" in location else location
    )


def _shown(filesystem: pa.fs.FileSystem, path: str) -> str:
    """Return the name of a file in errors: a local one from here, where it is below."""
    here = Path.cwd()
    local = isinstance(filesystem, pa.fs.LocalFileSystem) and Path(path).is_relative_to(here)
    return Path(path).relative_to(here).as_posix() if local else path


def _matching(filesystem: pa.fs.FileSystem, path: str, location: str) -> Iterator[tuple[pa.fs.FileInfo, str]]:
    """Yield the files of one location, each with the folder below which its path says something."""
    found = filesystem.get_file_info(path)
    if found.type == pa.fs.FileType.File:
        yield found, path.rpartition("/")[0]
        return
    if found.type == pa.fs.FileType.Directory:
        folder, wanted, deep = path.rstrip("/"), re.compile(r".*", re.DOTALL), True
    else:
        plain, wild = _split(path)
        if not wild:
            raise PlanError(f"source: {location}: no such file or folder")
        folder, wanted, deep = plain, _pattern(wild), len(wild) > 1
    there = filesystem.get_file_info(pa.fs.FileSelector(folder, allow_not_found=True, recursive=deep))
    start = len(folder) + 1 if folder else 0
    those = [
        (info, folder)
        for info in there
        if info.type == pa.fs.FileType.File
        and wanted.fullmatch(info.path[start:])
        and not any(part.startswith(_HIDDEN) for part in info.path[start:].split("/"))
    ]
    if not those:
        raise PlanError(f"source: {location}: no files there")
    yield from those


def _split(path: str) -> tuple[str, list[str]]:
    """Return the folder before the first wildcard, and the rest of a path."""
    parts = path.split("/")
    first = next((i for i, part in enumerate(parts) if _WILD.search(part)), len(parts))
    return "/".join(parts[:first]), parts[first:]


def _pattern(parts: Sequence[str]) -> re.Pattern[str]:
    """Return what a relative path must be like for some parts of a glob."""
    texts = []
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "**":
            texts.append(".*" if last else "(?:[^/]+/)*")
            continue
        text = re.sub(
            r"\*+|\?|\[!?[^\]]+\]|.",
            lambda found: _piece(found[0]),
            part,
            flags=re.DOTALL,
        )
        texts.append(text if last else text + "/")
    return re.compile("".join(texts), re.DOTALL)


def _piece(text: str) -> str:
    if text[0] == "*":
        return "[^/]*"
    if text == "?":
        return "[^/]"
    if text[0] == "[" and len(text) > 1:
        inner = text[1:-1]
        return f"[{'^' if inner[0] == '!' else ''}{inner.removeprefix('!')}]".replace("\\", "\\\\")
    return re.escape(text)


def _common(folders: Sequence[str]) -> str:
    """Return the folder that all folders are in."""
    split = [folder.split("/") for folder in folders]
    same = 0
    while all(len(each) > same and each[same] == split[0][same] for each in split):
        same += 1
    return "/".join(split[0][:same])


def _keys(path: str, base: str) -> dict[str, str | None]:
    """Return what the names of folders below a base say."""
    keys: dict[str, str | None] = {}
    for part in path[len(base) :].split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals and name:
            keys[unquote(name)] = None if value == _ABSENT else unquote(value)
    return keys


def key_types(files: Sequence[DatasetFile]) -> dict[str, pa.DataType]:
    """Return the type of each column that names of folders say: integers where all values are, else text."""
    types = {}
    for name in files[0].keys:
        values = [file.keys[name] for file in files]
        whole = all(value is None or _WHOLE.fullmatch(value) for value in values) and any(values)
        types[name] = pa.int64() if whole else pa.string()
    return types


def column_of_key(value: str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column that has one value in all rows."""
    scalar = None if value is None else int(value) if pa.types.is_integer(kind) else value
    return pa.repeat(pa.scalar(scalar, kind), rows)


# -- for questions, by pyarrow's own readers

_FORMS = {".csv": "csv", ".arrow": "ipc", ".feather": "ipc", ".arrows": "ipc"}


def dataset_of(locations: Sequence[str]) -> Any:
    """Return the `pyarrow.dataset.Dataset` of the files of a table; see `files_of`.

    Raises
    ------
    PlanError
        As `files_of`.
    DataError
        For files that cannot be read; no value is shown.
    """
    files = files_of(locations)
    name = re.sub(r"\.(gz|bz2|zst)$", "", files[0].path.lower())
    form = next((each for end, each in _FORMS.items() if name.endswith(end)), "parquet")
    types = key_types(files)
    try:
        whole = pa.dataset.dataset(
            [file.path for file in files], filesystem=files[0].filesystem, format=form
        ).schema
        for key, kind in types.items():
            place = whole.get_field_index(key)
            whole = whole.append(pa.field(key, kind)) if place < 0 else whole.set(place, pa.field(key, kind))
        return pa.dataset.FileSystemDataset.from_paths(
            [file.path for file in files],
            schema=whole,
            format=_format(form),
            filesystem=files[0].filesystem,
            partitions=[_expression(file.keys, types) for file in files],
        )
    except (pa.ArrowException, OSError):
        raise DataError(f"source: {files[0].name}: cannot be read, or is not a {form} file") from None


def _format(form: str) -> Any:

    forms = {
        "csv": pa.dataset.CsvFileFormat,
        "ipc": pa.dataset.IpcFileFormat,
        "parquet": pa.dataset.ParquetFileFormat,
    }
    return forms[form]()


def _expression(keys: Mapping[str, str | None], types: Mapping[str, pa.DataType]) -> Any:

    made = pa.dataset.scalar(True)
    for name, value in keys.items():
        own = pa.dataset.field(name)
        is_it = own.is_null() if value is None else own == column_of_key(value, types[name], 1)[0]
        made = is_it if made.equals(pa.dataset.scalar(True)) else made & is_it
    return made
