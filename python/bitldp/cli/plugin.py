"""Parts for commands that join ``bitldp`` from another distribution.

Such a command is a function that Typer can read, named by an entry point of the group ``bitldp.commands``.
It does its work within `sentences`, which turns `UsageError`, `CommandError` and missing extras into one
sentence and an exit code, and prints tables by `print_whole` on a `wide_console`. Its class is `Once`, or the
one that its attribute ``command_class`` names.
"""

from __future__ import annotations

from bitldp.cli.catalogue import MOST_THREADS
from bitldp.cli.commands import Once, names
from bitldp.cli.docstrings import documented
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.screen import print_whole, sentences, wide_console

__all__ = [
    "MOST_THREADS",
    "CommandError",
    "Once",
    "UsageError",
    "documented",
    "names",
    "print_whole",
    "sentences",
    "wide_console",
]
