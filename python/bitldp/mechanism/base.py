"""The common face of the named mechanisms: frozen, compared and pickled by parameters alone."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid
from bitldp.base import checks
from bitldp.base.arrays import place
from bitldp.base.keys import RandomSource
from bitldp.mechanism import identity
from bitldp.mechanism.described import Variant, letter_facts
from bitldp.mechanism.keyed import Repeatable
from bitldp.mechanism.law import Experiment, Pair, Symbols, far_ends
from bitldp.mechanism.parameters import declared
from bitldp.mechanism.silent import Silent
from bitldp.privacy import Guarantee, PrivacyClaimWarning
from bitldp.release.base import Call, Direct, called

if TYPE_CHECKING:
    from bitldp.estimate.accumulators import Accumulator

Takes = Literal["numbers", "reals", "categories", "points", "ball", "scores", "record", "words"]
"""What a mechanism takes: all columns together as fixed-point numbers, or as numbers of an interval; each
column by itself as a category, or as one of N points; a vector of a ball; a vector of which one dimension is
chosen; attributes of several kinds; words that nobody could
list."""

Part = tuple[int, int]
"""Columns of an array of codes, and bits of a code."""

Reports: TypeAlias = NDArray[Any] | np.generic | tuple[NDArray[Any], ...]
"""What `randomize` returns: an array; a scalar for a single value; where coordinates are sampled, a pair."""

_M = TypeVar("_M", bound="Mechanism")


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Repeatable, Silent, ABC):
    """A mechanism of local differential privacy: parameters in, reports out.

    A subclass is a frozen dataclass whose fields are its parameters; those that are annotated with a check
    (`bitldp.mechanism.parameters`) are checked here. `_build` turns them into a release and a guarantee, and
    `_perturb` calls the release. What others ask of a mechanism it says itself: `symbols` (accountants),
    `extremes` (audits), `report_parts` and `join` (wire formats), `takes` and `facts` (the command line).

    Two mechanisms are equal when their parameters are; a pickle holds the parameters only, so no state of a
    random stream can be copied with it. (There is none: keys live as long as one call.)
    """

    takes: ClassVar[Takes | None] = None  # None where no command line can give its parameters
    on_points: ClassVar[bool] = False  # whether its categories may also be the points of an interval
    command: ClassVar[str] = ""  # its name on the command line, where it is not that of the class
    alike: ClassVar[bool] = True  # whether a code that is reported is one that it takes
    report_names: ClassVar[tuple[str, ...]] = ()  # of the numbers of a report, where they are not alike
    sized_by: ClassVar[str | None] = "features"  # the parameter that says how large an input is
    usual_size: ClassVar[int] = 1  # of the input of an example, or the only one
    variants: ClassVar[tuple[Variant, ...]] = ()  # settings that have a name of their own
    outputs: ClassVar[tuple[str, ...]] = ("codes", "packed")
    wire_output: ClassVar[str] = "codes"

    # Set on the instance, while it is built; ClassVar keeps them out of the fields.
    _guarantee: ClassVar[Guarantee]
    _direct: ClassVar[tuple[Any, ...] | None] = None

    def __post_init__(self) -> None:
        self._settle()
        guarantee = self._guarantee
        if not guarantee.holds:
            covered = guarantee.record if guarantee.unit == "record" else guarantee.feature
            warnings.warn(
                f"{type(self).__name__}: claimed epsilon {guarantee.claimed:.6g} per {guarantee.unit}, but "
                f"the exact one is {covered:.6g} ({guarantee.record:.6g} per record, "
                f"{guarantee.feature:.6g} per feature)",
                PrivacyClaimWarning,
                stacklevel=3,  # here, the dataclass' __init__, the caller who constructs
            )

    def _settle(self) -> None:
        """Check the parameters that are declared with a check, then build."""
        for name, check in declared(type(self)):
            object.__setattr__(self, name, check(name, getattr(self, name)))
        self._build()
        direct = self._shortcut()
        self._set(_direct=None if direct is None else tuple(direct))  # which is unpacked faster

    @abstractmethod
    def _build(self) -> None:
        """Set the release and `_guarantee`, once each parameter by itself has been checked."""

    def _shortcut(self) -> Direct | None:
        """Return the core's own call, if releasing codes of new keys is nothing but that."""
        return None

    def _set(self, **attributes: Any) -> None:
        """Set attributes of a frozen instance, while it is being built."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _quiet(cls: type[_M], **parameters: Any) -> _M:
        """Construct without the warning: for parts of a composite, and for unpickling."""
        mechanism = object.__new__(cls)
        for field in fields(cls):
            default = parameters[field.name] if field.default is MISSING else field.default
            object.__setattr__(mechanism, field.name, parameters.get(field.name, default))
        mechanism._settle()
        return mechanism

    @property
    def guarantee(self) -> Guarantee:
        """Claimed and exact epsilon: `Guarantee`."""
        return self._guarantee

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters by name, in the order of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def fingerprint(self) -> dict[str, Any]:
        """Return name and parameters as JSON values; arrays as a digest, functions by name.

        Returns
        -------
        dict
            ``{"name": ..., "parameters": {...}}``. Two mechanisms whose reports may be aggregated together
            have the same fingerprint.
        """
        return {
            "name": type(self).__name__,
            "parameters": {name: identity.plain(value) for name, value in self.parameters.items()},
        }

    def _identity(self) -> Hashable:
        return (type(self), *(identity.frozen(value) for value in self.parameters.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mechanism) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={identity.short(value)}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Callable[..., Mechanism], tuple[type[Mechanism], dict[str, Any]]]:
        return _rebuild, (type(self), dict(self.parameters))

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: str = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> Reports:
        """Randomize records: what it returns is safe to release at `guarantee`.

        Parameters
        ----------
        x : array_like
            Records, one a row, of what the mechanism takes (see its class): numbers (float32 or float64;
            float16 and integers are converted to them first), categories (integers from 0, or labels where
            the mechanism was given labels) or places of candidates (integers from 0). Shape (n, features) or
            (features,); (n,) too, and () for a single value, where a record is one number or one category.
            Numbers outside the interval are clipped to it (`outside` counts them), or refused with
            ``clip=False``.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : str
            One of `outputs`. "codes" are of the smallest unsigned dtype, "values" what `decode` makes of them
            (dtype of `x`), "bits" bytes of 0 and 1, "packed" bytes with as many bits a code as are needed.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`. Not where a report
            is a pair of arrays.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks of the keys' streams to skip: of ``bitldp._core.CHUNK`` released values, or of
            ``channels[0].chunk`` records where whole records are released.

        Returns
        -------
        ndarray, scalar or tuple of ndarray
            The reports: of the shape of `x`, but that "packed" is flat, and that "bits" have as many columns
            as bits. The report of a single value is a scalar, where it is one number. Where coordinates are
            sampled, a pair (indices, codes); its "values" have the shape of `x`, the middle of the interval
            standing for what was not sampled.

        Raises
        ------
        ValueError
            NaN, a value outside what is allowed (an index is given, never the value), wrong shape, unfit
            `out`, or "values" where reports say nothing. Nothing is handed out then: values are checked in
            the pass that randomizes them, so `out` is zeros where one is refused, and as it was where the
            call did not fit.
        TypeError
            Wrong dtype or kind of argument.
        """
        direct = self._direct
        if (
            direct is not None
            and rng is None
            and out is None
            and threads is None
            and first_chunk == 0
            and type(x) is ndarray
        ):
            # What a client calls for one value takes about a microsecond: a few comparisons, and the core.
            core, rest, form, flat, last = direct
            if output == form and (x.ndim == flat or (x.shape[-1:] == last and x.ndim < 3)):
                try:
                    return core(x, *rest)
                except (TypeError, ValueError):
                    pass  # what the core refuses is looked at below: converted, or refused by name and place
        call = called(rng, output, out, threads, first_chunk, self.outputs, self._streams)
        values = self._admit(x)
        if values.ndim or self.columns > 1:
            return self._perturb(values, call)
        if out is not None:
            raise ValueError("out: not offered for a single value")
        return self._single(self._perturb(values[None], call), call)

    def _admit(self, x: Any) -> NDArray[Any]:
        """Return records as an array of what `_perturb` takes, whatever they came as."""
        return checks.plain("x", x)

    @staticmethod
    def _single(reports: Any, call: Call) -> Reports:
        """Return the report of a single value, of those of an array of one."""
        if call.output == "packed":
            return reports
        if isinstance(reports, tuple):
            return type(reports)(*(part[0] for part in reports))
        return reports[0] if np.ndim(reports) else reports[()]

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        """Release records: an array of one axis or more. The call is checked, the records are not."""
        raise NotImplementedError(f"{type(self).__name__} has a `randomize` of its own")

    @property
    def _streams(self) -> int:
        """Keys that a call needs."""
        return 1

    @property
    def whole(self) -> bool:
        """Whether all numbers of a record are released together, as one symbol."""
        return False

    def symbols(self) -> tuple[Symbols, ...]:
        """Return the independent channels behind a report, and how often each is used.

        Returns
        -------
        tuple of Symbols
            Where a mechanism does not know them: its guarantee, as the law of the whole report.
        """
        return (Symbols((self.guarantee,), 1),)

    @property
    @abstractmethod
    def report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of each array of codes that makes one record's report."""

    def join(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return reports, as `decode` takes them, of one array of shape (n, columns) for each part."""
        return parts[0] if len(parts) == 1 else tuple(parts)

    @property
    def columns(self) -> int:
        """Numbers or categories of a record."""
        return 1

    @property
    def ends(self) -> tuple[float, float] | None:
        """Where a record's numbers lie: (low, high); None for what is not a number."""
        return None

    def outside(self, x: ArrayLike) -> int:
        """Return how many values of `x` are clipped when they are released: they lie outside the `ends`.

        Parameters
        ----------
        x : array_like
            Records, as `randomize` takes them.

        Returns
        -------
        int
            The number of values outside the interval, which are moved to its nearer end (of vectors outside
            the ball, which are scaled to it); 0 for a mechanism that clips nothing, but refuses. The number
            is as private as the records: it is for who holds them, and is no part of a report.

        Raises
        ------
        ValueError, TypeError
            For NaN, or for what are no numbers.
        """
        ends = self.ends
        if ends is None:
            return 0
        values = checks.numbers("x", x)
        found = Grid(2, low=ends[0], high=ends[1]).outside(np.atleast_1d(values))
        if np.isnan(values).any():  # the core takes it for neither in nor out
            raise ValueError(f"x: {place(np.isnan(values))} is NaN")
        return found

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return inputs that reports tell apart best, and the law of their reports where it is known.

        Parameters
        ----------
        pair : tuple, optional
            The two inputs to compare; chosen from the law where it is None.

        Returns
        -------
        Experiment or None
            None where nothing says what the inputs or their law are. Without a law in closed form, its
            `blocks` are empty.
        """
        if pair is not None or self.ends is None:
            return None
        return far_ends(self.ends, self.columns)

    @abstractmethod
    def decode(self, reports: Any) -> Any:
        """Return what reports stand for, or are worth; see the mechanism's own method."""

    @property
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form."""
        return sum(columns * bits for columns, bits in self.report_parts)

    @classmethod
    def usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example, as `for_record` takes them.

        Parameters
        ----------
        epsilon : float
            Budget of a record.
        size : int, optional
            Size of an input; None: `usual_size`.
        """
        sized = {} if cls.sized_by is None else {cls.sized_by: cls.usual_size if size is None else size}
        return {"epsilon": epsilon, **sized}

    @classmethod
    def for_record(cls, **parameters: Any) -> Any:
        """Construct from what a command line gives.

        Those of the constructor, but that `epsilon` is the budget of a record (or of one `unit`), and that
        the `interval` of numbers is always its two ends.
        """
        return cls(**parameters)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The independent mechanisms that each answer for a part of a record."""
        return (self,)

    def facts(self, users: int | None = None) -> dict[str, Any]:
        """Return what is known of reports before there are any, as JSON values.

        Parameters
        ----------
        users : int, optional
            Number of records behind an estimate; None leaves its standard errors out.

        Returns
        -------
        dict
            ``"errors"``: how far off a report and an estimate are, or under ``"unbiased"`` why there is no
            estimate. Where they are few, ``"probabilities"``.
        """
        return letter_facts(self, users)

    @abstractmethod
    def accumulator(self) -> Accumulator:
        """Return an empty accumulator of the mechanism's estimate."""


def _rebuild(kind: type[Mechanism], parameters: dict[str, Any]) -> Mechanism:
    return kind._quiet(**parameters)
