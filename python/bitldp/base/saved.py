"""Readers of saved JSON and saved arrays, which refuse anything else by a ValueError."""

from __future__ import annotations

import io
import json
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrays", "document"]


def document(text: Any) -> Any:
    """Return the contents of a JSON text.

    Parameters
    ----------
    text : str
        The text.

    Raises
    ------
    TypeError
        If it is no str.
    ValueError
        If it is not JSON (NaN and Infinity are not), or is nested too deeply.
    """
    if not isinstance(text, str):
        raise TypeError(f"text: must be a str, not {type(text).__name__}")
    try:
        return json.loads(text, parse_constant=_refused)
    except RecursionError:
        raise ValueError("text: is nested too deeply") from None
    except ValueError:
        raise ValueError("text: is not JSON") from None


def arrays(raw: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz, by name.

    Parameters
    ----------
    raw : bytes
        Contents of the file.

    Raises
    ------
    ValueError
        If it is no npz, is damaged, or holds pickles.
    """
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception:  # a dozen of types: of zipfile and zlib for damage, of NumPy for a header that lies
        raise ValueError("no npz, or a damaged one") from None


def _refused(word: str) -> NoReturn:
    raise ValueError(word)
