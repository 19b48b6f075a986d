"""Inputs of many files: a folder, a glob, several paths or a remote file, read one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bitldp.base.errors import DataError, PlanError
from bitldp.cli.commands import FileFormat, form_of
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.perturb.outputs import Unchanged
from bitldp.cli.perturb.table_files import InputSource, TableReader, open_reader, opened, spooled
from bitldp.tables.dataset import DatasetFile, column_of_key, files_of, key_types
from bitldp.tables.frames import plain_type

__all__ = ["FileReader", "Inputs", "ManyReader", "located", "reader_of"]


class Inputs:
    """The files of one table, all of one form.

    Parameters
    ----------
    locations : sequence of str
        As `bitldp.tables.dataset.files_of` takes them.
    named : str or None
        Form of all files, where it is named.
    delimiter : str or None
        Of text.
    skip_blanks : bool
        Whether blanks after a delimiter are no part of a field.

    Raises
    ------
    UsageError
        If there are none, or they are of several forms.

    Attributes
    ----------
    files : list of DatasetFile
    form : FileFormat
        That of the first file.
    keys : dict of str to pyarrow.DataType
        Columns that names of folders say.
    types : dict of str to pyarrow.DataType
        Type of each column that `survey` looked at, in all files.
    """

    def __init__(
        self,
        locations: Sequence[str],
        named: str | None,
        delimiter: str | None,
        *,
        skip_blanks: bool = False,
    ) -> None:
        try:
            self.files = files_of(locations)
        except PlanError as error:
            raise UsageError(str(error).removeprefix("source: ")) from None
        except OSError as error:
            problem = error.strerror or "cannot be reached"
            raise CommandError(f"{' '.join(locations[:2])}: {problem}") from None
        forms = [form_of(Path(file.path), named, "--from", delimiter) for file in self.files]
        self._forms = [replace(form, skip_blanks=skip_blanks) for form in forms]
        self.form: FileFormat = self._forms[0]
        for file, form in zip(self.files, self._forms, strict=True):
            if form.kind == "npy":
                raise UsageError(f"{file.name}: an array is perturbed by itself; tables may be many files")
            if form.kind != self.form.kind:
                raise UsageError(
                    f"{file.name}: is of another form than {self.files[0].name}; name one by a glob"
                )
        #: The first location.
        self.folder = Path(locations[0])
        self.keys = key_types(self.files)
        self.types: dict[str, pa.DataType] = {}
        self._digests: dict[str, str] = {}
        self._unchanged = {file.path: Unchanged(file.local) for file in self.files if file.local is not None}

    def __str__(self) -> str:
        """Return the name that errors call them by."""
        count = len(self.files)
        return self.files[0].name if count == 1 else f"{self.files[0].name} and {count - 1} more"

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @contextmanager
    def opened(self, file: DatasetFile) -> Iterator[InputSource]:
        """Open one file; a remote one is read into a file without a name first, as a pipe is.

        Raises
        ------
        CommandError
            For a file that is not as it was when it was first looked at.
        """
        form = self._forms[self.files.index(file)]
        if file.local is not None:
            with opened(file.local, form) as source:
                yield InputSource(source.path, form, file.name)
            return
        try:
            stream = file.filesystem.open_input_stream(file.path, compression=None)
        except OSError:
            raise CommandError(f"{file.name}: cannot be read from where it is") from None
        with ExitStack() as stack:
            try:
                copy = stack.enter_context(spooled(stream))
            except OSError as error:
                if error.errno is not None:
                    raise
                raise CommandError(f"{file.name}: cannot be read from where it is") from None
            yield InputSource(copy, form, file.name)

    def open(self, source: InputSource, file: DatasetFile) -> FileReader:
        """Return the reader of one file that is open."""
        return FileReader(open_reader(source), file, self)

    @property
    def names(self) -> list[str]:
        """The columns of the first file, and those that names of folders say."""
        with self.opened(self.files[0]) as source:
            return self.open(source, self.files[0]).names

    def survey(self, columns: Sequence[str], digest: Callable[[Iterator[bytes]], str] | None = None) -> None:
        """Look at the columns of all files, and keep a digest of each file where one is asked for.

        Raises
        ------
        UsageError
            For a file without one of the columns, or with one of another type than the files before it.
        """
        for file in self.files:
            with self.opened(file) as source:
                reader = self.open(source, file)
                for name in columns:
                    if reader.names.count(name) != 1:
                        problem = "has several columns" if name in reader.names else "has no column"
                        raise UsageError(f"{file.name}: {problem} {name!r}")
                with closing(reader.plain([name for name in columns if name not in self.keys])) as tables:
                    self._keep(next(tables).schema, file)
                if digest is not None:
                    self._digests[file.path] = digest(source.blocks())
        self.types |= {name: self.keys[name] for name in columns if name in self.keys}

    def digest(self, of: Callable[[Iterator[bytes]], str]) -> str:
        """Return a digest of what the survey saw: of each file, and of what names of folders say of it."""
        seen = [[self._digests[file.path], list(file.keys.items())] for file in self.files]
        return of(iter([json.dumps(seen).encode()]))

    def _keep(self, schema: pa.Schema, file: DatasetFile) -> None:
        for field in schema:
            own, known = plain_type(field.type), self.types.get(field.name, pa.null())
            if known == pa.null() or field.type == known:
                self.types[field.name] = field.type
            elif own == plain_type(known):
                self.types[field.name] = own
            elif own != pa.null():
                raise UsageError(
                    f"{file.name}: column {field.name!r} holds {own}, and {plain_type(known)} in the files "
                    "before it"
                )

    def check(self, source: InputSource, file: DatasetFile, digest: Callable[[Iterator[bytes]], str]) -> None:
        """Refuse a file whose contents are not those that the survey saw.

        Raises
        ------
        CommandError
        """
        if (
            file.path in self._digests
            and file.local is None
            and digest(source.blocks()) != self._digests[file.path]
        ):
            raise CommandError(f"{file.name}: changed while it was being read")

    def unchanged(self) -> _AllUnchanged:
        """Return the state of the files, to tell later whether one changed."""
        return _AllUnchanged(list(self._unchanged.values()))

    def of(self, file: DatasetFile) -> Unchanged | None:
        """Return the state of one file; None of a remote one."""
        return self._unchanged.get(file.path)


class _AllUnchanged:
    """State of some files; see `Unchanged`."""

    def __init__(self, those: Sequence[Unchanged]) -> None:
        self._those = those

    def __enter__(self) -> None:
        """Begin to read."""

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        for each in self._those:
            each.__exit__(kind, *rest)


class FileReader:
    """One of several files: its own columns, those that names of folders say, and the types of all files."""

    def __init__(self, reader: TableReader, file: DatasetFile, inputs: Inputs) -> None:
        self._reader, self._file, self._inputs = reader, file, inputs
        #: The columns; what a name of a folder says is so, whatever the file has under that name.
        self.names = [*(name for name in reader.names if name not in inputs.keys), *inputs.keys]
        self.total = reader.total

    def position(self) -> int:
        """Return how much of `total` has been read."""
        return self._reader.position()

    def plain(self, columns: Sequence[str]) -> Generator[pa.Table, None, None]:
        """Yield the file's own columns as they are."""
        yield from self._reader.batches(columns, 1)

    def batches(self, columns: Sequence[str], rows: int) -> Generator[pa.Table, None, None]:
        """Yield an empty table that shows the types, then the columns in pieces of `rows` rows."""
        keys, types = self._inputs.keys, self._inputs.types
        own = [name for name in columns if name not in keys]
        with closing(self._reader.batches(own, rows)) as tables:
            for table in tables:
                made = {}
                for name in columns:
                    if name in keys:
                        value = self._file.keys[name]
                        made[name] = pa.chunked_array([column_of_key(value, keys[name], table.num_rows)])
                        continue
                    column, wanted = table.column(name), types.get(name)
                    made[name] = column if wanted in (None, column.type) else column.cast(wanted)
                yield pa.table(made)


