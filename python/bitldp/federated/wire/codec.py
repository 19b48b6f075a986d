"""Codec of a model update as a private report, for the client's mod and the server's strategy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.client import ModelUpdate
from bitldp.client.document import UPDATE_SLACK
from bitldp.client.mechanisms import document_of, fingerprint_digest
from bitldp.client.message import (
    NORMS,
    UPDATES,
    Field,
    Header,
    WireError,
    read,
    write,
)
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.means import SampledMeanAccumulator
from bitldp.federated.wire.arrays import Integers, Layout
from bitldp.mechanism.base import Mechanism, Output
from bitldp.privacy import Guarantee

__all__ = ["ReportForm", "UpdateCodec", "UpdatePlan", "letters_of"]


@dataclass(frozen=True)
class ReportForm:
    """Form of a mechanism's reports, as the mechanism states it: `report_parts`, `wire_output`, `join`.

    Attributes
    ----------
    mechanism : Mechanism
        Whose reports they are.
    """

    mechanism: Mechanism

    @property
    def fields(self) -> tuple[Field, ...]:
        """The arrays of codes that make a report."""
        return tuple(Field(*part) for part in self.mechanism._report_parts)

    @property
    def output(self) -> Output:
        """Form that `randomize` is asked for."""
        return self.mechanism._wire_output

    def assemble(self, arrays: Any) -> Any:
        """Return reports, as `decode` takes them, of one array of shape (records, columns) for each field."""
        return self.mechanism._join(arrays)

    def split(self, reports: Any, records: int) -> list[NDArray[Any]]:
        """Return reports as one array of codes for each field."""
        arrays = [np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,))]
        if [array.size for array in arrays] != [records * field.columns for field in self.fields]:
            raise ValueError("reports: not of the form that the mechanism states")
        return arrays


class Named(NamedTuple):
    """Vectors by the coordinates that their reports name; in all others they are 0.

    Attributes
    ----------
    indices : ndarray of int, shape (n, k)
        The coordinates, different within a vector.
    values : ndarray of float64, shape (n, k)
        The numbers there.
    """

    indices: NDArray[np.intp]
    values: NDArray[np.float64]

    def whole(self, coordinates: int) -> NDArray[np.float64]:
        """Return the vectors, shape (n, coordinates)."""
        vectors = np.zeros((len(self.values), coordinates))
        np.put_along_axis(vectors, self.indices, self.values, axis=1)
        return vectors


def letters_of(mechanism: Mechanism, *, allow_biased: bool) -> Callable[[Any], NDArray[np.float64]]:
    """Return the function from reports to numbers: unbiased, or the mechanism's own decoding.

    Raises
    ------
    ValueError
        If no unbiased decode exists and `allow_biased` is false; the message gives the mechanism's reason.
    TypeError
        If its reports are categories.
    """
    try:
        accumulator = mechanism.accumulator()
    except ValueError as error:
        return _biased(mechanism, str(error), allow_biased)
    if type(mechanism).unbias is not Mechanism.unbias:
        return mechanism.unbias
    if isinstance(accumulator, CountAccumulator):
        raise TypeError(f"mechanism: {type(mechanism).__name__} releases categories, not numbers")
    return _biased(mechanism, mechanism._no_mean, allow_biased)


def _biased(mechanism: Mechanism, reason: str, allow: bool) -> Callable[[Any], NDArray[np.float64]]:
    """Return what a mechanism decodes, or refuse, for it is not right on average."""
    if not allow:
        raise ValueError(
            f"mechanism: its reports cannot be averaged without bias ({reason}); allow_biased=True "
            "averages what it decodes"
        ) from None
    return mechanism.decode


def _sampled(mechanism: Mechanism) -> SampledMeanAccumulator | None:
    """Return what decodes reports by the coordinates that they name; None where they name none."""
    try:
        accumulator = mechanism.accumulator()
    except ValueError:
        return None
    # The means of a projection are of other numbers than the vector's, and name none of its coordinates.
    if isinstance(accumulator, SampledMeanAccumulator) and accumulator.mechanism is mechanism:
        return accumulator
    return None


Norm = Literal["l2", "l1", "linf"]
Update = Literal["difference", "gradient", "replace"]
Factory = Callable[[int], Mechanism]

_MOST_PLANS = 16
_MOST_ROWS = 1 << 20
_SPARSE = 8  # a vector has so many times the coordinates that its report names, or it is made whole


@dataclass(frozen=True)
class UpdateCodec:
    """Steps of a report: clip an update by a norm, scale it to the interval, randomize, pack.

    The client's `PrivateUpdateMod` and the server's `DecodingStrategy` must be given equal ones; a report
    that was made with another is refused.

    Parameters
    ----------
    mechanism : Mechanism or callable
        Mechanism that releases the update, or a function of its number of coordinates that returns one. With
        a function, the mechanism can cover the whole update as one record, for example ``lambda d:
        bitldp.Duchi(epsilon=1.0, features=d)``.
    clip : float
        Norm that the update is clipped to, above zero.
    norm : {"l2", "l1", "linf"}
        Which norm. "l2" and "l1" scale an update that is longer; "linf" clips every coordinate by itself.
    update : {"difference", "gradient", "replace"}
        What is released: the client's arrays minus those it was sent, or its arrays as they are. The server
        adds the mean to its arrays ("difference", and "gradient" times the rate), or puts it in their place.
    interval : (float, float), optional
        What [-clip, clip] is mapped to, linearly. Default: the mechanism's own interval, or the radius of
        its ball.
    integers : {"refuse", "keep"}
        What happens to arrays of integers or booleans: refused, or not sent, so that the server keeps its
        own.
    only : str or sequence of str
        Names of the arrays that are released, as patterns ("head.*", "*lora*"); each must match one. Empty:
        all. The others are never sent, and the server keeps its own; a reply may leave them out.
    keep_local : str or sequence of str
        Patterns of names that are never sent, such as "*running_*" for the statistics of batch
        normalisation, or the layers that a client keeps for itself.
    allow_biased : bool
        Whether a mechanism without an unbiased decode (BRR with m >= 2) may be averaged all the same.
    rows : int
        Updates in a reply, 1 or more, as gradients of so many records. With 1 the reply's arrays have the
        shapes of the model's. With more they have an axis of that length in front; each update is clipped and
        released by itself, and the report's value is their mean.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    The update of one client is cut into records with as many coordinates as the mechanism has features. The
    exact epsilons of several records add up, and their sum is charged: a mechanism of one number at epsilon 1
    on a model of 1000 weights costs 1000. All `rows` are charged, too. An account that knows that they come
    from different records may charge less (`bitldp.federated.ComposedAccount`).
    """

    mechanism: Mechanism | Factory
    clip: float
    norm: Norm = "l2"
    update: Update = "difference"
    interval: tuple[float, float] | None = None
    integers: Integers = "refuse"
    allow_biased: bool = False
    rows: int = 1
    only: str | Sequence[str] = ()
    keep_local: str | Sequence[str] = ()
    _plans: dict[Layout, UpdatePlan] = field(default_factory=dict, init=False, repr=False, compare=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not isinstance(self.mechanism, Mechanism) and not callable(self.mechanism):
            raise TypeError(
                "mechanism: must be a mechanism or a function that makes one of a number of coordinates, not "
                f"{type(self.mechanism).__name__}"
            )
        object.__setattr__(self, "clip", checks.positive("clip", self.clip))
        checks.choice("norm", self.norm, NORMS)
        checks.choice("update", self.update, UPDATES)
        checks.choice("integers", self.integers, ("refuse", "keep"))
        object.__setattr__(self, "rows", checks.integer("rows", self.rows, 1, _MOST_ROWS))
        for name in ("only", "keep_local"):
            object.__setattr__(self, name, _patterns(name, getattr(self, name)))
        if self.interval is not None:
            object.__setattr__(self, "interval", checks.pair("interval", self.interval))
        if isinstance(self.mechanism, Mechanism):
            letters_of(self.mechanism, allow_biased=self.allow_biased)
            self._ends(self.mechanism)

    def _ends(self, mechanism: Mechanism) -> tuple[float, float]:
        ball = getattr(mechanism, "norm", None)
        if ball in NORMS and self.norm not in (ball, "l1"):  # the l1 ball is inside the others
            raise ValueError(f"norm: must be {ball!r}, that of the ball of {type(mechanism).__name__}")
        ends = mechanism._span if self.interval is None else self.interval
        if ends is None:
            raise ValueError(
                f"interval: is required, since {type(mechanism).__name__} has no interval to which an "
                f"update could be scaled"
            )
        return ends

    @classmethod
    def of(cls, mechanism: Mechanism | Factory | UpdateCodec, options: dict[str, Any]) -> UpdateCodec:
        """Return a given codec, or one of a mechanism and options."""
        if not isinstance(mechanism, UpdateCodec):
            if "clip" not in options:
                raise TypeError("clip: must be given, the norm that updates are clipped to")
            return cls(mechanism, **options)
        if options:
            raise TypeError(f"{next(iter(options))}: the codec has it already; give it there")
        return mechanism

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters alone."""
        parts = (self.only, self.keep_local)
        options = (self.norm, self.update, self.interval, self.integers, self.allow_biased, self.rows, *parts)
        return type(self), (self.mechanism, self.clip, *options)

    def layout(self, arrays: Mapping[str, NDArray[Any]]) -> Layout:
        """Return the layout of a model's arrays: which of them are released, and where.

        Raises
        ------
        TypeError, ValueError
            For an array that holds no floating-point numbers (with ``integers="keep"``: nor integers nor
            booleans), for a pattern that no name matches, and where no array has a coordinate.
        """
        return Layout.of(arrays, self.integers, self.only, self.keep_local)

    def plan(self, layout: Layout) -> UpdatePlan:
        """Return the plan for updates of a layout; each is built once."""
        with self._lock:
            if layout not in self._plans:
                if len(self._plans) >= _MOST_PLANS:  # a server that asks for ever new ones costs no memory
                    self._plans.clear()
                self._plans[layout] = self._build(layout)
            return self._plans[layout]

    def _build(self, layout: Layout) -> UpdatePlan:
        size = layout.size
        mechanism = self.mechanism if isinstance(self.mechanism, Mechanism) else self.mechanism(size)
        if not isinstance(mechanism, Mechanism):
            raise TypeError(f"mechanism: the function returned {type(mechanism).__name__}, no mechanism")
        features = mechanism.columns
        if size % features:
            raise ValueError(
                f"mechanism: its records of {features} numbers do not divide an update of {size} coordinates"
                f"; give a function of their number, such as lambda d: {type(mechanism).__name__}(d, ...)"
            )
        low, high = self._ends(mechanism)
        form = ReportForm(mechanism)
        header = Header(
            name=type(mechanism).__name__,
            mechanism=fingerprint_digest(mechanism),
            layout=layout.digest,
            update=self.update,
            norm=self.norm,
            clip=self.clip,
            low=low,
            high=high,
            coordinates=size,
            records=self.rows * (size // features),
            fields=form.fields,
        )
        letters = letters_of(mechanism, allow_biased=self.allow_biased)
        sampled = _sampled(mechanism)
        if sampled is not None:
            drawn = form.fields[0].columns * header.records
            centred = sampled.middle == low + (high - low) / 2.0  # what is not named counts as 0
            if self.rows > 1 or not centred or _SPARSE * drawn > size:
                sampled = None
        return UpdatePlan(mechanism, layout, header, form, letters, self.rows, sampled)


def _patterns(name: str, given: Any) -> tuple[str, ...]:
    patterns = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(each, str) and each for each in patterns):
        raise TypeError(f"{name}: must be patterns of names, which are not empty")
    return patterns


