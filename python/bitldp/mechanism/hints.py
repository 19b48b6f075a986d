"""Class of the mechanisms: a call that does not fit is told which argument is meant, `help()` is complete."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from bitldp.mechanism.docstrings import completed, own_docstring
from bitldp.mechanism.parameters import lasting

__all__ = ["RANDOMIZE", "Hinting", "refuse_unknown"]

RANDOMIZE = ("rng", "output", "out", "threads", "first_chunk")
"""Options of `Mechanism.randomize`."""


class Hinting(ABCMeta):
    """Metaclass of the mechanisms: refused calls are looked at once more, and docstrings are completed."""

    if not TYPE_CHECKING:  # a checker looks at the constructor itself

        def __call__(cls, *arguments, **named):
            """Construct; a refusal says which argument is meant, where that can be told."""
            try:
                return super().__call__(*arguments, **named)
            except (TypeError, ValueError) as error:
                hint = _hint_of(cls, arguments, named, error)
                if hint is None or type(error) not in (TypeError, ValueError):
                    raise
                raise type(error)(hint) from None

        def _docstring(cls):
            text = own_docstring(cls)
            # `dataclass` asks, too: before the class is complete, and its neighbours are imported.
            return completed(cls) if text and "As of `" in text and "__match_args__" in vars(cls) else text

        def _set_docstring(cls, text):
            type.__dict__["__doc__"].__set__(cls, text)

        # With the parameters that another class describes; looked up when it is asked for.
        __doc__ = property(_docstring, _set_docstring)

    @property
    def __signature__(cls) -> inspect.Signature:
        """Signature of the constructor, which `inspect` would not find behind the metaclass."""
        constructor: Any = getattr(cls, "__init__")  # noqa: B009  # of the class, not of an instance
        _self, *rest = inspect.signature(constructor).parameters.values()
        return inspect.Signature(rest)


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


def _hint_of(kind: Any, given: tuple[Any, ...], named: Mapping[str, Any], error: Exception) -> str | None:
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
