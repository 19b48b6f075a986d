"""Words that are looked for by their beginnings: integers of so many bits, or words of a public alphabet."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.arrays import first

__all__ = ["BitWords", "LetterWords", "Words", "letters_of", "planned"]

_FIRST, _STEP, _MOST_STEP = 12.0, 6.0, 20.0  # bits of the first beginnings, and by which they grow
_MOST_LETTERS = 1024

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Words(ABC):
    """Words of some units (bits or letters), and their beginnings.

    Beginnings are known to the reports by 64-bit keys, to the server as candidates, which it can lengthen.
    """

    units: int  # of a word
    symbols: int  # values of a unit

    def within(self, bits: float) -> int:
        """Return how many units have at most so many bits; at least 1."""
        return max(1, min(self.units, math.floor(bits / math.log2(self.symbols))))

    @abstractmethod
    def admit(self, name: str, x: Any) -> NDArray[Any]:
        """Return words, one a row, as they are worked on; an error names the argument, and no word."""

    @abstractmethod
    def beginnings(self, words: NDArray[Any], length: int) -> NDArray[np.uint64]:
        """Return the keys of the first units of words."""

    @abstractmethod
    def all(self, length: int) -> NDArray[Any]:
        """Return all candidates of so many units."""

    @abstractmethod
    def longer(self, candidates: NDArray[Any], step: int) -> NDArray[Any]:
        """Return the candidates that begin like those, with so many more units."""

    @abstractmethod
    def keys(self, candidates: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the keys of candidates."""

    @abstractmethod
    def labels(self, candidates: NDArray[Any]) -> NDArray[Any]:
        """Return candidates of all units as the words that they are."""

    @abstractmethod
    def ends(self) -> tuple[Any, Any]:
        """Return two words that differ from the first unit on."""


