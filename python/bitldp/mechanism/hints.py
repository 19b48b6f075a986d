"""Calls of a constructor that do not fit: the message says which argument is meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from bitldp.mechanism.parameters import lasting

__all__ = ["RANDOMIZE", "hint_of", "refuse_unknown"]

RANDOMIZE = ("rng", "output", "out", "threads", "first_chunk")
"""Options of `Mechanism.randomize`."""


def refuse_unknown(call: str, unknown: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse keyword arguments that a call does not have, and name the nearest that it has.

    Raises
    ------
    TypeError
        If there is one.
    """
    for name in unknown:
        if name == "seed":
            raise TypeError(f"seed: {call} has no seed; did you mean rng=?")
        raise TypeError(_nearest(call, name, known))


def _nearest(call: str, name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), 1)
    meant = f"did you mean {near[0]}=?" if near else f"there are {', '.join(known)}"
    return f"{name}: {call} has no such parameter; {meant}"


def hint_of(kind: Any, given: tuple[Any, ...], named: Mapping[str, Any], error: Exception) -> str | None:
    """Return what was likely meant by a call that was refused; None where that cannot be told."""
    parameters = kind.__signature__.parameters
    positional = [each.name for each in parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    call = kind.__name__
    unknown = next((name for name in named if name not in parameters), None)
    if unknown is not None:
        return _unknown(kind, unknown, list(parameters))
    if len(given) > len(positional):
        required = [each.name for each in parameters.values() if each.default is each.empty]
        return _too_many(call, positional, list(dict.fromkeys([*required, *parameters])), given)
    if not positional:
        return None
    size = positional[0]
    bound = {**dict(zip(positional, given, strict=False)), **named}
    first, epsilon = bound.get(size), bound.get("epsilon")
    swapped = type(epsilon) is int and epsilon > 1 and type(first) is float
    if swapped and str(error).startswith(f"{size}:"):
        return f"{error}; epsilon: {epsilon} is one, did you mean {size}={epsilon}, epsilon={first}?"
    return None


def _unknown(kind: Any, name: str, known: list[str]) -> str:
    """Return what is meant by a name that is none of the parameters."""
    call, before = kind.__name__, {old: new for new, old in lasting(kind).items()}
    if name in before:
        return f"{name}: {call} has no such parameter; did you mean {before[name]}=?"
    if name == "seed":
        return f"seed: {call} has no seed; pass rng= to its `randomize`"
    return _nearest(call, name, known)


def _too_many(call: str, positional: list[str], names: list[str], given: tuple[Any, ...]) -> str:
    """Return how arguments are given that came without their names."""
    takes = f"{', '.join(positional)} alone" if positional else "no argument"
    sized, others = given[: len(positional)], given[len(positional) :]
    if len(positional) == len(others) == 1 and type(sized[0]) is float and type(others[0]) is int:
        sized, others = others, sized  # the budget stood first
    rest = [name for name in names if name not in positional]
    meant = ""
    if len(others) <= len(rest) and all(isinstance(each, (int, float)) for each in (*sized, *others)):
        named = (f"{name}={each!r}" for name, each in zip(rest, others, strict=False))
        meant = f"; did you mean {call}({', '.join([*map(repr, sized), *named])})?"
    return f"{call}: takes {takes} without its name, got {len(given)}{meant}"
