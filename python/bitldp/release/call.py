"""How a mechanism was called: keys, form of the reports, and where they go, checked once."""

from __future__ import annotations

from typing import Any, NamedTuple

from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys


class Call(NamedTuple):
    """The arguments of `randomize` but for the records, checked.

    Attributes
    ----------
    keys : list of bytes or None
        One for each stream that the release takes; None asks for a fresh one of the operating system.
    output : str
        The form of the reports.
    out : ndarray or None
        Where they go; the core checks that they fit.
    threads : int or None
        Number of threads; None leaves it to the core.
    first_chunk : int
        How many chunks of the keys' streams are skipped.
    """

    keys: list[bytes | None]
    output: str
    out: Any
    threads: int | None
    first_chunk: int

    def codes(self, keys: list[bytes | None]) -> Call:
        """Return the same call with other keys, asking for codes in a new array."""
        return Call(keys, "codes", None, self.threads, self.first_chunk)


# What a client calls: nothing was given, nothing is to be checked.
_FRESH = {output: Call([None, None, None], output, None, None, 0) for output in ("codes", "bits")}


def called(
    rng: RandomSource,
    output: Any,
    out: Any,
    threads: Any,
    first_chunk: Any,
    allowed: tuple[str, ...],
    streams: int,
) -> Call:
    """Return the arguments of `randomize` as a `Call`, or raise.

    Parameters
    ----------
    rng, output, out, threads, first_chunk
        As the caller gave them.
    allowed : tuple of str
        The forms that the mechanism's reports have, the usual one first.
    streams : int
        Keys that the release takes.

    Raises
    ------
    ValueError, TypeError
        For an argument out of its range; the message names it.
    """
    if rng is None and out is None and threads is None and first_chunk == 0 and output == allowed[0]:
        return _FRESH[allowed[0]]
    if not isinstance(output, str):
        raise TypeError(f"output: must be a str, not {type(output).__name__}")
    checks.choice("output", output, allowed)
    threads, first_chunk = checks.stream(threads, first_chunk)
    return Call(keys(rng, streams), output, out, threads, first_chunk)