class ManyReader:
    """Several files as one table; see `TableReader`. Rows have the numbers that they have in their files."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.names, self.total = inputs.names, max(1, inputs.size)
        self._done = self._before = self._rows = 0
        self._file = inputs.files[0]

    def position(self) -> int:
        """Return how many bytes of all files have been read, about."""
        return self._done

    def batches(self, columns: Sequence[str], rows: int) -> Generator[pa.Table, None, None]:
        """Yield an empty table that shows the types, then the columns in pieces of at most `rows` rows."""
        for number, file in enumerate(self._inputs.files):
            self._file, self._before = file, self._rows
            with self._inputs.opened(file) as source:
                reader = self._inputs.open(source, file)
                with closing(reader.batches(columns, rows)) as tables:
                    for place, table in enumerate(tables):
                        if number and not place:
                            continue
                        self._rows += table.num_rows
                        yield table
            self._done += file.size

    def released(self, release: Callable[[pa.Table, int], pa.Table]) -> Callable[[pa.Table, int], pa.Table]:
        """Return a release of rows by their numbers in all files, which names the file in an error."""

        def own(rows: pa.Table, first: int) -> pa.Table:
            return located(self._file, lambda: release(rows, first - self._before))

        return own


def reader_of(source: InputSource | Inputs) -> TableReader:
    """Return the reader of one file, or of many."""
    return ManyReader(source) if isinstance(source, Inputs) else open_reader(source)


def located(file: DatasetFile, call: Callable[[], Any]) -> Any:
    """Return what a call does; where it refuses a value, name the file."""
    try:
        return call()
    except DataError as error:
        raise DataError(f"{file.name}: {error}") from None
