"""Parameters, declared with their check, and what a caller is told who gives others.

The base of the mechanisms runs the checks; `_build` need not. A field's annotation says what it is checked
to be: ``epsilon: Budget``. The check is called with the name and the value that was given, and returns the
value that the mechanism keeps. That value is written down as a hashable one, as JSON for fingerprints, and in
words.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from abc import ABCMeta
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.codecs import Categories as Labels
from bitldp.mechanism.docstrings import completed, own_docstring
from bitldp.privacy import Calibration as _Calibration
from bitldp.privacy import Unit as _Unit

Check = Callable[[str, Any], Any]


def one_of(*words: str) -> Check:
    """Return the check that a value is one of some words."""
    return partial(_choice, words)


def _choice(words: tuple[str, ...], name: str, value: Any) -> str:
    if isinstance(value, str) and value in words:
        return value
    return checks.choice(name, value, words)


def at_least(least: int, most: int = checks.MOST) -> Check:
    """Return the check that a value is a number of things, from `least` to `most`."""
    return partial(_count, least, most)


def _count(least: int, most: int, name: str, value: Any) -> int:
    return value if type(value) is int and least <= value <= most else checks.count(name, value, least, most)


def categories(most: int = checks.MOST) -> Check:
    """Return the check that a value is a number of categories, from 2 to `most`, or their labels."""
    return partial(_categories, most)


def _categories(most: int, name: str, value: Any) -> int | Labels:
    if isinstance(value, Labels):
        return value
    if isinstance(value, (str, bytes)) or not np.iterable(value):
        return _count(2, most, name, value)
    try:
        return Labels(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {str(error).removeprefix('labels: ')}") from None


def whole(low: int, high: int) -> Check:
    """Return the check that a value is an integer of [low, high]."""
    return partial(_whole, low, high)


def _whole(low: int, high: int, name: str, value: Any) -> int:
    return checks.integer(name, value, low, high)


def optional(check: Check) -> Check:
    """Return the check of a parameter that may be None."""
    return partial(_optional, check)


def _optional(check: Check, name: str, value: Any) -> Any:
    return None if value is None else check(name, value)


@dataclass(frozen=True)
class Option:
    """How a command line gives a parameter, where its name and its type do not say it.

    Attributes
    ----------
    name : str
        Name of the option, with underscores; empty: that of the parameter.
    form : str
        What it may be, in the words of a help; empty: what its type says.
    read : callable, optional
        Reads the text of it.
    hidden : bool
        Whether a command line does not give it.
    short : str
        What it is for, where the docstring does not begin with it.
    """

    name: str = ""
    form: str = ""
    read: Callable[[str], Any] | None = None
    hidden: bool = False
    short: str = ""


@dataclass(frozen=True)
class FieldId:
    """Lasting name of a parameter that was renamed, for fingerprints, plans and keyed randomness.

    Attributes
    ----------
    name : str
        Name that the parameter had when the first reports were made.
    """

    name: str


Budget = Annotated[float, checks.budget]
"""A privacy budget: finite, zero or more."""

Features = Annotated[int, at_least(1)]
"""Numbers of a record, 1 or more."""

CategoryNames = int | Sequence[Any] | NDArray[Any] | Labels
"""Categories as they are given: their number, or their labels in order."""

Categories = Annotated[CategoryNames, categories()]
"""Categories, 2 or more: how many, or their labels."""

Flag = Annotated[bool, checks.flag]
"""Yes or no."""

Interval = Annotated[tuple[float, float], checks.interval]
"""Where a number lies: (low, high)."""

Unit = Annotated[_Unit, one_of("record", "feature")]
"""Scope of a budget."""

Calibration = Annotated[
    _Calibration,
    one_of("exact", "paper"),
    Option(short="Whether a budget is kept exactly, or the paper's formula is used."),
]
"""Choice of keeping a budget exactly, or of the paper's formula."""

Criterion = Annotated[Literal["mean", "worst"], one_of("mean", "worst")]
"""Which variance is minimised: the mean over uniform inputs, or that of the worst one."""


@cache
def annotated(kind: type) -> Mapping[str, tuple[Any, tuple[Any, ...]]]:
    """Return the type of each of a dataclass' fields, and what it is annotated with, by name.

    In the order of the constructor.
    """
    found: dict[str, tuple[Any, tuple[Any, ...]]] = {}
    for field in fields(kind):
        if not field.init:
            continue
        owner = next(each for each in kind.__mro__ if field.name in inspect.get_annotations(each))
        stated = field.type
        if isinstance(stated, str):
            stated = eval(stated, vars(sys.modules[owner.__module__]))
        plain, *stated_with = get_args(stated) if get_origin(stated) is Annotated else (stated,)
        found[field.name] = plain, tuple(stated_with)
    return found


@cache
def lasting(kind: type) -> Mapping[str, str]:
    """Return the lasting name of each of a dataclass' fields: its `FieldId`, or the name itself."""
    return {
        name: next((note.name for note in stated if isinstance(note, FieldId)), name)
        for name, (_, stated) in annotated(kind).items()
    }


@cache
def declared(kind: type) -> tuple[tuple[str, Check], ...]:
    """Return the checks of a dataclass' fields by name, in the order of the constructor.

    Fields without a check are left out; a `_build` of the class looks at them.
    """
    return tuple(
        (name, check)
        for name, (_, stated) in annotated(kind).items()
        for check in stated
        if not isinstance(check, (Option, FieldId))
    )


def allowed(check: Check) -> str:
    """Return what a check allows, in words; nothing where the check does not say."""
    if not isinstance(check, partial):
        return ""
    if check.func is _optional:
        return allowed(check.args[0])
    if check.func is _choice:
        return "|".join(check.args[0])
    if check.func is _whole or (check.func is _count and check.args[1] < checks.MOST):
        return f"{check.args[0]} to {check.args[1]}"
    return f"{check.args[0]} or more" if check.func is _count else ""


# -- values of parameters: hashable, as JSON, in words


def frozen(value: Any) -> Hashable:
    """Return a parameter as a hashable value; of an array what tells it from others."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, digest(value))
    hashable: Hashable = value
    return hashable


def plain(value: Any) -> Any:
    """Return a parameter as a JSON value: arrays and labels as a digest, functions by name."""
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "dtype": value.dtype.str, "sha256": digest(value)}
    if isinstance(value, Labels):
        text = repr(value.labels.tolist())
        return {"labels": len(value), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    if hasattr(value, "fingerprint") and not isinstance(value, type):
        return value.fingerprint()
    if callable(value):
        return stable_name(value)
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON values under the names of the constructor, for people."""
    return {name: plain(value) for name, value in parameters.items()}


def short(value: Any) -> str:
    """Return a parameter as a representation shows it."""
    if callable(value):
        return f"<{stable_name(value)}>"
    if isinstance(value, np.ndarray):
        return f"<array {'x'.join(str(axis) for axis in value.shape)}>"
    return repr(value)


def digest(array: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def stable_name(function: Any) -> str:
    """Return a stable name of a callable, which may be an instance or a partial function.

    A class that stands as a parameter may be moved or renamed: its `_lasting` name is what it had at first.
    """
    named = function if hasattr(function, "__qualname__") else type(function)
    lasting: str = vars(named).get("_lasting", "")
    return lasting or f"{named.__module__}.{named.__qualname__}"


def short_name(kind: type) -> str:
    """Return the lasting name of a class without its module."""
    return str(vars(kind).get("_lasting", kind.__name__)).rpartition(".")[2]


# -- calls that do not fit

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