@dataclass(frozen=True)
class UpdatePlan:
    """Encoder and decoder of updates of one layout.

    Attributes
    ----------
    mechanism : Mechanism
        What releases the records.
    layout : Layout
        Of the arrays.
    header : Header
        Of every report.
    form : ReportForm
        Of the mechanism's reports.
    letters : callable
        Turns reports into numbers.
    rows : int
        Updates in a reply.
    sampled : SampledMeanAccumulator or None
        Decodes reports that name few of the coordinates; None where they are decoded as whole vectors.
    """

    mechanism: Mechanism
    layout: Layout
    header: Header
    form: ReportForm
    letters: Callable[[Any], NDArray[np.float64]]
    rows: int = 1
    sampled: SampledMeanAccumulator | None = None

    def at(self, number: int, *, examples: bool = False) -> UpdatePlan:
        """Return the plan of one round, whose reports name it.

        Parameters
        ----------
        number : int
            Of the round, 1 or more; 0 for none.
        examples : bool
            Whether the client states its number of examples beside its report.
        """
        return replace(self, header=replace(self.header, round=number, examples=examples))

    @property
    def records(self) -> int:
        """Number of records that a reply's updates are cut into: releases to charge for each report."""
        return self.header.records

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of one record."""
        return self.mechanism.guarantee

    def flatten(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the arrays of a reply as vectors, shape (coordinates,) or (rows, coordinates).

        Raises
        ------
        ValueError
            If names, shapes or dtypes are not those of the layout, with an axis for several rows in front.
        """
        if self.rows == 1:
            return self.layout.flatten(arrays)
        arrays = {name: array for name, array in arrays.items() if name not in self.layout.kept}
        if any(array.shape[:1] != (self.rows,) for array in arrays.values()):
            raise ValueError(f"arrays: must all have an axis of {self.rows} rows in front")
        return np.stack(
            [
                self.layout.flatten({name: array[row] for name, array in arrays.items()})
                for row in range(self.rows)
            ]
        )

    def clipped(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a vector clipped to a norm of at most `clip`; of shape (rows, coordinates), each row.

        Raises
        ------
        ValueError
            If a coordinate is not finite; the message does not say which.
        """
        shape = self.update_shape
        if vector.shape != shape:
            raise ValueError(
                f"update: {self.rows} rows of coordinates are needed"
                if self.rows > 1
                else f"update: {self.header.coordinates} coordinates are needed"
            )
        return self.clipped_rows(vector.reshape(-1, self.header.coordinates)).reshape(shape)

    @property
    def update_shape(self) -> tuple[int, ...]:
        """Shape of what one client releases: (coordinates,) or (rows, coordinates)."""
        return (self.rows, self.header.coordinates)[self.rows == 1 :]

    def clipped_rows(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return vectors, shape (n, coordinates), each clipped to a norm of at most `clip`; see `clipped`."""
        if not np.isfinite(table).all():
            raise ValueError("update: it has coordinates that are not finite")
        clip = self.header.clip
        if self.header.norm == "linf":
            return np.clip(table, -clip, clip)
        largest = np.maximum(table.max(axis=1, keepdims=True), -table.min(axis=1, keepdims=True))
        # so that squares can neither overflow nor vanish
        unit = np.divide(table, largest, out=np.zeros_like(table), where=largest > 0.0)
        if self.header.norm == "l1":
            length = np.abs(unit).sum(axis=1, keepdims=True)
        else:
            length = np.sqrt(np.square(unit).sum(axis=1, keepdims=True))
        with np.errstate(over="ignore"):  # past the range of doubles is beyond the clip
            beyond = length * largest > clip
        unit *= np.divide(clip * UPDATE_SLACK, length, out=np.zeros_like(length), where=length > 0.0)
        np.copyto(unit, table, where=~beyond)
        return unit

    def perturb(self, vector: NDArray[np.float64], *, rng: RandomSource = None) -> NDArray[np.uint8]:
        """Return the private report of an update, or of several, as bytes.

        Parameters
        ----------
        vector : ndarray of float64, shape (coordinates,) or (rows, coordinates)
            The update, as `flatten` returns it.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.

        Raises
        ------
        ValueError
            For coordinates that are not finite. No message contains a value.
        """
        codes = self.codes(self.clipped(vector).reshape(-1, self.header.coordinates), rng)
        return write(self.header, codes)

    def codes(
        self, clipped: NDArray[np.float64], rng: RandomSource = None, threads: int | None = None
    ) -> list[NDArray[Any]]:
        """Return the codes of clipped updates, of one client or of many, by the fields of a report.

        Parameters
        ----------
        clipped : ndarray of float64, shape (n, coordinates)
            Vectors that `clipped_rows` returned: of each client as many as a reply has rows.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        threads : int, optional
            Number of threads; the result does not depend on it.

        Returns
        -------
        list of ndarray of unsigned int
            One array for each field, of ``records * columns`` codes for each client.
        """
        low, high = self.header.low, self.header.high
        values = clipped / self.header.clip  # in place from here on: an update may have 10^7 numbers
        values *= 0.5
        values += 0.5
        values *= high - low
        values += low
        np.clip(values, low, high, out=values)
        table = values.reshape(-1, self.mechanism.columns)
        reports = self.mechanism.randomize(table, rng=rng, output=self.form.output, threads=threads)
        return self.form.split(reports, len(table))

    def client_document(self, *, spends: tuple[str, int] | None = None) -> str:
        """Return the plan as data for a client that is not Python: clip, interval, law, and header.

        Parameters
        ----------
        spends : (str, int), optional
            Name of a ledger of the client, and how many reports it may send, at least 1. None: no limit but
            the client's own.

        Returns
        -------
        str
            Canonical JSON, whose epsilon is that of all records of an update; the vector that a client gives
            is that of `flatten`, in double precision, and what it sends is what `decode` takes.

        Raises
        ------
        NoDocumentError
            For a mechanism that no other client can run; the message says why.
        """
        head = self.header
        norm: Any = head.norm
        update = ModelUpdate(head.clip, norm, head.low, head.high, head.records, head.encoded(), self.rows)
        return document_of(self.mechanism, "float64", spends, update=update)

    def decode(self, data: bytes | NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the vector of a report; its mean over the randomness is the mean clipped update.

        Raises
        ------
        WireError
            For bytes that are no such report, or a code outside the mechanism's alphabet.
        """
        vector: NDArray[np.float64] = self.values(read(data, self.header))[0]
        return vector

    def values(self, codes: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Return the decoded vectors of codes, of one client or of many.

        Parameters
        ----------
        codes : sequence of ndarray of unsigned int, shape (n * records, columns) each
            One array for each field of a report.

        Returns
        -------
        ndarray of float64, shape (n, coordinates)

        Raises
        ------
        WireError
            For a code outside the mechanism's alphabet.
        """
        vectors = self.decoded(codes)
        return vectors.whole(self.header.coordinates) if isinstance(vectors, Named) else vectors

    def decoded(self, codes: Sequence[NDArray[Any]]) -> NDArray[np.float64] | Named:
        """Return what `values` does; where reports name few coordinates, by those, whatever the others are.

        Raises
        ------
        WireError
            For a code outside the mechanism's alphabet.
        """
        size = self.header.coordinates
        if self.sampled is None:
            letters = np.asarray(self._read(self.letters, codes), dtype=np.float64)
            if letters.size * self.header.fields[0].columns != codes[0].size * self.mechanism.columns:
                raise WireError("range", "report: its codes do not stand for one number for each coordinate")
            return self._rescaled(letters.reshape(-1, size) if self.rows == 1 else self._averaged(letters))
        indices, letters = self._read(self.sampled.named, codes)
        starts = self.mechanism.columns * np.arange(self.records)[:, None]  # of the records of one client
        indices = indices.reshape(-1, self.records, indices.shape[1]) + starts
        letters = letters.reshape(len(indices), -1)
        return Named(indices.reshape(letters.shape), self._rescaled(letters))

    def _read(self, letters: Callable[[Any], Any], codes: Sequence[NDArray[Any]]) -> Any:
        """Return what a function makes of the mechanism's reports."""
        try:
            return letters(self.form.assemble(codes))
        except (TypeError, ValueError, IndexError):
            raise WireError("range", "report: a code is outside the alphabet of the mechanism") from None

    def _rescaled(self, letters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return letters in the units of an update."""
        if not np.isfinite(letters).all():
            raise WireError("range", "report: its codes do not stand for one number for each coordinate")
        low, high = self.header.low, self.header.high
        vectors: NDArray[np.float64] = letters - (low + (high - low) / 2.0)
        vectors *= 2.0 * self.header.clip / (high - low)
        return vectors

    def _averaged(self, letters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of each client's rows."""
        return letters.reshape(-1, self.rows, self.header.coordinates).mean(axis=1)
