"""Checks a report from a shell: ``python -m bitldp.verify``, or this folder alone, ``python -I FOLDER``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

if not __package__:  # the folder alone: a package of its own, whose name is nobody else's
    from importlib.util import module_from_spec, spec_from_file_location

    _folder = Path(__file__).resolve().parent
    __package__ = "bitldp_verify"
    _spec = spec_from_file_location(
        __package__, _folder / "__init__.py", submodule_search_locations=[str(_folder)]
    )
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules[__package__] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[__package__])

from .findings import EXITS, FALSE, NOTE, PROVEN, UNPROVEN, verdict
from .report import verify

__all__ = ["main"]

_MARKS = {PROVEN: "ok   ", FALSE: "FALSE", UNPROVEN: "?    ", NOTE: "note "}
_VERDICTS = {PROVEN: "proven", FALSE: "FALSE", UNPROVEN: "CANNOT BE PROVEN from this report"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a report from a shell; 0 if it is proven, 1 if it is false, 3 if it cannot be proven."""
    parser = argparse.ArgumentParser(
        prog="bitldp verify", description="Rebuild the laws of a privacy report, and recompute its epsilon."
    )
    parser.add_argument("report", type=Path, help="OUTPUT.privacy.json")
    parser.add_argument("output", type=Path, nargs="?", help="The released file.")
    parser.add_argument(
        "--signed-by", type=Path, metavar="FILE", help="Public key, in PEM, of who signed it."
    )
    given = parser.parse_args(arguments)
    try:
        key = None if given.signed_by is None else given.signed_by.read_bytes()
    except OSError as error:
        print(f"error: --signed-by: {given.signed_by}: {error.strerror}", file=sys.stderr)
        return 2
    try:
        report: Any = json.loads(given.report.read_text(encoding="utf-8"), parse_constant=_no_number)
        findings = verify(report, given.output, key)
    except OSError as error:
        print(
            f"error: {error.filename or given.report}: {error.strerror or 'cannot be read'}", file=sys.stderr
        )
        return EXITS[FALSE]
    except (ValueError, RecursionError):
        print(
            f"error: {given.report}: is not a privacy report; give OUTPUT.privacy.json, which "
            "perturb wrote beside its output",
            file=sys.stderr,
        )
        return EXITS[FALSE]
    for each in findings:
        print(f"{_MARKS[each.verdict]} {each.sentence}")
    reached = verdict(findings)
    print(_VERDICTS[reached])
    return EXITS[reached]


def _no_number(text: str) -> NoReturn:
    """Refuse NaN and infinity, which no JSON has."""
    raise ValueError("a number of the report is not a number")


if __name__ == "__main__":
    raise SystemExit(main())
