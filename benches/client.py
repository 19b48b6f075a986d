"""How long a client takes in C and in Node: a record with a fresh key, opening; the size of what is shipped.

    python benches/client.py
    python benches/client.py --record               # keep the figures

The library must be built before, as `make client-c` does; `make wasm` builds the module, which is left out
without Node. Times are the fastest of many short rounds, on one thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from keep import cpu_name, keep

ROOT = Path(__file__).parents[1]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "client"
DOCUMENTS = ROOT / "tests" / "client" / "documents"
WEB = ROOT / "python" / "bitldp" / "client" / "web"
RECORDS = 500  # of a round


def measured(program: Path, document: Path) -> dict[str, float]:
    """Return the nanoseconds of opening a document and of one record, and the bytes of the document."""
    command = [str(program), str(document), str(RECORDS)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(result.stdout)
    return figures


def in_node() -> dict[str, float]:
    """Return the nanoseconds of one record in Node, by document; nothing without Node or the module."""
    node = shutil.which("node")
    if node is None or not (WEB / "bitldp.wasm").is_file():
        return {}
    command = [
        node,
        str(ROOT / "benches" / "client.mjs"),
        str(WEB),
        *map(str, sorted(DOCUMENTS.glob("*.json"))),
    ]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    times: dict[str, float] = json.loads(result.stdout)
    return times


def shipped(library: Path) -> dict[str, int]:
    """Return the bytes of the library, and of the module and its script, as they cross a wire, too."""
    sizes = {"library": library.stat().st_size}
    for path in (WEB / "bitldp.wasm", WEB / "bitldp.js"):
        if path.is_file():
            sizes[path.suffix[1:]] = path.stat().st_size
            sizes[f"{path.suffix[1:]}_gzip"] = len(gzip.compress(path.read_bytes(), 9))
    return sizes


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
        results: list[dict[str, object]] = [
            {"document": path.stem, **measured(program, path)} for path in sorted(DOCUMENTS.glob("*.json"))
        ]
    sizes, of_node = shipped(library), in_node()
    for name, size in sizes.items():
        print(f"{name:>10}: {size / 1e3:,.1f} kB")
    for each in results:
        opened, record = float(str(each["open_ns"])) / 1e6, float(str(each["record_ns"])) / 1e3
        node = ""
        if of_node:
            each["node_record_ns"] = of_node[str(each["document"])]
            node = f", in Node {of_node[str(each['document'])] / 1e3:.1f} us"
        c = f"{each['bytes']:,} bytes, open {opened:.3f} ms, a record {record:.2f} us"
        print(f"{each['document']:>10}: {c}{node}")
    if arguments.record:
        keep("client.jsonl", {"machine": {"cpu": cpu_name()}, "shipped_bytes": sizes, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
