"""How long a client takes in C and in Node: opening, a record, a value of many; the size of what is shipped.

    python benches/client.py
    python benches/client.py --record               # keep the figures

`make bench-client` builds the library and the module before; without a module, Node is left out. C is timed
on the machine's vector unit and in plain code, too. Times are the fastest of many short rounds, on one
thread.
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
RECORDS = 500  # of a round, one call each
VALUES = 100_000  # of a round in one call, about
Times = dict[str, dict[str, float]]


def in_c(program: Path, isa: str = "") -> Times:
    """Return the nanoseconds of each document in C, on an instruction set or on the best one."""
    times: Times = {}
    for path in sorted(DOCUMENTS.glob("*.json")):
        batch = -(-VALUES // columns(path))
        result = subprocess.run(
            [str(program), str(path), str(RECORDS), str(batch)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"BITLDP_ISA": isa},
        )
        times[path.stem] = json.loads(result.stdout)
    return times


def in_node() -> Times:
    """Return the nanoseconds of each document in Node; nothing without Node or the module."""
    node = shutil.which("node")
    if node is None or not (WEB / "bitldp.wasm").is_file():
        return {}
    documents = map(str, sorted(DOCUMENTS.glob("*.json")))
    command = [node, str(ROOT / "benches" / "client.mjs"), str(WEB), str(VALUES), *documents]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    times: Times = json.loads(result.stdout)
    return times


def columns(document: Path) -> int:
    """Return the values of a record, which of an update is the whole vector."""
    read = json.loads(document.read_text())
    return int(read["record"]["columns"]) * int(read.get("update", {}).get("records", 1))


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
        sides = {"c": in_c(program), "c scalar": in_c(program, "scalar"), "node": in_node()}
    sizes = shipped(library)
    for name, size in sizes.items():
        print(f"{name:>10}: {size / 1e3:,.1f} kB")
    results: list[dict[str, object]] = []
    for path in sorted(DOCUMENTS.glob("*.json")):
        each: dict[str, object] = {"document": path.stem, "bytes": len(path.read_text().rstrip())}
        for side, times in sides.items():
            if path.stem not in times:
                continue
            own = times[path.stem]
            opened, record = own["open_ns"], own["record_ns"]
            value = own["together_ns"] / columns(path)
            each[side] = {
                "open_ns": round(opened),
                "record_ns": round(record, 1),
                "value_ns": round(value, 2),
            }
            line = f"open {opened / 1e6:.3f} ms, a record {record / 1e3:.2f} us"
            print(f"{path.stem:>10} {side:>8}: {line}, one of many values {value:.2f} ns")
        if {"c scalar", "node"} <= each.keys():
            ratio = sides["node"][path.stem]["together_ns"] / sides["c scalar"][path.stem]["together_ns"]
            each["node_over_scalar"] = round(ratio, 2)
            print(f"{path.stem:>10} in Node: {ratio:.2f} times the native scalar path")
        results.append(each)
    if arguments.record:
        keep("client.jsonl", {"machine": {"cpu": cpu_name()}, "shipped_bytes": sizes, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
