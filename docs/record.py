"""Check the record of the papers' figures, from which the site draws them: ``make papers``.

    python docs/record.py [FOLDER]...  add what `bitldp paper` left in a FOLDER; take over the seconds, which
                                       `bitldp paper list` and the time left are computed from
    python docs/record.py --check      make again what needs no data, and compare

The record is filled by ``bitldp paper --record``: `bitldp_papers.figures.record` says with what.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import bitldp
from bitldp_papers.figures import FigureEntry, figures, make
from bitldp_papers.figures.record import OF_RECORDS, add, kept, plain, read
from bitldp_papers.figures.remaining import SECONDS, recorded

__all__ = ["OF_RECORDS", "RECORD", "again", "differences", "differs", "plain", "seconds"]

RECORD = Path(__file__).parents[1] / "benches" / "records" / "papers.json"

#: Figures of time, which no second run repeats.
OF_TIME = ("fedsel-2-e", "peers-")
#: What is the same in a second run.
AGAIN = ("compared", "summary", "panels")


def again(record: Mapping[str, Any], most: float = 60.0) -> Iterator[tuple[str, FigureEntry]]:
    """Yield what can be made again without data and in at most so many seconds."""
    for name, entry in figures().items():
        one = record["figures"].get(name, {})
        if not one.get("data") and one.get("seconds", math.inf) <= most and not name.startswith(OF_TIME):
            yield name, entry


def differences(name: str, entry: FigureEntry, record: Mapping[str, Any]) -> list[str]:
    """Make a figure again; return where its numbers are others than those that were kept."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        document = make(entry, Path(folder), form=record["figures"][name]["form"])
    if document["status"] != "done":
        return [f"{name}: {document['reason']}"]
    was, new = record["figures"][name], kept(document)
    some = [position for key in AGAIN for position in differs(was[key], new[key], f".{key}")]
    return [f"{name}{position}" for position in some]


def differs(was: Any, now: Any, position: str) -> Iterator[str]:
    """Yield where JSON values are others than those that were kept, numbers by more than 0.2 %."""
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        for key in was:
            yield from differs(was[key], now[key], f"{position}.{key}")
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for i, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differs(one, other, f"{position}[{i}]")
    elif isinstance(was, (int, float)) and isinstance(now, (int, float)):
        if not math.isclose(was, now, rel_tol=2e-3, abs_tol=1e-9):
            yield f"{position}: {was} was kept, {now} is so"
    elif was != now:
        yield f"{position}: is not what was kept"


def main(arguments: list[str]) -> int:
    """Take over the record's seconds, or check what it keeps; return 1 where that differs."""
    warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
    record = read(RECORD)
    if arguments == ["--check"]:
        wrong = [line for name, entry in again(record) for line in differences(name, entry, record)]
        print("\n".join(wrong[:20]) or "as kept")
        return bool(wrong)
    paths = (path for folder in arguments for path in sorted(Path(folder).glob("*/figure.json")))
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    for document in documents:
        add(RECORD, document)
    lines = (
        f" {json.dumps(name)}: {json.dumps(one)}" for name, one in seconds(read(RECORD), documents).items()
    )
    SECONDS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


def seconds(
    record: Mapping[str, Any], documents: Iterable[Mapping[str, Any]] = ()
) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of every figure by form: of itself, and of steps that it shares with others.

    They are the record's; of forms that the record has a longer one for, those of the documents of a folder.
    """
    result: dict[str, dict[str, list[float]]] = {name: dict(recorded(name)) for name in figures()}
    made = [(one["name"], one) for one in documents if one["status"] == "done"]
    for name, one in [*made, *record["figures"].items()]:
        if "seconds" in one and name in result:
            result[name][one["form"]] = [one["seconds"], one["borrowed"]]
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
