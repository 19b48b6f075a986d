"""Comparison of two runs of the figures: which verdicts are others with other seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bitldp_papers.figures.findings import CONSTANT, FAILS, HOLDS, SIGN

__all__ = ["StatementPair", "pairs"]

_DECIDED = (HOLDS, SIGN, FAILS, CONSTANT)


@dataclass(frozen=True)
class StatementPair:
    """A statement in two runs.

    Attributes
    ----------
    figure, says : str
    words, because : tuple of str
        Of either run.
    """

    figure: str
    says: str
    words: tuple[str, str]
    because: tuple[str, str]

    @property
    def alike(self) -> bool:
        """True where both runs say the same."""
        return self.words[0] == self.words[1]

    @property
    def flipped(self) -> bool:
        """True where both runs decide, each in another way."""
        return not self.alike and set(self.words) <= set(_DECIDED)


def pairs(first: Path, second: Path) -> Iterator[StatementPair]:
    """Yield every statement of the figures that are in both of two folders.

    Raises
    ------
    ValueError
        For figures of other forms, or with the same seeds: their verdicts say nothing about each other.
    """
    for path in sorted(first.glob("*/figure.json")):
        other = second / path.parent.name / path.name
        if not other.exists():
            continue
        one, two = (json.loads(each.read_text(encoding="utf-8")) for each in (path, other))
        if {one["status"], two["status"]} != {"done"}:
            continue
        name = path.parent.name
        if one["form"] != two["form"]:
            raise ValueError(f"{name}: is in the {one['form']} form here, in the {two['form']} form there")
        if one["seeds"] and set(one["asked"]) & set(two["asked"]):
            raise ValueError(
                f"{name}: has the same seeds in both; run one with --seed {max(one['asked']) + 1}"
            )
        found = {each["says"]: each for each in two["findings"]}
        for each in one["findings"]:
            if each["says"] in found:
                there = found[each["says"]]
                words, because = (each["word"], there["word"]), (each["because"], there["because"])
                yield StatementPair(name, each["says"], words, because)
