"""Documents: saved JSON and arrays, checked when they are read; values as JSON and HTML have them."""

from __future__ import annotations

import html
import io
import json
import math
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrays", "document", "facts_table", "jsonable"]


def jsonable(value: Any) -> Any:
    """Return a value with its infinities replaced by ``"infinity"`` and ``"-infinity"``, NaN by None."""
    if isinstance(value, dict):
        return {name: jsonable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinity" if value > 0.0 else "-infinity"
    return value


def facts_table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return an HTML table of a name and a value a row; captions and names are escaped, values are HTML."""
    cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{value}</td></tr>" for name, value in rows)
    return f"<table><caption>{html.escape(caption)}</caption>{cells}</table>"


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
        raise ValueError("not an .npz file, or damaged") from None


def _refused(word: str) -> NoReturn:
    raise ValueError(word)
