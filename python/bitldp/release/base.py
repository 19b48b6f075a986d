"""A codec, a channel and letters as one thing: what releases one number or symbol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, KeyedRandomness
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.base.keys import RandomSource, keys
from bitldp.letters.spread import Spread
from bitldp.privacy import ONE

Interval = tuple[float, float]

Source: TypeAlias = bytes | KeyedRandomness | None
"""Where one stream of a call comes from: a key, keyed randomness, or a fresh key of the operating system."""


class Call(NamedTuple):
    """The arguments of `randomize` but for the records, checked.

    Attributes
    ----------
    keys : list of bytes, KeyedRandomness or None
        One for each stream that the release takes; None asks for a fresh one of the operating system. Where
        one is keyed randomness, all are, each a stage of it.
    output : str
        The form of the reports.
    out : ndarray or None
        Where they go; the core checks that they fit.
    threads : int or None
        Number of threads; None leaves it to the core.
    first_chunk : int
        How many chunks of the keys' streams are skipped.
    """

    keys: Sequence[Source]
    output: str
    out: Any
    threads: int | None
    first_chunk: int

    def codes(self, keys: Sequence[Source]) -> Call:
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


class Direct(NamedTuple):
    """A call of the core that releases records with fresh keys, and nothing else.

    Attributes
    ----------
    core : callable
        The channel's own method.
    rest : tuple
        Its arguments after the records.
    form : str
        The form of its reports.
    flat : int
        Axes of an array each entry of which is a record: 1 where a record is one number; else 0, for none.
    last : tuple of int
        The last axis of other arrays of records: as many as a record has columns.
    """

    core: Callable[..., NDArray[Any]]
    rest: tuple[Any, ...]
    form: str
    flat: int
    last: tuple[int]

    @classmethod
    def of(cls, core: Callable[..., NDArray[Any]], rest: tuple[Any, ...], form: str, columns: int) -> Direct:
        """Return the call for records of so many columns."""
        return cls(core, rest, form, int(columns == 1), (columns,))


@dataclass(frozen=True, eq=False)
class Release:
    """A codec, a channel and letters: what releases one number, or one symbol of an alphabet.

    Attributes
    ----------
    channel
        The channel: a `Window`, `Matrix` or `Shift`; its subclasses have others.
    epsilon : float
        Exact epsilon between any two inputs; where it is 0, reports are uninformative.
    alphabet : int
        How many codes a report can be.
    codec : Grid or None
        Places numbers; None where the inputs are codes.
    points : ndarray of float64, or None
        The points of the interval that a number is dithered to, ascending.
    letters : ndarray of float64, shape (alphabet,), or None
        Decoded value of every code of a report; None where a report stands for itself, or is uninformative.
    spread : Spread or None
        Variance of the letters; None without letters.
    """

    channel: Any
    epsilon: float
    alphabet: int
    codec: Grid | None = None
    points: NDArray[np.float64] | None = None
    letters: NDArray[np.float64] | None = None
    spread: Spread | None = None

    streams: ClassVar[int] = 1  # keys that a call needs
    whole: ClassVar[bool] = False  # whether one release is about all numbers of a record together
    straight: ClassVar[bool] = True  # whether values go into the channel as they are, all in one call

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return (self.alphabet - 1).bit_length()

    @property
    def channels(self) -> tuple[Any, ...]:
        """The channels behind it; more than one where a random bit chooses between them."""
        return (self.channel,)

    @property
    def laws(self) -> tuple[Any, ...]:
        """The law of one release, as a channel; none where it is uninformative."""
        return () if self.epsilon == 0.0 else (self.channel,)

    @property
    def grids(self) -> tuple[Grid | None, Grid | None]:
        """The grid that places numbers, and the one of a second channel, where there are two."""
        return self.codec, None

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        """Release values of any shape, each by itself."""
        return self.channel.randomize(
            x, self.codec, self.letters, call.keys[0], call.output, call.out, call.threads, call.first_chunk
        )

    def direct(self, columns: int) -> Direct | None:
        """Return the core's call that releases codes with fresh keys; None where it takes more than that."""
        if self.epsilon == 0.0 or type(self).randomize is not Release.randomize:
            return None
        rest = (self.codec, None, None, "codes", None, None, 0)  # codes need no letters
        return Direct.of(self.channel.randomize, rest, "codes", columns)

    def probabilities(self) -> NDArray[np.float64]:
        """Return P(code | input), one row for each of the points or input codes."""
        return self.channel.probabilities()

    def row(self, x: int) -> NDArray[np.float64]:
        """Return P(code | input) for one input code."""
        weights = self.channel.weights()[x]
        return np.array([weight / ONE for weight in weights])


def equidistant(interval: Interval, count: int) -> NDArray[np.float64]:
    """Return `count` points of an interval, both ends among them and exact; read-only."""
    shares = np.arange(count) / (count - 1)
    return readonly(interval[0] * (1.0 - shares) + interval[1] * shares)
