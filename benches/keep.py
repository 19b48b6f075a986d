"""Run a check that takes long and, where it passes, keep what it says of itself in `records`.

    python benches/keep.py asan -- cargo test -p bitldp-core
    python benches/keep.py race -- pytest -q tests/law/channels/test_race.py

A line of `records/checks.jsonl` has the date, the machine, the command, its seconds, how many tests passed,
and the cases of what it fuzzed. A check that fails keeps nothing and gives its status.
"""

from __future__ import annotations

import datetime
import json
import platform
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

RECORDS = Path(__file__).parent / "records"

PASSED = re.compile(r"(\d+) passed")
FUZZED = re.compile(r"fuzzed (.+): (\d+) cases, (\d+) answered")


def cpu_name() -> str:
    """Return the processor's name, as the system knows it."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return " ".join(value.split())
    return platform.processor() or platform.machine()


def keep(file: str, figures: dict[str, object]) -> None:
    """Append a dated line to a file of records."""
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    with (RECORDS / file).open("a") as records:
        records.write(json.dumps({"date": date, **figures}) + "\n")


def main(name: str, command: list[str]) -> int:
    """Run the command, showing its output; keep its figures where it ends with 0."""
    start = time.perf_counter()
    passed, fuzzed = 0, {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            passed += sum(map(int, PASSED.findall(line)))
            for what, cases, answered in FUZZED.findall(line):
                fuzzed[what] = {"cases": int(cases), "answered": int(answered)}
    if process.returncode == 0:
        seconds = round(time.perf_counter() - start, 1)
        figures = {"passed": passed, "fuzzed": fuzzed} if fuzzed else {"passed": passed}
        machine = {"cpu": cpu_name(), "system": platform.platform(terse=True)}
        keep(
            "checks.jsonl",
            {"name": name, "command": shlex.join(command), "machine": machine, "seconds": seconds, **figures},
        )
    return process.returncode


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[2] != "--":
        sys.exit("usage: keep.py NAME -- COMMAND ...")
    sys.exit(main(sys.argv[1], sys.argv[3:]))