class BitWords(Words):
    """Integers of so many bits, the highest first.

    Parameters
    ----------
    bits : int
        1 to 64.
    """

    symbols = 2

    def __init__(self, bits: int) -> None:
        self.units = bits

    def admit(self, name: str, x: Any) -> NDArray[np.uint64]:
        """Return integers as 64 bits."""
        values = checks.plain(name, x)
        if values.dtype.kind == "S" and 8 * values.dtype.itemsize == self.units <= 64:
            padded = np.zeros((*values.shape, 8), np.uint8)
            padded[..., 8 - self.units // 8 :] = values[..., None].view(np.uint8).reshape(*values.shape, -1)
            return padded.view(">u8")[..., 0].astype(np.uint64)
        if values.dtype.kind not in "iub":
            raise TypeError(
                f"{name}: must be integers, or bytes of {self.units} bits each, not {values.dtype}"
            )
        wrong = values < 0 if values.dtype.kind == "i" else np.zeros(values.shape, np.bool_)
        words = values.astype(np.uint64)
        if self.units < 64:
            wrong = wrong | (words >> np.uint64(self.units) != 0)
        if wrong.any():
            raise ValueError(f"{name}: the integer at index {first(wrong)} is outside [0, 2**{self.units})")
        return words

    def beginnings(self, words: NDArray[Any], length: int) -> NDArray[np.uint64]:
        """Return the highest bits of words: themselves a key."""
        return words >> np.uint64(self.units - length)

    def all(self, length: int) -> NDArray[np.uint64]:
        """Return all integers of so many bits."""
        return np.arange(1 << length, dtype=np.uint64)

    def longer(self, candidates: NDArray[Any], step: int) -> NDArray[np.uint64]:
        """Return integers of so many more bits, in order."""
        more = (candidates[:, None] << np.uint64(step)) | np.arange(1 << step, dtype=np.uint64)
        return more.ravel()

    def keys(self, candidates: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the candidates."""
        return candidates

    def labels(self, candidates: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the candidates."""
        return candidates

    def ends(self) -> tuple[np.uint64, np.uint64]:
        """Return no bits and all bits."""
        return np.uint64(0), np.uint64((1 << self.units) - 1)


class LetterWords(Words):
    """Words of at most `length` letters of an alphabet; a shorter one is filled up with an end mark.

    Parameters
    ----------
    alphabet : str
        The letters, each once.
    length : int
        Letters of the longest word.
    """

    def __init__(self, alphabet: str, length: int) -> None:
        self.units, self.symbols = length, len(alphabet) + 1  # and the end
        points = np.array([ord(letter) for letter in alphabet], np.uint32)
        self._order = np.argsort(points)
        self._sorted = points[self._order]
        self._points = np.concatenate([np.zeros(1, np.uint32), points])

    def admit(self, name: str, x: Any) -> NDArray[np.uint16]:
        """Return the letters' numbers from 1, shape (..., units); 0 is the end."""
        values = checks.plain(name, x)
        if values.dtype.kind == "O" and all(isinstance(each, str) for each in values.ravel().tolist()):
            values = values.astype(np.str_)
        if values.dtype.kind != "U":
            raise TypeError(f"{name}: must be words, not {values.dtype}")
        letters = values.dtype.itemsize // 4
        points = np.ascontiguousarray(values)[..., None].view(np.uint32).reshape(*values.shape, letters)
        position = np.minimum(np.searchsorted(self._sorted, points), len(self._sorted) - 1)
        codes = np.where(points == 0, 0, self._order[position] + 1)
        wrong = (points != 0) & (self._sorted[position] != points)
        wrong[..., 1:] |= (points[..., :-1] == 0) & (points[..., 1:] != 0)  # NUL is no letter
        if letters > self.units:
            wrong[..., self.units :] |= points[..., self.units :] != 0
        bad = wrong.any(axis=-1)
        if bad.any():
            raise ValueError(
                f"{name}: the word at index {first(bad)} has other letters than the {len(self._sorted)} of "
                f"the alphabet, or more than {self.units}"
            )
        words = np.zeros((*values.shape, self.units), np.uint16)
        words[..., : min(letters, self.units)] = codes[..., : self.units]
        return words

    def beginnings(self, words: NDArray[Any], length: int) -> NDArray[np.uint64]:
        """Return the keys of the first letters."""
        return self.keys(words[..., :length])

    def all(self, length: int) -> NDArray[np.uint16]:
        """Return all words of at most so many letters."""
        return self.longer(np.zeros((1, 0), np.uint16), length)

    def longer(self, candidates: NDArray[Any], step: int) -> NDArray[np.uint16]:
        """Return each candidate with every next letter, or its end; after an end nothing else comes."""
        for _ in range(step):
            ended = candidates[:, -1] == 0 if candidates.shape[1] else np.zeros(len(candidates), np.bool_)
            going = candidates[~ended]
            begun = np.repeat(going, self.symbols, axis=0)
            letters = np.tile(np.arange(self.symbols, dtype=np.uint16), len(going))
            closed = np.pad(candidates[ended], ((0, 0), (0, 1)))
            candidates = np.concatenate([np.column_stack([begun, letters]), closed])
        return candidates

    def keys(self, candidates: NDArray[Any]) -> NDArray[np.uint64]:
        """Return keys that two beginnings share with a chance of 2**-64: each letter is mixed in."""
        keys = np.zeros(candidates.shape[:-1], np.uint64)
        for position in range(candidates.shape[-1]):
            keys = (keys + candidates[..., position] + np.uint64(1)) * _ODD
            keys ^= keys >> _SHIFT
        return keys

    def labels(self, candidates: NDArray[Any]) -> NDArray[np.str_]:
        """Return candidates as strings."""
        points = np.ascontiguousarray(self._points[candidates])
        return points.view(f"U{self.units}")[:, 0]

    def ends(self) -> tuple[str, str]:
        """Return two words of one letter, over and over."""
        return chr(self._points[1]) * self.units, chr(self._points[2]) * self.units


def letters_of(name: str, value: Any) -> str:
    """Return an alphabet: a string of 2 to 1024 letters, each once, without NUL."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: must be a str, not {type(value).__name__}")
    if not 2 <= len(value) <= _MOST_LETTERS or len(set(value)) < len(value) or "\0" in value:
        raise ValueError(f"{name}: must be 2 to {_MOST_LETTERS} letters, each once, none of them NUL")
    return value


def planned(
    bits: int | None, alphabet: str | None, length: int | None, step: int | None
) -> tuple[Words, int, tuple[int, ...]]:
    """Return the words, the units by which their beginnings grow, and the lengths of these, ascending.

    The first beginnings have at most 12 bits (or a letter), so that the server can list them all.

    Parameters
    ----------
    bits, alphabet, length, step
        As of `HeavyHitters`.

    Raises
    ------
    ValueError
        For parameters that do not go together, or a step of over 20 bits.
    """
    if (bits is None) == (alphabet is None):
        raise ValueError("bits: is for integers; words of an alphabet have a length")
    if (alphabet is None) != (length is None):
        needed = "is needed with an alphabet"
        raise ValueError(f"length: {needed if length is None else 'is for words of an alphabet'}")
    words = LetterWords(alphabet, length) if alphabet and length else BitWords(bits or 0)
    step = words.within(_STEP) if step is None else step
    if step > words.within(_MOST_STEP):
        raise ValueError(
            f"step: must be at most {words.within(_MOST_STEP)}, or the server would list too many words"
        )
    groups = 1 + math.ceil(max(0, words.units - words.within(_FIRST)) / step)
    lengths = tuple(max(1, words.units - step * left) for left in reversed(range(groups)))
    return words, step, lengths
