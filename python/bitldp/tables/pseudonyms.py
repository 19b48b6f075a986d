"""Pseudonyms of records, by which releases of the same people are joined: they link, and that is public."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bitldp.base.errors import DataError, PlanError
from bitldp.tables.frames import plain_column, worded

__all__ = ["LINKED", "checked_keep_as", "joined", "linked_name", "pseudonyms"]

#: What a pseudonym means for privacy.
LINKED = (
    "Reports of one person in all releases under this key are linked, for everybody: the epsilons of these "
    "releases add up."
)

_DIGITS = 32  # hexadecimal: 128 bits of HMAC-SHA256
_MODES = ("pseudonym",)


def checked_keep_as(keep_as: Mapping[str, str] | None) -> dict[str, str]:
    """Return in what form a column is kept that does not leave as it is.

    Raises
    ------
    PlanError
        For another form than a pseudonym, and for several columns.
    """
    made = dict(keep_as or {})
    if not all(isinstance(name, str) and mode in _MODES for name, mode in made.items()):
        raise PlanError('keep_as: must be {"COLUMN": "pseudonym"}, the column of the records\' ids')
    if len(made) > 1:
        raise PlanError("keep_as: one column has the records' ids")
    return made


def linked_name(column: str) -> str:
    """Return the name under which the pseudonyms of a column of ids are released."""
    return f"{column}_pseudonym"


def pseudonyms(column: Any, name: str, key: bytes) -> pa.Array:
    """Return the pseudonyms of ids: HMAC-SHA256 of each, of which 128 bits are kept, as text.

    Parameters
    ----------
    column : pyarrow.ChunkedArray or pyarrow.Array
        Integers, text or bytes, without gaps. An integer and its text are different ids.
    name : str
        Of the column.
    key : bytes
    """
    with worded([name]):
        found = plain_column(column)
        whole = pa.types.is_integer(found.type)
        ids = found.to_pylist() if whole else found.cast(pa.large_binary()).to_pylist()
    head = b"i" if whole else b"t"
    tagged = (b"%b%d" % (head, each) if whole else head + each for each in ids)
    return pa.array([hmac.digest(key, each, "sha256").hex()[:_DIGITS] for each in tagged], pa.string())


def joined(
    tables: Callable[[int, Sequence[str]], Iterable[pa.Table]],
    keys: Sequence[str],
    columns: Sequence[set[str]],
) -> Callable[[Sequence[str]], list[pa.Table]]:
    """Return what joins the columns of two releases that are needed, on their pseudonyms.

    Parameters
    ----------
    tables : callable
        Returns columns of the first (0) or the second release (1).
    keys : (str, str)
        The columns of pseudonyms.
    columns : (set of str, set of str)
        The released and kept columns of each.
    """

    def rows(names: Sequence[str]) -> list[pa.Table]:
        sides = []
        for number, (key, own) in enumerate(zip(keys, columns, strict=True)):
            wanted = [key, *(name for name in names if name in own and name != key)]
            parts = [part.replace_schema_metadata(None) for part in tables(number, wanted)]
            if not parts:
                return []
            side = pa.concat_tables(parts)
            if len(side.column(key).unique()) < side.num_rows or side.column(key).null_count:
                raise DataError(
                    f"column {key!r}: a pseudonym comes up twice, or is missing; each is joined once"
                )
            sides.append(side)
        one, other = sides
        made = one.join(other, keys=keys[0], right_keys=keys[1], join_type="inner", use_threads=False)
        return [made.select(list(names))]

    return rows
