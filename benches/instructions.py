"""Instructions that an AArch64 processor executes for a value, and estimates of its cycles: no time is taken.

    make bench-arm                                      # every case; the figures are kept
    python benches/instructions.py PROGRAM f-RR         # the cases of that name; PROGRAM is what it built

Each case of `instructions.rs` runs under emulation with a plugin of QEMU's (`count_instructions.c`), once
with one call and once with three: half of the difference is a call's, whatever came before. NumPy's counts
are of `bitldp.reference` in an emulated Python. Before anything is said of a case, what the portable path
and the NEON kernels gave is compared.

There are two sorts of figures, and neither is a time:

- *instructions* are counted: all of them, in every block that ran;
- *cycles* are what llvm-mca estimates for the same blocks, each alone in a loop, as often as it ran, on
  Neoverse N1 and on Apple's M1. Of the M1 LLVM has no model of its own: it takes that of Cyclone, an older
  core with three vector units where the M1 has four. Memory, the prediction of branches and what overlaps
  between blocks are left out.

What a case's blocks share with the keystream's case is said apart.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from keep import keep

ROOT = Path(__file__).parents[1]
ARM = ROOT / "target" / "arm"
COUNTED = ARM / "counted"
EMULATOR = ["qemu-aarch64", "-plugin", str(ARM / "count.so"), "-d", "plugin", "-D", str(COUNTED)]
PROCESSORS = ("neoverse-n1", "apple-m1")
KERNELS = ("scalar", "neon")
CALLS = 2

# The cases of `_instructions.py`, and values of a call there.
NUMPY = dict.fromkeys(("f-RR, codes", "GRR, k = 128", "BRR, N = 1000"), 128 * 768)

# How often each block of instructions ran: its address and its words.
Blocks = dict[tuple[int, tuple[str, ...]], float]


def ran(command: list[str], isa: str) -> tuple[Blocks, str]:
    """Return how often a program ran each block, and what it said last."""
    # OpenBLAS has threads that wait by turning in a loop.
    environment = {**os.environ, "BITLDP_ISA": isa, "OPENBLAS_NUM_THREADS": "1"}
    said = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
    counted: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for line in COUNTED.read_text().splitlines():
        times, address, *words = line.split()
        counted[int(address, 16), tuple(words)] += int(times)
    return dict(counted), said.strip()


def of_a_value(command: list[str], isa: str, values: int) -> tuple[Blocks, str]:
    """Return how often each block runs for a value, and what the program said last."""
    once, _ = ran([*command, "1"], isa)
    more, said = ran([*command, str(1 + CALLS)], isa)
    each = {block: (times - once.get(block, 0)) / CALLS / values for block, times in more.items()}
    return {block: times for block, times in each.items() if times}, said


def instructions(blocks: Blocks) -> float:
    """Return the instructions of so many runs of blocks."""
    return round(sum(times * len(words) for (_, words), times in blocks.items()), 2)


def joined(blocks: Blocks) -> list[tuple[list[str], float]]:
    """Return the blocks with those as one that follow each other as often: the emulator cuts long ones."""
    found: list[tuple[int, list[str], float]] = []
    for (address, words), times in sorted(blocks.items()):
        if found and found[-1][0] == address and abs(found[-1][2] - times) <= 0.02 * times:
            end, before, often = found.pop()
            found.append((end + 4 * len(words), [*before, *words], often))
        else:
            found.append((address + 4 * len(words), list(words), times))
    return [(words, times) for _, words, times in found]


def assembly(words: list[str]) -> str:
    """Return the text of instructions."""
    code = " ".join(f"0x{byte:02x}" for word in words for byte in int(word, 16).to_bytes(4, "little"))
    command = ["llvm-mc-22", "--disassemble", "-triple=aarch64", "-mattr=+all"]
    return subprocess.run(command, input=code, check=True, capture_output=True, text=True).stdout


def cycles(blocks: Blocks) -> dict[str, float]:
    """Return the estimated cycles of so many runs of blocks; those of a thousandth of all are left out."""
    if not blocks:
        return dict.fromkeys(PROCESSORS, 0.0)
    whole = instructions(blocks)
    worth = [(words, times) for words, times in joined(blocks) if times * len(words) > whole / 1000]
    regions = [f"# LLVM-MCA-BEGIN\n{assembly(words)}\n# LLVM-MCA-END\n" for words, _ in worth]
    answer = {}
    for processor in PROCESSORS:
        command = ["llvm-mca-22", "-mtriple=aarch64", f"-mcpu={processor}", "-iterations=100"]
        command += [
            "-skip-unsupported-instructions=any",
            "-instruction-info=false",
            "-resource-pressure=false",
        ]
        said = subprocess.run(
            command, input="".join(regions), check=True, capture_output=True, text=True
        ).stdout
        found = [int(total) / 100 for total in re.findall(r"^Total Cycles: +(\d+)$", said, re.M)]
        assert len(found) == len(worth), "an estimate for each block"
        answer[processor] = round(sum(each * times for each, (_, times) in zip(found, worth, strict=True)), 2)
    return answer


def of_numpy(name: str) -> float | None:
    """Return NumPy's instructions for a value."""
    if name not in NUMPY:
        return None
    command = [str(ROOT / "tests" / "arm" / "python"), str(ROOT / "benches" / "_instructions.py"), name]
    os.environ["EMULATOR"] = " ".join(EMULATOR)
    return instructions(of_a_value(command, "neon", NUMPY[name])[0])


def main(program: str, only: str) -> None:
    """Count, print, and keep the figures where all cases were counted."""
    listed = subprocess.run(["qemu-aarch64", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows: dict[str, object] = {}
    keystream: dict[str, Blocks] = {}
    heads = f"{'NumPy':>7} {'scalar':>7} {'NEON':>7} {'x':>5}"
    print(f"{'':<27} {heads}   cycles of NEON: N1, M1   without keystream")
    for name, unit, count in (line.split("\t") for line in listed.splitlines()):
        if only not in name and keystream:
            continue
        found = {isa: of_a_value([*EMULATOR, program, name], isa, int(count)) for isa in KERNELS}
        assert found["scalar"][1] == found["neon"][1], f"{name}: the kernels give other bytes"
        blocks = {isa: found[isa][0] for isa in KERNELS}
        keystream = keystream or blocks
        rest = {block: times for block, times in blocks["neon"].items() if block not in keystream["neon"]}
        numpy, ratio = of_numpy(name), instructions(blocks["scalar"]) / instructions(blocks["neon"])
        row = {
            isa: {"instructions": instructions(blocks[isa]), "cycles": cycles(blocks[isa])} for isa in KERNELS
        }
        row["neon, keystream left out"] = {"instructions": instructions(rest), "cycles": cycles(rest)}
        rows[name] = {"of a": unit, "numpy": {"instructions": numpy}, **row}
        left = row["neon, keystream left out"]
        counts = " ".join(f"{row[isa]['instructions']:>7}" for isa in KERNELS)
        first, second = (
            "{neoverse-n1:6}, {apple-m1:6}".format(**each["cycles"]) for each in (row["neon"], left)
        )
        print(f"{name:<27} {numpy or '':>7} {counts} {ratio:>5.1f}   {first}", end="   ")
        print(f"{left['instructions']:>7}: {second}", flush=True)
    if not only:
        what = (
            "executed instructions of a value, counted under emulation, and cycles as llvm-mca estimates them"
        )
        keep("arm.jsonl", {"what": what, "cases": rows})


if __name__ == "__main__":
    main(sys.argv[1], " ".join(argument for argument in sys.argv[2:] if argument != "--bench"))
