"""Base of all mechanisms: frozen, compared and pickled by their parameters alone."""

from __future__ import annotations

import html
import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, KeyedRandomness
from bitldp.base import checks
from bitldp.base.arrays import position
from bitldp.base.documents import facts_table
from bitldp.base.keys import RandomSource
from bitldp.client import mechanisms as clients
from bitldp.estimate.estimates import Estimate
from bitldp.letters.reach import Reach, checked_part
from bitldp.mechanism.described import Variant, letter_facts
from bitldp.mechanism.law import Coordinates, Experiment, Pair, Symbols, far_ends
from bitldp.mechanism.parameters import (
    RANDOMIZE,
    Hinting,
    declared,
    frozen,
    lasting,
    plain,
    refuse_unknown,
    short,
    short_name,
)
from bitldp.privacy import Guarantee, PrivacyClaimWarning
from bitldp.release.base import Call, Direct, called
from bitldp.release.keyed import Ids, bound, fitting, keyed_call, keyed_randomness

if TYPE_CHECKING:
    from bitldp.estimate.accumulators import Accumulator

Takes = Literal["numbers", "reals", "categories", "points", "ordered", "ball", "scores", "record", "words"]
"""Input of a mechanism: all columns together as fixed-point numbers, or as numbers of an interval; each
column by itself as a category, or as one of N points; a vector of a ball; a vector of which one dimension is
chosen; attributes of several kinds; words that nobody could
list."""

Part = tuple[int, int]
"""Columns of an array of codes, and bits of a code."""

Reports: TypeAlias = NDArray[Any] | np.generic | tuple[NDArray[Any], ...]
"""Reports of `randomize`: an array; a scalar for a single value; where coordinates are sampled, a pair."""

Output: TypeAlias = Literal["codes", "values", "bits", "packed"]
"""Form of reports; which of them a mechanism offers, its `outputs` say."""

