"""Mechanisms on the command line: their names, their options, and how they are built from these."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args, get_origin

from bitldp.base.errors import MissingExtraError
from bitldp.cli.docstrings import documented
from bitldp.cli.errors import UsageError
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.parameters import Option, Unit, allowed, annotated

__all__ = [
    "FAMILIES",
    "MOST",
    "MOST_CATEGORIES",
    "MOST_THREADS",
    "CatalogueEntry",
    "Given",
    "bounded",
    "entries",
    "entry",
    "needed",
    "options_of",
    "shown",
]

_T = TypeVar("_T")

#: Largest number of categories, of classes or of points of a range that the command line takes.
MOST_CATEGORIES = 1 << 16
#: Largest number of features that ``explain`` and ``audit`` take.
MOST_FEATURES = 1 << 20
#: Largest number of threads.
MOST_THREADS = 1 << 10


def needed(option: str, value: _T | None) -> _T:
    """Return the value of an option that this mechanism cannot do without."""
    if value is None:
        raise UsageError(f"{option} is needed")
    return value


def bounded(option: str, value: int | None, most: int) -> int | None:
    """Return a number of things; refuse one that no machine could hold, before anything is built."""
    if value is not None and value > most:
        raise UsageError(f"{option}: must be at most {most:,}, got {value}")
    return value


#: The option of each parameter that says how large an input is.
SIZES = MappingProxyType(
    {
        "features": "features",
        "categories": "categories",
        "candidates": "points",
    }
)
NEEDED = "needed"  # in place of a default
_ENDS = {
    "low": "Low end of the public range of a number.",
    "high": "High end of it; numbers outside move to the ends.",
}


@dataclass(frozen=True)
class Given:
    """An option of a mechanism.

    Attributes
    ----------
    name : str
        Its name, with underscores.
    field : str
        The parameter of the constructor; empty where it concerns the columns of a file alone.
    kind : type
        Of its value: int, float, str or bool.
    words : tuple of str
        The values of a word.
    allowed : str
        What is allowed, where its check says it.
    default : object
        Of the constructor; NEEDED where it has none.
    about : str
        What the docstring says of the parameter.
    read : callable or None
        Reads its text.
    short : str
        What it is for, in one sentence, where the docstring does not begin with one.
    """

    name: str
    field: str
    kind: type
    words: tuple[str, ...] = ()
    allowed: str = ""
    default: Any = NEEDED
    about: str = ""
    read: Callable[[str], Any] | None = None
    short: str = ""

    @property
    def form(self) -> str:
        """Placeholder of the value in a help."""
        return "|".join(self.words) or {int: "N", float: "X"}.get(self.kind, self.allowed or "TEXT")

    @property
    def help(self) -> str:
        """All that is known of it, in one paragraph."""
        extent = self.allowed if self.kind in (int, float) else ""
        default = "" if self.default in (None, NEEDED) else f"default: {_plain(self.default)}"
        more = "; ".join(part for part in (extent, default) if part)
        return " ".join(filter(None, (self.short, self.about, more and f"[{more}]")))

    @property
    def sentence(self) -> str:
        """Purpose of the option, in one sentence."""
        return (self.short or re.split(r"(?<=[.:])\s", self.about, maxsplit=1)[0]).rstrip(":.") + "."


def shown(name: str) -> str:
    """Return the option of a name."""
    return f"--{name.replace('_', '-')}"


def _plain(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


@cache
def options_of(kind: type[Mechanism]) -> Mapping[str, Given]:
    """Return the options of a mechanism by name, but for its budget.

    Those are the parameters of the constructor that a command line can give: numbers, words, flags, and an
    interval by its two ends. A size has the name of `SIZES`.
    """
    about: Mapping[str, str] = _about(kind)
    result: dict[str, Given] = {}
    defaults = {
        field.name: NEEDED if field.default is MISSING else field.default
        for field in fields(kind)
        if field.init
    }
    for parameter, (stated, notes) in annotated(kind).items():
        special = next((note for note in notes if isinstance(note, Option)), Option())
        name = special.name or SIZES.get(parameter, parameter)
        if special.hidden or name == "epsilon" or (parameter == "features" and kind._sized_by != "features"):
            continue  # columns that a mechanism takes one by one are not features of it
        # A size may be more than a number in Python: labels, or points of their own.
        value, words = (int, ()) if parameter in SIZES else _value(stated)
        if parameter == "interval":
            ends = (None, None) if defaults[parameter] is None else defaults[parameter]
            for (end, text), default in zip(_ENDS.items(), ends, strict=True):
                result[end] = Given(end, parameter, float, default=default, about=text)
        elif value is not None or special.read is not None:
            result[name] = Given(
                name=name,
                field=parameter,
                kind=value or str,
                words=words or tuple(filter(None, special.form.split("|"))),
                allowed=next((extent for note in notes if (extent := allowed(note))), ""),
                default=defaults[parameter],
                about=about.get(parameter, ""),
                read=special.read,
                short=special.short,
            )
    if kind._takes == "reals" and "low" not in result:
        ends = _ENDS.items()
        result |= {end: Given(end, "interval", float, default=None, about=text) for end, text in ends}
    if kind._takes == "categories" and "unit" not in result:  # of a file, each column is a record's feature
        _, words = _value(get_args(Unit)[0])
        result["unit"] = Given("unit", "", str, words, about="What --epsilon covers: a row, or each column.")
    return MappingProxyType(result)


def _value(stated: Any) -> tuple[type | None, tuple[str, ...]]:
    """Return the type of a value that a command line can give, and its words."""
    if get_origin(stated) is Literal:
        return str, get_args(stated)
    plain = [each for each in get_args(stated) or (stated,) if each is not type(None)]
    return (plain[0], ()) if len(plain) == 1 and plain[0] in (int, float, bool) else (None, ())


@cache
def _about(kind: type) -> Mapping[str, str]:
    """Return what the docstring of a class says of each parameter."""
    return {name: words.replace("`", "") for name, words in documented(kind, "Parameters").items()}


#: The most that the option of a size may be.
MOST = {"features": MOST_FEATURES, "categories": MOST_CATEGORIES, "points": MOST_CATEGORIES}
_COLUMNS = ("numbers", "reals", "categories", "points")


@dataclass(frozen=True)
class CatalogueEntry:
    """One mechanism of the command line.

    Attributes
    ----------
    name : str
        What ``--mechanism`` takes.
    family : str
        The package that exports it.
    kind : type
        Its class.
    summary : str
        One line.
    usual_size : int
        Size of an input in an example.
    fixed : mapping
        Parameters that a variant fixes.
    """

    name: str
    family: str
    kind: type[Mechanism]
    summary: str
    usual_size: int
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def options(self) -> Mapping[str, Given]:
        """The options that apply, by name with underscores; ``--epsilon`` does to all."""
        result = options_of(self.kind)
        return {name: each for name, each in result.items() if each.field not in self.fixed}

    @property
    def takes(self) -> tuple[str, ...]:
        """Kinds of input that it takes, see `bitldp.mechanism.base.Takes`."""
        return (str(self.kind._takes), *(("points",) if self.kind._on_points else ()))

    @property
    def perturbs(self) -> bool:
        """True if it takes columns of a file."""
        return self.kind._takes in _COLUMNS

    @property
    def size_option(self) -> str | None:
        """Name of the option that says how large an input is; None where there is one size only."""
        return None if self.kind._sized_by is None else SIZES[self.kind._sized_by]

    def check(self, options: Mapping[str, Any], others: Mapping[str, CatalogueEntry]) -> None:
        """Refuse options that say nothing to this mechanism, rather than ignore them, and unknown words."""
        for name, value in options.items():
            if name not in self.options:
                takers = ", ".join(other.name for other in others.values() if name in other.options)
                raise UsageError(f"{shown(name)} does not apply to {self.name} (it does to {takers})")
            given = self.options[name]
            if given.words and given.read is None and value not in given.words:
                raise UsageError(f"{shown(name)} {value}: must be one of {', '.join(given.words)}")
        if ("low" in options) != ("high" in options):
            raise UsageError("--low and --high: both ends of the range are needed")
        for name, most in MOST.items():
            bounded(shown(name), options.get(name), most)

    def build(self, epsilon: float, options: Mapping[str, Any]) -> Any:
        """Build the mechanism from options that `check` has seen, its size among them."""
        rest = dict(options)
        if self.size_option is None:
            return self.construct(epsilon, self.usual_size, rest)
        size = rest.pop(self.size_option, 1 if self.kind._takes == "reals" else None)
        return self.construct(epsilon, needed(shown(self.size_option), size), rest)

    def construct(self, epsilon: float, size: int, options: Mapping[str, Any]) -> Any:
        """Build the mechanism; what its constructor refuses is a usage problem.

        Parameters
        ----------
        epsilon : float
        size : int
            Number of features, of categories or of points.
        options : mapping
            Its other options.
        """
        asked = [
            shown(name)
            for name, each in self.options.items()
            if each.default == NEEDED and each.field and name not in (self.size_option, *options)
        ]
        if len(asked) > 1:
            raise UsageError(f"{self.name} needs more: give {' and '.join(asked)}")
        if asked:
            raise UsageError(f"{asked[0]} is needed")
        parameters: dict[str, Any] = {**self.fixed, "epsilon": epsilon}
        if self.kind._sized_by is not None:
            parameters[self.kind._sized_by] = size
        elif size != self.usual_size:
            raise UsageError(f"{self.name}: takes a column of {self.usual_size} categories, got {size}")
        for name, value in options.items():
            given = self.options[name]
            if given.field and given.field != "interval":
                parameters[given.field] = value if given.read is None else given.read(value)
        if "low" in options:
            parameters["interval"] = (options["low"], options["high"])
        with self._refusing():
            return self.kind._for_record(**parameters)

    def example(self, epsilon: float, sizes: Mapping[str, int]) -> Any:
        """Build the example of a table of all mechanisms, of the sizes that are given."""
        size = sizes.get(self.size_option or "", self.usual_size)
        parameters = {**self.kind._usual(epsilon, size), **self.fixed}
        more = {SIZES[name]: name for name in parameters if name in SIZES and name != self.kind._sized_by}
        parameters |= {more[name]: given for name, given in sizes.items() if name in more}
        with self._refusing():
            return self.kind._for_record(**parameters)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except MissingExtraError:
            raise
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.name}: {error}") from None
        except (OverflowError, MemoryError):
            raise UsageError(f"{self.name}: a number given is too large") from None


#: The packages of the families, in the order of the documentation, and what their mechanisms release.
FAMILIES = {
    "bits": "fixed-point numbers, bit by bit",
    "categorical": "categories",
    "points": "points of an interval",
    "numeric": "numbers of an interval, and labels as vectors",
    "ordered": "ordered values and words, for distributions, ranges and top words",
    "compression": "numbers of an interval and vectors, in few bits",
    "record": "whole records of numbers, of categories, of both",
    "selection": "the index of an important dimension",
}


@cache
def entries() -> Mapping[str, CatalogueEntry]:
    """Return what every family exports and a command line can build, by name; family by family."""
    result: dict[str, CatalogueEntry] = {}
    for family in FAMILIES:
        of_family = {each.name: each for each in _exported(family)}
        result |= {name: of_family[name] for name in sorted(of_family) if name not in result}
    return MappingProxyType(result)


def entry(name: str) -> CatalogueEntry:
    """Return the entry of a mechanism by the name used on the command line."""
    try:
        return entries()[name.lower().replace("_", "-")]
    except KeyError:
        raise UsageError(f"no mechanism {name!r}; there are {', '.join(entries())}") from None


def _exported(family: str) -> Iterator[CatalogueEntry]:
    package = importlib.import_module(f"bitldp.{family}")
    for name in package.__all__:
        kind = getattr(package, name)
        if not (inspect.isclass(kind) and issubclass(kind, Mechanism) and kind._takes):
            continue
        summary = (kind.__doc__ or "").split("\n", 1)[0].rstrip(".")
        command = vars(kind).get("_command") or _kebab(kind.__name__)
        yield CatalogueEntry(command, family, kind, summary, kind._usual_size)
        for variant in vars(kind).get("_variants", ()):
            yield CatalogueEntry(
                variant.name, family, kind, variant.summary, variant.usual_size, variant.parameters
            )


def _kebab(name: str) -> str:
    """Return the name of a class in small letters and with hyphens; capitals in a row are one word."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
