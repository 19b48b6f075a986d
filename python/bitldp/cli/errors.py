"""Errors that end a command with one sentence."""

from __future__ import annotations

__all__ = ["CommandError", "UsageError"]


class CommandError(Exception):
    """The command failed while it ran. The message is one sentence without a private value.

    Parameters
    ----------
    sentence : str
    code : int, optional
        The exit code: 1, or 128 and the number of a signal.
    """

    code = 1

    def __init__(self, sentence: str, code: int | None = None) -> None:
        super().__init__(sentence)
        self.code = self.code if code is None else code


class UsageError(CommandError):
    """The command line asks for something that cannot be (exit code 2)."""

    code = 2
