"""Reader of saved JSON, which refuses any other text by a ValueError."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["document"]


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


def _refused(word: str) -> NoReturn:
    raise ValueError(word)
