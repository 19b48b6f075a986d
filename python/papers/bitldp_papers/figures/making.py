"""Making of a figure: its function is called, and CSV, JSON, SVG and PNG are written."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import bitldp
from bitldp.base.documents import jsonable
from bitldp.base.files import replacing

from bitldp_papers.figures.drawing import drawn
from bitldp_papers.figures.outcome import Outcome
from bitldp_papers.figures.registry import Entry
from bitldp_papers.figures.running import FigureRun, MissingData, Notice

__all__ = ["DOCUMENT", "made", "make"]

DOCUMENT, TABLE, PICTURE = "figure.json", "figure.csv", "figure"
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "jax", "flwr", "matplotlib")


def made(folder: Path, entry: Entry, *, quick: bool) -> dict[str, Any] | None:
    """Return the document of a figure that is there in the form asked for, or None."""
    try:
        found: dict[str, Any] = json.loads((folder / entry.name / DOCUMENT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found.get("status") == "done" and found.get("quick") == quick else None


def make(
    entry: Entry, folder: Path, *, quick: bool = False, resume: bool = False, notice: Notice | None = None
) -> dict[str, Any]:
    """Make one figure in ``folder/NAME``.

    Parameters
    ----------
    entry : Entry
    folder : path
        Of all figures.
    quick : bool
        Whether to make the short form.
    resume : bool
        Whether a figure that is there is left as it is, and one that was begun goes on after its last step.
    notice : callable, optional
        As of `FigureRun`.

    Returns
    -------
    dict
        What ``figure.json`` holds. Its "status" is "done", "skipped" (a data set is missing: "reason") or
        "failed" (the function raised: "reason").
    """
    if resume and (found := made(folder, entry, quick=quick)) is not None:
        return found
    own = folder / entry.name
    if not resume:
        shutil.rmtree(own / "steps", ignore_errors=True)
    own.mkdir(parents=True, exist_ok=True)
    run = FigureRun(own, quick=quick, notice=notice)
    begun = time.perf_counter()
    document: dict[str, Any] = {
        "name": entry.name,
        "paper": entry.paper,
        "source": entry.source,
        "title": entry.title,
        "claim": entry.claim,
        "quick": quick,
    }
    outcome, how = _called(entry, run)
    document |= how
    if outcome is not None:
        document |= outcome.document()
        _write(own / TABLE, _csv(outcome).encode())
        for form, picture in drawn(outcome, entry.title).items():
            _write(own / f"{PICTURE}.{form}", picture)
    document |= {
        "seeds": list(run.seeds),
        "data": run.checksums,
        "versions": _versions(),
        "seconds": round(time.perf_counter() - begun, 3),
    }
    text = json.dumps(jsonable(_plain(document)), indent=1, allow_nan=False)
    _write(own / DOCUMENT, f"{text}\n".encode())
    kept: dict[str, Any] = json.loads(text)
    return kept


def _called(entry: Entry, run: FigureRun) -> tuple[Outcome | None, dict[str, str]]:
    """Return the outcome, and how it ended."""
    try:
        return entry.make(run), {"status": "done"}
    except MissingData as missing:
        return None, {"status": "skipped", "reason": str(missing)}
    except Exception as error:  # one figure that fails leaves the others
        return None, {"status": "failed", "reason": f"{type(error).__name__}: {error}"}


def _csv(outcome: Outcome) -> str:
    columns = list(dict.fromkeys(name for row in outcome.rows for name in row))
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(outcome.rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """Return a value with numbers of NumPy as Python's."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.item() if hasattr(value, "item") else value


def _versions() -> dict[str, str]:
    found = {"bitldp": bitldp.__version__, "python": python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)
