"""Making of a figure: its function is called, and CSV, JSON, SVG and PNG are written."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import bitldp
from bitldp.base.documents import jsonable
from bitldp.base.files import replacing

from bitldp_papers.data import Dataset
from bitldp_papers.figures.drawing import drawn
from bitldp_papers.figures.points import points
from bitldp_papers.figures.registry import FigureEntry
from bitldp_papers.figures.result import FigureResult
from bitldp_papers.figures.running import FORMS, FigureRun, MissingData, Notice

__all__ = ["DOCUMENT", "heading", "made", "make"]

DOCUMENT, TABLE, PICTURE = "figure.json", "figure.csv", "figure"
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "jax", "flwr", "matplotlib")


def made(
    folder: Path,
    entry: FigureEntry,
    *,
    form: str,
    seeds: Sequence[int] | None = None,
    given: tuple[str, Dataset] | None = None,
) -> dict[str, Any] | None:
    """Return the document of a figure that is there in the form and with the seeds asked for, or None."""
    wanted = form, list(seeds or range(1, FORMS[form] + 1))
    try:
        known: dict[str, Any] = json.loads((folder / entry.name / DOCUMENT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    same = (known.get("form"), known.get("asked")) == wanted and known.get("given") == _named(given)
    return known if known.get("status") == "done" and same else None


def _named(given: tuple[str, Dataset] | None) -> str | None:
    return given and "=".join(filter(None, (given[0], given[1].name)))


def make(
    entry: FigureEntry,
    folder: Path,
    *,
    form: str = "full",
    seeds: Sequence[int] | None = None,
    resume: bool = False,
    notice: Notice | None = None,
    given: tuple[str, Dataset] | None = None,
) -> dict[str, Any]:
    """Make one figure in ``folder/NAME``.

    Parameters
    ----------
    entry : FigureEntry
    folder : path
        Of all figures.
    form : str
        "quick", "medium" or "full".
    seeds : sequence of int, optional
        By default 1, 2, ..., as many as the form has.
    resume : bool
        Whether a figure that is there is left as it is, and one that was begun goes on after its last step.
    notice : callable, optional
        ``notice(label, done, total)`` shows progress.
    given : (str, Dataset), optional
        The name of a data set of the figures, and what takes its place.

    Returns
    -------
    dict
        What ``figure.json`` holds. Its "status" is "done", "skipped" (a data set is missing: "reason") or
        "failed" (the function raised: "reason").
    """
    if resume and (known := made(folder, entry, form=form, seeds=seeds, given=given)) is not None:
        return known
    own = folder / entry.name
    if not resume:
        shutil.rmtree(own / "steps", ignore_errors=True)
    own.mkdir(parents=True, exist_ok=True)
    run = FigureRun(own, form=form, seeds=seeds, notice=notice, given=given)
    begun = time.perf_counter()
    document = heading(entry, form=form, seeds=run.given_seeds, given=given)
    try:
        result, how = _called(entry, run)
    finally:
        run.close()
    document |= how
    if result is not None:
        document |= {**result.document(), "panels": points(result.draw)}
        if given is not None:
            document["stand_in"] = f"{given[1].name} instead of {run.stood_for[0]}"
        _write(own / TABLE, _csv(result).encode())
        for kind, picture in drawn(result, entry.title).items():
            _write(own / f"{PICTURE}.{kind}", picture)
    document |= {
        "seeds": run.used.pop("", []),
        "fewer": run.used,
        "data": run.checksums,
        "versions": _versions(),
        "seconds": round(time.perf_counter() - begun + run.spent, 3),
        "borrowed": round(run.borrowed, 3),
    }
    text = json.dumps(jsonable(_plain(document)), indent=1, allow_nan=False)
    _write(own / DOCUMENT, f"{text}\n".encode())
    kept: dict[str, Any] = json.loads(text)
    return kept


def heading(
    entry: FigureEntry,
    *,
    form: str,
    seeds: Sequence[int],
    given: tuple[str, Dataset] | None,
    **_: Any,
) -> dict[str, Any]:
    """Return the beginning of a figure's document: what it is, and what was asked for."""
    return {
        "name": entry.name,
        "paper": entry.paper,
        "source": entry.source,
        "title": entry.title,
        "claim": entry.claim,
        "form": form,
        "asked": list(seeds),
        **({} if given is None else {"given": _named(given)}),
    }


def _called(entry: FigureEntry, run: FigureRun) -> tuple[FigureResult | None, dict[str, str]]:
    """Return the result, and how it ended."""
    try:
        result = entry.make(run)
        if run.given is not None and not run.stood_for:
            raise MissingData("reads no set that the file of --data stands for")
        return result, {"status": "done"}
    except MissingData as missing:
        return None, {"status": "skipped", "reason": str(missing)}
    except Exception as error:  # one figure that fails leaves the others
        return None, {"status": "failed", "reason": f"{type(error).__name__}: {error}"}


def _csv(result: FigureResult) -> str:
    columns = list(dict.fromkeys(name for row in result.rows for name in row))
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(result.rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """Return a value with numbers of NumPy as Python's."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.item() if hasattr(value, "item") else value


def _versions() -> dict[str, str]:
    versions = {"bitldp": bitldp.__version__, "python": python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)
