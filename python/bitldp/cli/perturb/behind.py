"""A writer at work behind the run: while one batch is written, the next is read and randomized."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitldp.cli.perturb.tables import TableWriter

__all__ = ["Behind"]


class Behind:
    """Writes in a thread of its own, one table at a time: two are held at most.

    Parameters
    ----------
    writer : TableWriter
    """

    def __init__(self, writer: TableWriter) -> None:
        self._writer = writer
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bitldp-write")
        self._going: Future[None] | None = None

    def write(self, table: Any) -> None:
        """Begin to append a table; raise what went wrong with the one before."""
        self._wait()
        self._going = self._thread.submit(self._writer.write, table)

    def _wait(self) -> None:
        going, self._going = self._going, None
        if going is not None:
            going.result()

    def close(self) -> None:
        """Finish what was begun, and write the end."""
        try:
            self._wait()
        finally:
            self._thread.shutdown()
            self._writer.close()
