"""Tables of names and values for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable

__all__ = ["facts_table"]


def facts_table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return an HTML table of a name and a value a row; captions and names are escaped, values are HTML."""
    cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{value}</td></tr>" for name, value in rows)
    return f"<table><caption>{html.escape(caption)}</caption>{cells}</table>"
