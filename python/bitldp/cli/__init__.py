"""The ``bitldp`` command: checks what it needs, then hands over."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from types import FrameType

from bitldp._core import __version__
from bitldp.base.early import is_importing, leave
from bitldp.base.errors import MissingExtraError, require

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments without the program's name; those of the process by default.

    Raises
    ------
    SystemExit
        Always: 0 success, 1 the run failed, 2 the command line is wrong, 130 Ctrl-C.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:  # needs no library
        print(f"bitldp {__version__}")
        raise SystemExit(0)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) in (
        signal.default_int_handler,
        leave,
    ):
        signal.signal(signal.SIGINT, _leave)
    try:
        require("the command line", ["typer", "rich", "pyarrow"], "cli")
    except MissingExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    with warnings.catch_warnings():
        # Flower holds typer at a version that imports what click 8.5 warns of.
        warnings.simplefilter("ignore", DeprecationWarning)
        import typer  # noqa: F401
    from bitldp.cli.program import app

    app(args=given, prog_name="bitldp")


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once, without a traceback, wherever Ctrl-C finds the program."""
    if is_importing(frame):
        leave(number, frame)
    print("error: interrupted", file=sys.stderr)
    raise SystemExit(128 + number)
