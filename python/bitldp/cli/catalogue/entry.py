"""A mechanism as the command line knows it: its name, its options, and how it is built from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bitldp.base.errors import MissingExtraError
from bitldp.cli.catalogue.fields import NEEDED, SIZES, Given, options_of, shown
from bitldp.cli.options import MOST_CATEGORIES, MOST_FEATURES, bounded, needed
from bitldp.cli.perturb.files import UsageError
from bitldp.mechanism.base import Mechanism

__all__ = ["MOST", "Entry"]

#: The most that the option of a size may be.
MOST = {"features": MOST_FEATURES, "classes": MOST_CATEGORIES, "points": MOST_CATEGORIES}
_COLUMNS = ("numbers", "reals", "categories", "points")


@dataclass(frozen=True)
class Entry:
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
        found = options_of(self.kind)
        return {name: each for name, each in found.items() if each.field not in self.fixed}

    @property
    def takes(self) -> tuple[str, ...]:
        """What it takes, see `bitldp.mechanism.base.Takes`."""
        return (str(self.kind.takes), *(("points",) if self.kind.on_points else ()))

    @property
    def perturbs(self) -> bool:
        """Whether it takes columns of a file."""
        return self.kind.takes in _COLUMNS

    @property
    def size_option(self) -> str | None:
        """Name of the option that says how large an input is; None where there is one size only."""
        return None if self.kind.sized_by is None else SIZES[self.kind.sized_by]

    def check(self, options: Mapping[str, Any], others: Mapping[str, Entry]) -> None:
        """Refuse options that say nothing to this mechanism, rather than ignore them, and unknown words."""
        for name, value in options.items():
            if name not in self.options:
                takers = ", ".join(other.name for other in others.values() if name in other.options)
                raise UsageError(f"{shown(name)} does not apply to {self.name} (it does to {takers})")
            given = self.options[name]
            if given.words and given.read is None and value not in given.words:
                raise UsageError(f"{shown(name)} {value}: must be one of {', '.join(given.words)}")
        if ("low" in options) != ("high" in options):
            raise UsageError("--low and --high go together: they are the ends of the range")
        for name, most in MOST.items():
            bounded(shown(name), options.get(name), most)

    def build(self, epsilon: float, options: Mapping[str, Any]) -> Any:
        """Build the mechanism from options that `check` has seen, its size among them."""
        rest = dict(options)
        if self.size_option is None:
            return self.construct(epsilon, self.usual_size, rest)
        size = rest.pop(self.size_option, 1 if self.kind.takes == "reals" else None)
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
        if self.kind.sized_by is not None:
            parameters[self.kind.sized_by] = size
        elif size != self.usual_size:
            raise UsageError(f"{self.name}: takes a column of {self.usual_size} categories, got {size}")
        for name, value in options.items():
            given = self.options[name]
            if given.field and given.field != "interval":
                parameters[given.field] = value if given.read is None else given.read(value)
        if "low" in options:
            parameters["interval"] = (options["low"], options["high"])
        with self._refusing():
            return self.kind.for_record(**parameters)

    def example(self, epsilon: float, sizes: Mapping[str, int]) -> Any:
        """Build the example of a table of all mechanisms, of the sizes that are given."""
        size = sizes.get(self.size_option or "", self.usual_size)
        parameters = {**self.kind.usual(epsilon, size), **self.fixed}
        more = {SIZES[name]: name for name in parameters if name in SIZES and name != self.kind.sized_by}
        parameters |= {more[name]: given for name, given in sizes.items() if name in more}
        with self._refusing():
            return self.kind.for_record(**parameters)

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
