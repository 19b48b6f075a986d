"""What a shell offers for the values of options."""

from __future__ import annotations

from collections.abc import Callable

from bitldp.cli.catalogue.entries import entries

__all__ = ["mechanisms", "one_of"]


def mechanisms(incomplete: str) -> list[tuple[str, str]]:
    """Return the mechanisms that take columns and begin so, each with what it is."""
    return [
        (each.name, each.summary)
        for each in entries().values()
        if each.perturbs and each.name.startswith(incomplete.lower().replace("_", "-"))
    ]


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Return what offers those of some words that begin as the one that is typed."""

    def offered(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return offered