_M = TypeVar("_M", bound="Mechanism")


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(metaclass=Hinting):
    """Base of the mechanisms: each randomizes records into reports with local differential privacy.

    A subclass is a frozen dataclass whose fields are its parameters. Those that are annotated with a check
    (`bitldp.mechanism.parameters`) are checked here. `_build` turns them into a release and a guarantee, and
    `_perturb` calls the release. Other parts of the package ask a mechanism for what they need: accountants
    for `symbols`, audits for `extremes`, wire formats for `report_parts` and `join`, the command line for
    `takes` and `facts`.

    Two mechanisms are equal if their parameters are equal. A pickle holds the parameters only, so it cannot
    copy the state of a random stream. (A mechanism has none: keys exist for one call.)
    """

    _takes: ClassVar[Takes | None] = None  # None where no command line can give its parameters
    _on_points: ClassVar[bool] = False  # whether its categories may also be the points of an interval
    _command: ClassVar[str] = ""  # its name on the command line, where it is not that of the class
    _alike: ClassVar[bool] = True  # whether a code that is reported is one that it takes
    _report_names: ClassVar[tuple[str, ...]] = ()  # of the numbers of a report, where they are not alike
    _sized_by: ClassVar[str | None] = "features"  # the parameter that says how large an input is
    _usual_size: ClassVar[int] = 1  # of the input of an example, or the only one
    _variants: ClassVar[tuple[Variant, ...]] = ()  # settings that have a name of their own
    outputs: ClassVar[tuple[str, ...]] = ("codes", "packed")
    _wire_output: ClassVar[Output] = "codes"
    _no_mean: ClassVar[str] = "its reports are not numbers"
    _no_frequencies: ClassVar[str] = "its reports are not categories"
    _no_letters: ClassVar[str] = "the mean of its reports does not determine the input"

    _no_document: ClassVar[str] = clients.NO_DOCUMENT  # why no other client can run it

    _lasting: ClassVar[str] = ""  # module and name that the class had at first, where it may have moved

    # Derived of the parameters while the mechanism is built.
    _guarantee: Guarantee = field(init=False, repr=False, compare=False)
    _direct: tuple[Any, ...] | None = field(init=False, repr=False, compare=False)

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
                stacklevel=4,  # here, the dataclass' __init__, its metaclass, the caller who constructs
            )

    def _settle(self) -> None:
        """Check the parameters that are declared with a check, then build."""
        for name, check in declared(type(self)):
            object.__setattr__(self, name, check(name, getattr(self, name)))
        self._build()
        direct = self._shortcut()
        object.__setattr__(self, "_direct", None if direct is None else tuple(direct))  # is unpacked faster

    @abstractmethod
    def _build(self) -> None:
        """Set the release and `_guarantee`, once each parameter by itself has been checked."""

    def _shortcut(self) -> Direct | None:
        """Return the core's own call, if releasing codes of new keys is nothing but that."""
        return None

    def _uninformative(self, inputs: str) -> ValueError:
        """Return the refusal to decode at epsilon 0."""
        reason = f"no unbiased decode exists at epsilon 0, where all {inputs} are reported alike"
        return ValueError(f"{type(self).__name__}: {reason}")

    def _set(self, **attributes: Any) -> None:
        """Set attributes of a frozen instance, while it is being built."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _quiet(cls: type[_M], **parameters: Any) -> _M:
        """Construct without the warning: for parts of a composite, and for unpickling."""
        mechanism = object.__new__(cls)
        for each in fields(cls):
            if each.init:
                default = parameters[each.name] if each.default is MISSING else each.default
                object.__setattr__(mechanism, each.name, parameters.get(each.name, default))
        mechanism._settle()
        return mechanism

    @property
    def guarantee(self) -> Guarantee:
        """Claimed and exact epsilon: `Guarantee`."""
        return self._guarantee

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters by name, in the order of the constructor."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}

    @property
    def _fingerprint_version(self) -> int:
        """Version, raised where reports of the same parameters no longer add up with those of before."""
        return 1

    def fingerprint(self) -> dict[str, Any]:
        """Return name and parameters as JSON values; arrays as a digest, functions by name.

        Returns
        -------
        dict
            ``{"name": ..., "parameters": {...}}``, and ``"version"`` from the second on. Two mechanisms whose
            reports may be aggregated together have the same fingerprint.

        Notes
        -----
        Wire headers, plans, saved counts and keyed randomness depend on the fingerprint. Its names therefore
        never change: a renamed class or parameter keeps its first name here.
        """
        kind, ids = type(self), lasting(type(self))
        version = {} if self._fingerprint_version == 1 else {"version": self._fingerprint_version}
        return {
            **version,
            "name": short_name(kind),
            "parameters": {ids[name]: plain(value) for name, value in self.parameters.items()},
        }

    def _identity(self) -> Hashable:
        return (type(self), *(frozen(value) for value in self.parameters.values()))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mechanism) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={short(value)}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        """Return parameters and guarantee as tables, for notebooks."""
        rows = ((name, html.escape(short(value))) for name, value in self.parameters.items())
        return facts_table(type(self).__name__, rows) + self.guarantee._repr_html_()

    def __reduce__(self) -> tuple[Callable[..., Mechanism], tuple[type[Mechanism], dict[str, Any]]]:
        return _rebuild, (type(self), dict(self.parameters))

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
        **unknown: Any,
    ) -> Reports:
        """Randomize records into reports that are safe to release at `guarantee`.

        Parameters
        ----------
        x : array_like
            Records, one per row; see the class for the kind of value. Numbers are float32 or float64; float16
            and integers are converted to them first. Categories are integers from 0, or labels if the
            mechanism has labels. Candidates are given by their index from 0. The shape is (n, features) or
            (features,); if a record is one number or one category, also (n,), or () for a single value.
            Numbers outside the interval are clipped to it (`outside` counts them), or refused with
            ``clip=False``.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        output : str
            One of `outputs`. "codes" have the smallest unsigned dtype. "values" are decoded by `decode`, in
            the dtype of `x`. "bits" are bytes of 0 and 1. "packed" are bytes that hold only the bits that a
            code needs.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`. Not available where
            a report is a pair of arrays.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            Number of chunks of the key's stream to skip. A chunk is ``bitldp._core.CHUNK`` released values,
            or ``channels[0].chunk`` records if whole records are released.

        Returns
        -------
        ndarray, scalar or tuple of ndarray
            The reports, in the shape of `x`, except that "packed" is flat and "bits" have as many columns as
            bits. The report of a single value is a scalar if it is one number. If coordinates are sampled,
            the reports are a pair (indices, codes). Their "values" have the shape of `x`, with the middle of
            the interval for coordinates that were not sampled.

        Raises
        ------
        ValueError
            For NaN, a value that is not allowed (the message gives its index, never the value), a wrong
            shape, an `out` that does not fit, or "values" where reports are uninformative. Nothing is
            returned in that case. Values are checked while they are randomized: if one is refused, `out` is
            filled with zeros. If the arguments do not fit each other, `out` is unchanged.
        TypeError
            For a wrong dtype or kind of argument.
        """
        if unknown:
            refuse_unknown("randomize", unknown, RANDOMIZE)
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
            raise ValueError("out: not supported for a single value")
        return self._single(self._perturb(values[None], call), call)

    def randomize_keyed(
        self,
        x: ArrayLike,
        *,
        key: bytes,
        ids: Ids,
        context: bytes = b"",
        column: int = 0,
        output: str | None = None,
        threads: int | None = None,
        duplicates: bool = False,
    ) -> Any:
        """Randomize records with keyed randomness, so that a retry returns the same reports.

        A report is a function of the key, the context, the mechanism's law, the record's id, its column and
        its value only. It does not depend on the batch, its order, the threads or the instruction set. If an
        engine retries a task or reads a frame twice, it gets the same report, at the cost of one. The law and
        the guarantee are those of `randomize`, as long as the key stays secret.

        If each number or category of a record is released by itself (as in `GRR`, or `Piecewise` with a split
        budget), the value is that number or category. A record in which one number changes keeps the reports
        of the others. In all other cases the value is the whole record, and two records that differ in one
        number get independent reports.

        Use one key and context for one frozen snapshot of the data. Otherwise, a report that changes reveals
        that its record changed, and one that stays suggests that the record did not. Keep the key with the
        owner of the data, never beside the reports: whoever holds it can test values.

        Parameters
        ----------
        x : array_like, shape (n, columns), or (n,) where a record is one number or category
            Records that `randomize` takes. Numbers are compared as float64, with -0.0 and subnormals as 0.0.
        key : bytes
            32 secret bytes, which never appear in a repr, pickle, log or error.
        ids : ndarray of int, zero or more, shape (n,); of uint8, shape (n, 32); or sequence of n bytes
            Ids of the records: numbers, digests of 32 bytes, or names, which are hashed with SHA-256.
        context : bytes
            Purpose of the randomness: the plan and the snapshot.
        column : int
            Number of the record's first column among all columns that are released under the key and context.
            Two columns with the same number would share their random bits.
        output : str, optional
            One of `outputs`; None is the first of them.
        threads : int, optional
            Number of threads; the result does not depend on it.
        duplicates : bool
            Whether an id may occur more than once. Equal values of such an id then get the same report, and
            different values get independent reports, each at the cost of the guarantee.

        Returns
        -------
        ndarray or tuple of ndarray
            The reports, as in `randomize`.

        Raises
        ------
        ValueError, TypeError
            For records that `randomize` refuses. Also for a key of another length, a number of ids that
            differs from the number of records, and an id that occurs twice.
        """
        randomness = keyed_randomness(key, ids, context, column, duplicates)
        values = self._admit(x)
        fitting(randomness, values)
        if values.ndim == 1 and self.columns > 1:
            raise ValueError(f"x: shape must be (n, {self.columns}), got {values.shape}")
        return self._perturb(values, self._keyed(randomness, [values], output, threads))

    client_document = clients.client_document
    _program = clients.no_program

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

    def _keyed(
        self,
        randomness: KeyedRandomness,
        records: Sequence[NDArray[Any]],
        output: str | None,
        threads: int | None,
    ) -> Call:
        """Return the call that takes its randomness from that of the records."""
        own = bound(randomness, records, threads) if self._bound else randomness
        form = self.outputs[0] if output is None else output
        return keyed_call(own, self._streams, form, self.outputs, threads)

    @property
    def _bound(self) -> bool:
        """True where keyed randomness is bound to the whole record: more is done than one draw of it."""
        return True

    @property
    def _streams(self) -> int:
        """Keys that a call needs."""
        return 1

    @property
    def _whole(self) -> bool:
        """True where all numbers of a record are released together, as one symbol."""
        return False

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the independent channels behind a report, and how often each is used.

        Returns
        -------
        tuple of Symbols
            Where a mechanism does not know them: its guarantee, as the law of the whole report.
        """
        return (Symbols((self.guarantee,), 1),)

    def _coordinates(self) -> Coordinates | None:
        """Return what sums of its reports are accounted by, for a vector with noise in every coordinate."""
        return None

    @property
    @abstractmethod
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of each array of codes that makes one record's report."""

    def _join(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return reports, as `decode` takes them, of one array of shape (n, columns) for each part."""
        return parts[0] if len(parts) == 1 else tuple(parts)

    @property
    def columns(self) -> int:
        """Numbers or categories of a record."""
        return 1

    @property
    def _span(self) -> tuple[float, float] | None:
        """Where a record's numbers lie: (low, high); None for what is not a number."""
        return None

    def outside(self, x: ArrayLike) -> int:
        """Return how many values of `x` lie outside the `ends` and are clipped when they are released.

        Parameters
        ----------
        x : array_like
            Records, as `randomize` takes them.

        Returns
        -------
        int
            The number of values outside the interval, which are moved to its nearer end, or of vectors
            outside the ball, which are scaled to it. 0 for a mechanism that refuses instead of clipping. The
            number is as private as the records: use it where the records are, and do not release it.

        Raises
        ------
        ValueError, TypeError
            For NaN, or for values that are not numbers.
        """
        ends = self._span
        if ends is None:
            return 0
        values = checks.numbers("x", x)
        result = Grid(2, low=ends[0], high=ends[1]).outside(np.atleast_1d(values))
        if np.isnan(values).any():  # the core takes it for neither in nor out
            raise ValueError(f"x: {position(np.isnan(values))} is NaN")
        return result

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return the two inputs that reports distinguish best, and the law of their reports if it is known.

        Parameters
        ----------
        pair : tuple, optional
            The two inputs to compare; chosen from the law where it is None.

        Returns
        -------
        Experiment or None
            None if the inputs or their law are unknown. Without a law in closed form, its `blocks` are empty.
        """
        if pair is not None or self._span is None:
            return None
        return far_ends(self._span, self.columns)

    @abstractmethod
    def decode(self, reports: Any) -> Any:
        """Return the decoded values of reports; see the mechanism's own method."""

    @property
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form."""
        return sum(columns * bits for columns, bits in self._report_parts)

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example, as `for_record` takes them.

        Parameters
        ----------
        epsilon : float
            Budget of a record.
        size : int, optional
            Size of an input; None: `usual_size`.
        """
        sized = {} if cls._sized_by is None else {cls._sized_by: cls._usual_size if size is None else size}
        return {"epsilon": epsilon, **sized}

    @classmethod
    def _for_record(cls, **parameters: Any) -> Any:
        """Construct from what a command line gives.

        Those of the constructor, but that `epsilon` is the budget of a record (or of one `unit`), and that
        the `interval` of numbers is always its two ends.
        """
        return cls(**parameters)

    @property
    def _members(self) -> tuple[Any, ...]:
        """The independent mechanisms that each answer for a part of a record."""
        return (self,)

    def _facts(self, users: int | None = None) -> dict[str, Any]:
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
        """Return an empty accumulator of the mechanism's estimate. It streams, merges and serialises.

        Raises
        ------
        ValueError
            Where no unbiased decode exists: at epsilon 0, where reports are uninformative, or with regions.
        """

    def unbias(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased values of reports: their mean over the randomness is the record.

        Raises
        ------
        ValueError
            If it has none. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no mean to estimate: {self._no_mean}")

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the records, where the mechanism has one; see its own method.

        Raises
        ------
        ValueError
            If it has none. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no mean to estimate: {self._no_mean}")

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the categories, where the mechanism has them; see its own method.

        Raises
        ------
        ValueError
            If it has none. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no frequencies to estimate: {self._no_frequencies}")

    def mean_variance(self) -> float:
        """Return the variance of one report's unbiased letter, averaged over inputs, where it has one.

        Raises
        ------
        ValueError
            If no unbiased decode exists. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no unbiased letters: {self._no_letters}")

    def worst_variance(self) -> float:
        """Return the variance of one report's unbiased letter for the worst input, where it has one.

        Raises
        ------
        ValueError
            If no unbiased decode exists. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no unbiased letters: {self._no_letters}")

    def influence(self, share: float, *, mean: ArrayLike | None = None, total: bool = False) -> float:
        """Return how far a share of lying clients may move an entry of the estimate, at most.

        Liars may send any report that the server accepts. All unbiased estimates here are linear in the
        reports. Such an estimate moves by the share of liars, times the difference between the decoded lie
        and the honest mean.

        Parameters
        ----------
        share : float
            Share of liars among the clients, 0 to 1.
        mean : array_like of float, optional
            Honest mean or frequency of every entry, or one for all of them. None: the one that lets liars
            move the estimate furthest.
        total : bool
            If True, bound the sum over a set of entries that the liars choose, in place of a single entry.
            With several features, it is a set of one feature's categories.

        Returns
        -------
        float
            In units of the estimate, before any projection. The value is exact: liars reach it if all of them
            send the worst report. It is only a bound if a decoded vector has a norm, and for sums if `mean`
            differs by entry and a report counts for several. With several attributes it is the largest of
            them.

        Raises
        ------
        ValueError
            If no linear estimate exists (the message says why), or for a share or a mean out of range.

        Notes
        -----
        Sources: Cheu, Smith and Ullman, "Manipulation attacks in local differential privacy", IEEE S&P 2021;
        Cao, Jia and Gong, "Data poisoning attacks to local differential privacy protocols", USENIX Security
        2021.
        """
        part, together = checked_part("share", share), checks.flag("total", total)
        return max(
            (each.moved_together if together else each.moved)(part, each.checked_mean(mean))
            for each in self._reach(together)
        )

    def _reach(self, total: bool = False) -> Sequence[Reach]:
        """Return what reports decode to at most, for each attribute; `total` where sets of entries count.

        Raises
        ------
        ValueError
            Where no linear estimate exists. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no linear estimate: {self._no_letters}")


def _rebuild(kind: type[Mechanism], parameters: dict[str, Any]) -> Mechanism:
    return kind._quiet(**parameters)
