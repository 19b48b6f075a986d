"""The page of all figures: ``report.html``, self-contained."""

from __future__ import annotations

import html
import json
from pathlib import Path

from bitldp.base.files import replacing

__all__ = ["write_page"]


def write_page(folder: Path) -> Path:
    """Write ``report.html`` of the figures in a folder, and return its path."""
    parts = []
    for path in sorted(folder.glob("*/figure.json")):
        each = json.loads(path.read_text(encoding="utf-8"))
        picture = path.with_suffix(".svg")
        drawn = picture.read_text(encoding="utf-8") if picture.exists() else ""
        parts.append(
            f"<h2>{html.escape(each['title'])}</h2><p>{html.escape(each.get('verdict', ''))}</p>{drawn}"
        )
    page = folder / "report.html"
    with replacing(page) as file:
        file.write(b"<!doctype html><meta charset=utf-8>" + "\n".join(parts).encode())
    return page
