"""Tables cut or joined to tables of as many rows as are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

__all__ = ["rebatch"]


def rebatch(pieces: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Cut or join tables into tables of exactly `rows` rows; the last may be shorter."""
    waiting: list[pa.Table] = []
    held = 0
    for piece in pieces:
        start = 0
        while held + piece.num_rows - start >= rows:
            yield pa.concat_tables([*waiting, piece.slice(start, rows - held)])
            start += rows - held
            waiting, held = [], 0
        if start < piece.num_rows:
            waiting.append(piece.slice(start))
            held += piece.num_rows - start
    if held:
        yield pa.concat_tables(waiting)
