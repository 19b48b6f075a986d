"""A command of `bitldp` in this process, and how much memory it took: the peak in KiB is its last line."""

from __future__ import annotations

import sys
from pathlib import Path

from bitldp.cli import main

if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    finally:
        status = Path("/proc/self/status").read_text().splitlines()
        print(next(line.split()[1] for line in status if line.startswith("VmHWM:")), file=sys.stderr)
