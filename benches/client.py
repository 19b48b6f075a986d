"""How long a client takes in C: one record with a fresh key, a document that is opened; the library's size.

    python benches/client.py
    python benches/client.py --record               # keep the figures

The library must be built before, as `make client-c` does. Times are the fastest of many short rounds, on one
thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from keep import cpu_name, keep

ROOT = Path(__file__).parents[1]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "client"
DOCUMENTS = ROOT / "tests" / "client" / "documents"
RECORDS = 500  # of a round


def measured(program: Path, document: Path) -> dict[str, float]:
    """Return the nanoseconds of opening a document and of one record, and the bytes of the document."""
    command = [str(program), str(document), str(RECORDS)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(result.stdout)
    return figures


def built(folder: Path) -> Path:
    """Return the program that measures, compiled with the shared library."""
    program = folder / "client"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'rust' / 'client' / 'include'}"]
    link = [f"-L{BUILT}", "-lbitldp_client", f"-Wl,-rpath,{BUILT.resolve()}"]
    source = str(ROOT / "benches" / "client.c")
    subprocess.run([os.environ.get("CC", "cc"), *flags, source, *link, "-o", str(program)], check=True)
    return program


def main() -> int:
    """Measure every document, and print and keep the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="keep the figures in benches/records")
    arguments = parser.parse_args()
    library = BUILT / "libbitldp_client.so"
    if not library.is_file():
        print("client: the library is not built; make client-c builds it", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        program = built(Path(folder))
        results = [
            {"document": path.stem, **measured(program, path)} for path in sorted(DOCUMENTS.glob("*.json"))
        ]
    stripped = library.stat().st_size
    print(f"the shared library, stripped: {stripped / 1e3:,.0f} kB")
    for each in results:
        opened, record = float(each["open_ns"]) / 1e6, float(each["record_ns"]) / 1e3
        print(
            f"{each['document']:>10}: {each['bytes']:,} bytes, open {opened:.3f} ms, a record {record:.2f} us"
        )
    if arguments.record:
        keep("client.jsonl", {"machine": {"cpu": cpu_name()}, "library_bytes": stripped, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
