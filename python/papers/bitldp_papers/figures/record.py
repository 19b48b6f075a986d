"""The record of the figures: of each the numbers that were compared, what was found, and points of its lines.

It is one JSON file, a figure a line, and has no data of anybody in it. `bitldp paper --record FILE` adds each
figure as it ends; the site draws its pages from such a file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from bitldp.base.documents import jsonable
from bitldp.base.files import replacing

from bitldp_papers.figures.registry import order_of
from bitldp_papers.figures.running import FORMS

__all__ = ["OF_RECORDS", "add", "kept", "plain", "read"]

#: Drawings that would hand on records of a data set: where people have been.
OF_RECORDS = ("brr-6",)
_ALWAYS = ("title", "source", "claim", "form")
_MADE = (
    *("summary", "findings", "verdict", "honest", "stand_in", "compared"),
    *("seconds", "borrowed", "seeds", "fewer"),
)


def kept(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a figure's document: numbers rounded to four digits, and no records."""
    head = {key: document[key] for key in _ALWAYS} | {"date": date.today().isoformat()}
    if document["status"] != "done":
        return head | {"reason": document["reason"]}
    name = document["name"]
    panels = [] if name in OF_RECORDS else document["panels"]
    result = head | {key: document[key] for key in _MADE} | {"data": sorted(document["data"])}
    if (not panels and name not in OF_RECORDS) or document["paper"] == "attack":
        result["rows"] = document["rows"]
    return {**plain(result), "panels": plain(panels)}


def read(path: Path) -> dict[str, Any]:
    """Return a record; an empty one where the file is not there."""
    if not path.exists():
        return {"date": "", "versions": {}, "figures": {}}
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def add(path: Path, document: Mapping[str, Any]) -> bool:
    """Put a figure into the record of a file, and tell whether it is there now.

    A shorter form does not replace a longer one, nor does a figure that was not made replace one that was. A
    figure of a user's own data is not kept.
    """
    record = read(path)
    figures, name = record["figures"], document["name"]
    before = figures.get(name, {})
    longer = list(FORMS).index(document["form"]) >= list(FORMS).index(before.get("form", "quick"))
    made = document["status"] == "done"
    if document.get("given") or (before and not (longer and (made or "reason" in before))):
        return False
    one = kept(document)
    if {**one, "date": ""} == {**before, "date": ""}:
        return True  # it keeps its date
    figures[name] = one
    record["date"] = max(each["date"] for each in figures.values())
    record["versions"] = document["versions"]
    record["figures"] = {each: figures[each] for each in sorted(figures, key=order_of)}
    _write(path, record)
    return True


def _write(path: Path, record: Mapping[str, Any]) -> None:
    lines = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(one, ensure_ascii=False, separators=(',', ':'))}"
        for name, one in record["figures"].items()
    )
    head = json.dumps({key: value for key, value in record.items() if key != "figures"})[1:-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(f'{{{head},\n"figures": {{\n{lines}\n}}}}\n'.encode())


def plain(value: Any) -> Any:
    """Return JSON values, numbers rounded to four digits."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.4g}") if abs(value) < 1e4 else round(value)
    return jsonable(value)
