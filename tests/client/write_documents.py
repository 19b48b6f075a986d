"""Writes the documents of all mechanisms that have one into a folder, for the tests of the C library."""

import sys
from pathlib import Path

from support.clients import DOCUMENTED


def main(folder: Path) -> None:
    """Write a file for each case."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, case in enumerate(DOCUMENTED):
        (folder / f"{index:03}.json").write_text(case.make().client_document() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
