"""Numbers of a paper's text, each with the digest of the words before it.

    python -m bitldp_papers.figures.numbers FILE NUMBER...

prints where a number stands in a text: its line, and the passage that `Printed` takes. Of several numbers,
where they follow each other: the passage of `printed_row`.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Passage", "passages", "stands"]

#: Words before a number that its passage covers.
BEFORE = 5
_TOKEN = re.compile(r"[a-z]+|(?<![0-9a-z])\.[0-9]+|[0-9][0-9.,]*[0-9]|[0-9]")
_MINUS = "-\u2212\u2013"


@dataclass(frozen=True)
class Passage:
    """Numbers in a text.

    Attributes
    ----------
    numbers : tuple of str
        As they are printed, the first with its minus.
    digest : str
        Of the five words before the first, and the numbers.
    line : int
        Of the text, from 1 on.
    around : str
        What stands around the first number.
    """

    numbers: tuple[str, ...]
    digest: str
    line: int
    around: str


def passages(text: str, numbers: Sequence[str]) -> Iterator[Passage]:
    """Yield where numbers follow each other in a text.

    Parameters
    ----------
    text : str
        Words that a line break divides are joined; case, marks and line breaks do not count. A decimal number
        that an extraction wrote twice ("0.250.25") counts as one.
    numbers : sequence of str
        As of `Printed`; of one that has a minus, the text has one, too.
    """
    # The letters are joined and the break is kept, so that lines are counted.
    joined = re.sub(r"(?<=[a-z])-[ \t]*(\n)\s*([a-z]+)", r"\2\1", text.lower())
    found = list(_TOKEN.finditer(joined))
    words = [_once(each[0]) for each in found]
    wanted = [number.lstrip(_MINUS) for number in numbers]
    for index in range(len(words) - len(wanted) + 1):
        if words[index : index + len(wanted)] != wanted:
            continue
        starts = [each.start() for each in found[index : index + len(wanted)]]
        if any(
            number[0] in _MINUS and joined[max(start - 1, 0)] not in _MINUS
            for number, start in zip(numbers, starts, strict=True)
        ):
            continue
        spoken = " ".join(words[max(0, index - BEFORE) : index + len(wanted)])
        digest = hashlib.sha256(spoken.encode()).hexdigest()[:12]
        around = " ".join(joined[max(0, starts[0] - 50) : starts[0] + 30].split())
        yield Passage(tuple(numbers), digest, joined.count("\n", 0, starts[0]) + 1, around)


def stands(text: str, numbers: Sequence[str], digest: str) -> bool:
    """Tell whether numbers stand in a text, after the words of a passage."""
    return any(each.digest == digest for each in passages(text, numbers))


def _once(word: str) -> str:
    """Return a decimal number that is written twice in a row as it is written once."""
    half = word[: len(word) // 2]
    return half if "." in half.strip(".") and half * 2 == word else word


def main(arguments: Sequence[str]) -> int:
    """Print where numbers stand in a file; return 1 where they do not."""
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    text = Path(arguments[0]).read_text(encoding="utf-8")
    some = list(passages(text, arguments[1:]))
    for each in some:
        print(f"{each.digest}  line {each.line}: ... {each.around} ...")
    return not some


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
